"""Cost-complexity pruning once more: every link is weighed anew; small trees are tried in all their prunings.

Definitions: Breiman and others (1984), section 3.3. A risk is a function of a node: what it costs as a leaf.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.reference import scores
from tests.reference.tree import Node, n_leaves, own_errors

Risk = Callable[[Node], float]
IMPURITIES: dict[str, Callable[[Sequence[float]], float]] = {
    "gini": scores.gini,
    "entropy": scores.entropy,
    "misclassification": scores.misclassification,
    "variance": lambda stats: stats[2] / stats[0] if stats[0] > 0 else 0.0,
}


@dataclass(frozen=True, slots=True)
class Stage:
    """A tree of the path, and the price of a leaf from which it is the best one."""

    alpha: float
    tree: Node

    @property
    def leaves(self) -> int:
        return n_leaves(self.tree)


def risk_of_tree(node: Node, risk: Risk) -> float:
    """The sum over the leaves."""
    return math.fsum(risk_of_tree(child, risk) for child in node.children) if node.children else risk(node)


def inner_nodes(node: Node) -> Iterator[Node]:
    if node.children:
        yield node
        for child in node.children:
            yield from inner_nodes(child)


def price(node: Node, risk: Risk) -> float:
    """The risk that a subtree saves, per leaf that it has more than one leaf in its place."""
    return (risk(node) - risk_of_tree(node, risk)) / (n_leaves(node) - 1)


def best(node: Node, alpha: float, risk: Risk) -> Node:
    """The pruning with the least cost, the risks of its leaves plus alpha for each; of equals the smallest."""
    if not node.children:
        return node
    kept = replace(node, children=tuple(best(child, alpha, risk) for child in node.children))
    whole = risk_of_tree(kept, risk) + alpha * n_leaves(kept)
    return Node(node.weight, node.stats, node.value) if risk(node) + alpha <= whole else kept


def path(tree: Node, risk: Risk) -> list[Stage]:
    """The pruning path: it begins with the smallest tree that is best for alpha 0, and ends with the root alone."""
    slack = 1e-10 * max(abs(risk(tree)), 1e-300)
    alpha, stages = 0.0, []
    while True:
        tree = best(tree, alpha + slack, risk)
        stages.append(Stage(alpha, tree))
        if not tree.children:
            return stages
        alpha = min(price(node, risk) for node in inner_nodes(tree))


def prunings(node: Node) -> Iterator[Node]:
    """Every tree that comes of this one by making leaves of inner nodes."""
    yield Node(node.weight, node.stats, node.value)
    if node.children:
        for children in itertools.product(*(list(prunings(child)) for child in node.children)):
            yield replace(node, children=children)


def error_risk(node: Node) -> float:
    """The weight of the wrong rows."""
    return own_errors(node)


def squared_risk(node: Node) -> float:
    """The sum of squared deviations."""
    return node.stats[2]


def impurity_risk(impurity: str, whole: float | None) -> Risk:
    """The impurity of a node times its share of the whole weight; without a whole, its impurity alone."""

    def risk(node: Node) -> float:
        return IMPURITIES[impurity](node.stats) * (1.0 if whole is None else node.weight / whole)

    return risk
