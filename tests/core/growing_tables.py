"""Strategies of hypothesis: small tables with many ties, missing cells and equal rows, and legal configurations."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import assume, strategies as st

from tests.core.drawn import Choices, choices
from tests.reference import scores
from tests.reference.presets import preset
from tests.reference.table import Column, Table, Target

DYADIC = (1.0, 0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0)
ANY_WEIGHT = tuple(0.125 + 7.875 * (place / math.e % 1) for place in range(256))
NUMBERS = (-2.0, -1.0, 0.0, 0.5, 1.0, 1.00000001, 3.0, 7.0)
TARGETS = (0.0, 0.5, 1.0, 1.0, 2.0, 3.0, 8.0)

STRATEGIES = ("fractional", "spread", "direction", "majority", "surrogate", "imputed")
NOMINALS = ("multiway", "subset", "one_vs_rest", "ordered_binaries")
NUMERICS = ("best", "boundary", "median", "near_median")
COST_FUNCTIONS = ("nunez", "tan_schlimmer", "norton")
ENTROPIES = ("information_gain", "gain_ratio", "normalized_gain")
CRITERIA = {"class": scores.CLASS_CRITERIA, "number": scores.NUMBER_CRITERIA}


@st.composite
def tables(
    draw: st.DrawFn,
    *,
    kind: str,
    classes: tuple[int, ...] = (2, 3, 4),
    holes: bool = True,
    weights: Sequence[float] = DYADIC,
    most_rows: int = 24,
    columns: tuple[str, ...] = ("numeric", "numeric", "nominal", "nominal", "ordinal"),
) -> Table:
    """Draw a table of at most `most_rows` rows. It has one to four columns of the kinds `columns`, with few values."""
    drawn = draw(choices(11 + 6 * most_rows))
    n_rows = 1 + drawn.below(most_rows)
    target = _target(drawn, n_rows, kind, drawn.one_of(classes))
    kinds = drawn.some_of(columns, 1 + drawn.below(4))
    made = tuple(_column(drawn, n_rows, each, holes=holes) for each in kinds)
    given = tuple(drawn.some_of(weights, n_rows))
    assume(any(given))
    return Table(made, target, given)


def _target(drawn: Choices, n_rows: int, kind: str, k: int) -> Target:
    if kind == "class":
        return Target("class", tuple(drawn.some_of(range(k), n_rows)), k)
    return Target("number", tuple(drawn.some_of(TARGETS, n_rows)), 0)


def _column(drawn: Choices, n_rows: int, kind: str, *, holes: bool) -> Column:
    k = 0 if kind == "numeric" else drawn.one_of([1, 2, 3, 5, 13])
    values = NUMBERS if kind == "numeric" else tuple(range(k))
    cells = (*values * 3, *(None,) * len(values)) if holes else values
    return Column(kind, tuple(drawn.some_of(cells, n_rows)), k)


def nominals_of(table: Table) -> tuple[str, ...]:
    """The nominal splits that are legal: for more than two classes, categories cannot be ordered by a mean response."""
    return NOMINALS if table.target.k <= 2 else NOMINALS[:-1]


@st.composite
def configs(draw: st.DrawFn, table: Table, **chosen: Any) -> dict[str, Any]:
    """Draw a configuration that is legal for the table; the fields `chosen` are not drawn."""
    kind, drawn = table.target.kind, draw(choices(40))
    fields: dict[str, Any] = {
        "criterion": drawn.one_of(CRITERIA[kind]),
        "nominal": drawn.one_of(nominals_of(table)),
        "numeric": drawn.one_of(["best", *NUMERICS]),
        "threshold": drawn.one_of(["midpoint", "observed"]),
        "missing": drawn.one_of(STRATEGIES),
        "max_surrogates": drawn.below(4),
        "max_depth": drawn.one_of([None, None, None, 0, 1, 3]),
        "max_leaf_nodes": drawn.one_of([None, None, 2, 5]),
        "min_weight_split": drawn.one_of([None, None, 3.0]),
        "min_weight_leaf": drawn.one_of([None, None, 1.0, 2.0]),
        "leaf_weight_rule": drawn.one_of(["candidates", "candidates", "winner"]),
        "min_impurity_decrease": drawn.one_of([None, 0.0, 0.0, 0.02]),
        "cut_points": experts(drawn, table),
        **costs(drawn, table),
    }
    fields |= chosen
    return preset("id3", kind, **{**fields, **switches(drawn, table, fields["criterion"]), **chosen})


def switches(drawn: Choices, table: Table, criterion: str) -> dict[str, Any]:
    """Draw the fields that apply only to a classification, or only to a regression."""
    if table.target.kind == "number":
        return {
            "min_sd_fraction": drawn.one_of([None, None, 0.2]),
            "min_variance_fraction": drawn.one_of([None, None, 0.1]),
        }
    return {
        "window": drawn.one_of([None, "c45"]),
        "mdl_correction": criterion in ENTROPIES and drawn.one_of([False, True]),
        "average_gain_guard": drawn.one_of([False, True]),
        "collapse": drawn.one_of([False, True]),
        "chi_square_alpha": drawn.one_of([None, None, None, 0.3]),
        "class_weight": drawn.one_of([None, None, None, {0: 2.0, 1: 0.5}, {0: 0.0, 1: 1.0}]),
    }


def costs(drawn: Choices, table: Table) -> dict[str, Any]:
    """No costs, or one of the cost functions with a cost for the first column and for the last."""
    function = drawn.one_of([None, None, *COST_FUNCTIONS])
    if function is None:
        return {}
    first = drawn.one_of([0.0, 4.0]) if function == "nunez" else 4.0
    return {
        "cost_function": function,
        "attribute_costs": {len(table.columns) - 1: 0.5, 0: first},
        "cost_weight": drawn.one_of([0.0, 0.5, 1.0]),
    }


def experts(drawn: Choices, table: Table) -> Mapping[int, tuple[float, ...]] | None:
    """Draw None, or the field ``cut_points`` with thresholds for one numeric column."""
    numeric = [place for place, column in enumerate(table.columns) if column.kind == "numeric"]
    if not numeric or drawn.below(3):
        return None
    return {drawn.one_of(numeric): (-1.5, 0.5, 0.75, 4.0)}


def weighs_something(table: Table, config: Mapping[str, Any]) -> bool:
    """Whether class weights leave a row to learn from."""
    factors = config["class_weight"] or {}
    pairs = zip(table.weights, table.target.values, strict=True)
    return any(weight * factors.get(int(value), 1.0) > 0 for weight, value in pairs)


@st.composite
def tables_of_substitutes(draw: st.DrawFn, *, kind: str) -> Table:
    """Draw a table whose columns nearly agree, so that one column may be a surrogate of another."""
    drawn = draw(choices(6 + 6 * 24))
    n_rows = 8 + drawn.below(17)
    hidden = drawn.some_of(range(4), n_rows)
    makers = {"numeric": float, "ordinal": int, "nominal": lambda value: (3 - value) % 5}
    columns = []
    for _ in range(2 + drawn.below(3)):
        own = drawn.one_of(["numeric", "nominal", "ordinal"])
        astray = drawn.some_of([None, 0, 0, 0, 0, 0, 1], n_rows)
        cells = [None if a is None else makers[own]((h + a) % 4) for h, a in zip(hidden, astray, strict=True)]
        columns.append(Column(own, tuple(cells), 0 if own == "numeric" else 5))
    truth = tuple(float(value > 1) for value in hidden) if kind == "class" else tuple(map(float, hidden))
    target = Target(kind, truth, 2 if kind == "class" else 0)
    return Table(tuple(columns), target, tuple(drawn.some_of([0.5, 1.0, 1.0, 2.0], n_rows)))


@st.composite
def tables_of_many_categories(draw: st.DrawFn, *, kind: str) -> Table:
    """A table with one column of thirteen categories, most of which occur."""
    drawn = draw(choices(2 + 4 * 40))
    n_rows = 13 + drawn.below(28)
    codes = [*range(13), *drawn.some_of(range(13), n_rows - 13)]
    holes = drawn.some_of([False] * 7 + [True], n_rows)
    column = Column("nominal", tuple(None if hole else code for code, hole in zip(codes, holes, strict=True)), 13)
    target = _target(drawn, n_rows, kind, 2 + drawn.below(3))
    return Table((column,), target, tuple(drawn.some_of([0.5, 1.0, 1.0, 2.0], n_rows)))
