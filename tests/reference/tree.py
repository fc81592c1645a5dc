"""A grown tree: its nodes, their counts and errors, and the collapse of subtrees that do not pay."""

import math
from dataclasses import dataclass, replace

from tests.reference.missing import Surrogate

COLLAPSE_SLACK = 1e-3


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a grown tree and everything below it; the package's docstring says what each field means."""

    weight: float
    stats: tuple[float, ...]
    value: float
    attribute: int = -1
    test: str = "leaf"
    threshold: float = math.nan
    branch_of_category: tuple[int, ...] = ()
    gain: float = math.nan
    score: float = math.nan
    fallback: int = -1
    branch_weight: tuple[float, ...] = ()
    surrogates: tuple[Surrogate, ...] = ()
    children: tuple["Node", ...] = ()


def collapsed(node: Node) -> Node:
    """The tree without subtrees that make no fewer training errors than a leaf (to 0.001)."""
    if not node.children:
        return node
    if training_errors(node) >= own_errors(node) - COLLAPSE_SLACK:
        return Node(node.weight, node.stats, node.value)
    return replace(node, children=tuple(collapsed(child) for child in node.children))


def own_errors(node: Node) -> float:
    """The weight that is not of the node's largest class."""
    return math.fsum(node.stats) - max(node.stats)


def training_errors(node: Node) -> float:
    """The errors of the leaves below."""
    if not node.children:
        return own_errors(node)
    return math.fsum(training_errors(child) for child in node.children)


def n_leaves(node: Node) -> int:
    return sum(map(n_leaves, node.children)) if node.children else 1


def n_nodes(node: Node) -> int:
    return 1 + sum(map(n_nodes, node.children))


def depth(node: Node) -> int:
    """The number of tests on the longest path."""
    return 1 + max(map(depth, node.children)) if node.children else 0
