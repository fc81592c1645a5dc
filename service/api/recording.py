"""The answers to a request go into the decision log before they go to the caller; then they are counted."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.api.context import Service
from service.repositories import decisions
from service.repositories.models import LoadedVersion
from service.usecases.predictions import PredictionResults
from service.usecases.version_resolver import ResolvedVersion


@dataclass(frozen=True, slots=True)
class Record:
    """The answers to one request, on their way into the log.

    Attributes:
        entry: As `decisions.row_record` makes it.
        version: That answered.
        labels: Of each answer, as it is counted.
    """

    entry: Mapping[str, Any]
    version: LoadedVersion
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class PredictionContext:
    """A request for predictions, whatever its body looks like.

    Attributes:
        service: The process that answers.
        find: Finds what is to answer; raises `NotFound` and `Conflict`.
        key_id: Of the key that asks.
        began: `time.perf_counter()` when the request arrived.
    """

    service: Service
    find: Callable[[], ResolvedVersion]
    key_id: str | None
    began: float


def record_answers(
    inquiry: PredictionContext,
    answering: ResolvedVersion,
    rows: Sequence[Mapping[str, Any]],
    answered: PredictionResults,
    *,
    missing: str | None = None,
    subject: str | None = None,
) -> list[str]:
    """Log the answers to `rows` as the caller's, commit, and give their decision ids (empty: nothing is logged).

    Args:
        inquiry: Who asked, and who keeps the record.
        answering: What answered.
        rows: As they were given.
        answered: The answers and the nodes that each row visited.
        missing: The strategy for missing values that was asked for.
        subject: Whom the decisions are about.
    """
    entry = decisions.row_record(
        version=answering.version,
        inputs=rows,
        answers=answered.answers,
        nodes=answered.nodes,
        milliseconds=(time.perf_counter() - inquiry.began) * 1000,
        missing=missing,
        subject=subject,
        alias=answering.alias,
        key_id=inquiry.key_id,
        mask=answering.settings.mask,
        operating_point=answering.settings.operating_point,
    )
    record = Record(entry, answering.version, [decisions.label_of(answer) for answer in answered.answers])
    keep(inquiry.service, record)
    if inquiry.service.settings.decisions == "off":
        return [""] * len(rows)
    return decisions.decision_ids(entry["id"], entry["n_rows"])


def keep(service: Service, record: Record) -> None:
    """Log a record as the settings say, and count its answers.

    Raises:
        As `DecisionLog.append`.
    """
    waiting_since = time.perf_counter()
    if service.settings.decisions == "durable":
        service.log.append(record.entry)
    elif service.settings.decisions == "best_effort":
        service.log.submit(record.entry)
    _count(service, record, time.perf_counter() - waiting_since)


def _count(service: Service, record: Record, seconds: float) -> None:
    if service.settings.metrics == "on":
        service.metrics.commit(seconds, n_waiting=service.log.n_waiting)
        count = service.counting(record.version)
        for label in record.labels:
            count(label, 1)
