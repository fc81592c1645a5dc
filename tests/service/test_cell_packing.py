"""Columns packed for the database: every bit comes back."""

import struct
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier import decimal_words
from espalier.csv_compiled import compile_reading
from service.cell_packing import PackedColumn, pack_column, packed_size, unpack_column

# Of kernels that stay Python numpy says that sums and products of 64 bits wrap around, as they are to.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
DRAWS = hypothesis.settings(
    max_examples=300, deadline=None, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
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


@pytest.fixture(autouse=True)
def _compiled_code() -> None:
    """As in a process that has read a long CSV."""
    compile_reading()


def restored(packed: PackedColumn, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    out = np.empty_like(column)
    unpack_column(packed.form, memoryview(packed.content), out)
    return out


@DRAWS
@given(st.one_of(alike, mixed))
def test_numbers_come_back_bit_by_bit(cells: list[float]) -> None:
    column = np.array(cells, dtype=np.float64)

    packed = pack_column(column)
    back = restored(packed, column)

    assert len(packed.content) == packed_size(packed.form, len(column))
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


def test_numbers_whose_points_are_in_other_places_take_four_bytes_and_the_few_others_eight_more() -> None:
    column = np.array([float(str(np.float32(number))) for number in np.linspace(-3, 3, 1_001)])  # sevenths, and so on
    column[[7, 500]] = 1 / 3

    packed = pack_column(column)

    np.testing.assert_array_equal(restored(packed, column), column)
    assert len(packed.content) == packed_size(packed.form, len(column))
    if decimal_words(column) is not None:  # kernels are compiled here
        assert packed.form == {"width": 4, "first": 7, "others": 2}


def test_numbers_of_too_many_digits_are_kept_as_they_are() -> None:
    column = 1 / np.arange(3.0, 100.0)

    packed = pack_column(column)

    assert packed.form == {"width": 8}
    np.testing.assert_array_equal(restored(packed, column), column)
