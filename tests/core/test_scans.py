"""The scans of the binary grower against the obvious loop: passing over stretches and a floor change no answer."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest

from espalier.growing.kernels import presorted_split

KINDS = {
    "two classes": presorted_split.TWO_CLASSES,
    "five classes": presorted_split.CLASSES,
    "numbers": presorted_split.NUMBERS,
}


@numba.njit
def scanned(  # noqa: PLR0917 - as the kernel takes them
    kind: int, rows: Any, codes: Any, values: Any, totals: Any, least: float, tie: float, floor: float
) -> Any:
    left, right = np.zeros(8), np.zeros(8)
    nothing, none = np.zeros(1), np.zeros(1, np.uint8)
    weight = float(rows.size)
    return presorted_split.best_split_presorted(
        kind, rows.reshape(1, -1), codes.reshape(1, -1), 0, 0, rows.size, none, values, nothing, totals, weight, least,
        tie, floor, left, right,
    )  # fmt: skip


class Case:
    """Rows in the order of a column, some values of which are equal."""

    def __init__(self, kind: str, n_rows: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.kind = KINDS[kind]
        order = random.permutation(n_rows)
        self.codes = np.zeros(n_rows, np.uint32)
        self.codes[order] = np.sort(random.integers(0, max(2, n_rows // 2), n_rows))
        n_classes = 2 if kind == "two classes" else 5
        lean = np.arange(n_rows) * n_classes // n_rows
        classes = np.where(random.random(n_rows) < 0.3 * (seed % 2), lean, random.integers(0, n_classes, n_rows))
        self.values = np.zeros(n_rows)
        self.values[order] = random.integers(-8, 9, n_rows) / 4 + lean * (seed % 2)
        if self.kind == presorted_split.NUMBERS:
            # A mean that a float holds: the last row makes the sum a whole number of n.
            self.values[order[-1]] -= self.values.sum() % n_rows
            self.per_row = self.values[order]
            self.totals = np.array([float(n_rows), self.values.sum()])
            self.rows = order.astype(np.uint32)
        else:
            self.per_row = classes
            self.totals = np.bincount(classes, minlength=n_classes).astype(float)
            self.rows = (order | (classes << 24)).astype(np.uint32)
        self.ordered_codes = self.codes[order].tolist()

    def scores(self) -> dict[int, float]:
        """Give the score of every cut between different values."""
        n_rows, answers = len(self.per_row), {}
        for place in range(n_rows - 1):
            if self.ordered_codes[place] != self.ordered_codes[place + 1]:
                answers[place] = self._score(place + 1, n_rows - place - 1)
        return answers

    def _score(self, n_left: int, n_right: int) -> float:
        if self.kind == presorted_split.NUMBERS:
            apart = float(np.sum(self.per_row[:n_left])) - n_left * self.totals[1] / self.totals[0]
            return apart * apart / (n_left * n_right)
        counts = np.bincount(self.per_row[:n_left], minlength=len(self.totals)).astype(float)
        if self.kind == presorted_split.TWO_CLASSES:
            apart = counts[1] * len(self.per_row) - n_left * self.totals[1]
            return apart * apart / (n_left * n_right)
        rest = self.totals - counts
        return float(np.sum(counts**2) / n_left + np.sum(rest**2) / n_right)

    def found(self, tie: float, floor: float = -1.0, least: float = 1.0) -> int:
        arguments: tuple[npt.NDArray[Any], ...] = (self.rows, self.codes, self.values, self.totals)
        return int(scanned(self.kind, *arguments, least, tie, floor)[2])


def first_of_the_best(scores: dict[int, float], tie: float) -> int:
    best, at = -1.0 - tie, -1
    for place, score in scores.items():
        if score > best + tie:
            best, at = score, place
    return at


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [2, 17, 70, 300, 900])
def test_the_scan_finds_the_first_of_the_best_cuts(kind: str, n_rows: int) -> None:
    for seed in range(6):
        case = Case(kind, n_rows, seed)
        scores = case.scores()
        tie = 1e-9 * max(scores.values(), default=1.0)
        at, expected = case.found(tie), first_of_the_best(scores, tie)
        assert (at if at >= 0 else -1) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [17, 70, 300, 900])
def test_above_a_floor_the_same_cut_is_found_and_none_only_where_there_is_none(kind: str, n_rows: int) -> None:
    for seed in range(6):
        case = Case(kind, n_rows, seed)
        scores = case.scores()
        low, high = min(scores.values()), max(scores.values())
        # A tie so wide that a good many cuts are near the floor.
        tie = (high - low) / 20
        without = case.found(tie)
        for floor in np.linspace(low, high, 23):
            at = case.found(tie, floor)
            assert at == without if at >= 0 else high <= floor * (1 + 1e-12)
