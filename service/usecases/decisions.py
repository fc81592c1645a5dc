"""Replay and explain logged decisions, find counterfactuals, consult a version, and erase inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
from sqlalchemy import select, update
from sqlalchemy.orm import undefer

import espalier
from espalier import Fault
from service.database import sqlite
from service.database.clock import utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import DecisionRecord
from service.errors import Conflict, ValidationFailed, translate_config_errors
from service.repositories.decisions import ANSWER_FIELDS, Decision, check_subject
from service.repositories.model_cache import LoadedVersion
from service.serialization.table_records import NO_INPUTS, read_record
from service.usecases.version_resolver import model_at_point

RECORDS_AT_ONCE = 20  # records that `erase` reads in one transaction: some are large
ERASED = {"pointer": "", "message": "erased with the inputs"}  # replaces these members of a fault; its code stays


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay; `verified` says whether it agrees with the log.

    If the decision cannot be replayed, `explanation` and `verified` are None, and `reason` says why.
    """

    explanation: espalier.Explanation | None
    verified: bool | None
    erased: tuple[str, ...] = ()  # attributes whose values are not stored
    reason: str | None = None


def replay(version: LoadedVersion, decision: Decision) -> Replay:
    """Predict the input of a decision again with its version, and compare document, answer and path with the log.

    The row must have been answered. It cannot be replayed if part of its input is not stored, or would be refused now.
    """
    if decision.erased is not None:
        names = tuple(attribute.name for attribute in version.model.schema.attributes)
        return Replay(None, None, names, f"the inputs were erased on {decision.erased:%Y-%m-%d %H:%M:%S} UTC")
    if decision.masked:
        return Replay(None, None, decision.masked, "some inputs are not logged (the model's mask)")
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
    """Return the logged answer as an explanation, without a replay; its rule has only the node ids and `reason`."""
    known = espalier.leaf_prediction(model, decision.answer["leaf"])
    shares = decision.answer["distribution"].values() if model.schema.classes else ()
    prediction = known._replace(
        label=decision.answer.get("label"),
        value=decision.answer.get("value"),
        distribution=tuple(zip(model.schema.classes, shares, strict=True)),
    )
    path = ", ".join(map(str, decision.nodes))
    return espalier.Explanation(prediction=prediction, paths=((),), conditions=(), rule=f"nodes {path}; {reason}")


def counterfactuals(version: LoadedVersion, decision: Decision, wanted: Mapping[str, Any]) -> espalier.Counterfactuals:
    """Return the smallest changes of the decision's row for which the version gives another answer.

    `wanted`: further keyword arguments of `espalier.counterfactuals`. Raises `Conflict` without an answer or inputs.
    """
    if decision.leaf is None:
        raise Conflict(f"decision {decision.id} is a row that was refused: it has no answer to change")
    if decision.erased is not None:
        raise Conflict(f"the inputs of decision {decision.id} were erased: there are no values to change")
    if decision.masked:
        names = ", ".join(map(repr, decision.masked))
        raise Conflict(f"inputs of decision {decision.id} are not logged (the model's mask): {names}")
    with translate_config_errors():
        model = model_at_point(version.model, decision.operating_point)
        return espalier.counterfactuals(model, decision.input, missing=decision.missing, **wanted)


def consult(version: LoadedVersion, known: Mapping[str, Any], *, missing: str | None) -> espalier.Consultation:
    """Return the next attribute to obtain, or the answer if `known` makes it certain. Raises `ValidationFailed`."""
    try:
        with translate_config_errors():
            return espalier.consult(version.model, known, missing=missing)
    except espalier.RowError as error:
        raise ValidationFailed([Fault(f"/known{one.path}", one.code, one.message) for one in error.faults]) from None


def erase(source: Sessions, subject: str) -> dict[str, int]:
    """Erase the inputs of all decisions about a subject; return the numbers of erased records and decisions.

    The records keep their answers and node ids; faults of refused rows keep only their codes. Each transaction erases
    at most `RECORDS_AT_ONCE` records: after a failure, call again to continue.
    """
    check_subject(subject)
    n_records = n_decisions = 0
    while True:
        with transaction(source) as session:
            pending = DecisionRecord.subject == subject, DecisionRecord.erased.is_(None)
            query = select(DecisionRecord).where(*pending).order_by(DecisionRecord.id).limit(RECORDS_AT_ONCE)
            records = session.scalars(query.options(undefer(DecisionRecord.packed)).with_for_update()).all()
            for record in records:
                erase = update(DecisionRecord).where(DecisionRecord.id == record.id)
                session.execute(erase.values(erased=utc_now(), **_erased_values(record)))
        n_records += len(records)
        n_decisions += sum(record.n_rows for record in records)
        if len(records) < RECORDS_AT_ONCE:
            if source.engine.dialect.name == "sqlite":
                sqlite.empty_log(source.engine)
            return {"n_records": n_records, "n_decisions": n_decisions}


def _erased_values(record: DecisionRecord) -> Mapping[str, Any]:
    """Return a record's columns without inputs, and without faults' messages and pointers, which may repeat inputs."""
    if record.packed is not None:
        return {"packed": replace(read_record(record.packed), inputs=NO_INPUTS).to_bytes(with_rules=True)}
    answers = [
        {"errors": [{**ERASED, "code": fault["code"]} for fault in answer["errors"]]} if "errors" in answer else answer
        for answer in record.answers or ()
    ]
    return {"inputs": [{} for _ in answers], "answers": answers}
