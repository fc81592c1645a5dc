"""Rows laid side by side for pruning: every cell as it is, in numbers that hold it."""

from typing import Any

import numpy as np
import pytest

from espalier import Dataset, Feature, FeatureKind, Role, Schema, train
from espalier.processors import crew
from espalier.pruning import laid_rows as laying
from espalier.pruning.laid_rows import laid_rows

ROWS_AT_ONCE = 64
N_ROWS = 2 * ROWS_AT_ONCE + 17
"""Three pieces of work, the last one short; few enough for interpreted kernels."""


@pytest.fixture(autouse=True)
def _few_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laying, "ROWS_AT_ONCE", ROWS_AT_ONCE)


def columns_of(kinds: str) -> dict[str, Any]:
    """Give columns by name: n numbers, c codes, each with gaps where the letter is large."""
    rng, columns = np.random.default_rng(3), {}
    for place, kind in enumerate(kinds):
        column: Any = np.round(rng.standard_normal(N_ROWS), 1).astype(np.float32).astype(np.float64)
        if kind in "cC":
            column = rng.integers(0, 5, N_ROWS).astype(np.int32)
        columns[f"{kind}{place}"] = column
        if kind in "NC":
            # The gap lies in the last piece.
            column[N_ROWS - 3] = -1 if kind == "C" else np.nan
    return columns


def grown(columns: dict[str, Any]) -> tuple[Any, Dataset]:
    """Give a small tree of the columns, and their data set."""
    categories = tuple("abcde")
    features = [
        Feature(name, FeatureKind.NOMINAL, categories=categories)
        if name[0] in "cC"
        else Feature(name, FeatureKind.NUMERIC)
        for name in columns
    ]
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("no", "yes"))
    answers = (np.arange(N_ROWS) % 2).astype(np.int32)
    dataset = Dataset(Schema((*features, target)), (*columns.values(), answers))
    return train(dataset, "c45", max_depth=1, pruning=None), dataset


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kinds", ["n", "nnnnn", "cN", "CnccNccC"])
def test_each_row_has_the_cells_of_all_columns_and_says_which_have_gaps(kinds: str, threads: int) -> None:
    columns = columns_of(kinds)
    model, dataset = grown(columns)
    with crew(threads) as workers:
        laid = laid_rows(model, dataset, workers)
    plain = [
        np.where(column < 0, np.nan, column) if column.dtype == np.int32 else column for column in columns.values()
    ]
    assert laid.values.dtype == np.float32
    assert np.array_equal(laid.values, np.column_stack(plain), equal_nan=True)
    assert laid.has_holes.tolist() == [kind in "NC" for kind in kinds]


@pytest.mark.parametrize("row", [0, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, N_ROWS - 1])
@pytest.mark.parametrize("value", [0.1, 1e300, 2.0**24 + 1])
def test_what_float32_does_not_hold_is_laid_as_float64_wherever_it_stands(value: float, row: int) -> None:
    columns = columns_of("nNcn")
    columns["n3"][row] = value
    model, dataset = grown(columns)
    with crew(2) as workers:
        laid = laid_rows(model, dataset, workers)
    assert laid.values.dtype == np.float64
    assert laid.values[row, 3] == value
    assert np.array_equal(laid.values[:, 1], columns["N1"], equal_nan=True)
    assert laid.has_holes.tolist() == [False, True, False, False]
