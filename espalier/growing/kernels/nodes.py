"""The tables of nodes that are being grown: their columns, a new node, and doubling what runs full."""

import math

import numpy as np

from espalier.growing.kernels import constants as c
from espalier.kernels.jit import inner, maker

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
def more_ints(old, count, more):
    """Give a longer int32 array with the first `count` entries of the old one."""
    new = np.empty(more, np.int32)
    _copy(old, new, count)
    return new


@maker
def more_longs(old, count, more):
    """Give a longer int64 array with the first `count` entries of the old one."""
    new = np.empty(more, np.int64)
    _copy(old, new, count)
    return new


@maker
def more_reals(old, count, more):
    """Give a longer float64 array with the first `count` entries of the old one."""
    new = np.empty(more, np.float64)
    _copy(old, new, count)
    return new


@maker
def more_int_rows(old, count, more):
    """Give an int32 table of more rows with the first `count` rows of the old one."""
    new = np.empty((more, old.shape[1]), np.int32)
    _copy_rows(old, new, count)
    return new


@maker
def more_long_rows(old, count, more):
    """Give an int64 table of more rows with the first `count` rows of the old one."""
    new = np.empty((more, old.shape[1]), np.int64)
    _copy_rows(old, new, count)
    return new


@maker
def more_real_rows(old, count, more):
    """Give a float64 table of more rows with the first `count` rows of the old one."""
    new = np.empty((more, old.shape[1]), np.float64)
    _copy_rows(old, new, count)
    return new


@maker
def more_int_columns(old, count, more):
    """Give an int32 table of more columns with the first `count` columns of the old one."""
    new = np.empty((old.shape[0], more), np.int32)
    for order in range(old.shape[0]):
        _copy(old[order], new[order], count)
    return new


@inner
def _copy(old, new, count):
    for at in range(count):
        new[at] = old[at]


@inner
def _copy_rows(old, new, count):
    for at in range(count):
        for k in range(old.shape[1]):
            new[at, k] = old[at, k]
