"""The scans of the binary grower against the obvious loop: passing over stretches and a floor change no answer."""

import numpy as np
import pytest

from espalier.growing.binary_data import row_bits_of
from espalier.growing.kernels.binary.arguments import BinaryColumns, NodeSearch
from espalier.growing.kernels.binary.constants import CLASSES, NUMBERS, TWO_CLASSES
from espalier.growing.kernels.binary.presorted_split import best_split_presorted

KINDS = {
    "two classes": TWO_CLASSES,
    "five classes": CLASSES,
    "numbers": NUMBERS,
}


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
        if self.kind == NUMBERS:
            # A mean that a float holds: the last row makes the sum a whole number of n.
            self.values[order[-1]] -= self.values.sum() % n_rows
            self.per_row = self.values[order]
            self.totals = np.array([float(n_rows), self.values.sum()])
            self.rows = order.astype(np.uint32)
        else:
            self.per_row = classes
            self.totals = np.bincount(classes, minlength=n_classes).astype(float)
            self.rows = (order | (classes << row_bits_of(n_classes))).astype(np.uint32)
        self.ordered_codes = self.codes[order].tolist()

    def scores(self) -> dict[int, float]:
        """Give the score of every cut between different values."""
        n_rows, answers = len(self.per_row), {}
        for place in range(n_rows - 1):
            if self.ordered_codes[place] != self.ordered_codes[place + 1]:
                answers[place] = self._score(place + 1, n_rows - place - 1)
        return answers

    def _score(self, n_left: int, n_right: int) -> float:
        if self.kind == NUMBERS:
            apart = float(np.sum(self.per_row[:n_left])) - n_left * self.totals[1] / self.totals[0]
            return apart * apart / (n_left * n_right)
        counts = np.bincount(self.per_row[:n_left], minlength=len(self.totals)).astype(float)
        if self.kind == TWO_CLASSES:
            apart = counts[1] * len(self.per_row) - n_left * self.totals[1]
            return apart * apart / (n_left * n_right)
        rest = self.totals - counts
        return float(np.sum(counts**2) / n_left + np.sum(rest**2) / n_right)

    def found(self, tie: float, floor: float = -1.0) -> int:
        n_rows, nothing, none = len(self.rows), np.zeros(1), np.zeros(0, np.int64)
        columns = BinaryColumns(
            kind=self.kind,
            is_numeric=self.kind == NUMBERS,
            row_bits=row_bits_of(0 if self.kind == NUMBERS else len(self.totals)),
            orders=self.rows.reshape(1, -1),
            codes=self.codes.reshape(1, -1),
            cells=np.zeros((n_rows, 0), np.uint8),
            first=none,
            n_codes=none,
            sorted_attribute=np.zeros(1, np.int64),
            coded_attribute=none,
            sorted_column=np.zeros(1, np.int64),
            coded_column=np.full(1, -1),
            row_class=np.zeros(1, np.uint8),
            row_value=self.values,
            row_weight=nothing,
            width=len(self.totals),
        )
        search = NodeSearch(columns, np.zeros((1, 1)), nothing, np.zeros(1, np.int64), np.zeros(1, np.uint8), nothing)
        search.totals, search.weight, search.min_weight, search.tie = self.totals, float(n_rows), 1.0, tie
        search.centre, search.rest = self.totals[1] / n_rows, 0.0  # of numbers: the mean, which a float holds
        return int(best_split_presorted(columns, search, 0, 0, n_rows, floor))


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
