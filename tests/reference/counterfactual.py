"""The nearest change to another answer, by trying every point of a grid."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any


def cheapest(
    cells: Sequence[Sequence[Any]],
    row: Sequence[Any],
    *,
    answer: Callable[[tuple[Any, ...]], Any],
    prices: Sequence[Callable[[Any], float]],
) -> dict[Any, float]:
    """The least cost of a point for each answer; points whose answer is None are not counted.

    `cells` are those that each attribute may take besides the row's own; `prices` say what it costs to take one.
    """
    found: dict[Any, float] = {}
    ways = [[own, *(cell for cell in each if cell != own)] for own, each in zip(row, cells, strict=True)]
    for point in itertools.product(*ways):
        got = answer(point)
        if got is None:
            continue
        cost = math.fsum(
            0.0 if cell is own else price(cell) for cell, own, price in zip(point, row, prices, strict=True)
        )
        found[got] = min(cost, found.get(got, math.inf))
    return found


def gower(own: Any, cell: Any, *, span: float | None = None, order: Sequence[Any] = ()) -> float:
    """How far a value is from the row's own, by Gower (1971): 1 for what differs, or for what the row does not have."""
    if own is None or (order and own not in order):
        return 1.0
    if span is not None:
        return abs(cell - own) / span
    if order:
        return abs(order.index(cell) - order.index(own)) / (len(order) - 1)
    return float(cell != own)
