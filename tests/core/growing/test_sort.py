"""The binary grower's sort of one column against Python's own, whatever the numbers look like."""

import numpy as np
import numpy.typing as npt
import pytest

from espalier.growing.kernels.binary.constants import DIGIT_BITS, N_DIGITS
from espalier.growing.kernels.sort import code_column, sort_packed, write_codes

RANDOM = np.random.default_rng(0)
SINGLES = RANDOM.standard_normal(500).astype(np.float32).astype(np.float64)
COLUMNS = {
    "single precision": SINGLES,
    "double precision": RANDOM.standard_normal(500),
    "whole numbers": RANDOM.integers(-40, 40, 500).astype(np.float64),
    "negative": -RANDOM.random(100),
    "neighbours in the last bit": 1.0 + RANDOM.integers(0, 40, 60) * 2.0**-52 + np.tile([0.0, 2.0**40], 30),
    "every size": RANDOM.standard_normal(300) * 10.0 ** RANDOM.integers(-300, 300, 300),
    "both zeros and both ends": np.array([0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1.0, 0.0, -1.0]),
    "one value": np.full(5, -3.5),
    "zeros": np.zeros(3),
    "one row": np.array([2.5]),
}


def packed(
    values: npt.NDArray[np.float64], classes: npt.NDArray[np.uint8], row_bits: int = 24
) -> tuple[bool, list[int], list[int]]:
    n_rows = len(values)
    codes, order = np.zeros(n_rows, np.uint32), np.zeros(n_rows, np.uint32)
    near, far = np.zeros(n_rows, np.uint64), np.zeros(n_rows, np.uint64)
    counts = np.empty((N_DIGITS, 1 << DIGIT_BITS), np.uint32)
    n_bits = write_codes(values.view(np.uint64), codes, counts)
    own = np.array(values) if n_bits > 32 else np.full(n_rows, np.nan)
    done = bool(sort_packed(own, n_bits, classes, row_bits, codes, counts, order, near, far))
    return done, codes.tolist(), order.tolist()


@pytest.mark.parametrize("row_bits", [16, 24, 30])
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_sorted_by_value_then_by_row_and_carry_their_class(name: str, row_bits: int) -> None:
    values = COLUMNS[name]
    classes = (np.arange(len(values)) % 3).astype(np.uint8)
    done, _, order = packed(values, classes, row_bits)
    expected = sorted(range(len(values)), key=lambda row: float(values[row]))
    assert done
    assert [row & ((1 << row_bits) - 1) for row in order] == expected
    assert [row >> row_bits for row in order] == [row % 3 for row in expected]


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_order_and_equal_one_another_as_the_values_do(name: str) -> None:
    values = COLUMNS[name]
    _, codes, _ = packed(values, np.zeros(len(values), np.uint8))
    by_code = dict(zip(codes, values.tolist(), strict=True))
    assert [by_code[code] for code in codes] == values.tolist()
    assert [by_code[code] for code in sorted(by_code)] == sorted(set(values.tolist()))


def test_many_numbers_that_differ_in_their_last_bits_alone_are_left_to_the_general_sort() -> None:
    values = np.concatenate(([1e-300], 1.0 + np.arange(200) * 2.0**-52))
    assert not packed(values, np.zeros(len(values), np.uint8))[0]


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, 2.0, 1.0],
        [255.0, 3.0, 3.0, 0.0],
        [7.0],
        [-0.0, 0.0, 5.0],
        [1.0, 256.0],
        [2.0, -1.0, 2.0],
        [-300.0, -45.0, -300.0],
        [-1e300, 4.0],
        [1e17, 1e17 + 32],
        [0.5, 3.0],
        [1e300, 4.0],
    ],
)
def test_few_values_become_their_ranks(values: list[float]) -> None:
    column, cells, distinct = np.array(values), np.empty(len(values), np.uint8), np.empty(256)
    expected, ranks = np.unique(column, return_inverse=True)
    assert code_column(column, cells, distinct, 256) == len(expected)
    assert cells.tolist() == ranks.tolist()
    assert distinct[: len(expected)].tolist() == expected.tolist()


def test_all_small_whole_numbers_fit_and_one_more_value_does_not() -> None:
    cells, distinct = np.empty(257, np.uint8), np.empty(256)
    assert code_column(np.arange(256.0), cells[:256], distinct, 256) == 256
    assert cells[:256].tolist() == list(range(256))
    assert code_column(np.arange(257.0), cells, distinct, 256) == -1
