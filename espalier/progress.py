"""The progress of a training and the flag that stops it, in an array that compiled code and other threads share."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from espalier.errors import Cancelled


class Progress:
    """Progress of some work, shared by the working thread and others; every method may be called from any thread.

    Args:
        on_phase: Called with the name of each phase that begins, by the working thread.

    Attributes:
        phase: Name of the current phase, such as ``growing``.
        state: float64 (2): the share of the training weight in finished leaves, 0 to 1, and the stop flag, 0 or 1. A
            kernel writes the first and reads the second.

    >>> progress = Progress()
    >>> progress.stop()
    >>> progress.check()
    Traceback (most recent call last):
    ...
    espalier.errors.Cancelled: stopped on request
    """

    def __init__(self, on_phase: Callable[[str], None] | None = None) -> None:
        self.phase = "waiting"
        self._on_phase = on_phase
        self.state: npt.NDArray[np.float64] = np.zeros(2)
        self._part: tuple[Progress, float, float] | None = None
        self._reached = 0.0

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; for several trainings, of all of them."""
        if self._part is None:
            return min(1.0, float(self.state[0]))
        part, start, end = self._part
        # A training has several phases, each from 0 to 1; the whole never goes back.
        self._reached = max(self._reached, start + (end - start) * part.share)
        return self._reached

    def begin(self, phase: str) -> None:
        """Begin a phase, at a share of 0."""
        self._part, self._reached = None, 0.0
        self.phase = phase
        self.state[0] = 0.0
        if self._on_phase is not None:
            self._on_phase(phase)

    def part(self, start: float, end: float) -> "Progress":
        """Return the progress of one of several trainings: its 0 to 1 is this one's `start` to `end`.

        Stopping this one stops the last part.

        >>> whole = Progress()
        >>> second = whole.part(0.5, 1.0)
        >>> second.state[0] = 0.5
        >>> whole.share
        0.75
        """
        inner = Progress(self._on_phase)
        self._part = inner, start, end
        if self.state[1]:  # checked after the line above: a stop reaches the part whenever it comes
            inner.stop()
        return inner

    def stop(self) -> None:
        """Set the stop flag."""
        self.state[1] = 1.0
        if self._part is not None:
            self._part[0].stop()

    def check(self) -> None:
        """Raise `Cancelled` once `stop` was called."""
        if self.state[1]:
            raise Cancelled("stopped on request")
