"""Steps of growing a tree level by level: each step works on one node, and on at most one column.

The functions of `general_tree` and `choose_split` do the work, on a `Growth` whose columns are a single attribute. The
rows of the node are ``0:n_rows`` of the master sequence and of the only order.
"""

import cython
from cython.cimports.espalier.growing.kernels.constants import DONE, INT_TEST, MULTIWAY, TOO_MANY_NODES
from cython.cimports.espalier.growing.kernels.general_tree import add_children, assign_rows
from cython.cimports.espalier.growing.kernels.node_statistics import start_root
from cython.cimports.espalier.growing.kernels.partition import partition_order, partition_rows
from cython.cimports.espalier.growing.kernels.splits.choose_split import (
    best_candidate,
    find_candidates,
    must_stop,
    set_context,
)
from cython.cimports.espalier.model.node_tests import NOMINAL


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


def choose(work, candidates):
    """Return the attribute of a node's best candidate, -1 for a leaf. ``work.context`` must be set for the node."""
    return best_candidate(work, candidates)


def split_node(growth, node, n_rows, max_nodes, max_codes):
    """Split the node of the last `set_node` by the chosen candidate. Return the number of branches, 0 for a leaf.

    Also return 0 if a limit is exceeded (``growth.status``). Children follow the last node; ``nodes.n`` does not
    count them. ``branches.of_row`` gets each row's branch, ``branches.n_rows`` each child's row count, -1 for a leaf.
    """
    branch: cython.int
    with cython.nogil:
        growth.branches.n = 2
        if growth.candidates.chosen_ints[INT_TEST] == NOMINAL and growth.work.parameters.nominal == MULTIWAY:
            growth.branches.n = growth.work.columns.n_codes[0]
        first: cython.int = growth.nodes.n
        if first + growth.branches.n > max_nodes:
            growth.status = TOO_MANY_NODES
            growth.branches.n = 0
        else:
            growth.nodes.reserve(first + growth.branches.n)
            if not assign_rows(growth, 0, 0, n_rows):
                growth.branches.n = 0
        if growth.branches.n > 0:
            add_children(growth, node, 0, 0, n_rows, max_codes)
            if growth.status != DONE:
                growth.branches.n = 0
        for branch in range(growth.branches.n):
            if growth.branches.n_rows[branch] == 0 or must_stop(growth.work, growth.nodes, first + branch):
                growth.branches.n_rows[branch] = -1
    return growth.branches.n


def reserve(nodes, n_nodes, n_codes):
    """Make room for `n_nodes` nodes and `n_codes` entries of code tables in all."""
    nodes.reserve(n_nodes)
    nodes.reserve_codes(n_codes)


def partition_node(rows, branches, n_rows, n_needed):
    """Move a node's rows in the master sequence to the children that may be split, which have `n_needed` rows."""
    with cython.nogil:
        partition_rows(rows, branches, 0, n_rows, 0, n_needed)


def partition_column(rows, branches, n_rows, n_needed):
    """Partition the order of the column like `partition_node` partitions the master sequence."""
    with cython.nogil:
        partition_order(rows, branches, 0, 0, n_rows, 0, n_needed)
