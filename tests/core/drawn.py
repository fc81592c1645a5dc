"""Choices for trees and tables that hypothesis draws as one string of bytes.

A draw for each cell and each node would take most of the time of a test. The string is shrunk as any other: a byte of
0 is the first choice, which is the simplest.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Reads choices off bytes; once they are used up, each choice is the first."""

    def __init__(self, drawn: bytes) -> None:
        self._bytes = iter(drawn)

    def below(self, end: int) -> int:
        """Return a number from 0 to `end` - 1, for an `end` of at most 256."""
        return next(self._bytes, 0) % end

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of at most 256 values."""
        return values[self.below(len(values))]

    def some_of(self, values: Sequence[T], n: int) -> list[T]:
        """Return a list of `n` choices."""
        return [self.one_of(values) for _ in range(n)]


def choices(n_bytes: int) -> st.SearchStrategy[Choices]:
    """Draw choices of which this many are not the first."""
    return st.binary(min_size=n_bytes, max_size=n_bytes).map(Choices)
