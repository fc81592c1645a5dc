"""Any tree that a configuration can ask for, grown whole in compiled code.

The arena. A node that may still be split owns one stretch ``start:stop`` of the master sequence (row, weight) and the
same stretch of each presorted order. Its children take its place, or stand at the top where they are more (a row with
an unknown value goes down several branches)::

    master   | waiting | waiting |  node at hand  |        free          depth-first: the last child is the next node,
                                 start          stop = top               so the stretch at hand always ends at the top
                                 | c2 | c1 | c0 |

Nodes are numbered in the order of their making (children of one node side by side); `freeze` puts them in preorder.
No recursion, no allocation a node; arrays that run full are doubled.

The loop is here, its steps are elsewhere: `choosing` (which attribute), `sides` (which branch), `children` (their
figures), `dealing` (their rows), and what few trees need: `surrogates`, `validating`.
"""

import math

import numpy as np

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.assign_branches import (
    assign_sides,
    fallback_of,
    forget_codes,
    heaviest_child,
    send_unknown,
    weigh_branches,
    weigh_row_by_row,
    write_codes,
    write_test,
)
from espalier.growing.kernels.candidate import INT_TEST, INT_UNKNOWN, N_INTS, N_REALS, REAL_GAIN
from espalier.growing.kernels.children import set_median, set_medians, start_children, start_root, take_back
from espalier.growing.kernels.choose_split import choose, is_paid, must_stop
from espalier.growing.kernels.nodes import (
    CODE_START,
    FALLBACK,
    FIRST_CHILD,
    FIRST_SURROGATE,
    GAIN,
    N_CHILDREN,
    N_NODE_INTS,
    N_NODE_REALS,
    N_SURROGATES,
    PAID_LINK,
    TEST,
    WEIGHT,
    more_int_columns,
    more_int_rows,
    more_ints,
    more_long_rows,
    more_longs,
    more_real_rows,
    more_reals,
)
from espalier.growing.kernels.partition import deal_master, deal_order, place_branches
from espalier.growing.kernels.surrogates import N_S_INTS, N_S_REALS, add_surrogates
from espalier.growing.kernels.validation import deal_validation, losses_of_split
from espalier.kernels.jit import compiled, inner

KEPT = 2.0**30


