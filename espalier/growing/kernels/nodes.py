"""Node tables of a growing tree: their columns, new nodes and their statistics, enlarging, and the final preorder."""

import math

import numpy as np

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.partition import copy_branch
from espalier.kernels.jit import compiled, inner, maker

COLLAPSE_SLACK = 1e-3

# Columns of the node tables.
PARENT = 0
FEATURE = 1
TEST = 2
FIRST_CHILD = 3
N_CHILDREN = 4
FALLBACK = 5
CODE_START = 6
DEPTH = 7
PAID_LINK = 8  # nearest node, itself included, whose split paid for a new attribute; -1: none
HEURISTIC = 9
FIRST_SURROGATE = 10
N_SURROGATES = 11
N_NODE_INTS = 12

THRESHOLD = 0
WEIGHT = 1
GAIN = 2
VALUE = 3
SHARE = 4  # of the parent's known weight
LOWEST = 5  # of the target, regression
HIGHEST = 6
N_NODE_REALS = 7


@inner
def start_node(node_ints, node_reals, node, parent, depth, paid_link):
    """Write an empty leaf into the tables."""
    for k in range(N_NODE_INTS):
        node_ints[node, k] = -1
    node_ints[node, PARENT] = parent
    node_ints[node, TEST] = c.LEAF
    node_ints[node, N_CHILDREN] = 0
    node_ints[node, DEPTH] = depth
    node_ints[node, PAID_LINK] = paid_link
    node_ints[node, HEURISTIC] = 0
    node_ints[node, N_SURROGATES] = 0
    for k in range(N_NODE_REALS):
        node_reals[node, k] = math.nan
    node_reals[node, WEIGHT] = 0.0
    node_reals[node, LOWEST] = math.inf
    node_reals[node, HIGHEST] = -math.inf


@maker
def enlarge(old, count, more):
    """Return a longer array with the first `count` entries of the old one."""
    new = np.empty(more, old.dtype)
    for at in range(count):
        new[at] = old[at]
    return new


@maker
def enlarge_rows(old, count, more):
    """Return a table of more rows with the first `count` rows of the old one."""
    new = np.empty((more, old.shape[1]), old.dtype)
    for at in range(count):
        for k in range(old.shape[1]):
            new[at, k] = old[at, k]
    return new


@maker
def enlarge_columns(old, count, more):
    """Return a table of more columns with the first `count` columns of the old one."""
    new = np.empty((old.shape[0], more), old.dtype)
    for order in range(old.shape[0]):
        for at in range(count):
            new[order, at] = old[order, at]
    return new


@inner
def start_root(parameters, targets, node_ints, node_reals, node_stats, master, master_weight, depth):
    """Write the root, and all rows into the master sequence."""
    start_node(node_ints, node_reals, 0, -1, depth, -1)
    for k in range(node_stats.shape[1]):
        node_stats[0, k] = 0.0
    for row in range(targets.weight.size):
        master[row] = row
        master_weight[row] = targets.weight[row]
        add_to_node(parameters, targets, node_reals, node_stats, 0, row, targets.weight[row])
    finish_means(parameters, node_reals, node_stats, 0, 1)
    if parameters.n_classes == 0:
        for row in range(targets.weight.size):
            add_square(parameters, targets, node_stats, 0, row, targets.weight[row])
    finish_values(parameters, node_reals, node_stats, 0, 1, 0.0)


