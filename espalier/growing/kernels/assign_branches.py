"""The test of a node and the branch of each of its rows."""

from espalier.growing.kernels import constants as c, nodes as n
from espalier.growing.kernels.candidate import INT_ABOVE, INT_BELOW, INT_CUT_POINT, INT_HEURISTIC, INT_TEST
from espalier.growing.kernels.choose_split import node_context
from espalier.growing.kernels.criterion import weight_of
from espalier.growing.kernels.nominal_split import best_nominal_split
from espalier.kernels.jit import inner


@inner
def assign_branches(
    parameters, columns, targets, work, master, master_weight, start, stop, weight, stats, chosen, ints, branch_of_row,
    branch_of_code, again_ints, again_reals,
):  # fmt: skip
    """Write the branch of each row of a node, -1 where its value is unknown."""
    codes = columns.codes[chosen]
    if ints[INT_TEST] == c.UNKNOWN:
        for at in range(start, stop):
            branch_of_row[master[at]] = 0 if codes[master[at]] >= 0 else -1
        return
    if ints[INT_TEST] == c.NUMERIC:
        below = ints[INT_BELOW]
        for at in range(start, stop):
            code = codes[master[at]]
            branch_of_row[master[at]] = -1 if code < 0 else (0 if code <= below else 1)
        return
    if parameters.nominal == c.MULTIWAY:
        for at in range(start, stop):
            branch_of_row[master[at]] = codes[master[at]]
        return
    _find_subset_again(
        parameters, columns, targets, work, master, master_weight, start, stop, weight, stats, chosen, branch_of_row,
        branch_of_code, again_ints, again_reals,
    )  # fmt: skip


@inner
def _find_subset_again(
    parameters, columns, targets, work, master, master_weight, start, stop, weight, stats, chosen, branch_of_row,
    branch_of_code, again_ints, again_reals,
):  # fmt: skip
    """Search the best subset of the chosen attribute again: candidates do not store it."""
    codes = columns.codes[chosen]
    context = node_context(parameters, targets, work, master, master_weight, start, stop, weight, stats)
    free = False
    best_nominal_split(parameters, columns, targets, work, context, master, chosen, free, again_ints, again_reals)
    for at in range(start, stop):
        if codes[master[at]] >= 0:
            branch_of_code[codes[master[at]]] = -2
    j = 0
    while (
        j < work.categories.ascending.size
        and branch_of_code[work.categories.present[work.categories.ascending[j]]] == -2
    ):
        branch_of_code[work.categories.present[work.categories.ascending[j]]] = work.categories.branch[j]
        j += 1
    for at in range(start, stop):
        code = codes[master[at]]
        branch_of_row[master[at]] = -1 if code < 0 else branch_of_code[code]


@inner
def write_codes(parameters, columns, chosen, ints, branch_of_code, code_table, start):
    """Write the branch of each category of a nominal test."""
    for code in range(columns.n_codes[chosen]):
        if columns.kind[chosen] == c.BINARIES_KIND:
            rank = columns.recode[columns.recode_start[chosen] + code]
            branch = 0 if rank <= ints[INT_BELOW] else 1
        elif parameters.nominal == c.MULTIWAY:
            branch = code
        elif parameters.nominal == c.ONE_VS_REST:
            branch = 0 if code == ints[INT_BELOW] else 1
        else:
            branch = branch_of_code[code]
        code_table[start + code] = branch


@inner
def threshold_of(parameters, columns, cut_points, chosen, ints):
    """Return the threshold of a split: a given cut point, or the middle, or that moved down to a training value."""
    if ints[INT_CUT_POINT] >= 0:
        return cut_points.value[ints[INT_CUT_POINT]]
    first = columns.value_start[chosen]
    below, above = ints[INT_BELOW], ints[INT_ABOVE]
    middle = n.middle_of(columns.value[first + below], columns.value[first + above])
    if parameters.observed == 0:
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
def write_test(parameters, columns, cut_points, node_ints, node_reals, node, chosen, ints, code_start):
    """Write the test of a node without its table of categories. Return the length of that table."""
    node_ints[node, n.FEATURE] = chosen
    node_ints[node, n.HEURISTIC] = ints[INT_HEURISTIC]
    node_ints[node, n.CODE_START] = code_start
    node_ints[node, n.TEST] = ints[INT_TEST]
    if ints[INT_TEST] == c.UNKNOWN:
        return 0
    if ints[INT_TEST] == c.NUMERIC and columns.kind[chosen] == c.ORDERED_KIND:
        node_reals[node, n.THRESHOLD] = threshold_of(parameters, columns, cut_points, chosen, ints)
        return 0
    node_ints[node, n.TEST] = c.NOMINAL
    return columns.n_codes[chosen]


