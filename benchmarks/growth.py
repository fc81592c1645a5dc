"""How the time of a training grows with the rows and with the columns."""

import math
from typing import Final

import espalier
from benchmarks import tables
from benchmarks.measuring import Measurable, Subject, measure, print_table, seconds_text
from benchmarks.run import Run

N_COLUMNS: Final = 20
N_ROWS: Final = 20_000
ROWS: Final = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS: Final = (5, 10, 20, 50, 100, 200, 500)


def run(run: Run) -> None:
    """Print the curve in rows and the curve in columns."""
    lines = []
    for n_rows in dict.fromkeys(run.rows(n_rows) for n_rows in ROWS):
        seconds, leaves = _measured(n_rows, N_COLUMNS)
        unit_seconds = None if seconds is None else seconds / (n_rows * N_COLUMNS * math.log2(n_rows))
        lines.append(
            [f"{n_rows:,}", f"{n_rows * N_COLUMNS:,}", leaves, seconds_text(seconds), _nanoseconds(unit_seconds)]
        )
    names = ("rows", "cells", "leaves", "seconds", "ns / (cells x log2 rows)")
    print_table(f"Growth in rows: {N_COLUMNS} columns, full-grown", names, lines)
    lines = []
    for n_columns in COLUMNS:
        seconds, leaves = _measured(run.rows(N_ROWS), n_columns)
        unit_seconds = None if seconds is None else seconds / n_columns
        lines.append([f"{n_columns}", leaves, seconds_text(seconds), seconds_text(unit_seconds)])
    title = f"Growth in columns: {run.rows(N_ROWS):,} rows, full-grown"
    print_table(title, ("columns", "leaves", "seconds", "seconds a column"), lines)


def growing(n_rows: int, n_columns: int) -> Measurable:
    """Return a measurable that trains a full-grown tree on continuous columns and two classes."""
    rows = tables.two_classes(n_rows, n_columns)
    dataset, few = rows.dataset(), rows.first(tables.FEW).dataset()
    return Measurable(
        lambda: espalier.train(dataset, "cart"),
        lambda: espalier.train(few, "cart"),
        lambda model: {"leaves": model.tree.n_leaves},
    )


def _measured(n_rows: int, n_columns: int) -> tuple[float | None, str]:
    """Return the seconds and the number of leaves at one size. Only one table is in memory at a time."""
    subject = Subject("growing", "benchmarks.growth:growing", {"n_rows": n_rows, "n_columns": n_columns})
    result = measure([subject])["growing"]
    return result.seconds, f"{result.facts['leaves']:,}" if result.facts else str(result.fault)


def _nanoseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e9:.2f}"
