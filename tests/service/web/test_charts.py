"""The bins of a histogram: their edges, and the texts of the edges."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import espalier
from service.web.charts import BINS, Column, histogram_columns

TOP = 1.75e308


def columns_of(values: Sequence[float]) -> tuple[Column, ...]:
    return histogram_columns(espalier.dataset_from_columns({"x": np.array(values)}), 0)


def edges_of(columns: Sequence[Column]) -> list[tuple[float, float]]:
    return [(float(start), float(end)) for start, end in (column.name.split(" to ") for column in columns)]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-TOP, TOP),
        (1_700_000_000.0, 1_702_592_000.0),  # thirty days of seconds since 1970
        (100_000.0, 100_700.0),
        (0.0, 0.001),
        (-3.0, 9.0),
        (1e-300, 2e-300),
    ],
)
def test_the_edges_divide_the_range_evenly_and_their_texts_say_so(low: float, high: float) -> None:
    parts = [n / 100 for n in range(101)]
    values = [low * (1 - part) + high * part for part in parts]
    columns = columns_of(values)
    width = (Fraction(high) - Fraction(low)) / BINS
    assert len(columns) == BINS
    for place, edges in enumerate(edges_of(columns)):
        exact_edges = (Fraction(low) + width * place, Fraction(low) + width * (place + 1))
        for exact, shown in zip(exact_edges, edges, strict=True):
            assert abs(Fraction(shown) - exact) <= width / 20
    places = [min(BINS - 1, math.floor((Fraction(value) - Fraction(low)) / width)) for value in values]
    # Value n is part n / 100 of the range; none but the first and the last, and every 25th, is at an edge.
    assert [column.counts for column in columns] == [(float(places.count(place)),) for place in range(BINS)]


def test_neighbouring_numbers_have_a_histogram() -> None:
    low = 1_700_000_000.0
    high = float(np.nextafter(low, np.inf))
    columns = columns_of([low, low, high])
    assert sorted(column.counts[0] for column in columns)[-3:] == [0.0, 1.0, 2.0]
    edges = edges_of(columns)
    assert (edges[0][0], edges[-1][1]) == (low, high)


def test_the_smallest_numbers_have_a_histogram() -> None:
    assert sum(column.counts[0] for column in columns_of([0.0, 5e-324])) == 2


def test_a_single_number_is_shown_exactly() -> None:
    assert [column.name for column in columns_of([1_234_567.25, 1_234_567.25])] == ["1234567.25"]
