"""How far a training has come, and the flag that stops it: a small array that compiled code and other threads share."""

import numpy as np
import numpy.typing as npt

from espalier.errors import Cancelled

__all__ = ["Progress"]


class Progress:
    """Shared between the thread that works and those that watch; every method may be called from any thread.

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

    def __init__(self) -> None:
        self.phase = "waiting"
        self.state: npt.NDArray[np.float64] = np.zeros(2)

    @property
    def share(self) -> float:
        """Share of the training weight that is settled in leaves, 0 to 1."""
        return min(1.0, float(self.state[0]))

    def begin(self, phase: str) -> None:
        """Name the phase that begins, at a share of 0."""
        self.phase = phase
        self.state[0] = 0.0

    def stop(self) -> None:
        """Ask the work to end."""
        self.state[1] = 1.0

    def check(self) -> None:
        """Raise `Cancelled` once `stop` was called."""
        if self.state[1]:
            raise Cancelled("stopped on request")
