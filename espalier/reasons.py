"""Sufficient reasons: attributes whose values alone force an answer, whatever the others are, missing or not.

A reason meets every barrier (`espalier.barriers`) of a row, and is minimal if none of its attributes can be left out;
one is found by leaving out one after another (Izza, Ignatiev and Marques-Silva 2022, *On tackling explanation
redundancy in decision trees*). A tree can have exponentially many, and to find the smallest is NP-hard; here are some.

Where several leaves answer together, or a surrogate decides, the same question is one about a sum of trees, which is
coNP-hard. There a bound decides, the least margin of the answer: the set that is found forces the answer, but a smaller
one may do as well, and it says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from espalier.answers import Prediction, answer_word
from espalier.barriers import Barriers
from espalier.flow import Flow
from espalier.margins import Margins
from espalier.model import Model
from espalier.prediction import Router
from espalier.rules import Condition, condition_text, number_text, one_line
from espalier.schema import Feature, Label
from espalier.steps import shown_value

__all__ = ["MOST_REASONS", "SufficientReason", "sufficient_reasons"]

MOST_REASONS: Final = 5
MOST_CELLS: Final = 200_000_000
"""Nodes times classes times attributes up to which the bound is looked at: some seconds."""


@dataclass(frozen=True, slots=True)
class SufficientReason:
    """Attributes that force the answer by the values that they have, whatever the others are, missing or not.

    Attributes:
        attributes: In the order in which they are asked; of those that are not on the way, in the schema's order.
        values: The row's own, or None where it is missing.
        minimal: Whether each of them is needed; else there may be fewer that do.
        text: As a sentence.
    """

    attributes: tuple[Feature, ...]
    values: tuple[Label | None, ...]
    minimal: bool
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Give the JSON form."""
        names = (feature.name for feature in self.attributes)
        return {
            "attributes": dict(zip(names, self.values, strict=True)),
            "minimal": self.minimal,
            "text": self.text,
        }


def sufficient_reasons(
    model: Model, way: Router, flow: Flow, prediction: Prediction, *, asked: Sequence[int]
) -> tuple[SufficientReason, ...]:
    """Give up to `MOST_REASONS` reasons, the one within the attributes that were asked for first, then by size.

    Args:
        model: A tree.
        way: Its router.
        flow: Where the row goes.
        prediction: What it is answered. Of a regression, a reason forces the very same number.
        asked: Attributes that were looked at on the way, in that order, surrogates included.
    """
    if prediction.n_visits > 1 or flow.stand_ins:
        found = _by_margin(model, way, flow, prediction, asked)
        return (_reason(model, prediction, found, is_minimal=False),)
    barriers = Barriers(model, way, flow, prediction)
    sets = _meeting(barriers, asked)
    if not sets:
        return (_reason(model, prediction, asked, is_minimal=False),)
    return tuple(_reason(model, prediction, each, is_minimal=barriers.need_all(each)) for each in sets)


def _meeting(barriers: Barriers, asked: Sequence[int]) -> list[tuple[int, ...]]:
    """Give sets that meet every barrier: one within `asked` (and terms), then sets without one or other of its members.

    There is none where the very leaf that answers is a barrier: its shares speak for another class.
    """
    order = list(dict.fromkeys([*asked, *barriers.attributes]))
    first = barriers.least(order)
    if first is None:
        return []
    others = (barriers.least([place for place in order if place != member]) for member in first)
    found = dict.fromkeys(each for each in others if each is not None)
    return [first, *sorted(found, key=len)[: MOST_REASONS - 1]]


def _reason(model: Model, prediction: Prediction, places: Sequence[int], *, is_minimal: bool) -> SufficientReason:
    features = tuple(model.schema.attributes[place] for place in places)
    lacking = {*prediction.row.missing, *prediction.row.unseen}
    values = tuple(
        None if feature.name in lacking else shown_value(feature, prediction.row.values[place])
        for feature, place in zip(features, places, strict=True)
    )
    conditions = [_equal_text(feature, value) for feature, value in zip(features, values, strict=True)]
    word = answer_word(prediction)
    text = f"if {' and '.join(conditions)} then {word}" if conditions else f"always {word}"
    return SufficientReason(features, values, is_minimal, text)


def _equal_text(feature: Feature, value: Label | None) -> str:
    if value is None:
        return condition_text(Condition(feature, known=False))
    if feature.coded:
        return condition_text(Condition(feature, categories=(value,)))
    return f"{one_line(feature.name)} = {number_text(value) if isinstance(value, float) else value}"


def _by_margin(model: Model, way: Router, flow: Flow, prediction: Prediction, asked: Sequence[int]) -> tuple[int, ...]:
    """Leave out what is not needed for the margins to hold, the last asked first; all is kept where they never do."""
    answer = float(prediction.code) if prediction.value is None else prediction.value
    margins = Margins(model, way, flow, answer=answer)
    kept = list(asked)
    n_cells = model.tree.n_nodes * max(2, len(way.classes)) * len(kept)
    # At an operating point the largest share does not decide: what was looked at forces the answer, less is not tried.
    if model.operating_point is not None or n_cells > MOST_CELLS or not margins.hold(kept):
        return tuple(kept)
    for place in reversed(asked):
        rest = [other for other in kept if other != place]
        if margins.hold(rest):
            kept = rest
    return tuple(kept)
