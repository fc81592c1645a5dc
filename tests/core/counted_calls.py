"""Measure work by the number of functions that are entered, which does not depend on the load of the machine."""

import sys
from collections.abc import Callable, Collection
from typing import Any


def n_calls(ask: Callable[[], Any], *, events: Collection[str] = ("call",)) -> int:
    """Count the calls of Python's functions during `ask()`. A generator that goes on counts as a call.

    Args:
        ask: The function to measure.
        events: Events of `sys.setprofile` that are counted; add ``c_call`` for functions written in C, such as numpy's.
    """
    entered = 0

    def count(_frame: object, event: str, _given: object) -> None:
        nonlocal entered
        entered += event in events

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ask()
    finally:
        sys.setprofile(before)
    return entered
