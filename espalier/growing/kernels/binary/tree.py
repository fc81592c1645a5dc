"""The binary grower: complete data, two branches per test, gini or squared error.

Columns with at most 256 values are stored as bytes, row by row, and a node sums its statistics by code. For unweighted
classes, the larger child's counts are usually the parent's minus the smaller child's. Columns with more values are
sorted once; a *stable partition* leaves each child's range of an order sorted, so nothing is sorted again::

    orders[k]   ... | 4 9 1 7 3 0 ... |        row numbers, ascending by the k-th sorted column. For unweighted classes,
                    start             stop     the bits above hold the class, and the split search reads little else.
    orders[-1]  ... | 0 1 3 4 7 9 ... |        the rows' own order: ascending row numbers

Each subtree owns its range, so subtrees grow in parallel, and the result does not depend on the thread. Before a
subtree grows, it is copied into separate tables in which its rows are numbered from 0. Branch bits, codes and targets
are read by row. In the copy, they are close together in memory and stay in the processor's cache.

A split is stored as two rows, the last one below its threshold and the first one above. The threshold is computed from
their values when the tree is finished.
"""

import cython
import numpy as np
from cython.cimports.espalier.growing.kernels.binary import constants as b
from cython.cimports.espalier.growing.kernels.binary.arguments import BinaryColumns, NodeSearch
from cython.cimports.espalier.growing.kernels.binary.histogram_split import count_rows
from cython.cimports.espalier.growing.kernels.binary.nodes import (
    begin_search,
    best_attribute,
    best_coded_splits,
    best_sorted_splits,
    sum_node,
)
from cython.cimports.espalier.growing.kernels.binary.partition import (
    mark_coded,
    mark_sorted,
    partition_order,
    partition_orders,
)


class Subtree:
    """A subtree that is being grown: its own columns, the current node, and the pending nodes.

    home: int32 (rows), the number of each row in the whole table. few: nodes with at most this number of rows have no
    counts. free: int64, `n_free` slots of counts that no node uses. pending: int64 (…, 5), the number, start, stop,
    slot of counts (-1: none) and depth of `n_pending` nodes. pending_constant: uint8 (…, columns), whether a column is
    constant at a pending node. current: index of the current node in `pending`.
    """


def split_node(parameters, data, nodes, search, scratch, node, first_child, attribute, start, stop, depth):
    """Split a node by the best split of an attribute, and partition the rows' own order.

    depth: depth of the children. Returns the start of the right branch, whether the left child may be split, and
    whether the right child may be split.
    """
    with cython.nogil:
        middle, left_is_open, right_is_open = _divide_node(
            parameters, data, nodes, search, scratch, node, first_child, attribute, start, stop, depth
        )
    return middle, left_is_open, right_is_open


def _divide_node(parameters, data, nodes, search, scratch, node, first_child, attribute, start, stop, depth):
    column = data.sorted_column[attribute]
    if column >= 0:
        middle = search.places[attribute] + 1
        nodes.ints[node, b.LAST_LEFT] = data.orders[column, middle - 1] & data.row_mask
        nodes.ints[node, b.FIRST_RIGHT] = data.orders[column, middle] & data.row_mask
        mark_sorted(data, scratch, column, start, middle, stop)
    else:
        coded = data.coded_column[attribute]
        middle = mark_coded(data, nodes, scratch, node, coded, start, stop, search.places[attribute])
    nodes.ints[node, b.FEATURE] = attribute
    nodes.ints[node, b.FIRST_CHILD] = first_child
    nodes.reals[node, b.GAIN] = search.gains[attribute]
    partition_order(data, scratch, data.n_sorted, start, stop, True, True)
    # Sums are taken in the rows' own order, so that they do not depend on the attribute.
    left_is_open = sum_node(parameters, data, nodes, first_child, start, middle, depth)
    right_is_open = sum_node(parameters, data, nodes, first_child + 1, middle, stop, depth)
    return middle, left_is_open, right_is_open


def grow_subtree(parameters, data, nodes, scratch, is_constant, start, stop, depth):
    """Grow everything below one node from its range of the orders. Return the number of nodes.

    nodes: node tables with room for two nodes per row; the caller has written node 0. is_constant: uint8 (columns).
    """
    subtree: Subtree = _begin_subtree(parameters, data, nodes, scratch, is_constant, start, stop, depth)
    with cython.nogil:
        _grow_pending(subtree)
    return subtree.n_nodes


