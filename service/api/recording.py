"""The answers to one request go into the decision log before they go to the caller."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from service import decisions, usecases
from service.answering import Answering
from service.api.context import Service

__all__ = ["record_answers"]


def record_answers(
    service: Service,
    answering: Answering,
    rows: Sequence[Mapping[str, Any]],
    answered: usecases.Answered,
    *,
    key_id: str | None,
    began: float,
    missing: str | None = None,
    subject: str | None = None,
) -> list[str]:
    """Log the answers to `rows` as the caller's, commit, and give their decision ids (empty: nothing is logged).

    Args:
        service: The process that answers.
        answering: What answered.
        rows: As they were given.
        answered: The answers and the nodes that each row visited.
        key_id: Of the key that asks.
        began: `time.perf_counter()` when the request arrived.
        missing: The strategy for missing values that was asked for.
        subject: Whom the decisions are about.
    """
    entry = decisions.new_entry(
        version=answering.version,
        inputs=rows,
        answers=answered.answers,
        nodes=answered.nodes,
        milliseconds=(time.perf_counter() - began) * 1000,
        missing=missing,
        subject=subject,
        alias=answering.alias,
        key_id=key_id,
        policy=answering.policy,
    )
    waiting_since = time.perf_counter()
    if service.settings.decisions == "durable":
        service.log.append(entry)
    elif service.settings.decisions == "best_effort":
        service.spool.put(entry)
    if service.settings.metrics == "on":
        service.metrics.commit(time.perf_counter() - waiting_since, n_waiting=service.log.n_waiting)
        count = service.counting(answering.version)
        for answer in answered.answers:
            count(decisions.label_of(answer), 1)
    if service.settings.decisions == "off":
        return [""] * len(rows)
    return decisions.decision_ids(entry["id"], entry["n_rows"])
