"""Distribute the rows of a data set over a tree, to get sums at every node and the parts of rows at the leaves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.arrays import Floats, Ints
from espalier.data.dataset import Dataset
from espalier.growing.class_weights import class_factors
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.prediction.batch import MAX_BLOCK_ROWS, packed_tree, predict_batch
from espalier.prediction.encode_columns import encode_columns, target_of
from espalier.pruning.kernels import constants, distribute as kernel
from espalier.threads import parallel_map


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows in the form that the kernels read.

    Attributes:
        values: float64 (n_rows, n_attributes); numbers, or codes of categories; NaN if missing or unseen.
        rows: int32 (k); indexes of the rows whose weight is above 0.
        weights: float64 (k); the weights of these rows.
        target: float64 (n_rows); for a regression numbers, else class codes, below 0 if the class is unknown.
    """

    values: Floats
    rows: Ints
    weights: Floats
    target: Floats


def weighted_rows(model: Model, dataset: Dataset, *, as_trained: bool = False) -> WeightedRows:
    """Return a data set in the form that the kernels read.

    With `as_trained`, weights are multiplied by the class weights of the training; `dataset` must be the training rows.
    """
    target = target_of(model.schema, dataset)
    weight = training_weight(model, dataset) if as_trained else dataset.weight
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    return WeightedRows(_cells(model, dataset), rows, weight[rows], target.astype(np.float64))


def training_weight(model: Model, training: Dataset) -> Floats:
    """Return the weight of each training row, multiplied by the weight of its class."""
    if model.config.class_weight is None:
        return training.weight
    factors = class_factors(model.schema.classes, model.config, training)
    return np.asarray(training.weight * factors[target_of(model.schema, training)])


def node_sums(model: Model, given: WeightedRows, *, unit: float = 1.0) -> Floats:
    """Return sums over the rows at each node, float64 (n_nodes, width).

    For a classification, the columns are the weight of each class and of rows of unknown class. For a regression, see
    ``sums`` in `espalier.pruning.kernels.distribute.Distribution`; targets and node values are divided by `unit`.
    """
    tree, n_classes = model.tree, len(model.schema.classes)
    sums = np.zeros((tree.n_nodes, n_classes + 1 if n_classes else 4))
    distribution = kernel.Distribution(
        packed_tree(model).tree, shape_of(tree), given.values, given.target / unit, n_classes, tree.value / unit,
        sums, np.zeros(0, np.bool_), constants.KEEP_SHARES,
    )  # fmt: skip
    kernel.distribute(distribution, given.rows, given.weights, tree.branch_weight.copy(), marks_parts=False)
    return sums


def rows_at_leaves(model: Model, given: WeightedRows, distribution: Any) -> Any:
    """Return the `RowsAtLeaves` of a classification tree. A leaf has its whole rows first, then parts (``~row``)."""
    tree = model.tree
    leaf = predict_batch(model, given.values.T).leaves[given.rows]
    row, weight = given.rows, given.weights
    divided = leaf < 0
    if divided.any():
        shares = tree.branch_weight.copy()
        parts = kernel.distribute(distribution, row[divided], weight[divided], shares, marks_parts=True)
        leaf = np.concatenate([leaf[~divided], np.repeat(np.arange(tree.n_nodes), np.diff(parts.lo))])
        row, weight = (np.concatenate(each) for each in ((row[~divided], parts.row), (weight[~divided], parts.weight)))
    # NumPy sorts numbers of at most two bytes several times faster.
    order = np.argsort(leaf.astype(np.min_scalar_type(tree.n_nodes)), kind="stable")
    lo = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=tree.n_nodes))])
    return kernel.RowsAtLeaves(np.arange(tree.n_nodes, dtype=np.int32), tree.size.copy(), lo, row[order], weight[order])


def losses(model: Model, sums: Floats) -> tuple[Floats, Floats]:
    """Return Σ w·l, which is the loss of each node as a leaf, and Σ w·l² over the node's rows: float64 (n_nodes) each.

    w is the weight of a row. l is its loss: 1 for a misclassified row, else 0; for a regression, the squared error.
    """
    if not model.schema.classes:
        return sums[:, 2], sums[:, 3]
    wrong = sums.sum(axis=1) - sums[np.arange(len(sums)), model.tree.value]
    return wrong, wrong


def squared_errors(tree: Tree) -> Floats:
    """Return the weighted sum of squared errors of each node's value on the node's training rows: float64 (n_nodes)."""
    # A value may differ from the mean: it may be a median.
    squares: Floats = tree.stats[:, 2] + tree.stats[:, 0] * (tree.stats[:, 1] - tree.value) ** 2
    return squares


def shape_of(tree: Tree) -> Ints:
    """Return the *shape* (see the kernel) of an unpruned tree, int32 (n_nodes): a node's own number, -1 for a leaf."""
    return np.where(tree.test == LEAF, -1, np.arange(tree.n_nodes)).astype(np.int32)


def _cells(model: Model, dataset: Dataset) -> Floats:
    cells = encode_columns(model.schema, dataset, model.preparation.imputed)
    attributes = model.schema.attributes
    values = np.empty((dataset.n_rows, len(attributes)))

    def write(low: int) -> None:
        for place, attribute in enumerate(attributes):
            column = values[low : low + MAX_BLOCK_ROWS, place]
            cells.write(place, low, low + MAX_BLOCK_ROWS, column)
            if attribute.coded:
                column[column < 0] = np.nan

    parallel_map(write, range(0, dataset.n_rows, MAX_BLOCK_ROWS), n_cells=values.size)
    return values
