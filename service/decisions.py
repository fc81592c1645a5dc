"""The decision log: what was asked, what was answered, by which document, and the proof that it would be so again.

A record is one prediction request. One row makes a decision named by the record's id; of more rows the i-th (from 0)
is named "id:i". The path is not stored as prose: it is replayed from the immutable version and compared.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import insert, or_, select
from sqlalchemy.orm import Session

import espalier
from service.catalog import LoadedVersion
from service.db import new_id, utc_now
from service.errors import Fault, NotFound, Rejected
from service.paging import Page, check_page
from service.tables import DecisionRecord, ModelName, Version

ANSWER_FIELDS = ("label", "value", "std", "distribution", "confidence", "support", "leaf", "flags")
DECISION_ID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?::(0|[1-9][0-9]{0,8}))?")
SUBJECT_LENGTH = 200
RECORDS_A_LOOK = 500  # packed records that one page of the list looks through at most


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
    input: dict[str, Any]  # attributes as they were given
    missing: str  # the strategy for missing values
    answer: dict[str, Any]  # ANSWER_FIELDS, as far as the task has them
    nodes: tuple[int, ...]  # node ids, root first
    subject: str | None
    key_id: str | None  # of the key that asked; None where keys were off
    milliseconds: float  # of the whole request

    @property
    def leaf(self) -> int:
        """The node that answered."""
        return int(self.answer["leaf"])


@dataclass(frozen=True, slots=True)
class Replay:
    """A decision explained again: is it the answer that was given, by the document that gave it?"""

    explanation: espalier.Explanation
    verified: bool


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


def record(
    session: Session,
    *,
    version: LoadedVersion,
    inputs: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    nodes: Sequence[Sequence[int]],
    milliseconds: float,
    subject: str | None = None,
    alias: str | None = None,
    key_id: str | None = None,
) -> list[str]:
    """Log the answers to one request and return their decision ids; the caller commits before it answers.

    Args:
        session: a writing session.
        version: the version that answered.
        inputs: the rows as they were given; what is not an attribute is not kept.
        answers: the JSON form of each answer, with or without its path, which is not kept.
        nodes: the node ids that each row visited, root first.
        milliseconds: from the arrival of the request until now.
        subject: whom the decisions are about.
        alias: the alias by which the version was chosen.
        key_id: the key that asked.

    Raises:
        Rejected: the subject is empty, too long or holds a control character.
    """
    check_subject(subject)
    record_id = new_id()
    kept = [{name: answer[name] for name in ANSWER_FIELDS if name in answer} for answer in answers]
    single = kept[0] if len(kept) == 1 else {}
    session.execute(
        insert(DecisionRecord).values(
            id=record_id,
            version_id=version.id,
            document_sha256=version.document_sha256,
            alias=alias,
            time=utc_now(),
            n_rows=len(kept),
            inputs=[{name: row[name] for name in row if name in version.attributes} for row in inputs],
            missing=version.model.config.missing,
            answers=kept,
            nodes=[list(path) for path in nodes],
            label=orjson.dumps(single["label"]).decode() if "label" in single else None,
            leaf=single.get("leaf"),
            subject=subject,
            key_id=key_id,
            milliseconds=milliseconds,
        )
    )
    return decision_ids(record_id, len(kept))


def check_subject(subject: str | None, *, pointer: str = "/subject") -> None:
    """Refuse a subject that cannot be stored.

    Raises:
        Rejected: the subject is empty, too long or holds a control character.
    """
    if subject is not None and not (1 <= len(subject) <= SUBJECT_LENGTH and subject.isprintable()):
        message = f"a subject has 1 to {SUBJECT_LENGTH} printable characters"
        raise Rejected([Fault(pointer, "invalid", message)])


def decision_ids(record_id: str, n_rows: int) -> list[str]:
    """The ids of a record's decisions: its own for a single row, else numbered from 0."""
    return [record_id] if n_rows == 1 else [f"{record_id}:{position}" for position in range(n_rows)]


