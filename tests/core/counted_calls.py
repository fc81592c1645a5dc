"""How much work something is, by the functions that it enters: a figure that no other load on the machine changes."""

import sys
from collections.abc import Callable, Collection
from typing import Any


def n_calls(ask: Callable[[], Any], *, events: Collection[str] = ("call",)) -> int:
    """Count the functions of Python that are entered, generators that go on among them.

    Args:
        ask: What is done.
        events: Which of the events of `sys.setprofile` count; ``c_call`` stands for functions of C, numpy's among them.
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
