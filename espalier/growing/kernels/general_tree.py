"""The general grower: every criterion, strategy and split type, grown by one compiled loop.

A node that may still be split owns the rows ``start:stop`` of the master sequence (row, weight) and the same range of
each presorted order. Its children take over that range, or are written at the top if they need more room (a row with
an unknown value goes down several branches)::

    master   | pending | pending |  current node  |        free          depth-first: the last child is the next node,
                                 start          stop = top               so the current range always ends at the top
                                 | c2 | c1 | c0 |

Nodes are numbered in order of creation (children of one node side by side); `growing.finalize` puts them in preorder.
There is no recursion and no allocation per node; arrays that run full are doubled.

The steps of the loop are in other modules: `choose_split` (which attribute), `assign_branches` (which branch), `nodes`
(statistics of the children), `partition` (their rows), and for few configurations `surrogates` and `validation`.
"""

import math

import numpy as np

from espalier.growing.kernels import constants as c, nodes as n
from espalier.growing.kernels.assign_branches import (
    assign_branches,
    assign_unknown,
    fallback_of,
    heaviest_child,
    reset_categories,
    weigh_branches,
    weigh_row_by_row,
    write_codes,
    write_test,
)
from espalier.growing.kernels.candidate import INT_TEST, INT_UNKNOWN, N_INTS, N_REALS, REAL_GAIN
from espalier.growing.kernels.choose_split import choose_split, is_paid, must_stop
from espalier.growing.kernels.partition import partition_order, partition_rows, place_branches
from espalier.growing.kernels.surrogates import N_S_INTS, N_S_REALS, add_surrogates
from espalier.growing.kernels.validation import loses_by_split, partition_validation
from espalier.kernels.jit import compiled, inner

ROUNDING = 2.0**30


