"""Any tree that a configuration can ask for, grown whole in compiled code.

The arena. A node that may still be split owns one stretch ``start:stop`` of the master sequence (row, weight) and the
same stretch of each presorted order. Its children take its place, or stand at the top where they are more (a row with
an unknown value goes down several branches)::

    master   | waiting | waiting |  node at hand  |        free          depth-first: the last child is the next node,
                                 start          stop = top               so the stretch at hand always ends at the top
                                 | c2 | c1 | c0 |

Nodes are numbered in the order of their making (children of one node side by side); `freeze` puts them in preorder.
No recursion, no allocation a node; arrays that run full are doubled.
"""

import math

import numpy as np

from espalier.kernels import codes as c
from espalier.kernels.deviation import group_deviation
from espalier.kernels.impurity import clear, term
from espalier.kernels.jit import compiled, inner
from espalier.kernels.nodes import (
    CODE_START,
    DEPTH,
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    FIRST_SURROGATE,
    GAIN,
    HEURISTIC,
    HIGHEST,
    LOWEST,
    N_CHILDREN,
    N_NODE_INTS,
    N_NODE_REALS,
    N_SURROGATES,
    PAID_LINK,
    SHARE,
    TEST,
    THRESHOLD,
    VALUE,
    WEIGHT,
    more_int_columns,
    more_int_rows,
    more_ints,
    more_long_rows,
    more_longs,
    more_real_rows,
    more_reals,
    start_node,
)
from espalier.kernels.offers import (
    INT_ABOVE,
    INT_BELOW,
    INT_EXPERT,
    INT_HEURISTIC,
    INT_TEST,
    INT_UNKNOWN,
    N_INTS,
    N_REALS,
    REAL_GAIN,
    REAL_KNOWN,
    REAL_SCORE,
    REAL_SECOND,
    WEIGHT_TOLERANCE,
    Place,
    nothing,
    offer_nominal,
    offer_ordered,
    tie_of,
)
from espalier.kernels.surrogates import (
    N_S_INTS,
    N_S_REALS,
    S_ATTRIBUTE,
    S_BELOW,
    S_TEST,
    S_THRESHOLD,
    find_surrogates,
    middle_of,
    nominal_sides,
)

GUARD_SLACK = 1e-3
VALIDATION_SLACK = 1e-9


