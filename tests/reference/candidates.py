"""Every way in which one attribute could divide the known rows of a node, before anything is scored.

A candidate is (test, threshold, branch_of_category, branches); the order of the candidates is the tie order.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.reference import scores
from tests.reference.scores import Config, Sample
from tests.reference.table import Cell, Target

EXHAUSTIVE_CATEGORIES = 10
NEIGHBOUR_GAP = 1e-5
SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute as the grower sees it: "numeric", "nominal", or "binaries" with its categories in `order`.

    The latter stand for k−1 binary columns; column j asks for the categories from the j-th of the order on.
    """

    source: int
    kind: str
    values: tuple[Cell, ...]
    k: int
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to divide the known rows: their branches, and the test that does it."""

    test: str
    threshold: float
    branch_of_category: tuple[int, ...]
    branches: tuple[Sample, ...]


def candidates(attribute: Attribute, known: Sample, target: Target, config: Config) -> Iterator[Candidate]:
    """All candidates of an attribute on the rows that know its value."""
    if attribute.kind == "numeric":
        yield from numeric_candidates(attribute, known, target, config)
    elif attribute.kind == "binaries":
        yield from binary_candidates(attribute, known, target, config)
    else:
        yield from NOMINAL[config["nominal"]](attribute, known, target, config["criterion"])


def numeric_candidates(attribute: Attribute, known: Sample, target: Target, config: Config) -> Iterator[Candidate]:
    """The cuts of a sorted column, lowest first."""
    values = known_values(attribute, known)
    ordered = in_order(known, values)
    experts = (config["cut_points"] or {}).get(attribute.source)
    if experts is not None:
        for threshold in sorted(experts):
            yield cut(ordered, values, float(threshold))
        return
    for place in PLACES[config["numeric"]](ordered, values, target, config):
        below, above = values[ordered[place - 1][0]], values[ordered[place][0]]
        yield Candidate("numeric", midpoint(below, above), (), (ordered[:place], ordered[place:]))


def binary_candidates(attribute: Attribute, known: Sample, target: Target, config: Config) -> Iterator[Candidate]:
    """The one cut of each binary column, in the order of the columns; `numeric` says nothing of them."""
    for upper in map(frozenset, upper_categories(attribute)):
        bits = {row: float(attribute.values[row] in upper) for row, _ in known}
        ordered = in_order(known, bits)
        branch_of_category = tuple(int(category in upper) for category in range(attribute.k))
        for place in every_boundary(ordered, bits, target, config):
            yield Candidate("nominal", math.nan, branch_of_category, (ordered[:place], ordered[place:]))


def upper_categories(attribute: Attribute) -> list[tuple[int, ...]]:
    """The categories that each binary column asks for."""
    return [attribute.order[place:] for place in range(1, len(attribute.order))]


def known_values(attribute: Attribute, known: Sample) -> dict[int, float]:
    """The value of each row that knows it."""
    pairs = ((row, attribute.values[row]) for row, _ in known)
    return {row: float(value) for row, value in pairs if value is not None}


def in_order(known: Sample, values: Mapping[int, float]) -> Sample:
    """The rows by value; equal values in the order of the rows, whatever splits have led here."""
    return sorted(known, key=lambda entry: (values[entry[0]], entry[0]))


def cut(ordered: Sample, values: Mapping[int, float], threshold: float) -> Candidate:
    """The rows at or below the threshold, and the others."""
    left = [entry for entry in ordered if values[entry[0]] <= threshold]
    return Candidate("numeric", threshold, (), (left, ordered[len(left) :]))


def midpoint(below: float, above: float) -> float:
    """Halfway between two neighbours; the lower one where rounding would give the upper."""
    middle = below / 2 + above / 2 if math.isinf(below + above) else (below + above) / 2
    return middle if below <= middle < above else below


def value_changes(ordered: Sample, values: Mapping[int, float], gap: float) -> list[int]:
    """The positions m in the sorted rows where the value of row m is larger than that of row m−1 plus `gap`."""
    pairs = pairwise(values[row] for row, _ in ordered)
    return [place for place, (below, above) in enumerate(pairs, 1) if below + gap < above]


def every_boundary(ordered: Sample, values: Mapping[int, float], target: Target, config: Config) -> list[int]:
    places = value_changes(ordered, values, NEIGHBOUR_GAP if config["window"] == "c45" else 0.0)
    if config["criterion"] != "m5":
        return places
    whole, left = scores.total(ordered), weights_before(ordered)
    margin = max(1, math.floor(whole / 5 + SLACK))
    return [place for place in places if margin - SLACK <= left[place] - 1 <= whole - margin - 2 + SLACK]


def weights_before(ordered: Sample) -> list[float]:
    """The weight of the rows before each place."""
    return [scores.total(ordered[:place]) for place in range(len(ordered) + 1)]


def class_boundaries(ordered: Sample, values: Mapping[int, float], target: Target, config: Config) -> list[int]:
    """Boundaries of values whose rows are not all of one class on both sides (Fayyad and Irani, 1992)."""

    def classes_at(value: float) -> set[float]:
        return {target.values[row] for row, _ in ordered if values[row] == value}

    found = []
    for place in every_boundary(ordered, values, target, config):
        below, above = values[ordered[place - 1][0]], values[ordered[place][0]]
        if len(classes_at(below) | classes_at(above)) > 1:
            found.append(place)
    return found


def from_the_middle(ordered: Sample, places: Sequence[int]) -> list[int]:
    """Sort `places` by their distance from the middle m = n // 2, in the order m, m+1, m−1, m+2, m−2, …

    A place is a threshold, given as the number of rows before it. Distances are measured in rows: a row of weight 2 is
    two rows or, if the lightest row weighs less than 1, its weight divided by that of the lightest.
    """
    unit = min([1.0, *(weight for _, weight in ordered)])
    middle = math.floor(scores.total(ordered) / unit / 2 + SLACK)
    left = [weight / unit for weight in weights_before(ordered)]

    def turn(place: int) -> float:
        apart = left[place] - middle
        if 0 - SLACK <= apart <= 1 + SLACK:
            return round(abs(apart - 0.5), 6) + apart * 1e-5
        return round(abs(apart - 0.5), 6) - (apart > 0) * 1e-5

    return sorted(places, key=turn)


def middle_cut(ordered: Sample, values: Mapping[int, float], target: Target, config: Config) -> list[int]:
    """The change of value next to the middle row (seed 004, regression)."""
    return from_the_middle(ordered, every_boundary(ordered, values, target, config))[:1]


def near_middle_cut(ordered: Sample, values: Mapping[int, float], target: Target, config: Config) -> list[int]:
    """The first place around the middle where both value and class change between two neighbouring rows."""
    changes = [
        place
        for place in every_boundary(ordered, values, target, config)
        if target.values[ordered[place - 1][0]] != target.values[ordered[place][0]]
    ]
    return from_the_middle(ordered, changes)[:1]


def by_category(attribute: Attribute, known: Sample) -> dict[int, Sample]:
    """The rows of each category that occurs, in category order."""
    groups = {c: [(row, w) for row, w in known if attribute.values[row] == c] for c in range(attribute.k)}
    return {category: rows for category, rows in groups.items() if rows}


def multiway(attribute: Attribute, known: Sample, target: Target, criterion: str) -> Iterator[Candidate]:
    """One branch a category of the schema, also for those without rows here."""
    groups = by_category(attribute, known)
    if len(groups) > 1:
        branches = tuple(groups.get(category, []) for category in range(attribute.k))
        yield Candidate("nominal", math.nan, tuple(range(attribute.k)), branches)


def one_vs_rest(attribute: Attribute, known: Sample, target: Target, criterion: str) -> Iterator[Candidate]:
    """Each category that occurs against all others of the schema."""
    groups = by_category(attribute, known)
    if len(groups) < 2:
        return
    for chosen, rows in groups.items():
        rest = [entry for category, others in groups.items() if category != chosen for entry in others]
        branch_of_category = tuple(0 if category == chosen else 1 for category in range(attribute.k))
        yield Candidate("nominal", math.nan, branch_of_category, (rows, rest))


def subset(attribute: Attribute, known: Sample, target: Target, criterion: str) -> Iterator[Candidate]:
    """Two groups of the categories that occur; branch 0 holds the first of them."""
    groups = by_category(attribute, known)
    if len(groups) > 1:
        yield from in_two(attribute, groups, right_groups(groups, target))


def every_subset(attribute: Attribute, known: Sample) -> Iterator[Candidate]:
    """All divisions of the categories that occur into two groups; none if there are too many categories."""
    groups = by_category(attribute, known)
    if len(groups) <= EXHAUSTIVE_CATEGORIES:
        yield from in_two(attribute, groups, all_right_groups(groups))


def in_two(attribute: Attribute, groups: dict[int, Sample], found: Iterable[frozenset[int]]) -> Iterator[Candidate]:
    """The candidates with these groups of categories in branch 1."""
    for right in found:
        left_rows = [entry for category, rows in groups.items() if category not in right for entry in rows]
        right_rows = [entry for category, rows in groups.items() if category in right for entry in rows]
        branch_of_category = tuple(
            -1 if category not in groups else int(category in right) for category in range(attribute.k)
        )
        yield Candidate("nominal", math.nan, branch_of_category, (left_rows, right_rows))


def right_groups(groups: dict[int, Sample], target: Target) -> Iterator[frozenset[int]]:
    """The groups without the first category that are worth a try."""
    present = list(groups)
    if target.kind == "number" or target.k <= 2:
        orders = [by_mean_response(groups, target)]
    elif len(present) <= EXHAUSTIVE_CATEGORIES:
        yield from all_right_groups(groups)
        return
    else:
        orders = [by_share_of_class(groups, target, c) for c in range(target.k)]
        orders.append(by_principal_component(groups, target))
    for order in orders:
        for place in range(1, len(order)):
            side = frozenset(order[place:])
            yield frozenset(order[:place]) if present[0] in side else side


def all_right_groups(groups: dict[int, Sample]) -> Iterator[frozenset[int]]:
    others = list(groups)[1:]
    for mask in range(1, 2 ** len(others)):
        yield frozenset(c for position, c in enumerate(others) if mask >> position & 1)


def by_mean_response(groups: dict[int, Sample], target: Target) -> list[int]:
    """Categories by the mean of the target (two classes: the share of the second), then by code."""
    return sorted(groups, key=lambda category: (scores.moments(groups[category], target)[1], category))


def by_share_of_class(groups: dict[int, Sample], target: Target, chosen: int) -> list[int]:
    def share(category: int) -> float:
        return scores.class_weights(groups[category], target)[chosen] / scores.total(groups[category])

    return sorted(groups, key=lambda category: (share(category), category))


def by_principal_component(groups: dict[int, Sample], target: Target) -> list[int]:
    """Categories along the first principal component of their class shares (Coppersmith, Hong, Hosking, 1999)."""
    weight = {category: scores.total(rows) for category, rows in groups.items()}
    shares = {c: [w / weight[c] for w in scores.class_weights(rows, target)] for c, rows in groups.items()}
    whole = math.fsum(weight.values())
    centre = [math.fsum(weight[c] * shares[c][j] for c in groups) / whole for j in range(target.k)]
    apart = {c: [share - middle for share, middle in zip(shares[c], centre, strict=True)] for c in groups}
    direction = [1.0 + j for j in range(target.k)]
    for _ in range(200):  # power iteration on the weighted covariance
        along = {c: math.fsum(a * d for a, d in zip(apart[c], direction, strict=True)) for c in groups}
        direction = [math.fsum(weight[c] * along[c] * apart[c][j] for c in groups) for j in range(target.k)]
        length = math.sqrt(math.fsum(d * d for d in direction)) or 1.0
        direction = [d / length for d in direction]
    along = {c: math.fsum(a * d for a, d in zip(apart[c], direction, strict=True)) for c in groups}
    return sorted(groups, key=lambda category: (along[category], category))


PLACES = {
    "best": every_boundary,
    "boundary": class_boundaries,
    "median": middle_cut,
    "near_median": near_middle_cut,
}
NOMINAL = {"multiway": multiway, "one_vs_rest": one_vs_rest, "subset": subset}