@compiled
def grow_tree(parameters, columns, targets, work, orders, progress, depth, max_rows_to_delegate, max_nodes, max_codes):
    """Grow one tree, or its top, or the subtree of one of its nodes.

    parameters, columns, targets: the named tuples of `constants`. work: `growing.workspace.Workspace`. orders: int32
    (ordered attributes, n), presorted. progress: float64 (2), share of finished weight (written) and stop flag (read).
    depth: of the root. max_rows_to_delegate: nodes of at most so many rows are left to other calls (0: none).

    Returns (status, nodes, node ints, node reals, node statistics, code table, its length, surrogate ints, surrogate
    reals, number of surrogates, branches of surrogate codes, their length), and of the delegated nodes (node, start,
    stop) as int64 (delegated, 3), the master sequence, its weights, and the orders.
    """
    n_attributes, n_rows = columns.codes.shape
    width = parameters.n_classes if parameters.n_classes > 0 else 3
    capacity = n_rows if n_rows > 0 else 1
    master, master_weight = np.empty(capacity, np.int32), np.empty(capacity, np.float64)
    spare, spare_weight = np.empty(capacity + 1, np.int32), np.empty(capacity + 1, np.float64)
    branch_of_row = np.empty(n_rows, np.int32)

    node_ints = np.empty((64, n.N_NODE_INTS), np.int32)
    node_reals = np.empty((64, n.N_NODE_REALS), np.float64)
    node_stats = np.empty((64, width), np.float64)
    code_table = np.empty(64, np.int32)
    n_code_entries = 0
    surrogate_ints, surrogate_reals = np.empty((16, N_S_INTS + 1), np.int32), np.empty((16, N_S_REALS), np.float64)
    surrogate_codes = np.empty(64, np.int32)
    n_surrogates, n_surrogate_codes = 0, 0

    candidate_ints, candidate_reals = (
        np.empty((n_attributes, N_INTS), np.int32),
        np.empty((n_attributes, N_REALS), np.float64),
    )
    chosen_ints, chosen_reals = np.empty(N_INTS, np.int32), np.empty(N_REALS, np.float64)
    again_ints, again_reals = np.empty(N_INTS, np.int32), np.empty(N_REALS, np.float64)

    max_branches, max_categories = 2, 1
    for attribute in range(n_attributes):
        if columns.kind[attribute] != c.ORDERED_KIND:
            max_categories = max(max_categories, columns.n_codes[attribute])
    if parameters.nominal == c.MULTIWAY:
        max_branches = max(max_branches, max_categories)
    branch_weight = np.empty(max_branches, np.float64)
    branch_count, branch_at = np.empty(max_branches, np.int64), np.empty(max_branches, np.int64)
    branch_of_code = np.empty(max_categories, np.int32)
    for code in range(max_categories):
        branch_of_code[code] = -1

    # Pending nodes: node, start, stop, validation start and stop, and for best-first growth the chosen split.
    pending = np.empty((64, 5), np.int64)
    n_pending = 0
    left = np.empty((64, 3), np.int64)
    n_left = 0
    best_first = parameters.max_leaf_nodes >= 0
    pending_ints, pending_reals = np.empty((64, N_INTS + 1), np.int32), np.empty((64, N_REALS), np.float64)
    heap = np.empty(64, np.int64)
    n_heap = 0
    n_leaves = 1
    scratch_side, scratch_count = np.empty(max_categories, np.int32), np.empty(max_categories, np.int64)
    scratch_left, scratch_right = np.empty(max_categories, np.float64), np.empty(max_categories, np.float64)
    found_ints, found_reals = np.empty((n_attributes, N_S_INTS), np.int32), np.empty((n_attributes, N_S_REALS))
    n_validation = work.validation.target.size
    valid_row, valid_weight = np.empty(max(1, n_validation), np.int32), np.empty(max(1, n_validation), np.float64)
    valid_spare, valid_spare_weight = valid_row.copy(), valid_weight.copy()
    for row in range(n_validation):
        valid_row[row] = row
        valid_weight[row] = work.validation.weight[row]
    valid_top = n_validation

    n.start_root(parameters, targets, node_ints, node_reals, node_stats, master, master_weight, depth)
    n_nodes = 1
    top = n_rows
    finished = 0.0
    status = c.DONE
    if n_rows > 0:
        pending[0, 0], pending[0, 1], pending[0, 2], pending[0, 3], pending[0, 4] = 0, 0, n_rows, 0, 0
        n_pending = 1
        pending[0, 4] = n_validation
        if parameters.criterion == c.ABSOLUTE_ERROR:
            n.set_median(work.medians, master, master_weight, 0, n_rows, node_reals, 0)
        if best_first:
            chosen = choose_split(
                parameters, columns, targets, work, orders, master, master_weight, node_ints, node_reals, node_stats, 0,
                0, n_rows, candidate_ints, candidate_reals, progress,
            )  # fmt: skip
            store_split(pending_ints, pending_reals, 0, chosen, candidate_ints, candidate_reals)
            heap[0] = 0
            n_heap = 1

    while True:
        # The next node and its attribute.
        entry = n_pending - 1
        if best_first:
            entry = n_heap - 1
            if n_heap > 0:
                entry = pop(heap, n_heap, pending, pending_ints, pending_reals, node_reals)
                n_heap -= 1
        else:
            n_pending -= 1
        if entry < 0:
            break
        node, start, stop = pending[entry, 0], pending[entry, 1], pending[entry, 2]
        if stop - start <= max_rows_to_delegate:
            # Its rows stay in place for the call that grows it.
            if n_left == left.shape[0]:
                left = n.enlarge_rows(left, n_left, 2 * n_left)
            left[n_left, 0], left[n_left, 1], left[n_left, 2] = node, start, stop
            n_left += 1
            continue
        chosen = -1
        if best_first:
            chosen = pending_ints[entry, N_INTS]
            for k in range(N_INTS):
                chosen_ints[k] = pending_ints[entry, k]
            for k in range(N_REALS):
                chosen_reals[k] = pending_reals[entry, k]
            for at in range(start, stop):
                work.sums.weight[master[at]] = master_weight[at]
        else:
            chosen = choose_split(
                parameters, columns, targets, work, orders, master, master_weight, node_ints, node_reals, node_stats,
                node, start, stop, candidate_ints, candidate_reals, progress,
            )  # fmt: skip
            if chosen >= 0:
                for k in range(N_INTS):
                    chosen_ints[k] = candidate_ints[chosen, k]
                for k in range(N_REALS):
                    chosen_reals[k] = candidate_reals[chosen, k]
        if progress[1] != 0.0:
            status = c.STOPPED
            break
        n_branches = 2
        if chosen >= 0 and chosen_ints[INT_TEST] == c.NOMINAL and parameters.nominal == c.MULTIWAY:
            n_branches = columns.n_codes[chosen]
        if best_first and n_leaves + n_branches - 1 > parameters.max_leaf_nodes:
            chosen = -1
        if chosen >= 0 and n_nodes + n_branches > node_ints.shape[0]:
            more = max(n_nodes + n_branches, 2 * node_ints.shape[0])
            node_ints = n.enlarge_rows(node_ints, n_nodes, more)
            node_reals = n.enlarge_rows(node_reals, n_nodes, more)
            node_stats = n.enlarge_rows(node_stats, n_nodes, more)
        if chosen >= 0 and n_nodes + n_branches > max_nodes:
            status = c.TOO_MANY_NODES
            break

        # Branches of the rows, weights of the branches.
        unknown_weight, n_unknown = 0.0, 0
        if chosen >= 0:
            assign_branches(
                parameters, columns, targets, work, master, master_weight, start, stop, node_reals[node, n.WEIGHT],
                node_stats[node], chosen, chosen_ints, branch_of_row, branch_of_code, again_ints, again_reals,
            )  # fmt: skip
            unknown_weight, n_unknown = weigh_branches(
                master, master_weight, start, stop, branch_of_row, n_branches, branch_weight, branch_count
            )
            if parameters.leaf_weight_of_winner == 1 and parameters.missing == c.SPREAD:
                is_cut = columns.kind[chosen] == c.ORDERED_KIND
                n_heavy = weigh_row_by_row(
                    parameters, targets, work.sums, orders[columns.order_place[chosen]] if is_cut else master, start,
                    stop, branch_of_row, is_cut, node_stats[n_nodes : n_nodes + n_branches], branch_weight,
                    branch_count,
                )  # fmt: skip
                if n_heavy < 2:
                    if parameters.nominal != c.MULTIWAY and columns.kind[chosen] == c.NOMINAL_KIND:
                        reset_categories(columns, master, start, stop, chosen, branch_of_code)
                    chosen = -1
        if chosen < 0:
            finished += node_reals[node, n.WEIGHT]
            progress[0] = finished / parameters.root_weight
            if stop == top:
                top = start
            if pending[entry, 4] == valid_top:
                valid_top = pending[entry, 3]
            continue
        fallback = -1
        if parameters.missing not in (c.FRACTIONAL, c.SPREAD):
            fallback = fallback_of(chosen_ints[INT_UNKNOWN], n_branches, branch_weight, unknown_weight)
        known_weight = 0.0
        for branch in range(n_branches):
            known_weight += branch_weight[branch]
        node_ints[node, n.FIRST_SURROGATE] = n_surrogates
        if parameters.missing == c.SURROGATE and n_branches == 2 and parameters.max_surrogates > 0:
            surrogate_ints, surrogate_reals, surrogate_codes, n_found, n_surrogate_codes = add_surrogates(
                parameters, targets, columns, orders, master, start, stop, work.sums.weight, branch_of_row,
                branch_weight, branch_count, chosen, parameters.max_surrogates, found_ints, found_reals, scratch_side,
                scratch_left, scratch_right, scratch_count, surrogate_ints, surrogate_reals, surrogate_codes,
                n_surrogates, n_surrogate_codes,
            )  # fmt: skip
            node_ints[node, n.N_SURROGATES] = n_found
            n_surrogates += n_found
        if fallback >= 0 and n_unknown > 0:
            assign_unknown(master, start, stop, branch_of_row, fallback, branch_count)

        # The children, with their statistics; the test.
        first_child = n_nodes
        paid_link = node_ints[node, n.PAID_LINK]
        if parameters.cost_function != c.NO_COSTS and not is_paid(node_ints, node, chosen):
            paid_link = node
        n.start_children(
            parameters, targets, node_ints, node_reals, node_stats, node, first_child, n_branches, paid_link, master,
            master_weight, start, stop, branch_of_row, branch_weight, known_weight, branch_count,
        )  # fmt: skip
        node_ints[node, n.FIRST_CHILD] = first_child
        node_ints[node, n.N_CHILDREN] = n_branches
        if parameters.missing == c.SURROGATE:
            # By all rows of the children, including those assigned by surrogates, like rpart.
            fallback = heaviest_child(node_reals, first_child, n_branches)
        node_ints[node, n.FALLBACK] = fallback
        node_reals[node, n.GAIN] = chosen_reals[REAL_GAIN]
        n_codes = write_test(
            parameters, columns, work.cut_points, node_ints, node_reals, node, chosen, chosen_ints, n_code_entries
        )
        if n_codes > 0:
            if n_code_entries + n_codes > max_codes:
                status = c.TOO_MANY_CATEGORIES
                break
            if n_code_entries + n_codes > code_table.size:
                code_table = n.enlarge(code_table, n_code_entries, max(n_code_entries + n_codes, 2 * code_table.size))
            write_codes(parameters, columns, chosen, chosen_ints, branch_of_code, code_table, n_code_entries)
            n_code_entries += n_codes
        if (
            parameters.nominal != c.MULTIWAY
            and columns.kind[chosen] == c.NOMINAL_KIND
            and node_ints[node, n.TEST] == c.NOMINAL
        ):
            reset_categories(columns, master, start, stop, chosen, branch_of_code)
        valid_start, valid_stop, n_routed = pending[entry, 3], pending[entry, 4], 0
        if parameters.criterion == c.ABSOLUTE_ERROR:
            n.set_medians(
                work.medians, master, master_weight, start, stop, branch_of_row, n_branches, branch_weight,
                known_weight, branch_count, spare, spare_weight, node_reals, first_child,
            )  # fmt: skip
        if n_validation > 0:
            worse, n_routed = loses_by_split(
                parameters, columns, work.validation, node_ints, node_reals, code_table, surrogate_ints,
                surrogate_reals, surrogate_codes, node, n_branches, valid_row, valid_weight, valid_start, valid_stop,
            )  # fmt: skip
            if worse:
                n_code_entries = node_ints[node, n.CODE_START]
                n_surrogates = node_ints[node, n.FIRST_SURROGATE]
                n.undo_split(node_ints, node_reals, node)
                finished += node_reals[node, n.WEIGHT]
                progress[0] = finished / parameters.root_weight
                if stop == top:
                    top = start
                if valid_stop == valid_top:
                    valid_top = valid_start
                continue
        n_leaves += n_branches - 1
        n_nodes += n_branches

        # Which children may be split, and where their rows are moved: the last one first.
        needed = 0
        n_live = 0
        for branch in range(n_branches):
            child = first_child + branch
            if must_stop(parameters, node_ints, node_reals, node_stats, child) or branch_count[branch] == 0:
                branch_count[branch] = -1
                finished += node_reals[child, n.WEIGHT]
            else:
                needed += branch_count[branch]
                n_live += 1
        progress[0] = finished / parameters.root_weight
        if n_live == 0:
            if stop == top:
                top = start
            if valid_stop == valid_top:
                valid_top = valid_start
            continue
        base = start
        if stop != top and needed > stop - start:
            base = top
        if base + needed > capacity:
            more = max(base + needed, capacity + capacity // 2)
            master, master_weight = n.enlarge(master, top, more), n.enlarge(master_weight, top, more)
            orders = n.enlarge_columns(orders, top, more)
            capacity = more
        if needed >= spare.size:  # one entry more than is needed: see `partition`
            spare, spare_weight = n.enlarge(spare, 0, capacity + 1), n.enlarge(spare_weight, 0, capacity + 1)
        place_branches(n_branches, branch_count, branch_at)
        partition_rows(
            master, master_weight, start, stop, base, branch_of_row, n_branches, branch_weight, known_weight, branch_at,
            spare, spare_weight, needed,
        )  # fmt: skip
        for order in range(orders.shape[0]):
            if progress[1] != 0.0:
                break
            place_branches(n_branches, branch_count, branch_at)
            partition_order(
                orders[order], start, stop, base, branch_of_row, n_branches, branch_weight, branch_at, spare, needed
            )
        if top in (base, stop):
            top = base + needed

        # The pending children.
        if n_pending + n_live > pending.shape[0]:
            more = max(n_pending + n_live, 2 * pending.shape[0])
            pending = n.enlarge_rows(pending, n_pending, more)
            pending_ints = n.enlarge_rows(pending_ints, n_pending, more)
            pending_reals = n.enlarge_rows(pending_reals, n_pending, more)
            heap = n.enlarge(heap, n_heap, more)
        first_new = n_pending
        n_pending = add_pending(pending, n_pending, first_child, n_branches, branch_count, base)
        if n_validation > 0:
            valid_base = valid_start
            if valid_stop != valid_top and n_routed > valid_stop - valid_start:
                valid_base = valid_top
            if valid_base + n_routed > valid_row.size:
                more = 2 * (valid_base + n_routed)
                valid_row = n.enlarge(valid_row, valid_top, more)
                valid_weight = n.enlarge(valid_weight, valid_top, more)
            if n_routed > valid_spare.size:
                valid_spare = n.enlarge(valid_spare, 0, 2 * n_routed)
                valid_spare_weight = n.enlarge(valid_spare_weight, 0, 2 * n_routed)
            valid_at = partition_validation(
                columns, work.validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                surrogate_codes, node, valid_row, valid_weight, valid_start, valid_stop, valid_base, pending, first_new,
                n_pending, valid_spare, valid_spare_weight,
            )  # fmt: skip
            if valid_top in (valid_base, valid_stop):
                valid_top = valid_base + valid_at
        if best_first:
            # In branch order, so that of equal ones the first created is the first in the heap.
            for entry in range(n_pending - 1, first_new - 1, -1):
                chosen = choose_split(
                    parameters, columns, targets, work, orders, master, master_weight, node_ints, node_reals,
                    node_stats, pending[entry, 0], pending[entry, 1], pending[entry, 2], candidate_ints,
                    candidate_reals, progress,
                )  # fmt: skip
                store_split(pending_ints, pending_reals, entry, chosen, candidate_ints, candidate_reals)
                if chosen < 0:
                    finished += node_reals[pending[entry, 0], n.WEIGHT]
                else:
                    push(heap, n_heap, entry, pending, pending_ints, pending_reals, node_reals)
                    n_heap += 1
    if progress[1] != 0.0:
        status = c.STOPPED
    return (
        status, n_nodes, node_ints, node_reals, node_stats, code_table, n_code_entries, surrogate_ints, surrogate_reals,
        n_surrogates, surrogate_codes, n_surrogate_codes, left[:n_left], master, master_weight, orders,
    )  # fmt: skip


@inner
def add_pending(pending, n_pending, first_child, n_branches, branch_count, base):
    """Append the children that have rows, the last one first; their rows start at `base`. Return `n_pending`."""
    at = base
    for branch in range(n_branches - 1, -1, -1):
        if branch_count[branch] > 0:
            pending[n_pending, 0], pending[n_pending, 1] = first_child + branch, at
            at += branch_count[branch]
            pending[n_pending, 2] = at
            n_pending += 1
    return n_pending


@inner
def store_split(pending_ints, pending_reals, entry, chosen, candidate_ints, candidate_reals):
    """Store the split that is chosen for a pending node."""
    pending_ints[entry, N_INTS] = chosen
    if chosen >= 0:
        for k in range(N_INTS):
            pending_ints[entry, k] = candidate_ints[chosen, k]
        for k in range(N_REALS):
            pending_reals[entry, k] = candidate_reals[chosen, k]


@inner
def _priority(entry, pending, pending_ints, pending_reals, node_reals):
    """Return weight · gain of a pending node to 30 bits, so that rounding does not decide between equal ones."""
    if pending_ints[entry, N_INTS] < 0:
        return -math.inf
    fraction, exponent = math.frexp(node_reals[pending[entry, 0], n.WEIGHT] * pending_reals[entry, REAL_GAIN])
    return math.ldexp(math.floor(fraction * ROUNDING + 0.5) / ROUNDING, exponent)


@inner
def _comes_first(left, right, pending, pending_ints, pending_reals, node_reals):
    """Return whether a pending node is split before another: larger weight · gain, then created earlier."""
    left_priority = _priority(left, pending, pending_ints, pending_reals, node_reals)
    right_priority = _priority(right, pending, pending_ints, pending_reals, node_reals)
    return left_priority > right_priority or (left_priority == right_priority and pending[left, 0] < pending[right, 0])


@inner
def push(heap, n_heap, entry, pending, pending_ints, pending_reals, node_reals):
    """Add a pending node to the heap."""
    at = n_heap
    while at > 0:
        above = (at - 1) // 2
        if not _comes_first(entry, heap[above], pending, pending_ints, pending_reals, node_reals):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


@inner
def pop(heap, n_heap, pending, pending_ints, pending_reals, node_reals):
    """Remove the pending node that is split first from the heap and return it."""
    answer = heap[0]
    moving = heap[n_heap - 1]
    at = 0
    while 2 * at + 1 < n_heap - 1:
        below = 2 * at + 1
        if below + 1 < n_heap - 1 and _comes_first(
            heap[below + 1], heap[below], pending, pending_ints, pending_reals, node_reals
        ):
            below += 1
        if not _comes_first(heap[below], moving, pending, pending_ints, pending_reals, node_reals):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moving
    return answer
