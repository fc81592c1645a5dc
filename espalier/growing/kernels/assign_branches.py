"""The test of a node, and the branch that each of its rows takes."""

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import INT_ABOVE, INT_BELOW, INT_EXPERT, INT_HEURISTIC, INT_TEST
from espalier.growing.kernels.choose_split import place_of
from espalier.growing.kernels.criterion import weight_of
from espalier.growing.kernels.nodes import CODE_START, FEATURE, HEURISTIC, TEST, THRESHOLD, WEIGHT
from espalier.growing.kernels.nominal_split import offer_nominal
from espalier.growing.kernels.surrogates import middle_of
from espalier.kernels.jit import inner


@inner
def assign_sides(
    rules, columns, rows, work, groups, subsets, rare, master, master_weight, start, stop, weight, stats, chosen, ints,
    side, branch_of_code, again_ints, again_reals,
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
    _divide_again(
        rules, columns, rows, work, groups, subsets, rare, master, master_weight, start, stop, weight, stats, chosen,
        side, branch_of_code, again_ints, again_reals,
    )  # fmt: skip


@inner
def _divide_again(
    rules, columns, rows, work, groups, subsets, rare, master, master_weight, start, stop, weight, stats, chosen, side,
    branch_of_code, again_ints, again_reals,
):  # fmt: skip
    """Find the winner's division once more, for this attribute alone: offers do not keep it."""
    codes = columns.codes[chosen]
    place = place_of(rules, rows, work, rare, master, master_weight, start, stop, weight, stats)
    free = False
    offer_nominal(
        rules, columns, rows, work, groups, subsets, rare, place, master, chosen, free, again_ints, again_reals
    )
    for at in range(start, stop):
        if codes[master[at]] >= 0:
            branch_of_code[codes[master[at]]] = -2
    j = 0
    while j < groups.place.size and branch_of_code[groups.present[groups.place[j]]] == -2:
        branch_of_code[groups.present[groups.place[j]]] = groups.branch[j]
        j += 1
    for at in range(start, stop):
        code = codes[master[at]]
        side[master[at]] = -1 if code < 0 else branch_of_code[code]


@inner
def write_codes(rules, columns, chosen, ints, branch_of_code, code_table, start):
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
def threshold_of(rules, columns, rare, chosen, ints):
    """Give the threshold of a cut: an expert's own, or the middle, moved down to a training value where asked for."""
    if ints[INT_EXPERT] >= 0:
        return rare.expert_value[ints[INT_EXPERT]]
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
def write_test(rules, columns, rare, node_ints, node_reals, node, chosen, ints, code_start):
    """Write the test of a node but for its table of categories; returns the length that table needs."""
    node_ints[node, FEATURE] = chosen
    node_ints[node, HEURISTIC] = ints[INT_HEURISTIC]
    node_ints[node, CODE_START] = code_start
    node_ints[node, TEST] = ints[INT_TEST]
    if ints[INT_TEST] == c.UNKNOWN:
        return 0
    if ints[INT_TEST] == c.NUMERIC and columns.kind[chosen] == c.ORDERED_KIND:
        node_reals[node, THRESHOLD] = threshold_of(rules, columns, rare, chosen, ints)
        return 0
    node_ints[node, TEST] = c.NOMINAL
    return columns.n_codes[chosen]


@inner
def weigh_branches(master, master_weight, start, stop, side, n_branches, branch_weight, branch_count):
    """Sum the rows of each branch; returns (weight, number) of those whose value is unknown."""
    for branch in range(n_branches):
        branch_weight[branch] = 0.0
        branch_count[branch] = 0
    unknown_weight = 0.0
    n_unknown = 0
    for at in range(start, stop):
        taken = side[master[at]]
        if taken >= 0:
            branch_weight[taken] += master_weight[at]
            branch_count[taken] += 1
        else:
            unknown_weight += master_weight[at]
            n_unknown += 1
    return unknown_weight, n_unknown


@inner
def weigh_row_by_row(rules, rows, work, sequence, start, stop, side, is_cut, parts, branch_weight, branch_count):
    """Weigh the branches as REPTree does, to the last bit; returns how many weigh M with their share of unknown rows.

    Each class is summed on its own. The upper side of a cut is what is left when the rows below it are taken away one
    by one, in their order: where weights are shares, 2 is then often a little less than 2, and the node a leaf.

    sequence: int32, the attribute's presorted order for a cut, else the master sequence. parts: float64 (branches,
    classes or 3), scratch. branch_weight: float64 (branches), written: known weights, what shares are made of.
    """
    n_branches = parts.shape[0]
    width = max(rules.n_classes, 1)
    for branch in range(n_branches):
        for k in range(width):
            parts[branch, k] = 0.0
    for at in range(start, stop):
        row = sequence[at]
        if side[row] >= 0:
            k = rows.target_class[row] if rules.n_classes > 0 else 0
            parts[1 if is_cut else side[row], k] += work.weight[row]
    if is_cut:
        for at in range(start, stop):
            row = sequence[at]
            if side[row] == 0:
                k = rows.target_class[row] if rules.n_classes > 0 else 0
                parts[0, k] += work.weight[row]
                parts[1, k] -= work.weight[row]
    known_weight = 0.0
    for branch in range(n_branches):
        branch_weight[branch] = max(0.0, weight_of(parts[branch], rules.n_classes))
        known_weight += branch_weight[branch]
    for at in range(start, stop):
        row = sequence[at]
        if side[row] < 0:
            k = rows.target_class[row] if rules.n_classes > 0 else 0
            for branch in range(n_branches):
                parts[branch, k] += work.weight[row] * (branch_weight[branch] / known_weight)
    n_heavy = 0
    for branch in range(n_branches):
        if branch_count[branch] > 0 and weight_of(parts[branch], rules.n_classes) >= rules.min_weight_leaf:
            n_heavy += 1
    return n_heavy


@inner
def forget_codes(columns, master, start, stop, chosen, branch_of_code):
    """Take back what `assign_sides` has written of the categories of a node."""
    for at in range(start, stop):
        if columns.codes[chosen, master[at]] >= 0:
            branch_of_code[columns.codes[chosen, master[at]]] = -1


@inner
def fallback_of(learned, n_branches, branch_weight, unknown_weight):
    """Give the branch of unknown values: the one learned (`direction`, its weight is added), or the heaviest."""
    if learned >= 0:
        branch_weight[learned] += unknown_weight
        return learned
    fallback = 0
    for branch in range(1, n_branches):
        if branch_weight[branch] > branch_weight[fallback]:
            fallback = branch
    return fallback


@inner
def heaviest_child(node_reals, first_child, n_branches):
    """Give the branch of the heaviest child, the first of equals."""
    heaviest = 0
    for branch in range(1, n_branches):
        if node_reals[first_child + branch, WEIGHT] > node_reals[first_child + heaviest, WEIGHT]:
            heaviest = branch
    return heaviest


@inner
def send_unknown(master, start, stop, side, fallback, branch_count):
    """Send the rows whose value is still unknown to the fallback."""
    for at in range(start, stop):
        row = master[at]
        if side[row] < 0:
            side[row] = fallback
            branch_count[fallback] += 1
