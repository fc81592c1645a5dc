"""Records of the decision log: made, found and listed.

A record is one prediction request, or a part of a stream. The decision on a single row has the record's id; of more
rows, and of a table, the i-th (from 0) has the id "id:i". The path is not stored as text: `usecases.decisions` derives
it again from the immutable version and compares. Values of attributes in the model's mask are not stored.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import orjson
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from espalier import Fault
from service.database import DECISION_ID
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, read_session
from service.database.tables import DecisionRecord, ModelName, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.decision_log import insert_new
from service.repositories.pages import Page, check_page
from service.serialization.answer_rows import TableBatch
from service.serialization.table_records import AnsweredRow, TableRecord, read_record

ANSWER_FIELDS = ("label", "value", "std", "distribution", "confidence", "support", "leaf", "flags", "errors")
NONE_KEPT = "the decisions of this job are not kept from row {first_row} on: ask for another job"
REFUSED = "(refused)"  # in the place of a label
SUBJECT_LENGTH = 200
RECORDS_A_LOOK = 500  # records that one page of the list looks through at most
ROWS_READ = 256  # of a record at once
RECORDS_AT_ONCE = 20  # in memory: some are large
ROWS_A_LOOK = 200_000  # after so many rows a page of the list ends, too


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
    answer: dict[str, Any]  # ANSWER_FIELDS, as far as the task has them; of a row that was refused only `errors`
    nodes: tuple[int, ...]  # node ids, root first; none of a row that was refused
    subject: str | None
    key_id: str | None  # of the caller; None where keys were off
    milliseconds: float  # of the whole request
    masked: tuple[str, ...]  # attributes whose values were not stored
    erased: datetime | None  # when all values were erased
    operating_point: dict[str, Any] | None  # that was in force: {"label", "probability"}

    @property
    def leaf(self) -> int | None:
        """The node that answered; None of a row that was refused."""
        return self.answer.get("leaf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which decisions to list; None means all."""

    model: str | None = None
    models: Collection[str] | None = None  # by none but these
    version: int | None = None
    label: str | None = None
    leaf: int | None = None
    subject: str | None = None
    from_time: datetime | None = None  # this moment or later
    to_time: datetime | None = None  # before this moment


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordContext:
    """What a record says of all its rows."""

    version_id: str
    document_sha256: str
    missing: str  # the strategy for missing values that was in force
    alias: str | None = None
    subject: str | None = None
    key_id: str | None = None
    job_id: str | None = None
    first_row: int | None = None  # of a job: place of the first row in its data set
    masked: Sequence[str] | None = None  # attributes whose values are not stored
    operating_point: Mapping[str, Any] | None = None  # that was in force


CONTEXT_FIELDS = tuple(field.name for field in fields(RecordContext))


def row_record(
    context: RecordContext,
    *,
    attributes: Collection[str],
    inputs: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    nodes: Sequence[Sequence[int]],
    milliseconds: float,
) -> dict[str, Any]:
    """Return the record of rows that were answered one by one, a row of the decisions table with a new id.

    Args:
        context: What it says of all rows.
        attributes: Those whose values are stored.
        inputs: The rows as they were given.
        answers: The JSON form of each answer; its path is not stored.
        nodes: The node ids that each row visited, root first.
        milliseconds: From the arrival of the request until now.

    Raises:
        ValidationFailed: The subject is empty, too long or holds a control character.
    """
    stored = [{name: answer[name] for name in ANSWER_FIELDS if name in answer} for answer in answers]
    single = stored[0] if len(stored) == 1 else {}
    return {
        **_new_record(context, n_rows=len(stored), milliseconds=milliseconds),
        "inputs": [_stored(row, answer, attributes) for row, answer in zip(inputs, stored, strict=True)],
        "answers": stored,
        "nodes": [list(path) for path in nodes],
        "label": orjson.dumps(single["label"]).decode() if "label" in single else None,
        "leaf": single.get("leaf"),
    }


def table_record(context: RecordContext, *, n_rows: int, content: bytes, milliseconds: float) -> dict[str, Any]:
    """Return the record of a table, a row of the decisions table with a new id, from `TableRecord.to_bytes`.

    A single row has a number, too, where it came in a table.

    Raises:
        ValidationFailed: As `row_record`.
    """
    return {**_new_record(context, n_rows=n_rows, milliseconds=milliseconds), "packed": content}


def add(session: Session, record: Mapping[str, Any]) -> None:
    """Insert a record, unless one with its id is there already."""
    session.execute(insert_new(session.get_bind().dialect.name), [dict(record)])