@compiled
def grow_tree(  # one loop, told from top to bottom
    rules, columns, rows, work, groups, subsets, rare, orders, progress, depth, hand_over, most_nodes, most_codes
):  # fmt: skip
    """Grow one tree, or its top, or the subtree of one of its nodes.

    rules, columns, rows: the named tuples of `codes`. work, groups, subsets, rare: those of `growing.workspace`.
    orders: int32 (ordered attributes, n), presorted. progress: float64 (2), share settled (written) and stop flag
    (read). depth: of the root. hand_over: a node of at most so many rows is left to other calls (0: none).

    Returns (status, nodes, node ints, node reals, node statistics, code table, its length, surrogate ints, surrogate
    reals, number of surrogates, side of surrogate codes, its length), and of the nodes that are left: (node, start,
    stop) of each, int64 (left, 3), the master sequence, its weights, and the orders.
    """
    n_attributes, n_rows = columns.codes.shape
    width = rules.n_classes if rules.n_classes > 0 else 3
    capacity = n_rows if n_rows > 0 else 1
    master, master_weight = np.empty(capacity, np.int32), np.empty(capacity, np.float64)
    spare, spare_weight = np.empty(capacity + 1, np.int32), np.empty(capacity + 1, np.float64)
    side = np.empty(n_rows, np.int32)

    node_ints = np.empty((64, N_NODE_INTS), np.int32)
    node_reals = np.empty((64, N_NODE_REALS), np.float64)
    node_stats = np.empty((64, width), np.float64)
    code_table = np.empty(64, np.int32)
    n_code_entries = 0
    surrogate_ints, surrogate_reals = np.empty((16, N_S_INTS + 1), np.int32), np.empty((16, N_S_REALS), np.float64)
    surrogate_codes = np.empty(64, np.int32)
    n_surrogates, n_surrogate_codes = 0, 0

    offer_ints, offer_reals = np.empty((n_attributes, N_INTS), np.int32), np.empty((n_attributes, N_REALS), np.float64)
    chosen_ints, chosen_reals = np.empty(N_INTS, np.int32), np.empty(N_REALS, np.float64)
    again_ints, again_reals = np.empty(N_INTS, np.int32), np.empty(N_REALS, np.float64)

    most_branches, most_categories = 2, 1
    for attribute in range(n_attributes):
        if columns.kind[attribute] != c.ORDERED_KIND:
            most_categories = max(most_categories, columns.n_codes[attribute])
    if rules.nominal == c.MULTIWAY:
        most_branches = max(most_branches, most_categories)
    branch_weight = np.empty(most_branches, np.float64)
    branch_count, branch_at = np.empty(most_branches, np.int64), np.empty(most_branches, np.int64)
    branch_of_code = np.empty(most_categories, np.int32)
    for code in range(most_categories):
        branch_of_code[code] = -1

    # Waiting nodes: node, start, stop, validation start and stop, and for best-first growth the split it has chosen.
    waiting = np.empty((64, 5), np.int64)
    n_waiting = 0
    left = np.empty((64, 3), np.int64)
    n_left = 0
    best_first = rules.max_leaf_nodes >= 0
    waiting_ints, waiting_reals = np.empty((64, N_INTS + 1), np.int32), np.empty((64, N_REALS), np.float64)
    heap = np.empty(64, np.int64)
    n_heap = 0
    n_leaves = 1
    scratch_side, scratch_count = np.empty(most_categories, np.int32), np.empty(most_categories, np.int64)
    scratch_left, scratch_right = np.empty(most_categories, np.float64), np.empty(most_categories, np.float64)
    found_ints, found_reals = np.empty((n_attributes, N_S_INTS), np.int32), np.empty((n_attributes, N_S_REALS))
    n_validation = rare.valid_target.size
    valid_row, valid_weight = np.empty(max(1, n_validation), np.int32), np.empty(max(1, n_validation), np.float64)
    valid_spare, valid_spare_weight = valid_row.copy(), valid_weight.copy()
    for row in range(n_validation):
        valid_row[row] = row
        valid_weight[row] = rare.valid_weight[row]
    valid_top = n_validation

    start_root(rules, rows, node_ints, node_reals, node_stats, master, master_weight, depth)
    n_nodes = 1
    top = n_rows
    settled = 0.0
    status = c.DONE
    if n_rows > 0:
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3], waiting[0, 4] = 0, 0, n_rows, 0, 0
        n_waiting = 1
        waiting[0, 4] = n_validation
        if rules.criterion == c.ABSOLUTE_ERROR:
            set_median(rare, master, master_weight, 0, n_rows, node_reals, 0)
        if best_first:
            chosen = choose(
                rules, columns, rows, work, groups, subsets, rare, orders, master, master_weight, node_ints,
                node_reals, node_stats, 0, 0, n_rows, offer_ints, offer_reals, progress,
            )  # fmt: skip
            remember(waiting_ints, waiting_reals, 0, chosen, offer_ints, offer_reals)
            heap[0] = 0
            n_heap = 1

    while True:
        # Who is next, and which attribute.
        entry = n_waiting - 1
        if best_first:
            entry = n_heap - 1
            if n_heap > 0:
                entry = pop(heap, n_heap, waiting, waiting_ints, waiting_reals, node_reals)
                n_heap -= 1
        else:
            n_waiting -= 1
        if entry < 0:
            break
        node, start, stop = waiting[entry, 0], waiting[entry, 1], waiting[entry, 2]
        if stop - start <= hand_over:
            # Its stretch stays where it is: who grows it further finds it there.
            if n_left == left.shape[0]:
                left = more_long_rows(left, n_left, 2 * n_left)
            left[n_left, 0], left[n_left, 1], left[n_left, 2] = node, start, stop
            n_left += 1
            continue
        chosen = -1
        if best_first:
            chosen = waiting_ints[entry, N_INTS]
            for k in range(N_INTS):
                chosen_ints[k] = waiting_ints[entry, k]
            for k in range(N_REALS):
                chosen_reals[k] = waiting_reals[entry, k]
            for at in range(start, stop):
                work.weight[master[at]] = master_weight[at]
        else:
            chosen = choose(
                rules, columns, rows, work, groups, subsets, rare, orders, master, master_weight, node_ints, node_reals,
                node_stats, node, start, stop, offer_ints, offer_reals, progress,
            )  # fmt: skip
            if chosen >= 0:
                for k in range(N_INTS):
                    chosen_ints[k] = offer_ints[chosen, k]
                for k in range(N_REALS):
                    chosen_reals[k] = offer_reals[chosen, k]
        if progress[1] != 0.0:
            status = c.STOPPED
            break
        n_branches = 2
        if chosen >= 0 and chosen_ints[INT_TEST] == c.NOMINAL and rules.nominal == c.MULTIWAY:
            n_branches = columns.n_codes[chosen]
        if best_first and n_leaves + n_branches - 1 > rules.max_leaf_nodes:
            chosen = -1
        if chosen >= 0 and n_nodes + n_branches > node_ints.shape[0]:
            more = max(n_nodes + n_branches, 2 * node_ints.shape[0])
            node_ints = more_int_rows(node_ints, n_nodes, more)
            node_reals = more_real_rows(node_reals, n_nodes, more)
            node_stats = more_real_rows(node_stats, n_nodes, more)
        if chosen >= 0 and n_nodes + n_branches > most_nodes:
            status = c.TOO_MANY_NODES
            break

        # Sides of the rows, weights of the branches.
        unknown_weight, n_unknown = 0.0, 0
        if chosen >= 0:
            assign_sides(
                rules, columns, rows, work, groups, subsets, rare, master, master_weight, start, stop,
                node_reals[node, WEIGHT], node_stats[node], chosen, chosen_ints, side, branch_of_code, again_ints,
                again_reals,
            )  # fmt: skip
            unknown_weight, n_unknown = weigh_branches(
                master, master_weight, start, stop, side, n_branches, branch_weight, branch_count
            )
            if rules.leaf_weight_of_winner == 1 and rules.missing == c.SPREAD:
                is_cut = columns.kind[chosen] == c.ORDERED_KIND
                n_heavy = weigh_row_by_row(
                    rules, rows, work, orders[columns.order_place[chosen]] if is_cut else master, start, stop, side,
                    is_cut, node_stats[n_nodes : n_nodes + n_branches], branch_weight, branch_count,
                )  # fmt: skip
                if n_heavy < 2:
                    if rules.nominal != c.MULTIWAY and columns.kind[chosen] == c.NOMINAL_KIND:
                        forget_codes(columns, master, start, stop, chosen, branch_of_code)
                    chosen = -1
        if chosen < 0:
            settled += node_reals[node, WEIGHT]
            progress[0] = settled / rules.root_weight
            if stop == top:
                top = start
            if waiting[entry, 4] == valid_top:
                valid_top = waiting[entry, 3]
            continue
        fallback = -1
        if rules.missing not in (c.FRACTIONAL, c.SPREAD):
            fallback = fallback_of(chosen_ints[INT_UNKNOWN], n_branches, branch_weight, unknown_weight)
        known_weight = 0.0
        for branch in range(n_branches):
            known_weight += branch_weight[branch]
        node_ints[node, FIRST_SURROGATE] = n_surrogates
        if rules.missing == c.SURROGATE and n_branches == 2 and rules.max_surrogates > 0:
            surrogate_ints, surrogate_reals, surrogate_codes, n_found, n_surrogate_codes = add_surrogates(
                rules, rows, columns, orders, master, start, stop, work.weight, side, branch_weight, branch_count,
                chosen, rules.max_surrogates, found_ints, found_reals, scratch_side, scratch_left, scratch_right,
                scratch_count, surrogate_ints, surrogate_reals, surrogate_codes, n_surrogates, n_surrogate_codes,
            )  # fmt: skip
            node_ints[node, N_SURROGATES] = n_found
            n_surrogates += n_found
        if fallback >= 0 and n_unknown > 0:
            send_unknown(master, start, stop, side, fallback, branch_count)

        # The children, with their statistics; the test.
        first_child = n_nodes
        paid_link = node_ints[node, PAID_LINK]
        if rules.cost_function != c.NO_COSTS and not is_paid(node_ints, node, chosen):
            paid_link = node
        start_children(
            rules, rows, node_ints, node_reals, node_stats, node, first_child, n_branches, paid_link, master,
            master_weight, start, stop, side, branch_weight, known_weight, branch_count,
        )  # fmt: skip
        node_ints[node, FIRST_CHILD] = first_child
        node_ints[node, N_CHILDREN] = n_branches
        if rules.missing == c.SURROGATE:
            # By all rows of the children, those that surrogates sent there included: so answers rpart, with its two.
            fallback = heaviest_child(node_reals, first_child, n_branches)
        node_ints[node, FALLBACK] = fallback
        node_reals[node, GAIN] = chosen_reals[REAL_GAIN]
        n_codes = write_test(rules, columns, rare, node_ints, node_reals, node, chosen, chosen_ints, n_code_entries)
        if n_codes > 0:
            if n_code_entries + n_codes > most_codes:
                status = c.TOO_MANY_CATEGORIES
                break
            if n_code_entries + n_codes > code_table.size:
                code_table = more_ints(code_table, n_code_entries, max(n_code_entries + n_codes, 2 * code_table.size))
            write_codes(rules, columns, chosen, chosen_ints, branch_of_code, code_table, n_code_entries)
            n_code_entries += n_codes
        if (
            rules.nominal != c.MULTIWAY
            and columns.kind[chosen] == c.NOMINAL_KIND
            and node_ints[node, TEST] == c.NOMINAL
        ):
            forget_codes(columns, master, start, stop, chosen, branch_of_code)
        valid_start, valid_stop, n_routed = waiting[entry, 3], waiting[entry, 4], 0
        if rules.criterion == c.ABSOLUTE_ERROR:
            set_medians(
                rare, master, master_weight, start, stop, side, n_branches, branch_weight, known_weight,
                branch_count, spare, spare_weight, node_reals, first_child,
            )  # fmt: skip
        if n_validation > 0:
            worse, n_routed = losses_of_split(
                rules, columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                surrogate_codes, node, n_branches, valid_row, valid_weight, valid_start, valid_stop,
            )  # fmt: skip
            if worse:
                n_code_entries = node_ints[node, CODE_START]
                n_surrogates = node_ints[node, FIRST_SURROGATE]
                take_back(node_ints, node_reals, node)
                settled += node_reals[node, WEIGHT]
                progress[0] = settled / rules.root_weight
                if stop == top:
                    top = start
                if valid_stop == valid_top:
                    valid_top = valid_start
                continue
        n_leaves += n_branches - 1
        n_nodes += n_branches

        # Which children may be split further, and where their rows go: the last one first.
        needed = 0
        n_live = 0
        for branch in range(n_branches):
            child = first_child + branch
            if must_stop(rules, node_ints, node_reals, node_stats, child) or branch_count[branch] == 0:
                branch_count[branch] = -1
                settled += node_reals[child, WEIGHT]
            else:
                needed += branch_count[branch]
                n_live += 1
        progress[0] = settled / rules.root_weight
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
            master, master_weight = more_ints(master, top, more), more_reals(master_weight, top, more)
            orders = more_int_columns(orders, top, more)
            capacity = more
        if needed >= spare.size:  # one entry more than is needed: see dealing
            spare, spare_weight = more_ints(spare, 0, capacity + 1), more_reals(spare_weight, 0, capacity + 1)
        place_branches(n_branches, branch_count, branch_at)
        deal_master(
            master, master_weight, start, stop, base, side, n_branches, branch_weight, known_weight, branch_at, spare,
            spare_weight, needed,
        )  # fmt: skip
        for order in range(orders.shape[0]):
            if progress[1] != 0.0:
                break
            place_branches(n_branches, branch_count, branch_at)
            deal_order(orders[order], start, stop, base, side, n_branches, branch_weight, branch_at, spare, needed)
        if top in (base, stop):
            top = base + needed

        # The children that wait.
        if n_waiting + n_live > waiting.shape[0]:
            more = max(n_waiting + n_live, 2 * waiting.shape[0])
            waiting = more_long_rows(waiting, n_waiting, more)
            waiting_ints = more_int_rows(waiting_ints, n_waiting, more)
            waiting_reals = more_real_rows(waiting_reals, n_waiting, more)
            heap = more_longs(heap, n_heap, more)
        first_new = n_waiting
        n_waiting = add_waiting(waiting, n_waiting, first_child, n_branches, branch_count, base)
        if n_validation > 0:
            valid_base = valid_start
            if valid_stop != valid_top and n_routed > valid_stop - valid_start:
                valid_base = valid_top
            if valid_base + n_routed > valid_row.size:
                more = 2 * (valid_base + n_routed)
                valid_row = more_ints(valid_row, valid_top, more)
                valid_weight = more_reals(valid_weight, valid_top, more)
            if n_routed > valid_spare.size:
                valid_spare = more_ints(valid_spare, 0, 2 * n_routed)
                valid_spare_weight = more_reals(valid_spare_weight, 0, 2 * n_routed)
            valid_at = deal_validation(
                columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes,
                node, valid_row, valid_weight, valid_start, valid_stop, valid_base, waiting, first_new, n_waiting,
                valid_spare, valid_spare_weight,
            )  # fmt: skip
            if valid_top in (valid_base, valid_stop):
                valid_top = valid_base + valid_at
        if best_first:
            # In branch order, so that of equals the earlier made is the earlier in the heap.
            for entry in range(n_waiting - 1, first_new - 1, -1):
                chosen = choose(
                    rules, columns, rows, work, groups, subsets, rare, orders, master, master_weight, node_ints,
                    node_reals, node_stats, waiting[entry, 0], waiting[entry, 1], waiting[entry, 2], offer_ints,
                    offer_reals, progress,
                )  # fmt: skip
                remember(waiting_ints, waiting_reals, entry, chosen, offer_ints, offer_reals)
                if chosen < 0:
                    settled += node_reals[waiting[entry, 0], WEIGHT]
                else:
                    push(heap, n_heap, entry, waiting, waiting_ints, waiting_reals, node_reals)
                    n_heap += 1
    if progress[1] != 0.0:
        status = c.STOPPED
    return (
        status, n_nodes, node_ints, node_reals, node_stats, code_table, n_code_entries, surrogate_ints, surrogate_reals,
        n_surrogates, surrogate_codes, n_surrogate_codes, left[:n_left], master, master_weight, orders,
    )  # fmt: skip


