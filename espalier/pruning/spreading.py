"""Rows spread over all nodes of a tree: what each node would miss on them, were it a leaf."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.cells import cells_of, target_of
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.processors import in_threads_if_many
from espalier.tree import LEAF, Tree

__all__ = ["Spread", "columns_of", "losses", "node_sums", "shape_of", "spread", "tree_arrays"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Spread:
    """A tree and rows as the kernels of `espalier.kernels.spreading` read them.

    Attributes:
        nodes: The tree's arrays, a kernel's ``Nodes``.
        substitutes: Those of its surrogates, a kernel's ``Substitutes``.
        shares: float64 (nodes - 1); share of the known weight that each child gets.
        values: float64 (attributes, rows); codes of categories, NaN missing.
        rows: int32; those that have weight.
        weights: float64; theirs.
        target: float64 (rows); class codes, below 0 an unknown class, or numbers.
    """

    nodes: Any
    substitutes: Any
    shares: Floats
    values: Floats
    rows: Ints
    weights: Floats
    target: Floats


def spread(model: Model, dataset: Dataset) -> Spread:
    """Prepare rows for the kernels.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    rows = np.flatnonzero(dataset.weight > 0).astype(np.int32)
    return Spread(
        *tree_arrays(model.tree),
        model.tree.branch_weight.copy(),
        columns_of(model, dataset),
        rows,
        dataset.weight[rows],
        target_of(model, dataset).astype(np.float64),
    )


def shape_of(tree: Tree) -> Ints:
    """Give each node's test as the kernels read it: its own, -1 at a leaf."""
    return np.where(tree.test == LEAF, -1, np.arange(tree.n_nodes)).astype(np.int32)


def node_sums(model: Model, given: Spread) -> Floats:
    """Add up the rows at each node: class weights with the unknown ones last, or powers of what the node misses by.

    See `espalier.kernels.spreading.distribute` for the columns.
    """
    from espalier.kernels import spreading  # noqa: PLC0415 - numba is loaded when many rows are asked for, not before

    tree, n_classes = model.tree, len(model.schema.classes)
    sums = np.zeros((tree.n_nodes, n_classes + 1 if n_classes else 4))
    start = (0, given.rows, given.weights, given.target, n_classes, tree.value.astype(np.float64), sums)
    arrays = (given.nodes, given.substitutes, shape_of(tree), given.shares, given.values)
    spreading.distribute(*arrays, *start, spreading.KEEP_SHARES)
    return sums


def losses(model: Model, sums: Floats) -> tuple[Floats, Floats]:
    """Give each node's loss as a leaf, and the sum of the squares of its rows' losses: float64 (n) each.

    A row's loss is 1 where the class is another one, or the square of what the number is missed by; with its weight.
    """
    if not model.schema.classes:
        return sums[:, 2], sums[:, 3]
    wrong = sums.sum(axis=1) - sums[np.arange(len(sums)), model.tree.value]
    return wrong, wrong


def tree_arrays(tree: Tree) -> tuple[Any, Any]:
    """Give a tree's arrays and those of its surrogates as kernels read them: ``Nodes`` and ``Substitutes``."""
    from espalier.kernels.branches import Nodes, Substitutes  # noqa: PLC0415

    nodes = Nodes(*(getattr(tree, name) for name in Nodes._fields))
    if tree.surrogates is not None:
        return nodes, Substitutes(*(getattr(tree.surrogates, name) for name in Substitutes._fields))
    none: dict[str, npt.NDArray[Any]] = {name: np.zeros(0, np.int32) for name in Substitutes._fields}
    none |= {"start": np.zeros(tree.n_nodes + 1, np.int32), "test": np.zeros(0, np.int8), "threshold": np.zeros(0)}
    none["code_start"] = np.zeros(1, np.int32)
    for array in none.values():
        # As the tree's own arrays are, so that one compiled form serves both.
        array.flags.writeable = False
    return nodes, Substitutes(**none)


def columns_of(model: Model, dataset: Dataset) -> Floats:
    """Give the attributes of rows as kernels read them: float64 (attributes, n), codes of categories, NaN missing.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    cells, attributes = cells_of(model, dataset), model.schema.attributes
    values = np.empty((len(attributes), dataset.n_rows))

    def write(place: int) -> None:
        cells.write(place, 0, dataset.n_rows, values[place])
        if attributes[place].coded:
            np.copyto(values[place], np.nan, where=values[place] < 0)

    in_threads_if_many(values.size, write, range(len(attributes)))
    return values
