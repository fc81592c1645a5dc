"""The inputs of a person's decisions, erased: the records stay, with their answers and the nodes that led to them."""

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
    """How much was erased just now."""

    n_records: int
    n_decisions: int


def erase(source: Sessions, subject: str) -> Erased:
    """Erase the inputs of all decisions about a subject; what is erased already stays as it is.

    Some records at a time: where this ends early, what was done stays done, and asked again it goes on.

    Raises:
        ValidationFailed: The subject is none that can be stored.
    """
    check_subject(subject)
    n_records, n_decisions, last = 0, 0, ""
    while True:
        with transaction(source) as session:
            records = _next(session, subject, last)
            for record in records:
                session.execute(
                    update(DecisionRecord)
                    .where(DecisionRecord.id == record.id)
                    .values(erased=utc_now(), **_left(record))
                )
        n_records += len(records)
        n_decisions += sum(record.n_rows for record in records)
        if len(records) < RECORDS_AT_ONCE:
            return Erased(n_records, n_decisions)
        last = records[-1].id


def _next(session: Session, subject: str, last: str) -> list[DecisionRecord]:
    mine = DecisionRecord.subject == subject, DecisionRecord.erased.is_(None), DecisionRecord.id > last
    query = select(DecisionRecord).where(*mine).order_by(DecisionRecord.id).limit(RECORDS_AT_ONCE)
    return list(session.scalars(query.options(undefer(DecisionRecord.packed)).with_for_update()))


def _left(record: DecisionRecord) -> Mapping[str, Any]:
    """Give what is left of a record: its answers; of a refusal no place, which may be a name that the caller gave."""
    if record.packed is not None:
        return {"packed": read_record(record.packed).without().to_bytes(with_rules=True)}
    answers = [
        {"errors": [{**FAULT, "code": fault["code"]} for fault in answer["errors"]]} if "errors" in answer else answer
        for answer in record.answers or ()
    ]
    return {"inputs": [{} for _ in answers], "answers": answers}