@inner
def add_waiting(waiting, n_waiting, first_child, n_branches, branch_count, base):
    """List the children that have rows, the last one first, as its rows stand from `base` on; gives how many wait."""
    at = base
    for branch in range(n_branches - 1, -1, -1):
        if branch_count[branch] > 0:
            waiting[n_waiting, 0], waiting[n_waiting, 1] = first_child + branch, at
            at += branch_count[branch]
            waiting[n_waiting, 2] = at
            n_waiting += 1
    return n_waiting


@inner
def remember(waiting_ints, waiting_reals, entry, chosen, offer_ints, offer_reals):
    """Keep the split that a waiting node has chosen."""
    waiting_ints[entry, N_INTS] = chosen
    if chosen >= 0:
        for k in range(N_INTS):
            waiting_ints[entry, k] = offer_ints[chosen, k]
        for k in range(N_REALS):
            waiting_reals[entry, k] = offer_reals[chosen, k]


@inner
def _worth(entry, waiting, waiting_ints, waiting_reals, node_reals):
    """Give weight · gain of a waiting node to 30 bits, so that rounding does not decide between equal ones."""
    if waiting_ints[entry, N_INTS] < 0:
        return -math.inf
    fraction, exponent = math.frexp(node_reals[waiting[entry, 0], WEIGHT] * waiting_reals[entry, REAL_GAIN])
    return math.ldexp(math.floor(fraction * KEPT + 0.5) / KEPT, exponent)


