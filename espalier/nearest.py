"""The cheapest ways through a model to a wanted answer (Dijkstra 1959), some of a row's values being changed."""

import heapq
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from espalier.changing import Going, Ways
from espalier.legal_values import EVERYTHING, Box, Legal

__all__ = ["Nearest"]

MOST_LOOKED_AT: Final = 100_000
"""Tests that are looked at before the search is given up: some seconds."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What a way has settled of one attribute.

    Attributes:
        stays: The row's own value, or its lack, goes this way.
        box: The known values that go this way as a whole; None where the attribute is not to be changed.
        value: The nearest of them; None where the own value stays.
    """

    stays: bool = True
    box: Box | None = EVERYTHING
    value: float | None = None


START: Final = _Held()
FIXED: Final = _Held(box=None)


class Nearest:
    """Ways through a model, cheapest first (Dijkstra 1959): by cost, then distance, then how many values change."""

    def __init__(self, ways: Ways, legal: Sequence[Legal], prices: Sequence[float], fixed: Collection[int]) -> None:
        self.ways, self.legal, self.prices, self.fixed = ways, legal, prices, fixed
        self.stopped = False

    def price(self, place: int, value: float) -> float:
        """Give what it costs to change an attribute to a value."""
        return min(self.legal[place].distance(value) * self.prices[place], sys.float_info.max)

    def answers(self) -> Iterator[dict[int, float]]:
        """Give, by attribute, the other values that lead to a wanted answer; nearest first."""
        turn = count()
        held: dict[int, _Held] = {}
        heap = [(self._key(held), next(turn), self.ways.start, held)] if self.ways.promises(self.ways.start) else []
        n_looked_at = 0
        while heap:
            _, _, place, held = heapq.heappop(heap)
            if place < 0:
                yield {at: one.value for at, one in held.items() if one.value is not None}
                continue
            n_looked_at += 1
            if n_looked_at > MOST_LOOKED_AT:
                self.stopped = True
                return
            attribute = self.ways.attribute(place)
            before = held.get(attribute, FIXED if attribute in self.fixed else START)
            for going in self.ways.going(place):
                if self.ways.promises(going.to):
                    for after in self._after(attribute, before, going):
                        further = {**held, attribute: after}
                        heapq.heappush(heap, (self._key(further), next(turn), going.to, further))

    def _key(self, held: Mapping[int, _Held]) -> tuple[float, float, int]:
        changed = [(at, one.value) for at, one in held.items() if one.value is not None]
        # Added in one order: what is added to a sum never makes it smaller.
        return (
            sum(self.price(at, value) for at, value in changed),
            sum(self.legal[at].distance(value) for at, value in changed),
            len(changed),
        )

    def _after(self, attribute: int, before: _Held, going: Going) -> Iterator[_Held]:
        """Give what is settled once the way goes on: nothing where it cannot."""
        box = None if before.box is None or going.known is None else before.box.within(going.known)
        if before.stays and going.own:
            yield replace(before, box=box)
            return
        if before.stays and going.partly:
            # Left as it is from here on, whatever the other tests do with it.
            yield _Held(box=None)
        if box is not None:
            value = self.legal[attribute].nearest(box)
            if value is not None:
                yield _Held(stays=False, box=box, value=value)
