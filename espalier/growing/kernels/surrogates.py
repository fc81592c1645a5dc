"""Surrogate splits: tests that replace a node's own where its attribute is missing (Breiman et al., 1984, 5.3).

Agreement is counted like rpart does: over all rows that know the node's own attribute; a row whose value the surrogate
does not know disagrees. Each branch must receive at least two rows. A threshold lies halfway to the next value of any
row of the node, whether or not that row knows the node's own attribute.
"""

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.nodes import enlarge, enlarge_rows, middle_of
from espalier.kernels.jit import inner, maker

S_ATTRIBUTE = 0
S_TEST = 1
S_BELOW = 2
N_S_INTS = 3

S_THRESHOLD = 0
S_AGREEMENT = 1
N_S_REALS = 2

MIN_ROWS = 2
NOISE = 1e-12


@maker
def add_surrogates(
    parameters, targets, columns, orders, master, start, stop, weight, branch_of_row, branch_weight, branch_count,
    split_attribute, max_surrogates, found_ints, found_reals, branch_by_code, left_by_code, right_by_code,
    count_by_code, surrogate_ints, surrogate_reals, surrogate_codes, n_surrogates, n_surrogate_codes,
):  # fmt: skip
    """Find the surrogates of a binary test, append them to the tables, and assign rows by them.

    Returns (surrogate ints, surrogate reals, branches of surrogate codes: enlarged where they were full, how many
    surrogates were added, length of the code tables).
    """
    upper_branch = _branch_of_larger_mean(
        parameters, targets, master, start, stop, weight, branch_of_row, branch_weight
    )
    n_found = find_surrogates(
        columns, orders, master, start, stop, weight, branch_of_row, (branch_weight[0], branch_weight[1]), upper_branch,
        split_attribute, max_surrogates, found_ints, found_reals, branch_by_code, left_by_code, right_by_code,
        count_by_code,
    )  # fmt: skip
    last = n_surrogates + n_found
    if last > surrogate_ints.shape[0]:
        more = max(last, 2 * surrogate_ints.shape[0])
        surrogate_ints = enlarge_rows(surrogate_ints, n_surrogates, more)
        surrogate_reals = enlarge_rows(surrogate_reals, n_surrogates, more)
    n_codes = copy_surrogates(
        found_ints, found_reals, n_found, surrogate_ints, surrogate_reals, n_surrogates, n_surrogate_codes, columns
    )
    if n_codes > surrogate_codes.size:
        surrogate_codes = enlarge(surrogate_codes, n_surrogate_codes, max(n_codes, 2 * surrogate_codes.size))
    write_surrogate_codes(
        columns, master, start, stop, weight, branch_of_row, upper_branch, surrogate_ints, surrogate_reals,
        surrogate_codes, n_surrogates, last, branch_by_code, left_by_code, right_by_code, count_by_code,
    )  # fmt: skip
    assign_by_surrogates(
        columns, master, start, stop, branch_of_row, branch_count, surrogate_ints, surrogate_reals, surrogate_codes,
        n_surrogates, last,
    )  # fmt: skip
    return surrogate_ints, surrogate_reals, surrogate_codes, n_found, n_codes


@inner
def _branch_of_larger_mean(parameters, targets, master, start, stop, weight, branch_of_row, branch_weight):
    """Return the branch whose known rows have the larger mean target (of classes: of their codes), 0 if they are equal.

    It is the one that rpart calls right.
    """
    left, right = 0.0, 0.0
    for at in range(start, stop):
        row = master[at]
        value = weight[row] * (targets.target_class[row] if parameters.n_classes > 0 else targets.target[row])
        if branch_of_row[row] == 0:
            left += value
        elif branch_of_row[row] == 1:
            right += value
    return 1 if right * branch_weight[0] > left * branch_weight[1] else 0


