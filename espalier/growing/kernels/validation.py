"""Validation rows on their way down the tree that is being grown: children are kept where they do not lose by them.

A node's validation rows are a stretch ``start:stop`` of a sequence of (row, weight), as its training rows are.
"""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.nodes import (
    CODE_START,
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    FIRST_SURROGATE,
    N_SURROGATES,
    SHARE,
    TEST,
    THRESHOLD,
    VALUE,
)
from espalier.growing.kernels.surrogates import N_S_INTS, S_ATTRIBUTE, S_BELOW, S_TEST, S_THRESHOLD
from espalier.kernels.jit import inner

VALIDATION_SLACK = 1e-9


@inner
def losses_of_split(
    rules, columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node,
    n_branches, valid_row, valid_weight, start, stop,
):  # fmt: skip
    """Give (whether the children lose by validation rows, the number of parts of rows that reach them)."""
    n_routed = 0
    before, after = 0.0, 0.0
    first_child = node_ints[node, FIRST_CHILD]
    for at in range(start, stop):
        before += _loss(rules, rare, valid_row[at], valid_weight[at], node_reals[node, VALUE])
    for branch in range(n_branches - 1, -1, -1):
        answer = node_reals[first_child + branch, VALUE]
        for at in range(start, stop):
            share = share_of_branch(
                columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes,
                node, valid_row[at], branch,
            )  # fmt: skip
            if share > 0.0:
                after += _loss(rules, rare, valid_row[at], valid_weight[at] * share, answer)
                n_routed += 1
    return after > before + VALIDATION_SLACK * max(1.0, before), n_routed


@inner
def _loss(rules, rare, row, weight, answer):
    """Give the wrong weight of a validation row, or its weighted squared error."""
    truth = rare.valid_target[row]
    if rules.n_classes > 0:
        return weight if truth != answer else 0.0
    return weight * (truth - answer) * (truth - answer)


@inner
def deal_validation(
    columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node, valid_row,
    valid_weight, start, stop, base, waiting, first_new, n_waiting, spare, spare_weight,
):  # fmt: skip
    """Put a node's validation rows where those of its children that wait begin, from `base` on; gives how many parts.

    waiting: as in `grow`; of the entries ``first_new:n_waiting`` the stretch of their validation rows is written.
    """
    first_child = node_ints[node, FIRST_CHILD]
    to = 0
    for entry in range(first_new, n_waiting):
        waiting[entry, 3] = base + to
        for at in range(start, stop):
            share = share_of_branch(
                columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes,
                node, valid_row[at], waiting[entry, 0] - first_child,
            )  # fmt: skip
            if share > 0.0:
                spare[to] = valid_row[at]
                spare_weight[to] = valid_weight[at] * share
                to += 1
        waiting[entry, 4] = base + to
    for at in range(to):
        valid_row[base + at] = spare[at]
        valid_weight[base + at] = spare_weight[at]
    return to


@inner
def share_of_branch(
    columns, rare, node_ints, node_reals, code_table, surrogate_ints, surrogate_reals, surrogate_codes, node, row,
    branch,
):  # fmt: skip
    """Give the share of a validation row that goes down a branch of a node: 0 or 1, or between where it is unknown."""
    attribute = node_ints[node, FEATURE]
    value = rare.valid_codes[attribute, row]
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
            value = rare.valid_codes[other, row]
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