def find(session: Session, decision_id: str) -> Decision:
    """The decision of this id.

    Raises:
        NotFound: there is none; also for the id of a packed record without the number of a row.
    """
    parts = DECISION_ID.fullmatch(decision_id)
    if parts is None:
        raise NotFound("decision", decision_id)
    found = session.execute(_records().where(DecisionRecord.id == parts[1])).first()
    position = None if parts[2] is None else int(parts[2])
    if found is None or (position is None) != (found.DecisionRecord.n_rows == 1):
        raise NotFound("decision", decision_id)
    if position is not None and position >= found.DecisionRecord.n_rows:
        raise NotFound("decision", decision_id)
    return _decision(found, position or 0)


def list_decisions(session: Session, wanted: Filter, *, limit: int = 50, cursor: str | None = None) -> Page[Decision]:
    """Decisions, newest request first, its rows in their order.

    A packed record is opened to see which of its rows match. To bound the work, a page may end early, even empty,
    with a cursor at which the next one goes on.

    Raises:
        Rejected: the limit or the cursor is not legal.
    """
    check_page(limit=limit, cursor=cursor)
    query = _records().where(*_conditions(wanted)).order_by(DecisionRecord.id.desc()).limit(RECORDS_A_LOOK)
    seen_id, seen_position = "", -1
    if cursor is not None:
        seen_id, _, row = cursor.partition(":")
        seen_position = int(row or 0)
        query = query.where(DecisionRecord.id <= seen_id)
    items: list[Decision] = []
    last_seen, n_records = cursor, 0
    for found in session.execute(query):
        n_records += 1
        logged = found.DecisionRecord
        first = seen_position + 1 if logged.id == seen_id else 0
        for position in _matching(logged, wanted, first=first):
            if len(items) == limit:
                return Page(items=tuple(items), next=last_seen)
            items.append(_decision(found, position))
            last_seen = f"{logged.id}:{position}"
        last_seen = f"{logged.id}:{logged.n_rows - 1}"
    return Page(items=tuple(items), next=last_seen if n_records == RECORDS_A_LOOK else None)


def replay(version: LoadedVersion, decision: Decision, *, detail: str = "path") -> Replay:
    """Answer the logged input again with the version that answered it, and compare document, answer and path."""
    explanation = espalier.explain(version.model, [decision.input], detail=detail)[0]
    again = orjson.loads(orjson.dumps(explanation.to_dict(), option=orjson.OPT_NON_STR_KEYS))
    verified = (
        version.document_sha256 == decision.document_sha256
        and explanation.prediction.nodes == decision.nodes
        and {name: again[name] for name in ANSWER_FIELDS if name in again} == decision.answer
    )
    return Replay(explanation=explanation, verified=verified)


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


def _matching(logged: DecisionRecord, wanted: Filter, *, first: int) -> Iterator[int]:
    labels = None if wanted.label is None else _label_texts(wanted.label)
    for position in range(first, logged.n_rows):
        answer = logged.answers[position]
        if wanted.leaf is not None and answer["leaf"] != wanted.leaf:
            continue
        if labels is not None and orjson.dumps(answer.get("label")).decode() not in labels:
            continue
        yield position


def _decision(found: Any, position: int) -> Decision:
    logged: DecisionRecord = found.DecisionRecord
    return Decision(
        id=decision_ids(logged.id, logged.n_rows)[position],
        model_name=found.name,
        version=found.number,
        version_id=logged.version_id,
        document_sha256=logged.document_sha256,
        alias=logged.alias,
        time=logged.time,
        input=logged.inputs[position],
        missing=logged.missing,
        answer=logged.answers[position],
        nodes=tuple(logged.nodes[position]),
        subject=logged.subject,
        key_id=logged.key_id,
        milliseconds=logged.milliseconds,
    )
