"""What pruning takes does not hang on the unit of the target, and figures without rows count what the leaves did."""

import numpy as np
import pytest

import espalier
from espalier import Dataset, Feature, FeatureKind, Holdout, Role, Schema

PRUNINGS = (
    ("reduced_error", {"order": "bottom_up"}),
    ("reduced_error", {"order": "greedy"}),
    ("cost_complexity", {"select": "validation"}),
    ("cost_complexity", {"select": "cv", "folds": 5}),
)
ROWS = np.random.default_rng(11)
X = ROWS.standard_normal((120, 2))
Y = X[:, 0] + np.abs(X[:, 1]) + ROWS.standard_normal(120) / 2


def scaled(unit: float) -> Dataset:
    features = (Feature("a", FeatureKind.NUMERIC), Feature("b", FeatureKind.NUMERIC))
    schema = Schema((*features, Feature("y", FeatureKind.NUMERIC, Role.TARGET)))
    return Dataset(schema, (X[:, 0].copy(), X[:, 1].copy(), Y * unit))


@pytest.mark.parametrize(("method", "parameters"), PRUNINGS)
# Powers of two: a product with one is exact, so that all sums are the same but for the unit.
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_a_target_in_another_unit_is_pruned_alike(unit: float, method: str, parameters: dict[str, object]) -> None:
    left = []
    for each in (1.0, unit):
        data = scaled(each)
        model = espalier.train(data, "cart", holdout=Holdout(fraction=0.3, seed=1))
        left.append(espalier.prune(model, method, dataset=data, **parameters).model.tree)
    assert left[0].n_leaves > 1
    assert np.array_equal(left[0].parent, left[1].parent)
    assert np.array_equal(left[0].threshold, left[1].threshold, equal_nan=True)


@pytest.mark.parametrize("select", ["cv", "validation"])
# With the first and the last unit, the fourth powers of the errors are beyond the range of a double.
@pytest.mark.parametrize("unit", [2.0**-300, 2.0**300])
def test_the_standard_error_of_large_and_of_small_targets_is_that_of_usual_ones(unit: float, select: str) -> None:
    shown = []
    for each in (1.0, unit):
        data = scaled(each)
        model = espalier.train(data, "cart", holdout=Holdout(fraction=0.3, seed=1))
        found = espalier.prune(model, "cost_complexity", dataset=data, select=select, rule="one_se", folds=5)
        table = found.trace["table"]
        shown.append([(line["leaves"], line["selected"], line["error"] / each / each) for line in table])
        shown[-1] += [line["standard_error"] / each / each for line in table]
    assert shown[0] == shown[1]
    assert shown[0][-1] > 0


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**40])
def test_rules_stand_in_the_same_order_whatever_the_unit_is(unit: float) -> None:
    order = []
    for each in (1.0, unit):
        data = scaled(each)
        model = espalier.train(data, "cart", holdout=Holdout(fraction=0.3, seed=1))
        found = espalier.prune(model, "rules", dataset=data)
        order.append([rule["from_leaves"] for rule in found.trace["rules"]])
    assert len(order[0]) > 5
    assert order[0] == order[1]


@pytest.mark.parametrize("missing", ["fractional", "direction"])
def test_where_a_row_is_in_several_leaves_they_do_not_say_how_many_answers_are_wrong(missing: str) -> None:
    told = missing == "direction"
    listed = [{"x": n % 11 if n % 7 else None, "z": n % 5, "y": "ab"[(n % 11 > 4) ^ (n % 9 == 0)]} for n in range(90)]
    data = espalier.dataset_from_rows(listed, target="y")
    model = espalier.train(data, "cart", missing=missing)
    without = espalier.prune(model, "cost_complexity", alpha=0.0).model
    figures = {"n_rows", "errors", "accuracy"} if told else {"n_rows"}
    assert set(without.training.train) == figures
    if told:
        assert without.training.train["errors"] == espalier.evaluate(without, data).errors


@pytest.mark.parametrize("missing", ["fractional", "spread"])
def test_parts_of_rows_that_add_up_to_whole_ones_are_parts_all_the_same(missing: str) -> None:
    answers = {1: "aaab", 2: "bbba", None: "ab"}
    listed = [{"x": x, "z": None, "y": y} for x, classes in answers.items() for y in classes]
    data = espalier.dataset_from_rows(listed, target="y", schema={"columns": [{"name": "z", "kind": "numeric"}]})
    model = espalier.train(data, "cart", missing=missing)
    assert model.tree.weight.tolist() == [10, 5, 5]  # two rows of which a half is in each leaf
    assert model.training.divided
    kept = espalier.from_json(espalier.to_json(model))
    for each in (model, kept):
        assert set(espalier.prune(each, "cost_complexity", alpha=0.0).model.training.train) == {"n_rows"}


