"""The estimators: scikit-learn's own checks, its tools around them, and the same trees as the core grows."""

import json
import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

import espalier
from espalier import TreeClassifier, TreeRegressor
from tests.factories import REFERENCE, needs_reference

LEFT_OUT_BY_SKLEARN = {"check_array_api_input"}
"""Skipped by scikit-learn itself unless SCIPY_ARRAY_API is set in the environment."""


def reference_data(name: str) -> espalier.Dataset:
    folder = REFERENCE / "data"
    schema = json.loads((folder / f"{name}.schema.json").read_bytes())
    return espalier.dataset_from_csv(folder / f"{name}.csv", schema=schema)


def features_and_target(dataset: espalier.Dataset) -> tuple[list[list[Any]], list[Any]]:
    rows = dataset.rows()
    names = [feature.name for feature in dataset.schema.attributes]
    target = dataset.schema.target.name if dataset.schema.target is not None else ""
    return [[row[name] for name in names] for row in rows], [row[target] for row in rows]


def corner(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    inputs = random.normal(size=(n, 3))
    return inputs, ((inputs[:, 0] > 0) & (inputs[:, 1] > 0)).astype(int)


CLASSIFIERS = {
    "cart": TreeClassifier(),
    "c45": TreeClassifier("c45"),
    "j48": TreeClassifier("j48"),
    "reptree": TreeClassifier("reptree"),
    "reptree unpruned": TreeClassifier("reptree", pruning=None),
    "id3 with numbers": TreeClassifier("id3", numeric="best"),
    "information gain": TreeClassifier(criterion="information_gain", max_leaf_nodes=8),
    "majority": TreeClassifier(missing="majority", threshold="observed"),
}
REGRESSORS = {
    "cart": TreeRegressor(),
    "reptree": TreeRegressor("reptree"),
    "reptree unpruned": TreeRegressor("reptree", pruning=None),
    "m5": TreeRegressor("m5"),
    "m5 with sdr": TreeRegressor("m5", criterion="sdr"),
}
WEIGHTS_ARE_NOT_ROWS = {
    "reptree": "the held-out rows of its pruning are drawn: a row of weight 2 is drawn once, two rows are drawn twice",
}
"""Presets that cannot pass `check_sample_weight_equivalence_on_dense_data`: a row of weight 2 is not two rows."""
GROWN_TO_THE_END = {"cart", "reptree unpruned", "id3 with numbers", "information gain", "majority"}
CLASS_WEIGHTS_DO_NOT_LIMIT = (
    "limits on the size of a leaf count rows, not class weights; scikit-learn's trees pass by min_weight_fraction_leaf"
)


@pytest.mark.parametrize(
    ("name", "estimator"),
    [*CLASSIFIERS.items(), *REGRESSORS.items()],
    ids=[*(f"classifier {name}" for name in CLASSIFIERS), *(f"regressor {name}" for name in REGRESSORS)],
)
def test_every_check_of_scikit_learn_passes(name: str, estimator: Any) -> None:
    reason = WEIGHTS_ARE_NOT_ROWS.get(name)
    expected = {} if reason is None else {"check_sample_weight_equivalence_on_dense_data": reason}
    if name in GROWN_TO_THE_END and isinstance(estimator, TreeClassifier):
        expected["check_class_weight_classifiers"] = CLASS_WEIGHTS_DO_NOT_LIMIT

    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)

    assert [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == expected.keys()
    others = {check["check_name"] for check in found if check["status"] not in {"passed", "xfail"}}
    assert others <= LEFT_OUT_BY_SKLEARN


@pytest.mark.parametrize("method", ["apply", "decision_path", "predict", "explain"])
@pytest.mark.parametrize("estimator", [TreeClassifier(), TreeRegressor()], ids=["classifier", "regressor"])
def test_an_estimator_that_is_not_fitted_answers_nothing(estimator: Any, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(estimator, method)([[1.0], [2.0]])


def test_every_preset_is_checked_with_its_defaults_or_refuses_what_the_checks_fit() -> None:
    checked = {estimator.preset for estimator in (*CLASSIFIERS.values(), *REGRESSORS.values())}
    assert checked == set(espalier.PRESETS)

    # The checks fit numbers, and ID3 takes nominal attributes only.
    inputs = [[0.0], [1.0], [0.0], [1.0]]
    with pytest.raises(espalier.EstimatorError, match="as in the preset id3, so every attribute must be nominal"):
        TreeClassifier("id3").fit(inputs, [0, 1, 0, 1])
    assert TreeClassifier("id3", nominal_columns=[0]).fit(inputs, [0, 1, 0, 1]).predict(inputs).tolist() == [0, 1, 0, 1]
    for preset in ("id3", "c45", "j48"):
        with pytest.raises(espalier.EstimatorError, match="the target has numbers"):
            TreeRegressor(preset, numeric="best").fit(inputs, [0.5, 1.5, 0.5, 1.5])
    with pytest.raises(espalier.EstimatorError, match="the target has classes"):
        TreeClassifier("m5").fit(inputs, [0, 1, 0, 1])


@pytest.mark.parametrize("estimator", [TreeClassifier(), TreeRegressor()], ids=repr)
def test_column_names_are_kept_and_compared(estimator: Any) -> None:
    pytest.importorskip("pandas")
    check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


def test_a_grid_search_varies_fields_in_a_pipeline() -> None:
    inputs, y = corner()
    pipeline = Pipeline([("scale", StandardScaler()), ("tree", TreeClassifier())])
    grid = {"tree__max_depth": [1, 4], "tree__criterion": ["preset", "information_gain"], "tree__preset": ["cart"]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(inputs, y, tree__sample_weight=np.ones(len(y)))
    # A corner takes two cuts.
    assert search.best_params_["tree__max_depth"] == 4
    assert search.best_score_ > 0.8
    assert search.predict(inputs).shape == (60,)


def test_a_grid_search_may_vary_the_preset_and_run_in_processes() -> None:
    inputs, y = corner()
    search = GridSearchCV(TreeClassifier(), {"preset": ["cart", "c45"], "max_depth": np.arange(1, 4)}, cv=3, n_jobs=2)
    assert set(search.fit(inputs, y).cv_results_["param_preset"]) == {"cart", "c45"}


def test_every_field_of_the_configuration_is_a_parameter() -> None:
    names = {info.name for info in espalier.field_table(espalier.TrainingConfig)}
    assert names <= set(TreeClassifier().get_params())
    assert names <= set(TreeRegressor().get_params())


def test_a_clone_has_the_same_parameters() -> None:
    estimator = TreeClassifier("c45", max_depth=3, nominal_columns=["a"], class_weight={"p": 2})
    assert clone(estimator).get_params() == estimator.get_params()


def test_a_representation_shows_what_was_changed() -> None:
    assert repr(TreeClassifier("c45", max_depth=3)) == "TreeClassifier(max_depth=3, preset='c45')"


def test_an_unknown_parameter_is_refused_with_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"no parameter 'depth'; it has: .*max_depth"):
        TreeClassifier(depth=3)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        TreeClassifier().set_params(depth=3)


def test_a_value_that_is_not_legal_is_refused_by_its_path_at_fitting() -> None:
    with pytest.raises(espalier.EstimatorError, match="/max_depth: must be a whole number") as refused:
        TreeClassifier(max_depth=-1, criterion="luck").fit(*corner())
    assert {fault.path for fault in refused.value.faults} == {"/max_depth", "/criterion"}


@needs_reference
@pytest.mark.parametrize(("data", "preset"), [("weather_numeric", "c45"), ("drug200", "cart"), ("golf_missing", "c45")])
def test_the_tree_is_the_one_that_the_core_grows(data: str, preset: str) -> None:
    dataset = reference_data(data)
    inputs, y = features_and_target(dataset)
    # The schema's own order of categories decides ties there; here categories are sorted.
    plain = espalier.dataset_from_rows(
        dataset.rows(), target=dataset.schema.target.name if dataset.schema.target else ""
    )
    assert TreeClassifier(preset).fit(inputs, y).model_.tree == espalier.train(plain, preset).tree


@needs_reference
def test_a_missing_value_is_answered_by_several_leaves() -> None:
    inputs, y = features_and_target(reference_data("golf_missing"))
    estimator = TreeClassifier("c45", nominal_columns=[3]).fit(inputs, y)
    assert estimator.classes_.tolist() == ["no", "yes"]
    shares = estimator.predict_proba([["sunny", 70.0, None, "FALSE"], [None, 70.0, 90.0, "FALSE"]])
    # Quinlan (1993), chapter 3: 31/70 and 29/44.
    assert shares[:, 1] == pytest.approx([31 / 70, 29 / 44], abs=1e-9)
    assert estimator.predict([["sunny", 70.0, None, "FALSE"]]).tolist() == ["no"]


def test_nominal_columns_are_named_by_number_by_name_or_in_nominal() -> None:
    pandas = pytest.importorskip("pandas")
    inputs = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 6.0], [0.0, 7.0], [1.0, 8.0], [2.0, 9.0]])
    y = ["p", "q", "p", "p", "q", "p"]
    frame = pandas.DataFrame(inputs, columns=["code", "size"])
    fitted = [
        TreeClassifier(nominal_columns=[0]).fit(inputs, y),
        TreeClassifier(nominal_columns=[-2]).fit(inputs, y),
        TreeClassifier(nominal=[0]).fit(inputs, y),
        TreeClassifier(nominal_columns=["code"]).fit(frame, y),
    ]
    for estimator in fitted:
        assert [str(feature.kind) for feature in estimator.model_.schema.attributes] == ["nominal", "numeric"]
        assert estimator.model_.schema.attributes[0].categories == (0, 1, 2)
        assert estimator.model_.tree.n_leaves == 2
    assert TreeClassifier(nominal_columns=[0], nominal="multiway").fit(inputs, y).model_.tree.n_leaves == 3
    # A category is the same number however it is spelt.
    assert fitted[0].predict(inputs.astype(int)).tolist() == y