@compiled
def grow_tree(  # one loop, told from top to bottom
    rules, columns, rows, work, orders, validation, progress, first_capacity, most_nodes, most_codes
):  # fmt: skip
    """Grow one tree.

    rules, columns, rows, work: the named tuples of `codes` and `offers`. orders: int32 (ordered attributes, capacity),
    the first n entries of each presorted. validation: (codes float64 (F, v), class or number float64 (v), weight
    float64 (v)), v = 0: none is looked at. progress: float64 (2), share settled (written) and stop flag (read).

    Returns (status, nodes, node ints, node reals, node statistics, code table, its length, surrogate ints, surrogate
    reals, number of surrogates, side of surrogate codes, its length).
    """
    n_attributes, n_rows = columns.codes.shape
    n_classes = rules.n_classes
    width = n_classes if n_classes > 0 else 3
    capacity = first_capacity
    master = np.empty(capacity, np.int32)
    master_weight = np.empty(capacity, np.float64)
    spare = np.empty(capacity, np.int32)
    spare_weight = np.empty(capacity, np.float64)
    side = np.empty(n_rows, np.int32)

    node_ints = np.empty((64, N_NODE_INTS), np.int32)
    node_reals = np.empty((64, N_NODE_REALS), np.float64)
    node_stats = np.empty((64, width), np.float64)
    code_table = np.empty(64, np.int32)
    n_code_entries = 0
    surrogate_ints = np.empty((16, N_S_INTS + 1), np.int32)
    surrogate_reals = np.empty((16, N_S_REALS), np.float64)
    surrogate_codes = np.empty(16, np.int32)
    n_surrogates = 0
    n_surrogate_codes = 0

    offer_ints = np.empty((n_attributes, N_INTS), np.int32)
    offer_reals = np.empty((n_attributes, N_REALS), np.float64)
    chosen_ints = np.empty(N_INTS, np.int32)
    chosen_reals = np.empty(N_REALS, np.float64)

    again_ints = np.empty(N_INTS, np.int32)
    again_reals = np.empty(N_REALS, np.float64)

    most_branches = 2
    most_categories = 1
    for attribute in range(n_attributes):
        if columns.kind[attribute] != c.ORDERED_KIND:
            most_categories = max(most_categories, columns.n_codes[attribute])
    if rules.nominal == c.MULTIWAY:
        most_branches = max(most_branches, most_categories)
    branch_weight = np.zeros(most_branches, np.float64)
    branch_count = np.zeros(most_branches, np.int64)
    branch_at = np.zeros(most_branches, np.int64)
    branch_of_code = np.full(most_categories, -1, np.int32)
    scratch_side = np.empty(most_categories, np.int32)
    scratch_left = np.empty(most_categories, np.float64)
    scratch_right = np.empty(most_categories, np.float64)
    scratch_count = np.empty(most_categories, np.int64)
    found_ints = np.empty((n_attributes, N_S_INTS), np.int32)
    found_reals = np.empty((n_attributes, N_S_REALS), np.float64)

    n_validation = validation[1].size
    stops_by_validation = n_validation > 0
    valid_row = np.empty(max(1, n_validation), np.int32)
    valid_weight = np.empty(max(1, n_validation), np.float64)
    valid_spare = np.empty(max(1, n_validation), np.int32)
    valid_spare_weight = np.empty(max(1, n_validation), np.float64)

    # Waiting nodes: node, start, stop, validation start and stop, and for best-first growth the split it has chosen.
    best_first = rules.max_leaf_nodes >= 0
    waiting = np.empty((64, 5), np.int64)
    waiting_ints = np.empty((64, N_INTS + 1), np.int32)
    waiting_reals = np.empty((64, N_REALS), np.float64)
    heap = np.empty(64, np.int64)
    n_waiting = 0
    n_heap = 0
    n_leaves = 1

    # The root.
    for k in range(width):
        node_stats[0, k] = 0.0
    for row in range(n_rows):
        master[row] = row
        master_weight[row] = rows.weight[row]
    start_node(node_ints, node_reals, 0, -1, 0, -1)
    node_reals[0, SHARE] = math.nan
    for row in range(n_rows):
        _add_to_node(rules, rows, node_reals, node_stats, 0, row, rows.weight[row])
    _finish_means(rules, node_reals, node_stats, 0, 1)
    for row in range(n_rows):
        _add_square(rules, rows, node_stats, 0, row, rows.weight[row])
    _finish_values(rules, node_reals, node_stats, 0, 1, 0.0)
    n_nodes = 1
    top = n_rows
    valid_top = n_validation
    for row in range(n_validation):
        valid_row[row] = row
        valid_weight[row] = validation[2][row]
    settled = 0.0
    if n_rows > 0:
        waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3], waiting[0, 4] = 0, 0, n_rows, 0, n_validation
        n_waiting = 1
        if rules.criterion == c.ABSOLUTE_ERROR:
            _set_median(rules, rows, work, master, master_weight, 0, n_rows, node_reals, 0)
        if best_first:
            chosen = _choose(
                rules, columns, rows, work, orders, master, master_weight, node_ints, node_reals, node_stats, 0, 0,
                n_rows, offer_ints, offer_reals, progress,
            )  # fmt: skip
            _remember(waiting_ints, waiting_reals, 0, chosen, offer_ints, offer_reals)
            heap[0] = 0
            n_heap = 1

    while (n_heap if best_first else n_waiting) > 0:
        if progress[1] != 0.0:
            return (
                c.STOPPED,
                0,
                node_ints,
                node_reals,
                node_stats,
                code_table,
                n_code_entries,
                surrogate_ints,
                surrogate_reals,
                n_surrogates,
                surrogate_codes,
                n_surrogate_codes,
            )
        if best_first:
            entry = _pop(heap, n_heap, waiting, waiting_ints, waiting_reals, node_reals)
            n_heap -= 1
        else:
            n_waiting -= 1
            entry = n_waiting
        node, start, stop = waiting[entry, 0], waiting[entry, 1], waiting[entry, 2]
        valid_start, valid_stop = waiting[entry, 3], waiting[entry, 4]
        if best_first:
            chosen = waiting_ints[entry, N_INTS]
            for k in range(N_INTS):
                chosen_ints[k] = waiting_ints[entry, k]
            for k in range(N_REALS):
                chosen_reals[k] = waiting_reals[entry, k]
            for at in range(start, stop):
                work.weight[master[at]] = master_weight[at]
        else:
            chosen = _choose(
                rules, columns, rows, work, orders, master, master_weight, node_ints, node_reals, node_stats, node,
                start, stop, offer_ints, offer_reals, progress,
            )  # fmt: skip
            if chosen >= 0:
                for k in range(N_INTS):
                    chosen_ints[k] = offer_ints[chosen, k]
                for k in range(N_REALS):
                    chosen_reals[k] = offer_reals[chosen, k]
        if progress[1] != 0.0:
            continue
        n_branches = 2
        if chosen >= 0 and chosen_ints[INT_TEST] == c.NOMINAL and rules.nominal == c.MULTIWAY:
            n_branches = columns.n_codes[chosen]
        if chosen < 0 or (best_first and n_leaves + n_branches - 1 > rules.max_leaf_nodes):
            settled += node_reals[node, WEIGHT]
            progress[0] = settled / rules.root_weight
            if stop == top:
                top = start
            if valid_stop == valid_top:
                valid_top = valid_start
            continue

        # Sides of the rows, weights of the branches.
        if n_nodes + n_branches > node_ints.shape[0]:
            more = max(n_nodes + n_branches, 2 * node_ints.shape[0])
            node_ints = more_int_rows(node_ints, n_nodes, more)
            node_reals = more_real_rows(node_reals, n_nodes, more)
            node_stats = more_real_rows(node_stats, n_nodes, more)
        if n_nodes + n_branches > most_nodes:
            return (
                c.TOO_MANY_NODES,
                n_nodes,
                node_ints,
                node_reals,
                node_stats,
                code_table,
                n_code_entries,
                surrogate_ints,
                surrogate_reals,
                n_surrogates,
                surrogate_codes,
                n_surrogate_codes,
            )
        _assign_sides(
            rules, columns, rows, work, orders, master, start, stop, node_reals, node_stats, node, chosen,
            chosen_ints, side, branch_of_code, again_ints, again_reals,
        )  # fmt: skip
        for branch in range(n_branches):
            branch_weight[branch] = 0.0
            branch_count[branch] = 0
        unknown_weight = 0.0
        n_unknown = 0
        for at in range(start, stop):
            row = master[at]
            if side[row] >= 0:
                branch_weight[side[row]] += master_weight[at]
                branch_count[side[row]] += 1
            else:
                unknown_weight += master_weight[at]
                n_unknown += 1
        fractional = rules.missing in (c.FRACTIONAL, c.SPREAD)
        fallback = -1
        if not fractional:
            fallback = chosen_ints[INT_UNKNOWN]
            if fallback >= 0:
                # `direction`: the unknown rows belong to a branch from the start.
                branch_weight[fallback] += unknown_weight
            else:
                fallback = 0
                for branch in range(1, n_branches):
                    if branch_weight[branch] > branch_weight[fallback]:
                        fallback = branch
        known_weight = 0.0
        for branch in range(n_branches):
            known_weight += branch_weight[branch]

        # Surrogates, and the way of the unknown rows.
        first_surrogate = n_surrogates
        n_found = 0
        if rules.missing == c.SURROGATE and n_branches == 2 and rules.max_surrogates > 0:
            n_found = find_surrogates(
                columns, orders, master, start, stop, work.weight, side, (branch_weight[0], branch_weight[1]), chosen,
                rules.max_surrogates, found_ints, found_reals, scratch_side, scratch_left, scratch_right,
                scratch_count,
            )  # fmt: skip
            if n_surrogates + n_found > surrogate_ints.shape[0]:
                more = max(n_surrogates + n_found, 2 * surrogate_ints.shape[0])
                surrogate_ints = more_int_rows(surrogate_ints, n_surrogates, more)
                surrogate_reals = more_real_rows(surrogate_reals, n_surrogates, more)
            for i in range(n_found):
                at = n_surrogates + i
                for k in range(N_S_INTS):
                    surrogate_ints[at, k] = found_ints[i, k]
                for k in range(N_S_REALS):
                    surrogate_reals[at, k] = found_reals[i, k]
                surrogate_ints[at, N_S_INTS] = n_surrogate_codes
                if found_ints[i, S_TEST] == c.NOMINAL:
                    other = found_ints[i, S_ATTRIBUTE]
                    nominal_sides(
                        columns, master, start, stop, work.weight, side, other, scratch_side, scratch_left,
                        scratch_right, scratch_count,
                    )  # fmt: skip
                    n_other = columns.n_codes[other]
                    if n_surrogate_codes + n_other > surrogate_codes.size:
                        surrogate_codes = more_ints(
                            surrogate_codes,
                            n_surrogate_codes,
                            max(n_surrogate_codes + n_other, 2 * surrogate_codes.size),
                        )
                    for code in range(n_other):
                        surrogate_codes[n_surrogate_codes + code] = scratch_side[code]
                    n_surrogate_codes += n_other
            n_surrogates += n_found
        if not fractional and n_unknown > 0:
            for at in range(start, stop):
                row = master[at]
                if side[row] >= 0:
                    continue
                branch = fallback
                for i in range(first_surrogate, n_surrogates):
                    answer = _surrogate_branch(columns, surrogate_ints, surrogate_reals, surrogate_codes, i, row)
                    if answer >= 0:
                        branch = answer
                        break
                side[row] = branch
                branch_count[branch] += 1

        # The children, with their statistics.
        first_child = n_nodes
        paid_link = node_ints[node, PAID_LINK]
        if rules.cost_function != c.NO_COSTS and not _is_paid(node_ints, node, chosen):
            paid_link = -2  # becomes the node itself once its attribute is set
        for branch in range(n_branches):
            child = first_child + branch
            start_node(node_ints, node_reals, child, node, node_ints[node, DEPTH] + 1,
                        node if paid_link == -2 else paid_link)  # fmt: skip
            for k in range(width):
                node_stats[child, k] = 0.0
            node_reals[child, SHARE] = branch_weight[branch] / known_weight
        for passing in range(1 if n_classes > 0 else 2):
            for at in range(start, stop):
                row = master[at]
                if side[row] >= 0:
                    if passing == 0:
                        _add_to_node(
                            rules, rows, node_reals, node_stats, first_child + side[row], row, master_weight[at]
                        )
                    else:
                        _add_square(rules, rows, node_stats, first_child + side[row], row, master_weight[at])
                    continue
                for branch in range(n_branches):
                    if branch_weight[branch] > 0.0:
                        weight = master_weight[at] * (branch_weight[branch] / known_weight)
                        if passing == 0:
                            branch_count[branch] += 1
                            _add_to_node(rules, rows, node_reals, node_stats, first_child + branch, row, weight)
                        else:
                            _add_square(rules, rows, node_stats, first_child + branch, row, weight)
            if passing == 0:
                _finish_means(rules, node_reals, node_stats, first_child, n_branches)
        _finish_values(rules, node_reals, node_stats, first_child, n_branches, node_reals[node, VALUE])

        # The test, written before validation rows are sent through it.
        node_ints[node, FEATURE] = chosen
        node_ints[node, TEST] = chosen_ints[INT_TEST]
        node_ints[node, FIRST_CHILD] = first_child
        node_ints[node, N_CHILDREN] = n_branches
        node_ints[node, FALLBACK] = fallback
        node_ints[node, HEURISTIC] = chosen_ints[INT_HEURISTIC]
        node_ints[node, FIRST_SURROGATE] = first_surrogate
        node_ints[node, N_SURROGATES] = n_found
        node_ints[node, CODE_START] = n_code_entries
        node_reals[node, GAIN] = chosen_reals[REAL_GAIN]
        code_entries_before = n_code_entries
        if chosen_ints[INT_TEST] == c.NUMERIC and columns.kind[chosen] == c.ORDERED_KIND:
            node_reals[node, THRESHOLD] = _threshold(rules, columns, chosen, chosen_ints)
        elif chosen_ints[INT_TEST] != c.UNKNOWN:
            node_ints[node, TEST] = c.NOMINAL
            n_codes = columns.n_codes[chosen]
            if n_code_entries + n_codes > most_codes:
                return (c.TOO_MANY_CATEGORIES, n_nodes, node_ints, node_reals, node_stats, code_table,
                              n_code_entries, surrogate_ints, surrogate_reals, n_surrogates, surrogate_codes,
                              n_surrogate_codes)  # fmt: skip
            if n_code_entries + n_codes > code_table.size:
                code_table = more_ints(code_table, n_code_entries, max(n_code_entries + n_codes, 2 * code_table.size))
            _write_codes(rules, columns, chosen, chosen_ints, branch_of_code, code_table, n_code_entries)
            n_code_entries += n_codes
        if columns.kind[chosen] == c.NOMINAL_KIND and chosen_ints[INT_TEST] == c.NOMINAL:
            for at in range(start, stop):
                if columns.codes[chosen, master[at]] >= 0:
                    branch_of_code[columns.codes[chosen, master[at]]] = -1

        if rules.criterion == c.ABSOLUTE_ERROR:
            for branch in range(n_branches):
                if branch_count[branch] > 0:
                    count = _gather_branch(
                        master, master_weight, start, stop, side, branch, branch_weight[branch] / known_weight, spare,
                        spare_weight,
                    )  # fmt: skip
                    _set_median(rules, rows, work, spare, spare_weight, 0, count, node_reals, first_child + branch)

        # Validation rows: their way, and whether the children are worth it.
        n_valid_children = 0
        if stops_by_validation:
            n_routed = 0
            before = 0.0
            after = 0.0
            for at in range(valid_start, valid_stop):
                before += _loss(rules, validation, valid_row[at], valid_weight[at], node_reals[node, VALUE])
            # Twice: first the loss and the room, then the rows themselves.
            for branch in range(n_branches - 1, -1, -1):
                for at in range(valid_start, valid_stop):
                    share = _validation_share(
                        columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                        surrogate_codes, node, valid_row[at], branch,
                    )  # fmt: skip
                    if share > 0.0:
                        after += _loss(
                            rules, validation, valid_row[at], valid_weight[at] * share,
                            node_reals[first_child + branch, VALUE],
                        )  # fmt: skip
                        n_routed += 1
            if after > before + VALIDATION_SLACK * max(1.0, before):
                node_ints[node, FEATURE] = -1
                node_ints[node, TEST] = c.LEAF
                node_ints[node, FIRST_CHILD] = -1
                node_ints[node, N_CHILDREN] = 0
                node_ints[node, FALLBACK] = -1
                node_ints[node, N_SURROGATES] = 0
                node_reals[node, GAIN] = math.nan
                node_reals[node, THRESHOLD] = math.nan
                n_code_entries = code_entries_before
                n_surrogates = first_surrogate
                settled += node_reals[node, WEIGHT]
                progress[0] = settled / rules.root_weight
                if stop == top:
                    top = start
                if valid_stop == valid_top:
                    valid_top = valid_start
                continue
            n_valid_children = n_routed
        n_nodes += n_branches
        n_leaves += n_branches - 1

        # Which children may be split further, and where their rows go: the last one first.
        needed = 0
        n_live = 0
        for branch in range(n_branches):
            child = first_child + branch
            if _must_stop(rules, node_ints, node_reals, node_stats, child) or branch_count[branch] == 0:
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
            master = more_ints(master, top, more)
            master_weight = more_reals(master_weight, top, more)
            orders = more_int_columns(orders, top, more)
            capacity = more
        if needed > spare.size:
            spare = np.empty(capacity, np.int32)
            spare_weight = np.empty(capacity, np.float64)
        at = 0
        for branch in range(n_branches - 1, -1, -1):
            branch_at[branch] = -1
            if branch_count[branch] > 0:
                branch_at[branch] = at
                at += branch_count[branch]
        _deal_master(master, master_weight, start, stop, base, side, n_branches, branch_weight, known_weight, branch_at,
                     spare, spare_weight, needed)  # fmt: skip
        for order in range(orders.shape[0]):
            at = 0
            for branch in range(n_branches - 1, -1, -1):
                if branch_count[branch] > 0:
                    branch_at[branch] = at
                    at += branch_count[branch]
            _deal_order(orders[order], start, stop, base, side, n_branches, branch_weight, branch_at, spare, needed)
        if top in (base, stop):
            top = base + needed

        valid_base = valid_start
        if stops_by_validation:
            if valid_stop != valid_top and n_valid_children > valid_stop - valid_start:
                valid_base = valid_top
            if valid_base + n_valid_children > valid_row.size:
                more = 2 * (valid_base + n_valid_children)
                valid_row = more_ints(valid_row, valid_top, more)
                valid_weight = more_reals(valid_weight, valid_top, more)
            if n_valid_children > valid_spare.size:
                valid_spare = np.empty(2 * n_valid_children, np.int32)
                valid_spare_weight = np.empty(2 * n_valid_children, np.float64)

        if n_waiting + n_live > waiting.shape[0]:
            more = max(n_waiting + n_live, 2 * waiting.shape[0])
            waiting = more_long_rows(waiting, n_waiting, more)
            waiting_ints = more_int_rows(waiting_ints, n_waiting, more)
            waiting_reals = more_real_rows(waiting_reals, n_waiting, more)
            heap = more_longs(heap, n_heap, more)
        at = base
        valid_at = 0
        first_new = n_waiting
        for branch in range(n_branches - 1, -1, -1):
            if branch_count[branch] <= 0:
                continue
            waiting[n_waiting, 0] = first_child + branch
            waiting[n_waiting, 1] = at
            at += branch_count[branch]
            waiting[n_waiting, 2] = at
            waiting[n_waiting, 3] = valid_base + valid_at
            if stops_by_validation:
                for i in range(valid_start, valid_stop):
                    share = _validation_share(
                        columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                        surrogate_codes, node, valid_row[i], branch,
                    )  # fmt: skip
                    if share > 0.0:
                        valid_spare[valid_at] = valid_row[i]
                        valid_spare_weight[valid_at] = valid_weight[i] * share
                        valid_at += 1
            waiting[n_waiting, 4] = valid_base + valid_at
            n_waiting += 1
        if stops_by_validation:
            for i in range(valid_at):
                valid_row[valid_base + i] = valid_spare[i]
                valid_weight[valid_base + i] = valid_spare_weight[i]
            if valid_top in (valid_base, valid_stop):
                valid_top = valid_base + valid_at
        if best_first:
            # In branch order, so that of equals the earlier made is the earlier in the heap.
            for entry in range(n_waiting - 1, first_new - 1, -1):
                chosen = _choose(
                    rules, columns, rows, work, orders, master, master_weight, node_ints, node_reals, node_stats,
                    waiting[entry, 0], waiting[entry, 1], waiting[entry, 2], offer_ints, offer_reals, progress,
                )  # fmt: skip
                _remember(waiting_ints, waiting_reals, entry, chosen, offer_ints, offer_reals)
                if chosen < 0:
                    settled += node_reals[waiting[entry, 0], WEIGHT]
                else:
                    _push(heap, n_heap, entry, waiting, waiting_ints, waiting_reals, node_reals)
                    n_heap += 1

    status = c.STOPPED if progress[1] != 0.0 else c.DONE
    return (
        status,
        n_nodes,
        node_ints,
        node_reals,
        node_stats,
        code_table,
        n_code_entries,
        surrogate_ints,
        surrogate_reals,
        n_surrogates,
        surrogate_codes,
        n_surrogate_codes,
    )


