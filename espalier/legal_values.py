"""What an attribute's value may be changed to, and how far that is: the nearest legal value in a part of its range.

Distances: of numbers and dates the difference divided by the attribute's span (Gower 1971, *A general coefficient of
similarity*), of ordinals the steps between them divided by all steps there are, of nominals and booleans 1. A value
that was missing, and is given, is as far as a nominal change: 1.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.model import Model
from espalier.preparation import Scale
from espalier.rules import RuleList
from espalier.scales import LARGEST_SPAN
from espalier.schema import EARLIEST_INSTANT, LATEST_INSTANT, Feature, FeatureKind, Label, instant_text, parse_instant
from espalier.steps import shown_value
from espalier.tree import NUMERIC

__all__ = ["EVERYTHING", "MARGIN", "Box", "Legal", "legal_values"]

MARGIN: Final = 1e-6
"""Above a threshold a number without steps goes on by at most this part of its span, to as few digits as will do."""
LARGEST_EXACT: Final = 2.0**53
LARGEST: Final = sys.float_info.max
MICROSECOND: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Box:
    """Some values of one attribute.

    Attributes:
        above: Numbers are greater than this, and `at_most` at most that.
        at_most: See `above`.
        codes: Of an attribute of categories, bit c stands for the category of code c; all bits for all of them.
    """

    above: float = -math.inf
    at_most: float = math.inf
    codes: int = -1

    def within(self, other: "Box") -> "Box":
        """Give what both have."""
        return Box(max(self.above, other.above), min(self.at_most, other.at_most), self.codes & other.codes)


EVERYTHING: Final = Box()


@dataclass(frozen=True, slots=True)
class Legal:
    """The values of one attribute as seen from a row.

    Attributes:
        feature: The attribute.
        own: What the row comes to the model with, encoded; NaN or a negative code without a value.
        given: Whether the row has a value of its own: it is neither missing nor never seen in training.
        scale: By what numbers and dates are measured; its step is that of the legal values.
    """

    feature: Feature
    own: float
    given: bool
    scale: Scale

    def distance(self, value: float) -> float:
        """Give how far a known value is from the row's own."""
        if not self.given:
            return 1.0
        if self.feature.unordered:
            return float(value != self.own)
        if self.feature.coded:
            return abs(value - self.own) / max(1, len(self.feature.categories) - 1)
        # Halves: the difference of two numbers may be too large for a number.
        return min(abs(value / 2 - self.own / 2) / (self.scale.span / 2), LARGEST)

    def nearest(self, box: Box) -> float | None:
        """Give the legal value in the box that is nearest to the row's own, or to the middle; None where none is."""
        if self.feature.coded:
            return self._nearest_code(box.codes & (1 << len(self.feature.categories)) - 1)
        first, last = self._first(box), self._last(box)
        if first is None or last is None or first > last:
            return None
        goal = (
            self.own
            if math.isfinite(self.own)
            else self._first(Box(above=math.nextafter(self.scale.middle, -math.inf)))
        )
        return first if goal is None else min(max(goal, first), last)

    def label(self, value: float) -> Label:
        """Give a legal value as it stands in a row: a whole number where all of the training were."""
        shown = shown_value(self.feature, value)
        if isinstance(shown, float) and not self.feature.coded and self.scale.step and abs(shown) <= LARGEST_EXACT:
            return int(shown) if shown.is_integer() else shown
        return shown

    def _nearest_code(self, codes: int) -> float | None:
        if not codes:
            return None
        n_categories = len(self.feature.categories)
        if self.feature.unordered:
            keeps = self.own >= 0 and codes >> int(self.own) & 1
            return self.own if keeps else float((codes & -codes).bit_length() - 1)
        goal = int(self.own) if self.own >= 0 else (n_categories - 1) // 2
        below, above = codes & (1 << goal + 1) - 1, codes >> goal
        found = [below.bit_length() - 1] if below else []
        if above:
            found.append(goal + (above & -above).bit_length() - 1)
        return float(min(found, key=lambda code: (abs(code - goal), code)))

    def _first(self, box: Box) -> float | None:
        """Give the least legal value above the box's lower end, or as good as the least."""
        step, is_date = self.scale.step, self.feature.kind is FeatureKind.DATETIME
        if box.above == -math.inf:
            return EARLIEST_INSTANT if is_date else -LARGEST
        if step:
            value = (math.floor(box.above / step) + 1) * step
            value = value - step if value - step > box.above else value
            if value <= box.above:  # beyond 2^53 every number is whole
                value = math.nextafter(box.above, math.inf)
        elif is_date:
            return _instant_above(box.above)
        else:
            value = self._just_above(box)
        return value if value <= (LATEST_INSTANT if is_date else LARGEST) else None

    def _just_above(self, box: Box) -> float:
        top = min(box.above + MARGIN * self.scale.span, box.at_most, LARGEST)
        aim = box.above + (top - box.above) / 2
        for digits in range(1, 18):
            value = float(f"{aim:.{digits}g}")
            if box.above < value <= top:
                return value
        return math.nextafter(box.above, math.inf)

    def _last(self, box: Box) -> float | None:
        """Give the greatest legal value at or below the box's upper end."""
        step, is_date = self.scale.step, self.feature.kind is FeatureKind.DATETIME
        if box.at_most == math.inf:
            return LATEST_INSTANT if is_date else LARGEST
        if step:
            value = math.floor(box.at_most / step) * step
            value = value if value <= box.at_most else value - step
        elif is_date:
            return _instant_up_to(box.at_most)
        else:
            value = box.at_most
        return value if value >= (EARLIEST_INSTANT if is_date else -LARGEST) else None


