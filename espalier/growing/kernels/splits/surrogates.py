"""Surrogate splits: tests that replace a node's own test if its attribute is unknown (Breiman et al., 1984, 5.3).

Agreement is counted as in rpart, over all rows in which the node's own attribute is known. A row in which the
surrogate's attribute is unknown disagrees. Each branch must receive a weight of at least 2, without class weights. An
ordered attribute's threshold lies midway between successive values of all rows of the node, even rows without a branch.
"""

import cython
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.espalier.growing.kernels.midpoints import middle_of
from cython.cimports.espalier.growing.kernels.splits.criterion import WEIGHT_TOLERANCE
from cython.cimports.espalier.model.node_tests import NOMINAL, NUMERIC
from cython.cimports.libc.math import fabs

NOISE = 1e-12
MIN_SIZE = 2.0 * (1.0 - WEIGHT_TOLERANCE)
"""Least weight of the rows that a surrogate sends to each branch, without class weights."""


def add_surrogates(work, rows, branches, surrogates, split_attribute, start, stop):
    """Append the surrogates of a binary test to the tables, and use them to assign the rows with unknown value.

    ``work.context`` must describe the node. Returns how many surrogates were added.
    """
    upper_branch = _branch_of_larger_mean(work, rows, branches, start, stop)
    n_found = _find_surrogates(work, rows, branches, surrogates, upper_branch, split_attribute, start, stop)
    n_found = min(n_found, work.parameters.max_surrogates)
    first = surrogates.n
    surrogates.reserve(first + n_found)
    n_codes = _copy_found(work, surrogates, n_found)
    surrogates.reserve_codes(n_codes)
    surrogates.n, surrogates.n_codes = first + n_found, n_codes
    _write_codes(work, rows, branches, surrogates, upper_branch, first, start, stop)
    for at in range(start, stop):
        row = rows.master[at]
        if branches.of_row[row] >= 0:
            continue
        for i in range(first, first + n_found):
            branch = _surrogate_branch(work, surrogates, i, row)
            if branch >= 0:
                branches.of_row[row] = branch
                branches.n_rows[branch] += 1
                break
    return n_found


def _branch_of_larger_mean(work, rows, branches, start, stop):
    """Return the branch with the larger mean target or class code, 0 if equal. It is the right branch in rpart."""
    left: cython.double = 0.0
    right: cython.double = 0.0
    spread: cython.double = 0.0
    for at in range(start, stop):
        row = rows.master[at]
        value = work.sums.weight[row] * (
            work.targets.target_class[row]
            if work.parameters.n_classes > 0
            else work.targets.target[row] - work.context.centre
        )
        spread += fabs(value)
        if branches.of_row[row] == 0:
            left += value
        elif branches.of_row[row] == 1:
            right += value
    slack = NOISE * spread * (branches.weight[0] + branches.weight[1])
    return 1 if right * branches.weight[0] > left * branches.weight[1] + slack else 0


def _find_surrogates(work, rows, branches, surrogates, upper_branch, split_attribute, start, stop):
    """List every other attribute's best surrogate if it beats the majority rule, best first. Return the number listed.

    The majority rule assigns every row to the heavier branch. upper_branch: see `_branch_of_larger_mean`.
    """
    attribute: cython.int
    whole = branches.weight[0] + branches.weight[1]
    majority = max(branches.weight[0], branches.weight[1]) / whole
    if majority >= 1.0:
        return 0
    n_found: cython.int = 0
    for attribute in range(work.columns.codes.shape[0]):
        if attribute == split_attribute:
            continue
        if work.columns.kind[attribute] == c.NOMINAL_KIND:
            agreement = _nominal_agreement(work, rows, branches, surrogates, upper_branch, attribute, start, stop)
            threshold, below = 0.0, 0
        else:
            agreement, threshold, below = _threshold_agreement(
                work, rows.orders[work.columns.order_place[attribute]], branches.of_row, attribute, start, stop
            )
        adjusted = (agreement / whole - majority) / (1.0 - majority)
        if adjusted > NOISE:
            _insert(surrogates, n_found, attribute, work.columns.kind[attribute], below, threshold, adjusted)
            n_found += 1
    return n_found


