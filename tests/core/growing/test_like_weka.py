"""Small tables on which rounding decides, with the trees that Weka 3.9.7 prints for them: the twin's and ours.

Each was grown by the command of its entry from an ARFF file of these columns, numeric unless categories are given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.core import growing_bridge
from tests.reference import grower, published, weka_text
from tests.reference.table import Column, Table, Target
from tests.reference.tree import Node

GROWERS = {"twin": grower.grow_table, "compiled": growing_bridge.grow_table}


@dataclass(frozen=True, slots=True)
class Printed:
    """A table, and what Weka prints for it between heading and counts.

    Attributes:
        command: Of Weka.
        columns: The cells of each, None where missing.
        classes: Of each row, a letter.
        tree: The printed lines.
    """

    command: str
    columns: tuple[tuple[float | None, ...], ...]
    classes: str
    tree: str


NEIGHBOURS = "weka.classifiers.trees.J48 -U -M 2"
LEFT_OVER = "weka.classifiers.trees.REPTree -M 2 -V 0.001 -N 3 -S 1 -L -1 -P"
CASES = {
    "neighbours that a difference, but no sum, tells from 1e-5": Printed(
        NEIGHBOURS, ((3.6,) * 5 + (3.60001,) * 5,), "aaaaabbbbb", ": a (10.0/5.0)"
    ),
    "neighbours at exactly 1e-5": Printed(NEIGHBOURS, ((0.0,) * 5 + (1e-5,) * 5,), "aaaaabbbbb", ": a (10.0/5.0)"),
    "neighbours that either tells": Printed(
        NEIGHBOURS, ((6.6,) * 5 + (6.60001,) * 5,), "aaaaabbbbb", "x0 <= 6.6: a (5.0)\nx0 > 6.6: b (5.0)"
    ),
    "a side of 2 rows in shares that is less than 2 once the others are taken away": Printed(
        LEFT_OVER,
        ((0, 1, 4, 1, 1, 5, 4, 2), (2, None, 5, None, 3, 0, 3, 5)),
        "bbaabbba",
        "x1 < 4 : b (5.33/0.67) [0/0]\nx1 >= 4 : a (2.67/0.33) [0/0]",
    ),
    "a root whose lighter side is 2 but for rounding": Printed(
        LEFT_OVER,
        ((0, 3, 0, 1, 4, 3, None, 5, 0, 5), (0, None, None, None, 5, 1, None, None, 2, 1)),
        "bbbbaaabaa",
        " : a (10/5) [0/0]",
    ),
    "sides that rounding leaves heavy enough beside one that it does not": Printed(
        LEFT_OVER,
        (
            (None, 1, 3, None, 4, 0, 1, None, 0, 3, None, 5, 1),
            (4, 2, None, 5, None, 2, 4, 2, None, None, 5, None, 2),
        ),
        "aababaababbab",
        "x0 < 2\n|   x0 < 0.5 : a (2.89/0.44) [0/0]\n|   x0 >= 0.5 : a (4.33/1.67) [0/0]\n"
        "x0 >= 2 : b (5.78/1.89) [0/0]",
    ),
}
TEXTS = {"J48": weka_text.j48_text, "REPTree": weka_text.reptree_text}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("growing", GROWERS)
def test_a_small_table_on_which_rounding_decides_has_the_tree_that_weka_prints(name: str, growing: str) -> None:
    case = CASES[name]
    system = case.command.split()[0].rsplit(".", 1)[-1]
    config = published.weka_config(case.command, "class")
    assert not isinstance(config, str)
    table = table_of(case)
    grow: Callable[[Table, dict[str, Any]], Node] = GROWERS[growing]
    assert TEXTS[system](grow(table, config), table) == case.tree


def table_of(case: Printed) -> Table:
    columns = tuple(Column("numeric", cells, 0, f"x{place}") for place, cells in enumerate(case.columns))
    labels = tuple(sorted(set(case.classes)))
    codes = tuple(float(labels.index(label)) for label in case.classes)
    return Table(columns, Target("class", codes, len(labels), "cls", labels), (1.0,) * len(codes))