def test_holes_in_what_no_node_asks_for_part_no_row() -> None:
    listed = [{"x": x, "z": [None, 1][x > 8], "y": "ab"[x > 4]} for x in range(10)]
    data = espalier.dataset_from_rows(listed, target="y")
    model = espalier.train(data, "cart", missing="fractional")
    assert not model.training.divided
    assert espalier.prune(model, "cost_complexity", alpha=0.0).model.training.train == model.training.train


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_leaves_that_answer_with_medians_do_not_tell_how_far_they_miss(criterion: str) -> None:
    listed = [{"x": x, "y": x * x % 37 + (x > 20) * 50} for x in range(60)]
    data = espalier.dataset_from_rows(listed, target="y", task="regression")
    model = espalier.train(data, "cart", criterion=criterion, max_depth=2)
    without = espalier.prune(model, "cost_complexity", alpha=0.0, risk="error").model.training.train
    if criterion == "absolute_error":
        assert without == {"n_rows": 60}
    else:
        assert without["rmse"] == pytest.approx(espalier.evaluate(model, data).rmse)


def test_an_old_record_does_not_say_that_no_row_was_divided() -> None:
    listed = [{"x": x if x % 5 else None, "y": "ab"[(x > 20) ^ (x % 7 == 0)]} for x in range(40)]
    model = espalier.train(espalier.dataset_from_rows(listed, target="y"), "c45", pruning=None)
    document = espalier.to_document(model)
    assert document["training"].pop("divided") is True
    old = espalier.from_document(document)
    child = espalier.prune(old, "cost_complexity", alpha=0.0).model
    assert child.training.train == {"n_rows": 40}
    assert espalier.prune(child, "cost_complexity", alpha=0.0).model.training.train == {"n_rows": 40}


@pytest.mark.parametrize("weight", [None, "w"])
def test_figures_without_the_rows_are_not_those_of_leaves_that_count_others_too(weight: str | None) -> None:
    rows = [{"x": float(place), "w": 2, "y": "ab"[place * place % 7 > 2]} for place in range(90)]
    data = espalier.dataset_from_rows(rows, target="y", weight=weight)
    model = espalier.train(data, "reptree", holdout=Holdout(fraction=1 / 3, seed=2))
    without = espalier.prune(model, "cost_complexity", alpha=0.0).model.training.train
    assert without == {"n_rows": 60}  # backfit has added those that were held out


@pytest.mark.parametrize("preset", ["id3", "c45", "cart", "reptree"])
@pytest.mark.parametrize(
    "by",
    [
        {},
        {"method": "pessimistic", "raising": True},
        {"method": "pessimistic", "raising": False},
        {"method": "cost_complexity", "alpha": 0.002},
        {"method": "reduced_error"},
        {"method": "reduced_error", "backfit": True},
        {"method": "rules"},
    ],
)
@pytest.mark.parametrize("unit", [1.0, 0.3])
def test_training_figures_are_those_of_the_answers(preset: str, by: dict[str, object], unit: float) -> None:
    """They are read off the leaves where these have counted every row once: it is the same as to answer each."""
    draw = np.random.default_rng(5)
    listed = [
        {"u": "abcd"[u], "v": "abcd"[v], "y": "pqr"[(u * v + noise) % 3], "weight": unit * (1 + noise)}
        for u, v, noise in draw.integers(0, (4, 4, 3), (400, 3)).tolist()
    ]
    data = espalier.dataset_from_rows(listed, target="y", weight="weight")
    holdout = Holdout(fraction=0.3, seed=1)
    kept = data.take(np.setdiff1d(np.arange(400), espalier.held_out_rows(holdout, data)))
    models = [espalier.train(data, preset, holdout=holdout, pruning=by or None)]
    if by:
        grown = espalier.train(data, preset, holdout=holdout, pruning=None)
        params = {name: value for name, value in by.items() if name != "method"}
        models.append(espalier.prune(grown, str(by["method"]), dataset=data, **params).model)
    for model in models:
        found = espalier.evaluate(model, kept)
        assert model.training.train["n_rows"] == kept.n_rows
        assert model.training.train["errors"] == pytest.approx(found.errors)
        assert model.training.train["accuracy"] == pytest.approx(found.accuracy)
