"""Columns packed for the database: every bit comes back."""

import struct
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.cell_packing import PackedColumn, pack_column, unpack_column

DRAWS = hypothesis.settings(max_examples=300, deadline=None)
MISSING = float("nan")

decimals = st.builds(lambda digits, places: digits / 10**places, st.integers(-(2**53), 2**53), st.integers(0, 17))
alike = st.integers(0, 15).flatmap(
    lambda places: st.integers(1, 14).flatmap(
        lambda n_digits: st.lists(
            st.one_of(
                st.integers(-(10**n_digits), 10**n_digits).map(lambda whole: whole / 10**places), st.just(MISSING)
            ),
            max_size=20,
        )
    )
)
mixed = st.lists(
    st.one_of(decimals, st.floats(allow_infinity=False), st.sampled_from([MISSING, 0.0, -0.0, 5e-324, 1.8e308 / 2])),
    max_size=20,
)


def restored(packed: PackedColumn, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.empty_like(column)
    unpack_column(packed.form, memoryview(packed.content), out)
    return out


@DRAWS
@given(st.one_of(alike, mixed))
def test_numbers_come_back_bit_by_bit(cells: list[float]) -> None:
    column = np.array(cells, dtype=np.float64)

    back = restored(pack_column(column), column)

    expected = [struct.pack("<d", cell) if cell == cell else None for cell in cells]  # noqa: PLR0124 - NaN differs
    assert [struct.pack("<d", cell) if cell == cell else None for cell in back.tolist()] == expected  # noqa: PLR0124


@DRAWS
@given(st.lists(st.integers(-1, 2**31 - 1), max_size=20), st.integers(0, 31))
def test_codes_come_back(codes: list[int], shift: int) -> None:
    column = np.array([max(code, 0) >> shift if code >= 0 else -1 for code in codes], dtype=np.int32)

    np.testing.assert_array_equal(restored(pack_column(column), column), column)


@pytest.mark.parametrize(
    ("cells", "width"),
    [
        ([36.6, 37.0, 36.9], 1),  # 0, 4 and 3 tenths above the least
        ([0.0, 254.0], 1),
        ([0.0, 255.0], 2),  # 255 would be missing
        ([1.0, MISSING, 3.0], 1),
        ([MISSING, MISSING], 1),
        ([0.01, 1e9], 5),
        ([0.0, 2.0**46], 6),
        ([0.0, 2.0**48 - 1], 8),
        ([1 / 3], 8),
        ([-0.0, 1.0], 8),
    ],
)
def test_a_cell_of_a_column_of_decimals_takes_as_few_bytes_as_tell_it_apart(cells: list[float], width: int) -> None:
    packed = pack_column(np.array(cells))

    assert packed.form["width"] == width
    assert len(packed.content) == width * len(cells)


def test_a_number_of_more_places_than_the_sample_shows_is_seen() -> None:
    column = np.full(1_000, 0.5)
    column[777] = 0.123456  # not one of the 64 that are looked at first

    packed = pack_column(column)

    assert packed.form["places"] == 6
    np.testing.assert_array_equal(restored(packed, column), column)
