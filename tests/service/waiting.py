"""Waiting for a condition instead of sleeping."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
PATIENCE = 120.0  # seconds; a shared machine has slow moments


def until(look: Callable[[], Found], *, seconds: float = PATIENCE, what: str = "the condition") -> Found:
    """Look again and again until the look returns something true; return it."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds:g} s"
        time.sleep(0.02)