def test_a_nominal_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(espalier.EstimatorError, match="must be a column's name or its number from -3 to 2"):
        TreeClassifier(nominal_columns=[7]).fit(*corner())


@pytest.mark.parametrize("listed", [[True, False, False], np.array([True, False, False]), [True]])
@pytest.mark.parametrize("parameter", ["nominal_columns", "nominal"])
def test_a_mask_of_columns_is_not_read_as_numbers_of_columns(parameter: str, listed: Any) -> None:
    with pytest.raises(espalier.EstimatorError, match="/nominal_columns/True: must be a column's name or its number"):
        TreeClassifier(**{parameter: listed}).fit(*corner())


@pytest.mark.parametrize("listed", ["ab", 0, slice(2)])
def test_nominal_columns_that_are_no_list_are_refused(listed: Any) -> None:
    table = pytest.importorskip("pandas").DataFrame({"a": [0, 1, 2, 0], "b": [1, 0, 2, 2]})
    with pytest.raises(espalier.EstimatorError, match="/nominal_columns: must be a list of column names or numbers"):
        TreeClassifier(nominal_columns=listed).fit(table, [0, 1, 1, 0])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_texts_and_booleans_of_a_table_are_nominal(library: str) -> None:
    module = pytest.importorskip(library)
    cells = {
        "wind": ["weak", "strong", None, "weak"],
        "wet": [True, False, True, True],
        "degrees": [20.5, None, 18.0, 2.0],
    }
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    table = getattr(module, make)(cells)
    y = ["yes", "no", "yes", "yes"]
    estimator = TreeClassifier().fit(table, y)
    assert [str(feature.kind) for feature in estimator.model_.schema.attributes] == ["nominal", "boolean", "numeric"]
    assert estimator.predict(table).tolist() == y
    if hasattr(DummyClassifier().fit(table, y), "feature_names_in_"):  # scikit-learn before 1.9 knows no polars 2
        assert estimator.feature_names_in_.tolist() == ["wind", "wet", "degrees"]


