"""Columns of single precision: a float is its double, and a number falls on the side of the float nearest to it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from espalier import TreeClassifier, predict


def neighbours(start: float, n: int) -> list[np.float32]:
    values = [np.float32(start)]
    while len(values) < n:
        values.append(np.nextafter(values[-1], np.float32(np.inf)))
    return values


@settings(max_examples=20)
@given(start=st.floats(2.0**-20, 2.0**20, width=32), share=st.floats(0, 1), place=st.integers(0, 2))
def test_a_number_falls_on_the_side_of_the_float_nearest_to_it_and_on_the_lower_one_in_the_middle(
    start: float, share: float, place: int
) -> None:
    values = neighbours(start, 4)
    model = TreeClassifier(preset="cart").fit(np.array(values, np.float32)[:, None], [0, 1, 0, 1]).model_
    low, high = float(values[place]), float(values[place + 1])
    number = low + share * (high - low)
    is_lower = Fraction(number) * 2 <= Fraction(low) + Fraction(high)
    asked, nearest = predict(model, [{"x0": number}, {"x0": low if is_lower else high}])
    assert asked.leaf == nearest.leaf


@pytest.mark.parametrize("preset", ["c45", "j48"])
def test_an_observed_threshold_is_the_double_of_a_float_which_a_shorter_decimal_may_exceed(preset: str) -> None:
    values = np.array([np.float32(100.7)] * 6 + [np.float32(102)] * 6)
    model = TreeClassifier(preset=preset).fit(values[:, None], [0] * 6 + [1] * 6).model_
    assert model.tree.threshold[0] == 100.69999694824219  # float32(100.7)
    exact, short = predict(model, [{"x0": float(np.float32(100.7))}, {"x0": 100.7}])
    assert (exact.label, short.label) == (0, 1)
