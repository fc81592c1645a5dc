"""Progress of some work and a flag that stops it, shared with compiled code and other threads."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import numpy as np

from espalier.arrays import Floats
from espalier.errors import Cancelled

PHASE_ENDS: Final = {
    "loading": 0.05,
    "sorting": 0.4,
    "growing": 0.75,
    "fitting": 0.8,
    "pruning": 0.95,
    "explaining": 0.8,
}
"""Share of the whole work at the end of a phase whose name contains the key. For other phases, the share is 1."""
Item = TypeVar("Item")


class Progress:
    """Progress of some work. Every thread may call every method.

    Attributes:
        phase: Name of the current phase, such as ``growing``.
        state: float64 (2,): the share of the current phase that is done, 0 to 1, and the stop flag, 0 or 1. Kernels
            write the share and read the flag.

    >>> progress = Progress()
    >>> progress.stop()
    >>> progress.check()
    Traceback (most recent call last):
    ...
    espalier.errors.Cancelled: stopped on request
    """

    def __init__(self) -> None:
        self.phase = "waiting"
        self.state: Floats = np.zeros(2)
        self._part: Progress | None = None
        self._bounds = 0.0, 1.0  # of the current phase or part
        self._reached = 0.0

    @property
    def share(self) -> float:
        """Share of the whole work that is done, 0 to 1; it never falls.

        >>> progress = Progress()
        >>> progress.begin("growing")
        >>> progress.state[0] = 0.4
        >>> round(progress.share, 9)
        0.3
        """
        (start, end), part = self._bounds, self._part
        within = min(1.0, float(self.state[0])) if part is None else part.share
        self._reached = max(self._reached, start + (end - start) * within)
        return self._reached

    def begin(self, phase: str) -> None:
        """Begin a phase at the share reached so far. The phase ``done`` sets the share to 1."""
        start = self.share
        # The order matters: until the phase has changed, other threads must read the share of the previous phase.
        self.state[0] = 0.0
        self._part = None
        self._bounds = start, max(start, next((end for name, end in PHASE_ENDS.items() if name in phase), 1.0))
        self.phase = phase
        if phase == "done":
            self.state[0] = 1.0

    def each(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield each of `items` and increase the share of the phase. Raise `Cancelled` after a stop."""
        for place, item in enumerate(items):
            self.check()
            self.state[0] = place / len(items)
            yield item
        self.state[0] = 1.0

    def part(self, start: float, end: float) -> "Progress":
        """Return a new `Progress` for the work between the shares `start` and `end` of this one.

        Until this progress begins another phase or part, its method `stop` also stops the new progress.

        >>> whole = Progress()
        >>> second = whole.part(0.5, 1.0)
        >>> second.begin("done")
        >>> whole.share
        1.0
        """
        inner = Progress()
        self._part, self._bounds = inner, (start, end)
        if self.state[1]:  # checked after the assignment, so that no stop is lost
            inner.stop()
        return inner

    def stop(self) -> None:
        """Set the stop flag."""
        self.state[1] = 1.0
        if self._part is not None:
            self._part.stop()

    def check(self) -> None:
        """Raise `Cancelled` if `stop` has been called."""
        if self.state[1]:
            raise Cancelled("stopped on request")