def test_a_category_that_was_never_seen_is_answered_and_flagged() -> None:
    inputs, y = [["a", 1], ["b", 1], ["a", 2], ["b", 2]], ["p", "q", "p", "q"]
    estimator = TreeClassifier("c45", min_weight_leaf=1).fit(inputs, y)
    assert estimator.predict_proba([["c", 1]]).tolist() == [[0.5, 0.5]]
    assert estimator.explain([["c", 1]])[0].prediction.row.unseen == ("x0",)


def test_numbers_in_a_column_of_texts_are_refused() -> None:
    inputs, y = np.array([["a"], ["b"], ["a"], ["b"]], dtype=object), ["p", "q", "p", "q"]
    estimator = TreeClassifier("c45", min_weight_leaf=1).fit(inputs, y)
    for numbers in (np.array([[0], [1]]), np.array([["a"], [1.5]], dtype=object)):
        with pytest.raises(espalier.EstimatorError, match="/x0: must be text, or null for missing"):
            estimator.predict(numbers)


def test_an_explanation_of_a_row_is_the_cores_own() -> None:
    inputs, y = corner()
    estimator = TreeClassifier(max_depth=3).fit(inputs, y)
    rows = [dict(zip(["x0", "x1", "x2"], row, strict=True)) for row in inputs[:5].tolist()]
    expected = espalier.explain(estimator.model_, rows)
    assert [found.to_dict() for found in estimator.explain(inputs[:5])] == [each.to_dict() for each in expected]
    assert estimator.path_text(inputs[:5]) == [espalier.render_explanation(each) for each in expected]
    assert estimator.explain(inputs[:1], detail="full")[0].contributions is not None