@inner
def start_children(
    parameters, targets, node_ints, node_reals, node_stats, node, first_child, n_branches, paid_link, master,
    master_weight, start, stop, branch_of_row, branch_weight, known_weight, branch_count,
):  # fmt: skip
    """Write the children of a node with their statistics; count the rows with unknown values in each branch."""
    for branch in range(n_branches):
        child = first_child + branch
        start_node(node_ints, node_reals, child, node, node_ints[node, DEPTH] + 1, paid_link)
        for k in range(node_stats.shape[1]):
            node_stats[child, k] = 0.0
        node_reals[child, SHARE] = branch_weight[branch] / known_weight
    for at in range(start, stop):
        row = master[at]
        if branch_of_row[row] >= 0:
            add_to_node(
                parameters, targets, node_reals, node_stats, first_child + branch_of_row[row], row, master_weight[at]
            )
            continue
        for branch in range(n_branches):
            if branch_weight[branch] > 0.0:
                weight = master_weight[at] * (branch_weight[branch] / known_weight)
                branch_count[branch] += 1
                add_to_node(parameters, targets, node_reals, node_stats, first_child + branch, row, weight)
    finish_means(parameters, node_reals, node_stats, first_child, n_branches)
    if parameters.n_classes == 0:
        for at in range(start, stop):
            row = master[at]
            if branch_of_row[row] >= 0:
                add_square(parameters, targets, node_stats, first_child + branch_of_row[row], row, master_weight[at])
                continue
            for branch in range(n_branches):
                if branch_weight[branch] > 0.0:
                    weight = master_weight[at] * (branch_weight[branch] / known_weight)
                    add_square(parameters, targets, node_stats, first_child + branch, row, weight)
    finish_values(parameters, node_reals, node_stats, first_child, n_branches, node_reals[node, VALUE])


@inner
def undo_split(node_ints, node_reals, node):
    """Turn a node back into a leaf."""
    node_ints[node, FEATURE] = -1
    node_ints[node, TEST] = c.LEAF
    node_ints[node, FIRST_CHILD] = -1
    node_ints[node, N_CHILDREN] = 0
    node_ints[node, FALLBACK] = -1
    node_ints[node, N_SURROGATES] = 0
    node_reals[node, GAIN] = math.nan
    node_reals[node, THRESHOLD] = math.nan


@inner
def add_to_node(parameters, targets, node_reals, node_stats, node, row, weight):
    """Add a row to a node's weight and class weights, or to its weight and sum."""
    node_reals[node, WEIGHT] += weight
    if parameters.n_classes > 0:
        node_stats[node, targets.target_class[row]] += weight
        return
    target = targets.target[row]
    node_stats[node, 0] += weight
    node_stats[node, 1] += weight * target
    node_reals[node, LOWEST] = min(node_reals[node, LOWEST], target)
    node_reals[node, HIGHEST] = max(node_reals[node, HIGHEST], target)


@inner
def finish_means(parameters, node_reals, node_stats, first, count):
    """Turn the sums of a regression into means."""
    if parameters.n_classes > 0:
        return
    for node in range(first, first + count):
        if node_stats[node, 0] <= 0.0:
            continue
        mean = node_stats[node, 1] / node_stats[node, 0]
        # Rounding must not move a mean out of the range of its values.
        node_stats[node, 1] = min(max(mean, node_reals[node, LOWEST]), node_reals[node, HIGHEST])


@inner
def add_square(parameters, targets, node_stats, node, row, weight):
    """Add a row to a regression's sum of squared deviations, once the mean is known."""
    if parameters.n_classes == 0:
        apart = targets.target[row] - node_stats[node, 1]
        node_stats[node, 2] += weight * apart * apart


@inner
def finish_values(parameters, node_reals, node_stats, first, count, value_of_parent):
    """Write the value of each node: the first of the heaviest classes, or the mean; without rows its parent's."""
    for node in range(first, first + count):
        if node_reals[node, WEIGHT] <= 0.0:
            node_reals[node, VALUE] = value_of_parent
        elif parameters.n_classes > 0:
            best = 0
            for k in range(1, parameters.n_classes):
                if node_stats[node, k] > node_stats[node, best]:
                    best = k
            node_reals[node, VALUE] = best
        else:
            node_reals[node, VALUE] = node_stats[node, 1]


@inner
def set_medians(
    medians, master, master_weight, start, stop, branch_of_row, n_branches, branch_weight, known_weight, branch_count,
    spare, spare_weight, node_reals, first_child,
):  # fmt: skip
    """Write the weighted median of each child that has rows. spare, spare_weight: scratch for the rows of one."""
    for branch in range(n_branches):
        if branch_count[branch] > 0:
            count = copy_branch(
                master, master_weight, start, stop, branch_of_row, branch, branch_weight[branch] / known_weight, spare,
                spare_weight,
            )  # fmt: skip
            set_median(medians, spare, spare_weight, 0, count, node_reals, first_child + branch)