@inner
def find_surrogates(
    columns, orders, master, start, stop, weight, branch_of_row, side_weight, upper_branch, split_attribute,
    max_surrogates, ints, reals, branch_by_code, left_by_code, right_by_code, count_by_code,
):  # fmt: skip
    """Find the best surrogate of every other attribute, best first. Return how many there are.

    weight: float64 (n) by row. branch_of_row: int32 (n), 0, 1 or -1 unknown. side_weight: (weight left, weight right).
    upper_branch: of the larger mean, see `_branch_of_larger_mean`. ints: int32 (F, N_S_INTS), reals: float64 (F,
    N_S_REALS), written. The last four: scratch per category.
    """
    left_total, right_total = side_weight
    whole = left_total + right_total
    majority = max(left_total, right_total) / whole
    if majority >= 1.0:
        return 0
    n_found = 0
    for attribute in range(columns.codes.shape[0]):
        if attribute == split_attribute:
            continue
        if columns.kind[attribute] == c.NOMINAL_KIND:
            agreement = _nominal_agreement(
                columns, master, start, stop, weight, branch_of_row, upper_branch, attribute, branch_by_code,
                left_by_code, right_by_code, count_by_code,
            )  # fmt: skip
            threshold, below = 0.0, 0
        else:
            agreement, threshold, below = _threshold_agreement(
                columns, orders[columns.order_place[attribute]], start, stop, weight, branch_of_row, attribute
            )
        adjusted = (agreement / whole - majority) / (1.0 - majority)
        if adjusted > NOISE:
            _insert(ints, reals, n_found, attribute, columns.kind[attribute], below, threshold, adjusted)
            n_found += 1
    return min(n_found, max_surrogates)


@inner
def _insert(ints, reals, n_found, attribute, kind, below, threshold, adjusted):
    """Insert behind every surrogate that agrees at least as much."""
    at = n_found
    while at > 0 and reals[at - 1, S_AGREEMENT] < adjusted - NOISE:
        for k in range(N_S_INTS):
            ints[at, k] = ints[at - 1, k]
        for k in range(N_S_REALS):
            reals[at, k] = reals[at - 1, k]
        at -= 1
    ints[at, S_ATTRIBUTE] = attribute
    ints[at, S_TEST] = c.NUMERIC if kind == c.ORDERED_KIND else c.NOMINAL
    ints[at, S_BELOW] = below
    reals[at, S_THRESHOLD] = threshold
    reals[at, S_AGREEMENT] = adjusted


@inner
def _threshold_agreement(columns, sequence, start, stop, weight, branch_of_row, attribute):
    """Return (agreeing weight, threshold, branch at or below it) of the best threshold; weight -1 if there is none."""
    codes = columns.codes[attribute]
    first_value = columns.value_start[attribute]
    left_all, right_all = 0.0, 0.0
    n_rows = 0
    for at in range(start, stop):
        row = sequence[at]
        if codes[row] < 0:
            break
        if branch_of_row[row] == 0:
            left_all += weight[row]
            n_rows += 1
        elif branch_of_row[row] == 1:
            right_all += weight[row]
            n_rows += 1
    best, threshold, below = -1.0, 0.0, 0
    left, right = 0.0, 0.0
    n_before = 0
    last, following = -1, -1
    for at in range(start, stop):
        row = sequence[at]
        if codes[row] < 0:
            break
        if codes[row] != last and following < 0:
            following = codes[row]
        if branch_of_row[row] < 0:
            continue
        if last >= 0 and codes[row] != last and n_before >= MIN_ROWS and n_rows - n_before >= MIN_ROWS:
            slack = NOISE * (left_all + right_all)
            for direction in range(2):
                agreeing = left + right_all - right if direction == 0 else right + left_all - left
                if agreeing > best + slack:
                    best, below = agreeing, direction
                    threshold = columns.value[first_value + last]
                    if columns.kind[attribute] == c.ORDERED_KIND:
                        threshold = middle_of(threshold, columns.value[first_value + following])
        last, following = codes[row], -1
        n_before += 1
        if branch_of_row[row] == 0:
            left += weight[row]
        else:
            right += weight[row]
    return best, threshold, below


