"""The general grower: one compiled loop for every criterion, missing-value strategy and split type.

A node that may still be split owns the range ``start:stop`` of the master sequence, whose entries are (row, weight),
and the same range of each presorted order. Its children take over that range. They need more room if rows with an
unknown value go down several branches. If other entries then follow the range, the children are written at the top::

    master   | pending | pending |  current node  |        free          depth-first: the first child c0 is split next,
                                 start          stop = top               so the current range ends at the top, unless
                                 | c2 | c1 | c0 |                        rows of delegated nodes follow

Nodes are numbered in order of creation, and the children of a node consecutively; `growing.finalize` puts them in
preorder. There is no recursion and no allocation per node; arrays that run full are enlarged (`growth`).

The steps of the loop are in other modules: `choose_split` (which attribute), `assign_branches` (which branch),
`node_statistics` (the children), `partition` (their rows), and for some configurations `surrogates` and `validation`.
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.espalier.growing.kernels.assign_branches import (
    assign_branches,
    assign_unknown,
    find_subset_again,
    heaviest,
    reset_categories,
    set_fallback,
    weigh_branches,
    weigh_row_by_row,
    write_codes,
    write_test,
)
from cython.cimports.espalier.growing.kernels.node_statistics import (
    set_median,
    set_medians,
    start_children,
    start_root,
    undo_split,
)
from cython.cimports.espalier.growing.kernels.nodes import enlarge
from cython.cimports.espalier.growing.kernels.partition import partition_order, partition_rows
from cython.cimports.espalier.growing.kernels.pending import add_pending, load_split, pop, push, store_split
from cython.cimports.espalier.growing.kernels.splits.choose_split import choose_split, is_paid, must_stop, set_context
from cython.cimports.espalier.growing.kernels.splits.surrogates import add_surrogates
from cython.cimports.espalier.growing.kernels.validation import loses_by_split, partition_validation
from cython.cimports.espalier.model.node_tests import NOMINAL


def grow_tree(growth, depth, max_rows_to_delegate, max_nodes, max_codes):
    """Grow one tree, or its top, or the subtree of one of its nodes.

    depth: depth of the root. max_rows_to_delegate: nodes of at most this many rows are left to other calls (0: none).
    max_nodes, max_codes: limits on the number of nodes and on the length of each `codes`. The result is in `growth`.
    """
    with cython.nogil:
        _start(growth, depth)
        while growth.status == c.DONE:
            entry = _take_next(growth)
            if entry < 0:
                break
            if growth.pending.stop[entry] - growth.pending.start[entry] <= max_rows_to_delegate:
                _delegate(growth, entry)
            else:
                _grow_node(growth, entry, max_nodes, max_codes)
        if growth.progress[1] != 0.0:
            growth.status = c.STOPPED


def _start(growth, depth):
    start_root(growth.work, growth.nodes, growth.rows, depth)
    n_rows = growth.rows.top
    if n_rows == 0:
        return 0
    growth.pending.node[0], growth.pending.start[0], growth.pending.stop[0] = 0, 0, n_rows
    growth.pending.valid_start[0], growth.pending.valid_stop[0] = 0, growth.validation.top
    growth.pending.n = 1
    if growth.work.parameters.criterion == c.ABSOLUTE_ERROR:
        set_context(growth.work, growth.nodes, growth.rows, 0, 0, n_rows)
        set_median(growth.work, growth.nodes, 0, growth.rows.master, 0, n_rows, 0, 0, 0.0)
    if growth.work.parameters.max_leaf_nodes >= 0:
        store_split(growth.pending, 0, growth.candidates, _choose(growth, 0, 0, n_rows))
        push(growth.pending, growth.nodes, 0)
    return 0


def _take_next(growth):
    if growth.work.parameters.max_leaf_nodes >= 0:
        return pop(growth.pending, growth.nodes) if growth.pending.n_heap > 0 else -1
    growth.pending.n -= 1
    return growth.pending.n


def _delegate(growth, entry):
    """Leave a node to another call; its rows stay in place."""
    n_delegated = growth.n_delegated
    if n_delegated == growth.delegated.shape[0]:
        growth.delegated = enlarge(growth.delegated, n_delegated, 2 * n_delegated)
    growth.delegated[n_delegated, 0] = growth.pending.node[entry]
    growth.delegated[n_delegated, 1] = growth.pending.start[entry]
    growth.delegated[n_delegated, 2] = growth.pending.stop[entry]
    growth.n_delegated += 1


def _grow_node(growth, entry, max_nodes, max_codes):
    """Split a node, or make it a leaf. Its children that may be split become pending nodes."""
    node: cython.int = growth.pending.node[entry]
    start, stop = growth.pending.start[entry], growth.pending.stop[entry]
    valid_start, valid_stop = growth.pending.valid_start[entry], growth.pending.valid_stop[entry]
    best_first: cython.bint = growth.work.parameters.max_leaf_nodes >= 0
    chosen = _next_split(growth, entry, node, start, stop)
    if growth.progress[1] != 0.0:
        growth.status = c.STOPPED
        return 0
    is_split: cython.bint = chosen >= 0 and split_rows(growth, node, chosen, start, stop, max_nodes, max_codes)
    if growth.status != c.DONE:
        return 0
    n_routed: cython.longlong = 0
    if is_split and growth.validates:
        worse, n_routed = loses_by_split(growth, node, growth.branches.n, valid_start, valid_stop)
        if worse:
            growth.nodes.n_codes = growth.nodes.ints[node, column.CODE_START]
            growth.surrogates.n = growth.nodes.ints[node, column.FIRST_SURROGATE]
            undo_split(growth.nodes, node)
            is_split = False
    if not is_split:
        _finish(growth, growth.nodes.reals[node, column.WEIGHT])
        _release(growth, start, stop, valid_start, valid_stop)
        return 0

    first_child: cython.int = growth.nodes.n
    growth.n_leaves += growth.branches.n - 1
    growth.nodes.n += growth.branches.n

    first_new = growth.pending.n
    if not _move_rows(growth, first_child, start, stop):
        _release(growth, start, stop, valid_start, valid_stop)
        return 0
    if growth.validates:
        _move_validation_rows(growth, node, first_new, n_routed, valid_start, valid_stop)
    if best_first:
        _choose_splits_of_children(growth, first_new)
    return 0


def _finish(growth, weight):
    """Add the weight of leaves to the progress."""
    growth.finished += weight
    growth.progress[0] = growth.finished / growth.work.parameters.root_weight


def _release(growth, start, stop, valid_start, valid_stop):
    """Free the range of a node that has no pending children, if the range is at the top."""
    if stop == growth.rows.top:
        growth.rows.top = start
    if valid_stop == growth.validation.top:
        growth.validation.top = valid_start


def _choose(growth, node, start, stop):
    return choose_split(growth.work, growth.nodes, growth.rows, growth.candidates, node, start, stop, growth.progress)


def _next_split(growth, entry, node, start, stop):
    """Return the attribute of a pending node's split, -1 for none. The split becomes the chosen candidate."""
    if growth.work.parameters.max_leaf_nodes >= 0:
        load_split(growth.pending, entry, growth.candidates)
        set_context(growth.work, growth.nodes, growth.rows, node, start, stop)
        return growth.pending.attribute[entry]
    chosen = _choose(growth, node, start, stop)
    if chosen >= 0:
        growth.candidates.chosen_ints[:] = growth.candidates.ints[chosen]
        growth.candidates.chosen_reals[:] = growth.candidates.reals[chosen]
    return chosen


