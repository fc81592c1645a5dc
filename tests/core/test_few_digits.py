"""Words of 32 bits stand for the numbers that they were found for, bit by bit."""

import struct

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.csv_compiled import compile_reading
from espalier.few_digits import DecimalWords, decimal_words, found_words, load_decimal_words
from espalier.kernels import csv_cells
from espalier.kernels import decimal_words as kernel

# Of kernels that stay Python numpy says that sums and products of 64 bits wrap around, as they are to.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
DRAWS = hypothesis.settings(max_examples=300, deadline=None)
MISSING = float("nan")
MIDDLE = 2**28

singles = st.floats(width=32, min_value=-1e4, max_value=1e4).map(lambda number: float(str(np.float32(number))))
decimals = st.builds(lambda digits, places: digits / 10**places, st.integers(-(10**9), 10**9), st.integers(0, 15))
any_number = st.floats(min_value=-(2.0**28), max_value=2.0**28)
cells = st.lists(st.one_of(singles, decimals, any_number, st.sampled_from([MISSING, 0.0, -0.0, 5e-324])), max_size=20)


def bits(numbers: np.ndarray) -> list[bytes | None]:
    return [None if number != number else struct.pack("<d", number) for number in numbers.tolist()]  # noqa: PLR0124


@DRAWS
@given(cells)
def test_numbers_come_back_bit_by_bit(drawn: list[float]) -> None:
    numbers = np.array([number for number in drawn if not abs(number) > MIDDLE - 3], dtype=np.float64)
    back = np.empty_like(numbers)

    found = found_words(numbers)
    assert found is not None
    found.write_numbers(back)

    assert bits(back) == bits(numbers)


@DRAWS
@given(
    st.lists(st.floats(width=32, min_value=2.0**-13, max_value=9).map(lambda number: float(str(np.float32(number)))))
)
def test_what_is_printed_of_single_precision_has_words(drawn: list[float]) -> None:
    # 9 leaves room for seven places; the least is 0.000122…, so three zeros and nine digits at most.
    numbers = np.array([9.0, *drawn])

    found = found_words(numbers)

    assert found is not None
    assert found.first == 7
    assert found.others.tolist() == []


def test_a_word_is_a_whole_number_and_its_places() -> None:
    found = found_words(np.array([1.5, -0.25, MISSING, 1 / 3, 26.0]))

    # 26 = 260 000 000 / 10^7 has no room for an eighth place; 1.5 has for one, 0.25 for two more than seven.
    assert found is not None
    assert found.first == 7
    assert found.words.tolist() == [
        (1 << 29) + 150_000_000 + MIDDLE,
        (2 << 29) - 250_000_000 + MIDDLE,
        2**32 - 1,
        2**32 - 2,
        260_000_000 + MIDDLE,
    ]
    assert found.others.tolist() == [1 / 3]


@pytest.mark.parametrize(("number", "has_words"), [(2.0**28 - 3, True), (2.0**28 - 2, False), (-(2.0**28), False)])
def test_a_number_that_is_too_large_for_a_word_is_refused(number: float, has_words: bool) -> None:  # noqa: FBT001
    assert (found_words(np.array([number])) is not None) == has_words


def test_a_whole_number_that_is_just_within_a_word_is_no_sign_for_missing() -> None:
    # With the upper three bits set, the words of 2^28 - 1 and 2^28 - 2 would be MISSING and OTHER.
    numbers = np.array([(MIDDLE - by) / 10**14 for by in range(1, 6)])
    back = np.empty_like(numbers)

    found = found_words(numbers)
    assert found is not None
    found.write_numbers(back)

    assert bits(back) == bits(numbers)


def test_a_column_without_cells_or_without_numbers_has_words() -> None:
    for numbers in (np.empty(0), np.full(3, MISSING)):
        found = found_words(numbers)

        assert found is not None
        assert found.words.tolist() == [2**32 - 1] * len(numbers)


def test_words_of_another_machine_are_read_without_compiled_code() -> None:
    out = np.empty(3)

    DecimalWords(2, np.array([MIDDLE + 366, (7 << 29) + MIDDLE - 1, 2**32 - 1], np.uint32), np.empty(0)).write_numbers(
        out
    )

    assert bits(out) == [struct.pack("<d", 3.66), struct.pack("<d", -1e-9), None]


def test_words_are_found_where_csv_is_read_by_compiled_code() -> None:
    compile_reading()
    load_decimal_words()

    is_compiled = bool(getattr(csv_cells.read_cells, "overloads", None))
    assert bool(getattr(kernel.find_words, "overloads", None)) == is_compiled
    assert (decimal_words(np.array([36.6])) is not None) == is_compiled
