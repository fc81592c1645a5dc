"""Validation rows in the growing tree: a split is undone if the validation rows lose by it.

The validation rows of a node are a range ``start:stop`` of a sequence of (row, weight), like its training rows.
"""

import math

from espalier.growing.kernels import constants as c, nodes as n
from espalier.growing.kernels.surrogates import N_S_INTS, S_ATTRIBUTE, S_BELOW, S_TEST, S_THRESHOLD
from espalier.kernels.jit import inner

VALIDATION_SLACK = 1e-9


@inner
def loses_by_split(
    parameters, columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
    surrogate_codes, node, n_branches, valid_row, valid_weight, start, stop,
):  # fmt: skip
    """Return (whether the split raises the loss of the validation rows, how many row parts reach the children)."""
    n_routed = 0
    before, after = 0.0, 0.0
    first_child = node_ints[node, n.FIRST_CHILD]
    for at in range(start, stop):
        before += _loss(parameters, validation, valid_row[at], valid_weight[at], node_reals[node, n.VALUE])
    for branch in range(n_branches - 1, -1, -1):
        answer = node_reals[first_child + branch, n.VALUE]
        for at in range(start, stop):
            share = share_of_branch(
                columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                surrogate_codes, node, valid_row[at], branch,
            )  # fmt: skip
            if share > 0.0:
                after += _loss(parameters, validation, valid_row[at], valid_weight[at] * share, answer)
                n_routed += 1
    return after > before + VALIDATION_SLACK * max(1.0, before), n_routed


@inner
def _loss(parameters, validation, row, weight, answer):
    """Return the wrong weight of a validation row, or its weighted squared error."""
    truth = validation.target[row]
    if parameters.n_classes > 0:
        return weight if truth != answer else 0.0
    return weight * (truth - answer) * (truth - answer)


@inner
def partition_validation(
    columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node,
    valid_row, valid_weight, start, stop, base, pending, first_new, n_pending, spare, spare_weight,
):  # fmt: skip
    """Write a node's validation rows to the ranges of its pending children, from `base` on. Return how many parts.

    pending: as in `grow_tree`; the validation ranges of the entries ``first_new:n_pending`` are written.
    """
    first_child = node_ints[node, n.FIRST_CHILD]
    to = 0
    for entry in range(first_new, n_pending):
        pending[entry, 3] = base + to
        for at in range(start, stop):
            share = share_of_branch(
                columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals,
                surrogate_codes, node, valid_row[at], pending[entry, 0] - first_child,
            )  # fmt: skip
            if share > 0.0:
                spare[to] = valid_row[at]
                spare_weight[to] = valid_weight[at] * share
                to += 1
        pending[entry, 4] = base + to
    for at in range(to):
        valid_row[base + at] = spare[at]
        valid_weight[base + at] = spare_weight[at]
    return to


@inner
def share_of_branch(
    columns, validation, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node, row,
    branch,
):  # fmt: skip
    """Return the share of a validation row that goes down a branch: 0 or 1, or between if its value is unknown."""
    attribute = node_ints[node, n.FEATURE]
    value = validation.codes[attribute, row]
    test = node_ints[node, n.TEST]
    taken = -1
    if test == c.UNKNOWN:
        taken = 1 if math.isnan(value) else 0
    elif not math.isnan(value):
        if test == c.NUMERIC:
            taken = 0 if value <= node_reals[node, n.THRESHOLD] else 1
        elif value < columns.n_codes[attribute]:
            taken = code_table[node_ints[node, n.CODE_START] + int(value)]
    if taken < 0 and node_ints[node, n.FALLBACK] < 0:
        return node_reals[node_ints[node, n.FIRST_CHILD] + branch, n.SHARE]
    if taken < 0:
        first = node_ints[node, n.FIRST_SURROGATE]
        for i in range(first, first + node_ints[node, n.N_SURROGATES]):
            other = surrogate_ints[i, S_ATTRIBUTE]
            value = validation.codes[other, row]
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
        taken = node_ints[node, n.FALLBACK]
    return 1.0 if taken == branch else 0.0
