"""Small tables full of ties, holes and repetitions, and any configuration that may be asked of them, as hypothesis
draws them.
"""

from collections.abc import Mapping
from typing import Any

from hypothesis import assume, strategies as st

from tests.reference import scores
from tests.reference.presets import preset
from tests.reference.table import Column, Table, Target

DYADIC = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 1.0, 2.0])
ANY_WEIGHT = st.floats(0.125, 8.0)
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
    weights: st.SearchStrategy[float] = DYADIC,
    most_rows: int = 24,
    columns: tuple[str, ...] = ("numeric", "numeric", "nominal", "nominal", "ordinal"),
) -> Table:
    """A table of at most `most_rows` rows: one to four of `columns`, of few values, a target of one kind."""
    n_rows = draw(st.integers(1, most_rows))
    if kind == "class":
        k = draw(st.sampled_from(classes))
        target = Target("class", tuple(draw(exactly(n_rows, st.integers(0, k - 1)))), k)
    else:
        target = Target("number", tuple(draw(exactly(n_rows, st.sampled_from(TARGETS)))), 0)
    kinds = draw(st.lists(st.sampled_from(columns), min_size=1, max_size=4))
    made = tuple(draw(columns_of(n_rows, each, holes=holes)) for each in kinds)
    given = draw(exactly(n_rows, weights))
    assume(any(given))
    return Table(made, target, tuple(given))


@st.composite
def columns_of(draw: st.DrawFn, n_rows: int, kind: str, *, holes: bool) -> Column:
    k = 0 if kind == "numeric" else draw(st.sampled_from([1, 2, 3, 5, 13]))
    values = st.sampled_from(NUMBERS) if kind == "numeric" else st.integers(0, k - 1)
    cell = st.one_of(values, values, values, st.none()) if holes else values
    return Column(kind, tuple(draw(exactly(n_rows, cell))), k)


