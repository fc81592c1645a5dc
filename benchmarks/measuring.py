"""Timing two ways of doing the same thing in one run, and printing what came out."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

REPETITIONS = 3


def timed(action: Callable[[], Any], *, repetitions: int = REPETITIONS) -> tuple[float, Any]:
    """Run `action` once to warm up, then `repetitions` times; give the median seconds and the last result."""
    result = action()
    seconds = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds), result


def print_table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows below their names, columns aligned."""
    widths = [max(len(line[place]) for line in (names, *rows)) for place in range(len(names))]
    print(f"\n{title}\n")
    for line in (names, ["-" * width for width in widths], *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
