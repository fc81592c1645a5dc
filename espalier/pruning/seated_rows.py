"""The training rows as pruning with raised branches reads them, and where it finds those of each leaf of a tree."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.cells import target_of
from espalier.class_weights import class_factors
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.processors import Crew
from espalier.pruning.laid_rows import LaidRows

__all__ = ["SeatedRows", "TrainingRows", "seated_rows", "training_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows as the kernels read them.

    Attributes:
        dataset: The rows.
        target: int32 (n); class codes, below 0 an unknown class.
        rows: int32; those that have weight.
        weights: float64 (n), with the weights of the classes as the training had them.
    """

    dataset: Dataset
    target: Ints
    rows: Ints
    weights: Floats


def training_rows(model: Model, dataset: Dataset) -> TrainingRows:
    """Prepare rows.

    Raises:
        DataError: The rows do not have the model's target.
    """
    target, weight = target_of(model, dataset), dataset.weight
    if model.config.class_weight is not None:
        weight = weight * class_factors(dataset, model.config)[target]
    has_weight = weight > 0
    all_have = bool(has_weight.all())
    rows = np.arange(len(weight), dtype=np.int32) if all_have else np.flatnonzero(has_weight).astype(np.int32)
    return TrainingRows(dataset, target.astype(np.int32), rows, weight)


@dataclass(frozen=True, slots=True)
class SeatedRows:
    """Rows leaf by leaf; each thread has parted a stretch of them.

    Attributes:
        rows: int32; first, count: int32 (threads, nodes); as `seating.part_rows` writes them.
        parts: Of the rows that go several ways, a kernel's ``Parts``.
        divides: bool (nodes); whether one of those goes several ways at the node itself.
    """

    rows: Ints
    first: Ints
    count: Ints
    parts: Any
    divides: Flags


@dataclass(frozen=True, slots=True)
class _Apart:
    """What one thread's rows that go several ways come to, as `spread_apart` of `espalier.kernels.stock` says."""

    lo: npt.NDArray[np.int64]
    row: Ints
    weight: Floats
    divides: Flags


def seated_rows(tree: Any, size: Ints, laid: LaidRows, given: TrainingRows, workers: Crew) -> SeatedRows:
    """Part rows at the tests of a tree as it was grown.

    Args:
        tree: A kernel's ``Pruning``.
        size: int32 (nodes), of each subtree.
        laid: The values of the rows.
        given: The rows; those that have weight are parted.
        workers: Threads, which share them out.
    """
    from espalier.kernels import seating, stock  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before

    rows, goes_apart = given.rows.copy(), np.zeros(len(laid.values), np.bool_)
    bounds = workers.bounds(len(rows))
    first, count = (np.empty((workers.n_threads, len(size)), np.int32) for _ in range(2))

    def part(place: int) -> _Apart:
        low, high = bounds[place], bounds[place + 1]
        seating.part_rows(
            tree.nodes, tree.substitutes, tree.shape, size, laid.values, laid.has_holes, rows, low, high, first[place],
            count[place], goes_apart,
        )  # fmt: skip
        divides, own = np.zeros(len(size), np.bool_), given.rows[low:high]
        apart = own[goes_apart[own]]
        if len(apart) == 0:
            return _Apart(np.zeros(len(size), np.int64), apart, np.empty(0), divides)
        lo, row, weight = stock.spread_apart(tree, laid.values, given.target, given.weights, apart, divides)
        return _Apart(lo, row, weight, divides)

    apart = workers.each(part, range(workers.n_threads))
    return SeatedRows(rows, first, count, _parts(apart), np.logical_or.reduce([each.divides for each in apart]))


def _parts(apart: list[_Apart]) -> Any:
    """Put what all threads have found into one ``Parts``."""
    from espalier.kernels.settling import Parts  # noqa: PLC0415

    lo, n_parts = np.empty((len(apart), len(apart[0].lo) + 1), np.int64), 0
    for own, each in zip(lo, apart, strict=True):
        np.add(each.lo, n_parts, out=own[:-1])
        n_parts += len(each.row)
        own[-1] = n_parts
    return Parts(lo, np.concatenate([each.row for each in apart]), np.concatenate([each.weight for each in apart]))
