"""Validation rows in the growing tree: a split is undone if it raises the loss of the validation rows.

The validation rows of a node are a range ``start:stop`` of a sequence of row parts (row, weight).
"""

import cython
from cython.cimports.espalier.growing.kernels import node_columns as column
from cython.cimports.espalier.model.node_tests import NOMINAL, NUMERIC, UNKNOWN
from cython.cimports.libc.math import isnan

VALIDATION_SLACK = 1e-9


def loses_by_split(growth, node, n_branches, start, stop):
    """Return whether the split raises the loss of the validation rows, and how many row parts reach the children."""
    n_routed: cython.longlong = 0
    before: cython.double = 0.0
    after: cython.double = 0.0
    first_child = growth.nodes.ints[node, column.FIRST_CHILD]
    answer = growth.nodes.reals[node, column.VALUE]
    for at in range(start, stop):
        before += _loss(growth.work, growth.validation.master[at], growth.validation.weight[at], answer)
    for branch in range(n_branches - 1, -1, -1):
        answer = growth.nodes.reals[first_child + branch, column.VALUE]
        for at in range(start, stop):
            row = growth.validation.master[at]
            share = _share_of_branch(growth, node, row, branch)
            if share > 0.0:
                weight = growth.validation.weight[at] * share
                after += _loss(growth.work, row, weight, answer)
                n_routed += 1
    return after > before + VALIDATION_SLACK * max(before, after), n_routed


def _loss(work, row, weight, answer):
    truth = work.validation.target[row]
    if work.parameters.n_classes > 0:
        return weight if truth != answer else 0.0
    return weight * (truth - answer) * (truth - answer)


def partition_validation(growth, node, first_new, start, stop, base):
    """Write a node's validation rows to the ranges of its pending children, from `base` on. Return the number written.

    first_new: index of the first of these children among the pending nodes.
    """
    first_child = growth.nodes.ints[node, column.FIRST_CHILD]
    to: cython.longlong = 0
    for entry in range(first_new, growth.pending.n):
        growth.pending.valid_start[entry] = base + to
        for at in range(start, stop):
            row = growth.validation.master[at]
            share = _share_of_branch(growth, node, row, growth.pending.node[entry] - first_child)
            if share > 0.0:
                growth.validation.spare[to] = row
                growth.validation.spare_weight[to] = growth.validation.weight[at] * share
                to += 1
        growth.pending.valid_stop[entry] = base + to
    growth.validation.master[base : base + to] = growth.validation.spare[:to]
    growth.validation.weight[base : base + to] = growth.validation.spare_weight[:to]
    return to


def _share_of_branch(growth, node, row, branch):
    """Return a row's share in a branch: SHARE if neither the test nor a fallback assigns the row, else 0 or 1."""
    attribute = growth.nodes.ints[node, column.FEATURE]
    value = growth.work.validation.codes[attribute, row]
    test = growth.nodes.ints[node, column.TEST]
    taken: cython.int = -1
    if test == UNKNOWN:
        taken = 1 if isnan(value) else 0
    elif not isnan(value):
        if test == NUMERIC:
            taken = 0 if value <= growth.nodes.reals[node, column.THRESHOLD] else 1
        elif value < growth.work.columns.n_codes[attribute]:
            taken = growth.nodes.codes[growth.nodes.ints[node, column.CODE_START] + cython.cast(cython.int, value)]
    if taken < 0 and growth.nodes.ints[node, column.FALLBACK] < 0:
        return growth.nodes.reals[growth.nodes.ints[node, column.FIRST_CHILD] + branch, column.SHARE]
    if taken < 0:
        first = growth.nodes.ints[node, column.FIRST_SURROGATE]
        for i in range(first, first + growth.nodes.ints[node, column.N_SURROGATES]):
            taken = _surrogate_branch(growth, i, row)
            if taken >= 0:
                break
    if taken < 0:
        taken = growth.nodes.ints[node, column.FALLBACK]
    return 1.0 if taken == branch else 0.0


def _surrogate_branch(growth, i, row):
    attribute = growth.surrogates.ints[i, column.S_ATTRIBUTE]
    value = growth.work.validation.codes[attribute, row]
    if isnan(value):
        return -1
    if growth.surrogates.ints[i, column.S_TEST] == NOMINAL:
        if value >= growth.work.columns.n_codes[attribute]:
            return -1
        return growth.surrogates.codes[growth.surrogates.ints[i, column.S_CODE_START] + cython.cast(cython.int, value)]
    below = growth.surrogates.ints[i, column.S_BELOW]
    return below if value <= growth.surrogates.reals[i, column.S_THRESHOLD] else 1 - below
