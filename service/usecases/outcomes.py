"""Outcomes of decisions, and the accuracy of a version by them."""

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

import espalier
from service.database.clock import utc_now
from service.database.tables import Outcome
from service.errors import Conflict, ValidationFailed
from service.repositories import decisions, models
from service.repositories.model_cache import ModelCache
from service.serialization.table_records import label_json

MISSING = object()  # for a member that was not given
MAX_SHOWN_CLASSES = 20


def record(
    session: Session,
    decision: decisions.Decision,
    schema: espalier.Schema,
    *,
    label: object = MISSING,
    value: object = MISSING,
    key_id: str | None = None,
) -> Outcome:
    """Store the outcome of a decision, a label or the value of a regression; it replaces an earlier one."""
    if decision.leaf is None:
        raise Conflict(f"decision {decision.id} is a row that was refused: it has no answer")
    _check(schema, label, value)
    record_id, _, position = decision.id.partition(":")
    answer = decision.answer
    row = Outcome(
        record_id=record_id,
        position=int(position or 0),
        version_id=decision.version_id,
        label=label_json(label) if schema.classes else None,
        answered_label=label_json(answer["label"]) if schema.classes else None,
        value=None if schema.classes else value,
        answered_value=None if schema.classes else answer["value"],
        at=utc_now(),
        key_id=key_id,
    )
    return session.merge(row)


def is_right(outcome: Outcome) -> bool | None:
    """Return whether the answer was the true class; None for a regression."""
    return None if outcome.label is None else outcome.label == outcome.answered_label


def version_accuracy(session: Session, cache: ModelCache, name: str, number: int) -> dict[str, Any]:
    """Return the accuracy or the errors of a version, over the decisions whose outcome is known."""
    version_id = models.find_version(session, name, number).id
    schema = cache.get(session, version_id).model.schema
    figures = _confusion(session, version_id, schema) if schema.classes else _errors(session, version_id)
    return {"model": name, "version": number, **figures}


def _confusion(session: Session, version_id: str, schema: espalier.Schema) -> dict[str, Any]:
    counts = session.execute(
        select(Outcome.answered_label, Outcome.label, func.count())
        .where(Outcome.version_id == version_id)
        .group_by(Outcome.answered_label, Outcome.label)
    ).all()
    places = {label_json(label): place for place, label in enumerate(schema.classes)}
    matrix = [[0] * len(places) for _ in places]
    for answered, actual, count in counts:
        matrix[places[actual or ""]][places[answered or ""]] += count
    n_outcomes = sum(map(sum, matrix))
    right = sum(matrix[place][place] for place in range(len(places)))
    return {
        "n_outcomes": n_outcomes,
        "accuracy": right / n_outcomes if n_outcomes else None,
        "classes": list(schema.classes),
        "confusion": matrix,
    }


def _errors(session: Session, version_id: str) -> dict[str, Any]:
    error = Outcome.answered_value - Outcome.value
    n_outcomes, absolute, squared, bias = session.execute(
        select(func.count(), func.avg(func.abs(error)), func.avg(error * error), func.avg(error)).where(
            Outcome.version_id == version_id
        )
    ).one()
    rmse = None if squared is None else squared**0.5
    return {"n_outcomes": n_outcomes, "mae": absolute, "rmse": rmse, "bias": bias}


def _check(schema: espalier.Schema, label: object, value: object) -> None:
    if not schema.classes:
        if label is not MISSING:
            raise ValidationFailed.of("/label", "not_legal", "the model answers with a number: give its value")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValidationFailed.of("/value", "wrong_type", "the model answers with a number: give the true one")
        return
    if value is not MISSING:
        raise ValidationFailed.of("/value", "not_legal", "the model answers with a class: give its label")
    if label is MISSING or not any(label_json(one) == label_json(label) for one in schema.classes):
        legal = ", ".join(map(espalier.label_text, schema.classes[:MAX_SHOWN_CLASSES]))
        rest = ", …" if len(schema.classes) > MAX_SHOWN_CLASSES else ""
        raise ValidationFailed.of("/label", "unknown_value", f"must be one of the model's classes: {legal}{rest}")
