"""Erase the inputs of a person's decisions. The records stay, with answers and node ids."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import undefer

from service.database.clock import utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import DecisionRecord
from service.repositories.decisions import check_subject
from service.serialization.table_records import read_record

RECORDS_AT_ONCE = 20  # in one transaction: some are large
FAULT = {"pointer": "", "message": "erased with the inputs"}


def erase(source: Sessions, subject: str) -> dict[str, int]:
    """Erase the inputs of all decisions about a subject, and return the numbers of records and decisions.

    A few records are erased in one transaction: after a failure, another call continues.
    """
    check_subject(subject)
    n_records, n_decisions, last = 0, 0, ""
    while True:
        with transaction(source) as session:
            pending = DecisionRecord.subject == subject, DecisionRecord.erased.is_(None), DecisionRecord.id > last
            query = select(DecisionRecord).where(*pending).order_by(DecisionRecord.id).limit(RECORDS_AT_ONCE)
            records = session.scalars(query.options(undefer(DecisionRecord.packed)).with_for_update()).all()
            for record in records:
                erase = update(DecisionRecord).where(DecisionRecord.id == record.id)
                session.execute(erase.values(erased=utc_now(), **_erased_values(record)))
        n_records += len(records)
        n_decisions += sum(record.n_rows for record in records)
        if len(records) < RECORDS_AT_ONCE:
            return {"n_records": n_records, "n_decisions": n_decisions}
        last = records[-1].id


def _erased_values(record: DecisionRecord) -> Mapping[str, Any]:
    """Return the new values of a record; of a refused row's faults only the codes, since pointers may hold inputs."""
    if record.packed is not None:
        return {"packed": read_record(record.packed).without_inputs().to_bytes(with_rules=True)}
    answers = [
        {"errors": [{**FAULT, "code": fault["code"]} for fault in answer["errors"]]} if "errors" in answer else answer
        for answer in record.answers or ()
    ]
    return {"inputs": [{} for _ in answers], "answers": answers}
