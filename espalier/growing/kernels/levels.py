"""Steps of growing a tree level by level: each step works on one node, and on at most one column.

The functions of `general_tree` and `choose_split` do the work, on a `Growth` that has one column at a time. The node's
rows are the entries ``0:n_rows`` of the master sequence and of the column's order.
"""

import cython
from cython.cimports.espalier.growing.kernels.general_tree import split_rows
from cython.cimports.espalier.growing.kernels.node_statistics import start_root
from cython.cimports.espalier.growing.kernels.partition import partition_order, partition_rows
from cython.cimports.espalier.growing.kernels.splits.choose_split import find_candidates, must_stop, set_context


def begin_root(growth):
    """Write the root node, and write all rows into the master sequence. Return whether the root may be split."""
    with cython.nogil:
        start_root(growth.work, growth.nodes, growth.rows, 0)
        stops: cython.bint = must_stop(growth.work, growth.nodes, 0)
    return not stops


def set_node(growth, node, n_rows):
    """Write a node's statistics, its impurity and the weights of its rows into the workspace."""
    with cython.nogil:
        set_context(growth.work, growth.nodes, growth.rows, node, 0, n_rows)


def scan_column(growth, node):
    """Write the candidate of the column at the node that `set_node` has set."""
    with cython.nogil:
        find_candidates(growth.work, growth.nodes, growth.rows, growth.candidates, node, growth.progress)


def split_node(growth, node, n_rows, max_nodes, max_codes):
    """Split the node of the last `set_node` by the chosen candidate; see `general_tree.split_rows`.

    Return the number of branches, or 0 if the node is a leaf or a limit is exceeded. Afterwards ``branches.of_row`` has
    the branch of each row, and ``branches.n_rows`` the number of rows of each child, or -1 if the child is a leaf.
    """
    branch: cython.int
    with cython.nogil:
        if not split_rows(growth, node, 0, 0, n_rows, max_nodes, max_codes):
            growth.branches.n = 0
        for branch in range(growth.branches.n):
            if growth.branches.n_rows[branch] == 0 or must_stop(growth.work, growth.nodes, growth.nodes.n + branch):
                growth.branches.n_rows[branch] = -1
    return growth.branches.n


def reserve(nodes, n_nodes, n_codes):
    """Make room for `n_nodes` nodes and `n_codes` entries of code tables in all."""
    nodes.reserve(n_nodes)
    nodes.reserve_codes(n_codes)


def partition_node(rows, branches, n_rows, n_needed):
    """Partition a node's rows in the master sequence among its children that may be split: `n_needed` rows in all."""
    with cython.nogil:
        partition_rows(rows, branches, 0, n_rows, 0, n_needed)


def partition_column(rows, branches, n_rows, n_needed):
    """Partition the order of the column like `partition_node` partitions the master sequence."""
    with cython.nogil:
        partition_order(rows, branches, 0, 0, n_rows, 0, n_needed)
