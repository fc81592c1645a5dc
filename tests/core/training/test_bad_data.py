"""Data that cannot be learned from, and data that hardly can: a clear error by its place, or the documented answer."""

import math
import sys
from typing import Any

import numpy as np
import pytest

import espalier
from espalier import (
    ConfigError,
    DataError,
    Dataset,
    InvalidInput,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
    explain,
    predict,
    profile,
    train,
)


def first_fault(call: Any) -> tuple[str, str, str]:
    with pytest.raises(InvalidInput) as caught:
        call()
    fault = caught.value.faults[0]
    return fault.path, fault.code, fault.message


def towns(**declared: Any) -> Dataset:
    cells = {"town": ["Ulm", "Ulm", "Ulm", "Bonn", "Bonn"], "y": ["p", "p", "p", "q", "q"]}
    return dataset_from_columns(cells, target="y", **declared)


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-Infinity", "+inf"])
def test_a_number_to_be_learned_that_is_none_is_refused_by_its_row(text: str) -> None:
    path, code, message = first_fault(lambda: dataset_from_csv(f"x,y\n1,2.5\n2,{text}\n3,4.5\n", target="y"))
    assert (path, code) == ("/y", "wrong_type")
    assert "must be a finite number" in message
    assert "row 1" in message


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_the_same_from_python(value: float) -> None:
    path, code, message = first_fault(lambda: dataset_from_columns({"x": [1, 2], "y": [0.5, value]}, target="y"))
    assert (path, code) == ("/y", "wrong_type")
    assert "must be a finite number" in message


def test_nan_to_be_learned_from_python_is_a_missing_value() -> None:
    path, code, message = first_fault(lambda: dataset_from_columns({"x": [1, 2], "y": [0.5, math.nan]}, target="y"))
    assert (path, code) == ("/y", "missing")
    assert "row 1" in message


def test_a_class_may_be_called_nan() -> None:
    declared = {"columns": [{"name": "y", "kind": "nominal"}]}
    for data in (
        dataset_from_csv("x,y\n1,2.5\n2,nan\n", target="y", schema=declared),
        dataset_from_csv("x,y\n1,2.5\n2,nan\n", target="y", task="classification"),
        dataset_from_csv("x,y\n1,nan\n2,inf\n", target="y"),
        dataset_from_csv("x,y\n1,nan\n2,inf\n3,1.5\n4,other\n", target="y"),
    ):
        assert "nan" in data.schema.classes


def test_nan_may_be_declared_as_missing_and_a_target_must_not_be_missing() -> None:
    table = "x,y\n1,2.5\nnan,3.5\n3,{}\n"
    data = dataset_from_csv(table.format("4.5"), target="y", missing_values=["nan"])
    assert (str(data.schema.features[0].kind), data.rows()[1]["x"]) == ("numeric", None)
    path, code, _ = first_fault(lambda: dataset_from_csv(table.format("nan"), target="y", missing_values=["nan"]))
    assert (path, code) == ("/y", "missing")


@pytest.mark.parametrize("preset", espalier.PRESETS)
def test_rows_of_one_class_are_refused(preset: str) -> None:
    data = dataset_from_csv("t,y\nu,a\nv,a\n", target="y")
    with pytest.raises(ConfigError) as caught:
        train(data, preset)
    assert ("/target", "one_class") in {(fault.path, fault.code) for fault in caught.value.faults}


def test_rows_of_one_class_among_several_that_are_declared_make_one_leaf() -> None:
    declared = {"columns": [{"name": "y", "kind": "nominal", "categories": ["a", "b"]}]}
    model = train(dataset_from_csv("t,y\nu,a\nv,a\n", target="y", schema=declared), "cart")
    (answer,) = predict(model, [{"t": "u"}])
    assert (model.tree.n_nodes, answer.label, answer.distribution) == (1, "a", (("a", 1.0), ("b", 0.0)))


