"""A list of work that several threads take from, the largest piece first, and that grows while they work."""

import heapq
import itertools
from collections.abc import Callable, Iterable
from threading import Condition
from typing import Generic, TypeVar

__all__ = ["WorkList"]

Piece = TypeVar("Piece")


class WorkList(Generic[Piece]):
    """Pieces of work, each done once by whichever thread is free.

    >>> work = WorkList([3, 8], size=lambda piece: piece)
    >>> done = []
    >>> work.work_off(lambda piece: done.append(piece) or ([piece // 2] if piece > 5 else []))
    >>> done
    [8, 4, 3]
    """

    def __init__(self, pieces: Iterable[Piece], *, size: Callable[[Piece], int]) -> None:
        self._size = size
        self._waiting: list[tuple[int, int, Piece]] = []
        self._numbers = itertools.count()  # of two of one size the one that came first
        self._n_busy = 0
        self._changed = Condition()
        self._add(pieces)

    def work_off(self, do: Callable[[Piece], Iterable[Piece]]) -> None:
        """Do pieces until none is left and no other thread has one that may bring more.

        Args:
            do: Gives the pieces that one leaves. If it raises, the piece is over, and other threads go on.
        """
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._n_busy)
                if not self._waiting:
                    return
                _, _, piece = heapq.heappop(self._waiting)
                self._n_busy += 1
            left: Iterable[Piece] = ()
            try:
                left = do(piece)
            finally:
                with self._changed:
                    self._n_busy -= 1
                    self._add(left)
                    self._changed.notify_all()

    def _add(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            heapq.heappush(self._waiting, (-self._size(piece), next(self._numbers), piece))