def legal_values(
    model: Model, values: Sequence[float], given: Sequence[bool], *, spans: Mapping[str, float]
) -> tuple[Legal, ...]:
    """Give each attribute as seen from an encoded row.

    Args:
        model: The model; of one that keeps no scales they are taken from its thresholds.
        values: The row's, as in `espalier.rows.EncodedRow`.
        given: Of each attribute, whether the row has a value of its own.
        spans: Of some attributes by name: what counts as 1 in the place of the model's own span.
    """
    kept = model.preparation.scales or (None,) * len(values)
    legal = []
    for place, feature in enumerate(model.schema.attributes):
        scale = kept[place] or (Scale(1.0, 0.0, 0.0) if feature.coded else _scale_of_thresholds(model, place))
        span = spans.get(feature.name, scale.span) or 1.0
        legal.append(Legal(feature, values[place], given[place], Scale(span, scale.middle, scale.step)))
    return tuple(legal)


def _scale_of_thresholds(model: Model, place: int) -> Scale:
    bounds = _thresholds(model, place)
    if not bounds:
        return Scale(1.0, 0.0, 0.0)
    low, high = min(bounds), max(bounds)
    span = min(2.0 * (high / 2 - low / 2), LARGEST_SPAN) if high > low else abs(low)
    return Scale(span, low / 2 + high / 2, 0.0)


def _thresholds(model: Model, place: int) -> list[float]:
    if isinstance(model.body, RuleList):
        name = model.schema.attributes[place].name
        conditions = [each for rule in model.rules.rules for each in rule.conditions if each.attribute.name == name]
        return [bound for each in conditions for bound in (each.above, each.at_most) if math.isfinite(bound)]
    tree = model.tree
    found: list[float] = np.unique(tree.threshold[(tree.feature == place) & (tree.test == NUMERIC)]).tolist()
    return found


def _instant_above(bound: float) -> float | None:
    """Give the first instant above `bound` that a text can name, to the microsecond."""
    value = max(bound, EARLIEST_INSTANT)
    while value <= LATEST_INSTANT:
        named = parse_instant(instant_text(value))
        if named > bound:
            return named
        value = max(value + MICROSECOND, math.nextafter(value, math.inf))
    return None


def _instant_up_to(bound: float) -> float | None:
    value = min(bound, LATEST_INSTANT)
    while value >= EARLIEST_INSTANT:
        named = parse_instant(instant_text(value))
        if named <= bound:
            return named
        value = min(value - MICROSECOND, math.nextafter(value, -math.inf))
    return None