@pytest.mark.parametrize(
    ("weights", "code"),
    [([0, 0], "no_weight"), ([-1, 1], "negative"), (["", 1], "missing"), (["inf", 1], "wrong_type")],
)
def test_weights_that_weigh_nothing_less_than_nothing_or_are_none_are_refused(weights: list[Any], code: str) -> None:
    lines = "".join(f"{n},{weight},{'ab'[n]}\n" for n, weight in enumerate(weights))
    path, found, _ = first_fault(lambda: dataset_from_csv("x,w,y\n" + lines, target="y", weight="w"))
    assert path == "/w"
    assert found == code


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("attribute_costs", {"country": 1.0}, "/attribute_costs/country"),
        ("attribute_costs", {"y": 1.0}, "/attribute_costs/y"),
        ("cut_points", {"country": [1.0]}, "/cut_points/country"),
        ("class_weight", {"r": 2.0}, "/class_weight/r"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(field: str, value: Any, path: str) -> None:
    found, _, message = first_fault(lambda: train(towns(), "cart", cost_function="nunez", **{field: value}))
    if field != "attribute_costs":  # costs are asked for besides
        found, _, message = first_fault(lambda: train(towns(), "cart", **{field: value}))
    assert found == path
    assert "town" in message or "p, q" in message


@pytest.mark.parametrize("weights", [{"p": 0, "q": 0}, {"p": 1e308}, {"p": 1e-308}])
def test_class_weights_that_leave_no_weight_or_too_much_are_refused(weights: dict[str, float]) -> None:
    assert first_fault(lambda: train(towns(), "cart", class_weight=weights))[0] == "/class_weight"


@pytest.mark.parametrize("preset", ["cart", "c45", "reptree"])
def test_a_category_that_occurs_in_the_holdout_only_is_answered_and_flagged(preset: str) -> None:
    other = dataset_from_columns({"town": ["Ulm", "Rom"], "y": ["p", "p"]}, like=towns().schema)
    model = train(towns(), preset, holdout=other, min_weight_leaf=1.0, pruning=None)
    assert model.schema.attributes[0].categories == ("Bonn", "Ulm")
    assert model.training.held_out is not None
    assert model.training.held_out["n_rows"] == 2
    (explained,) = explain(model, [{"town": "Rom"}])
    assert explained.prediction.row.unseen == ("town",)
    # Most rows are from Ulm, so are most of class p: by branch and by share.
    assert explained.prediction.label == "p"


def test_a_class_that_occurs_in_the_holdout_only_is_an_error_there() -> None:
    other = dataset_from_columns({"town": ["Ulm", "Ulm"], "y": ["p", "r"]}, like=towns().schema)
    model = train(towns(), "cart", holdout=other)
    assert model.schema.classes == ("p", "q")
    assert model.training.held_out == {"n_rows": 2, "errors": 1.0, "accuracy": 0.5}


@pytest.mark.parametrize(
    "call",
    [
        lambda: dataset_from_csv("a,b,c,d,e,f,g,h,i,j\n", target="j"),
        lambda: dataset_from_columns({name: [] for name in "abcdefghij"}, target="j"),
        lambda: dataset_from_rows([], target="j"),
    ],
)
def test_ten_columns_and_no_rows_are_refused(call: Any) -> None:
    path, code, message = first_fault(call)
    assert (path, code) == ("", "empty")
    assert "no rows" in message or message == "there are no columns"


@pytest.mark.parametrize("preset", ["cart", "m5"])
def test_one_row_of_a_number_is_a_leaf_of_it(preset: str) -> None:
    model = train(dataset_from_csv("x,y\n1,2.5\n", target="y"), preset)
    assert (model.tree.n_nodes, predict(model, [{"x": 7}])[0].value) == (1, 2.5)


def test_one_row_is_too_few_to_set_any_aside() -> None:
    data = dataset_from_csv("x,y\n1,2.5\n", target="y")
    path, _, message = first_fault(lambda: train(data, "reptree"))
    assert path == "/holdout"
    assert "sets aside 0 of 1 rows" in message


@pytest.mark.parametrize(
    ("preset", "table", "path", "advice"),
    [
        ("id3", "x,y\n1,a\n2,b\n", "/numeric", "use the preset c45"),
        ("id3", "t,y\nu,1.5\nv,2.5\n", "/criterion", "use the preset cart"),
        ("c45", "x,y\n1,1.5\n2,2.5\n", "/criterion", "use the preset cart"),
        ("j48", "x,y\n1,1.5\n2,2.5\n", "/criterion", "use the preset cart"),
        ("m5", "x,y\n1,a\n2,b\n", "/criterion", "use the preset cart"),
    ],
)
def test_a_preset_that_cannot_take_the_data_says_so_once_and_which_can(
    preset: str, table: str, path: str, advice: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        train(dataset_from_csv(table, target="y"), preset)
    (fault,) = caught.value.faults
    assert fault.path == path
    assert advice in fault.message


def test_what_was_asked_for_besides_such_a_preset_is_told_too() -> None:
    with pytest.raises(ConfigError) as caught:
        train(dataset_from_csv("x,y\n1,1.5\n2,2.5\n", target="y"), "c45", class_weight="balanced", collapse=True)
    assert [fault.path for fault in caught.value.faults] == ["/criterion", "/class_weight"]


@pytest.mark.parametrize("preset", ["cart", "c45", "reptree"])
def test_numbers_at_the_ends_of_the_range_are_cut(preset: str) -> None:
    cells = {"x": [-1.7e308, -5e-324, 0.0, 5e-324, 1.7e308], "y": ["a", "a", "b", "b", "a"]}
    data = dataset_from_columns(cells, target="y")
    model = train(data, preset, min_weight_leaf=1.0, pruning=None, window=None, mdl_correction=False)
    assert [answer.label for answer in predict(model, data.rows())] == cells["y"]


LARGEST = sys.float_info.max


@pytest.mark.parametrize("weight", [1e-9, 1.0, 7.5])
@pytest.mark.parametrize(
    ("known", "mean"),
    [((LARGEST,) * 3, LARGEST), ((LARGEST, LARGEST, -LARGEST, -LARGEST), 0.0), ((1.5e308, 0.5e308), 1e308)],
)
def test_a_mean_that_stands_for_missing_values_is_finite_where_the_sum_is_not(
    known: tuple[float, ...], mean: float, weight: float
) -> None:
    n = len(known) + 1
    cells = {"x": [*known, None], "w": [weight] * n, "y": [float(place) for place in range(n)]}
    model = train(
        dataset_from_columns(cells, target="y", weight="w", task="regression"), "cart", missing="imputed", max_depth=0
    )
    assert model.preparation.imputed == (pytest.approx(mean, rel=1e-15, abs=0.0),)


@pytest.mark.parametrize("scale", [1e-99, 1e-12, 1e100])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_targets_of_any_size_are_learned(scale: float, criterion: str) -> None:
    cells = {"x": list(range(20)), "y": [scale * (n > 9) for n in range(20)]}
    model = train(dataset_from_columns(cells, target="y", task="regression"), "cart", criterion=criterion)
    assert [answer.value for answer in predict(model, [{"x": 3}, {"x": 15}])] == pytest.approx(
        [0.0, scale], rel=1e-9, abs=0.0
    )


def test_targets_whose_squares_underflow_are_refused() -> None:
    """With a step of 1e-170, all thresholds would gain 0: the first one would be taken, with a deviation of 0."""
    for step, is_legal in ((0.0, True), (1e-99, True), (1e-170, False), (1e-300, False)):
        cells = {"x": [1, 2, 3, 4], "y": [step * n for n in (1, 1, 2, 2)]}
        if is_legal:
            dataset_from_columns(cells, target="y", task="regression")
            continue
        where, code, message = first_fault(
            lambda given=cells: dataset_from_columns(given, target="y", task="regression")
        )
        assert (where, code) == ("/y", "too_close")
        assert "must differ by 1e-100 or more" in message


def test_only_rows_that_are_learned_from_must_be_fit_to_be_learned_from() -> None:
    cells = {"x": [1.0, 2.0, 3.0, 4.0], "w": [1, 1, 1, 0], "y": [0.0, 1.0, 2.0, -5.0]}
    data = dataset_from_columns(cells, target="y", weight="w", task="regression")
    without = dataset_from_columns(
        {name: each[:3] for name, each in cells.items()}, target="y", task="regression", weight="w"
    )
    answers = [predict(train(each, "cart", criterion="poisson"), [{"x": 3}])[0].value for each in (data, without)]
    assert answers == [2.0, 2.0]
    # The row of a hold-out is not learned from, either.
    unweighted = dataset_from_columns(cells, target="y", ignore=["w"], task="regression")
    assert train(unweighted, "cart", criterion="poisson", holdout={"rows": [3]}).training.n_training_rows == 3
    with pytest.raises(DataError, match="at least 0 for the criterion poisson"):
        train(unweighted, "cart", criterion="poisson")
    columns = tuple(np.array(each, dtype=np.float64) for each in cells.values())
    columns[0][3] = np.inf
    infinite = Dataset(data.schema, columns)
    assert predict(train(infinite, "cart"), [{"x": 3}])[0].value == 2.0


@pytest.mark.parametrize(
    ("column", "cells", "code"),
    [
        ("y", [1e200, 1e200, -1e200, 2e200], "too_large"),
        ("y", [1e-170, 2e-170, 1e-170, 5e-170], "too_close"),
        ("y", [math.inf, 1.0, 2.0, 3.0], "too_large"),
        ("w", [1e-200] * 4, "out_of_range"),
        ("w", [1e300] * 4, "out_of_range"),
        ("w", [math.nan, 1.0, 1.0, 1.0], "missing"),
    ],
)
def test_numbers_beyond_the_limits_are_refused_in_data_sets_made_of_arrays(
    column: str, cells: list[float], code: str
) -> None:
    legal = dataset_from_columns({"x": [1, 2, 3, 4], "y": [0.5, 1, 2, 3], "w": [1] * 4}, target="y", weight="w")
    columns = {"x": legal.columns[0], "y": legal.columns[1], "w": legal.columns[2], column: np.array(cells)}
    path, found, _ = first_fault(lambda: train(Dataset(legal.schema, tuple(columns.values())), "cart"))
    assert (path, found) == (f"/{column}", code)


def test_class_weights_of_numbers_are_refused_once() -> None:
    data = dataset_from_columns({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]}, target="y")
    with pytest.raises(ConfigError) as caught:
        train(data, "cart", class_weight={"a": 2})
    assert [(fault.path, fault.message) for fault in caught.value.faults] == [
        ("/class_weight", "must be null: the target has no classes")
    ]


def test_a_profile_of_what_says_nothing_is_refused_or_says_nothing() -> None:
    data = dataset_from_csv("x,w,y\n1,0,a\n2,1,a\n3,1,a\n", target="y", weight="w")
    (only,) = profile(data).classes
    assert (only.share, math.copysign(1, only.self_information or 0.0), profile(data).entropy) == (1.0, 1.0, 0.0)
    assert first_fault(lambda: profile(dataset_from_csv("x,y\n1,2\n")))[:2] == ("/target", "required")
    with pytest.raises(DataError, match="no row has a weight above 0"):
        profile(data.take([0]))
