"""Pessimistic pruning once more, in plain Python: every estimate is counted anew from the rows that reach the leaves.

Definitions: Quinlan (1993), chapter 4; a sample is a list of (row, weight).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from tests.reference.predictor import known_branch, next_branches
from tests.reference.scores import Sample
from tests.reference.table import Table
from tests.reference.tree import Node

C45_TABLE = {0.0: 4.0, 0.001: 3.09, 0.005: 2.58, 0.01: 2.33, 0.05: 1.65, 0.10: 1.28, 0.20: 0.84, 0.40: 0.25, 1.0: 0.0}
SLACK = 0.1
EQUALLY_HEAVY = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Limit:
    """How errors are estimated: the confidence, and "normal" or "c45"."""

    confidence: float
    quantile: str = "normal"

    @property
    def z(self) -> float:
        if self.quantile == "normal":
            return NormalDist().inv_cdf(1 - self.confidence)
        points = sorted(C45_TABLE)
        above = next(point for point in points if point >= self.confidence)
        below = max(point for point in points if point <= self.confidence)
        share = 0.0 if above == below else (self.confidence - below) / (above - below)
        return C45_TABLE[below] + share * (C45_TABLE[above] - C45_TABLE[below])


def added(n: float, e: float, limit: Limit) -> float:
    """What is added to e errors among n rows."""
    if limit.confidence > 0.5 or n == 0:
        return 0.0
    if e < 1:
        base = n * (1 - limit.confidence ** (1 / n))
        return base if e == 0 else base + e * (added(n, 1.0, limit) - base)
    if e + 0.5 >= n:
        return max(n - e, 0.0) * (0.67 if limit.quantile == "c45" else 1.0)
    z, f = limit.z, (e + 0.5) / n
    upper = (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return n * upper - e


def of_leaf(stats: Sequence[float], limit: Limit) -> float:
    """The estimated errors of a leaf with these class weights."""
    n = math.fsum(stats)
    return n - max(stats) + added(n, n - max(stats), limit)


def of_tree(node: Node, limit: Limit) -> float:
    """The estimated errors of all leaves."""
    return math.fsum(of_tree(child, limit) for child in node.children) if node.children else of_leaf(node.stats, limit)


def counted(node: Node, sample: Sample, table: Table, missing: str) -> Node:
    """The same tests with the weights of another sample; the shares of unknown rows are counted anew too."""
    stats = [0.0] * len(node.stats)
    for row, weight in sample:
        stats[int(table.target.values[row])] += weight
    made = replace(node, weight=math.fsum(stats), stats=tuple(stats))
    if not node.children:
        return made
    # Where unknown values take a learned side, a branch's share is that of all rows.
    whole_sample = missing == "direction"
    made = replace(made, branch_weight=shares(node, sample, table, whole_sample=whole_sample))
    samples = divided(made, sample, table, missing)
    children = (counted(child, own, table, missing) for child, own in zip(made.children, samples, strict=True))
    return replace(made, children=tuple(children))


def shares(node: Node, sample: Sample, table: Table, *, whole_sample: bool) -> tuple[float, ...]:
    """The share of each branch of the rows that know the tested value, or of all rows."""
    known = [0.0] * len(node.children)
    for row, weight in sample:
        branch = known_branch(node, table.row(row)[node.attribute])
        if branch < 0 and whole_sample:
            branch = node.fallback
        if branch >= 0:
            known[branch] += weight
    whole = math.fsum(known)
    return tuple(weight / whole for weight in known) if whole > 0 else node.branch_weight


def divided(node: Node, sample: Sample, table: Table, missing: str) -> list[Sample]:
    """The rows of each branch."""
    samples: list[Sample] = [[] for _ in node.children]
    for row, weight in sample:
        for branch, share in next_branches(node, table.row(row), missing):
            samples[branch].append((row, weight * share))
    return samples


def pruned(node: Node, sample: Sample, table: Table, limit: Limit, missing: str, *, raising: bool) -> Node:
    """Children first; then a leaf, the largest branch in the node's place, or the node as it is."""
    if not node.children:
        return node
    samples = divided(node, sample, table, missing)
    children = tuple(
        pruned(child, own, table, limit, missing, raising=raising)
        for child, own in zip(node.children, samples, strict=True)
    )
    node = replace(node, children=children)
    below, as_leaf = of_tree(node, limit), of_leaf(node.stats, limit)
    if not raising:
        return Node(node.weight, node.stats, node.value) if as_leaf <= below + SLACK else node
    heaviest = max(child.weight for child in children)
    largest = max(place for place, child in enumerate(children) if child.weight >= heaviest * EQUALLY_HEAVY)
    raised = counted(children[largest], sample, table, missing)
    as_branch = of_tree(raised, limit)
    if as_leaf <= below + SLACK and as_leaf <= as_branch + SLACK:
        return Node(node.weight, node.stats, node.value)
    if as_branch > below + SLACK:
        return node
    raised = replace(raised, weight=node.weight, stats=node.stats, value=node.value)
    return pruned(raised, sample, table, limit, missing, raising=True)
