"""Small things to measure, each called by its name in a process of its own."""

from pathlib import Path

from benchmarks.measuring import Measurable


def noting(file: str, mark: str) -> Measurable:
    """Write a mark at each turn; print, as libraries do, where nobody asked."""

    def act() -> str:
        print("a library talks")  # noqa: T201 - it must not be taken for an answer
        with Path(file).open("a") as notes:
            notes.write(mark)
        return mark

    return Measurable(act, describe=lambda mark: {"mark": mark})


def filling(n_bytes: int) -> Measurable:
    """Touch so much memory, and give it back."""

    def act() -> int:
        return len(bytearray(b"x" * n_bytes))

    return Measurable(act)


def refusing(words: str) -> Measurable:
    """Fail when it is to act."""

    def act() -> None:
        raise ValueError(words)

    return Measurable(act)


def dying() -> Measurable:
    """End the process in the middle of a turn."""

    def act() -> None:
        raise SystemExit(3)

    return Measurable(act)
