"""The published M5P figures: every entry of the reference folder, so that a new data set needs no new line."""

import functools
import math
from typing import Any

import pytest

from espalier import Holdout, dataset_from_csv, dataset_from_rows, evaluate, train
from tests.core.model_trees import leaf_equations, reference_data
from tests.factories import REFERENCE, needs_reference
from tests.reference.test_model_tree_twin import FOLDED, PARTS, agree, printed_models, table_of
from tests.reference.test_twin_matches_published_figures import Entry, experiment

pytestmark = needs_reference

LINEAR_PARTS = [part for part in PARTS if "-R" not in part.values[1]["command"].split()]
IRIS = REFERENCE / "data" / "iris.csv"

SWITCHES: dict[str, dict[str, Any]] = {
    "-N": {"pruning": None},
    "-U": {"smoothing": None},
    "-R": {"leaf": "constant"},
}


@functools.cache
def trained(name: str, command: str, test_rows: tuple[int, ...] = ()) -> Any:
    held = Holdout(rows=test_rows) if test_rows else None
    return train(reference_data(name), "m5", holdout=held, **fields_of(command))


def fields_of(command: str) -> dict[str, Any]:
    """The fields of an M5P command line."""
    options = command.split()
    fields = {name: value for switch in SWITCHES if switch in options for name, value in SWITCHES[switch].items()}
    return fields | ({"min_weight_split": float(options[options.index("-M") + 1])} if "-M" in options else {})


def part(name: str, entry: Entry, on: str) -> tuple[Any, Entry]:
    """The model of all rows or of those not held back, and its figures."""
    if on == "train":
        return trained(name, entry["command"]), entry
    return trained(name, entry["command"], experiment(name).test_rows), entry["holdout"]


@pytest.mark.parametrize(("name", "entry", "on"), PARTS)
def test_sizes_and_errors_are_those_of_m5p(name: str, entry: Entry, on: str) -> None:
    model, figures = part(name, entry, on)
    ours, theirs = (
        (model.training.train, entry["train"]) if on == "train" else (model.training.held_out, entry["holdout"])
    )
    assert model.tree.n_leaves == figures["measureNumRules"]
    assert (ours["rmse"], ours["mae"]) == pytest.approx((theirs["rmse"], theirs["mae"]), rel=1e-9)


@pytest.mark.parametrize(("name", "entry", "on"), LINEAR_PARTS)
def test_every_printed_linear_model_is_ours_to_the_printed_digits(name: str, entry: Entry, on: str) -> None:
    model, figures = part(name, entry, on)
    theirs = printed_models(figures["tree"], table_of(name))
    ours = leaf_equations(model)
    assert theirs
    assert [number for number, its in theirs.items() if not agree(ours[number - 1], its)] == []


@pytest.mark.parametrize(("name", "entry"), FOLDED)
def test_ten_folds_give_the_published_error(name: str, entry: Entry) -> None:
    split, figures = experiment(name), entry["cv10_seed1"]
    data = reference_data(name)
    squares = 0.0
    for fold in range(split.n_folds):
        held = data.take(split.rows_of(fold))
        model = train(data.take(split.rows_without(fold)), "m5", **fields_of(entry["command"]))
        squares += (evaluate(model, held).rmse or 0.0) ** 2 * held.n_rows
    assert math.sqrt(squares / data.n_rows) == pytest.approx(figures["rmse"], rel=1e-8)


@pytest.mark.skipif(not IRIS.exists(), reason="the printed models are those of iris")
def test_collinear_columns_are_left_out_as_m5p_does() -> None:
    # Weka 3.9.7, M5P -U: petallength goes at the root, where its coefficient exceeds 1.5 deviations of the target.
    lengths = dataset_from_csv(IRIS, target="sepallength", task="regression")
    sepal_width, petal_length, petal_width = ((place, None) for place in range(3))
    smaller, larger = leaf_equations(train(lengths, "m5", smoothing=None))
    assert smaller == pytest.approx({sepal_width: 0.6444, petal_length: 0.4427, None: 2.1569}, abs=5e-5)
    printed = {sepal_width: 0.4597, petal_length: 0.8245, petal_width: -0.583, None: 1.8703}
    assert larger == pytest.approx(printed, abs=5e-5)


def test_a_cut_that_gains_nothing_is_taken_as_m5p_does() -> None:
    # Weka 3.9.7, M5P -N -U: x0 <= 0.5 above x1 <= 0.5 on either side, and four leaves of 0 %.
    rows = [{"x0": float(i > 3), "x1": float(i % 4 > 1), "y": 10.0 * ((i > 3) != (i % 4 > 1))} for i in range(8)]
    either = dataset_from_rows(rows, target="y", task="regression")
    tree = train(either, "m5", pruning=None, smoothing=None).tree
    assert [attribute for attribute in tree.feature.tolist() if attribute >= 0] == [0, 1, 1]
    assert tree.stats[:, 2].tolist() == [200.0, 100.0, 0.0, 0.0, 100.0, 0.0, 0.0]


@pytest.mark.parametrize("step", [1, -1])
def test_of_gains_that_differ_by_less_than_a_millionth_the_first_wins_as_in_m5p(step: int) -> None:
    # Weka 3.9.7, M5P -N -U -M 6: x0 in both orders, though the gains differ by 6.2e-7.
    columns = [(0, 0, 1, 1, 1, 1), (0, 1, 0, 0, 1, 0)][::step]
    cells = zip(*columns, (3, 14, 9, 24, 4, 17), strict=True)
    rows = [{"x0": float(x0), "x1": float(x1), "y": float(y)} for x0, x1, y in cells]
    near = dataset_from_rows(rows, target="y", task="regression")
    tree = train(near, "m5", pruning=None, min_weight_split=6.0).tree
    assert tree.feature[0] == 0