def n_rows_of_job(session: Session, job_id: str) -> int:
    """How many rows a job has answered and logged so far, from the first on."""
    last = func.max(DecisionRecord.first_row + DecisionRecord.n_rows)
    return session.scalar(select(last).where(DecisionRecord.job_id == job_id)) or 0


def answers_of_job(source: Sessions, job_id: str, *, n_rows: int) -> Iterator[TableBatch]:
    """Yield the answers of a prediction job record by record, each read in its own transaction.

    Args:
        source: The database.
        job_id: The job.
        n_rows: How many rows it answered.

    Raises:
        Conflict: Decisions of the job have been deleted.
    """
    first_row = 0
    while first_row < n_rows:
        wanted = DecisionRecord.job_id == job_id, DecisionRecord.first_row == first_row
        with read_session(source) as session:
            row = session.execute(select(DecisionRecord.id, DecisionRecord.packed).where(*wanted)).first()
        if row is None:
            raise Conflict(NONE_KEPT.format(first_row=first_row))
        batch = TableBatch(first_row, row.id, read_record(row.packed or b""))
        yield batch
        first_row += batch.rows.n_rows


def _new_record(context: RecordContext, *, n_rows: int, milliseconds: float) -> dict[str, Any]:
    check_subject(context.subject)
    record = {name: getattr(context, name) for name in CONTEXT_FIELDS}
    return {**record, "id": new_id(), "time": utc_now(), "n_rows": n_rows, "milliseconds": milliseconds}


def _stored(row: Mapping[str, Any], answer: Mapping[str, Any], attributes: Collection[str]) -> dict[str, Any]:
    """Return what is stored of a row: its attributes; of a refused one those with a text, a number, true or false."""
    if "errors" not in answer:
        return {name: row[name] for name in row if name in attributes}
    cells = row.items() if isinstance(row, Mapping) else ()
    return {name: cell for name, cell in cells if name in attributes and isinstance(cell, str | int | float | None)}


def check_subject(subject: str | None, *, pointer: str = "/subject") -> None:
    """Refuse a subject that cannot be stored.

    Raises:
        ValidationFailed: the subject is empty, too long or holds a control character.
    """
    if subject is not None and not (1 <= len(subject) <= SUBJECT_LENGTH and subject.isprintable()):
        message = f"a subject has 1 to {SUBJECT_LENGTH} printable characters"
        raise ValidationFailed([Fault(pointer, "invalid", message)])


def label_of(answer: Mapping[str, Any]) -> str:
    """Return the label of an answer as text, to count by: "" for a number, REFUSED for a row with faults."""
    if "errors" in answer:
        return REFUSED
    label = answer.get("label", "")
    return label if isinstance(label, str) else orjson.dumps(label).decode()


def decision_ids(record_id: str, n_rows: int) -> list[str]:
    """Return the ids of a record's decisions: the record's for a single row, else numbered from 0."""
    return [record_id] if n_rows == 1 else [f"{record_id}:{position}" for position in range(n_rows)]


def find(session: Session, decision_id: str) -> Decision:
    """Return the decision of this id.

    Raises:
        NotFound: there is none; also for the id of a record of many rows without the number of one.
    """
    if not re.fullmatch(DECISION_ID, decision_id):
        raise NotFound("decision", decision_id)
    record_id, _, row = decision_id.partition(":")
    found = session.execute(_records().where(DecisionRecord.id == record_id)).first()
    if found is None:
        raise NotFound("decision", decision_id)
    opened = _Opened(found)
    position = int(row) if row else None
    if (position is None) != opened.has_one_name or (position or 0) >= opened.n_rows:
        raise NotFound("decision", decision_id)
    return opened.decision(position or 0)


def list_decisions(session: Session, wanted: Filter, *, limit: int = 50, cursor: str | None = None) -> Page[Decision]:
    """Return decisions, newest request first, its rows in their order.

    A packed record is opened to see which of its rows match. To bound the work, a page may end early, even empty,
    with a cursor at which the next one goes on.

    Raises:
        ValidationFailed: the limit or the cursor is not legal.
    """
    check_page(limit=limit, cursor=cursor)
    query = _records().where(*_conditions(wanted)).order_by(DecisionRecord.id.desc()).limit(RECORDS_A_LOOK)
    seen_id, seen_position = "", -1
    if cursor is not None:
        seen_id, _, row = cursor.partition(":")
        seen_position = int(row or 0)
        query = query.where(DecisionRecord.id <= seen_id)
    items: list[Decision] = []
    last_seen, n_records, n_looked_at = cursor, 0, 0
    # Closed here: what is left of a result is held by the server otherwise.
    with closing(session.execute(query.execution_options(yield_per=RECORDS_AT_ONCE))) as records:
        for opened in map(_Opened, records):
            n_records, n_looked_at = n_records + 1, n_looked_at + opened.n_rows
            first = seen_position + 1 if opened.id == seen_id else 0
            for position in opened.matching(wanted, first=first):
                if len(items) == limit:
                    return Page(items=tuple(items), next=last_seen)
                items.append(opened.decision(position))
                last_seen = f"{opened.id}:{position}"
            last_seen = f"{opened.id}:{opened.n_rows - 1}"
            if n_looked_at >= ROWS_A_LOOK:
                return Page(items=tuple(items), next=last_seen)
    return Page(items=tuple(items), next=last_seen if n_records == RECORDS_A_LOOK else None)


