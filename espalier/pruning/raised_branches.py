"""Pessimistic pruning with raised branches: the training rows at the leaves of a tree, and threads that prune it."""

import heapq
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cells import target_of
from espalier.class_weights import class_factors
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.processors import in_threads, n_threads
from espalier.progress import Progress
from espalier.pruning.spreading import columns_of, shape_of, tree_arrays

__all__ = ["TrainingRows", "prune_with_raising", "training_rows"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
_Sized = tuple[int, int]

ROWS_FOR_THREADS: Final = 20_000
"""Fewer rows are pruned sooner than threads are made."""
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
    seated = _seated(model, given, tree)
    watch.check()
    settled, plain = raising.begin(tree, seated.values, seated.target, seated.weights, seated.n_at_node, limit, exact)
    # Where unknown values take a learned side, a branch's share is that of all rows.
    renew = spreading.RENEW_ALL if model.config.missing == "direction" else spreading.RENEW_KNOWN
    done, stays = np.full(model.tree.n_nodes, -1, np.int32), np.zeros(model.tree.n_nodes, np.bool_)

    def prune(places: Places) -> tuple[Ints, Floats]:
        rows = (seated.values, seated.target, settled, plain)
        lines, figures = raising.prune_pessimistically(
            tree, *rows, places, done, stays, limit, exact, renew, watch.state
        )
        return lines.reshape(-1, 3), figures.reshape(-1, 3)

    def foresee(places: Places) -> None:
        raising.foresee(tree, seated.values, seated.target, settled, places, limit, exact, watch.state, stays)

    threads = threads or _n_threads(len(given.rows))
    branches, above = _branches(settled, threads)
    parts = in_threads(prune, _shared_out(branches, threads))
    watch.check()
    if above:
        places = np.array(sorted((place for _, place in above), reverse=True), np.int64)
        divides = tree.divides[settled.order[places]]
        raising.sum_up(tree, settled, places)
        in_threads(foresee, _shared_out(above, threads))
        # These may change yet with what is below them.
        tree.divides[settled.order[places]] = divides
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
        sums=np.zeros((n_nodes, 2 * n_classes + 2)),
        known=np.zeros(n_nodes),
        trial_shares=np.zeros(len(tree.branch_weight)),
        nothing=np.zeros(n_nodes),
    )


@dataclass(frozen=True, slots=True)
class _Seated:
    """Rows that have weight, leaf by leaf: those that a branch is tried with stand side by side.

    Attributes:
        values: float64 (n, F).
        target, weights: float64 (n).
        n_at_node: int64; how many reach each node and no other. The rows that go several ways are the last ones.
    """

    values: Floats
    target: Floats
    weights: Floats
    n_at_node: Places


def _seated(model: Model, given: TrainingRows, tree: Any) -> _Seated:
    from espalier.kernels import settling  # noqa: PLC0415

    columns, n_rows = columns_of(model, given.dataset), given.dataset.n_rows
    leaves, values = np.empty(n_rows, np.int32), np.empty((len(given.rows), len(columns)))
    threads = _n_threads(n_rows)
    # One stretch a thread: each call takes the interpreter's lock, which another thread may hold.
    bounds = [n_rows * thread // threads for thread in range(threads + 1)]

    def send(low: int, high: int) -> None:
        settling.arrive(tree.nodes, tree.steps, tree.substitutes, tree.shape, columns, low, high, leaves)

    def take_seats(low: int, high: int) -> None:
        settling.take_seats(columns, places, low, high, values)

    in_threads(send, bounds[:-1], bounds[1:])
    places, n_at_node, target, weights = settling.seat(
        given.rows, given.weights, given.target, leaves, model.tree.n_nodes
    )
    in_threads(take_seats, bounds[:-1], bounds[1:])
    return _Seated(values, target, weights, n_at_node)


def _n_threads(n_rows: int) -> int:
    return n_threads() if n_rows >= ROWS_FOR_THREADS else 1


def _branches(settled: Any, threads: int) -> tuple[list[_Sized], list[_Sized]]:
    """Give subtrees that threads can prune and the nodes above them, each as (how many pieces it moves, its place).

    Of a node those are the pieces of all branches but the largest.
    """
    if threads == 1:
        return [], []
    most = len(settled.row) // (BRANCHES_A_THREAD * threads)
    waiting, chosen, above = [(-len(settled.row), 0)], [], []
    while waiting:
        n_pieces, place = heapq.heappop(waiting)
        if -n_pieces <= most:
            chosen.append((-n_pieces, place))
            continue
        below = [(-_n_pieces(settled, child), child) for child in _children(settled.size, place)]
        if below:
            above.append((min(below)[0] - n_pieces, place))
        for each in below:
            heapq.heappush(waiting, each)
    return chosen, above


def _shared_out(sized: list[_Sized], threads: int) -> list[Places]:
    """Give each thread places, about as much work as the others have."""
    shares: list[tuple[int, list[int]]] = [(0, []) for _ in range(threads)]
    for size, place in sorted(sized, reverse=True):
        taken, places = heapq.heappop(shares)
        heapq.heappush(shares, (taken + size, [*places, place]))
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
