"""Which core a web process is kept on: the threads of one process then do not wait for each other across cores."""

import os
from collections.abc import Collection, Sequence

__all__ = ["cores", "least_taken", "pin"]


def cores() -> frozenset[int]:
    """Give the cores that this process may use; none where the system does not say (macOS)."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def least_taken(usable: Collection[int], taken: Sequence[int]) -> int | None:
    """Give the core on which the fewest other processes are; the lowest of several; None where there is none.

    Args:
        usable: Numbers of cores.
        taken: Those on which the others are, each as often as there are processes on it.
    """
    return min(sorted(usable), key=taken.count, default=None)


def pin(core: int | None) -> None:
    """Keep this process on a core; None: on none of its own."""
    if core is not None:
        os.sched_setaffinity(0, {core})
