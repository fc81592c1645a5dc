"""Reduced-error pruning (Quinlan 1987): the error on held-out rows decides whether a subtree is pruned."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats
from espalier.config.pruning import ReducedError
from espalier.growing.class_weights import class_factors
from espalier.model.majority import majority
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.progress import Progress
from espalier.pruning.distribute import losses, node_sums, weighted_rows
from espalier.pruning.kernels import bottom_up
from espalier.pruning.result import Pruned, PruningRows, collapsed, counts, notes_on_rows, pruned_model, step_lines

ROUNDING: Final = 1e-12
"""Slack for rounding errors, as a share of the largest loss, so that it does not depend on the target's unit."""

RULES: Final[Mapping[tuple[str, str], str]] = {
    ("prune", "current"): "the held-out loss as a leaf is not above that of the subtree",
    ("keep", "current"): "the held-out loss as a leaf is below that of the subtree",
    ("prune", "initial"): "with a leaf here, the tree's held-out loss is not above that of the unpruned tree",
    ("keep", "initial"): "with a leaf here, the tree's held-out loss is below that of the unpruned tree",
}


def prune_reduced_error(model: Model, parameters: ReducedError, rows: PruningRows, progress: Progress) -> Pruned:
    """Prune a tree by rows that it has not learned from.

    ``bottom_up`` visits each node once, from the leaves to the root; ``greedy`` repeatedly prunes the node whose
    pruning lowers the loss most. With ``ties="prune"``, a node becomes a leaf only if the tree's held-out loss does not
    rise; with ``"keep"``, only if the loss falls. The comparison is with the tree as pruned so far or, with
    ``compare="initial"``, with the unpruned tree. The loss is the weight of misclassified rows, or the sum of squared
    errors. A new leaf has the value that the node had in the tree. Rows with missing values go down the tree as in a
    prediction. With ``backfit``, the held-out rows are then added to the statistics and the values of the nodes, with
    class weights. The loss does not use class weights.

    Raises:
        DataError: The held-out rows do not have the model's columns.
        Cancelled: `progress` was stopped.
    """
    held_out, tree = rows.held_out, model.tree
    assert held_out is not None  # noqa: S101 - see `PruningRows`
    sums = node_sums(model, weighted_rows(model, held_out))
    loss, _ = losses(model, sums)
    before = float(loss[tree.test == LEAF].sum())
    slack = ROUNDING * (max(before, float(loss.max())) or 1.0)
    ties, from_initial = parameters.ties == "prune", parameters.compare == "initial"
    rules = (ties, parameters.prune_root, from_initial, slack)
    if parameters.order == "greedy":
        gone, below = bottom_up.prune_greedily(tree.parent, tree.size, tree.test == LEAF, loss, *rules)
    else:
        gone, below = bottom_up.reduce_errors(tree.parent, tree.test == LEAF, loss, *rules)
    progress.check()
    pruned, nodes = collapsed(tree, gone)
    after = float(loss[nodes[pruned.test == LEAF]].sum())
    if parameters.backfit:
        classes = model.schema.classes
        factors = np.append(class_factors(classes, model.config, rows.training), 1.0) if classes else 1.0
        pruned = _backfitted(pruned, sums[nodes] * factors, n_classes=len(classes))

    def trace() -> dict[str, Any]:
        rule = RULES[parameters.ties, parameters.compare]
        return {
            "estimate": "validation errors" if model.schema.classes else "validation sum of squared errors",
            "held_out_rows": held_out.n_rows,
            **notes_on_rows(model, held_out),
            "before": counts(tree, before),
            "after": counts(pruned, after),
            "steps": step_lines(model, gone, rule, below, loss[gone]),
        }

    return Pruned(pruned_model(model, pruned, parameters), parameters, trace)


def _backfitted(tree: Tree, sums: Floats, *, n_classes: int) -> Tree:
    """Return the tree with the held-out rows added to each node's statistics and value; branch shares do not change."""
    if n_classes:
        stats = tree.stats + sums[:, :n_classes]
        weight = tree.weight + sums[:, :n_classes].sum(axis=1)
        value = np.where(weight > 0, majority(stats), tree.value)
    else:
        stats = _pooled(tree, sums)
        weight = tree.weight + sums[:, 0]
        value = np.where(weight > 0, stats[:, 1], tree.value)
    for node in np.flatnonzero(weight <= 0).tolist():  # not the root, which has weight
        value[node] = value[tree.parent[node]]
    return dataclasses.replace(tree, weight=weight, stats=stats, value=value)


def _pooled(tree: Tree, sums: Floats) -> Floats:
    """Return weight, mean and sum of squared deviations of each node's training and held-out rows, float64 (n, 3).

    `sums` comes from `node_sums`: the sums of w, w·d and w·d² over each node's held-out rows; d = target - node value.
    """
    own, other, has_rows = tree.stats[:, 0], sums[:, 0], sums[:, 0] > 0
    shift = np.divide(sums[:, 1], other, out=np.zeros(len(sums)), where=has_rows)
    total = np.where(has_rows, own + other, 1.0)
    own_mean = np.where(has_rows & (own <= 0), tree.value + shift, tree.stats[:, 1])
    gap = np.where(has_rows, tree.value + shift - own_mean, 0.0)
    squares = tree.stats[:, 2] + np.maximum(sums[:, 2] - shift * sums[:, 1], 0.0) + gap * gap * own * other / total
    return np.stack([own + other, own_mean + gap * other / total, squares], axis=1)