@inner
def _add_to_node(rules, rows, node_reals, node_stats, node, row, weight):
    """Add a row to a node's weight and class weights, or to its weight and sum."""
    node_reals[node, WEIGHT] += weight
    if rules.n_classes > 0:
        node_stats[node, rows.target_class[row]] += weight
        return
    target = rows.target[row]
    node_stats[node, 0] += weight
    node_stats[node, 1] += weight * target
    node_reals[node, LOWEST] = min(node_reals[node, LOWEST], target)
    node_reals[node, HIGHEST] = max(node_reals[node, HIGHEST], target)


@inner
def _finish_means(rules, node_reals, node_stats, first, count):
    """Turn the sums of a regression into means."""
    if rules.n_classes > 0:
        return
    for node in range(first, first + count):
        if node_stats[node, 0] <= 0.0:
            continue
        mean = node_stats[node, 1] / node_stats[node, 0]
        # Rounding must not carry a mean out of the range of its values.
        node_stats[node, 1] = min(max(mean, node_reals[node, LOWEST]), node_reals[node, HIGHEST])


@inner
def _add_square(rules, rows, node_stats, node, row, weight):
    if rules.n_classes == 0:
        apart = rows.target[row] - node_stats[node, 1]
        node_stats[node, 2] += weight * apart * apart


