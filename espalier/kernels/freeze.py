"""Nodes in the order of their making -> preorder arrays, subtrees that do not pay collapsed on the way."""

import numpy as np

from espalier.kernels import codes as c
from espalier.kernels.jit import compiled
from espalier.kernels.nodes import (
    CODE_START,
    FALLBACK,
    FEATURE,
    FIRST_CHILD,
    FIRST_SURROGATE,
    GAIN,
    N_CHILDREN,
    N_SURROGATES,
    PARENT,
    SHARE,
    TEST,
    THRESHOLD,
    VALUE,
    WEIGHT,
)
from espalier.kernels.surrogates import N_S_INTS, S_AGREEMENT, S_ATTRIBUTE, S_BELOW, S_TEST, S_THRESHOLD

COLLAPSE_SLACK = 1e-3


@compiled
def are_futile(parent, n_children, stats):
    """Say of each inner node whether its subtree makes no fewer training errors than a leaf would (Quinlan, 1993).

    parent, n_children: int32 (n), children behind their parents. stats: float64 (n, classes). Errors of a subtree are
    those of its leaves as grown. Returns bool (n).
    """
    n_nodes = parent.size
    own = np.zeros(n_nodes, np.float64)
    below = np.zeros(n_nodes, np.float64)
    for node in range(n_nodes - 1, -1, -1):
        whole, largest = 0.0, 0.0
        for k in range(stats.shape[1]):
            whole += stats[node, k]
            largest = max(largest, stats[node, k])
        own[node] = whole - largest
        if n_children[node] == 0:
            below[node] = own[node]
        if node > 0:
            below[parent[node]] += below[node]
    futile = np.zeros(n_nodes, np.bool_)
    for node in range(n_nodes):
        futile[node] = n_children[node] > 0 and below[node] >= own[node] - COLLAPSE_SLACK
    return futile


def collapse_nodes(n_nodes, node_ints, node_stats):
    """Make a leaf of each futile subtree; nodes are written, those below stay but are unreachable."""
    ints = node_ints[:n_nodes]
    futile = are_futile(ints[:, PARENT].copy(), ints[:, N_CHILDREN].copy(), node_stats[:n_nodes])
    ints[futile, N_CHILDREN] = 0
    ints[futile, TEST] = c.LEAF
    ints[futile, FEATURE] = -1
    ints[futile, FALLBACK] = -1
    ints[futile, N_SURROGATES] = 0


@compiled
def order_nodes(n_nodes, node_ints, n_categories):
    """Give (preorder list of the reachable nodes, length of their code table, number of their surrogates).

    n_categories: int32 (F), length of each attribute's code table.
    """
    listed = np.empty(n_nodes, np.int32)
    stack = np.empty(n_nodes, np.int32)
    n_listed, n_codes, n_surrogates = 0, 0, 0
    stack[0] = 0
    n_stack = 1
    while n_stack > 0:
        n_stack -= 1
        node = stack[n_stack]
        listed[n_listed] = node
        n_listed += 1
        if node_ints[node, TEST] == c.NOMINAL:
            n_codes += n_categories[node_ints[node, FEATURE]]
        n_surrogates += node_ints[node, N_SURROGATES]
        first = node_ints[node, FIRST_CHILD]
        for branch in range(node_ints[node, N_CHILDREN] - 1, -1, -1):
            stack[n_stack] = first + branch
            n_stack += 1
    return listed[:n_listed], n_codes, n_surrogates


@compiled
def write_nodes(
    listed, node_ints, node_reals, code_table, n_categories,
    parent, size, child_start, child, feature, test, threshold, code_start, code_branch, fallback, branch_weight,
    weight, gain, value,
):  # fmt: skip
    """Write the arrays of a tree (espalier.tree.Tree says what each holds) for the nodes in preorder."""
    n_nodes = listed.size
    place = np.empty(node_ints.shape[0], np.int32)
    for i in range(n_nodes):
        place[listed[i]] = i
    n_children = 0
    n_codes = 0
    for i in range(n_nodes):
        node = listed[i]
        parent[i] = place[node_ints[node, PARENT]] if i > 0 else -1
        size[i] = 1
        feature[i] = node_ints[node, FEATURE]
        test[i] = node_ints[node, TEST]
        threshold[i] = node_reals[node, THRESHOLD] if test[i] == c.NUMERIC else np.nan
        fallback[i] = node_ints[node, FALLBACK]
        weight[i] = node_reals[node, WEIGHT]
        gain[i] = node_reals[node, GAIN] if test[i] != c.LEAF else np.nan
        value[i] = node_reals[node, VALUE]
        child_start[i] = n_children
        code_start[i] = n_codes
        first = node_ints[node, FIRST_CHILD]
        for branch in range(node_ints[node, N_CHILDREN]):
            child[n_children] = place[first + branch]
            branch_weight[n_children] = node_reals[first + branch, SHARE]
            n_children += 1
        if test[i] == c.NOMINAL:
            start = node_ints[node, CODE_START]
            for code in range(n_categories[feature[i]]):
                code_branch[n_codes] = code_table[start + code]
                n_codes += 1
    child_start[n_nodes] = n_children
    code_start[n_nodes] = n_codes
    for i in range(n_nodes - 1, 0, -1):
        size[parent[i]] += size[i]


@compiled
def write_surrogates(
    listed, node_ints, surrogate_ints, surrogate_reals, surrogate_codes, n_categories,
    start, feature, test, threshold, below, code_start, agreement,
):  # fmt: skip
    """Write the arrays of espalier.tree.Surrogates; returns the side of each category, in their order."""
    count, n_codes = 0, 0
    for i in range(listed.size):
        node = listed[i]
        start[i] = count
        first = node_ints[node, FIRST_SURROGATE]
        for j in range(first, first + node_ints[node, N_SURROGATES]):
            feature[count] = surrogate_ints[j, S_ATTRIBUTE]
            test[count] = surrogate_ints[j, S_TEST]
            nominal = test[count] == c.NOMINAL
            threshold[count] = np.nan if nominal else surrogate_reals[j, S_THRESHOLD]
            below[count] = 0 if nominal else surrogate_ints[j, S_BELOW]
            agreement[count] = surrogate_reals[j, S_AGREEMENT]
            code_start[count] = n_codes
            n_codes += n_categories[feature[count]] if nominal else 0
            count += 1
    start[listed.size] = count
    code_start[count] = n_codes
    code_branch = np.empty(n_codes, np.int32)
    at = 0
    for i in range(listed.size):
        node = listed[i]
        first = node_ints[node, FIRST_SURROGATE]
        for j in range(first, first + node_ints[node, N_SURROGATES]):
            if surrogate_ints[j, S_TEST] == c.NOMINAL:
                from_code = surrogate_ints[j, N_S_INTS]
                for code in range(n_categories[surrogate_ints[j, S_ATTRIBUTE]]):
                    code_branch[at] = surrogate_codes[from_code + code]
                    at += 1
    return code_branch
