"""Where the parts of one row end that goes many ways: a level of the tree at a time, without compiled code."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.strategies import STOP
from espalier.tree import LEAF, NOMINAL, UNKNOWN, Tree

__all__ = ["forked"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]
ALL = -1


def forked(tree: Tree, values: Sequence[float], is_number: Sequence[bool]) -> tuple[Ints, Floats]:
    """Give the leaves that some of an encoded row reaches, each once, in no order, and the share that reaches each.

    Args:
        tree: A tree without surrogates.
        values: As in `EncodedRow`.
        is_number: Of each attribute, whether a negative value is one.
    """
    row, numeric = np.array(values, dtype=np.float64), np.array(is_number, dtype=np.bool_)
    node, weight = np.zeros(1, np.int64), np.ones(1)
    leaves, weights = [], []
    while len(node):
        is_leaf = tree.test[node] == LEAF
        leaves.append(node[is_leaf])
        weights.append(weight[is_leaf])
        node, weight = _a_level_on(tree, row, numeric, node[~is_leaf], weight[~is_leaf])
    return np.concatenate(leaves), np.concatenate(weights)


def _a_level_on(
    tree: Tree, row: Floats, numeric: npt.NDArray[np.bool_], node: Ints, weight: Floats
) -> tuple[Ints, Floats]:
    """Give the children of tests that some of the row goes on to, and how much of it."""
    feature = tree.feature[node]
    value = row[feature]
    absent = np.isnan(value) | (~numeric[feature] & (value < 0))
    branch = np.where(absent, ALL, np.where(value <= tree.threshold[node], 0, 1))
    nominal = np.flatnonzero((tree.test[node] == NOMINAL) & ~absent)
    if len(nominal):
        start = tree.code_start[node[nominal]].astype(np.int64)
        code = value[nominal].astype(np.int64)
        listed = code < tree.code_start[node[nominal] + 1] - start
        branch[nominal] = np.where(listed, tree.code_branch[np.where(listed, start + code, 0)], ALL)
    branch = np.where(branch < 0, tree.fallback[node], branch)
    branch = np.where(tree.test[node] == UNKNOWN, absent, branch)
    one = np.flatnonzero(branch >= 0)
    every = np.flatnonzero((branch < 0) & (branch != STOP))
    first, stop = tree.child_start[node[every]].astype(np.int64), tree.child_start[node[every] + 1]
    counts = stop - first
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    share = tree.branch_weight[places]
    parts = np.repeat(weight[every], counts) * share
    some = share > 0
    on = tree.child[tree.child_start[node[one]] + branch[one]]
    return np.concatenate((on, tree.child[places[some]])), np.concatenate((weight[one], parts[some]))