def test_predictions_are_the_cores_own() -> None:
    inputs, y = corner()
    inputs[::7, 1] = math.nan
    estimator = TreeClassifier("c45").fit(inputs, y)
    rows = [{f"x{at}": None if math.isnan(cell) else cell for at, cell in enumerate(row)} for row in inputs.tolist()]
    singles = espalier.predict(estimator.model_, rows)
    assert estimator.predict(inputs).tolist() == [single.label for single in singles]
    shares = [[share for _, share in single.distribution] for single in singles]
    assert estimator.predict_proba(inputs) == pytest.approx(np.array(shares), abs=1e-12)


def test_classes_keep_their_type() -> None:
    inputs = [[1.0], [2.0], [3.0]]
    for y in (np.array([1, 2, 1], dtype=np.int8), np.array([True, False, True]), np.array(["a", "b", "a"])):
        found = TreeClassifier().fit(inputs, y).predict(inputs)
        assert (found.dtype, found.tolist()) == (y.dtype, y.tolist())


def test_weights_count_as_so_many_rows() -> None:
    inputs, y = corner()
    weight = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = TreeClassifier("c45").fit(inputs, y, sample_weight=weight).model_.tree
    repeated = TreeClassifier("c45").fit(np.repeat(inputs, weight, axis=0), np.repeat(y, weight)).model_.tree
    assert weighted == repeated


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "must be a 1d array of 60 numbers"),
        ([-1.0] * 60, "at least 0"),
        ([math.nan] * 60, "sample_weight: a weight must not be missing: 60 cells"),
        ([1.0] * 59 + [math.inf], r"sample_weight: a weight above 0 must be .*: 1 cell \(row 59,"),
        ([0.0] * 60, "at least one non-zero"),
        ([1e308] * 60, "sample_weight: a weight above 0 must be from 1e-50 to 1e\\+50"),
        ([1e-310] * 60, "sample_weight: a weight above 0 must be from 1e-50 to 1e\\+50"),
    ],
)
def test_weights_that_are_none_are_refused(weight: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TreeClassifier().fit(*corner(), sample_weight=weight)


def test_numbers_too_large_to_be_squared_are_refused() -> None:
    inputs, _ = corner()
    with pytest.raises(ValueError, match="y: a numeric target must be between ±1e\\+100"):
        TreeRegressor().fit(inputs, inputs[:, 0] * 1e300)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_, np.object_, "M8[D]"])