@inner
def weigh_branches(master, master_weight, start, stop, branch_of_row, n_branches, branch_weight, branch_count):
    """Sum the rows of each branch. Return (weight, number) of the rows with unknown value."""
    for branch in range(n_branches):
        branch_weight[branch] = 0.0
        branch_count[branch] = 0
    unknown_weight = 0.0
    n_unknown = 0
    for at in range(start, stop):
        taken = branch_of_row[master[at]]
        if taken >= 0:
            branch_weight[taken] += master_weight[at]
            branch_count[taken] += 1
        else:
            unknown_weight += master_weight[at]
            n_unknown += 1
    return unknown_weight, n_unknown


@inner
def weigh_row_by_row(
    parameters, targets, sums, sequence, start, stop, branch_of_row, is_cut, branch_sums, branch_weight, branch_count
):
    """Weigh the branches exactly as REPTree does. Return how many reach M with their share of the unknown rows.

    Each class is summed separately. The upper branch of a threshold is the remainder after the rows below are
    subtracted one by one, in their order: where weights are shares, 2 is then often slightly less than 2, and the node
    is a leaf.

    sequence: int32, the attribute's presorted order for a threshold, else the master sequence. branch_sums: float64
    (branches, classes or 3), scratch. branch_weight: float64 (branches), written: known weights, from which shares
    follow.
    """
    n_branches = branch_sums.shape[0]
    width = max(parameters.n_classes, 1)
    for branch in range(n_branches):
        for k in range(width):
            branch_sums[branch, k] = 0.0
    for at in range(start, stop):
        row = sequence[at]
        if branch_of_row[row] >= 0:
            k = targets.target_class[row] if parameters.n_classes > 0 else 0
            branch_sums[1 if is_cut else branch_of_row[row], k] += sums.weight[row]
    if is_cut:
        for at in range(start, stop):
            row = sequence[at]
            if branch_of_row[row] == 0:
                k = targets.target_class[row] if parameters.n_classes > 0 else 0
                branch_sums[0, k] += sums.weight[row]
                branch_sums[1, k] -= sums.weight[row]
    known_weight = 0.0
    for branch in range(n_branches):
        branch_weight[branch] = max(0.0, weight_of(branch_sums[branch], parameters.n_classes))
        known_weight += branch_weight[branch]
    for at in range(start, stop):
        row = sequence[at]
        if branch_of_row[row] < 0:
            k = targets.target_class[row] if parameters.n_classes > 0 else 0
            for branch in range(n_branches):
                branch_sums[branch, k] += sums.weight[row] * (branch_weight[branch] / known_weight)
    n_heavy = 0
    for branch in range(n_branches):
        if (
            branch_count[branch] > 0
            and weight_of(branch_sums[branch], parameters.n_classes) >= parameters.min_weight_leaf
        ):
            n_heavy += 1
    return n_heavy


@inner
def reset_categories(columns, master, start, stop, chosen, branch_of_code):
    """Reset the branches that `assign_branches` has written for the categories of a node."""
    for at in range(start, stop):
        if columns.codes[chosen, master[at]] >= 0:
            branch_of_code[columns.codes[chosen, master[at]]] = -1


@inner
def fallback_of(learned, n_branches, branch_weight, unknown_weight):
    """Return the branch of unknown values: the learned one (`direction`, its weight is added), or the heaviest."""
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
    """Return the branch of the heaviest child, the first of equal ones."""
    heaviest = 0
    for branch in range(1, n_branches):
        if node_reals[first_child + branch, n.WEIGHT] > node_reals[first_child + heaviest, n.WEIGHT]:
            heaviest = branch
    return heaviest


@inner
def assign_unknown(master, start, stop, branch_of_row, fallback, branch_count):
    """Assign the rows whose branch is still unknown to the fallback."""
    for at in range(start, stop):
        row = master[at]
        if branch_of_row[row] < 0:
            branch_of_row[row] = fallback
            branch_count[fallback] += 1