def _insert(surrogates, n_found, attribute, kind, below, threshold, adjusted):
    """Insert a surrogate after all surrogates that agree at least as much."""
    at = n_found
    while at > 0 and surrogates.found_reals[at - 1, column.S_AGREEMENT] < adjusted - NOISE:
        surrogates.found_ints[at, :] = surrogates.found_ints[at - 1]
        surrogates.found_reals[at, :] = surrogates.found_reals[at - 1]
        at -= 1
    surrogates.found_ints[at, column.S_ATTRIBUTE] = attribute
    surrogates.found_ints[at, column.S_TEST] = NUMERIC if kind == c.ORDERED_KIND else NOMINAL
    surrogates.found_ints[at, column.S_BELOW] = below
    surrogates.found_reals[at, column.S_THRESHOLD] = threshold
    surrogates.found_reals[at, column.S_AGREEMENT] = adjusted


def _threshold_agreement(work, sequence, branch_of_row, attribute, start, stop):
    """Return (agreeing weight, threshold, branch of the values up to the threshold) of the best threshold.

    The weight is -1 if there is no threshold.
    """
    codes = work.columns.codes[attribute]
    first_value = work.columns.value_start[attribute]
    left_all: cython.double = 0.0
    right_all: cython.double = 0.0
    size_all: cython.double = 0.0
    for at in range(start, stop):
        row = sequence[at]
        if codes[row] < 0:
            break
        if branch_of_row[row] == 0:
            left_all += work.sums.weight[row]
            size_all += _size_of_row(work, row)
        elif branch_of_row[row] == 1:
            right_all += work.sums.weight[row]
            size_all += _size_of_row(work, row)
    slack = NOISE * (left_all + right_all)
    best: cython.double = -1.0
    threshold: cython.double = 0.0
    below: cython.int = 0
    left: cython.double = 0.0
    right: cython.double = 0.0
    size_before: cython.double = 0.0
    last: cython.int = -1
    following: cython.int = -1
    for at in range(start, stop):
        row = sequence[at]
        if codes[row] < 0:
            break
        if codes[row] != last and following < 0:
            following = codes[row]
        if branch_of_row[row] < 0:
            continue
        if last >= 0 and codes[row] != last and size_before >= MIN_SIZE and size_all - size_before >= MIN_SIZE:
            for direction in range(2):
                agreeing = left + right_all - right if direction == 0 else right + left_all - left
                if agreeing > best + slack:
                    best, below = agreeing, direction
                    threshold = work.columns.value[first_value + last]
                    if work.columns.kind[attribute] == c.ORDERED_KIND:
                        threshold = middle_of(threshold, work.columns.value[first_value + following])
        last, following = codes[row], -1
        size_before += _size_of_row(work, row)
        if branch_of_row[row] == 0:
            left += work.sums.weight[row]
        else:
            right += work.sums.weight[row]
    return best, threshold, below