def test_what_is_masked_is_missing(dtype: Any) -> None:
    values = np.array([[0], [1], [0], [1], [0], [0]]).astype(dtype)
    masked = np.ma.masked_array(values, [[False]] * 4 + [[True]] * 2)
    y = ["u", "v", "u", "v", "v", "v"]
    given = TreeClassifier("c45").fit(masked, y)
    known = {0: values[0, 0], 1: values[1, 0]}
    listed = [[known[0]], [known[1]], [known[0]], [known[1]], [None], [None]]
    column = np.array(listed, dtype=object) if dtype != "M8[D]" else np.array(listed, dtype="M8[D]")
    assert given.model_.tree == TreeClassifier("c45").fit(column, y).model_.tree
    np.testing.assert_array_equal(given.predict_proba(masked[4:]), given.predict_proba(column[4:]))


def test_class_weights_are_given_by_label() -> None:
    inputs, y = [[1.0], [1.0], [1.0]], [7, 7, 8]
    assert TreeClassifier().fit(inputs, y).predict([[1.0]]).tolist() == [7]
    assert TreeClassifier(class_weight={8: 3}).fit(inputs, y).predict([[1.0]]).tolist() == [8]
    with pytest.raises(espalier.EstimatorError, match="/class_weight/9: must be one of 7, 8"):
        TreeClassifier(class_weight={9: 3}).fit(inputs, y)


def test_a_least_share_of_the_weight_in_a_leaf_is_a_least_weight() -> None:
    inputs, y = corner()
    by_share = TreeClassifier(min_weight_fraction_leaf=0.1).fit(inputs, y).model_.tree
    by_weight = TreeClassifier(min_weight_leaf=6.0).fit(inputs, y).model_.tree
    assert by_share == by_weight
    with pytest.raises(espalier.EstimatorError, match=r"must be a number from 0 to 0\.5"):
        TreeClassifier(min_weight_fraction_leaf=0.7).fit(inputs, y)


def test_a_regression_answers_means_and_is_scored_by_what_it_explains() -> None:
    inputs, y = [[1.0], [2.0], [3.0], [4.0]], [1.0, 3.0, 10.0, 10.0]
    estimator = TreeRegressor(max_depth=1).fit(inputs, y)
    assert estimator.predict(inputs).tolist() == [2.0, 2.0, 10.0, 10.0]
    # The mean is 6: 25 + 9 + 16 + 16 = 66, of which 1 + 1 remain.
    assert estimator.score(inputs, y) == pytest.approx(1 - 2 / 66)


def test_accuracy_counts_weights() -> None:
    estimator = TreeClassifier(max_depth=0).fit([[1.0], [2.0], [3.0]], ["a", "a", "b"])
    assert estimator.score([[1.0], [2.0]], ["a", "b"]) == 0.5
    assert estimator.score([[1.0], [2.0]], ["a", "b"], sample_weight=[3, 1]) == 0.75


def test_an_infinite_value_is_refused_with_its_column() -> None:
    inputs, y = corner()
    inputs[4, 1] = math.inf
    with pytest.raises(espalier.EstimatorError, match=r"/x1: must be a finite number or missing: 1 cell \(row 4"):
        TreeClassifier().fit(inputs, y)


def test_dates_in_an_array_are_datetimes() -> None:
    inputs = np.array([["2020-01-01"], ["2020-01-02"], ["2021-05-05"]], dtype="datetime64[D]")
    estimator = TreeClassifier().fit(inputs, ["p", "p", "q"])
    assert estimator.explain(inputs[:1])[0].rule == "if x0 ≤ 2020-09-02T12:00:00+00:00 then p"


def test_a_fitted_estimator_survives_pickling() -> None:
    inputs, y = corner()
    estimator = TreeClassifier().fit(inputs, y)
    assert np.array_equal(pickle.loads(pickle.dumps(estimator)).predict_proba(inputs), estimator.predict_proba(inputs))  # noqa: S301


def test_the_model_of_an_estimator_can_be_saved_and_shown() -> None:
    estimator = TreeClassifier(max_depth=2).fit(*corner())
    assert espalier.from_json(espalier.to_json(estimator.model_)).tree == estimator.model_.tree
    assert espalier.to_text(estimator.model_).startswith("x")


