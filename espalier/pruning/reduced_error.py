"""Reduced-error pruning (Quinlan 1987): a subtree goes where held-out rows do not vote for it."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.config import ReducedError, pruner_name
from espalier.dataset import Dataset
from espalier.evaluation import encoded_columns, target_of
from espalier.fields import parameters_to_dict
from espalier.model import Model
from espalier.prediction import leaves_of, router
from espalier.pruning.trace import Pruned
from espalier.rendering import branch_text
from espalier.tree import LEAF

__all__ = ["prune_reduced_error"]

Floats = npt.NDArray[np.float64]
NEVER_WORSE = 1e-9
"""Slack for sums of fractional weights: a loss of less than this is none."""


def prune_reduced_error(model: Model, parameters: ReducedError, held_out: Dataset) -> Pruned:
    """Prune bottom-up: one pass from the leaves to the root.

    A node becomes a leaf when its held-out loss as a leaf is not above (``ties="prune"``) or is below (``"keep"``) that
    of the subtree as pruned so far. The loss is the weight of wrong answers, or the sum of squared errors. A leaf
    answers with its training rows' majority or mean. Rows with missing values are routed as in an answer, with their
    weights.

    Raises:
        DataError: The held-out rows do not have the model's columns.
    """
    tree = model.tree
    loss = _leaf_losses(model, held_out)
    subtree = np.where(tree.test == LEAF, loss, 0.0)
    mask = np.zeros(tree.n_nodes, dtype=np.bool_)
    steps: list[dict[str, Any]] = []
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.test[node] != LEAF and (node > 0 or parameters.prune_root):
            change = float(loss[node] - subtree[node])
            if change <= NEVER_WORSE if parameters.ties == "prune" else change < -NEVER_WORSE:
                mask[node] = True
                steps.append(_step(model, node, float(subtree[node]), float(loss[node])))
                subtree[node] = loss[node]
        if node > 0:
            subtree[tree.parent[node]] += subtree[node]
    pruned = tree.collapsed(mask)
    before = float(loss[tree.test == LEAF].sum())
    method = {"method": pruner_name(parameters), **parameters_to_dict(parameters)}
    trace = {
        "method": method["method"],
        "parameters": parameters_to_dict(parameters),
        "estimate": "validation errors" if model.task == "classification" else "validation sum of squared errors",
        "held_out_rows": held_out.n_rows,
        "before": {"leaves": tree.n_leaves, "nodes": tree.n_nodes, "estimate": before},
        "after": {"leaves": pruned.n_leaves, "nodes": pruned.n_nodes, "estimate": float(subtree[0])},
        "steps": steps,
    }
    return Pruned(dataclasses.replace(model, body=pruned, pruning=method, notes=()), trace)


def _leaf_losses(model: Model, held_out: Dataset) -> Floats:
    """Give each node's loss on the held-out rows that reach it, were it a leaf: float64 (n)."""
    tree, way = model.tree, router(model)
    target, weight, values = target_of(model, held_out), held_out.weight, encoded_columns(model, held_out)
    leaves = leaves_of(model, values)
    loss = np.zeros(tree.n_nodes)
    # Rows with one way down: all that share a leaf share the nodes above it.
    level, rows = leaves[leaves >= 0], np.flatnonzero(leaves >= 0)
    while len(rows):
        np.add.at(loss, level, weight[rows] * _misses(model, level, target[rows]))
        rows, level = rows[level > 0], tree.parent[level[level > 0]]
    for row in np.flatnonzero(leaves < 0).tolist():
        shares: dict[int, float] = {}
        for visit in way.visits(values[:, row].tolist()):
            for node in visit.nodes:
                shares[node] = shares.get(node, 0.0) + visit.weight
        nodes = np.array(list(shares))
        loss[nodes] += weight[row] * np.array(list(shares.values())) * _misses(model, nodes, target[row])
    return loss


def _misses(model: Model, nodes: npt.NDArray[Any], target: Any) -> Floats:
    """Give 1 where a node's answer is not the class, or the square of what it misses the number by."""
    value = model.tree.value[nodes]
    return np.asarray(value != target, dtype=np.float64) if model.schema.classes else (value - target) ** 2


def _step(model: Model, node: int, before: float, after: float) -> dict[str, Any]:
    tree = model.tree
    return {
        "node": node,
        "attribute": model.schema.attributes[int(tree.feature[node])].name,
        "reached_by": branch_text(model, node) if node else "every row",
        "rule": "held-out errors as a leaf are not above those of the subtree",
        "before": before,
        "after": after,
        "weight": float(tree.weight[node]),
        "nodes_removed": int(tree.size[node]) - 1,
    }