def _begin_subtree(parameters, data, nodes, scratch, is_constant, start, stop, depth):
    n_rows = stop - start
    home = np.empty(n_rows, np.int32)
    own: BinaryColumns = _copy_subset(data, scratch, home, is_constant, start, stop)
    n_columns = data.n_sorted + data.n_coded
    n_slots = max(3, min(b.MAX_SLOTS, b.MAX_POOL_BYTES // (8 * data.n_counts)))
    subtree = Subtree()
    subtree.parameters, subtree.data, subtree.nodes = parameters, own, nodes
    subtree.scratch, subtree.home = scratch, home
    counts = np.empty((n_slots + 1, data.n_counts))  # one more slot for nodes of few rows
    gains, places = np.empty(n_columns), np.empty(n_columns, np.int64)
    subtree.search = NodeSearch(own, counts, gains, places, is_constant, scratch.progress)
    subtree.free, subtree.n_free = np.arange(n_slots, dtype=np.int64), n_slots
    # Floating-point sums depend on the order of the numbers, so only counts may be summed in another order.
    has_many_codes: cython.bint = data.n_counts > b.FEW_ROWS_OF_MANY_CODES * data.n_coded
    subtree.few = b.FEW_ROWS_OF_MANY_CODES if data.kind <= b.CLASSES and has_many_codes else b.FEW_ROWS
    # A pending node has two rows or more.
    subtree.pending = np.empty((n_rows // 2 + 1, 5), np.int64)
    subtree.pending_constant = np.empty((n_rows // 2 + 1, n_columns), np.uint8)
    subtree.pending_constant[0] = is_constant
    subtree.n_pending, subtree.n_nodes = 0, 1
    subtree.current, subtree.depth = 0, depth - 1
    _add_pending(subtree, 0, 0, n_rows, -1, True)
    return subtree


def _grow_pending(subtree):
    while subtree.n_pending > 0 and subtree.scratch.progress[1] == 0.0:
        _take_pending(subtree)
        attribute = _find_split(subtree, subtree.data, subtree.search)
        first_child = subtree.n_nodes
        # There is always room, since each branch has at least one row; this is checked all the same.
        if attribute < 0 or first_child + 2 > subtree.nodes.ints.shape[0]:
            subtree.scratch.finished[0] += subtree.search.weight
            _release_slot(subtree, subtree.slot)
            continue
        subtree.n_nodes += 2
        middle, left_is_open, right_is_open = _divide_node(
            subtree.parameters, subtree.data, subtree.nodes, subtree.search, subtree.scratch, subtree.node, first_child,
            attribute, subtree.start, subtree.stop, subtree.depth + 1,
        )  # fmt: skip
        for k in range(b.LAST_LEFT, b.FIRST_RIGHT + 1):
            subtree.nodes.ints[subtree.node, k] = subtree.home[subtree.nodes.ints[subtree.node, k]]
        partition_orders(
            subtree.data, subtree.search, subtree.scratch, 0, subtree.data.n_sorted,
            subtree.data.sorted_column[attribute], subtree.start, subtree.stop, left_is_open, right_is_open,
        )  # fmt: skip
        left_slot, right_slot = _share_counts(
            subtree, subtree.data, subtree.search, middle, left_is_open, right_is_open
        )
        # The right child takes over the entry of the current node: columns that are constant here are constant below.
        _add_pending(subtree, first_child + 1, middle, subtree.stop, right_slot, right_is_open)
        _add_pending(subtree, first_child, subtree.start, middle, left_slot, left_is_open)


def _take_pending(subtree):
    subtree.n_pending -= 1
    at = subtree.n_pending
    subtree.current = at
    subtree.node, subtree.start, subtree.stop = subtree.pending[at, 0], subtree.pending[at, 1], subtree.pending[at, 2]
    subtree.slot, subtree.depth = subtree.pending[at, 3], subtree.pending[at, 4]
    subtree.search.is_constant = subtree.pending_constant[at]


def _add_pending(subtree, node, start, stop, slot, is_open):
    """Add a child of the current node to the pending nodes. If it is a leaf, only count its weight as finished."""
    if not is_open:
        subtree.scratch.finished[0] += subtree.nodes.reals[node, b.WEIGHT]
        return
    at = subtree.n_pending
    subtree.pending[at, 0], subtree.pending[at, 1], subtree.pending[at, 2] = node, start, stop
    subtree.pending[at, 3], subtree.pending[at, 4] = slot, subtree.depth + 1
    if at > subtree.current:
        for column in range(subtree.pending_constant.shape[1]):
            subtree.pending_constant[at, column] = subtree.pending_constant[subtree.current, column]
    subtree.n_pending += 1


def _find_split(subtree, data, search):
    start, stop = subtree.start, subtree.stop
    begin_search(subtree.parameters, data, subtree.nodes, subtree.node, search)
    best_sorted_splits(data, search, start, stop, 0, data.n_sorted)
    is_counted: cython.bint = stop - start > subtree.few
    if data.n_coded > 0 and is_counted and subtree.slot < 0:
        subtree.slot = _take_slot(subtree)
        count_rows(data, search, subtree.slot, start, stop, 0, data.n_coded)
    slot = subtree.slot if is_counted else search.counts.shape[0] - 1
    best_coded_splits(data, search, slot, start, stop, 0, data.n_coded, is_counted)
    return best_attribute(subtree.parameters, search)


def _share_counts(subtree, data, search, middle, left_is_open, right_is_open):
    """Return the slots of both children's counts, -1 for none. At most the smaller child's rows are counted."""
    if subtree.slot < 0:
        return -1, -1
    slot = subtree.slot
    n_left, n_right = middle - subtree.start, subtree.stop - middle
    larger_is_open: cython.bint = left_is_open if n_left >= n_right else right_is_open
    n_larger = max(n_left, n_right)
    # Subtracting weights would leave rounding errors instead of 0; subtracting sums of numbers would lose digits.
    if (
        data.kind >= b.NUMBERS
        or not larger_is_open
        or n_larger <= subtree.few
        or subtree.n_free <= 1
        or n_larger * data.n_coded <= data.n_counts // 4
    ):
        return _release_slot(subtree, slot), -1
    other = _take_slot(subtree)
    if n_left < n_right:
        count_rows(data, search, other, subtree.start, middle, 0, data.n_coded)
    else:
        count_rows(data, search, other, middle, subtree.stop, 0, data.n_coded)
    for column in range(data.n_coded):
        if not search.is_constant[data.n_sorted + column]:
            first = data.first[column]
            for at in range(first, first + data.n_codes[column] * data.width):
                search.counts[slot, at] -= search.counts[other, at]
    left_slot, right_slot = (other, slot) if n_left < n_right else (slot, other)
    if not left_is_open or n_left <= subtree.few:
        left_slot = _release_slot(subtree, left_slot)
    if not right_is_open or n_right <= subtree.few:
        right_slot = _release_slot(subtree, right_slot)
    return left_slot, right_slot


def _take_slot(subtree):
    subtree.n_free -= 1
    return subtree.free[subtree.n_free]


def _release_slot(subtree, slot):
    if slot >= 0:
        subtree.free[subtree.n_free] = slot
        subtree.n_free += 1
    return -1


def _copy_subset(data, scratch, home, is_constant, start, stop):
    """Return a copy of a subtree's range of the columns, in which its rows are numbered from 0 in their own order.

    home: int32 (rows), written: the numbers of these rows in `data`.
    """
    n_rows = stop - start
    orders: cython.uint[:, ::1] = np.empty((data.n_sorted + 1, n_rows), np.uint32)
    codes: cython.uint[:, ::1] = np.empty((data.n_sorted, n_rows), np.uint32)
    cells: cython.uchar[:, ::1] = np.empty((n_rows, data.n_coded), np.uint8)
    with cython.nogil:
        for at in range(n_rows):
            row = data.orders[data.n_sorted, start + at] & data.row_mask
            home[at] = row
            scratch.places[row] = at
        for column in range(data.n_sorted + 1):
            for at in range(n_rows):
                entry = data.orders[column, start + at]
                row = entry & data.row_mask
                orders[column, at] = entry - row + scratch.places[row]
        for column in range(data.n_sorted):
            if not is_constant[column]:
                for at in range(n_rows):
                    codes[column, at] = data.codes[column, home[at]]
        for at in range(n_rows):
            for column in range(data.n_coded):
                cells[at, column] = data.cells[home[at], column]
    return data.replaced(
        orders=orders,
        codes=codes,
        cells=cells,
        row_class=take(data.row_class, home) if data.kind >= b.WEIGHTED_PAIR else data.row_class,
        row_value=take(data.row_value, home),
        row_weight=take(data.row_weight, home),
    )


def take(values, home):
    """Return values[home]; an array of one entry, which is never read, is returned unchanged."""
    return values if len(values) == 1 else np.asarray(values)[home]
