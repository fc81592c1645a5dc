"""The branch that one row takes at every test of a tree, whether or not the row reaches that test."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.arrays import Floats, Ints, Mask
from espalier.explanation.tree_levels import tree_levels
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, NOMINAL, UNKNOWN
from espalier.model.tree import Tree
from espalier.prediction.tree_predictor import TreePredictor, tree_predictor

ALL = -1
"""Means all branches: each takes a share of the row."""


@dataclass(frozen=True, slots=True)
class RowFlow:
    """The effect of each test on one row; n nodes.

    Attributes:
        branch: int32 (n); the branch taken, `ALL`, or `STOP` if the row ends at the test; 0 at leaves.
        share: float64 (n); the share of a row at the node's parent that goes on to the node; 1 at the root.
        absent: bool (n); tests that the row's own value does not decide, because it is missing or unseen there.
        surrogates_used: For each absent test with surrogates, the attributes of these up to the first that decides.
    """

    branch: Ints
    share: Floats
    absent: Mask
    surrogates_used: Mapping[int, tuple[int, ...]]

    def decided_by(self, tree: Tree, known: Collection[int]) -> Mask:
        """Return for each node whether the attributes with the indexes in `known` determine the branch: bool (n)."""
        is_known = np.zeros(int(max(tree.feature.max(initial=0), *known, 0)) + 2, np.bool_)
        is_known[list(known)] = True
        decided: Mask = is_known[tree.feature]
        for node, places in self.surrogates_used.items():
            decided[node] &= all(place in known for place in places)
        return decided


def row_flow(model: Model, predictor: TreePredictor, values: Sequence[float]) -> RowFlow:
    """Return the branch of an encoded row at every test of a tree."""
    tree, levels = model.tree, tree_levels(model.tree)
    row, is_number = np.array([*values, 0.0]), np.array([*predictor.is_number, True], dtype=np.bool_)
    value = row[tree.feature]
    missing = np.isnan(value) | (~is_number[tree.feature] & (value < 0))
    branch = np.where(value <= tree.threshold, 0, 1).astype(np.int32)
    nominal = np.flatnonzero((tree.test == NOMINAL) & ~missing)
    code = value[nominal].astype(np.int64)
    listed = code < np.diff(tree.code_start)[nominal]
    places = np.where(listed, tree.code_start[nominal] + code, 0)
    branch[nominal] = np.where(listed, tree.code_branch[places], -1) if len(nominal) else 0
    is_test = tree.test != LEAF
    is_unknown_test = tree.test == UNKNOWN
    absent = is_test & ~is_unknown_test & (missing | (branch < 0))
    branch = np.where(is_unknown_test, missing, np.where(absent, tree.fallback, branch)).astype(np.int32)
    surrogates_used = _apply_surrogates(predictor, absent & tree.has_surrogates, branch, values)
    branch[~is_test] = 0
    share = np.ones(tree.n_nodes)
    at_parent = branch[tree.parent[1:]]
    share[1:] = np.where(at_parent == ALL, levels.share[1:], at_parent == tree.branches[1:])
    return RowFlow(branch, share, absent, surrogates_used)


def visited_nodes(model: Model, row: Mapping[str, Any]) -> list[int]:
    """Return the nodes that a row visits, ascending; a test that divides the row leads to several branches."""
    predictor = tree_predictor(model)
    flow = row_flow(model, predictor, predictor.encode(row).values)
    return [int(node) for node in np.flatnonzero(model.tree.outside(np.flatnonzero(flow.share <= 0)))]


def attributes_read(tree: Tree, flow: RowFlow, nodes: Mask) -> list[int]:
    """Return the indexes of the attributes that are read at the tests among `nodes`, by a test or by its surrogates.

    `nodes` is bool (n). Each index occurs once, in the order of the nodes.
    """
    read: dict[int, None] = {}
    for node in np.flatnonzero(nodes & (tree.test != LEAF)).tolist():
        read |= dict.fromkeys([int(tree.feature[node]), *flow.surrogates_used.get(node, ())])
    return list(read)


def _apply_surrogates(
    predictor: TreePredictor, absent: Mask, branch: Ints, values: Sequence[float]
) -> dict[int, tuple[int, ...]]:
    """Set `branch` at the absent tests that have surrogates. Return the attributes that surrogates read, by node."""
    used: dict[int, tuple[int, ...]] = {}
    if predictor.surrogates is None:
        return used
    start, feature = predictor.surrogates.start, predictor.surrogates.feature
    for node in np.flatnonzero(absent).tolist():
        branch[node] = predictor.branch(node, values)
        decided = predictor.surrogates.deciding(node, values)
        last = start[node + 1] if decided < 0 else decided + 1
        used[node] = tuple(dict.fromkeys(feature[start[node] : last]))
    return used
