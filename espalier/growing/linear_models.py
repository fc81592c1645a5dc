"""Linear models of a grown tree: find the regressors, order the rows by leaf, and fit by a kernel.

The regressors of a node's model come from the tests at the node and below it. A tested ordered attribute is one
regressor. A tested nominal attribute has one 0/1 regressor for each different split. All tests of a nominal attribute
divide the same sequence of its categories. So the groups of categories that go to branch 1 are nested, and the rank of
a category is the number of groups that contain the category::

    branch 1 of some tests     {c, a, d}  ⊃  {a, d}  ⊃  {d}          ranks: b 0, c 1, a 2, d 3
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.arrays import Floats, Ints, Longs, Places
from espalier.data.dataset import Dataset
from espalier.data.schema import Feature
from espalier.growing.kernels import linear_fit
from espalier.growing.training_data import with_imputed
from espalier.model.linear import LinearModels
from espalier.model.node_tests import LEAF, NOMINAL
from espalier.model.tree import Tree
from espalier.progress import Progress

MAX_REGRESSORS: Final = 256
"""Maximum number of regressors of one node's model; if there are more, those tested at the heaviest nodes are used."""


@dataclass(frozen=True, slots=True)
class Regressors:
    """The regressors of a tree's linear models, ascending by attribute, then by cut.

    The value of a tested numeric, datetime or ordinal attribute is one regressor. A tested nominal or boolean
    attribute has one regressor of values 0 and 1 for each different split.

    Attributes:
        tested: int32 (nodes); index of the regressor that each node tests, -1 at a leaf.
        feature: int32 (regressors); the attribute of each regressor.
        cut: int32 (regressors); 0 for the value of an attribute, else the least rank for which the regressor is 1.
        rank_start: int32 (attributes + 1), rank: int32; the ranks of categories, as in `LinearModels`.
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

    The fit is weighted least squares with a ridge of 1e-8 on standardised regressors. A standardised coefficient above
    1.5 standard deviations of the target shows that regressors are collinear. While a coefficient exceeds this limit,
    the regressor with the largest coefficient is left out, as in Weka. Then the regressor with the smallest
    coefficient is dropped, as long as this improves the model by the criterion of M5 (Wang and Witten 1997; Quinlan
    1992): see `linear_fit.fit_and_drop`.

    Raises:
        Cancelled: `progress` was stopped.
    """
    progress = progress if progress is not None else Progress()
    progress.begin("fitting")
    weighted = np.flatnonzero(dataset.weight > 0)
    columns = with_imputed(dataset.schema.attributes, dataset.attributes, imputed)
    values = np.array([np.asarray(column)[weighted] for column in columns], np.float64).reshape(-1, len(weighted))
    order, first_row = _order_rows(tree, values)
    regressors = _regressors(tree, dataset.schema.attributes)
    values = _with_ranks(values[:, order], regressors, dataset.schema.attributes)
    target = np.asarray(dataset.target, dtype=np.float64)[weighted][order]
    weight, stats = dataset.weight[weighted][order], np.ascontiguousarray(tree.stats)
    fit = linear_fit.LinearFit(regressors.feature, regressors.cut, values, target, weight, stats, MAX_REGRESSORS)
    start, term, coefficient, intercept, squares = linear_fit.fit_nodes(
        fit, tree.size, first_row, regressors.tested, progress.state
    )
    progress.check()
    return LinearModels(
        start=start.astype(np.int32),
        feature=regressors.feature[term],
        cut=regressors.cut[term],
        coefficient=coefficient,
        intercept=intercept,
        squares=squares,
        rank_start=regressors.rank_start,
        rank=regressors.rank,
    )


def _order_rows(tree: Tree, values: Floats) -> tuple[Places, Longs]:
    """Order rows leaf by leaf, ascending in each leaf. Return order, intp (rows), and first_row, int64 (nodes + 1).

    The rows of a subtree of s nodes with root i are ``order[first_row[i] : first_row[i + s]]``.

    values: float64 (attributes, rows), category codes or numbers; no value of a tested attribute is missing.
    """
    arriving = {0: np.arange(values.shape[1])}
    order: list[Places] = []
    n_rows = np.zeros(tree.n_nodes + 1, np.int64)
    for node in range(tree.n_nodes):
        rows = arriving.pop(node)
        if tree.test[node] == LEAF:
            order.append(rows)
            n_rows[node + 1] = len(rows)
            continue
        value = values[tree.feature[node], rows]
        is_nominal = tree.test[node] == NOMINAL
        branch = tree.codes(node)[value.astype(np.intp)] if is_nominal else ~(value <= tree.threshold[node])
        for number, child in enumerate(tree.children(node)):
            arriving[child] = rows[branch == number]
    return np.concatenate(order), np.cumsum(n_rows)


def _regressors(tree: Tree, attributes: tuple[Feature, ...]) -> Regressors:
    tested = np.full(tree.n_nodes, -1, dtype=np.int32)
    regressors: list[tuple[int, int]] = []
    ranks: list[Ints] = []
    for place, attribute in enumerate(attributes):
        nodes = np.flatnonzero((tree.feature == place) & (tree.test != LEAF))
        groups = _groups(tree, nodes) if attribute.unordered else [nodes] if len(nodes) else []
        for number, members in enumerate(groups):
            tested[members] = len(regressors)
            regressors.append((place, number + 1 if attribute.unordered else 0))
        ranks.append(_ranks(tree, groups, len(attribute.categories) if attribute.unordered else 0))
    table = np.array(regressors, dtype=np.int32).reshape(len(regressors), 2)
    return Regressors(
        tested=tested,
        feature=table[:, 0].copy(),
        cut=table[:, 1].copy(),
        rank_start=np.concatenate(([0], np.cumsum([len(rank) for rank in ranks]))).astype(np.int32),
        rank=np.concatenate([np.zeros(0, dtype=np.int32), *ranks]),
    )


def _groups(tree: Tree, nodes: Places) -> list[Places]:
    """Group the tests of a nominal attribute by split. The groups descend by the number of categories in branch 1."""
    n_upper = np.array([int(tree.codes(node).sum()) for node in nodes.tolist()], dtype=np.int64)
    return [nodes[n_upper == size] for size in np.unique(n_upper)[::-1]]


def _ranks(tree: Tree, groups: list[Places], n_categories: int) -> Ints:
    """Return the rank of each category, int32 (n_categories): the number of splits that send it to branch 1."""
    rank = np.zeros(n_categories, dtype=np.int32)
    if n_categories:
        for members in groups:
            rank += tree.codes(int(members[0])) == 1
    return rank


def _with_ranks(values: Floats, regressors: Regressors, attributes: tuple[Feature, ...]) -> Floats:
    for place, attribute in enumerate(attributes):
        rank = regressors.rank[regressors.rank_start[place] : regressors.rank_start[place + 1]]
        if attribute.unordered and len(rank):
            values[place] = rank[values[place].astype(np.intp)]
    return np.ascontiguousarray(values)
