"""Make, find and list the records of the decision log.

A record has the decisions of one prediction request, or of a part of a stream or a job. If a record with the id R has a
table or several rows, its decisions have the ids "R:0", "R:1" and so on; else its only decision has the id R.
The values of masked attributes are not stored, nor the conditions of paths, which `usecases.decisions` derives.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

import espalier
from service.database import DECISION_ID
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, insert_new, read_session
from service.database.tables import DecisionRecord, ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.decision_log import DECISIONS
from service.repositories.pagination import Page
from service.serialization.table_records import TableRecord, label_json, read_record

ANSWER_FIELDS = ("label", "value", "std", "distribution", "confidence", "support", "leaf", "flags", "errors")
NONE_KEPT = "the decisions of this job from row {first_row} on are not stored: request another job"
REFUSED = "(refused)"  # the label under which refused rows are counted
SUBJECT_LENGTH = 200
MAX_RECORDS_A_PAGE = 500  # records that are read for one page of the list
MAX_ROWS_A_PAGE = 200_000  # if so many rows after the cursor were compared, no further record is read
RECORDS_AT_ONCE = 20  # records in memory at once: some are large
ROWS_AT_ONCE = 256  # rows that are decoded together from a packed record


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer to one row, as it was logged."""

    id: str
    model_name: str
    version: int
    version_id: str
    document_sha256: str
    alias: str | None
    time: datetime
    input: dict[str, Any]  # attribute values as they were given
    missing: str  # the strategy for missing values
    answer: dict[str, Any]  # the members in ANSWER_FIELDS that the task has; a refused row has only `errors`
    nodes: tuple[int, ...]  # node ids, root first; empty for a refused row
    subject: str | None
    key_id: str | None  # id of the caller's key; None: keys were off
    milliseconds: float  # duration of the request, or of the part of a stream or job, until the record was made
    masked: tuple[str, ...]  # attributes whose values were not stored
    erased: datetime | None  # when all values were erased
    operating_point: dict[str, Any] | None  # {"label", "probability"}

    @property
    def leaf(self) -> int | None:
        """The leaf or rule that answered (of several leaves, the one with the most weight); None for a refused row."""
        return self.answer.get("leaf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which decisions to list; a field that is None selects all."""

    model: str | None = None
    models: Collection[str] | None = None  # decisions of these models only
    version: int | None = None
    label: str | None = None
    leaf: int | None = None
    subject: str | None = None
    from_time: datetime | None = None  # this moment or later
    to_time: datetime | None = None  # before this moment


Columns = Mapping[str, Any]
"""Columns of a record whose values are the same for all its rows; columns that are not given are null."""

# Fields that a decision copies from its record.
RECORD_FIELDS = (
    *("version_id", "document_sha256", "alias", "time", "missing", "subject", "key_id", "milliseconds", "erased"),
    "operating_point",
)


def row_record(
    same: Columns,
    *,
    attributes: Collection[str],
    inputs: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    nodes: Sequence[Sequence[int]],
    milliseconds: float,
) -> dict[str, Any]:
    """Return the record of rows that were answered one by one. Of their `inputs`, only `attributes` are stored."""
    stored = [{name: answer[name] for name in ANSWER_FIELDS if name in answer} for answer in answers]
    only = stored[0] if len(stored) == 1 else {}
    return {
        **new_record(same, n_rows=len(stored), milliseconds=milliseconds),
        "inputs": [_stored(row, answer, attributes) for row, answer in zip(inputs, stored, strict=True)],
        "answers": stored,
        "nodes": [list(path) for path in nodes],
        "label": _label_json(only),
        "leaf": only.get("leaf"),
    }


def new_record(same: Columns, *, n_rows: int, milliseconds: float, packed: bytes | None = None) -> dict[str, Any]:
    """Return a record with a new id; for a table, `packed` is from `TableRecord.to_bytes`.

    Even if a table has only one row, the id of its decision ends with the number of the row.
    """
    check_subject(same.get("subject"))
    times = {"time": utc_now(), "milliseconds": milliseconds}
    return {**same, "id": new_id(), **times, "n_rows": n_rows, "packed": packed}


def add(session: Session, record: Mapping[str, Any]) -> None:
    """Insert a record, unless the log has a record with the same id."""
    session.execute(insert_new(session.get_bind().dialect.name, DECISIONS, "id"), [dict(record)])


def n_rows_of_job(session: Session, job_id: str) -> int:
    """Return how many rows a prediction job has answered and logged so far; it answers them in order."""
    last = func.max(DecisionRecord.first_row + DecisionRecord.n_rows)
    return session.scalar(select(last).where(DecisionRecord.job_id == job_id)) or 0


def answers_of_job(source: Sessions, job_id: str, *, n_rows: int) -> Iterator[TableRecord]:
    """Yield the answers of a prediction job, one record per transaction; raise `Conflict` if some are deleted."""
    first_row = 0
    while first_row < n_rows:
        query = select(DecisionRecord.id, DecisionRecord.packed)
        query = query.where(DecisionRecord.job_id == job_id, DecisionRecord.first_row == first_row)
        with read_session(source) as session:
            row = session.execute(query).first()
        if row is None:
            raise Conflict(NONE_KEPT.format(first_row=first_row))
        batch = read_record(row.packed or b"", inputs=False)
        yield replace(batch, record_id=row.id, first_row=first_row)
        first_row += batch.n_rows


def _stored(row: Mapping[str, Any], answer: Mapping[str, Any], attributes: Collection[str]) -> dict[str, Any]:
    """Return the values of a row to store: those of `attributes`; of a refused row, only scalars."""
    if "errors" not in answer:
        return {name: row[name] for name in row if name in attributes}
    cells = row.items() if isinstance(row, Mapping) else ()
    return {name: cell for name, cell in cells if name in attributes and isinstance(cell, str | int | float | None)}


def check_subject(subject: str | None, *, pointer: str = "/subject") -> None:
    """Raise `ValidationFailed` if the subject is empty, too long, or has an unprintable character."""
    if subject is not None and not (1 <= len(subject) <= SUBJECT_LENGTH and subject.isprintable()):
        raise ValidationFailed.of(pointer, "invalid", f"a subject has 1 to {SUBJECT_LENGTH} printable characters")


def label_of(answer: Mapping[str, Any]) -> str:
    """Return the label of an answer as text, for counting: "" for a number, REFUSED for a row with faults."""
    return REFUSED if "errors" in answer else espalier.label_text(answer.get("label", ""))


def decision_ids(record_id: str, n_rows: int) -> list[str]:
    """Return the ids of the decisions of a record made by `row_record`."""
    return [record_id] if n_rows == 1 else [f"{record_id}:{position}" for position in range(n_rows)]


def find(session: Session, decision_id: str) -> Decision:
    """Return the decision with exactly this id ("R" and "R:0" differ); raise `NotFound` if there is none."""
    record_id, _, number = decision_id.partition(":")
    query = _records().where(DecisionRecord.id == record_id)
    if re.fullmatch(DECISION_ID, decision_id) and (row := session.execute(query).first()):
        opened, place = _OpenedRecord(row), int(number or 0)
        if opened.has_one_id == (not number) and place < opened.n_rows:
            return opened.decision(place)
    raise NotFound("decision", decision_id)


def list_decisions(session: Session, wanted: Filter, *, limit: int = 50, cursor: str | None = None) -> Page[Decision]:
    """Return a page of decisions: newest record first, and the rows of a record in order.

    If `wanted` has a label or a leaf, packed records are decoded to find the matching rows. To bound this work, a page
    may have fewer than `limit` decisions, even none, and still have a cursor.
    """
    query = _records().where(*_conditions(wanted)).order_by(DecisionRecord.id.desc()).limit(MAX_RECORDS_A_PAGE)
    cursor_id, _, cursor_place = (cursor or "").partition(":")
    if cursor is not None:
        query = query.where(DecisionRecord.id <= cursor_id)
    items: list[Decision] = []
    last_seen, n_records, n_rows = cursor, 0, 0
    # Close the database's cursor at once: otherwise the server holds the rest of the result.
    with closing(session.execute(query.execution_options(yield_per=RECORDS_AT_ONCE))) as rows:
        for opened in map(_OpenedRecord, rows):
            first = int(cursor_place or 0) + 1 if opened.id == cursor_id else 0
            n_records, n_rows = n_records + 1, n_rows + opened.n_rows - first
            for place in opened.matching(wanted, first=first):
                if len(items) == limit:
                    return Page(items=tuple(items), next=last_seen)
                items.append(opened.decision(place))
                last_seen = f"{opened.id}:{place}"
            last_seen = f"{opened.id}:{opened.n_rows - 1}"
            if n_rows >= MAX_ROWS_A_PAGE:
                return Page(items=tuple(items), next=last_seen)
    return Page(items=tuple(items), next=last_seen if n_records == MAX_RECORDS_A_PAGE else None)


def _records() -> Any:
    return (
        select(DecisionRecord, Version.number, ModelName.name)
        .join(Version, DecisionRecord.version_id == Version.id)
        .join(ModelName, Version.model_id == ModelName.id)
    )


def _conditions(wanted: Filter) -> Iterator[Any]:
    equal = {ModelName.name: wanted.model, Version.number: wanted.version, DecisionRecord.subject: wanted.subject}
    yield from (column == value for column, value in equal.items() if value is not None)
    if wanted.models is not None:
        yield ModelName.name.in_(wanted.models)
    if wanted.from_time is not None:
        yield DecisionRecord.time >= wanted.from_time
    if wanted.to_time is not None:
        yield DecisionRecord.time < wanted.to_time
    # Only records of a single row in JSON have a label and a leaf; the rows of others are compared one by one.
    is_opened = or_(DecisionRecord.n_rows > 1, DecisionRecord.packed.is_not(None))
    if wanted.label is not None:
        # The label 3 of a query means the text "3" or the number 3.
        yield or_(is_opened, DecisionRecord.label.in_((label_json(wanted.label), wanted.label)))
    if wanted.leaf is not None:
        yield or_(is_opened, DecisionRecord.leaf == wanted.leaf)


def _label_json(answer: Mapping[str, Any]) -> str | None:
    return label_json(answer["label"]) if "label" in answer else None


class _OpenedRecord:
    """A record, with the name of its model and the number of its version. Rows are decoded when they are needed."""

    def __init__(self, row: Any) -> None:
        self.record: DecisionRecord = row.DecisionRecord
        self.id, self.n_rows = self.record.id, self.record.n_rows
        self.has_one_id = self.n_rows == 1 and self.record.answers is not None
        self._model_name, self._version = row.name, row.number
        self._first_read = -1
        self._rows_read: TableRecord | None = None

    def matching(self, wanted: Filter, *, first: int) -> Iterator[int]:
        """Return the numbers of the rows, from `first` on, whose leaf and label match the filter."""
        places = range(first, self.n_rows)
        if wanted.leaf is None and wanted.label is None:
            return iter(places)
        answers = self.record.answers
        if answers is None:
            table = read_record(self.record.packed or b"", inputs=False)
            leaves, labels = table.leaves.tolist(), table.labels().tolist()
        else:
            leaves, labels = [answer.get("leaf") for answer in answers], list(map(_label_json, answers))
        texts = None if wanted.label is None else (label_json(wanted.label), wanted.label)
        return (
            place
            for place in places
            if wanted.leaf in (None, leaves[place]) and (texts is None or labels[place] in texts)
        )

    def decision(self, place: int) -> Decision:
        """Return the decision on one row."""
        record = self.record
        return Decision(
            id=self.id if self.has_one_id else f"{self.id}:{place}",
            model_name=self._model_name,
            version=self._version,
            masked=tuple(record.masked or ()),
            **self._row(place),
            **{name: getattr(record, name) for name in RECORD_FIELDS},
        )

    def _row(self, place: int) -> dict[str, Any]:
        inputs, answers, nodes = self.record.inputs, self.record.answers, self.record.nodes
        if inputs is not None and answers is not None and nodes is not None:
            return {"input": inputs[place], "answer": answers[place], "nodes": tuple(nodes[place])}
        first = place - place % ROWS_AT_ONCE
        if self._rows_read is None or first != self._first_read:
            stop = min(first + ROWS_AT_ONCE, self.n_rows)
            self._first_read, self._rows_read = first, read_record(self.record.packed or b"", start=first, stop=stop)
        return self._rows_read.row(place - first)
