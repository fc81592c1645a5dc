"""Rules as they are written for people, read back: what must hold of a row, and the answer."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Holds = Callable[[Any], bool]


def parsed(sentence: str, orders: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Holds], str]:
    """What each attribute must be like, by name, and the answer, of ``if … and … then …`` or ``always …``.

    `orders` has the categories of each attribute, none for a number.
    """
    if sentence.startswith("always "):
        return {}, sentence.removeprefix("always ")
    found = re.fullmatch(r"if (.*) then (.*?)", sentence)
    assert found, sentence
    clauses = found[1].split(" and ")
    holds = dict(_clause(clause, orders) for clause in clauses)
    assert len(holds) == len(clauses), "an attribute is named twice"
    return holds, found[2]


def _clause(clause: str, orders: Mapping[str, Sequence[Any]]) -> tuple[str, Holds]:
    if found := re.fullmatch(r"(\w+) is (missing|known)", clause):
        wanted = found[2] == "missing"
        return found[1], lambda cell: (cell is None) == wanted
    if found := re.fullmatch(r"(\w+) is (.*)", clause):
        texts = set(found[2].split(" or "))
        return found[1], lambda cell: cell is not None and _text(cell) in texts
    found = re.fullmatch(r"(?:(\S+) < )?(\w+)(?: > (\S+))?(?: ≤ (\S+))?", clause)
    assert found, clause
    low, high = found[1] or found[3], found[4]
    order = [_text(category) for category in orders[found[2]]]

    def place(text: str) -> float:
        return order.index(text) if order else float(text)

    def holds(cell: Any) -> bool:
        if cell is None:
            return False
        value = place(_text(cell)) if order else cell
        return (low is None or value > place(low)) and (high is None or value <= place(high))

    return found[2], holds


def _text(cell: Any) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)
