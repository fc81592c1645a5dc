"""Explain a logged decision: replay it by the version that made it, find what would change it; consult a version."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

import espalier
from espalier import Fault
from service.errors import Conflict, ValidationFailed
from service.repositories.decisions import ANSWER_FIELDS, Decision
from service.repositories.models import LoadedVersion
from service.usecases.version_resolver import model_at_point


@dataclass(frozen=True, slots=True)
class Replay:
    """A decision explained again.

    Attributes:
        explanation: The answer with its path; None if the input is not stored as a whole, or would be refused now.
        verified: Whether the same document gives the same answer; None if that cannot be known.
        erased: The attributes whose values are not stored.
        reason: Why it cannot be known.
    """

    explanation: espalier.Explanation | None
    verified: bool | None
    erased: tuple[str, ...] = ()
    reason: str | None = None


def replay(version: LoadedVersion, decision: Decision, *, detail: str = "path") -> Replay:
    """Answer the logged input again with the version that answered it, and compare document, answer and path.

    A decision whose input was not stored, or was erased, cannot be answered again.
    """
    if decision.erased is not None:
        names = tuple(attribute.name for attribute in version.model.schema.attributes)
        return Replay(None, None, names, f"the inputs were erased on {decision.erased:%Y-%m-%d %H:%M:%S} UTC")
    if decision.masked:
        return Replay(None, None, decision.masked, "the model's mask keeps some inputs out of the log")
    model = model_at_point(version.model, decision.operating_point)
    try:
        [explanation] = espalier.explain(model, [decision.input], detail=detail, missing=decision.missing)
    except espalier.RowError:  # rows were checked less strictly then
        return Replay(None, None, (), "the row was answered then, and would be refused now")
    again = orjson.loads(orjson.dumps(explanation.to_dict(), option=orjson.OPT_NON_STR_KEYS))
    verified = (
        version.document_sha256 == decision.document_sha256
        and explanation.prediction.nodes == decision.nodes
        and {name: again[name] for name in ANSWER_FIELDS if name in again} == decision.answer
    )
    return Replay(explanation, verified)


def as_logged(model: espalier.Model, decision: Decision, reason: str) -> espalier.Explanation:
    """Return what is known of a decision without its inputs as an explanation to draw: a path without values."""
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

    Args:
        version: The version.
        decision: The decision; its strategy for missing values is used.
        wanted: The keyword arguments of `espalier.counterfactuals`.

    Raises:
        Conflict: The row was refused, or its values are not there any more.
        ValidationFailed: `wanted` is not legal; every fault.
        espalier.NotApplicable: The leaves are linear models.
    """
    if decision.leaf is None:
        raise Conflict(
            f"decision {decision.id} is a row that was refused: there is no answer that could be another one"
        )
    if decision.erased is not None:
        raise Conflict(f"the inputs of decision {decision.id} were erased: nothing can be said of other values")
    if decision.masked:
        names = ", ".join(map(repr, decision.masked))
        raise Conflict(f"the model's mask kept inputs of decision {decision.id} out of the log: {names}")
    with _config_refused():
        model = model_at_point(version.model, decision.operating_point)
        return espalier.counterfactuals(model, decision.input, missing=decision.missing, **wanted)


def consult(version: LoadedVersion, known: Mapping[str, Any], *, missing: str | None) -> espalier.Consultation:
    """Return the attribute to find out next, or the answer.

    Raises:
        ValidationFailed: The known values cannot be read, or the model cannot handle missing values in this way.
    """
    try:
        with _config_refused():
            return espalier.consult(version.model, known, missing=missing)
    except espalier.RowError as error:
        raise ValidationFailed([Fault(f"/known{one.path}", one.code, one.message) for one in error.faults]) from None


@contextmanager
def _config_refused() -> Iterator[None]:
    try:
        yield
    except espalier.ConfigError as error:
        raise ValidationFailed(error.faults) from None
