"""Prune model trees (Quinlan 1992; Wang and Witten 1997): compare a node's model with the models below it."""

import math
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats, Longs
from espalier.config.pruning import ModelTree
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.progress import Progress
from espalier.pruning.distribute import squared_errors
from espalier.pruning.result import Pruned, PruningRows, collapsed, counts, pruned_model, step_lines

WITHOUT_FREEDOM: Final = 10.0
"""Factor on the error of models with at least as many parameters as the node's training weight."""
SLACK: Final = 1e-6
"""Slack as a fraction of the root's standard deviation: rounding errors must not save a subtree from pruning."""
RULE: Final = "the corrected error of the node's own model is not above that of its subtree"


def prune_model_tree(model: Model, parameters: ModelTree, rows: PruningRows, progress: Progress) -> Pruned:
    """Prune bottom-up: a node becomes a leaf if the corrected error of its model is not above that of its subtree.

    The corrected error is rmse·(n + 2v)/(n − v), or 10·rmse if n ≤ v. n is the node's training weight. v is the number
    of parameters: those of the node's model or, for the subtree, those of its leaves' models plus one per test. A
    constant has one parameter. The subtree's rmse pools the unsmoothed residuals of its leaves. `rows` is not read.

    Raises:
        Cancelled: `progress` was stopped.
    """
    tree = model.tree
    nodes = zip(_own_squares(tree).tolist(), tree.weight.tolist(), _own_parameters(tree).tolist(), strict=True)
    own = np.array([_corrected(*node) for node in nodes])
    gone, before, estimates = _walk(tree, own)
    progress.check()
    pruned, _ = collapsed(tree, np.array(gone, dtype=np.intp))

    def trace() -> dict[str, Any]:
        leaves = tree.test == LEAF
        n_parameters = int(_own_parameters(tree)[leaves].sum()) + tree.n_nodes - tree.n_leaves
        unpruned = _corrected(float(_own_squares(tree)[leaves].sum()), float(tree.weight[0]), n_parameters)
        return {
            "estimate": "root mean squared error on the training rows, times (n + 2v)/(n − v)",
            "before": counts(tree, unpruned),
            "after": counts(pruned, estimates[0]),
            "steps": step_lines(model, np.array(gone, dtype=np.intp), RULE, before, own[gone]),
        }

    return Pruned(pruned_model(model, pruned, parameters), parameters, trace)


def _own_squares(tree: Tree) -> Floats:
    """Return the weighted sum of the squared residuals of each node's own model on the node's training rows."""
    return squared_errors(tree) if tree.linear is None else tree.linear.squares


def _own_parameters(tree: Tree) -> Longs:
    if tree.linear is not None:
        return tree.linear.n_terms() + 1
    return np.ones(tree.n_nodes, dtype=np.int64)


def _walk(tree: Tree, own: Floats) -> tuple[list[int], list[float], list[float]]:
    """Return the nodes that become leaves, the estimates of their subtrees, and all nodes' estimates after pruning."""
    squares, parameters = _own_squares(tree).tolist(), _own_parameters(tree).tolist()
    weight, alone, parents = tree.weight.tolist(), own.tolist(), tree.parent.tolist()
    is_leaf = (tree.test == LEAF).tolist()
    slack = SLACK * math.sqrt(tree.stats[0, 2] / tree.stats[0, 0])
    below_squares, below_parameters = [0.0] * tree.n_nodes, [1] * tree.n_nodes
    gone, before = [], []
    for node in range(tree.n_nodes - 1, -1, -1):
        if not is_leaf[node]:
            subtree = _corrected(below_squares[node], weight[node], below_parameters[node])
            if alone[node] <= subtree + slack:
                gone.append(node)
                before.append(subtree)
                is_leaf[node] = True
            else:
                alone[node] = subtree
        if is_leaf[node]:
            below_squares[node], below_parameters[node] = squares[node], parameters[node]
        if node > 0:
            below_squares[parents[node]] += below_squares[node]
            below_parameters[parents[node]] += below_parameters[node]
    return gone, before, alone


def _corrected(squares: float, weight: float, parameters: int) -> float:
    """Return the corrected error of `prune_model_tree` for n = `weight` and v = `parameters`; 0 if n is 0."""
    if weight <= 0:
        return 0.0
    factor = (weight + 2 * parameters) / (weight - parameters) if weight > parameters else WITHOUT_FREEDOM
    return math.sqrt(squares / weight) * factor
