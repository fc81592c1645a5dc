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
    """The least cost of a changed row for each answer; rows whose answer is None are left out.

    `cells` lists the values to which each attribute may change; `prices` has a function per attribute, from the new
    value to the cost of the change.
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
    """The distance between two values of an attribute (Gower 1971).

    With `span`, numbers: their difference divided by it. With `order`, ordered categories: the difference of their
    positions, divided by the largest. Else 1 if they differ. It is 1 if the row has no value.
    """
    if own is None or (order and own not in order):
        return 1.0
    if span is not None:
        return abs(cell - own) / span
    if order:
        return abs(order.index(cell) - order.index(own)) / (len(order) - 1)
    return float(cell != own)
