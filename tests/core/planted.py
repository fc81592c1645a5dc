"""Trees written by hand or drawn at random, planted as models, and a slow walk down them to compare answers with.

Nothing here grows a tree: what is tested with these does not depend on how trees are grown.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from espalier import Feature, FeatureKind, Model, Role, Schema, TrainingRecord, training_config
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC, UNKNOWN
from espalier.model.preparation import Preparation
from espalier.model.tree import Tree
from tests.core.drawn import Choices, choices


@dataclass(frozen=True)
class Leaf:
    """Class weights, or (weight, mean, sum of squared deviations)."""

    stats: tuple[float, ...]


A, B, C = Leaf((4.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0)), Leaf((0.0, 1.0, 3.0))


@dataclass(frozen=True)
class Cut:
    """At most the threshold: the first child; else the second."""

    attribute: int
    threshold: float
    children: tuple[Any, Any]
    fallback: int = -1


@dataclass(frozen=True)
class Ask:
    """The branch of each category, -1 where none was seen."""

    attribute: int
    branches: tuple[int, ...]
    children: tuple[Any, ...]
    fallback: int = -1


@dataclass(frozen=True)
class Known:
    """A value: the first child; none: the second."""

    attribute: int
    children: tuple[Any, Any]
    fallback: int = 0


Node = Leaf | Cut | Ask | Known

MIXED = Schema(
    (
        Feature("length", FeatureKind.NUMERIC),
        Feature("colour", FeatureKind.NOMINAL, categories=("red", "green", "blue")),
        Feature("size", FeatureKind.ORDINAL, categories=("small", "middle", "large")),
        Feature("sold", FeatureKind.BOOLEAN, categories=(False, True)),
        Feature("kind", FeatureKind.NOMINAL, Role.TARGET, ("a", "b", "c")),
    )
)
NUMBERS = Schema((*MIXED.features[:-1], Feature("price", FeatureKind.NUMERIC, Role.TARGET)))


def stats_of(node: Node, *, classes: bool) -> tuple[float, ...]:
    """What reached the node: the sum over its leaves."""
    if isinstance(node, Leaf):
        return node.stats
    parts = [stats_of(child, classes=classes) for child in node.children]
    if classes:
        return tuple(math.fsum(column) for column in zip(*parts, strict=True))
    weight = math.fsum(part[0] for part in parts)
    if weight == 0:
        return (0.0, 0.0, 0.0)
    mean = math.fsum(part[0] * part[1] for part in parts) / weight
    return (weight, mean, math.fsum(part[2] + part[0] * (part[1] - mean) ** 2 for part in parts))


def weight_of(node: Node, *, classes: bool) -> float:
    stats = stats_of(node, classes=classes)
    return math.fsum(stats) if classes else stats[0]


def shares_of(node: Any, *, classes: bool) -> list[float]:
    """Share of the node's weight that went to each child."""
    weights = [weight_of(child, classes=classes) for child in node.children]
    total = math.fsum(weights)
    return [weight / total for weight in weights] if total > 0 else [1 / len(weights)] * len(weights)


def plant(schema: Schema, root: Node, *, imputed: tuple[float, ...] | None = None, **fields: Any) -> Model:
    """Make a model of a tree written by hand; ``fields`` change its configuration."""
    criterion = "gini" if schema.classes else "squared_error"
    config = training_config("cart", criterion=criterion, **fields)
    tree = planted_tree(schema, root)
    n_rows = round(float(tree.weight[0]))
    record = TrainingRecord(n_rows, n_rows, "0" * 64, None, {"n_rows": n_rows})
    return Model(schema, config, Preparation(imputed), tree, record)


def tree_from_parents(arrays: dict[str, Any]) -> Tree:
    """Make a tree of its arrays, in preorder, without those that follow from ``parent``: size, child_start, child."""
    parent = np.asarray(arrays["parent"], dtype=np.int32)
    size = np.ones(len(parent), dtype=np.int32)
    for node in range(len(parent) - 1, 0, -1):
        size[parent[node]] += size[node]
    child = (np.argsort(parent[1:], kind="stable") + 1).astype(np.int32)
    counts = np.bincount(parent[1:], minlength=len(parent))
    child_start = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return Tree(**{**arrays, "parent": parent, "size": size, "child_start": child_start, "child": child})


def planted_tree(schema: Schema, root: Node) -> Tree:
    """Flatten a tree written by hand, nodes in preorder."""
    classes = bool(schema.classes)
    rows: list[dict[str, Any]] = []
    _flatten(root, -1, None, rows, classes=classes)
    child_order = sorted(range(1, len(rows)), key=lambda node: (rows[node]["parent"], node))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    starts = np.concatenate(([0], np.cumsum([len(codes) for codes in columns["codes"]])))
    return tree_from_parents(
        {
            "parent": columns["parent"],
            "feature": np.array(columns["feature"], dtype=np.int32),
            "test": np.array(columns["test"], dtype=np.int8),
            "threshold": np.array(columns["threshold"], dtype=np.float64),
            "code_start": starts.astype(np.int32),
            "code_branch": np.array([code for codes in columns["codes"] for code in codes], dtype=np.int32),
            "fallback": np.array(columns["fallback"], dtype=np.int32),
            "branch_weight": np.array([rows[node]["share"] for node in child_order], dtype=np.float64),
            "weight": np.array(columns["weight"], dtype=np.float64),
            "gain": np.array(columns["gain"], dtype=np.float64),
            "stats": np.array(columns["stats"], dtype=np.float64),
            "value": np.array(columns["value"], dtype=np.int32 if classes else np.float64),
        }
    )


