"""What stands in the way of leaving attributes open: a set for each leaf at which a row would be answered otherwise.

A leaf of another answer can be reached as long as every attribute that leads the row elsewhere on the way to it is left
open. So these attributes are a *barrier*: one of them at least must be kept as it is. Where one leaf at a time answers,
that is the whole truth. Where a kept attribute is missing and the row is shared out, the leaf may get a part of the row
and the answer still stand: such a barrier may be needless, and proves nothing of what must be kept.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.answers import Prediction
from espalier.flow import ALL, Flow
from espalier.linear_prediction import LinearAnswers
from espalier.margins import loudest
from espalier.model import Model
from espalier.prediction import Router
from espalier.reach import reach_of
from espalier.strategies import STOP
from espalier.tree import LEAF, UNKNOWN

__all__ = ["Barriers"]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

WORD: Final = 64
CELLS_AT_A_TIME: Final = 2_000_000


class Barriers:
    """The barriers of one row, as sets of bits: bit b stands for ``attributes[b]``.

    Attributes:
        attributes: Places of those that a test or a term of the tree looks at, ascending.
        sets: uint64 (barriers, words): the barrier, then the attributes that let only a part of the row come there if
            they are kept, then a word that is not 0 where the leaf proves nothing at all.
    """

    def __init__(self, model: Model, way: Router, flow: Flow, prediction: Prediction) -> None:
        self.tree, self.flow = model.tree, flow
        self.reach = reach_of(model)
        terms = model.tree.linear.feature if model.tree.linear is not None else np.zeros(0, np.int32)
        tested = model.tree.feature[model.tree.test != LEAF]
        self.attributes: list[int] = np.unique(np.concatenate((tested, terms))).tolist()
        self.bit = np.zeros(len(model.schema.attributes), np.int64)
        self.bit[self.attributes] = np.arange(len(self.attributes))
        self.n_words = max(1, -(-len(self.attributes) // WORD))
        self.leaf_terms: dict[int, list[int]] = {}
        self.other = self._others(model, way, prediction)
        self.proves = self.reach.whole & (way.value != prediction.code if way.classes else True)
        self.sets = self._collect()

    def least(self, order: Sequence[int]) -> tuple[int, ...] | None:
        """Leave one attribute after another out, the last first; None where even all of them miss a barrier."""
        columns = [self._column(place) for place in order]
        met = np.zeros(len(self.sets), np.int64)
        for column in columns:
            met[column] += 1
        if not bool(np.all(met)):
            return None
        kept = []
        for place, column in zip(reversed(order), reversed(columns), strict=True):
            if bool(np.all(met[column] > 1)):
                met[column] -= 1
            else:
                kept.append(place)
        return tuple(reversed(kept))

    def need_all(self, kept: Sequence[int]) -> bool:
        """Say whether, for each of these attributes, some row is answered otherwise where it alone is not kept."""
        return all(self._is_proved([other for other in kept if other != place]) for place in kept)

    def _is_proved(self, kept: Sequence[int]) -> bool:
        """Say whether some whole row that keeps these attributes is answered otherwise."""
        empty = np.zeros((1, self.n_words), np.uint64)
        some = np.bitwise_or.reduce(self._bits(kept), axis=0)[None, :] if len(kept) else empty
        met = self.sets & np.concatenate((some, some, empty[:, :1] + np.uint64(1)), axis=1)
        return not bool(np.all(met.any(axis=1)))

    def _column(self, place: int) -> Array:
        """Give the barriers that an attribute meets."""
        bit = int(self.bit[place])
        return np.flatnonzero(self.sets[:, bit // WORD] >> np.uint64(bit % WORD) & np.uint64(1))

    def _others(self, model: Model, way: Router, prediction: Prediction) -> Mask:
        """Say of each node whether it would answer otherwise; find the terms of those that answer the same."""
        if way.linear is not None:
            self.leaf_terms = _terms_of_equals(model, way.linear, prediction)
            unlike = np.ones(self.tree.n_nodes, np.bool_)
            unlike[list(self.leaf_terms)] = False
            return unlike
        other: Mask = way.value != (prediction.value if prediction.value is not None else prediction.code)
        if way.classes and bool(
            np.any((self.tree.fallback == ALL) & (self.tree.test != LEAF) & (self.tree.test != UNKNOWN))
        ):
            # Where several leaves answer together, each must speak for the label by its shares, too.
            other |= loudest(model) != way.value
        return other

    def _collect(self) -> Words:
        """Gather the sets of all nodes that answer: what leads the row away from each, what lets a part of it come."""
        tree, n_words = self.tree, self.n_words
        sets = self._on_the_way()
        leaves, ends = np.flatnonzero(tree.test == LEAF), np.flatnonzero(self.reach.end)
        elsewhere = (self.flow.branch[ends] != STOP)[:, None].astype(np.uint64)
        stopped = sets[ends]
        stopped[:, :n_words] |= self._bits(tree.feature[ends]) * elsewhere
        found = [self._of(ends, stopped), self._of(leaves, sets[leaves])]
        for leaf, terms in self.leaf_terms.items():
            # The same number for the same values: another value of a term would give another number.
            here = np.repeat(sets[leaf : leaf + 1], len(terms), axis=0)
            here[:, :n_words] |= self._bits(terms)
            found.append(np.concatenate((here, np.zeros((len(terms), 1), np.uint64)), axis=1))
        return np.unique(np.concatenate(found), axis=0)

    def _on_the_way(self) -> Words:
        """Give of each node the attributes that lead the row away from it, then those that let a part of it come.

        Each node takes the set of a node above it, and that one's next above: twice as far each time, so that a chain
        of thousands of tests takes a dozen steps.
        """
        tree, n_words = self.tree, self.n_words
        sets = np.zeros((tree.n_nodes, 2 * n_words), np.uint64)
        if tree.n_nodes == 1:
            return sets
        above = np.maximum(tree.parent, 0)
        bits = self._bits(tree.feature[above])
        sets[:, :n_words] = bits * (self.flow.part == 0)[:, None]
        sets[:, n_words:] = bits * (self.flow.branch[above] == ALL)[:, None]
        sets[0] = 0
        while above.any():
            sets |= sets[above]
            above = above[above]
        return sets

    def _of(self, nodes: Array, sets: Words) -> Words:
        """Give the barriers of nodes that answer, where they answer otherwise and can be reached."""
        kept = self.other[nodes] & (self.reach.part[nodes])
        unsure = (~self.proves[nodes]).astype(np.uint64)[:, None]
        return np.concatenate((sets, unsure), axis=1)[kept]

    def _bits(self, features: Sequence[int] | Array) -> Words:
        """Give the set of each attribute alone."""
        bit = self.bit[np.asarray(features, dtype=np.int64)]
        words = np.zeros((len(bit), self.n_words), np.uint64)
        words[np.arange(len(bit)), bit // WORD] = np.uint64(1) << (bit % WORD).astype(np.uint64)
        return words


def _terms_of_equals(model: Model, linear: LinearAnswers, prediction: Prediction) -> dict[int, list[int]]:
    """Give, of each leaf whose linear model gives the row the same number, the attributes of its terms."""
    leaves = np.flatnonzero(model.tree.test == LEAF).astype(np.int32)
    row = np.array(prediction.row.values)[:, None]
    step = max(1, CELLS_AT_A_TIME // len(row)) if len(row) else len(leaves)
    equal = {prediction.leaf}
    for first in range(0, len(leaves), step):
        some = leaves[first : first + step]
        equal |= set(some[linear.many(some, np.repeat(row, len(some), axis=1)) == prediction.value].tolist())
    table, terms = linear.table, {}
    for leaf in sorted(equal):
        part = slice(table.start[leaf], table.start[leaf + 1])
        terms[leaf] = np.unique(table.feature[part][table.coefficient[part] != 0]).tolist()
    return terms
