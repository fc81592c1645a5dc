"""Pessimistic pruning: by the upper confidence limit of the training errors, with or without raising branches."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.dataset import Dataset
from espalier.errors import NotApplicable
from espalier.fields import parameters_to_dict
from espalier.kernels import limits
from espalier.model import Model
from espalier.progress import Progress
from espalier.pruners import Pessimistic, pruner_name
from espalier.pruning.raised_branches import prune_with_raising
from espalier.pruning.seated_rows import TrainingRows, training_rows
from espalier.pruning.spreading import shape_of, tree_arrays
from espalier.pruning.trace import Pruned, counts, pruned_model, step_lines
from espalier.tree import LEAF, Tree

__all__ = ["add_errs", "prune_pessimistic"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

QUANTILES: Final[Mapping[str, int]] = {"normal": limits.NORMAL, "c45": limits.C45, "exact": limits.EXACT}
C45_CONFIDENCES: Final = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.0)
C45_DEVIATIONS: Final = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.0)
"""The normal quantiles that C4.5 release 8 interpolates between (Quinlan 1993)."""
WEIGHT_SLACK: Final = 1e-6

LEAF_RULE: Final = "the estimated errors as a leaf are not above those of the subtree by more than 0.1"
RAISE_RULE: Final = (
    "the estimated errors with the largest branch in its place are not above those of the subtree by more than 0.1"
)


def add_errs(weight: float, errors: float, confidence: float, *, quantile: str = "normal") -> float:
    """Give what is added to `errors` among rows of `weight` to reach the upper confidence limit.

    Args:
        weight: Of the rows; a real number.
        errors: Weight of those that are wrong, at most `weight`.
        confidence: The chance that the true error rate is above the limit.
        quantile: ``normal`` (Wilson's limit with the continuity correction), ``c45`` (the quantiles and the tail of
            release 8), or ``exact`` (the binomial limit of Clopper and Pearson 1934).

    Source: Quinlan (1993), chapter 4.

    >>> round(add_errs(6, 0, 0.25), 6), round(add_errs(16, 1, 0.25), 6)
    (1.237797, 1.475715)
    """
    return limits.added_errors(weight, errors, confidence, deviation(confidence, quantile), QUANTILES[quantile])


def deviation(confidence: float, quantile: str) -> float:
    """Give the standard normal deviation that goes with `confidence`; 0 beyond a half, where it is not looked at."""
    if quantile == "c45":
        return float(np.interp(confidence, C45_CONFIDENCES, C45_DEVIATIONS))
    return -NormalDist().inv_cdf(confidence) if confidence < 0.5 else 0.0


def prune_pessimistic(
    model: Model, parameters: Pessimistic, training: Dataset | None, progress: Progress | None = None
) -> Pruned:
    """Prune a classification tree by its own training rows.

    Each node is looked at once, from the leaves to the root. It becomes a leaf if its estimated errors then are at most
    those of its subtree + 0.1 and, with ``raising``, at most those of its largest branch with all its rows + 0.1; else,
    with ``raising``, that branch takes its place if its estimate is at most the subtree's + 0.1: the rows are counted
    anew below, and the nodes there are looked at again. The largest branch is the heaviest, of equals the last.

    Args:
        model: A classification tree.
        parameters: How.
        training: The rows that it was grown from; ``raising`` counts them anew.
        progress: Stopped by another thread.

    Raises:
        NotApplicable: A regression; or ``raising`` without the training rows.
        Cancelled: `progress` was stopped.
    """
    if not model.schema.classes:
        raise NotApplicable("pessimistic pruning estimates numbers of errors: the target of this model is a number")
    watch = progress if progress is not None else Progress()
    tree = model.tree
    went = _pruned(model, parameters, training, watch)
    pruned = _frozen(tree, went)

    def trace() -> dict[str, Any]:
        raised = went.put >= 0
        lines = step_lines(
            model,
            went.node,
            np.where(raised, RAISE_RULE, LEAF_RULE).tolist(),
            went.below,
            np.where(raised, went.as_branch, went.as_leaf),
            as_leaf=went.as_leaf.tolist(),
            as_branch=[None if np.isnan(value) else value for value in went.as_branch.tolist()],
            raised=[node if node >= 0 else None for node in went.put.tolist()],
        )
        return {
            "method": pruner_name(parameters),
            "parameters": parameters_to_dict(parameters),
            "estimate": "estimated errors (upper confidence limit)",
            "before": counts(tree, _estimate(tree, parameters)),
            "after": counts(pruned, _estimate(pruned, parameters)),
            "steps": lines,
        }

    return Pruned(pruned_model(model, pruned, parameters), trace)


def _training_rows(model: Model, training: Dataset | None) -> TrainingRows:
    if training is None:
        raise NotApplicable(
            "raising a branch counts the training rows anew, and they are not at hand: give the data set that the "
            "model was trained on, or set raising to false"
        )
    given = training_rows(model, training)
    held, learned = float(given.weights.sum()), float(model.tree.weight[0])
    if abs(held - learned) > WEIGHT_SLACK * learned:
        raise NotApplicable(
            f"raising a branch counts the training rows anew: they weigh {held:g}, and the tree was made of {learned:g}"
            ". Give the rows that it was grown from, or set raising to false"
        )
    return given


@dataclass(frozen=True, slots=True)
class _Steps:
    """The nodes that went, in their order, and the tree as it is then.

    Attributes:
        node, put: int32; each node, and the branch in its place, -1 for a leaf.
        below, as_leaf, as_branch: float64; the estimates of its subtree, as a leaf, and of the branch (NaN without
            raising).
        shape, shares, stats: As the kernels have them.
    """

    node: Ints
    put: Ints
    below: Floats
    as_leaf: Floats
    as_branch: Floats
    shape: Ints
    shares: Floats
    stats: Floats


def _pruned(model: Model, parameters: Pessimistic, training: Dataset | None, watch: Progress) -> _Steps:
    from espalier.kernels import raising  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before
    from espalier.kernels.jit import phase_of  # noqa: PLC0415

    tree = model.tree
    z = deviation(parameters.confidence, parameters.quantile)
    limit = raising.Limit(parameters.confidence, z, QUANTILES[parameters.quantile])
    # Known to the compiler: the exact limit is a lot of code.
    exact = True if parameters.quantile == "exact" else None
    if parameters.raising:
        made, lines, figures = prune_with_raising(model, _training_rows(model, training), limit, exact, watch)
        below, as_leaf, as_branch = figures[:, 0], figures[:, 1], figures[:, 2]
        return _Steps(lines[:, 0], lines[:, 1], below, as_leaf, as_branch, made.shape, made.shares, made.stats)
    nodes, _ = tree_arrays(tree)
    arguments = (nodes, shape := shape_of(tree), tree.stats, limit, exact, watch.state)
    watch.begin(phase_of(raising.prune_to_leaves, "pruning", arguments))
    gone, figures = raising.prune_to_leaves(*arguments)
    watch.check()
    put, as_branch = np.full(len(gone), -1, np.int32), np.full(len(gone), np.nan)
    return _Steps(gone, put, figures[0::2], figures[1::2], as_branch, shape, tree.branch_weight, tree.stats)


def _frozen(tree: Tree, went: _Steps) -> Tree:
    """Make the tree of what the kernels have written."""
    from espalier.kernels import spreading  # noqa: PLC0415

    nodes, parent, size = spreading.arrange(tree.child_start, tree.child, went.shape)
    changed = dataclasses.replace(tree, branch_weight=went.shares, stats=went.stats)
    pruned = changed.arranged(nodes, went.shape[nodes], outline=(parent, size))
    has_moved = np.zeros(tree.n_nodes, np.bool_)
    # Few rows differ, and each is short: all of them are not gone through one by one.
    has_moved[np.flatnonzero(went.stats != tree.stats) // tree.stats.shape[1]] = True
    moved = has_moved[nodes]
    counted, weight, value = pruned.stats[moved], pruned.weight.copy(), pruned.value.copy()
    weight[moved] = counted.sum(axis=1)
    value[moved] = np.where(weight[moved] > 0, counted.argmax(axis=1), value[moved])
    # A node without rows answers as its parent does, and that may be another one now, or of another class.
    for node in np.flatnonzero((weight <= 0) & (pruned.parent >= 0)).tolist():
        if moved[node] or tree.value[nodes[node]] == tree.value[tree.parent[nodes[node]]]:
            value[node] = value[pruned.parent[node]]
    return dataclasses.replace(pruned, weight=weight, value=value)


def _estimate(tree: Tree, parameters: Pessimistic) -> float:
    """Add up the estimated errors of the leaves."""
    leaves = tree.stats[tree.test == LEAF]
    weights, most = leaves.sum(axis=1).tolist(), leaves.max(axis=1).tolist()
    z, quantile = deviation(parameters.confidence, parameters.quantile), QUANTILES[parameters.quantile]
    return math.fsum(
        weight - right + limits.added_errors(weight, weight - right, parameters.confidence, z, quantile)
        for weight, right in zip(weights, most, strict=True)
    )
