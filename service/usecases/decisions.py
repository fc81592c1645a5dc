"""Explain a logged decision by replaying it, find counterfactuals, consult a version, erase inputs, record outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, undefer

import espalier
from espalier import Fault
from service.database.clock import utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import DecisionRecord, Outcome
from service.errors import Conflict, ValidationFailed, translate_config_errors
from service.repositories import models
from service.repositories.decisions import ANSWER_FIELDS, Decision, check_subject
from service.repositories.model_cache import LoadedVersion, ModelCache
from service.serialization.table_records import NO_INPUTS, label_json, read_record
from service.usecases.version_resolver import model_at_point

RECORDS_AT_ONCE = 20  # in one transaction: some are large
FAULT = {"pointer": "", "message": "erased with the inputs"}


@dataclass(frozen=True, slots=True)
class Replay:
    """A decision explained again; if it cannot be replayed, `verified` is None, and `reason` says why."""

    explanation: espalier.Explanation | None
    verified: bool | None
    erased: tuple[str, ...] = ()
    reason: str | None = None


def replay(version: LoadedVersion, decision: Decision) -> Replay:
    """Answer the logged input again with its version, and compare document, answer and path.

    A decision whose input is not stored as a whole cannot be replayed.
    """
    if decision.erased is not None:
        names = tuple(attribute.name for attribute in version.model.schema.attributes)
        return Replay(None, None, names, f"the inputs were erased on {decision.erased:%Y-%m-%d %H:%M:%S} UTC")
    if decision.masked:
        return Replay(None, None, decision.masked, "the model's mask keeps some inputs out of the log")
    model = model_at_point(version.model, decision.operating_point)
    try:
        [explanation] = espalier.explain(model, [decision.input], missing=decision.missing)
    except espalier.RowError:  # an earlier version of the service checked rows less strictly
        return Replay(None, None, (), "the row was answered then, and would be refused now")
    again = orjson.loads(orjson.dumps(explanation.to_dict(), option=orjson.OPT_NON_STR_KEYS))
    verified = (
        version.document_sha256 == decision.document_sha256
        and explanation.prediction.nodes == decision.nodes
        and {name: again[name] for name in ANSWER_FIELDS if name in again} == decision.answer
    )
    return Replay(explanation, verified)


def as_logged(model: espalier.Model, decision: Decision, reason: str) -> espalier.Explanation:
    """Return an explanation of a decision whose inputs are not stored: its answer, and the nodes of its path."""
    answer: Mapping[str, Any] = decision.answer
    known = espalier.leaf_prediction(model, answer["leaf"])
    shares = answer["distribution"].values() if model.schema.classes else ()
    prediction = known._replace(
        label=answer.get("label"),
        value=answer.get("value"),
        distribution=tuple(zip(model.schema.classes, shares, strict=True)),
    )
    path = ", ".join(map(str, decision.nodes))
    return espalier.Explanation(prediction=prediction, paths=((),), conditions=(), rule=f"nodes {path}; {reason}")


def counterfactuals(version: LoadedVersion, decision: Decision, wanted: Mapping[str, Any]) -> espalier.Counterfactuals:
    """Return the nearest changes of a logged row for which its version gives another answer.

    `wanted` has the keyword arguments of `espalier.counterfactuals`.
    """
    if decision.leaf is None:
        raise Conflict(f"decision {decision.id} is a row that was refused: it has no answer to change")
    if decision.erased is not None:
        raise Conflict(f"the inputs of decision {decision.id} were erased: there are no values to change")
    if decision.masked:
        names = ", ".join(map(repr, decision.masked))
        raise Conflict(f"the model's mask kept inputs of decision {decision.id} out of the log: {names}")
    with translate_config_errors():
        model = model_at_point(version.model, decision.operating_point)
        return espalier.counterfactuals(model, decision.input, missing=decision.missing, **wanted)


def consult(version: LoadedVersion, known: Mapping[str, Any], *, missing: str | None) -> espalier.Consultation:
    """Return the attribute to obtain next, or the answer if it is certain."""
    try:
        with translate_config_errors():
            return espalier.consult(version.model, known, missing=missing)
    except espalier.RowError as error:
        raise ValidationFailed([Fault(f"/known{one.path}", one.code, one.message) for one in error.faults]) from None


def erase(source: Sessions, subject: str) -> dict[str, int]:
    """Erase the inputs of all decisions about a subject, and return the numbers of records and decisions.

    The records stay, with answers and node ids. A few are erased in one transaction: after a failure, another call
    continues.
    """
    check_subject(subject)
    n_records, n_decisions, last = 0, 0, ""
    while True:
        with transaction(source) as session:
            pending = DecisionRecord.subject == subject, DecisionRecord.erased.is_(None), DecisionRecord.id > last
            query = select(DecisionRecord).where(*pending).order_by(DecisionRecord.id).limit(RECORDS_AT_ONCE)
            records = session.scalars(query.options(undefer(DecisionRecord.packed)).with_for_update()).all()
            for record in records:
                erase = update(DecisionRecord).where(DecisionRecord.id == record.id)
                session.execute(erase.values(erased=utc_now(), **_erased_values(record)))
        n_records += len(records)
        n_decisions += sum(record.n_rows for record in records)
        if len(records) < RECORDS_AT_ONCE:
            return {"n_records": n_records, "n_decisions": n_decisions}
        last = records[-1].id


def _erased_values(record: DecisionRecord) -> Mapping[str, Any]:
    """Return the new values of a record. Faults of a refused row keep only their codes: pointers may hold inputs."""
    if record.packed is not None:
        return {"packed": replace(read_record(record.packed), inputs=NO_INPUTS).to_bytes(with_rules=True)}
    answers = [
        {"errors": [{**FAULT, "code": fault["code"]} for fault in answer["errors"]]} if "errors" in answer else answer
        for answer in record.answers or ()
    ]
    return {"inputs": [{} for _ in answers], "answers": answers}


# --- outcomes, and the accuracy of a version by them


MAX_SHOWN_CLASSES = 20


def record_outcome(
    session: Session, decision: Decision, schema: espalier.Schema, given: Mapping[str, Any], *, key_id: str | None
) -> Outcome:
    """Store the outcome of a decision, a ``label`` or the ``value`` of a regression; it replaces an earlier one."""
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
