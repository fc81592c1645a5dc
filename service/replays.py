"""A decision explained again: from the version that made it, and compared with what was answered then.

What was not kept, or was erased, cannot be answered again: such a decision is shown as it was logged, its way by the
numbers of its nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

import espalier
from service.catalog import LoadedVersion
from service.decisions import ANSWER_FIELDS, Decision
from service.operating import at_point

__all__ = ["Replay", "as_logged", "replay"]


@dataclass(frozen=True, slots=True)
class Replay:
    """A decision explained again.

    Attributes:
        explanation: The answer with what led to it; None where values that it was made of are not there, or not taken.
        verified: Is it the answer that was given, by the document that gave it? None where that cannot be known.
        erased: The attributes whose values are not there.
        reason: Why it cannot be known.
    """

    explanation: espalier.Explanation | None
    verified: bool | None
    erased: tuple[str, ...] = ()
    reason: str | None = None


def replay(version: LoadedVersion, decision: Decision, *, detail: str = "path") -> Replay:
    """Answer the logged input again with the version that answered it, and compare document, answer and path."""
    if decision.erased is not None:
        names = tuple(attribute.name for attribute in version.model.schema.attributes)
        return Replay(None, None, names, f"the inputs were erased on {decision.erased:%Y-%m-%d %H:%M:%S} UTC")
    if decision.masked:
        return Replay(None, None, decision.masked, "the model's mask keeps some inputs out of the log")
    model = at_point(version.model, decision.operating_point)
    try:
        [explanation] = espalier.explain(model, [decision.input], detail=detail, missing=decision.missing)
    except espalier.RowError:  # what may stand in a row was less strict once
        return Replay(None, None, (), "the row was answered then, and would be refused now")
    again = orjson.loads(orjson.dumps(explanation.to_dict(), option=orjson.OPT_NON_STR_KEYS))
    verified = (
        version.document_sha256 == decision.document_sha256
        and explanation.prediction.nodes == decision.nodes
        and {name: again[name] for name in ANSWER_FIELDS if name in again} == decision.answer
    )
    return Replay(explanation, verified)


def as_logged(model: espalier.Model, decision: Decision, reason: str) -> espalier.Explanation:
    """Give what is known of a decision without its inputs as an explanation to be drawn: a way without values."""
    answer: Mapping[str, Any] = decision.answer
    known = espalier.leaf_prediction(model, answer["leaf"])
    shares = answer["distribution"].values() if model.schema.classes else ()
    prediction = known._replace(
        label=answer.get("label"),
        value=answer.get("value"),
        distribution=tuple(zip(model.schema.classes, shares, strict=True)),
    )
    way = ", ".join(map(str, decision.nodes))
    return espalier.Explanation(prediction=prediction, paths=((),), conditions=(), rule=f"nodes {way}; {reason}")
