"""Columns of a record as bytes: each comes back to the last bit, in no more room than its kind needs."""

import struct
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.array_packing import pack_arrays, packed_size, unpack_array

doubles = st.floats() | st.floats(width=32) | st.integers(-(2**60), 2**60).map(float)
decimals = st.decimals(-1000, 1000, places=2).map(float)


def unpacked(packed: Any, n_rows: int, kind: type) -> np.ndarray:
    out = np.empty(n_rows, kind)
    assert len(packed.content) == packed_size(packed.form, n_rows)
    unpack_array(packed.form, memoryview(packed.content), out)
    return out


def bits(numbers: Any) -> list[bytes]:
    return [struct.pack("<d", np.nan if number != number else number) for number in numbers]  # noqa: PLR0124 - NaN


@hypothesis.settings(deadline=None)
@given(st.integers(1, 30).flatmap(lambda n: st.lists(st.lists(doubles | decimals, min_size=n, max_size=n), max_size=4)))
def test_numbers_come_back_bit_by_bit(columns: list[list[float]]) -> None:
    n_rows = len(columns[0]) if columns else 3
    codes = np.arange(-1, n_rows - 1, dtype=np.int32)

    packed = list(pack_arrays([np.array(column) for column in columns] + [codes]))

    for column, one in zip(columns, packed, strict=False):
        assert bits(unpacked(one, n_rows, np.float64)) == bits(column)
    assert unpacked(packed[-1], n_rows, np.int32).tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("numbers", "n_bytes"),
    [
        (np.random.default_rng(1).standard_normal(1000, dtype=np.float32).astype(np.float64), 4_000),
        (np.random.default_rng(1).standard_normal(1000), 8_000),
        (np.round(np.random.default_rng(1).random(1000) * 90 - 40, 1) + 0.0, 2_000),
        (np.append(np.arange(999) % 50.0, np.nan), 1_000),
        (np.append(np.arange(999) % 50.0, -0.0), 4_000),
    ],
)
def test_each_kind_of_numbers_takes_its_room(numbers: np.ndarray, n_bytes: int) -> None:
    (packed,) = pack_arrays([numbers])
    assert len(packed.content) == n_bytes