@inner
def _finish_values(rules, node_reals, node_stats, first, count, value_of_parent):
    """Write what each node answers: the first of the heaviest classes, or the mean; its parent's without rows."""
    for node in range(first, first + count):
        if node_reals[node, WEIGHT] <= 0.0:
            node_reals[node, VALUE] = value_of_parent
        elif rules.n_classes > 0:
            best = 0
            for k in range(1, rules.n_classes):
                if node_stats[node, k] > node_stats[node, best]:
                    best = k
            node_reals[node, VALUE] = best
        else:
            node_reals[node, VALUE] = node_stats[node, 1]


@inner
def _must_stop(rules, node_ints, node_reals, node_stats, node):
    """Whether a node is a leaf before any attribute is looked at."""
    weight = node_reals[node, WEIGHT]
    if weight <= 0.0 or weight < max(rules.min_weight_split, 2.0 * rules.min_weight_leaf) - WEIGHT_TOLERANCE:
        return True
    if rules.max_depth >= 0 and node_ints[node, DEPTH] >= rules.max_depth:
        return True
    if rules.n_classes > 0:
        n_present = 0
        for k in range(rules.n_classes):
            if node_stats[node, k] > 0.0:
                n_present += 1
        return n_present < 2
    if node_reals[node, LOWEST] == node_reals[node, HIGHEST]:
        return True
    variance = node_stats[node, 2] / weight
    return variance < rules.min_variance or math.sqrt(variance) < rules.min_sd