@inner
def _nominal_agreement(
    columns, master, start, stop, weight, branch_of_row, upper_branch, attribute, branch_by_code, left_by_code,
    right_by_code, count_by_code,
):  # fmt: skip
    """Return the agreeing weight if each category goes to its heavier branch. Write the branches (-1: not present).

    A category whose branches are equal goes with the majority of rows that know a category; if these are equal too, to
    `upper_branch`, as in rpart.
    """
    codes = columns.codes[attribute]
    for code in range(columns.n_codes[attribute]):
        branch_by_code[code] = -1
        left_by_code[code] = 0.0
        right_by_code[code] = 0.0
        count_by_code[code] = 0
    for at in range(start, stop):
        row = master[at]
        code = codes[row]
        if code < 0 or branch_of_row[row] < 0:
            continue
        count_by_code[code] += 1
        if branch_of_row[row] == 0:
            left_by_code[code] += weight[row]
        else:
            right_by_code[code] += weight[row]
    agreeing = 0.0
    n_left, n_right = 0, 0
    left_all, right_all = 0.0, 0.0
    for code in range(columns.n_codes[attribute]):
        left_all += left_by_code[code]
        right_all += right_by_code[code]
    usual = upper_branch if right_all == left_all else 1 if right_all > left_all else 0
    for code in range(columns.n_codes[attribute]):
        if count_by_code[code] == 0:
            continue
        equal = right_by_code[code] == left_by_code[code]
        if right_by_code[code] > left_by_code[code] or (equal and usual == 1):
            branch_by_code[code] = 1
            agreeing += right_by_code[code]
            n_right += count_by_code[code]
        else:
            branch_by_code[code] = 0
            agreeing += left_by_code[code]
            n_left += count_by_code[code]
    if n_left < MIN_ROWS or n_right < MIN_ROWS:
        return -1.0
    return agreeing


@inner
def surrogate_branch(columns, surrogate_ints, surrogate_reals, surrogate_codes, i, row):
    """Return the branch that a surrogate assigns to a training row, -1 if its value is unknown."""
    attribute = surrogate_ints[i, S_ATTRIBUTE]
    code = columns.codes[attribute, row]
    if code < 0:
        return -1
    if columns.kind[attribute] == c.NOMINAL_KIND:
        return surrogate_codes[surrogate_ints[i, N_S_INTS] + code]
    below = surrogate_ints[i, S_BELOW]
    value = columns.value[columns.value_start[attribute] + code]
    return below if value <= surrogate_reals[i, S_THRESHOLD] else 1 - below


@inner
def copy_surrogates(
    found_ints, found_reals, n_found, surrogate_ints, surrogate_reals, n_surrogates, n_surrogate_codes, columns
):
    """Copy the found surrogates behind those of earlier nodes. Return the length of all their code tables."""
    for i in range(n_found):
        at = n_surrogates + i
        for k in range(N_S_INTS):
            surrogate_ints[at, k] = found_ints[i, k]
        for k in range(N_S_REALS):
            surrogate_reals[at, k] = found_reals[i, k]
        surrogate_ints[at, N_S_INTS] = n_surrogate_codes
        if found_ints[i, S_TEST] == c.NOMINAL:
            n_surrogate_codes += columns.n_codes[found_ints[i, S_ATTRIBUTE]]
    return n_surrogate_codes


@inner
def write_surrogate_codes(
    columns, master, start, stop, weight, branch_of_row, upper_branch, surrogate_ints, surrogate_reals, surrogate_codes,
    first, last, branch_by_code, left_by_code, right_by_code, count_by_code,
):  # fmt: skip
    """Write the branch of each category for the nominal surrogates among ``first:last``."""
    for i in range(first, last):
        if surrogate_ints[i, S_TEST] != c.NOMINAL:
            continue
        attribute = surrogate_ints[i, S_ATTRIBUTE]
        if columns.kind[attribute] == c.BINARIES_KIND:
            # Found among the ranks of its categories, stored by the categories themselves.
            below = surrogate_ints[i, S_BELOW]
            for code in range(columns.n_codes[attribute]):
                rank = columns.recode[columns.recode_start[attribute] + code]
                branch_at_code = below if rank <= surrogate_reals[i, S_THRESHOLD] else 1 - below
                surrogate_codes[surrogate_ints[i, N_S_INTS] + code] = branch_at_code
            continue
        _nominal_agreement(
            columns, master, start, stop, weight, branch_of_row, upper_branch, attribute, branch_by_code, left_by_code,
            right_by_code, count_by_code,
        )  # fmt: skip
        for code in range(columns.n_codes[attribute]):
            surrogate_codes[surrogate_ints[i, N_S_INTS] + code] = branch_by_code[code]


@inner
def assign_by_surrogates(
    columns, master, start, stop, branch_of_row, branch_count, surrogate_ints, surrogate_reals, surrogate_codes, first,
    last,
):  # fmt: skip
    """Assign the rows whose value is unknown to the branch of the first surrogate that has one."""
    for at in range(start, stop):
        row = master[at]
        if branch_of_row[row] >= 0:
            continue
        for i in range(first, last):
            branch = surrogate_branch(columns, surrogate_ints, surrogate_reals, surrogate_codes, i, row)
            if branch >= 0:
                branch_of_row[row] = branch
                branch_count[branch] += 1
                break
