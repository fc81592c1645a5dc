"""The sort of one column against Python's own, whatever the numbers look like."""

import numpy as np
import numpy.typing as npt
import pytest

from espalier.growing.encode import sort_column
from espalier.growing.kernels.sort import code_column

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


COLUMNS["single precision itself"] = SINGLES.astype(np.float32)
COLUMNS["many that differ in their last bits alone"] = np.concatenate(([1e-300], 1.0 + np.arange(200) % 70 * 2.0**-52))


def sorted_column(values: npt.NDArray[np.float64]) -> tuple[list[int], list[int]]:
    """The codes of the rows, and the rows in ascending order."""
    codes, order = np.zeros((2, len(values)), np.uint32)
    sort_column(values, codes, order)
    return codes.tolist(), order.tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_are_sorted_by_value_then_by_row(name: str) -> None:
    values = COLUMNS[name].tolist()
    assert sorted_column(COLUMNS[name])[1] == sorted(range(len(values)), key=lambda row: float(values[row]))


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_order_and_equal_one_another_as_the_values_do(name: str) -> None:
    values = COLUMNS[name]
    codes, _ = sorted_column(values)
    by_code = dict(zip(codes, values.tolist(), strict=True))
    assert [by_code[code] for code in codes] == values.tolist()
    assert [by_code[code] for code in sorted(by_code)] == sorted(set(values.tolist()))


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
    column, cells = np.array(values), np.empty(len(values), np.uint8)
    expected, ranks = np.unique(column, return_inverse=True)
    assert code_column(column, cells, 256) == len(expected)
    assert cells.tolist() == ranks.tolist()


def test_as_many_values_as_a_byte_has_fit_and_one_more_does_not() -> None:
    cells = np.empty(257, np.uint8)
    assert code_column(np.arange(256.0), cells[:256], 256) == 256
    assert cells[:256].tolist() == list(range(256))
    assert code_column(np.arange(257.0), cells, 256) == -1
