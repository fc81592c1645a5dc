"""Pessimistic pruning by the upper confidence limit of the training errors, with or without subtree raising."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats, Ints
from espalier.config.pruning import Pessimistic
from espalier.data.dataset import Dataset
from espalier.errors import NotApplicable
from espalier.model.majority import majority
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.texts import number_text
from espalier.model.tree import Tree
from espalier.prediction.batch import packed_tree
from espalier.progress import Progress
from espalier.pruning.distribute import losses, rows_at_leaves, shape_of, weighted_rows
from espalier.pruning.kernels import constants, distribute, error_limits, subtree_raising
from espalier.pruning.result import Pruned, PruningRows, counts, pruned_model, step_lines

QUANTILES: Final[Mapping[str, int]] = {"normal": constants.NORMAL, "c45": constants.C45, "exact": constants.EXACT}
C45_CONFIDENCES: Final = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.0)
C45_DEVIATIONS: Final = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)
"""The normal quantiles that C4.5 release 8 interpolates between (Quinlan 1993)."""
WEIGHT_SLACK: Final = 1e-6

LEAF_RULE: Final = "the estimated errors as a leaf are not above those of the subtree by more than 0.1"
RAISE_RULE: Final = (
    "the estimated errors of the largest branch in the node's place are at most 0.1 above those of the subtree"
)


def add_errs(weight: float, errors: float, confidence: float, *, quantile: str = "normal") -> float:
    """Return how many errors must be added to the observed ones to reach their upper confidence limit.

    Args:
        weight: Weight of the rows; a real number.
        errors: Weight of the misclassified rows, at most `weight`.
        confidence: The probability that the true error rate is above the limit; above 0.5, nothing is added.
        quantile: ``normal`` (Wilson's limit with the continuity correction), ``c45`` (the quantiles and the tail of
            C4.5 release 8), or ``exact`` (the binomial limit of Clopper and Pearson 1934).

    Source: Quinlan (1993), chapter 4.

    >>> round(add_errs(6, 0, 0.25), 6), round(add_errs(16, 1, 0.25), 6)
    (1.237797, 1.475715)
    """
    z = _deviation(confidence, quantile)
    return float(error_limits.added_errors(weight, errors, confidence, z, QUANTILES[quantile]))


def prune_pessimistic(model: Model, parameters: Pessimistic, rows: PruningRows, progress: Progress) -> Pruned:
    """Prune a classification tree by its own training rows.

    Nodes are visited from the leaves to the root. A node becomes a leaf if its estimated errors as a leaf are at most
    those of its subtree + 0.1. With ``raising``, the errors of its largest branch (the last of equally heavy ones) with
    all rows of the node are also estimated. The node then becomes a leaf only if its errors as a leaf are at most those
    of the branch + 0.1, too. Otherwise the branch replaces the node if the branch's errors are at most those of the
    subtree + 0.1. Then the node's rows are distributed over the branch, whose nodes are visited again.

    Raises:
        NotApplicable: ``raising`` is set, and the weight of the training rows is not that of the tree.
        Cancelled: `progress` was stopped.
    """
    progress.begin("pruning")
    if parameters.raising:
        steps = _with_raising(model, parameters, rows.training, progress)
    else:
        steps = _to_leaves(model, parameters, progress)
    progress.check()  # a visit that was stopped has pruned only a part of the tree
    pruned = _pruned_tree(model.tree, steps)
    return Pruned(pruned_model(model, pruned, parameters), parameters, lambda: _trace(model, parameters, steps, pruned))


@dataclass(frozen=True, slots=True)
class _Steps:
    """The replaced nodes, in the order of their replacement, and the pruned tree as the kernels write it.

    Attributes:
        node, branch: int32 (steps); each replaced node, and the branch that replaced it, -1 for a leaf.
        below, as_leaf, as_branch: float64 (steps); estimated errors of each replaced node's subtree, of the node as a
            leaf, and of its largest branch with all rows of the node (NaN without raising).
        shape: See `espalier.pruning.kernels.distribute`.
        shares, stats: As in `espalier.pruning.kernels.subtree_raising.PruningState`.
    """

    node: Ints
    branch: Ints
    below: Floats
    as_leaf: Floats
    as_branch: Floats
    shape: Ints
    shares: Floats
    stats: Floats


def _to_leaves(model: Model, parameters: Pessimistic, progress: Progress) -> _Steps:
    tree, shape = model.tree, shape_of(model.tree)
    weight, errors = tree.stats.sum(axis=1), losses(model, tree.stats)[0]
    node, figures = subtree_raising.prune_to_leaves(
        packed_tree(model).tree, shape, weight, errors, _limit(parameters), progress.state
    )
    branch, as_branch = np.full(len(node), -1, np.int32), np.full(len(node), np.nan)
    return _Steps(node, branch, figures[:, 0], figures[:, 1], as_branch, shape, tree.branch_weight, tree.stats)


def _with_raising(model: Model, parameters: Pessimistic, training: Dataset | None, progress: Progress) -> _Steps:
    assert training is not None  # noqa: S101 - see `PruningRows`
    weighted = weighted_rows(model, training, as_trained=True)
    rows_weight, tree_weight = float(weighted.weights.sum()), float(model.tree.weight[0])
    if abs(rows_weight - tree_weight) > WEIGHT_SLACK * tree_weight:
        raise NotApplicable(
            f"raising a branch counts the training rows again: their weight is {number_text(rows_weight)}, but that "
            f"of the tree is {number_text(tree_weight)}. Give the rows that the tree was grown from, or set raising "
            "to false"
        )
    tree, (n_nodes, n_classes) = model.tree, model.tree.stats.shape
    shape, shares, stats = shape_of(tree), tree.branch_weight.copy(), tree.stats.copy()
    distribution = distribute.Distribution(
        packed_tree(model).tree, shape, weighted.values, weighted.target, n_classes, np.zeros(0),
        np.empty((n_nodes, 2 * n_classes + 2)), np.zeros(n_nodes, np.bool_), constants.KEEP_SHARES,
    )  # fmt: skip
    leaves = rows_at_leaves(model, weighted, distribution)
    # With the strategy ``direction``, branch shares count all rows that go down only one branch.
    distribution.renew = constants.RENEW_ALL if model.config.missing == "direction" else constants.RENEW_KNOWN
    knows_all = not np.any(tree.fallback[tree.test != LEAF] >= 0) and tree.surrogates is None
    knows_all = bool(knows_all and np.all(weighted.target[weighted.rows] >= 0))
    state = subtree_raising.PruningState(distribution, shares, stats, _limit(parameters), knows_all)
    lines, figures = subtree_raising.prune_with_raising(state, leaves, progress.state)
    below, as_leaf, as_branch = figures[:, 0], figures[:, 1], figures[:, 2]
    return _Steps(lines[:, 0], lines[:, 1], below, as_leaf, as_branch, shape, shares, stats)


def _limit(parameters: Pessimistic) -> Any:
    z = _deviation(parameters.confidence, parameters.quantile)
    return subtree_raising.ErrorLimit(parameters.confidence, z, QUANTILES[parameters.quantile])


@lru_cache
def _deviation(confidence: float, quantile: str) -> float:
    """Return z of `added_errors`, at least 0. For ``c45``, it is interpolated in the table of C4.5."""
    if quantile == "c45":
        return float(np.interp(confidence, C45_CONFIDENCES, C45_DEVIATIONS))
    return -NormalDist().inv_cdf(confidence) if confidence < 0.5 else 0.0


def _pruned_tree(tree: Tree, steps: _Steps) -> Tree:
    shape, start, child = steps.shape.tolist(), tree.child_start.tolist(), tree.child.tolist()
    listed, pending = [], [0]
    while pending:
        node = pending.pop()
        listed.append(node)
        if shape[node] >= 0:
            pending += reversed(child[start[shape[node]] : start[shape[node] + 1]])
    nodes = np.array(listed)
    changed = dataclasses.replace(tree, branch_weight=steps.shares, stats=steps.stats)
    pruned = changed.arranged(nodes, steps.shape[nodes])
    moved = np.any(steps.stats != tree.stats, axis=1)[nodes]
    counted, weight, value = pruned.stats[moved], pruned.weight.copy(), pruned.value.copy()
    weight[moved] = counted.sum(axis=1)
    value[moved] = np.where(weight[moved] > 0, majority(counted), value[moved])
    # A node without rows has its parent's value. The parent, or the parent's value, may have changed.
    for node in np.flatnonzero((weight <= 0) & (pruned.parent >= 0)).tolist():
        if moved[node] or tree.value[nodes[node]] == tree.value[tree.parent[nodes[node]]]:
            value[node] = value[pruned.parent[node]]
    return dataclasses.replace(pruned, weight=weight, value=value)


def _trace(model: Model, parameters: Pessimistic, steps: _Steps, pruned: Tree) -> dict[str, Any]:
    raised = steps.branch >= 0
    return {
        "estimate": "estimated errors (upper confidence limit)",
        "before": counts(model.tree, _estimate(model.tree, parameters)),
        "after": counts(pruned, _estimate(pruned, parameters)),
        "steps": step_lines(
            model,
            steps.node,
            np.where(raised, RAISE_RULE, LEAF_RULE).tolist(),
            steps.below,
            np.where(raised, steps.as_branch, steps.as_leaf),
            as_leaf=steps.as_leaf.tolist(),
            as_branch=[None if np.isnan(value) else value for value in steps.as_branch.tolist()],
            raised=[node if node >= 0 else None for node in steps.branch.tolist()],
        ),
    }


def _estimate(tree: Tree, parameters: Pessimistic) -> float:
    leaves = np.flatnonzero(tree.test == LEAF)
    weights = tree.stats[leaves].sum(axis=1)
    errors = weights - tree.stats[leaves, tree.value[leaves]]
    return math.fsum(
        wrong + add_errs(weight, wrong, parameters.confidence, quantile=parameters.quantile)
        for weight, wrong in zip(weights.tolist(), errors.tolist(), strict=True)
    )