@inner
def _impurity_of_node(rules, rows, work, master, start, stop, weight):
    if rules.criterion == c.ABSOLUTE_ERROR:
        return group_deviation(
            master, start, stop, master, stop, stop, 0.0, work.weight, rows.target_rank, rows.target,
            work.target_value, work.weight_tree, work.sum_tree,
        ) / weight  # fmt: skip
    criterion = c.GINI if rules.criterion == c.CHI_SQUARE else rules.criterion
    if criterion == c.POISSON:
        inner = work.node[3] * math.log(work.node[3] / weight) if work.node[3] > 0.0 else 0.0
        total = 0.0
        for at in range(start, stop):
            target = rows.target[master[at]]
            if target > 0.0:
                total += work.weight[master[at]] * target * math.log(target)
        return (total - inner) / weight
    return term(criterion, work.node, work.node) / weight


@inner
def _is_paid(node_ints, node, attribute):
    """Whether the path above a node has tested an attribute; walks only the nodes that paid for a new one."""
    link = node_ints[node, PAID_LINK]
    while link >= 0:
        if node_ints[link, FEATURE] == attribute:
            return True
        link = node_ints[link, PAID_LINK]
    return False


@inner
def _choose(
    rules, columns, rows, work, orders, master, master_weight, node_ints, node_reals, node_stats, node, start, stop,
    offer_ints, offer_reals, progress,
):  # fmt: skip
    """Collect the offers of all attributes at a node; returns the attribute that wins, -1 for a leaf."""
    if _must_stop(rules, node_ints, node_reals, node_stats, node):
        return -1
    weight = node_reals[node, WEIGHT]
    centre = 0.0
    if rules.n_classes > 0:
        for k in range(rules.n_classes):
            work.node[k] = node_stats[node, k]
        for at in range(start, stop):
            work.weight[master[at]] = master_weight[at]
    else:
        centre = node_stats[node, 1]
        clear(work.node)
        for at in range(start, stop):
            row = master[at]
            work.weight[row] = master_weight[at]
            apart = rows.target[row] - centre
            work.node[0] += master_weight[at]
            work.node[1] += master_weight[at] * apart
            work.node[2] += master_weight[at] * apart * apart
            work.node[3] += master_weight[at] * rows.target[row]
    impurity = _impurity_of_node(rules, rows, work, master, start, stop, weight)
    place = Place(start, stop, weight, impurity, centre)
    for attribute in range(columns.codes.shape[0]):
        if progress[1] != 0.0:
            return -1
        paid = rules.cost_function != c.NO_COSTS and _is_paid(node_ints, node, attribute)
        ints, reals = offer_ints[attribute], offer_reals[attribute]
        if columns.kind[attribute] == c.NOMINAL_KIND:
            offer_nominal(rules, columns, rows, work, place, master, attribute, paid, ints, reals)
        else:
            sequence = orders[columns.order_place[attribute]]
            offer_ordered(rules, columns, rows, work, place, sequence, attribute, paid, ints, reals)
    return _winner(rules, columns, place, offer_ints, offer_reals)