@inner
def set_median(medians, sequence, weights, start, stop, node_reals, node):
    """Write a node's weighted median; if exactly half of the weight lies below, the middle of both neighbours."""
    whole = 0.0
    for at in range(start, stop):
        rank = medians.target_rank[sequence[at]] + 1
        whole += weights[at]
        while rank < medians.weight_tree.size:
            medians.weight_tree[rank] += weights[at]
            rank += rank & -rank
    half = 0.5 * whole
    slack = 1e-12 * whole
    first = _rank_reaching(medians.weight_tree, half - slack)
    second = _rank_reaching(medians.weight_tree, half + slack)
    for at in range(start, stop):
        rank = medians.target_rank[sequence[at]] + 1
        while rank < medians.weight_tree.size:
            medians.weight_tree[rank] = 0.0
            rank += rank & -rank
    last = medians.target_value.size - 1
    low, high = medians.target_value[min(first, last)], medians.target_value[min(second, last)]
    node_reals[node, VALUE] = low if low == high else (low + high) / 2.0


@inner
def _rank_reaching(weight_tree, bound):
    """Return the first rank at which the cumulated weight is at least `bound`."""
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


@inner
def middle_of(below, above):
    """Return the number halfway between two neighbours; the lower one where rounding would give the upper."""
    middle = (below + above) / 2.0
    if not (below <= middle < above):
        middle = below / 2.0 + above / 2.0
    return middle if below <= middle < above else below


@compiled
def are_futile(first_child, n_children, stats):
    """Return whether the subtree of each inner node makes no fewer training errors than a leaf would (Quinlan, 1993).

    first_child, n_children: int32 (n), children behind their parents. stats: float64 (n, classes). Errors of a subtree
    are those of its leaves as grown. Returns bool (n).
    """
    n_nodes = n_children.size
    futile = np.zeros(n_nodes, np.bool_)
    below = np.zeros(n_nodes, np.float64)
    for node in range(n_nodes - 1, -1, -1):
        whole, largest = 0.0, 0.0
        for k in range(stats.shape[1]):
            whole += stats[node, k]
            largest = max(largest, stats[node, k])
        own = whole - largest
        if n_children[node] == 0:
            below[node] = own
        for branch in range(n_children[node] - 1, -1, -1):
            below[node] += below[first_child[node] + branch]
        futile[node] = n_children[node] > 0 and below[node] >= own - COLLAPSE_SLACK
    return futile


@compiled
def preorder(first_child, n_children):
    """Return (nodes that are reached from the root, in preorder; the size of each one's subtree), both int32.

    first_child, n_children: int32 (n), children behind their parents.
    """
    n_nodes = n_children.size
    sizes = np.empty(n_nodes, np.int32)
    for node in range(n_nodes - 1, -1, -1):
        sizes[node] = 1
        for branch in range(n_children[node]):
            sizes[node] += sizes[first_child[node] + branch]
    order, size = np.empty(sizes[0], np.int32), np.empty(sizes[0], np.int32)
    places = np.full(n_nodes, -1, np.int32)
    places[0] = 0
    for node in range(n_nodes):
        place = places[node]
        if place < 0:
            continue  # below a subtree that was collapsed
        order[place], size[place] = node, sizes[node]
        place += 1
        for child in range(first_child[node], first_child[node] + n_children[node]):
            places[child] = place
            place += sizes[child]
    return order, size


@compiled
def copy_slices(source, first, start, target):
    """Copy ``source[first[i]:…]`` to ``target[start[i]:start[i + 1]]`` for each i; all int32."""
    for i in range(first.size):
        offset = first[i] - start[i]
        for at in range(start[i], start[i + 1]):
            target[at] = source[at + offset]


@compiled
def write_thresholds(below, above, nodes, threshold):
    """Write the thresholds of the nodes that test one attribute, halfway between the neighbouring values.

    below, above: float64, one a node. nodes: int64. threshold: float64, of the tree.
    """
    for at in range(nodes.size):
        threshold[nodes[at]] = middle_of(below[at], above[at])
