"""Linear models of a grown tree: find the columns that it tests, sort the rows by leaf, and fit by a kernel.

The columns of a node's model are the ordered attributes that are tested at it or below it, and the binary columns of
the nominal tests there. The order of the categories is the same in the whole tree. So the groups of categories that the
tests of one attribute send to branch 1 are nested, and a category's rank is the number of groups that contain it::

    branch 1 of some tests     {c, a, d}  ⊃  {a, d}  ⊃  {d}          ranks: b 0, c 1, a 2, d 3
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.arrays import Floats, Ints, Longs, Places
from espalier.data.dataset import Dataset
from espalier.data.schema import Feature
from espalier.errors import Cancelled
from espalier.growing.kernels import constants, linear_fit
from espalier.model.linear import LinearModels
from espalier.model.node_tests import LEAF, NOMINAL
from espalier.model.tree import Tree
from espalier.progress import Progress

MAX_COLUMNS: Final = 256
"""Maximum number of columns of one node's model; if more are tested, those tested at the heaviest nodes are taken."""


@dataclass(frozen=True, slots=True)
class TestedColumns:
    """The regressors of a tree's linear models, here *columns*: ascending by attribute, then by cut.

    A numeric, datetime or ordinal attribute that is tested is one column, its value. A nominal one has a column of 0
    and 1 for each different split. See `LinearModels` for cut and rank.

    Attributes:
        tested: int32 (nodes); index of the column that each node tests, -1 at a leaf.
        feature, cut: int32 (columns).
        rank_start: int32 (attributes + 1), rank: int32; ranks of each attribute's categories.
    """

    tested: Ints
    feature: Ints
    cut: Ints
    rank_start: Ints
    rank: Ints


def fit_linear_models(
    tree: Tree, dataset: Dataset, imputed: tuple[float, ...], *, progress: Progress | None = None
) -> LinearModels:
    """Fit a linear model at every node of a regression tree on the rows that the tree was grown from.

    The tree must have two branches per test and split nominal attributes by ``ordered_binaries``. Missing values are
    replaced by `imputed`, one value per attribute; rows of weight 0 are ignored.

    The fit is weighted least squares with a ridge of 1e-8 on standardised columns. A standardised coefficient above 1.5
    standard deviations of the target shows that columns are collinear; while there is one, the column with the largest
    coefficient is left out, as in Weka. Then the column with the smallest coefficient is dropped while this improves
    the model by the criterion of M5 (Wang and Witten 1997; Quinlan 1992): see `linear_fit.fit_and_drop`.

    Raises:
        Cancelled: `progress` was stopped.
    """
    progress = progress if progress is not None else Progress()
    progress.begin("fitting")
    weighted = np.flatnonzero(dataset.weight > 0)
    values = _filled_values(dataset, imputed, weighted)
    order, first_row = _order_rows(tree, values)
    columns = _tested_columns(tree, dataset.schema.attributes)
    values = _with_ranks(values[:, order], columns, dataset.schema.attributes)
    target = np.asarray(dataset.target, dtype=np.float64)[weighted][order]
    weight, stats = dataset.weight[weighted][order], np.ascontiguousarray(tree.stats)
    fit = linear_fit.LinearFit(columns.feature, columns.cut, values, target, weight, stats, MAX_COLUMNS)
    status, start, term, coefficient, intercept, squares = linear_fit.fit_nodes(
        fit, tree.size, first_row, columns.tested, progress.state
    )
    if status == constants.STOPPED:
        raise Cancelled("stopped on request")
    return LinearModels(
        start=start.astype(np.int32),
        feature=columns.feature[term],
        cut=columns.cut[term],
        coefficient=coefficient,
        intercept=intercept,
        squares=squares,
        rank_start=columns.rank_start,
        rank=columns.rank,
    )


def _order_rows(tree: Tree, values: Floats) -> tuple[Places, Longs]:
    """Order complete rows leaf by leaf, ascending within a leaf. Return (order (rows), first_row (n + 1)).

    The rows of the subtree of node i, of size s, are ``order[first_row[i] : first_row[i + s]]``.
    """
    arriving = {0: np.arange(values.shape[1])}
    order: list[Places] = []
    first_row = np.zeros(tree.n_nodes + 1, np.int64)
    for node in range(tree.n_nodes):
        rows = arriving.pop(node)
        first_row[node + 1] = first_row[node]
        if tree.test[node] == LEAF:
            order.append(rows)
            first_row[node + 1] += len(rows)
            continue
        value = values[tree.feature[node], rows]
        is_nominal = tree.test[node] == NOMINAL
        branch = tree.codes(node)[value.astype(np.intp)] if is_nominal else ~(value <= tree.threshold[node])
        for number, child in enumerate(tree.children(node)):
            arriving[child] = rows[branch == number]
    return np.concatenate(order), first_row


def _filled_values(dataset: Dataset, imputed: tuple[float, ...], rows: Places) -> Floats:
    values = np.empty((len(dataset.schema.attributes), len(rows)))
    for place, column in enumerate(dataset.attributes):
        cells = np.asarray(column)[rows].astype(np.float64)
        absent = cells < 0 if column.dtype == np.int32 else np.isnan(cells)
        values[place] = np.where(absent, imputed[place], cells)
    return values


def _tested_columns(tree: Tree, attributes: tuple[Feature, ...]) -> TestedColumns:
    tested = np.full(tree.n_nodes, -1, dtype=np.int32)
    columns: list[tuple[int, int]] = []
    ranks: list[Ints] = []
    for place, attribute in enumerate(attributes):
        nodes = np.flatnonzero((tree.feature == place) & (tree.test != LEAF))
        groups = _groups(tree, nodes) if attribute.unordered else [nodes] if len(nodes) else []
        for number, members in enumerate(groups):
            tested[members] = len(columns)
            columns.append((place, number + 1 if attribute.unordered else 0))
        ranks.append(_ranks(tree, groups, len(attribute.categories) if attribute.unordered else 0))
    table = np.array(columns, dtype=np.int32).reshape(len(columns), 2)
    return TestedColumns(
        tested=tested,
        feature=table[:, 0].copy(),
        cut=table[:, 1].copy(),
        rank_start=np.concatenate(([0], np.cumsum([len(rank) for rank in ranks]))).astype(np.int32),
        rank=np.concatenate([np.zeros(0, dtype=np.int32), *ranks]),
    )


def _groups(tree: Tree, nodes: Places) -> list[Places]:
    """Return the nodes that test each binary column of a nominal attribute; most categories in branch 1 come first."""
    n_upper = np.array([int(tree.codes(node).sum()) for node in nodes.tolist()], dtype=np.int64)
    return [nodes[n_upper == size] for size in np.unique(n_upper)[::-1]]


def _ranks(tree: Tree, groups: list[Places], n_categories: int) -> Ints:
    """Return the number of groups that contain each category, int32 (n_categories)."""
    rank = np.zeros(n_categories, dtype=np.int32)
    if n_categories:
        for members in groups:
            rank += tree.codes(int(members[0])) == 1
    return rank


def _with_ranks(values: Floats, columns: TestedColumns, attributes: tuple[Feature, ...]) -> Floats:
    for place, attribute in enumerate(attributes):
        rank = columns.rank[columns.rank_start[place] : columns.rank_start[place + 1]]
        if attribute.unordered and len(rank):
            codes = values[place]
            values[place] = np.where(np.isnan(codes), 0, rank[np.nan_to_num(codes).astype(np.int64)])
    return np.ascontiguousarray(values)