@inner
def _winner(rules, columns, place, offer_ints, offer_reals):
    """Give the attribute of the best score among those that may compete, -1 for none."""
    least_gain = nothing(rules, place.impurity)
    average = -math.inf
    if rules.average_gain_guard == 1:
        total = 0.0
        n_counted = 0
        for attribute in range(offer_ints.shape[0]):
            test = offer_ints[attribute, INT_TEST]
            if test == c.LEAF or (columns.many_valued[attribute] == 1 and rules.all_many_valued == 0):
                continue
            if test == c.NUMERIC and not offer_reals[attribute, REAL_GAIN] > least_gain:
                continue
            total += offer_reals[attribute, REAL_GAIN]
            n_counted += 1
        if n_counted == 0:
            return -1
        average = total / n_counted - GUARD_SLACK
    best = -1
    worth = 0.0
    for attribute in range(offer_ints.shape[0]):
        if offer_ints[attribute, INT_TEST] == c.LEAF:
            continue
        gain = offer_reals[attribute, REAL_GAIN]
        if math.isnan(rules.min_impurity_decrease):
            if not gain > least_gain:
                continue
        elif place.weight / rules.root_weight * gain < rules.min_impurity_decrease - least_gain:
            continue
        if gain < average:
            continue
        score = offer_reals[attribute, REAL_SCORE]
        if best < 0 or score > worth + tie_of(rules, worth, place.impurity):
            best = attribute
            worth = score
    if best >= 0 and rules.leaf_weight_of_winner == 1:
        second = offer_reals[best, REAL_SECOND]
        if rules.missing == c.SPREAD:
            second *= place.weight / offer_reals[best, REAL_KNOWN]
        if second < rules.min_weight_leaf - WEIGHT_TOLERANCE:
            return -1
    return best