def test_without_scikit_learn_the_rest_works_and_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["sklearn"] = None
import espalier
data = espalier.dataset_from_rows([{"a": 1, "y": "p"}, {"a": 2, "y": "q"}], target="y")
assert espalier.predict(espalier.train(data, "cart"), [{"a": 2}])[0].label == "q"
espalier.load_all()
try:
    espalier.TreeClassifier
except ImportError as error:
    assert "pip install 'espalier[sklearn]'" in str(error)
else:
    raise AssertionError("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


LAYOUTS = {
    "row by row": np.ascontiguousarray,
    "column by column": np.asfortranarray,
    "every other row": lambda matrix: np.repeat(matrix, 2, axis=0)[::2],
    "a part of a wider one": lambda matrix: np.hstack([matrix, matrix])[:, :6],
    "backwards": lambda matrix: np.ascontiguousarray(matrix[::-1, ::-1])[::-1, ::-1],
}


def rounded_table(dtype: Any, n: int = 5_000) -> np.ndarray:
    """Columns of many values and, at the end, of few."""
    table = np.random.default_rng(8).standard_normal((n, 6)).astype(np.float32).astype(dtype)
    table[:, -2:] = np.round(table[:, -2:])
    return table


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_in_any_layout_gives_the_model_of_its_columns(layout: str, dtype: Any) -> None:
    table = LAYOUTS[layout](rounded_table(dtype))
    known = table.copy()
    y = (known[:, 0] * known[:, 1] + known[:, -1]).astype(np.float64)
    columns = {f"x{place}": column.astype(np.float64) for place, column in enumerate(known.T)}
    expected = espalier.train(espalier.dataset_from_columns(columns | {"y": y}, target="y", task="regression"), "cart")
    model = TreeRegressor("cart").fit(table, y).model_
    assert model.tree == expected.tree
    assert np.array_equal(table, known)


@pytest.mark.parametrize("preset", ["cart", "c45", "reptree"])
def test_rows_of_weight_0_and_missing_cells_are_learned_from_as_in_a_data_set(preset: str) -> None:
    table = rounded_table(np.float32)
    table[::7, 2] = np.nan
    y = (table[:, 0] * table[:, 1] + table[:, -1] > 0).astype(np.int64)
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    columns = {f"x{place}": column.astype(np.float64) for place, column in enumerate(table.T)}
    dataset = espalier.dataset_from_columns(columns | {"y": y, "w": weight}, target="y", weight="w")
    assert TreeClassifier(preset).fit(table, y, weight).model_.tree == espalier.train(dataset, preset).tree


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_of_numbers_is_answered_as_its_rows_are_one_by_one(dtype):
    random = np.random.default_rng(0)
    table = random.normal(size=(1500, 4)).astype(dtype)
    y = (table[:, 0] + table[:, 1] > 0).astype(np.int64)
    for missing in ("direction", "fractional"):
        model = TreeClassifier(missing=missing, criterion="gini").fit(table, y)
        given = np.where(random.random(table.shape) < 0.1, np.nan, table).astype(dtype)
        rows = [
            {f"x{place}": None if cell != cell else float(cell) for place, cell in enumerate(row)}  # noqa: PLR0124
            for row in given
        ]
        singles = espalier.predict(model.model_, rows)
        assert model.predict(given).tolist() == [one.label for one in singles]
        shares = np.array([[share for _, share in one.distribution] for one in singles])
        assert model.predict_proba(given) == pytest.approx(shares, abs=1e-12)
        assert model.predict(np.asfortranarray(given)).tolist() == model.predict(given).tolist()


@pytest.mark.parametrize("table", [np.array([[1.0, np.inf]]), np.ones((2, 3)), np.ones(2)])
def test_an_array_that_cannot_be_answered_is_refused(table):
    model = TreeClassifier().fit([[1.0, 2.0], [2.0, 1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=r"finite|features|2D"):
        model.predict(table)
