"""Plain arrays as buffers: copied, filled, and made longer when they run full."""

import numpy as np

from espalier.kernels.jit import inner, maker

__all__ = ["copy", "fill", "first_of", "longer"]


@maker
def longer(array, least):  # type: ignore[no-untyped-def]
    """Give a copy of an array with room for `least` entries and more to come."""
    made = np.empty(max(2 * len(array), least), array.dtype)
    copy(array, 0, made, 0, len(array))
    return made


@maker
def first_of(array, count):  # type: ignore[no-untyped-def]
    """Give a copy of the first `count` entries of an array."""
    made = np.empty(count, array.dtype)
    copy(array, 0, made, 0, count)
    return made


@inner
def copy(array, start, to, at, count):  # type: ignore[no-untyped-def]
    """Copy ``array[start : start + count]`` to ``to[at : at + count]``."""
    for place in range(count):
        to[at + place] = array[start + place]


@inner
def fill(array, count, value):  # type: ignore[no-untyped-def]
    """Set the first `count` entries of an array."""
    for place in range(count):
        array[place] = value
