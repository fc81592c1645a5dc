"""A column that is sorted by ranges of values has the order and the ranks that numpy's stable sort gives."""

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from espalier.arrays import Array
from espalier.growing.levels import sort_column as module
from espalier.growing.levels.sort_column import sort_column
from espalier.growing.levels.work_files import FolderStore

NUMBERS = (
    st.floats(allow_nan=True, allow_infinity=True)
    | st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, np.nextafter(1.0, 2.0), 5e-324, -5e-324])
    | st.integers(-3, 3).map(float)
)


def sorted_by_ranges(column: Array, folder: Path, max_rows: int) -> tuple[Array, Array, Array]:
    """Return order, codes and distinct values."""
    store = FolderStore(folder)
    sort_column(column, 0, store, max_rows=max_rows)
    assert {path.name for path in folder.iterdir()} == {"order-0-0", "codes-0", "value-0"}
    return store.read("order-0-0", np.uint32), store.read("codes-0", np.int32), store.read("value-0", np.float64)


def sorted_by_numpy(column: Array) -> tuple[Array, Array, Array]:
    """Return the same: equal values, and missing ones, stay in the order of their rows."""
    values = column.astype(np.float64)
    order = np.argsort(values, kind="stable")
    known = [float(values[row]) for row in order if not np.isnan(values[row])]
    distinct = [value for at, value in enumerate(known) if at == 0 or value != known[at - 1]]
    rank = {value: number for number, value in enumerate(distinct)}
    codes = [-1 if np.isnan(value) else rank[float(value)] for value in values]
    return order, np.array(codes), np.array(distinct)


def same(column: Array, folder: Path, max_rows: int) -> None:
    for mine, its in zip(sorted_by_ranges(column, folder, max_rows), sorted_by_numpy(column), strict=True):
        np.testing.assert_array_equal(mine, its)
        assert np.signbit(mine).tolist() == np.signbit(its).tolist()  # of the zeros that are first


@settings(max_examples=150, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(1, 70), st.sampled_from([np.float64, np.float32]))
def test_order_codes_and_values_are_those_of_a_stable_sort(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], max_rows: int, kind: Any
) -> None:
    with np.errstate(over="ignore"):
        column = np.array(numbers).astype(kind)
    same(column, tmp_path_factory.mktemp("sort"), max_rows)


CASES: dict[str, Callable[[np.random.Generator], Array]] = {
    "one value": lambda _: np.full(1_500, 7.5),
    "none known": lambda _: np.full(1_500, np.nan),
    "years": lambda random: random.integers(1990, 2025, 1_500).astype(float),
    "neighbours": lambda random: 1.0 + random.integers(0, 1_200, 1_500) * 2.0**-52,  # equal in all but 12 bits
    "half of one value": lambda random: np.where(random.random(1_500) < 0.5, 0.25, random.standard_normal(1_500)),
    "both zeros": lambda random: random.choice([0.0, -0.0, 1.0], 1_500),
    "missing": lambda random: np.where(random.random(1_500) < 0.4, np.nan, random.standard_normal(1_500)),
}


@pytest.mark.parametrize("max_rows", [1, 64, 300, 1_500])
@pytest.mark.parametrize("name", CASES)
def test_values_that_are_close_or_equal_are_sorted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, max_rows: int
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 300)  # several blocks
    same(CASES[name](np.random.default_rng(1)), tmp_path, max_rows)


def test_no_range_has_more_rows_than_may_be_sorted_unless_it_has_one_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []

    class Watched(FolderStore):
        @contextmanager
        def writer(self, name: str) -> Any:
            with super().writer(name) as write:
                yield lambda part: (parts.append(len(part)) if name.startswith("ranks") else None, write(part))

    monkeypatch.setattr(module, "ROWS_AT_ONCE", 300)
    for number, build in enumerate(CASES.values()):
        (tmp_path / str(number)).mkdir()
        sort_column(build(np.random.default_rng(1)), 0, Watched(tmp_path / str(number)), max_rows=500)
    assert 250 < max(parts) <= 500
