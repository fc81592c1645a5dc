"""Pessimistic pruning with raised branches: the training rows at the leaves of a tree, and threads that prune it."""

import heapq
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cells import cells_of, target_of, write_rows
from espalier.class_weights import class_factors
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.processors import in_threads, n_threads
from espalier.progress import Progress
from espalier.pruning.spreading import shape_of, tree_arrays

__all__ = ["TrainingRows", "prune_with_raising", "training_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

TURNED_AT_ONCE: Final = 2048
"""So many rows are written column by column: they stay in the cache meanwhile."""
ROWS_FOR_THREADS: Final = 50_000
"""Of fewer rows most of the work is at the top of the tree, where branches wait for each other."""
BRANCHES_A_THREAD: Final = 4


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows as the kernels read them.

    Attributes:
        dataset: The rows.
        target: float64 (n); class codes, below 0 an unknown class.
        rows: int32; those that have weight.
        weights: float64; theirs, with the weights of the classes as the training had them.
    """

    dataset: Dataset
    target: Floats
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
    rows = np.flatnonzero(weight > 0).astype(np.int32)
    return TrainingRows(dataset, target.astype(np.float64), rows, weight[rows])


def prune_with_raising(
    model: Model, given: TrainingRows, limit: Any, exact: Any, watch: Progress, *, threads: int | None = None
) -> tuple[Any, Ints, Floats]:
    """Prune a tree.

    Args:
        model: A classification tree.
        given: The rows that it was grown from.
        limit: A ``Limit`` of `espalier.kernels.raising`.
        exact: True for the exact limit, else None.
        watch: Stopped by another thread.
        threads: That work at once, of as many as there are processors; changes no figure.

    Returns:
        The tree's ``Pruning`` of that module, and its lines of `prune_pessimistically`, in their order.

    Raises:
        DataError: The rows do not have the model's columns.
        Cancelled: `watch` was stopped.
    """
    from espalier.kernels import raising, spreading  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before
    from espalier.kernels.jit import phase_of  # noqa: PLC0415

    watch.begin(phase_of(raising.prune_pessimistically, "pruning"))
    tree = _pruning(model)
    values, leaves = _arrived(model, given, tree)
    watch.check()
    settled, plain = raising.begin(tree, values, given.target, given.rows, given.weights, leaves, limit, exact)
    # Where unknown values take a learned side, a branch's share is that of all rows.
    renew = spreading.RENEW_ALL if model.config.missing == "direction" else spreading.RENEW_KNOWN
    done = np.full(model.tree.n_nodes, -1, np.int32)

    def prune(places: Places) -> tuple[Ints, Floats]:
        lines, figures = raising.prune_pessimistically(
            tree, values, given.target, settled, plain, places, done, limit, exact, renew, watch.state
        )
        return lines.reshape(-1, 3), figures.reshape(-1, 3)

    parts = in_threads(prune, _branches(settled, threads or _n_threads(len(given.rows))))
    watch.check()
    parts.append(prune(np.zeros(1, np.int64)))
    lines, figures = (np.concatenate(each) for each in zip(*parts, strict=True))
    # As if one had looked at all nodes, the last in preorder first.
    order = np.argsort(-lines[:, 2], kind="stable")
    return tree, lines[order], figures[order]


def _pruning(model: Model) -> Any:
    """Give the tree as the kernels write it."""
    from espalier.kernels import settling  # noqa: PLC0415
    from espalier.kernels.raising import Pruning  # noqa: PLC0415

    tree, shape = model.tree, shape_of(model.tree)
    nodes, substitutes = tree_arrays(tree)
    n_nodes, n_classes = tree.stats.shape
    return Pruning(
        nodes=nodes,
        substitutes=substitutes,
        shape=shape,
        shares=tree.branch_weight.copy(),
        steps=settling.steps_of(nodes, shape),
        stats=tree.stats.copy(),
        mass=np.zeros(n_nodes),
        estimate=np.zeros(n_nodes),
        whole=np.zeros((n_nodes, n_classes)),
        least=np.zeros(n_nodes),
        divides=np.zeros(n_nodes, np.bool_),
        extra=np.zeros((n_nodes, n_classes)),
        is_touched=np.zeros(n_nodes, np.bool_),
        sums=np.zeros((n_nodes, 2 * n_classes + 2)),
        known=np.zeros(n_nodes),
        trial_shares=np.zeros(len(tree.branch_weight)),
        nothing=np.zeros(n_nodes),
    )


def _arrived(model: Model, given: TrainingRows, tree: Any) -> tuple[Floats, Ints]:
    """Give the values of the rows, float64 (n, F), and the leaf of each: int32 (n), -1 where it goes several ways."""
    from espalier.kernels import settling  # noqa: PLC0415

    cells, n_rows = cells_of(model, given.dataset), given.dataset.n_rows
    values, leaves = np.empty((n_rows, len(model.schema.attributes))), np.empty(n_rows, np.int32)

    def send(low: int, high: int) -> None:
        for first in range(low, high, TURNED_AT_ONCE):
            write_rows(model, cells, values, first, min(first + TURNED_AT_ONCE, high))
        arrays = (tree.nodes, tree.steps, tree.substitutes, tree.shape, values, given.target)
        settling.arrive(*arrays, low, high, leaves)

    threads = _n_threads(n_rows)
    # One stretch a thread: each call takes the interpreter's lock, which another thread may hold.
    bounds = [n_rows * thread // threads for thread in range(threads + 1)]
    in_threads(send, bounds[:-1], bounds[1:])
    return values, leaves


def _n_threads(n_rows: int) -> int:
    return n_threads() if n_rows >= ROWS_FOR_THREADS else 1


def _branches(settled: Any, threads: int) -> list[Places]:
    """Give for each thread the places of subtrees that it prunes, about as many pieces as the others have."""
    if threads == 1:
        return []
    most = len(settled.row) // (BRANCHES_A_THREAD * threads)
    waiting, chosen = [(-len(settled.row), 0)], []
    while waiting:
        n_pieces, place = heapq.heappop(waiting)
        if -n_pieces <= most:
            chosen.append((n_pieces, place))
            continue
        for child in _children(settled.size, place):
            heapq.heappush(waiting, (-_n_pieces(settled, child), child))
    shares: list[tuple[int, list[int]]] = [(0, []) for _ in range(threads)]
    for n_pieces, place in chosen:
        taken, places = heapq.heappop(shares)
        heapq.heappush(shares, (taken - n_pieces, [*places, place]))
    return [np.array(places, np.int64) for _, places in shares if places]


def _children(size: Ints, place: int) -> list[int]:
    """Give the places of a node's children in preorder."""
    children, child, end = [], place + 1, place + int(size[place])
    while child < end:
        children.append(child)
        child += int(size[child])
    return children


def _n_pieces(settled: Any, place: int) -> int:
    after = place + int(settled.size[place])
    return int((settled.lo[after] if after < len(settled.lo) else len(settled.row)) - settled.lo[place])