def _records() -> Any:
    return (
        select(DecisionRecord, Version.number, ModelName.name)
        .join(Version, DecisionRecord.version_id == Version.id)
        .join(ModelName, Version.model_id == ModelName.id)
    )


def _conditions(wanted: Filter) -> Iterator[Any]:
    packed = DecisionRecord.n_rows > 1
    if wanted.model is not None:
        yield ModelName.name == wanted.model
    if wanted.models is not None:
        yield ModelName.name.in_(wanted.models)
    if wanted.version is not None:
        yield Version.number == wanted.version
    if wanted.subject is not None:
        yield DecisionRecord.subject == wanted.subject
    if wanted.from_time is not None:
        yield DecisionRecord.time >= wanted.from_time
    if wanted.to_time is not None:
        yield DecisionRecord.time < wanted.to_time
    if wanted.label is not None:
        yield or_(packed, DecisionRecord.label.in_(_label_texts(wanted.label)))
    if wanted.leaf is not None:
        yield or_(packed, DecisionRecord.leaf == wanted.leaf)


def _label_texts(label: str) -> tuple[str, str]:
    """A label in a query is text; in the log it is JSON: `3` may mean the number or the text."""
    return orjson.dumps(label).decode(), label


class _Opened:
    """A record with its model's name and its version's number; of a table only what is needed is read."""

    def __init__(self, found: Any) -> None:
        self.logged: DecisionRecord = found.DecisionRecord
        self.id, self.n_rows = self.logged.id, self.logged.n_rows
        self.has_one_name = self.logged.answers is not None and self.n_rows == 1
        self._name, self._number = found.name, found.number
        self._first, self._rows = 0, None  # type: tuple[int, TableRecord | None]

    def matching(self, wanted: Filter, *, first: int) -> Iterator[int]:
        """Yield the positions of the rows from `first` on that match the filter."""
        labels = None if wanted.label is None else _label_texts(wanted.label)
        if wanted.leaf is None and labels is None:
            yield from range(first, self.n_rows)
        elif self._answers is None:
            fits = np.ones(self.n_rows, np.bool_)
            if wanted.leaf is not None:
                fits &= self._shared_answers.leaves == wanted.leaf
            if labels is not None:
                fits &= np.isin(self._shared_answers.labels(), labels)
            yield from (first + np.flatnonzero(fits[first:])).tolist()
        else:
            for position in range(first, self.n_rows):
                answer = self._answers[position]
                if wanted.leaf is not None and answer.get("leaf") != wanted.leaf:
                    continue
                if labels is not None and orjson.dumps(answer.get("label")).decode() not in labels:
                    continue
                yield position

    def decision(self, position: int) -> Decision:
        """Return the decision on one row."""
        logged, row = self.logged, self._row(position)
        return Decision(
            id=self.id if self.has_one_name else f"{self.id}:{position}",
            model_name=self._name,
            version=self._number,
            version_id=logged.version_id,
            document_sha256=logged.document_sha256,
            alias=logged.alias,
            time=logged.time,
            input=row.input,
            missing=logged.missing,
            answer=row.answer,
            nodes=row.nodes,
            subject=logged.subject,
            key_id=logged.key_id,
            milliseconds=logged.milliseconds,
            masked=tuple(logged.masked or ()),
            erased=logged.erased,
            operating_point=logged.operating_point,
        )

    def _row(self, position: int) -> AnsweredRow:
        logged = self.logged
        if logged.inputs is None or logged.answers is None or logged.nodes is None:
            first = position - position % ROWS_READ
            if first != self._first or self._rows is None:
                stop = min(first + ROWS_READ, self.n_rows)
                self._first, self._rows = first, read_record(logged.packed or b"", start=first, stop=stop)
            return self._rows.row(position - first)
        return AnsweredRow(logged.inputs[position], logged.answers[position], tuple(logged.nodes[position]))

    @property
    def _answers(self) -> list[dict[str, Any]] | None:
        return self.logged.answers

    @cached_property
    def _shared_answers(self) -> TableRecord:
        return read_record(self.logged.packed or b"", inputs=False)
