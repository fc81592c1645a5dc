"""New nodes of a growing tree and their statistics."""

import cython
from cython.cimports.espalier.growing.kernels import node_columns as column
from cython.cimports.espalier.growing.kernels.binary.nodes import LOST
from cython.cimports.espalier.growing.kernels.splits.deviations import add_rows, remove_rows
from cython.cimports.espalier.model.node_tests import LEAF
from cython.cimports.libc.math import INFINITY, NAN

ROUNDING = 1e-12
"""Weights that differ by at most this share are equal."""


def start_root(work, nodes, rows, depth):
    """Write the root node with this depth. Write all rows and their weights into the master sequence."""
    is_regression: cython.bint = work.parameters.n_classes == 0
    _start_node(nodes, 0, -1, depth, -1)
    for row in range(work.targets.weight.shape[0]):
        rows.master[row] = row
        rows.weight[row] = work.targets.weight[row]
        _add_row(nodes, work.targets, is_regression, 0, row, work.targets.weight[row])
    if is_regression:
        _finish_means(nodes, 0, 1)
        for row in range(work.targets.weight.shape[0]):
            _add_square(nodes, work.targets, 0, row, work.targets.weight[row])
        _correct_means(nodes, 0, 1)
    _finish_values(nodes, work.parameters.n_classes, 0, 1, 0.0)
    nodes.n = 1


def start_children(work, nodes, rows, branches, node, paid_link, start, stop):
    """Write a node's children after the last node. Divide rows without a branch among the children by known weight."""
    is_regression: cython.bint = work.parameters.n_classes == 0
    first: cython.int = nodes.n
    branch: cython.int
    for branch in range(branches.n):
        _start_node(nodes, first + branch, node, nodes.ints[node, column.DEPTH] + 1, paid_link)
        nodes.reals[first + branch, column.SHARE] = branches.weight[branch] / branches.known_weight
    _add_rows(work.targets, nodes, rows, branches, is_regression, False, start, stop)
    if is_regression:
        _finish_means(nodes, first, branches.n)
        _add_rows(work.targets, nodes, rows, branches, True, True, start, stop)
        _correct_means(nodes, first, branches.n)
    _finish_values(nodes, work.parameters.n_classes, first, branches.n, nodes.reals[node, column.VALUE])


def _add_rows(targets, nodes, rows, branches, is_regression, has_means, start, stop):
    """Add each row to the statistics of the children that it reaches; if `has_means`, only to the deviations."""
    branch: cython.int
    for at in range(start, stop):
        row = rows.master[at]
        taken: cython.int = branches.of_row[row]
        # A row with an unknown value reaches every branch that has known rows.
        for branch in range(taken if taken >= 0 else 0, taken + 1 if taken >= 0 else branches.n):
            weight: cython.double = rows.weight[at]
            if taken < 0:
                if branches.weight[branch] <= 0.0:
                    continue
                weight *= branches.weight[branch] / branches.known_weight
                branches.n_rows[branch] += not has_means
            if has_means:
                _add_square(nodes, targets, nodes.n + branch, row, weight)
            else:
                _add_row(nodes, targets, is_regression, nodes.n + branch, row, weight)


def _start_node(nodes, node, parent, depth, paid_link):
    for k in range(column.N_NODE_INTS):
        nodes.ints[node, k] = -1
    nodes.ints[node, column.PARENT] = parent
    nodes.ints[node, column.TEST] = LEAF
    nodes.ints[node, column.N_CHILDREN] = 0
    nodes.ints[node, column.DEPTH] = depth
    nodes.ints[node, column.PAID_LINK] = paid_link
    nodes.ints[node, column.HEURISTIC] = 0
    nodes.ints[node, column.N_SURROGATES] = 0
    for k in range(column.N_NODE_REALS):
        nodes.reals[node, k] = NAN
    nodes.reals[node, column.WEIGHT] = 0.0
    nodes.reals[node, column.LOWEST] = INFINITY
    nodes.reals[node, column.HIGHEST] = -INFINITY
    for k in range(nodes.stats.shape[1]):
        nodes.stats[node, k] = 0.0


def undo_split(nodes, node):
    """Turn a node back into a leaf."""
    nodes.ints[node, column.FEATURE] = -1
    nodes.ints[node, column.TEST] = LEAF
    nodes.ints[node, column.FIRST_CHILD] = -1
    nodes.ints[node, column.N_CHILDREN] = 0
    nodes.ints[node, column.FALLBACK] = -1
    nodes.ints[node, column.N_SURROGATES] = 0
    nodes.reals[node, column.GAIN] = NAN
    nodes.reals[node, column.THRESHOLD] = NAN


def _add_row(nodes, targets, is_regression, node, row, weight):
    nodes.reals[node, column.WEIGHT] += weight
    if not is_regression:
        nodes.stats[node, targets.target_class[row]] += weight
        return
    target = targets.target[row]
    nodes.stats[node, 0] += weight
    nodes.stats[node, 1] += weight * target
    nodes.reals[node, column.LOWEST] = min(nodes.reals[node, column.LOWEST], target)
    nodes.reals[node, column.HIGHEST] = max(nodes.reals[node, column.HIGHEST], target)


