"""Predict many rows at once, as arrays. The answers equal those of `TreePredictor` and `RulePredictor`, up to rounding.

For a tree, each thread copies the tested attributes of one block of rows at a time to its own buffer, which fits the
cache. A suitable matrix is not copied (`_row_blocks`)::

    columns of the data    |#########|#########|#########|  …        rows 0 … 4095, 4096 … 8191, …
    buffer of a thread     |#########|                               the tested attributes of one block
    leaves, answers        |#########|#########|  …                  looked up in a table, one entry per leaf

A row that a missing value sends down several branches has the leaf -1; its leaves' shares or numbers are averaged.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats, Ints, Mask, Places
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, NUMERIC
from espalier.model.operating_point import OperatingPoint
from espalier.model.rules import RuleList
from espalier.model.tree import cached_on_owner
from espalier.prediction.encode_columns import EncodedColumns, EncodedMatrix, matrix_of
from espalier.prediction.encode_rows import EncodedRow
from espalier.prediction.kernels import apply as kernel
from espalier.prediction.kernels.constants import OTHER
from espalier.prediction.leaf_values import answer_table, node_values
from espalier.prediction.linear_leaves import LinearAnswers
from espalier.prediction.rule_predictor import firing_rules
from espalier.prediction.tree_predictor import tree_predictor
from espalier.progress import Progress
from espalier.threads import n_threads, parallel_map

TIE: Final = 1e-9
"""If two figures that decide the class of a row differ by at most this, rounding may decide. The figures are the two
largest shares, or the share of the operating point's class and the point's probability. If several leaves answer such a
row, `TreePredictor`, whose sums are exact, predicts the row again."""
MAX_BLOCK_ROWS: Final = 4_096
MAX_UNCOPIED_ROWS: Final = 32_768
"""Maximum number of rows in a block that is read without a copy. It is limited so that results stay in the cache."""
MIN_BLOCK_ROWS: Final = 64
MAX_BLOCK_CELLS: Final = 1_000_000
PARTS_PER_THREAD: Final = 4


@dataclass(frozen=True, slots=True)
class BatchPrediction:
    """Answers to many rows.

    Attributes:
        leaves: int32 (rows); the leaf, or the number of the rule; -1 where several leaves answer.
        answers: int32 class codes or float64 numbers (rows).
        shares: float64 (rows, classes), without columns for a regression; None unless requested.
        share_of: float64 (rows); the share of the class that `classes` has for each row; None without `classes`.
    """

    leaves: Ints
    answers: Array
    shares: Floats | None
    share_of: Floats | None


def predict_batch(
    model: Model,
    cells: EncodedColumns | Array,
    *,
    shares: bool = False,
    classes: Array | None = None,
    average: bool = True,
    progress: Progress | None = None,
) -> BatchPrediction:
    """Predict every row.

    Args:
        model: A tree or a rule list.
        cells: Encoded columns, or an encoded matrix (attributes, rows).
        shares: Whether the result has the share of each class.
        classes: A class code for each row. `share_of` in the result has the class's share, or 0 for a negative code.
        average: Whether leaves are averaged; otherwise, the answers of rows with the leaf -1 mean nothing.
        progress: Another thread may stop it; a rule list ignores the stop.

    Raises:
        Cancelled: `progress` was stopped.
    """
    given = EncodedMatrix(cells) if isinstance(cells, np.ndarray) else cells
    n_rows, n_classes = given.n_rows, len(model.schema.classes)
    result = BatchPrediction(
        np.empty(n_rows, np.int32),
        np.empty(n_rows, np.int32 if n_classes else np.float64),
        np.empty((n_rows, n_classes)) if shares else None,
        np.empty(n_rows) if classes is not None else None,
    )
    writer = _Writer(model, given, result, classes, progress if progress is not None else Progress())
    if isinstance(model.body, RuleList):
        writer.write_of_rules(model.body)
    else:
        packed_tree(model)
        _in_parts(n_rows, partial(writer.write, average=average))
    return result


class _Writer:
    def __init__(
        self, model: Model, cells: EncodedColumns, result: BatchPrediction, classes: Array | None, progress: Progress
    ) -> None:
        self.model, self.cells, self.result, self.classes, self.progress = model, cells, result, classes, progress
        self.values = node_values(model)
        self.linear: LinearAnswers | None = tree_predictor(model).linear if model.linear is not None else None
        self.table = answer_table(model)

    def write_of_rules(self, rules: RuleList) -> None:
        values = matrix_of(self.model, self.cells)
        self.result.leaves[:] = firing_rules(self.model.schema, rules, values)
        self._write_leaf_answers(0, values)

    def write(self, low: int, high: int, *, average: bool) -> None:
        packed = packed_tree(self.model)
        for first, values in _row_blocks(self.model, self.cells, low, high):
            self.progress.check()
            leaves = self.result.leaves[first : first + values.shape[1]]
            cells, row_step = _one_axis(values)
            kernel.apply(packed.tree, packed.is_all_numeric, cells, row_step, len(leaves), leaves)
            self._write_leaf_answers(first, values)
            if average and leaves.min() < 0:
                self._write_mixed(first, values, np.flatnonzero(leaves < 0))

    def _write_leaf_answers(self, low: int, values: Array) -> None:
        """Write the answer of each row's leaf. For rows with several leaves, `_write_mixed` overwrites it."""
        high = low + values.shape[1]
        result, leaves = self.result, self.result.leaves[low:high]
        if self.linear is None:
            self.values.take(leaves, out=result.answers[low:high], mode="clip")
        else:
            result.answers[low:high] = self.linear.many(np.maximum(leaves, 0), values)
        if result.shares is not None and self.model.schema.classes:
            self.table.take(leaves, axis=0, out=result.shares[low:high], mode="clip")
        if result.share_of is not None and self.classes is not None:
            result.share_of[low:high] = _shares_of(self.table, np.maximum(leaves, 0), self.classes[low:high])

    def _write_mixed(self, low: int, values: Array, several: Places) -> None:
        packed, table = packed_tree(self.model), self.table
        mixed = np.empty((len(several), table.shape[1]))
        scratch = np.empty(packed.max_open, np.int32), np.empty(packed.max_open)
        kernel.average_leaves(packed.tree, table, *_one_axis(values), several, *scratch, mixed)
        rows = low + several
        if not self.model.schema.classes:
            self.result.answers[rows] = mixed[:, 0]
            return
        codes, unsure = _decide(mixed, self.model.operating_point)
        for place in np.flatnonzero(unsure).tolist():
            cells = values[:, several[place]].astype(np.float64).tolist()
            codes[place] = tree_predictor(self.model).answer(EncodedRow(tuple(cells), (), ())).code
        self.result.answers[rows] = codes
        if self.result.shares is not None:
            self.result.shares[rows] = mixed
        if self.result.share_of is not None and self.classes is not None:
            self.result.share_of[rows] = _shares_of(mixed, np.arange(len(rows)), self.classes[rows])


