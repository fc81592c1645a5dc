"""Pessimistic pruning with raised branches: threads that prune a tree by the training rows at its leaves."""

import heapq
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.model import Model
from espalier.processors import Crew, crew, n_threads
from espalier.progress import Progress
from espalier.pruning.laid_rows import laid_rows
from espalier.pruning.seated_rows import TrainingRows, seated_rows
from espalier.pruning.spreading import shape_of, tree_arrays

__all__ = ["prune_with_raising"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
_Sized = tuple[int, int]

ROWS_FOR_THREADS: Final = 20_000
"""Fewer rows are pruned sooner than threads are made."""
BRANCHES_A_THREAD: Final = 2


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
    from espalier.kernels import raising  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before
    from espalier.kernels.jit import phase_of  # noqa: PLC0415

    watch.begin(phase_of(raising.prune_pessimistically, "pruning"))
    with crew(threads or _n_threads(len(given.rows))) as workers:
        tree, parts = _pruned_parts(model, given, (limit, exact), watch, workers)
    lines, figures = (np.concatenate(each) for each in zip(*parts, strict=True))
    # As if one had looked at all nodes, the last in preorder first.
    order = np.argsort(-lines[:, 2], kind="stable")
    return tree, lines[order], figures[order]


def _pruned_parts(
    model: Model, given: TrainingRows, limit: tuple[Any, Any], watch: Progress, workers: Crew
) -> tuple[Any, list[tuple[Ints, Floats]]]:
    """Prune subtrees, then what is above them; give the tree and the lines of each part."""
    from espalier.kernels import raising, spreading, stock  # noqa: PLC0415

    tree, laid = _pruning(model), laid_rows(model, given.dataset, workers)
    seated = seated_rows(tree, model.tree.size, laid, given, workers)
    watch.check()
    tree, n_nodes, rows = tree._replace(divides=seated.divides), model.tree.n_nodes, (laid.values, given.target)
    settled, knows = stock.begin(tree, model.tree.size, seated.count, seated.parts)

    def take_stock(low: int, high: int) -> bool:
        listed = (seated.parts, seated.rows, seated.first, seated.count, given.weights)
        return bool(stock.take_stock(tree, given.target, settled, *listed, low, high, *limit))

    plain = all(workers.stretches(take_stock, n_nodes)) and knows
    # Where unknown values take a learned side, a branch's share is that of all rows.
    renew = spreading.RENEW_ALL if model.config.missing == "direction" else spreading.RENEW_KNOWN
    done, stays = np.full(n_nodes, -1, np.int32), np.zeros(n_nodes, np.bool_)
    branches, above = _branches(settled, workers.n_threads)
    own_tables = _own_tables(tree, len(given.target), _most_pieces(settled, branches))

    def prune(place: int) -> tuple[Ints, Floats]:
        with own_tables() as (own, trial):
            lines, figures = raising.prune_pessimistically(
                own, *rows, settled, plain, place, done, stays, *limit, renew, trial, watch.state
            )
        return lines.reshape(-1, 3), figures.reshape(-1, 3)

    def foresee(place: int) -> None:
        with own_tables() as (own, trial):
            stays[place] = raising.foresee(own, *rows, settled, plain, place, *limit, renew, trial, watch.state)

    parts = workers.in_turn(prune, _largest_first(branches))
    watch.check()
    if above:
        _foresee_all(tree, settled, above, workers, foresee)
        watch.check()
    # Where all of these stay, none becomes a leaf, and nothing that is looked at later changes.
    if not above or not stays[[place for _, place in above]].all():
        parts.append(prune(0))
        watch.check()  # what was stopped is half pruned
    return tree, parts


def _foresee_all(tree: Any, settled: Any, above: list[_Sized], workers: Crew, foresee: Callable[[int], None]) -> None:
    """Try the nodes above pruned subtrees as if none of them changed."""
    from espalier.kernels import raising  # noqa: PLC0415

    places = np.array(sorted((place for _, place in above), reverse=True), np.int64)
    divides = tree.divides[settled.order[places]]
    raising.sum_up(tree, settled, places)
    workers.in_turn(foresee, _largest_first(above))
    # These may change yet with what is below them.
    tree.divides[settled.order[places]] = divides


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
        sums=np.empty((n_nodes, 2 * n_classes + 2)),
        known=np.zeros(n_nodes),
        trial_shares=np.zeros(len(tree.branch_weight)),
        nothing=np.zeros(n_nodes),
    )


def _own_tables(tree: Any, n_rows: int, n_pieces: int) -> Callable[[], AbstractContextManager[tuple[Any, Any]]]:
    """Lend what a thread writes besides the tree: a `Pruning` with scratch of its own, and a ``Trial``.

    A thread makes what nobody else has left for it: so two make theirs at once, and no more are made than needed.
    """
    from espalier.kernels import raising  # noqa: PLC0415

    left: list[tuple[Any, Any]] = []

    @contextmanager
    def lent() -> Iterator[tuple[Any, Any]]:
        try:
            tables = left.pop()
        except IndexError:
            scratch = {name: np.empty_like(getattr(tree, name)) for name in ("sums", "known", "trial_shares")}
            tables = tree._replace(**scratch), raising.make_trial(tree, n_rows, n_pieces)
        yield tables
        left.append(tables)

    return lent


def _n_threads(n_rows: int) -> int:
    return n_threads() if n_rows >= ROWS_FOR_THREADS else 1


def _branches(settled: Any, threads: int) -> tuple[list[_Sized], list[_Sized]]:
    """Give subtrees that threads can prune and the nodes above them, each as (how much work it is, its place).

    Of a subtree that is its nodes, of a node above the pieces of all branches but the largest, which may move.
    """
    if threads == 1:
        return [], []
    most = len(settled.row) // (BRANCHES_A_THREAD * threads)
    waiting, chosen, above = [(-len(settled.row), 0)], [], []
    while waiting:
        n_pieces, place = heapq.heappop(waiting)
        if -n_pieces <= most:
            chosen.append((int(settled.size[place]), place))
            continue
        below = [(-_n_pieces(settled, child), child) for child in _children(settled.size, place)]
        if below:
            above.append((min(below)[0] - n_pieces, place))
        for each in below:
            heapq.heappush(waiting, each)
    return chosen, above


def _largest_first(sized: list[_Sized]) -> list[int]:
    return [place for _, place in sorted(sized, reverse=True)]


def _most_pieces(settled: Any, branches: list[_Sized]) -> int:
    return max((_n_pieces(settled, place) for _, place in branches), default=0)


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