def _is_subset_split(growth):
    return growth.candidates.chosen_ints[c.INT_TEST] == NOMINAL and growth.work.parameters.nominal != c.MULTIWAY


def split_rows(growth, node, chosen, start, stop, max_nodes, max_codes):
    """Write a node's children and its chosen split. Return False if a limit or too light branches forbid it.

    The children follow the last node, and ``nodes.n`` does not count them. If the tree would become too large,
    ``growth.status`` says so.
    """
    growth.branches.n = 2
    if growth.candidates.chosen_ints[c.INT_TEST] == NOMINAL and growth.work.parameters.nominal == c.MULTIWAY:
        growth.branches.n = growth.work.columns.n_codes[chosen]
    n_new = growth.branches.n - 1
    if growth.work.parameters.max_leaf_nodes >= 0 and growth.n_leaves + n_new > growth.work.parameters.max_leaf_nodes:
        return False
    if growth.nodes.n + growth.branches.n > max_nodes:
        growth.status = c.TOO_MANY_NODES
        return False
    growth.nodes.reserve(growth.nodes.n + growth.branches.n)
    if not _assign_rows(growth, chosen, start, stop):
        return False
    _add_children(growth, node, chosen, start, stop, max_codes)
    return growth.status == c.DONE


def _assign_rows(growth, chosen, start, stop):
    """Assign the known rows to branches and weigh the branches. Return False if REPTree's rule forbids the split."""
    if _is_subset_split(growth):
        find_subset_again(growth.work, growth.rows, growth.branches, growth.candidates, chosen)
    assign_branches(growth.work, growth.rows, growth.branches, growth.candidates, chosen, start, stop)
    weigh_branches(growth.rows, growth.branches, start, stop)
    if growth.work.parameters.leaf_weight_of_winner and growth.work.parameters.missing == c.SPREAD:
        is_threshold: cython.bint = growth.work.columns.kind[chosen] == c.ORDERED_KIND
        sequence = growth.rows.master
        if is_threshold:
            sequence = growth.rows.orders[growth.work.columns.order_place[chosen]]
        n_heavy = weigh_row_by_row(
            growth.work, sequence, growth.branches,
            growth.nodes.stats[growth.nodes.n : growth.nodes.n + growth.branches.n], is_threshold, start, stop,
        )  # fmt: skip
        if n_heavy < 2:
            if _is_subset_split(growth):
                reset_categories(growth.work, growth.rows, growth.branches, chosen, start, stop)
            return False
    return True


