"""Legal values of an attribute, sets of them, and their distance from a row's value.

The distance between two numbers or dates is their difference divided by the attribute's span (Gower 1971, *A general
coefficient of similarity*). Between two ordinal categories, the distance is the number of steps divided by the largest
possible number of steps. Between two different nominal or boolean values, the distance is 1. It is also 1 between a
known value and a missing or unseen one.
"""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from espalier.arrays import Places
from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT, instant_text, parse_instant
from espalier.data.labels import MAX_INTEGER, Label
from espalier.data.missing_values import MissingValues
from espalier.data.schema import Feature, FeatureKind
from espalier.explanation.steps import shown_value
from espalier.model.model import Model
from espalier.model.node_tests import NOMINAL, NUMERIC, UNKNOWN
from espalier.model.preparation import MAX_SPAN, Scale
from espalier.model.rules import RuleList
from espalier.model.tree import Tree

MARGIN: Final = 1e-6
"""Largest excess of a proposed number over a threshold, as a share of the span; used if `Scale.step` is 0."""
NEARNESS: Final = 1e-3
"""Largest excess as a share of the threshold, or of its difference from the row's number if that is larger."""
LARGEST: Final = sys.float_info.max
MICROSECOND: Final = 1e-6


class Box(NamedTuple):
    """A set of known values of one attribute.

    Attributes:
        above: Numbers and dates are greater than this; ignored for categories.
        at_most: Numbers and dates are at most this; ignored for categories.
        codes: For an attribute of categories, bit c is set if code c is in the box; -1 for all codes.
    """

    above: float = -math.inf
    at_most: float = math.inf
    codes: int = -1

    def within(self, other: "Box") -> "Box":
        """Return the intersection."""
        return Box(max(self.above, other.above), min(self.at_most, other.at_most), self.codes & other.codes)

    def plus(self, codes: int) -> "Box":
        """Return the box with more codes; `codes` has a bit for each."""
        return Box(self.above, self.at_most, self.codes | codes)

    def has_values(self, feature: Feature) -> bool:
        """Return whether the box contains a value of the attribute."""
        if feature.coded:
            return bool(self.codes & (1 << len(feature.categories)) - 1)
        return self.above < min(self.at_most, LARGEST)


EVERYTHING: Final = Box()
NOTHING: Final = Box(math.inf, -math.inf, 0)


def branch_boxes(tree: Tree, feature: Feature, node: int, branches: Iterable[int]) -> Iterator[Box]:
    """Yield, for each of `branches`, the known values that `node` sends there; without categories unseen at `node`."""
    test, threshold = tree.test[node], float(tree.threshold[node])
    if test == NOMINAL:
        codes, start = tree.codes_by_branch(node)
        yield from (Box(codes=bits_of(codes[start[branch] : start[branch + 1]])) for branch in branches)
    elif test == UNKNOWN:
        yield from (NOTHING if branch else EVERYTHING for branch in branches)
    elif feature.coded:
        yield from (codes_up_to(threshold, len(feature.categories), below=branch == 0) for branch in branches)
    else:
        yield from (Box(above=threshold) if branch else Box(at_most=threshold) for branch in branches)


def unseen_codes(tree: Tree, node: int) -> int:
    """Return the categories that no training row had at a nominal test, as bits of codes; 0 at any other node."""
    return bits_of(np.flatnonzero(tree.codes(node) < 0)) if tree.test[node] == NOMINAL else 0


def bits_of(numbers: Sequence[int] | Places) -> int:
    """Return the integer in which the bits with these numbers are set."""
    if len(numbers) == 1:
        return 1 << int(numbers[0])
    bits = np.zeros(max(numbers, default=-1) + 1, np.bool_)
    bits[np.asarray(numbers, np.intp)] = True
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def codes_up_to(threshold: float, n_categories: int, *, below: bool) -> Box:
    """Return the box of the codes of ordered categories: up to `threshold` if `below`, else above it."""
    n_below = math.floor(min(max(threshold, -1.0), n_categories - 1.0)) + 1
    codes = (1 << n_below) - 1
    return Box(codes=codes if below else ~codes)


