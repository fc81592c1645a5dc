"""The parts of a tree that the fast lane grew, put together: the arrays of `espalier.tree.Tree`.

The top part has leaves at which another part goes on. The subtree of such a leaf is one stretch of the preorder, so
once the sizes are known the parts are written side by side, by all threads.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.kernels import codes as c
from espalier.kernels import fast_nodes

__all__ = ["Part", "joined"]

Array = npt.NDArray[Any]

CUTS_WORTH_SHARING: Final = 50_000


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that were grown together, as `espalier.kernels.fast_nodes` lays them out; node 0 is their root.

    Attributes:
        root: Which node of the top part that is; the top is a part itself, with root 0.
    """

    root: int
    n_nodes: int
    ints: Array
    reals: Array
    stats: Array

    @property
    def n_bytes(self) -> int:
        """What its nodes take of the tables."""
        return self.n_nodes * sum(table.strides[0] for table in (self.ints, self.reals, self.stats))


def joined(
    rules: Any, parts: list[Part], columns: Sequence[Array], nominal: Sequence[bool], pool: ThreadPoolExecutor
) -> dict[str, Array]:
    """Give the arrays of the tree by name, all but those of surrogates and linear models.

    parts: the top first; emptied, so that what is written already takes no memory. columns: of an attribute each,
    floats or int32 codes; nominal: whether a code stands for a category.
    """
    top = parts.pop(0)
    n_nodes = top.n_nodes + sum(part.n_nodes - 1 for part in parts)
    whole = _Whole(
        feature=np.empty(n_nodes, np.int32),
        size=np.empty(n_nodes, np.int32),
        weight=np.empty(n_nodes),
        gain=np.empty(n_nodes),
        stats=np.empty((n_nodes, top.stats.shape[1])),
        beside=np.empty((n_nodes, 2), np.int32),
    )
    sizes = np.ones(top.n_nodes, np.int32)
    sizes[[part.root for part in parts]] = [part.n_nodes for part in parts]
    places = whole.take(top, sizes, 0)

    def write(_: int) -> None:
        part = parts.pop()
        whole.take(part, np.ones(part.n_nodes, np.int32), int(places[part.root]))

    list(pool.map(write, range(len(parts))))
    return whole.arrays(rules, columns, nominal, pool)


@dataclass(frozen=True, slots=True)
class _Whole:
    """What is written node by node, in preorder; the rest follows."""

    feature: Array
    size: Array
    weight: Array
    gain: Array
    stats: Array
    beside: Array

    def take(self, part: Part, sizes: Array, place: int) -> Array:
        places: Array = fast_nodes.lay_out(
            part.n_nodes, part.ints, part.reals, part.stats, sizes, place,
            self.feature, self.size, self.weight, self.gain, self.stats, self.beside,
        )  # fmt: skip
        return places

    def arrays(
        self, rules: Any, columns: Sequence[Array], nominal: Sequence[bool], pool: ThreadPoolExecutor
    ) -> dict[str, Array]:
        n_nodes = len(self.feature)
        inner = np.flatnonzero(self.feature >= 0).astype(np.int32)
        left = inner + np.int32(1)
        right = left + self.size[left]
        by_category = np.array([*nominal, False])[self.feature]  # a leaf has -1, the last
        test = np.where(by_category, c.NOMINAL, c.NUMERIC).astype(np.int8)
        test[self.feature < 0] = c.LEAF
        parent = np.full(n_nodes, -1, np.int32)
        parent[left] = parent[right] = inner
        fallback = np.full(n_nodes, -1, np.int32)
        if rules.missing not in (c.FRACTIONAL, c.SPREAD):
            fallback[inner] = self.weight[right] > self.weight[left]
        known = self.weight[left] + self.weight[right]
        return {
            "parent": parent,
            "size": self.size,
            "child_start": _starts(self.feature >= 0),
            "child": _alternating(left, right),
            "feature": self.feature,
            "test": test,
            "threshold": self._thresholds(rules, columns, by_category, len(nominal), pool),
            "code_start": _starts(by_category),
            "code_branch": np.tile(np.arange(2, dtype=np.int32), int(np.count_nonzero(by_category))),
            "fallback": fallback,
            "branch_weight": _alternating(self.weight[left] / known, self.weight[right] / known),
            "weight": self.weight,
            "gain": self.gain,
            "value": np.argmax(self.stats, axis=1).astype(np.int32) if rules.n_classes else self.stats[:, 1].copy(),
            "stats": self.stats,
        }

    def _thresholds(
        self, rules: Any, columns: Sequence[Array], by_category: Array, n_attributes: int, pool: ThreadPoolExecutor
    ) -> Array:
        """Take the threshold of every numeric test from the rows at its sides; observed ones are training values."""
        threshold = np.full(len(self.feature), np.nan)
        cuts = np.flatnonzero((self.feature >= 0) & ~by_category)
        cuts = cuts[np.argsort(self.feature[cuts], kind="stable")]
        ends = np.searchsorted(self.feature[cuts], np.arange(n_attributes + 1))

        def write(attribute: int) -> None:
            nodes = cuts[ends[attribute] : ends[attribute + 1]]
            if not len(nodes):
                return
            below, above = (columns[attribute][self.beside[nodes, side]].astype(np.float64) for side in (0, 1))
            fast_nodes.write_thresholds(below, above, nodes, threshold)
            if rules.observed:
                values = np.sort(columns[attribute].astype(np.float64))
                threshold[nodes] = values[np.searchsorted(values, threshold[nodes], side="right") - 1]

        of_many = pool.map if len(cuts) >= CUTS_WORTH_SHARING else map
        list(of_many(write, range(n_attributes)))
        return threshold


def _starts(has_two: Array) -> Array:
    """Give where the entries of each node begin if some have two and the others none, int32 (n + 1)."""
    starts = np.zeros(len(has_two) + 1, np.int32)
    np.cumsum(has_two, out=starts[1:])
    starts *= 2
    return starts


def _alternating(left: Array, right: Array) -> Array:
    both = np.empty(2 * len(left), left.dtype)
    both[0::2], both[1::2] = left, right
    return both
