"""Erase the inputs of a person's decisions. The records stay, with their answers and the nodes that led to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session, undefer

from service.database.clock import utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import DecisionRecord
from service.repositories.decisions import check_subject
from service.serialization.table_records import read_record

RECORDS_AT_ONCE = 20  # in one transaction: some are large
FAULT = {"pointer": "", "message": "erased with the inputs"}


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was erased by one call."""

    n_records: int
    n_decisions: int


def erase(source: Sessions, subject: str) -> Erased:
    """Erase the inputs of all decisions about a subject.

    Some records at a time: after a failure, the erased records stay erased and another call continues.

    Raises:
        ValidationFailed: The subject cannot be stored.
    """
    check_subject(subject)
    n_records, n_decisions, last = 0, 0, ""
    while True:
        with transaction(source) as session:
            records = _next_records(session, subject, last)
            for record in records:
                session.execute(
                    update(DecisionRecord)
                    .where(DecisionRecord.id == record.id)
                    .values(erased=utc_now(), **_erased_values(record))
                )
        n_records += len(records)
        n_decisions += sum(record.n_rows for record in records)
        if len(records) < RECORDS_AT_ONCE:
            return Erased(n_records, n_decisions)
        last = records[-1].id


def _next_records(session: Session, subject: str, last: str) -> list[DecisionRecord]:
    pending = DecisionRecord.subject == subject, DecisionRecord.erased.is_(None), DecisionRecord.id > last
    query = select(DecisionRecord).where(*pending).order_by(DecisionRecord.id).limit(RECORDS_AT_ONCE)
    return list(session.scalars(query.options(undefer(DecisionRecord.packed)).with_for_update()))


def _erased_values(record: DecisionRecord) -> Mapping[str, Any]:
    """Return what is left of a record: its answers, and of a refused row no path, which may be a caller's name."""
    if record.packed is not None:
        return {"packed": read_record(record.packed).without().to_bytes(with_rules=True)}
    answers = [
        {"errors": [{**FAULT, "code": fault["code"]} for fault in answer["errors"]]} if "errors" in answer else answer
        for answer in record.answers or ()
    ]
    return {"inputs": [{} for _ in answers], "answers": answers}