@inner
def _comes_first(left, right, waiting, waiting_ints, waiting_reals, node_reals):
    """Whether a waiting node is split before another: the larger weight · gain, then the earlier made."""
    left_worth = _worth(left, waiting, waiting_ints, waiting_reals, node_reals)
    right_worth = _worth(right, waiting, waiting_ints, waiting_reals, node_reals)
    return left_worth > right_worth or (left_worth == right_worth and waiting[left, 0] < waiting[right, 0])


@inner
def push(heap, n_heap, entry, waiting, waiting_ints, waiting_reals, node_reals):
    """Put a waiting node into the heap."""
    at = n_heap
    while at > 0:
        above = (at - 1) // 2
        if not _comes_first(entry, heap[above], waiting, waiting_ints, waiting_reals, node_reals):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


@inner
def pop(heap, n_heap, waiting, waiting_ints, waiting_reals, node_reals):
    """Take the waiting node that is split first out of the heap."""
    answer = heap[0]
    moving = heap[n_heap - 1]
    at = 0
    while 2 * at + 1 < n_heap - 1:
        below = 2 * at + 1
        if below + 1 < n_heap - 1 and _comes_first(
            heap[below + 1], heap[below], waiting, waiting_ints, waiting_reals, node_reals
        ):
            below += 1
        if not _comes_first(heap[below], moving, waiting, waiting_ints, waiting_reals, node_reals):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moving
    return answer
