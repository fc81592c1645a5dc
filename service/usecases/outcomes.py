"""Record the outcomes of decisions, and measure the accuracy of versions by them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

import espalier
from service.database.clock import utc_now
from service.database.tables import Outcome
from service.errors import Conflict, ValidationFailed
from service.repositories import models
from service.repositories.decisions import Decision
from service.repositories.model_cache import ModelCache
from service.serialization.table_records import label_json

MAX_SHOWN_CLASSES = 20


def record_outcome(
    session: Session, decision: Decision, schema: espalier.Schema, given: Mapping[str, Any], *, key_id: str | None
) -> Outcome:
    """Store the true ``label`` (for a regression: ``value``) of a decision, or replace the stored one.

    Raises `Conflict` if the row was refused, and `ValidationFailed` if `given` does not fit the schema.
    """
    if decision.leaf is None:
        raise Conflict(f"decision {decision.id} is a row that was refused: it has no answer")
    _check(schema, given)
    if schema.classes:
        pair = {"label": label_json(given["label"]), "answered_label": label_json(decision.answer["label"])}
    else:
        pair = {"value": given["value"], "answered_value": decision.answer["value"]}
    record_id, _, position = decision.id.partition(":")
    row = Outcome(record_id=record_id, position=int(position or 0), version_id=decision.version_id, **pair)
    row.at, row.key_id = utc_now(), key_id
    return session.merge(row)


def is_right(outcome: Outcome) -> bool | None:
    """Return whether the answer was the true class; None for a regression."""
    return None if outcome.label is None else outcome.label == outcome.answered_label


def version_accuracy(session: Session, cache: ModelCache, name: str, number: int) -> dict[str, Any]:
    """Return the accuracy of a version (for a regression: its errors) over the decisions with an outcome."""
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


def _check(schema: espalier.Schema, given: Mapping[str, Any]) -> None:
    if not schema.classes:
        if "label" in given:
            raise ValidationFailed.of("/label", "not_legal", "the model answers with a number: give its value")
        if type(given.get("value")) not in (int, float):
            raise ValidationFailed.of("/value", "wrong_type", "the model answers with a number: give the true one")
        return
    if "value" in given:
        raise ValidationFailed.of("/value", "not_legal", "the model answers with a class: give its label")
    if "label" not in given or label_json(given["label"]) not in map(label_json, schema.classes):
        legal = ", ".join(map(espalier.label_text, schema.classes[:MAX_SHOWN_CLASSES]))
        rest = ", …" if len(schema.classes) > MAX_SHOWN_CLASSES else ""
        raise ValidationFailed.of("/label", "unknown_value", f"must be one of the model's classes: {legal}{rest}")