def _nominal_agreement(work, rows, branches, surrogates, upper_branch, attribute, start, stop):
    """Return the agreeing weight if each category goes to its heavier branch. Write the branches to `branch_of_code`.

    The branch of a category that is not present is -1. The weight is -1 if a branch gets less than `MIN_SIZE`. If a
    category is equally heavy in both branches, it goes to the branch that is heavier over all categories. If both
    branches are equally heavy over all categories too, it goes to `upper_branch`, as in rpart.
    """
    codes = work.columns.codes[attribute]
    for code in range(work.columns.n_codes[attribute]):
        surrogates.branch_of_code[code] = -1
        surrogates.left_of_code[code] = 0.0
        surrogates.right_of_code[code] = 0.0
        surrogates.size_of_code[code] = 0.0
    for at in range(start, stop):
        row = rows.master[at]
        code = codes[row]
        if code < 0 or branches.of_row[row] < 0:
            continue
        surrogates.size_of_code[code] += _size_of_row(work, row)
        if branches.of_row[row] == 0:
            surrogates.left_of_code[code] += work.sums.weight[row]
        else:
            surrogates.right_of_code[code] += work.sums.weight[row]
    agreeing: cython.double = 0.0
    left_size: cython.double = 0.0
    right_size: cython.double = 0.0
    left_all: cython.double = 0.0
    right_all: cython.double = 0.0
    for code in range(work.columns.n_codes[attribute]):
        left_all += surrogates.left_of_code[code]
        right_all += surrogates.right_of_code[code]
    slack = NOISE * (left_all + right_all)
    usual = upper_branch if fabs(right_all - left_all) <= slack else 1 if right_all > left_all else 0
    for code in range(work.columns.n_codes[attribute]):
        if surrogates.size_of_code[code] == 0.0:
            continue
        left, right = surrogates.left_of_code[code], surrogates.right_of_code[code]
        if right > left + slack or (right >= left - slack and usual == 1):
            surrogates.branch_of_code[code] = 1
            agreeing += right
            right_size += surrogates.size_of_code[code]
        else:
            surrogates.branch_of_code[code] = 0
            agreeing += left
            left_size += surrogates.size_of_code[code]
    return agreeing if left_size >= MIN_SIZE and right_size >= MIN_SIZE else -1.0


def _size_of_row(work, row):
    """Return the weight of a row, with its class weight divided out."""
    if not work.parameters.has_class_weights:
        return work.sums.weight[row]
    return work.sums.weight[row] * work.parameters.class_scale[work.targets.target_class[row]]


def _surrogate_branch(work, surrogates, i, row):
    attribute = surrogates.ints[i, column.S_ATTRIBUTE]
    code = work.columns.codes[attribute, row]
    if code < 0:
        return -1
    if work.columns.kind[attribute] == c.NOMINAL_KIND:
        return surrogates.codes[surrogates.ints[i, column.S_CODE_START] + code]
    below = surrogates.ints[i, column.S_BELOW]
    value = work.columns.value[work.columns.value_start[attribute] + code]
    return below if value <= surrogates.reals[i, column.S_THRESHOLD] else 1 - below


def _copy_found(work, surrogates, n_found):
    """Copy the found surrogates after those of earlier nodes. Return the total length of all code tables so far."""
    n_codes: cython.longlong = surrogates.n_codes
    for i in range(n_found):
        at = surrogates.n + i
        surrogates.ints[at, :] = surrogates.found_ints[i]
        surrogates.reals[at, :] = surrogates.found_reals[i]
        surrogates.ints[at, column.S_CODE_START] = n_codes
        if surrogates.found_ints[i, column.S_TEST] == NOMINAL:
            n_codes += work.columns.n_codes[surrogates.found_ints[i, column.S_ATTRIBUTE]]
    return n_codes


def _write_codes(work, rows, branches, surrogates, upper_branch, first, start, stop):
    for i in range(first, surrogates.n):
        if surrogates.ints[i, column.S_TEST] != NOMINAL:
            continue
        attribute = surrogates.ints[i, column.S_ATTRIBUTE]
        code_start = surrogates.ints[i, column.S_CODE_START]
        if work.columns.kind[attribute] == c.BINARIES_KIND:
            # The threshold divides the ranks of categories, but branches are stored by category.
            below = surrogates.ints[i, column.S_BELOW]
            for code in range(work.columns.n_codes[attribute]):
                rank = work.columns.recode[work.columns.recode_start[attribute] + code]
                branch = below if rank <= surrogates.reals[i, column.S_THRESHOLD] else 1 - below
                surrogates.codes[code_start + code] = branch
            continue
        _nominal_agreement(work, rows, branches, surrogates, upper_branch, attribute, start, stop)
        for code in range(work.columns.n_codes[attribute]):
            surrogates.codes[code_start + code] = surrogates.branch_of_code[code]
