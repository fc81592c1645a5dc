"""The test of a node and the branch of each of its rows."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.espalier.growing.kernels.midpoints import middle_of
from cython.cimports.espalier.growing.kernels.node_statistics import ROUNDING
from cython.cimports.espalier.growing.kernels.splits.criterion import size_of, weight_of
from cython.cimports.espalier.growing.kernels.splits.nominal_split import best_nominal_split
from cython.cimports.espalier.model.node_tests import NOMINAL, NUMERIC, UNKNOWN


def assign_branches(work, rows, branches, candidates, chosen, start, stop):
    """Write the branch of each row of a node, or -1 if the row's value is unknown.

    For a subset split, `find_subset_again` must have written the branches of the categories.
    """
    codes = work.columns.codes[chosen]
    test = candidates.chosen_ints[c.INT_TEST]
    below = candidates.chosen_ints[c.INT_BELOW]
    if test == UNKNOWN:
        for at in range(start, stop):
            branches.of_row[rows.master[at]] = 0 if codes[rows.master[at]] >= 0 else -1
    elif test == NUMERIC:
        for at in range(start, stop):
            code = codes[rows.master[at]]
            branches.of_row[rows.master[at]] = -1 if code < 0 else (0 if code <= below else 1)
    elif work.parameters.nominal == c.MULTIWAY:
        for at in range(start, stop):
            branches.of_row[rows.master[at]] = codes[rows.master[at]]
    else:
        for at in range(start, stop):
            code = codes[rows.master[at]]
            branches.of_row[rows.master[at]] = -1 if code < 0 else branches.of_code[code]


def find_subset_again(work, rows, branches, candidates, chosen):
    """Search the best subset again. Write the branch of each category to ``branches.of_code``.

    Candidates do not store these branches. ``work.context`` must describe the node.
    """
    codes = work.columns.codes[chosen]
    best_nominal_split(work, rows.master, chosen, False, candidates.ints[chosen], candidates.reals[chosen])
    for at in range(work.context.start, work.context.stop):
        if codes[rows.master[at]] >= 0:
            branches.of_code[codes[rows.master[at]]] = -2
    for j in range(work.categories.ascending.shape[0]):
        code = work.categories.present[work.categories.ascending[j]]
        if branches.of_code[code] != -2:
            break
        branches.of_code[code] = work.categories.branch[j]


def write_codes(work, nodes, branches, candidates, chosen):
    """Append the branch of each category of a nominal test to ``nodes.codes``."""
    below = candidates.chosen_ints[c.INT_BELOW]
    branch: cython.int
    for code in range(work.columns.n_codes[chosen]):
        if work.columns.kind[chosen] == c.BINARIES_KIND:
            branch = 0 if work.columns.recode[work.columns.recode_start[chosen] + code] <= below else 1
        elif work.parameters.nominal == c.MULTIWAY:
            branch = code
        elif work.parameters.nominal == c.ONE_VS_REST:
            branch = 0 if code == below else 1
        else:
            branch = branches.of_code[code]
        nodes.codes[nodes.n_codes + code] = branch
    nodes.n_codes += work.columns.n_codes[chosen]


def _threshold_of(work, chosen, ints):
    """Return a configured cut point or a midpoint; if `observed`, the largest training value up to the midpoint."""
    if ints[c.INT_CUT_POINT] >= 0:
        return work.cut_points.value[ints[c.INT_CUT_POINT]]
    first = work.columns.value_start[chosen]
    low, high = ints[c.INT_BELOW], ints[c.INT_ABOVE]
    middle = middle_of(work.columns.value[first + low], work.columns.value[first + high])
    if not work.parameters.observed:
        return middle
    while low + 1 < high:
        rank = (low + high) // 2
        if work.columns.value[first + rank] <= middle:
            low = rank
        else:
            high = rank
    return work.columns.value[first + low]


def write_test(work, nodes, node, chosen, candidates):
    """Write a node's test except the branches of its categories. Return how many branches `write_codes` must append."""
    test = candidates.chosen_ints[c.INT_TEST]
    nodes.ints[node, column.FEATURE] = work.columns.first_attribute + chosen
    nodes.ints[node, column.HEURISTIC] = candidates.chosen_ints[c.INT_HEURISTIC]
    nodes.ints[node, column.CODE_START] = nodes.n_codes
    nodes.ints[node, column.TEST] = test
    if test == UNKNOWN:
        return 0
    if test == NUMERIC and work.columns.kind[chosen] == c.ORDERED_KIND:
        nodes.reals[node, column.THRESHOLD] = _threshold_of(work, chosen, candidates.chosen_ints)
        return 0
    nodes.ints[node, column.TEST] = NOMINAL
    return work.columns.n_codes[chosen]


