"""What stands in a node: the root's figures and those of the children of a split."""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.nodes import (
    DEPTH,
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    GAIN,
    HIGHEST,
    LOWEST,
    N_CHILDREN,
    N_SURROGATES,
    SHARE,
    TEST,
    THRESHOLD,
    VALUE,
    WEIGHT,
    start_node,
)
from espalier.growing.kernels.partition import gather_branch
from espalier.kernels.jit import inner


@inner
def start_root(rules, rows, node_ints, node_reals, node_stats, master, master_weight, depth):
    """Write the root, and all rows into the master sequence."""
    start_node(node_ints, node_reals, 0, -1, depth, -1)
    for k in range(node_stats.shape[1]):
        node_stats[0, k] = 0.0
    for row in range(rows.weight.size):
        master[row] = row
        master_weight[row] = rows.weight[row]
        add_to_node(rules, rows, node_reals, node_stats, 0, row, rows.weight[row])
    finish_means(rules, node_reals, node_stats, 0, 1)
    if rules.n_classes == 0:
        for row in range(rows.weight.size):
            add_square(rules, rows, node_stats, 0, row, rows.weight[row])
    finish_values(rules, node_reals, node_stats, 0, 1, 0.0)


@inner
def start_children(
    rules, rows, node_ints, node_reals, node_stats, node, first_child, n_branches, paid_link, master, master_weight,
    start, stop, side, branch_weight, known_weight, branch_count,
):  # fmt: skip
    """Write the children of a node with their statistics; counts the rows with unknown values into each branch."""
    for branch in range(n_branches):
        child = first_child + branch
        start_node(node_ints, node_reals, child, node, node_ints[node, DEPTH] + 1, paid_link)
        for k in range(node_stats.shape[1]):
            node_stats[child, k] = 0.0
        node_reals[child, SHARE] = branch_weight[branch] / known_weight
    for at in range(start, stop):
        row = master[at]
        if side[row] >= 0:
            add_to_node(rules, rows, node_reals, node_stats, first_child + side[row], row, master_weight[at])
            continue
        for branch in range(n_branches):
            if branch_weight[branch] > 0.0:
                weight = master_weight[at] * (branch_weight[branch] / known_weight)
                branch_count[branch] += 1
                add_to_node(rules, rows, node_reals, node_stats, first_child + branch, row, weight)
    finish_means(rules, node_reals, node_stats, first_child, n_branches)
    if rules.n_classes == 0:
        for at in range(start, stop):
            row = master[at]
            if side[row] >= 0:
                add_square(rules, rows, node_stats, first_child + side[row], row, master_weight[at])
                continue
            for branch in range(n_branches):
                if branch_weight[branch] > 0.0:
                    weight = master_weight[at] * (branch_weight[branch] / known_weight)
                    add_square(rules, rows, node_stats, first_child + branch, row, weight)
    finish_values(rules, node_reals, node_stats, first_child, n_branches, node_reals[node, VALUE])


@inner
def take_back(node_ints, node_reals, node):
    """Make a leaf of a node again whose children are not worth it."""
    node_ints[node, FEATURE] = -1
    node_ints[node, TEST] = c.LEAF
    node_ints[node, FIRST_CHILD] = -1
    node_ints[node, N_CHILDREN] = 0
    node_ints[node, FALLBACK] = -1
    node_ints[node, N_SURROGATES] = 0
    node_reals[node, GAIN] = math.nan
    node_reals[node, THRESHOLD] = math.nan


@inner
def add_to_node(rules, rows, node_reals, node_stats, node, row, weight):
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
def finish_means(rules, node_reals, node_stats, first, count):
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
def add_square(rules, rows, node_stats, node, row, weight):
    """Add a row to a regression's sum of squared deviations, once the mean is known."""
    if rules.n_classes == 0:
        apart = rows.target[row] - node_stats[node, 1]
        node_stats[node, 2] += weight * apart * apart


@inner
def finish_values(rules, node_reals, node_stats, first, count, value_of_parent):
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
def set_medians(
    rare, master, master_weight, start, stop, side, n_branches, branch_weight, known_weight, branch_count, spare,
    spare_weight, node_reals, first_child,
):  # fmt: skip
    """Write the weighted median of each child that has rows; spare, spare_weight: scratch for those of one."""
    for branch in range(n_branches):
        if branch_count[branch] > 0:
            count = gather_branch(
                master, master_weight, start, stop, side, branch, branch_weight[branch] / known_weight, spare,
                spare_weight,
            )  # fmt: skip
            set_median(rare, spare, spare_weight, 0, count, node_reals, first_child + branch)


@inner
def set_median(rare, sequence, weights, start, stop, node_reals, node):
    """Write a node's weighted median; where exactly half of the weight lies below, the middle of both neighbours."""
    whole = 0.0
    for at in range(start, stop):
        rank = rare.target_rank[sequence[at]] + 1
        whole += weights[at]
        while rank < rare.weight_tree.size:
            rare.weight_tree[rank] += weights[at]
            rank += rank & -rank
    half = 0.5 * whole
    slack = 1e-12 * whole
    first = _rank_reaching(rare.weight_tree, half - slack)
    second = _rank_reaching(rare.weight_tree, half + slack)
    for at in range(start, stop):
        rank = rare.target_rank[sequence[at]] + 1
        while rank < rare.weight_tree.size:
            rare.weight_tree[rank] = 0.0
            rank += rank & -rank
    last = rare.target_value.size - 1
    low, high = rare.target_value[min(first, last)], rare.target_value[min(second, last)]
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
