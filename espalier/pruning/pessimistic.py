"""Pessimistic pruning: by the upper confidence limit of the training errors, with or without raising branches."""

import dataclasses
import math
from collections.abc import Mapping
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
from espalier.pruning.spreading import Spread, shape_of, spread
from espalier.pruning.trace import Pruned, counts, pruned_model, step_lines
from espalier.tree import LEAF, Tree

__all__ = ["add_errs", "prune_pessimistic"]

Floats = npt.NDArray[np.float64]

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
    given = _training_rows(model, training) if parameters.raising else _no_rows(model)
    tree = model.tree
    shape, stats = shape_of(tree), tree.stats.copy()
    gone, put, was, as_leaf, as_branch = _pruned_shape(model, parameters, given, (shape, stats), watch)
    watch.check()
    pruned = _frozen(tree, shape, given.shares, stats)

    def trace() -> dict[str, Any]:
        raised = put >= 0
        rules = np.where(raised, RAISE_RULE, LEAF_RULE).tolist()
        lines = step_lines(
            model,
            gone,
            rules,
            was,
            np.where(raised, as_branch, as_leaf),
            as_leaf=as_leaf.tolist(),
            as_branch=[None if np.isnan(value) else value for value in as_branch.tolist()],
            raised=[node if node >= 0 else None for node in put.tolist()],
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


def _training_rows(model: Model, training: Dataset | None) -> Spread:
    if training is None:
        raise NotApplicable(
            "raising a branch counts the training rows anew, and they are not at hand: give the data set that the "
            "model was trained on, or set raising to false"
        )
    given = spread(model, training, as_trained=True, by_row=True)
    held, learned = float(given.weights.sum()), float(model.tree.weight[0])
    if abs(held - learned) > WEIGHT_SLACK * learned:
        raise NotApplicable(
            f"raising a branch counts the training rows anew: they weigh {held:g}, and the tree was made of {learned:g}"
            ". Give the rows that it was grown from, or set raising to false"
        )
    return given


def _no_rows(model: Model) -> Spread:
    """Prepare the tree alone."""
    features = model.schema.features
    empty = tuple(np.zeros(0, np.int32) if feature.coded else np.zeros(0) for feature in features)
    return spread(model, Dataset(model.schema, empty), by_row=True)


def _pruned_shape(
    model: Model, parameters: Pessimistic, given: Spread, written: tuple[npt.NDArray[np.int32], Floats], watch: Progress
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats, Floats, Floats]:
    from espalier.kernels import raising, spreading  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before
    from espalier.kernels.jit import phase_of  # noqa: PLC0415

    z = deviation(parameters.confidence, parameters.quantile)
    limit = (parameters.confidence, z, QUANTILES[parameters.quantile])
    rows = (given.values.T, given.rows, given.weights, given.target)
    arrays = (given.nodes, given.substitutes, written[0], given.shares, written[1])
    # Where unknown values take a learned side, a branch's share is that of all rows.
    renew = spreading.RENEW_ALL if model.config.missing == "direction" else spreading.RENEW_KNOWN
    exact = True if parameters.quantile == "exact" else None
    arguments = (*arrays, *rows, *limit, exact, parameters.raising, renew, watch.state)
    watch.begin(phase_of(raising.prune_pessimistically, "pruning", arguments))
    gone: tuple[Any, ...] = raising.prune_pessimistically(*arguments)
    return gone[0], gone[1], gone[2], gone[3], gone[4]


def _frozen(tree: Tree, shape: npt.NDArray[np.int32], shares: Floats, stats: Floats) -> Tree:
    """Make the tree of what the kernel has written."""
    from espalier.kernels import spreading  # noqa: PLC0415

    nodes, _, _ = spreading.arrange(tree.child_start, tree.child, shape)
    changed = dataclasses.replace(tree, branch_weight=shares, stats=stats)
    pruned = changed.arranged(nodes, shape[nodes])
    moved = np.any(pruned.stats != tree.stats[nodes], axis=1)
    weight = np.where(moved, pruned.stats.sum(axis=1), pruned.weight)
    value = np.where(moved & (weight > 0), pruned.stats.argmax(axis=1), pruned.value).astype(np.int32)
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