def exactly(n_rows: int, cell: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(cell, min_size=n_rows, max_size=n_rows)


def nominals_of(table: Table) -> tuple[str, ...]:
    """The nominal splits that a target allows: categories have a mean response for two classes, or for numbers."""
    return NOMINALS if table.target.k <= 2 else NOMINALS[:-1]


@st.composite
def configs(draw: st.DrawFn, table: Table, **chosen: Any) -> dict[str, Any]:
    """Any combination of switches that the product allows for such a table; those of `chosen` are taken as they are."""
    kind = table.target.kind
    fields: dict[str, Any] = {
        "criterion": draw(st.sampled_from(CRITERIA[kind])),
        "nominal": draw(st.sampled_from(nominals_of(table))),
        "numeric": draw(st.sampled_from(["best", *NUMERICS])),
        "threshold": draw(st.sampled_from(["midpoint", "observed"])),
        "missing": draw(st.sampled_from(STRATEGIES)),
        "max_surrogates": draw(st.integers(0, 3)),
        "max_depth": draw(st.sampled_from([None, None, None, 0, 1, 3])),
        "max_leaf_nodes": draw(st.sampled_from([None, None, 2, 5])),
        "min_weight_split": draw(st.sampled_from([None, None, 3.0])),
        "min_weight_leaf": draw(st.sampled_from([None, None, 1.0, 2.0])),
        "leaf_weight_rule": draw(st.sampled_from(["candidates", "candidates", "winner"])),
        "min_impurity_decrease": draw(st.sampled_from([None, 0.0, 0.0, 0.02])),
        "cut_points": draw(experts(table)),
        **draw(costs(table)),
    }
    fields |= chosen
    return preset("id3", kind, **{**fields, **draw(switches(table, fields["criterion"])), **chosen})


@st.composite
def switches(draw: st.DrawFn, table: Table, criterion: str) -> dict[str, Any]:
    """What is asked of classes alone, or of numbers alone."""
    if table.target.kind == "number":
        return {
            "min_sd_fraction": draw(st.sampled_from([None, None, 0.2])),
            "min_variance_fraction": draw(st.sampled_from([None, None, 0.1])),
        }
    return {
        "window": draw(st.sampled_from([None, "c45"])),
        "mdl_correction": criterion in ENTROPIES and draw(st.booleans()),
        "average_gain_guard": draw(st.booleans()),
        "collapse": draw(st.booleans()),
        "chi_square_alpha": draw(st.sampled_from([None, None, None, 0.3])),
        "class_weight": draw(st.sampled_from([None, None, None, {0: 2.0, 1: 0.5}, {0: 0.0, 1: 1.0}])),
    }


@st.composite
def costs(draw: st.DrawFn, table: Table) -> dict[str, Any]:
    """No costs, or one of the cost functions with a cost for the first column and for the last."""
    function = draw(st.sampled_from([None, None, *COST_FUNCTIONS]))
    if function is None:
        return {}
    first = draw(st.sampled_from([0.0, 4.0])) if function == "nunez" else 4.0
    return {
        "cost_function": function,
        "attribute_costs": {len(table.columns) - 1: 0.5, 0: first},
        "cost_weight": draw(st.sampled_from([0.0, 0.5, 1.0])),
    }


@st.composite
def experts(draw: st.DrawFn, table: Table) -> Mapping[int, tuple[float, ...]] | None:
    """No thresholds of an expert, or some for one of the numeric columns."""
    numeric = [place for place, column in enumerate(table.columns) if column.kind == "numeric"]
    if not numeric or draw(st.integers(0, 2)):
        return None
    return {draw(st.sampled_from(numeric)): (-1.5, 0.5, 0.75, 4.0)}


def weighs_something(table: Table, config: Mapping[str, Any]) -> bool:
    """Whether class weights leave a row to learn from."""
    factors = config["class_weight"] or {}
    pairs = zip(table.weights, table.target.values, strict=True)
    return any(weight * factors.get(int(value), 1.0) > 0 for weight, value in pairs)


@st.composite
def tables_of_substitutes(draw: st.DrawFn, *, kind: str) -> Table:
    """A table whose columns say nearly the same: where one is missing, another may stand in."""
    n_rows = draw(st.integers(8, 24))
    hidden = draw(exactly(n_rows, st.integers(0, 3)))
    makers = {"numeric": float, "ordinal": int, "nominal": lambda value: (3 - value) % 5}
    columns = []
    for _ in range(draw(st.integers(2, 4))):
        own = draw(st.sampled_from(["numeric", "nominal", "ordinal"]))
        astray = draw(exactly(n_rows, st.sampled_from([None, 0, 0, 0, 0, 0, 1])))
        cells = [None if a is None else makers[own]((h + a) % 4) for h, a in zip(hidden, astray, strict=True)]
        columns.append(Column(own, tuple(cells), 0 if own == "numeric" else 5))
    truth = tuple(float(value > 1) for value in hidden) if kind == "class" else tuple(map(float, hidden))
    target = Target(kind, truth, 2 if kind == "class" else 0)
    return Table(tuple(columns), target, tuple(draw(exactly(n_rows, st.sampled_from([0.5, 1.0, 1.0, 2.0])))))


@st.composite
def tables_of_many_categories(draw: st.DrawFn, *, kind: str) -> Table:
    """A table with one column of thirteen categories, most of which occur."""
    n_rows = draw(st.integers(13, 40))
    codes = [*range(13), *draw(exactly(n_rows - 13, st.integers(0, 12)))]
    holes = draw(exactly(n_rows, st.sampled_from([False] * 7 + [True])))
    column = Column("nominal", tuple(None if hole else code for code, hole in zip(codes, holes, strict=True)), 13)
    k = draw(st.integers(2, 4))
    values = st.integers(0, k - 1) if kind == "class" else st.sampled_from(TARGETS)
    target = Target(kind, tuple(draw(exactly(n_rows, values))), k if kind == "class" else 0)
    return Table((column,), target, tuple(draw(exactly(n_rows, st.sampled_from([0.5, 1.0, 1.0, 2.0])))))
