"""Rows parted at every test of a tree, from the root on, until they stand leaf by leaf.

Each thread parts a stretch of the rows. Those of a node stand side by side, in their order, and are parted in place::

    rows    | 0 1 2 3 4 5 6 7 … |       first[0] = 0, count[0] = all
            | 1 4 5 | 0 2 3 6 7 |       node 1 from 0 on: 3 rows, its neighbour from 3 on: 5 rows
            | 4 | 1 5 | 0 2 …           and so on, in preorder: what is small is parted while it is near

A row that goes several ways leaves the list at the test where it does.
"""

import numpy as np

from espalier.kernels.branches import branch_of, most_branches, other_branch, test_at
from espalier.kernels.buffers import copy, fill
from espalier.kernels.codes import NUMERIC
from espalier.kernels.jit import compiled, inner

__all__ = ["COLUMNS_AT_ONCE", "lay_columns", "part_rows"]

COLUMNS_AT_ONCE = 4


@compiled
def lay_columns(columns, places, is_coded, low, high, values, has_holes):  # type: ignore[no-untyped-def]
    """Lay cells of the rows ``low:high`` side by side, row by row; several threads may, each its own rows.

    columns: COLUMNS_AT_ONCE arrays (n): numbers, or codes of categories, below 0 missing. places: int64, the attribute
    of each. values: float64 or float32 (n, F), written, NaN missing. has_holes: bool (F), set where a cell is missing.

    Returns whether `values` holds all of them as they are.
    """
    first_column, next_column, third_column, last_column = columns
    first_place, next_place = np.uint64(places[0]), np.uint64(places[1])
    third_place, last_place = np.uint64(places[2]), np.uint64(places[3])
    least, differs = 0.0 if is_coded else -np.inf, (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    # All of a row at once: a loop a column would come back to each line of the cache.
    for row in range(np.uint64(low), np.uint64(high)):
        differs = (
            differs[0] | lay_cell(first_column[row], least, values, row, first_place),
            differs[1] | lay_cell(next_column[row], least, values, row, next_place),
            differs[2] | lay_cell(third_column[row], least, values, row, third_place),
            differs[3] | lay_cell(last_column[row], least, values, row, last_place),
        )
    holds_all = True
    for each in range(COLUMNS_AT_ONCE):
        if differs[each] == 1:
            n_missing, n_others = look_again(columns[each], least, low, high, values.dtype.type)
            if n_missing > 0:
                has_holes[places[each]] = True
            holds_all = holds_all and n_others == 0
    return holds_all


@inner
def lay_cell(cell, least, values, row, place):  # type: ignore[no-untyped-def]
    """Lay a cell, NaN where it is below `least`; give 1 where it is missing, or `values` does not hold it, else 0."""
    value = np.float64(cell)
    value = value if value >= least else np.nan
    laid = values.dtype.type(value)
    values[row, place] = laid
    return np.int64(laid != value)


@inner
def look_again(column, least, low, high, kind):  # type: ignore[no-untyped-def]
    """Count the cells of a column that are missing, and those that a number of `kind` does not hold as they are."""
    n_missing, n_differ = np.int64(0), np.int64(0)
    for row in range(np.uint64(low), np.uint64(high)):
        value = np.float64(column[row])
        value = value if value >= least else np.nan
        n_missing += np.int64(value != value)  # noqa: PLR0124 - NaN
        n_differ += np.int64(kind(value) != value)
    return n_missing, n_differ - n_missing


@compiled
def part_rows(  # type: ignore[no-untyped-def]
    nodes, substitutes, shape, size, values, has_holes, rows, low, high, first, count, goes_apart
):  # fmt: skip
    """Part ``rows[low:high]`` at the tests of a tree as it was grown; several threads may, each its own rows.

    size: int32 (n_nodes), of each subtree. values, has_holes: as in `lay_columns`. rows: int32, written: leaf by leaf.
    first, count: int32 (n_nodes), written: where the rows of each node stand. goes_apart: bool (n), set for those that
    go several ways.
    """
    spare, side = np.empty(high - low, np.int32), np.empty(high - low, np.int32)
    at, flat, across = np.empty(most_branches(nodes), np.int64), values.reshape(-1), values.T
    first[0], count[0], node = low, high - low, np.int64(0)
    while node < len(shape):
        if count[node] == 0:
            fill_nodes(count, node, np.int64(size[node]))
            node += np.int64(size[node])
            continue
        if shape[node] >= 0 and nodes.test[node] == NUMERIC and not has_holes[nodes.feature[node]]:
            part_in_two(nodes, node, flat, values.shape[1], rows, first, count, spare)
        elif shape[node] >= 0:
            part_in_many(nodes, substitutes, node, across, rows, first, count, goes_apart, spare, side, at)
        node += 1


@inner
def fill_nodes(count, node, size):  # type: ignore[no-untyped-def]
    """Say of a subtree that no row reaches it."""
    for each in range(node, node + size):
        count[each] = 0


@inner
def part_in_two(nodes, node, flat, width, rows, first, count, spare):  # type: ignore[no-untyped-def]
    """Part the rows of a node by a cut whose value all of them know; flat: their values, so many a row."""
    begin, end = np.uint64(first[node]), np.uint64(first[node] + count[node])
    cut, step, feature = nodes.threshold[node], np.uint64(width), np.uint64(nodes.feature[node])
    ahead, n_above = begin, np.uint64(0)
    # Reckoned in place of asked: which side a row takes cannot be foreseen, and a wrong guess is dear.
    for place in range(begin, end):
        row = rows[place]
        is_below = np.uint64(flat[np.uint64(row) * step + feature] <= cut)
        rows[ahead], spare[n_above] = row, row
        ahead += is_below
        n_above += np.uint64(1) - is_below
    copy(spare, 0, rows, np.int64(ahead), np.int64(n_above))
    base = nodes.child_start[node]
    below, above = nodes.child[base], nodes.child[base + 1]
    first[below], count[below] = begin, ahead - begin
    first[above], count[above] = ahead, n_above


@inner
def part_in_many(  # type: ignore[no-untyped-def]
    nodes, substitutes, node, across, rows, first, count, goes_apart, spare, side, at
):  # fmt: skip
    """Part the rows of a node by any test; across: float64 (F, n). side, at: scratch, by row and by branch."""
    base, begin, n_rows = np.int64(nodes.child_start[node]), np.int64(first[node]), np.int64(count[node])
    n_branches = np.int64(nodes.child_start[node + 1]) - base
    test, own_values = test_at(nodes, node), across[nodes.feature[node]]
    fill(at, n_branches, 0)
    for each in range(n_rows):
        row = rows[begin + each]
        branch = branch_of(own_values[row], test, nodes.code_branch)
        if branch < 0:
            branch = other_branch(nodes, substitutes, node, across, row)
        side[each] = branch
        if branch >= 0:
            at[branch] += 1
        else:
            goes_apart[row] = True
    n_parted = np.int64(0)
    for branch in range(n_branches):
        child, n_own = nodes.child[base + branch], at[branch]
        first[child], count[child], at[branch] = begin + n_parted, n_own, n_parted
        n_parted += n_own
    for each in range(n_rows):
        branch = side[each]
        if branch >= 0:
            spare[at[branch]] = rows[begin + each]
            at[branch] += 1
    copy(spare, 0, rows, begin, n_parted)