@inner
def _assign_sides(
    rules, columns, rows, work, orders, master, start, stop, node_reals, node_stats, node, chosen, ints, side,
    branch_of_code, again_ints, again_reals,
):  # fmt: skip
    """Write the branch of each row of a node, -1 where its value is unknown."""
    codes = columns.codes[chosen]
    if ints[INT_TEST] == c.UNKNOWN:
        for at in range(start, stop):
            side[master[at]] = 0 if codes[master[at]] >= 0 else -1
        return
    if ints[INT_TEST] == c.NUMERIC:
        below = ints[INT_BELOW]
        for at in range(start, stop):
            code = codes[master[at]]
            side[master[at]] = -1 if code < 0 else (0 if code <= below else 1)
        return
    if rules.nominal == c.MULTIWAY:
        for at in range(start, stop):
            side[master[at]] = codes[master[at]]
        return
    # The division itself is not kept with an offer: it is found once more, for this attribute alone.
    weight = node_reals[node, WEIGHT]
    centre = 0.0
    if rules.n_classes > 0:
        for k in range(rules.n_classes):
            work.node[k] = node_stats[node, k]
    else:
        centre = node_stats[node, 1]
        clear(work.node)
        for at in range(start, stop):
            row = master[at]
            apart = rows.target[row] - centre
            work.node[0] += work.weight[row]
            work.node[1] += work.weight[row] * apart
            work.node[2] += work.weight[row] * apart * apart
            work.node[3] += work.weight[row] * rows.target[row]
    impurity = _impurity_of_node(rules, rows, work, master, start, stop, weight)
    free = False
    offer_nominal(
        rules, columns, rows, work, Place(start, stop, weight, impurity, centre), master, chosen, free, again_ints,
        again_reals,
    )  # fmt: skip
    for at in range(start, stop):
        if codes[master[at]] >= 0:
            branch_of_code[codes[master[at]]] = -2
    j = 0
    while j < work.place.size and branch_of_code[work.present[work.place[j]]] == -2:
        branch_of_code[work.present[work.place[j]]] = work.branch[j]
        j += 1
    for at in range(start, stop):
        code = codes[master[at]]
        side[master[at]] = -1 if code < 0 else branch_of_code[code]


@inner
def _write_codes(rules, columns, chosen, ints, branch_of_code, code_table, start):
    """Write the branch of each category of a nominal test."""
    for code in range(columns.n_codes[chosen]):
        if columns.kind[chosen] == c.BINARIES_KIND:
            rank = columns.recode[columns.recode_start[chosen] + code]
            branch = 0 if rank <= ints[INT_BELOW] else 1
        elif rules.nominal == c.MULTIWAY:
            branch = code
        elif rules.nominal == c.ONE_VS_REST:
            branch = 0 if code == ints[INT_BELOW] else 1
        else:
            branch = branch_of_code[code]
        code_table[start + code] = branch


@inner
def _threshold(rules, columns, chosen, ints):
    """Give the threshold of a cut: an expert's own, or the middle, moved down to a training value where asked for."""
    if ints[INT_EXPERT] >= 0:
        return columns.expert_value[ints[INT_EXPERT]]
    first = columns.value_start[chosen]
    below, above = ints[INT_BELOW], ints[INT_ABOVE]
    middle = middle_of(columns.value[first + below], columns.value[first + above])
    if rules.observed == 0:
        return middle
    low, high = below, above
    while low + 1 < high:
        rank = (low + high) // 2
        if columns.value[first + rank] <= middle:
            low = rank
        else:
            high = rank
    return columns.value[first + low]


@inner
def _surrogate_branch(columns, surrogate_ints, surrogate_reals, surrogate_codes, i, row):
    """Give the branch that a surrogate sends a training row to, -1 where it does not know either."""
    attribute = surrogate_ints[i, S_ATTRIBUTE]
    code = columns.codes[attribute, row]
    if code < 0:
        return -1
    if surrogate_ints[i, S_TEST] == c.NOMINAL:
        return surrogate_codes[surrogate_ints[i, N_S_INTS] + code]
    below = surrogate_ints[i, S_BELOW]
    value = columns.value[columns.value_start[attribute] + code]
    return below if value <= surrogate_reals[i, S_THRESHOLD] else 1 - below


@inner
def _loss(rules, validation, row, weight, answer):
    """Give the wrong weight of a validation row, or its weighted squared error."""
    truth = validation[1][row]
    if rules.n_classes > 0:
        return weight if truth != answer else 0.0
    return weight * (truth - answer) * (truth - answer)


@inner
def _validation_share(
    columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node, row,
    branch,
):  # fmt: skip
    """Give the share of a validation row that goes down a branch of a node: 0 or 1, or between where it is unknown."""
    attribute = node_ints[node, FEATURE]
    value = validation[0][attribute, row]
    test = node_ints[node, TEST]
    taken = -1
    if test == c.UNKNOWN:
        taken = 1 if math.isnan(value) else 0
    elif not math.isnan(value):
        if test == c.NUMERIC:
            taken = 0 if value <= node_reals[node, THRESHOLD] else 1
        elif value < columns.n_codes[attribute]:
            taken = code_table[node_ints[node, CODE_START] + int(value)]
    if taken < 0 and node_ints[node, FALLBACK] < 0:
        return node_reals[node_ints[node, FIRST_CHILD] + branch, SHARE]
    if taken < 0:
        first = node_ints[node, FIRST_SURROGATE]
        for i in range(first, first + node_ints[node, N_SURROGATES]):
            other = surrogate_ints[i, S_ATTRIBUTE]
            value = validation[0][other, row]
            if math.isnan(value):
                continue
            if surrogate_ints[i, S_TEST] == c.NOMINAL:
                if value < columns.n_codes[other]:
                    taken = surrogate_codes[surrogate_ints[i, N_S_INTS] + int(value)]
            else:
                below = surrogate_ints[i, S_BELOW]
                taken = below if value <= surrogate_reals[i, S_THRESHOLD] else 1 - below
            if taken >= 0:
                break
    if taken < 0:
        taken = node_ints[node, FALLBACK]
    return 1.0 if taken == branch else 0.0