def _flatten(node: Node, parent: int, share: float | None, rows: list[dict[str, Any]], *, classes: bool) -> None:
    stats = stats_of(node, classes=classes)
    number = len(rows)
    inner = not isinstance(node, Leaf)
    rows.append(
        {
            "parent": parent,
            "share": share,
            "feature": node.attribute if inner else -1,
            "test": {Leaf: LEAF, Cut: NUMERIC, Ask: NOMINAL, Known: UNKNOWN}[type(node)],
            "threshold": node.threshold if isinstance(node, Cut) else math.nan,
            "codes": node.branches if isinstance(node, Ask) else (),
            "fallback": node.fallback if inner else -1,
            "weight": math.fsum(stats) if classes else stats[0],
            "gain": 0.5 if inner else math.nan,
            "stats": stats,
            "value": stats.index(max(stats)) if classes else stats[1],
        }
    )
    if inner:
        for child, part in zip(node.children, shares_of(node, classes=classes), strict=True):
            _flatten(child, number, part, rows, classes=classes)


def walk(schema: Schema, node: Node, values: Sequence[Any], number: int = 0, weight: float = 1.0) -> list[Any]:
    """Give (weight, number of the leaf, leaf) of each leaf that a row reaches; None is a missing or unseen value."""
    if isinstance(node, Leaf):
        return [(weight, number, node)]
    numbers = _child_numbers(node, number)
    branch = _branch(schema, node, values[node.attribute])
    if branch is None:
        shares = shares_of(node, classes=bool(schema.classes))
        ways = [(at, share) for at, share in enumerate(shares) if share > 0]
    else:
        ways = [(branch, 1.0)]
    return [
        found for at, share in ways for found in walk(schema, node.children[at], values, numbers[at], weight * share)
    ]


def _branch(schema: Schema, node: Any, value: Any) -> int | None:
    feature = schema.attributes[node.attribute]
    if feature.coded and value is not None:
        value = feature.categories.index(value) if value in feature.categories else None
    if isinstance(node, Known):
        return 0 if value is not None else 1
    if value is None:
        branch = -1
    elif isinstance(node, Cut):
        branch = 0 if value <= node.threshold else 1
    else:
        branch = node.branches[value]
    if branch < 0:
        branch = node.fallback
    return branch if branch >= 0 else None


def _child_numbers(node: Any, number: int) -> list[int]:
    numbers, following = [], number + 1
    for child in node.children:
        numbers.append(following)
        following += n_nodes(child)
    return numbers


def n_nodes(node: Node) -> int:
    return 1 if isinstance(node, Leaf) else 1 + sum(map(n_nodes, node.children))


def node_numbered(root: Node, number: int) -> Node:
    """Give the node that stands at a place of the preorder."""
    for child, at in zip(root.children, _child_numbers(root, 0), strict=True) if number else ():
        if at <= number < at + n_nodes(child):
            return node_numbered(child, number - at)
    return root


N_BYTES = 256
"""Of a tree: enough for a full one of depth 4 with two branches a node; beyond it nodes are leaves."""


def roots(schema: Schema = MIXED, depth: int = 4, *, may_be_leaf: bool = True) -> st.SearchStrategy[Node]:
    """Draw a tree over `MIXED` or `NUMBERS`: every test, both ways of missing values."""
    return choices(N_BYTES).map(lambda drawn: _root(drawn, schema, depth, may_be_leaf=may_be_leaf))


def _root(drawn: Choices, schema: Schema, depth: int, *, may_be_leaf: bool = True) -> Node:
    if depth == 0 or (may_be_leaf and drawn.below(4) == 0):
        return _leaf(drawn, schema)
    attribute = drawn.below(4)
    fallback = drawn.below(3) - 1
    form = drawn.below(5)
    if form == 0:
        return Known(attribute, (_root(drawn, schema, depth - 1), _root(drawn, schema, depth - 1)))
    if schema.attributes[attribute].unordered:
        k = len(schema.attributes[attribute].categories)
        if k == 3 and form == 1:
            below = [_root(drawn, schema, depth - 1) for _ in range(3)]
            return Ask(attribute, (0, 1, 2), tuple(below), drawn.below(4) - 1)
        branches = drawn.one_of([each for each in product((0, 1, -1), repeat=k) if {0, 1} <= set(each)])
        return Ask(attribute, branches, (_root(drawn, schema, depth - 1), _root(drawn, schema, depth - 1)), fallback)
    threshold = (drawn.below(13) - 6) / 2 if attribute == 0 else drawn.one_of([0.5, 1.5, 1.0, 0.0])
    return Cut(attribute, threshold, (_root(drawn, schema, depth - 1), _root(drawn, schema, depth - 1)), fallback)


def _leaf(drawn: Choices, schema: Schema) -> Leaf:
    if schema.classes:
        weights = tuple(float(drawn.below(6)) for _ in range(3))
        return Leaf(weights if any(weights) else (1.0, 0.0, 0.0))
    return Leaf((1.0 + drawn.below(5), drawn.below(41) - 20.0, float(drawn.below(10))))


CELLS: tuple[tuple[Any, ...], ...] = (
    (*(each / 2 for each in range(-8, 9)), *(None,) * 17),
    (None, "red", "green", "blue", "mauve"),
    (None, "small", "middle", "large", "giant"),
    (None, False, True),
)
"""Cells of the attributes, each as likely as another."""


def mixed_rows() -> st.SearchStrategy[dict[str, Any]]:
    """Draw a row for `MIXED` or `NUMBERS`: missing cells are null or absent, some categories were never seen."""
    return choices(8).map(_mixed_row)


def _mixed_row(drawn: Choices) -> dict[str, Any]:
    row = {feature.name: drawn.one_of(cells) for feature, cells in zip(MIXED.attributes, CELLS, strict=True)}
    return {name: cell for name, cell in row.items() if cell is not None or drawn.below(2)}
