"""Arguments of the binary grower's kernels: objects with typed arrays. `arguments.pxd` declares the types.

In shapes, F is the number of attributes, n the number of rows, and width the number of statistics per code: one per
class, or 2 (see `histogram_split`).
"""

import numpy as np
from cython.cimports.espalier.growing.kernels.arguments import Arguments

from espalier.growing.kernels.binary.constants import CODE_WORDS, FEW_ROWS_OF_MANY_CODES, MAX_CODES


class BinaryColumns(Arguments):  # type: ignore[misc] # mypy cannot see what Cython imports
    """The attributes and the target.

    kind: the kind of statistics (TWO_CLASSES …). is_numeric: whether the target is a number.

    orders: uint32 (sorted columns + 1, n), the rows in ascending order of each sorted column. In the last order, *the
    rows' own*, they are sorted by number. The lower `row_bits` bits of an entry are the row's number. The bits above
    are the row's class if classes are counted without weights, else 0.

    codes: uint32 (sorted columns, n), a code of each value; codes ascend like the values. cells: uint8 (n, coded
    columns), the codes of the coded columns. first: int64 (coded columns), start of each column in a row of
    `NodeSearch.counts`. n_codes: int64 (coded columns), number of each column's codes.

    sorted_attribute, coded_attribute: int64, the attribute of each sorted and each coded column. sorted_column,
    coded_column: int64 (F), the sorted or the coded column of each attribute, -1 if there is none.

    row_class: uint8 (n). row_value: float64 (n), the target, or the code 0 or 1 of a class. row_weight: float64 (n). An
    array that is not read may have one entry.
    """

    def __init__(self, **arrays):
        super().__init__(**arrays)
        self.row_mask = (1 << self.row_bits) - 1
        self.n_sorted, self.n_coded = len(self.sorted_attribute), len(self.coded_attribute)
        last = self.n_coded - 1
        self.n_counts = self.first[last] + self.n_codes[last] * self.width if self.n_coded else 1


class BinaryNodes:
    """The node tables.

    ints: int32 (nodes, N_INTS). reals: float64 (nodes, N_REALS). stats: float64 (nodes, classes), or (nodes, 4) for a
    regression: weight, mean, sum of squared deviations, and the rounding error of the mean.
    """

    def __init__(self, ints, reals, stats):
        self.ints, self.reals, self.stats = ints, reals, stats


class NodeSearch:
    """The search for the best split of a node.

    weight, impurity: the node's. size: the node's weight with class weights divided out. min_weight: least size of a
    branch. has_class_weights, class_scale: see `GrowParameters`. offset, scale: a gain is ``offset + scale · score``.
    tie: scores that differ by at most this are equal. totals: float64 (width), the weight of each class; for two
    classes with row weights, the total weight and that of class 1; not read if the target is a number.
    centre: a number near the mean of `row_value`. rest: that mean minus `centre`. progress: as in `Scratch`. unit: a
    power of two near 1 / weight. Where weights enter a square, sums are multiplied by it first, so that none overflows.

    is_constant: uint8 (columns), 1 if all values are known to be equal; sorted columns come first. counts: float64
    (slots, n_counts), statistics per code. gains: float64 (F), the gain of each attribute's best split, NaN without a
    split. places: int64 (F), the end of the left branch of that split: the index of its last row, or its last code.

    About the best split of the current column: numerator, denominator: its score as a fraction. place: as in `places`.
    limit: the numerator that another split must exceed at the same denominator. bar: this limit as a score, compared to
    the bounds of blocks. floor: the score that the column's first split must exceed, a little less than the best of the
    earlier columns. is_varied: whether the column is known to vary.

    Scratch: left, right: float64 (width); class_counts: int64 (width); active, base: int64 (coded columns); keys:
    int64. Scratch that is zero between uses: occurring: uint64, a bit for each code that occurs; by_code: float64,
    statistics per code.
    """

    def __init__(self, data, counts, gains, places, is_constant, progress):
        self.counts, self.gains, self.places = counts, gains, places
        self.is_constant, self.progress = is_constant, progress
        width = max(2, data.width)
        self.totals, self.left, self.right = np.empty((3, width))
        self.class_counts = np.empty(width, np.int64)
        self.active, self.base = np.empty((2, data.n_coded), np.int64)
        self.occurring, self.by_code = np.zeros(CODE_WORDS, np.uint64), np.zeros(MAX_CODES * width)
        self.keys = np.empty(FEW_ROWS_OF_MANY_CODES, np.int64)


class Scratch:
    """The arrays that one thread writes.

    is_right: uint32, a bit for each row of a node: its branch. spare: uint32 (n). places: int32 (n), the number of each
    row in the copy of its subtree; threads share this array but write different rows. finished: float64 (1), weight of
    the leaves that the thread has finished. progress: float64 (2); only the second entry, the stop flag, is read.
    """

    def __init__(self, is_right, spare, places, progress):
        self.is_right, self.spare, self.places, self.progress = is_right, spare, places, progress
        self.finished = np.zeros(1)