@inner
def _gather_branch(master, master_weight, start, stop, side, branch, share, spare, spare_weight):
    """Copy the rows of one branch, those with unknown values by its share; returns how many there are."""
    count = 0
    for at in range(start, stop):
        taken = side[master[at]]
        if taken == branch or (taken < 0 and share > 0.0):
            spare[count] = master[at]
            spare_weight[count] = master_weight[at] * (share if taken < 0 else 1.0)
            count += 1
    return count


@inner
def _set_median(rules, rows, work, sequence, weights, start, stop, node_reals, node):
    """Write a node's weighted median; where exactly half of the weight lies below, the middle of both neighbours."""
    whole = 0.0
    for at in range(start, stop):
        rank = rows.target_rank[sequence[at]] + 1
        whole += weights[at]
        while rank < work.weight_tree.size:
            work.weight_tree[rank] += weights[at]
            rank += rank & -rank
    half = 0.5 * whole
    slack = 1e-12 * whole
    first = _rank_reaching(work.weight_tree, half - slack)
    second = _rank_reaching(work.weight_tree, half + slack)
    for at in range(start, stop):
        rank = rows.target_rank[sequence[at]] + 1
        while rank < work.weight_tree.size:
            work.weight_tree[rank] = 0.0
            rank += rank & -rank
    last = work.target_value.size - 1
    low, high = work.target_value[min(first, last)], work.target_value[min(second, last)]
    node_reals[node, VALUE] = low if low == high else (low + high) / 2.0


@inner
def _rank_reaching(weight_tree, bound):
    """Give the first rank at which the weight so far is at least `bound`."""
    step = 1
    while step * 2 < weight_tree.size:
        step *= 2
    at = 0
    below = 0.0
    while step > 0:
        following = at + step
        if following < weight_tree.size and below + weight_tree[following] < bound:
            at = following
            below += weight_tree[at]
        step //= 2
    return at


@inner
def _deal_master(
    master, master_weight, start, stop, base, side, n_branches, branch_weight, known_weight, branch_at, spare,
    spare_weight, needed,
):  # fmt: skip
    """Copy each row to the stretch of its branch (unknown ones to all, by share), keeping the order."""
    for at in range(start, stop):
        row = master[at]
        branch = side[row]
        if branch >= 0:
            to = branch_at[branch]
            if to >= 0:
                spare[to] = row
                spare_weight[to] = master_weight[at]
                branch_at[branch] = to + 1
            continue
        for other in range(n_branches):
            to = branch_at[other]
            if to >= 0 and branch_weight[other] > 0.0:
                spare[to] = row
                spare_weight[to] = master_weight[at] * (branch_weight[other] / known_weight)
                branch_at[other] = to + 1
    for at in range(needed):
        master[base + at] = spare[at]
        master_weight[base + at] = spare_weight[at]


@inner
def _deal_order(sequence, start, stop, base, side, n_branches, branch_weight, branch_at, spare, needed):
    """Do to a presorted order what `_deal_master` does to the master sequence."""
    for at in range(start, stop):
        row = sequence[at]
        branch = side[row]
        if branch >= 0:
            to = branch_at[branch]
            if to >= 0:
                spare[to] = row
                branch_at[branch] = to + 1
            continue
        for other in range(n_branches):
            to = branch_at[other]
            if to >= 0 and branch_weight[other] > 0.0:
                spare[to] = row
                branch_at[other] = to + 1
    for at in range(needed):
        sequence[base + at] = spare[at]


@inner
def _remember(waiting_ints, waiting_reals, entry, chosen, offer_ints, offer_reals):
    waiting_ints[entry, N_INTS] = chosen
    if chosen >= 0:
        for k in range(N_INTS):
            waiting_ints[entry, k] = offer_ints[chosen, k]
        for k in range(N_REALS):
            waiting_reals[entry, k] = offer_reals[chosen, k]


@inner
def _comes_first(left, right, waiting, waiting_ints, waiting_reals, node_reals):
    """Whether a waiting node is split before another: the larger weight · gain, then the earlier made."""
    left_node, right_node = waiting[left, 0], waiting[right, 0]
    left_worth = node_reals[left_node, WEIGHT] * waiting_reals[left, REAL_GAIN]
    right_worth = node_reals[right_node, WEIGHT] * waiting_reals[right, REAL_GAIN]
    if waiting_ints[left, N_INTS] < 0:
        left_worth = -math.inf
    if waiting_ints[right, N_INTS] < 0:
        right_worth = -math.inf
    return left_worth > right_worth or (left_worth == right_worth and left_node < right_node)


@inner
def _push(heap, n_heap, entry, waiting, waiting_ints, waiting_reals, node_reals):
    at = n_heap
    while at > 0:
        above = (at - 1) // 2
        if not _comes_first(entry, heap[above], waiting, waiting_ints, waiting_reals, node_reals):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = entry


@inner
def _pop(heap, n_heap, waiting, waiting_ints, waiting_reals, node_reals):
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