def _add_children(growth, node, chosen, start, stop, max_codes):
    """Write the test of a node, and its children. If there is a fallback, assign the rows with unknown value.

    The first surrogate whose attribute is known in a row assigns the row. Without such a surrogate, the fallback does.
    """
    branch: cython.int
    growth.branches.fallback = -1
    if growth.work.parameters.missing not in (c.FRACTIONAL, c.SPREAD):
        set_fallback(growth.branches, growth.candidates.chosen_ints[c.INT_UNKNOWN])
    growth.branches.known_weight = 0.0
    for branch in range(growth.branches.n):
        growth.branches.known_weight += growth.branches.weight[branch]
    growth.nodes.ints[node, column.FIRST_SURROGATE] = growth.surrogates.n
    if (
        growth.work.parameters.missing == c.SURROGATE
        and growth.branches.n == 2
        and growth.work.parameters.max_surrogates > 0
    ):
        growth.nodes.ints[node, column.N_SURROGATES] = add_surrogates(
            growth.work, growth.rows, growth.branches, growth.surrogates, chosen, start, stop
        )
        if growth.surrogates.n_codes > max_codes:
            growth.status = c.TOO_MANY_CATEGORIES
            return 0
    if growth.branches.fallback >= 0 and growth.branches.n_unknown > 0:
        assign_unknown(growth.rows, growth.branches, start, stop)

    paid_link = growth.nodes.ints[node, column.PAID_LINK]
    if growth.work.parameters.cost_function != c.NO_COSTS and not is_paid(
        growth.nodes, node, growth.work.columns.first_attribute + chosen
    ):
        paid_link = node
    start_children(growth.work, growth.nodes, growth.rows, growth.branches, node, paid_link, start, stop)
    growth.nodes.ints[node, column.FIRST_CHILD] = growth.nodes.n
    growth.nodes.ints[node, column.N_CHILDREN] = growth.branches.n
    if growth.work.parameters.missing == c.SURROGATE:
        # The fallback is the heaviest child by all its rows, including those assigned by surrogates, as in rpart.
        growth.branches.fallback = heaviest(
            growth.nodes.reals[growth.nodes.n : growth.nodes.n + growth.branches.n, column.WEIGHT]
        )
    growth.nodes.ints[node, column.FALLBACK] = growth.branches.fallback
    growth.nodes.reals[node, column.GAIN] = growth.candidates.chosen_reals[c.REAL_GAIN]
    n_codes = growth.nodes.n_codes + write_test(growth.work, growth.nodes, node, chosen, growth.candidates)
    if n_codes > max_codes:
        growth.status = c.TOO_MANY_CATEGORIES
        return 0
    if n_codes > growth.nodes.n_codes:
        growth.nodes.reserve_codes(n_codes)
        write_codes(growth.work, growth.nodes, growth.branches, growth.candidates, chosen)
    if _is_subset_split(growth):
        reset_categories(growth.work, growth.rows, growth.branches, chosen, start, stop)
    if growth.work.parameters.criterion == c.ABSOLUTE_ERROR:
        set_medians(growth.work, growth.nodes, growth.rows, growth.branches, growth.nodes.n, start, stop)
    return 0


