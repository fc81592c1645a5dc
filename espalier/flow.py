"""Where one row goes at every test of a tree, whether or not it comes there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from espalier.levels import levels_of
from espalier.model import Model
from espalier.prediction import Router
from espalier.strategies import STOP
from espalier.tree import LEAF, NOMINAL, UNKNOWN

__all__ = ["ALL", "Flow", "asked_on_the_way", "flow_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

ALL = -1
"""In the place of a branch: the row goes down all of them."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What each test does with one row, n nodes.

    Attributes:
        branch: int32 (n); the branch taken, `ALL`, or `STOP` where the row ends at the test; 0 at leaves.
        part: float64 (n); the share of the row at its parent that goes on to each node; 1 at the root.
        absent: bool (n); tests that the row's own value does not decide: it is missing, or was never seen there.
        stand_ins: Of those, where surrogates were looked at: their attributes, best first, up to the one that decided.
    """

    branch: Ints
    part: Floats
    absent: Mask
    stand_ins: Mapping[int, tuple[int, ...]]

    @property
    def ends(self) -> npt.NDArray[np.intp]:
        """The tests at which the row ends where it comes there."""
        return np.flatnonzero(self.branch == STOP)


def flow_of(model: Model, way: Router, values: Sequence[float]) -> Flow:
    """Send an encoded row through every test of a tree.

    Args:
        model: A tree.
        way: Its router.
        values: As in `EncodedRow`.
    """
    tree, levels = model.tree, levels_of(model.tree)
    row, is_number = np.array([*values, 0.0]), np.array([*way.is_number, True], dtype=np.bool_)
    value = row[tree.feature]
    missing = np.isnan(value) | (~is_number[tree.feature] & (value < 0))
    branch = np.where(value <= tree.threshold, 0, 1).astype(np.int32)
    nominal = np.flatnonzero((tree.test == NOMINAL) & ~missing)
    code = value[nominal].astype(np.int64)
    listed = code < np.diff(tree.code_start)[nominal]
    places = np.where(listed, tree.code_start[nominal] + code, 0)
    branch[nominal] = np.where(listed, tree.code_branch[places], -1) if len(nominal) else 0
    is_test = tree.test != LEAF
    asks_whether = tree.test == UNKNOWN
    absent = is_test & ~asks_whether & (missing | (branch < 0))
    branch = np.where(asks_whether, missing, np.where(absent, tree.fallback, branch)).astype(np.int32)
    stand_ins = _by_surrogates(way, absent, branch, values)
    branch[~is_test] = 0
    part = np.ones(tree.n_nodes)
    at_parent = branch[tree.parent[1:]]
    part[1:] = np.where(at_parent == ALL, levels.share[1:], at_parent == tree.branches[1:])
    return Flow(branch, part, absent, stand_ins)


def asked_on_the_way(model: Model, flow: Flow) -> list[int]:
    """Give the attributes that are looked at where the row comes, in the order of the nodes, each once."""
    tree = model.tree
    reached = tree.outside(np.flatnonzero(flow.part <= 0))
    tests = np.flatnonzero(reached & (tree.test != LEAF))
    features = tree.feature[tests].tolist()
    if not flow.stand_ins:
        return list(dict.fromkeys(features))
    asked: dict[int, None] = {}
    for node, feature in zip(tests.tolist(), features, strict=True):
        asked |= dict.fromkeys([feature, *flow.stand_ins.get(node, ())])
    return list(asked)


def _by_surrogates(way: Router, absent: Mask, branch: Ints, values: Sequence[float]) -> dict[int, tuple[int, ...]]:
    """Set the branch of each absent test that has surrogates; give those that were looked at."""
    found: dict[int, tuple[int, ...]] = {}
    if way.substitutes is None:
        return found
    start, feature = way.substitutes.start, way.substitutes.feature
    for node in np.flatnonzero(absent).tolist():
        if start[node] == start[node + 1]:
            continue
        branch[node] = way.branch(node, values)
        decided = way.substitutes.deciding(node, values)
        last = start[node + 1] if decided < 0 else decided + 1
        found[node] = tuple(dict.fromkeys(feature[start[node] : last]))
    return found
