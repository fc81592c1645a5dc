"""Record the outcomes of decisions, and measure the accuracy of versions by them."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

import espalier
from service.database.clock import utc_now
from service.database.engine import insert_latest
from service.database.tables import Outcome
from service.errors import Conflict, ValidationFailed
from service.repositories import models
from service.repositories.decisions import Decision
from service.repositories.model_cache import ModelCache
from service.serialization.table_records import label_json

MAX_VALUE: Final = 1e100  # maximum magnitude of a true value; training has the same limit for targets
MIN_SQUARED: Final = 1e-150  # a smaller error is not squared: PostgreSQL refuses a square that underflows
OUTCOMES: Final = Outcome.metadata.tables[Outcome.__tablename__]


def record_outcome(
    session: Session, decision: Decision, schema: espalier.Schema, given: Mapping[str, Any], *, key_id: str | None
) -> Outcome:
    """Store the true ``label`` (for a regression: ``value``) of a decision, or replace the stored outcome.

    Raises `Conflict` if the row was refused, and `ValidationFailed` if `given` does not fit the schema.
    """
    if decision.leaf is None:
        raise Conflict(f"decision {decision.id} is a row that was refused: it has no answer")
    code = _check(schema, given)
    if code is not None:
        pair = {"label": label_json(schema.classes[code]), "answered_label": label_json(decision.answer["label"])}
    else:
        pair = {"value": given["value"], "answered_value": decision.answer["value"]}
    record_id, _, position = decision.id.partition(":")
    place = {"record_id": record_id, "position": int(position or 0), "version_id": decision.version_id}
    row = {**place, **pair, "at": utc_now(), "key_id": key_id}
    session.execute(insert_latest(session.get_bind().dialect.name, OUTCOMES), row)
    return Outcome(**row)


def is_right(outcome: Outcome) -> bool | None:
    """Return whether the answer was the true class; None for a regression."""
    return None if outcome.label is None else outcome.label == outcome.answered_label


def version_accuracy(session: Session, cache: ModelCache, name: str, number: int) -> dict[str, Any]:
    """Return the accuracy of a version (for a regression: its mean errors) over all its outcomes."""
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
    n_outcomes = sum(count for _, _, count in counts)
    right = sum(count for answered, actual, count in counts if answered == actual)
    figures = {
        "n_outcomes": n_outcomes,
        "accuracy": right / n_outcomes if n_outcomes else None,
        "classes": list(schema.classes),
    }
    if len(schema.classes) > espalier.MAX_CONFUSION_CLASSES:
        return figures
    places = {label_json(label): place for place, label in enumerate(schema.classes)}
    matrix = [[0] * len(places) for _ in places]
    for answered, actual, count in counts:
        matrix[places[actual or ""]][places[answered or ""]] = count
    return {**figures, "confusion": matrix}


def _errors(session: Session, version_id: str) -> dict[str, Any]:
    error = Outcome.answered_value - Outcome.value
    square = case((func.abs(error) > MIN_SQUARED, error * error), else_=0.0)
    # The squares are summed, not averaged: PostgreSQL's avg squares its arguments again, which may overflow.
    figures = select(func.count(), func.avg(func.abs(error)), func.sum(square), func.avg(error))
    n_outcomes, absolute, squares, bias = session.execute(figures.where(Outcome.version_id == version_id)).one()
    rmse = (squares / n_outcomes) ** 0.5 if n_outcomes else None
    return {"n_outcomes": n_outcomes, "mae": absolute, "rmse": rmse, "bias": bias}


def _check(schema: espalier.Schema, given: Mapping[str, Any]) -> int | None:
    """Return the code of the given label, or None for a regression; raise `ValidationFailed` if `given` is wrong."""
    if not schema.classes:
        if "label" in given:
            raise ValidationFailed.of("/label", "not_legal", "the model answers with a number: give its value")
        if type(given.get("value")) not in (int, float):
            raise ValidationFailed.of("/value", "wrong_type", "the model answers with a number: give the true one")
        if not abs(given["value"]) <= MAX_VALUE:
            raise ValidationFailed.of("/value", "too_large", f"must be between ±{MAX_VALUE:g}")
        return None
    if "value" in given:
        raise ValidationFailed.of("/value", "not_legal", "the model answers with a class: give its label")
    code = espalier.class_code(schema.classes, given.get("label"))
    if code is None:
        raise ValidationFailed.of("/label", "unknown_value", espalier.legal_classes(schema.classes))
    return code
