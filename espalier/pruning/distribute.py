"""Rows of a data set at every node of a tree: their sums there, and the row parts at its leaves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.data.dataset import Dataset
from espalier.growing.training_data import class_factors
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.prediction.batch import apply
from espalier.prediction.encode_columns import encode_columns, target_of
from espalier.threads import parallel_map

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows as the kernels read them.

    Attributes:
        values: float64 (n_attributes, n_rows); codes of categories, NaN if missing.
        rows: int32; the rows that have weight.
        weights: float64; their weights.
        target: float64 (n_rows); class codes, below 0 for an unknown class, or numbers.
    """

    values: Floats
    rows: Ints
    weights: Floats
    target: Floats


def weighted_rows(model: Model, dataset: Dataset, *, as_trained: bool = False) -> WeightedRows:
    """Return the rows of a data set that have weight.

    Args:
        model: A tree.
        dataset: The rows.
        as_trained: Whether weights are multiplied by the model's class weights.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    target, weight = target_of(model, dataset), dataset.weight
    if as_trained and model.config.class_weight is not None:
        weight = weight * class_factors(dataset, model.config)[target]
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    return WeightedRows(_columns(model, dataset), rows, weight[rows], target.astype(np.float64))


def node_sums(model: Model, given: WeightedRows) -> Floats:
    """Return sums over the rows at each node, float64 (n_nodes, width).

    With classes these are the weights of each and of the unknown ones, else powers of what the node's value misses the
    target by: see `espalier.pruning.kernels.distribute.distribute_rows`.
    """
    from espalier.pruning.kernels.distribute import distribute  # noqa: PLC0415 - numba is loaded when it is needed

    tree, n_classes = model.tree, len(model.schema.classes)
    sums = np.zeros((tree.n_nodes, n_classes + 1 if n_classes else 4))
    answers, divides = tree.value.astype(np.float64), np.zeros(0, np.bool_)
    rows = (given.values, given.rows, given.weights, given.target)
    arrays = (tree_arrays(tree), shape_of(tree), tree.branch_weight.copy())
    distribute(*arrays, *rows, n_classes, answers, sums, 0, divides)
    return sums


def rows_at_leaves(model: Model, dataset: Dataset, given: WeightedRows) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return the rows at the leaves of a classification tree, and whether rows go down several branches at each node.

    Returns:
        A ``Distributed`` of `espalier.pruning.kernels.distribute` in which whole rows come first at each leaf, and bool
        (n_nodes).
    """
    from espalier.pruning.kernels.distribute import Distributed, distribute  # noqa: PLC0415

    tree, n_classes = model.tree, len(model.schema.classes)
    divides = np.zeros(tree.n_nodes, np.bool_)
    leaf, row, weight = apply(model, encode_columns(model, dataset))[given.rows], given.rows, given.weights
    divided = leaf < 0
    if divided.any():
        sums, answers = np.empty((tree.n_nodes, 2 * n_classes + 2)), np.zeros(tree.n_nodes)
        arrays = (tree_arrays(tree), shape_of(tree), tree.branch_weight.copy(), given.values)
        rows = (row[divided], weight[divided], given.target)
        parts = distribute(*arrays, *rows, n_classes, answers, sums, 1, divides)
        leaf = np.concatenate([leaf[~divided], np.repeat(np.arange(tree.n_nodes), np.diff(parts.lo))])
        row, weight = (np.concatenate(each) for each in ((row[~divided], parts.row), (weight[~divided], parts.weight)))
    # Numbers of two bytes are sorted several times as fast.
    order = np.argsort(leaf.astype(np.min_scalar_type(tree.n_nodes)), kind="stable")
    lo = np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=tree.n_nodes))])
    return Distributed(
        np.arange(tree.n_nodes, dtype=np.int32), tree.size.copy(), lo, row[order], weight[order]
    ), divides


def losses(model: Model, sums: Floats) -> tuple[Floats, Floats]:
    """Return each node's loss as a leaf, and the sum of the squares of its rows' losses: float64 (n_nodes) each.

    The loss of a row is its weight times 1 if the class is another one, or times the squared error.
    """
    if not model.schema.classes:
        return sums[:, 2], sums[:, 3]
    wrong = sums.sum(axis=1) - sums[np.arange(len(sums)), model.tree.value]
    return wrong, wrong


def shape_of(tree: Tree) -> Ints:
    """Return the shape of a tree as grown, int32 (n_nodes): each node itself, -1 for a leaf."""
    return np.where(tree.test == LEAF, -1, np.arange(tree.n_nodes)).astype(np.int32)


def tree_arrays(tree: Tree) -> Any:
    """Return the ``TreeArrays`` of `espalier.pruning.kernels.distribute`."""
    from espalier.pruning.kernels.distribute import TreeArrays  # noqa: PLC0415

    arrays = {name: getattr(tree, name) for name in TreeArrays._fields if not name.startswith("surrogate_")}
    names = [name for name in TreeArrays._fields if name not in arrays]
    if tree.surrogates is not None:
        return TreeArrays(
            **arrays, **{name: getattr(tree.surrogates, name.removeprefix("surrogate_")) for name in names}
        )
    none: dict[str, npt.NDArray[Any]] = {name: np.zeros(0, np.int32) for name in names}
    none["surrogate_start"] = np.zeros(tree.n_nodes + 1, np.int32)
    none |= {"surrogate_test": np.zeros(0, np.int8), "surrogate_threshold": np.zeros(0)}
    none["surrogate_code_start"] = np.zeros(1, np.int32)
    for array in none.values():
        # The arrays of a tree are read-only: one compiled form serves trees with and without surrogates.
        array.flags.writeable = False
    return TreeArrays(**arrays, **none)


def _columns(model: Model, dataset: Dataset) -> Floats:
    cells, attributes = encode_columns(model, dataset), model.schema.attributes
    values = np.empty((len(attributes), dataset.n_rows))

    def write(place: int) -> None:
        cells.write(place, 0, dataset.n_rows, values[place])
        if attributes[place].coded:
            np.copyto(values[place], np.nan, where=values[place] < 0)

    parallel_map(write, range(len(attributes)), n_cells=values.size)
    return values
