"""Answers of a grown tree, one row at a time, with the weighted paths that lead to them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference.table import Cell
from tests.reference.tree import Node

FRACTIONAL = {"fractional", "spread"}


@dataclass(frozen=True, slots=True)
class Arrival:
    """A node where a share of the row ends, and the branches taken; `stats` are its parent's if it saw no rows."""

    node: Node
    share: float
    branches: tuple[int, ...]
    stats: tuple[float, ...]


def arrivals(root: Node, row: Sequence[Cell], missing: str) -> list[Arrival]:
    """The nodes at which a row ends: one, or, with `fractional` and `spread`, several whose shares add up to 1."""
    ended = []
    waiting = [Arrival(root, 1.0, (), root.stats)]
    while waiting:
        here = waiting.pop(0)
        steps = next_branches(here.node, row, missing)
        if not steps:
            ended.append(here)
        for branch, share in steps:
            child = here.node.children[branch]
            stats = child.stats if child.weight > 0 else here.stats
            waiting.append(Arrival(child, here.share * share, (*here.branches, branch), stats))
    return ended


def next_branches(node: Node, row: Sequence[Cell], missing: str) -> list[tuple[int, float]]:
    """The branches that a row takes at a node, with their shares; none if the row ends here."""
    if node.test == "leaf":
        return []
    value = row[node.attribute]
    branch = known_branch(node, value)
    if branch >= 0:
        return [(branch, 1.0)]
    if missing == "last_prediction":
        return []
    if missing in FRACTIONAL:
        return [(branch, share) for branch, share in enumerate(node.branch_weight) if share > 0]
    for surrogate in node.surrogates:
        branch = surrogate.branch(row[surrogate.attribute])
        if branch >= 0:
            return [(branch, 1.0)]
    return [(node.fallback, 1.0)]


def known_branch(node: Node, value: Cell) -> int:
    """The branch of a known value; -1 for a missing value or a category not seen at this node."""
    if node.test == "unknown":
        return 1 if value is None else 0
    if value is None:
        return -1
    if node.test == "numeric":
        return 0 if value <= node.threshold else 1
    code = int(value)
    return node.branch_of_category[code] if 0 <= code < len(node.branch_of_category) else -1


def distribution(root: Node, row: Sequence[Cell], *, missing: str, leaf_probability: str = "frequency") -> list[float]:
    """The probability of each class."""
    answer = [0.0] * len(root.stats)
    for arrival in arrivals(root, row, missing):
        shares = PROBABILITIES[leaf_probability](arrival.stats)
        answer = [sum_ + arrival.share * share for sum_, share in zip(answer, shares, strict=True)]
    return answer


def predicted_class(root: Node, row: Sequence[Cell], *, missing: str) -> int:
    """The class of the largest probability; the first of equals (to 1e-6 where a row went several ways)."""
    ended = arrivals(root, row, missing)
    if len(ended) == 1:
        return int(ended[0].node.value)
    shares = distribution(root, row, missing=missing)
    return next(code for code, share in enumerate(shares) if share >= max(shares) - 1e-6)


def predicted_number(root: Node, row: Sequence[Cell], *, missing: str) -> float:
    """The value of the leaf, or the leaves' values by their shares."""
    return math.fsum(arrival.share * arrival.node.value for arrival in arrivals(root, row, missing))


def filled(row: Sequence[Cell], answers: Sequence[Cell]) -> tuple[Cell, ...]:
    """The row with its missing cells imputed by the values of `missing.imputed_values`."""
    return tuple(answer if value is None else value for value, answer in zip(row, answers, strict=True))


def frequency(stats: Sequence[float]) -> list[float]:
    whole = math.fsum(stats)
    return [weight / whole for weight in stats]


def laplace(stats: Sequence[float]) -> list[float]:
    """Each class with one row more (Laplace's rule of succession)."""
    whole = math.fsum(stats) + len(stats)
    return [(weight + 1) / whole for weight in stats]


PROBABILITIES = {"frequency": frequency, "laplace": laplace}