def _shares_of(table: Floats, rows: Array, codes: Array) -> Floats:
    return np.where(codes < 0, 0.0, table[rows, np.maximum(codes, 0)])


def _decide(shares: Floats, point: OperatingPoint | None) -> tuple[Array, Mask]:
    """Return each row's predicted class code, and a mask of the rows where rounding may have decided the class."""
    rivals = shares
    unsure = np.zeros(len(shares), np.bool_)
    if point is not None:
        unsure |= np.abs(shares[:, point.code] - point.probability) <= TIE
        rivals = shares.copy()
        rivals[:, point.code] = -1.0
    unsure |= np.count_nonzero(rivals >= rivals.max(axis=1)[:, None] - TIE, axis=1) > 1
    return (shares.argmax(axis=1) if point is None else point.decide_each(shares)), unsure


def _one_axis(values: Array) -> tuple[Array, int]:
    """Return a view of a block's cells on one axis, as the kernel reads them, and the number of cells in a row."""
    return values.T.reshape(-1), len(values)


def _row_blocks(model: Model, cells: EncodedColumns, low: int, high: int) -> Iterator[tuple[int, Array]]:
    """Split the rows ``low:high`` into blocks; yield the index of each block's first row, and the block's cells.

    The cells are float64 or float32 (attributes, rows), in Fortran order; NaN means missing. Only tested attributes are
    copied, or all attributes if leaves are linear; each block overwrites the copy of the block before. If no attribute
    has codes, a matrix in Fortran order is not copied.
    """
    packed, n_attributes = packed_tree(model), len(model.schema.attributes)
    if isinstance(cells, EncodedMatrix) and cells.values.flags.f_contiguous and not packed.coded:
        for first in range(low, high, MAX_UNCOPIED_ROWS):
            yield first, cells.values[:, first : min(first + MAX_UNCOPIED_ROWS, high)]
        return
    length = max(MIN_BLOCK_ROWS, min(MAX_BLOCK_ROWS, MAX_BLOCK_CELLS // max(1, n_attributes), high - low))
    # Row-major, because the tests of one row read several attributes.
    buffer = np.empty((length, max(1, n_attributes)))
    tested = range(n_attributes) if model.linear is not None else packed.attributes
    for first in range(low, high, length):
        last = min(first + length, high)
        for attribute in tested:
            column = buffer[: last - first, attribute]
            cells.write(attribute, first, last, column)
            if attribute in packed.coded:
                column[column < 0] = np.nan
        yield first, buffer[: last - first].T


def _in_parts(n_rows: int, work: Callable[[int, int], None]) -> None:
    max_parts = n_rows // MAX_BLOCK_ROWS
    if max_parts <= 1:
        work(0, n_rows)
        return
    n_parts = min(PARTS_PER_THREAD * n_threads(), max_parts)
    bounds = [n_rows * part // n_parts for part in range(n_parts + 1)]
    parallel_map(work, bounds[:-1], bounds[1:])


@dataclass(frozen=True, slots=True)
class Packed:
    """A tree as the kernel reads it.

    Attributes:
        tree: The arrays, an `espalier.prediction.kernels.apply.PackedTree`.
        is_all_numeric: Whether the tree has tests, and all of them are numeric.
        attributes: Indexes of the attributes that tests and surrogates read.
        coded: Indexes of the attributes that are encoded as codes; a negative code is an unknown value.
        max_open: Upper bound of the number of nodes that are pending while one row takes every branch.
    """

    tree: Any
    is_all_numeric: bool
    attributes: tuple[int, ...]
    coded: frozenset[int]
    max_open: int


@cached_on_owner
def packed_tree(model: Model) -> Packed:
    """Return a tree as the kernel reads it; it is cached with the model."""
    tree = model.tree
    node = np.empty(tree.n_nodes, np.int32)
    node[0], node[1:] = 0, tree.child
    thresholds = np.empty(2 * len(node))
    links = thresholds.view(np.int32)
    test = tree.test[node]
    is_leaf = test == LEAF
    thresholds[::2] = np.where(is_leaf, np.inf, tree.threshold[node])
    # In the kernel, a row at a leaf still reads an attribute: that of its last test, whose value is known.
    tested_above = np.maximum(tree.feature[tree.parent[node]], 0)
    links[2::4] = np.where(is_leaf, tested_above, np.where(test == NUMERIC, tree.feature[node], OTHER))
    links[3::4] = np.where(is_leaf, np.arange(len(node)), 1 + tree.child_start[node])
    none = np.zeros(0, np.int32)
    own = ("test", "feature", "threshold", "child_start", "child", "fallback", "code_start", "code_branch")
    names = ("start", "feature", "test", "threshold", "below", "code_start", "code_branch")
    start, code_start = np.zeros(tree.n_nodes + 1, np.int32), np.zeros(1, np.int32)
    surrogates: Sequence[Any] = (start, none, np.zeros(0, np.int8), np.zeros(0), none, code_start, none)
    if tree.surrogates is not None:
        surrogates = [getattr(tree.surrogates, name) for name in names]
    packed = kernel.PackedTree(
        thresholds=thresholds,
        links=links,
        node=node,
        share=tree.branch_weight,
        **{name: getattr(tree, name) for name in own},
        **{f"other_{name}": array for name, array in zip(names, surrogates, strict=True)},
    )
    tested = [tree.feature[tree.test != LEAF]] + ([] if tree.surrogates is None else [tree.surrogates.feature])
    return Packed(
        tree=packed,
        is_all_numeric=tree.n_nodes > 1 and bool(np.all((tree.test == NUMERIC) | (tree.test == LEAF))),
        attributes=tuple(np.unique(np.concatenate(tested)).tolist()),
        coded=frozenset(place for place, feature in enumerate(model.schema.attributes) if feature.coded),
        max_open=kernel.max_open(tree.parent, tree.child_start),
    )