def _move_rows(growth, first_child, start, stop):
    """Move the rows of the children that may be split, last child first, and make these children pending nodes.

    Return False if no child may be split.
    """
    branch: cython.int
    needed: cython.longlong = 0
    n_live: cython.int = 0
    for branch in range(growth.branches.n):
        if growth.branches.n_rows[branch] == 0 or must_stop(growth.work, growth.nodes, first_child + branch):
            growth.branches.n_rows[branch] = -1
            growth.finished += growth.nodes.reals[first_child + branch, column.WEIGHT]
        else:
            needed += growth.branches.n_rows[branch]
            n_live += 1
    _finish(growth, 0.0)
    if n_live == 0:
        return False
    base = start
    if stop != growth.rows.top and needed > stop - start:
        base = growth.rows.top
    growth.rows.reserve(base + needed, needed)
    partition_rows(growth.rows, growth.branches, start, stop, base, needed)
    for order in range(growth.rows.orders.shape[0]):
        if growth.progress[1] != 0.0:
            break
        partition_order(growth.rows, growth.branches, order, start, stop, base, needed)
    if growth.rows.top in (base, stop):
        growth.rows.top = base + needed
    growth.pending.reserve(growth.pending.n + n_live)
    add_pending(growth.pending, growth.branches, first_child, base)
    return True


def _move_validation_rows(growth, node, first_new, n_routed, start, stop):
    """Move a node's validation rows to its pending children. `n_routed`: number of rows of all children."""
    base = start
    if stop != growth.validation.top and n_routed > stop - start:
        base = growth.validation.top
    growth.validation.reserve(base + n_routed, n_routed)
    n_moved = partition_validation(growth, node, first_new, start, stop, base)
    if growth.validation.top in (base, stop):
        growth.validation.top = base + n_moved


def _choose_splits_of_children(growth, first_new):
    # The children are taken in branch order: the last child was appended first.
    for entry in range(growth.pending.n - 1, first_new - 1, -1):
        node: cython.int = growth.pending.node[entry]
        attribute = _choose(growth, node, growth.pending.start[entry], growth.pending.stop[entry])
        store_split(growth.pending, entry, growth.candidates, attribute)
        if attribute < 0:
            growth.finished += growth.nodes.reals[node, column.WEIGHT]
        else:
            push(growth.pending, growth.nodes, entry)
