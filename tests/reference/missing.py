"""What happens to rows that do not know the tested value: imputation, shares, surrogate splits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.reference import candidates, scores
from tests.reference.candidates import Attribute
from tests.reference.scores import Config, Sample
from tests.reference.splits import Split, shared_out
from tests.reference.table import Cell, Column, Target

LEAST_SURROGATE_SIDE = 2 * (1 - 1e-9)


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A split by another attribute that sends most rows to the same branch as the node's own test.

    If it is numeric, values at or below the threshold go to `below`, the others to the other branch.
    """

    attribute: int
    test: str
    threshold: float
    below: int
    branch_of_category: tuple[int, ...]
    agreement: float = 0.0
    adjusted: float = 0.0
    disagreeing: float = 0.0

    def branch(self, value: Cell) -> int:
        """The branch of a value; -1 for a missing value, and for a category without a branch."""
        if value is None:
            return -1
        if self.test == "numeric":
            return self.below if value <= self.threshold else 1 - self.below
        code = int(value)
        return self.branch_of_category[code] if 0 <= code < len(self.branch_of_category) else -1


def imputed_values(columns: Sequence[Column], weights: Sequence[float]) -> tuple[Cell, ...]:
    """The weighted mean, or the most frequent category, of each column's known values; None if all are missing."""
    return tuple(imputed_value(column, weights) for column in columns)


def imputed_value(column: Column, weights: Sequence[float]) -> Cell:
    known = [(value, weight) for value, weight in zip(column.values, weights, strict=True) if value is not None]
    if not known:
        return None
    if column.kind == "numeric":  # of an ordinal one the most frequent, as of a nominal one
        return math.fsum(value * weight for value, weight in known) / math.fsum(weight for _, weight in known)
    frequency = [math.fsum(weight for value, weight in known if value == c) for c in range(column.k)]
    return frequency.index(max(frequency))


def heaviest(split: Split) -> int:
    """The branch with the largest weight of rows whose value is known; of equals the first."""
    sizes = [scores.total(branch) for branch in split.branches]
    return sizes.index(max(sizes))


def fallback(split: Split) -> int:
    """The branch of a missing or unseen value that no surrogate sends to a branch."""
    return split.unknown_branch if split.unknown_branch >= 0 else heaviest(split)


def children(split: Split, missing: str, surrogates: Sequence[Surrogate], columns: Sequence[Column]) -> list[Sample]:
    """The rows of each child. The strategy decides which children get the rows with an unknown value."""
    if missing in {"fractional", "spread"}:
        return list(shared_out(split))
    samples = [list(branch) for branch in split.branches]
    for row, weight in split.unknown:
        branch = fallback(split)
        for surrogate in surrogates:
            answer = surrogate.branch(columns[surrogate.attribute].values[row])
            if answer >= 0:
                branch = answer
                break
        samples[branch].append((row, weight))
    return samples


def heaviest_child(samples: Sequence[Sample]) -> int:
    """The child with the largest weight of all its rows; of equals the first."""
    sizes = [scores.total(sample) for sample in samples]
    return sizes.index(max(sizes))


def find_surrogates(
    split: Split, attributes: Sequence[Attribute], target: Target, config: Config
) -> tuple[Surrogate, ...]:
    """The surrogates of a binary split: of each other attribute the one that agrees most, if it agrees more often than
    the rule that sends all rows to the heavier branch.

    Breiman and others (1984), section 5.3, with rpart's count: a row without the surrogate's value counts as a
    disagreement. `disagreeing` is only the weight of rows that the surrogate sends to the other branch.
    """
    if len(split.branches) != 2:
        return ()
    sides = {row: branch for branch, rows in enumerate(split.branches) for row, _ in rows}
    sample = [entry for rows in split.branches for entry in rows]
    whole = scores.total(sample)
    majority = max(map(scores.total, split.branches)) / whole
    lower, higher = (scores.moments(rows, target)[1] for rows in split.branches)
    upper = int(higher > lower)
    found = []
    for attribute in attributes:
        if attribute.source == split.attribute.source:
            continue
        known = [entry for entry in sample if attribute.values[entry[0]] is not None]
        others = [entry for entry in split.unknown if attribute.values[entry[0]] is not None]
        best: Surrogate | None = None
        cuts = surrogate_cuts(
            attribute, known, others, sides, upper, target=target, config=config, whole=whole, majority=majority
        )
        for surrogate in cuts:
            if best is None or surrogate.agreement > best.agreement + 1e-12:
                best = surrogate
        if best is not None and best.adjusted > 1e-12:
            found.append(best)
    found.sort(key=lambda surrogate: -surrogate.adjusted)
    return tuple(found[: config["max_surrogates"]])