def weigh_branches(rows, branches, start, stop):
    """Write the weight and the number of rows for each branch, and for the rows with unknown value."""
    for branch in range(branches.n):
        branches.weight[branch] = 0.0
        branches.n_rows[branch] = 0
    branches.unknown_weight, branches.n_unknown = 0.0, 0
    for at in range(start, stop):
        taken = branches.of_row[rows.master[at]]
        if taken >= 0:
            branches.weight[taken] += rows.weight[at]
            branches.n_rows[taken] += 1
        else:
            branches.unknown_weight += rows.weight[at]
            branches.n_unknown += 1


def weigh_row_by_row(work, sequence, branches, branch_sums, is_threshold, start, stop):
    """Weigh the branches as REPTree does. Return how many reach ``min_weight_leaf`` with their share of unknown rows.

    Each class is summed separately. For the branch above a threshold, all known rows are added, then the rows below the
    threshold are subtracted one by one. With fractional weights, rounding errors often leave slightly less than 2 where
    the weight is 2. The node then becomes a leaf if ``min_weight_leaf`` is 2.

    sequence: int32, the attribute's presorted order for a threshold, else the master sequence. branch_sums: float64
    (branches, classes or 3), scratch. Sets ``branches.weight`` to the known weights, which determine the shares.
    """
    n_branches = branch_sums.shape[0]
    n_classes = work.parameters.n_classes
    width = max(n_classes, 1)
    for branch in range(n_branches):
        for k in range(width):
            branch_sums[branch, k] = 0.0
    for at in range(start, stop):
        row = sequence[at]
        if branches.of_row[row] >= 0:
            k = work.targets.target_class[row] if n_classes > 0 else 0
            branch_sums[1 if is_threshold else branches.of_row[row], k] += work.sums.weight[row]
    if is_threshold:
        for at in range(start, stop):
            row = sequence[at]
            if branches.of_row[row] == 0:
                k = work.targets.target_class[row] if n_classes > 0 else 0
                branch_sums[0, k] += work.sums.weight[row]
                branch_sums[1, k] -= work.sums.weight[row]
    known_weight: cython.double = 0.0
    for branch in range(n_branches):
        branches.weight[branch] = max(0.0, weight_of(cython.address(branch_sums[branch, 0]), n_classes))
        known_weight += branches.weight[branch]
    for at in range(start, stop):
        row = sequence[at]
        if branches.of_row[row] < 0:
            k = work.targets.target_class[row] if n_classes > 0 else 0
            for branch in range(n_branches):
                branch_sums[branch, k] += work.sums.weight[row] * (branches.weight[branch] / known_weight)
    n_heavy: cython.int = 0
    for branch in range(n_branches):
        size = size_of(work.parameters, cython.address(branch_sums[branch, 0]))
        if branches.n_rows[branch] > 0 and size >= work.parameters.min_weight_leaf:
            n_heavy += 1
    return n_heavy


def reset_categories(work, rows, branches, chosen, start, stop):
    """Write -1 to all entries of ``branches.of_code`` that `find_subset_again` has written."""
    codes = work.columns.codes[chosen]
    for at in range(start, stop):
        if codes[rows.master[at]] >= 0:
            branches.of_code[codes[rows.master[at]]] = -1


def set_fallback(branches, learned):
    """Set the fallback: the heaviest branch if `learned` is -1, else `learned`, which also gets the unknown weight."""
    branches.fallback = learned
    if learned >= 0:
        branches.weight[learned] += branches.unknown_weight
        return
    branches.fallback = heaviest(branches.weight[: branches.n])


def heaviest(weights):
    """Return the index of the largest weight; of weights equal up to `ROUNDING`, the first."""
    best: cython.int = 0
    for branch in range(1, weights.shape[0]):
        if weights[branch] > weights[best] * (1.0 + ROUNDING):
            best = branch
    return best


def assign_unknown(rows, branches, start, stop):
    """Assign the rows of start:stop that have no branch yet to the fallback branch."""
    for at in range(start, stop):
        row = rows.master[at]
        if branches.of_row[row] < 0:
            branches.of_row[row] = branches.fallback
            branches.n_rows[branches.fallback] += 1
