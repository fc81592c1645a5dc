"""How far a training has come, and the flag that stops it: a small array that compiled code and other threads share."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from espalier.errors import Cancelled


class Progress:
    """Shared between the thread that works and those that watch; every method may be called from any thread.

    Args:
        told: Called with the name of each phase that begins, by the thread that works.

    Attributes:
        phase: What is being done now, in a word or two, such as ``growing``.
        state: float64 (2): the share of training weight that is settled, 0 to 1, and the stop flag, 0 or 1. A kernel
            writes the first and reads the second.

    >>> progress = Progress()
    >>> progress.stop()
    >>> progress.check()
    Traceback (most recent call last):
    ...
    espalier.errors.Cancelled: stopped on request
    """

    def __init__(self, told: Callable[[str], None] | None = None) -> None:
        self.phase = "waiting"
        self._told = told
        self.state: npt.NDArray[np.float64] = np.zeros(2)
        self._part: tuple[Progress, float, float] | None = None
        self._reached = 0.0

    @property
    def share(self) -> float:
        """Share of the training weight that is settled in leaves, 0 to 1; of several trainings, of all of them."""
        if self._part is None:
            return min(1.0, float(self.state[0]))
        part, start, end = self._part
        # A training has several phases, each from 0 to 1; the whole never goes back.
        self._reached = max(self._reached, start + (end - start) * part.share)
        return self._reached

    def begin(self, phase: str) -> None:
        """Name the phase that begins, at a share of 0."""
        self._part, self._reached = None, 0.0
        self.phase = phase
        self.state[0] = 0.0
        if self._told is not None:
            self._told(phase)

    def part(self, start: float, end: float) -> "Progress":
        """Return a progress of its own to a training that is one of several: its 0 to 1 is this one's `start` to `end`.

        What stops this one stops the part that was given last.

        >>> whole = Progress()
        >>> second = whole.part(0.5, 1.0)
        >>> second.state[0] = 0.5
        >>> whole.share
        0.75
        """
        inner = Progress(self._told)
        self._part = inner, start, end
        if self.state[1]:  # looked at after the line above, so that a stop reaches the part whenever it comes
            inner.stop()
        return inner

    def stop(self) -> None:
        """Ask the work to end."""
        self.state[1] = 1.0
        if self._part is not None:
            self._part[0].stop()

    def check(self) -> None:
        """Raise `Cancelled` once `stop` was called."""
        if self.state[1]:
            raise Cancelled("stopped on request")