@dataclass(frozen=True, slots=True)
class ValueDomain:
    """The legal values of one attribute, and their distance from a row's value.

    Attributes:
        own: The row's encoded value, perhaps an imputed one; NaN or a negative code if there is none.
        given: Whether the row itself has a known value, neither missing nor unseen.
        scale: For numbers or dates: the unit of distances, the middle of the range, and the step between legal values.
        missing: Numbers and dates, as they appear in rows, that mean a missing value and so are not legal.
    """

    feature: Feature
    own: float
    given: bool
    scale: Scale
    missing: MissingValues

    def distance(self, value: float) -> float:
        """Return the distance of a known value from the row's own."""
        if not self.given:
            return 1.0
        if self.feature.unordered:
            return float(value != self.own)
        if self.feature.coded:
            return abs(value - self.own) / max(1, len(self.feature.categories) - 1)
        # Halves, because the difference of two finite numbers may be infinite.
        return min(abs(value / 2 - self.own / 2) / self.scale.span * 2, LARGEST)

    def nearest(self, box: Box) -> float | None:
        """Return the box's legal value nearest to `own` (if unknown, to the range's middle); None if none is legal."""
        if not box.has_values(self.feature):
            return None
        if self.feature.coded:
            return self._nearest_code(box.codes & (1 << len(self.feature.categories)) - 1)
        first, last = self._first(box), self._last(box)
        if first is None or last is None or first > last:
            return None
        middle = Box(above=math.nextafter(self.scale.middle, -math.inf))
        goal = self.own if math.isfinite(self.own) else self._first(middle)
        nearest = first if goal is None else min(max(goal, first), last)
        below: float | None = nearest
        above: float | None = nearest
        while below is not None and self._is_missing(below):
            below = self._last(Box(at_most=math.nextafter(below, -math.inf))) if below > first else None
        while above is not None and self._is_missing(above):
            above = self._first(Box(above, last)) if above < last else None
        legal = [value for value in (below, above) if value is not None and first <= value <= last]
        return min(legal, key=lambda value: abs(value / 2 - nearest / 2), default=None)

    def label(self, value: float) -> Label:
        """Return a legal value as it appears in rows. Numbers up to 2^53 are integers if training had only integers."""
        shown = shown_value(self.feature, value)
        if isinstance(shown, float) and not self.feature.coded and self.scale.step and abs(shown) <= MAX_INTEGER:
            return int(shown) if shown.is_integer() else shown
        return shown

    def _is_missing(self, value: float) -> bool:
        return not self.missing.are_default and self.missing.contains(self.label(value))

    def _nearest_code(self, codes: int) -> float:
        n_categories = len(self.feature.categories)
        if self.feature.unordered:
            keeps = self.own >= 0 and codes >> int(self.own) & 1
            return self.own if keeps else float((codes & -codes).bit_length() - 1)
        goal = int(self.own) if self.own >= 0 else (n_categories - 1) // 2
        below, above = codes & (1 << goal + 1) - 1, codes >> goal
        nearest = [below.bit_length() - 1] if below else []
        if above:
            nearest.append(goal + (above & -above).bit_length() - 1)
        return float(min(nearest, key=lambda code: (abs(code - goal), code)))

    def _first(self, box: Box) -> float | None:
        """Return the least legal value above the box's lower end (if `step` is 0, one near that end), or None."""
        step, is_date = self.scale.step, self.feature.kind is FeatureKind.DATETIME
        if box.above == -math.inf:
            return EARLIEST_INSTANT if is_date else -LARGEST
        if step:
            value = (math.floor(box.above / step) + 1) * step
            value = value - step if value - step > box.above else value
            if value <= box.above:  # beyond 2^53 every number is whole
                value = math.nextafter(box.above, math.inf)
        elif is_date:
            return _instant_beside(box.above, above=True)
        else:
            value = self._just_above(box)
        return value if value <= (LATEST_INSTANT if is_date else LARGEST) else None

    def _just_above(self, box: Box) -> float:
        own = self.own if math.isfinite(self.own) else box.above
        size = max(abs(box.above), abs(box.above - own)) or 1.0
        top = min(box.above + min(MARGIN * self.scale.span, NEARNESS * size), box.at_most, LARGEST)
        aim = box.above + (top - box.above) / 2
        for digits in range(1, 18):
            value = float(f"{aim:.{digits}g}")
            if box.above < value <= top:
                return value
        return math.nextafter(box.above, math.inf)

    def _last(self, box: Box) -> float | None:
        """Return the greatest legal value at or below the box's upper end; None if there is none."""
        step, is_date = self.scale.step, self.feature.kind is FeatureKind.DATETIME
        if box.at_most == math.inf:
            return LATEST_INSTANT if is_date else LARGEST
        if step:
            value = math.floor(box.at_most / step) * step
            value = value if value <= box.at_most else value - step
        elif is_date:
            return _instant_beside(box.at_most, above=False)
        else:
            value = box.at_most
        return value if value >= (EARLIEST_INSTANT if is_date else -LARGEST) else None


def value_domains(
    model: Model, values: Sequence[float], given: Sequence[bool], *, spans: Mapping[str, float]
) -> tuple[ValueDomain, ...]:
    """Return the domain of each attribute for an encoded row.

    If the model has no scale for a number or date, the attribute's thresholds give one. For `given`, see `ValueDomain`.
    `spans`: by attribute name, the difference that counts as a distance of 1, instead of the model's span.
    """
    scales = model.preparation.scales or (None,) * len(values)
    missing, domains = MissingValues.of(model.schema.missing_values), []
    for place, feature in enumerate(model.schema.attributes):
        scale = scales[place] or _scale_of_thresholds(model, place)
        span = spans.get(feature.name, scale.span) or 1.0
        unit = Scale(span, scale.middle, scale.step)
        domains.append(ValueDomain(feature, values[place], given[place], unit, missing))
    return tuple(domains)


def _scale_of_thresholds(model: Model, place: int) -> Scale:
    bounds = _thresholds(model, place) or [0.0]
    low, high = min(bounds), max(bounds)
    span = min(2.0 * (high / 2 - low / 2), MAX_SPAN) if high > low else abs(low)
    return Scale(span, low / 2 + high / 2, 0.0)


def _thresholds(model: Model, place: int) -> list[float]:
    if isinstance(model.body, RuleList):
        name = model.schema.attributes[place].name
        conditions = [each for rule in model.rules.rules for each in rule.conditions if each.attribute.name == name]
        return [bound for each in conditions for bound in (each.above, each.at_most) if math.isfinite(bound)]
    tree = model.tree
    thresholds: list[float] = np.unique(tree.threshold[(tree.feature == place) & (tree.test == NUMERIC)]).tolist()
    return thresholds


def _instant_beside(bound: float, *, above: bool) -> float | None:
    """Return the instant nearest to `bound` that can be written exactly with microseconds; None if there is none.

    If `above`, the instant is greater than `bound`, else at most `bound`.
    """
    value = max(bound, EARLIEST_INSTANT) if above else min(bound, LATEST_INSTANT)
    while EARLIEST_INSTANT <= value <= LATEST_INSTANT:
        named = parse_instant(instant_text(value))
        if named is not None and (named > bound) == above:
            return named
        if above:
            value = max(value + MICROSECOND, math.nextafter(value, math.inf))
        else:
            value = min(value - MICROSECOND, math.nextafter(value, -math.inf))
    return None