def _finish_means(nodes, first, count):
    """Turn the target sums of nodes first:first+count into means. Set these nodes' sums of deviations to 0."""
    for node in range(first, first + count):
        if nodes.stats[node, 0] <= 0.0:
            continue
        nodes.stats[node, 1] = _inside(nodes, node, nodes.stats[node, 1] / nodes.stats[node, 0])
        nodes.reals[node, column.VALUE] = 0.0  # the sum of the deviations from this mean, until the mean is corrected


def _inside(nodes, node, mean):
    """Return the mean of a node, clipped to the range of its targets: rounding may have moved it out of the range."""
    return min(max(mean, nodes.reals[node, column.LOWEST]), nodes.reals[node, column.HIGHEST])


def _add_square(nodes, targets, node, row, weight):
    """Add a row to a node's sums of deviations and of squared deviations. The mean must be known up to rounding."""
    apart = targets.target[row] - nodes.stats[node, 1]
    nodes.reals[node, column.VALUE] += weight * apart
    nodes.stats[node, 2] += weight * apart * apart


def _correct_means(nodes, first, count):
    """Correct the means, and the squared deviations from them, for rounding errors."""
    for node in range(first, first + count):
        if nodes.stats[node, 0] > 0.0:
            rest = nodes.reals[node, column.VALUE] / nodes.stats[node, 0]
            # A smaller correction is within the rounding error of the deviations themselves.
            if rest * nodes.reals[node, column.VALUE] > LOST * nodes.stats[node, 2]:
                nodes.stats[node, 1] = _inside(nodes, node, nodes.stats[node, 1] + rest)
            nodes.stats[node, 2] = max(0.0, nodes.stats[node, 2] - nodes.reals[node, column.VALUE] * rest)


def _finish_values(nodes, n_classes, first, count, value_of_parent):
    """Write each node's value: its heaviest class, or its mean. A node without weight gets its parent's value."""
    for node in range(first, first + count):
        if nodes.reals[node, column.WEIGHT] <= 0.0:
            nodes.reals[node, column.VALUE] = value_of_parent
        elif n_classes > 0:
            best: cython.int = 0
            for k in range(1, n_classes):
                if nodes.stats[node, k] > nodes.stats[node, best] + ROUNDING * nodes.reals[node, column.WEIGHT]:
                    best = k
            nodes.reals[node, column.VALUE] = best
        else:
            nodes.reals[node, column.VALUE] = nodes.stats[node, 1]


def set_medians(work, nodes, rows, branches, first_child, start, stop):
    """Write the weighted median of each child that has rows."""
    branch: cython.int
    bucket = work.medians.bucket  # the rows by branch, then those that are divided among the branches
    n_divided = branches.n_unknown if branches.fallback < 0 else 0
    n_placed: cython.longlong = 0
    for branch in range(branches.n):
        branches.at[branch] = n_placed
        n_placed += branches.n_rows[branch] - (n_divided if branches.weight[branch] > 0.0 else 0)
    end = n_placed
    for at in range(start, stop):
        row = rows.master[at]
        taken = branches.of_row[row]
        if taken >= 0:
            bucket[branches.at[taken]] = row
            branches.at[taken] += 1
        else:
            bucket[n_placed] = row
            n_placed += 1
    first: cython.longlong = 0
    for branch in range(branches.n):
        if branches.n_rows[branch] > 0:
            share = branches.weight[branch] / branches.known_weight
            set_median(work, nodes, first_child + branch, bucket, first, branches.at[branch], end, n_placed, share)
        first = branches.at[branch]


def set_median(work, nodes, node, rows, start, stop, extra_start, extra_stop, share):
    """Write the weighted median of a node. If half of the weight lies on each side of a gap, take the gap's middle.

    The node's rows are ``rows[start:stop]``, and ``rows[extra_start:extra_stop]`` at `share` of their weight.
    """
    add_rows(work, rows, start, stop, 1.0)
    add_rows(work, rows, extra_start, extra_stop, share)
    half = 0.5 * work.medians.weight_in_trees
    slack = 2e-12 * half
    first = _rank_reaching(work.medians.weight_tree, half - slack)
    second = _rank_reaching(work.medians.weight_tree, half + slack)
    remove_rows(work.medians, rows, start, stop)
    remove_rows(work.medians, rows, extra_start, extra_stop)
    last: cython.longlong = work.medians.target_value.shape[0] - 1
    low, high = work.medians.target_value[min(first, last)], work.medians.target_value[min(second, last)]
    nodes.reals[node, column.VALUE] = low if low == high else (low + high) / 2.0


def _rank_reaching(weight_tree, bound):
    """Return the first rank at which the cumulative weight is at least `bound`."""
    step: cython.longlong = 1
    while step * 2 < weight_tree.shape[0]:
        step *= 2
    at: cython.longlong = 0
    below: cython.double = 0.0
    while step > 0:
        following = at + step
        if following < weight_tree.shape[0] and below + weight_tree[following] < bound:
            at = following
            below += weight_tree[at]
        step //= 2
    return at
