"""All rows that a planted tree can distinguish, and slow computations of its answers, to check explanations.

Rows are tuples of cells in the order of the attributes; None is a missing value. Nothing here knows how the core
answers, explains or routes.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from espalier import Schema
from tests.core.planted import Cut, Known, Leaf, Node, shares_of, stats_of

STOP = "stop"
"""Used as a fallback: if the tested value is missing, the node itself answers, as if it were a leaf."""

Row = tuple[Any, ...]


def cells_of(schema: Schema, root: Node) -> list[list[Any]]:
    """For each attribute, a cell of each kind that the tree can distinguish.

    None and all categories; or None, two numbers, and each threshold with the next double above it.
    """
    cuts = sorted({node.threshold for node in nodes_of(root) if isinstance(node, Cut)})
    found: list[list[Any]] = []
    for feature in schema.attributes:
        if feature.coded:
            found.append([None, *feature.categories])
        else:
            found.append([None, *sorted({*cuts, *(math.nextafter(cut, math.inf) for cut in cuts), -99.0, 0.25})])
    return found


def nodes_of(root: Node) -> Iterator[Node]:
    yield root
    for child in getattr(root, "children", ()):
        yield from nodes_of(child)


def rows_like(cells: Sequence[Sequence[Any]], row: Row, kept: Collection[int]) -> Iterator[Row]:
    """All rows with the cells of `row` for the attributes `kept`, and any of `cells` for the others."""
    return itertools.product(*([row[at]] if at in kept else each for at, each in enumerate(cells)))


def as_row(schema: Schema, cells: Row) -> dict[str, Any]:
    return {feature.name: cell for feature, cell in zip(schema.attributes, cells, strict=True) if cell is not None}


def as_cells(schema: Schema, row: dict[str, Any]) -> Row:
    """The cells of a row; a category that the schema does not list becomes None."""
    given = [(feature, row.get(feature.name)) for feature in schema.attributes]
    return tuple(cell if not feature.coded or cell in feature.categories else None for feature, cell in given)


def with_strategy(root: Node, missing: str | None) -> Node:
    """The tree with another fallback for missing values at every test: all branches (``fractional``) or `STOP`."""
    if isinstance(root, Leaf) or missing is None:
        return root
    children = tuple(with_strategy(child, missing) for child in root.children)
    fallback: Any = {"fractional": -1, STOP: STOP}[missing]
    changed = {**vars(root), "children": children}
    return type(root)(**(changed if isinstance(root, Known) else {**changed, "fallback": fallback}))


def branch_of(schema: Schema, node: Any, cell: Any) -> int | str:
    """The branch that a cell takes at a node: its number, -1 for all branches, or `STOP`."""
    if isinstance(node, Known):
        return 0 if cell is not None else 1
    feature = schema.attributes[node.attribute]
    value = feature.categories.index(cell) if feature.coded and cell is not None else cell
    if value is None:
        return node.fallback
    if isinstance(node, Cut):
        return 0 if value <= node.threshold else 1
    return node.branches[value] if node.branches[value] >= 0 else node.fallback


def answer(schema: Schema, root: Node, row: Row) -> Any:
    """The code of the predicted class, or the predicted number. If several leaves are reached, they are averaged."""
    parts = visits(schema, root, row)
    if not schema.classes:
        return math.fsum(weight * stats_of(node, classes=False)[1] for weight, node in parts)
    totals = [0.0] * len(schema.classes)
    for weight, node in parts:
        stats = stats_of(node, classes=True)
        for place, part in enumerate(stats):
            totals[place] += weight * part / math.fsum(stats)
    return totals.index(max(totals))


def visits(schema: Schema, node: Node, row: Row, weight: float = 1.0) -> list[tuple[float, Node]]:
    if isinstance(node, Leaf):
        return [(weight, node)]
    branch = branch_of(schema, node, row[node.attribute])
    if branch == STOP:
        return [(weight, node)]
    if branch != -1:
        return visits(schema, node.children[branch], row, weight)
    shares = shares_of(node, classes=bool(schema.classes))
    ways = [(child, share) for child, share in zip(node.children, shares, strict=True) if share > 0]
    return [found for child, share in ways for found in visits(schema, child, row, weight * share)]


def expected(schema: Schema, node: Node, row: Row, known: Collection[int], place: int) -> float:
    """The value v(S) of path-dependent Shapley values for class `place`, or for the number.

    At a test of an attribute in `known`, the set S, the row takes its branch; at any other test it is divided among all
    branches by their weights.
    """
    stats = stats_of(node, classes=bool(schema.classes))
    own = stats[place] / math.fsum(stats) if schema.classes else stats[1]
    if isinstance(node, Leaf):
        return own
    shares: Sequence[float] = shares_of(node, classes=bool(schema.classes))
    if node.attribute in known:
        branch = branch_of(schema, node, row[node.attribute])
        if branch == STOP:
            return own
        shares = shares if branch == -1 else [float(at == branch) for at in range(len(node.children))]
    return math.fsum(
        share * expected(schema, child, row, known, place) for share, child in zip(shares, node.children, strict=True)
    )


def shapley(schema: Schema, root: Node, row: Row, place: int) -> list[float]:
    """The Shapley value of each attribute by the definition (Shapley 1953), which sums over all sets of attributes."""
    players = range(len(schema.attributes))
    value = {
        frozenset(known): expected(schema, root, row, known, place)
        for size in range(len(players) + 1)
        for known in itertools.combinations(players, size)
    }
    found = []
    for player in players:
        gains = [
            math.factorial(len(known))
            * math.factorial(len(players) - len(known) - 1)
            * (value[known | {player}] - base)
            for known, base in value.items()
            if player not in known
        ]
        found.append(math.fsum(gains) / math.factorial(len(players)))
    return found