def surrogate_cuts(
    attribute: Attribute,
    known: Sample,
    others: Sample,
    sides: dict[int, int],
    upper: int,
    *,
    target: Target,
    config: Config,
    whole: float,
    majority: float,
) -> list[Surrogate]:
    """All possible surrogates by one attribute with their agreement: each threshold in both directions, or one grouping
    of the categories.

    `others` are rows without the value of the node's own attribute. They do not count in the agreement, but a threshold
    is the middle between neighbouring values of all rows, theirs included.
    """

    def surrogate(test: str, threshold: float, below: int, branch_of_category: tuple[int, ...]) -> Surrogate | None:
        made = Surrogate(attribute.source, test, threshold, below, branch_of_category)
        answers = [made.branch(attribute.values[row]) for row, _ in known]
        for side in (0, 1):
            sent = [entry for entry, answer in zip(known, answers, strict=True) if answer == side]
            if scores.size(sent, target, config) < LEAST_SURROGATE_SIDE:
                return None
        agreeing = [entry for entry, answer in zip(known, answers, strict=True) if answer == sides[entry[0]]]
        agreement = scores.total(agreeing) / whole
        adjusted = (agreement - majority) / (1 - majority)
        disagreeing = scores.total(known) - scores.total(agreeing)
        return replace(made, agreement=agreement, adjusted=adjusted, disagreeing=disagreeing)

    made = []
    if attribute.kind == "numeric":
        values = candidates.known_values(attribute, [*known, *others])
        ordered = sorted(known, key=lambda entry: values[entry[0]])
        for place in candidates.value_changes(ordered, values, 0.0):
            below = values[ordered[place - 1][0]]
            above = min(value for value in values.values() if value > below)
            middle = candidates.midpoint(below, above)
            made += [surrogate("numeric", middle, side, ()) for side in (0, 1)]
    elif attribute.kind == "binaries":
        for above in candidates.upper_categories(attribute):
            for side in (0, 1):
                below_upper = tuple(1 - side if code in above else side for code in range(attribute.k))
                made.append(surrogate("nominal", math.nan, 0, below_upper))
    else:
        made.append(surrogate("nominal", math.nan, 0, category_sides(attribute, known, sides, upper)))
    return [entry for entry in made if entry is not None]


def category_sides(attribute: Attribute, known: Sample, sides: dict[int, int], upper: int) -> tuple[int, ...]:
    """The side with most weight of each category; -1 for a category without rows at this node.

    Of equal sides it is the one with more weight of all rows; if these are equal, too, `upper`, the side with the
    larger mean target.
    """
    on_the_right = scores.total([entry for entry in known if sides[entry[0]] == 1])
    on_the_left = scores.total([entry for entry in known if sides[entry[0]] == 0])
    heavier = upper if on_the_right == on_the_left else int(on_the_right > on_the_left)
    answer = []
    for category in range(attribute.k):
        rows = [entry for entry in known if attribute.values[entry[0]] == category]
        left = scores.total([entry for entry in rows if sides[entry[0]] == 0])
        right = scores.total([entry for entry in rows if sides[entry[0]] == 1])
        answer.append(-1 if not rows else heavier if right == left else int(right > left))
    return tuple(answer)
