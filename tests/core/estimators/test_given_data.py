"""Data that an estimator must refuse or report: masks, nullable columns, rounded numbers, cells of unknown types."""

import datetime
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import espalier
from espalier import EstimatorError, TreeClassifier, TreeRegressor

FOUR = np.arange(4.0)[:, None]
BEYOND = 2**60 + np.arange(4)
"""Doubles near 2^60 are 256 apart, so that all four are rounded to 2^60."""


@pytest.mark.parametrize(
    ("inputs", "classes"),
    [([[math.inf], [1.0], [2.0]], ["x", "y", "z"]), ([[1.0, 2.0]] * 3, ["x", "x", "x"]), ("text", ["x"])],
    ids=["infinite", "one class", "no table"],
)
def test_a_failed_second_fit_leaves_an_estimator_that_is_not_fitted(inputs: Any, classes: list[str]) -> None:
    model = TreeClassifier().fit(FOUR, ["a", "a", "b", "b"])
    with pytest.raises(ValueError, match=r"finite|one class|2D"):
        model.fit(inputs, classes)
    for ask in (model.predict, model.predict_proba, model.explain, model.apply):
        with pytest.raises(NotFittedError):
            ask(FOUR)


def test_a_failed_second_fit_of_a_regressor_leaves_an_estimator_that_is_not_fitted() -> None:
    model = TreeRegressor().fit(FOUR, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(FOUR, [1, 2, 3, math.nan])
    with pytest.raises(NotFittedError):
        model.predict(FOUR)


def as_frame(cells: Any) -> Any:
    return pytest.importorskip("pandas").DataFrame({"id": cells})


def as_arrow(cells: Any) -> Any:
    return pytest.importorskip("pyarrow").table({"id": cells})


def as_objects(cells: Any) -> Any:
    return np.array([[cell, "text"] for cell in cells.tolist()], dtype=object)


@pytest.mark.parametrize(
    "form", [lambda cells: cells[:, None], lambda cells: cells[:, None].astype(">u8"), as_frame, as_arrow, as_objects]
)
def test_an_estimator_warns_of_whole_numbers_that_are_rounded(form: Callable[[Any], Any]) -> None:
    model = TreeClassifier()
    with pytest.warns(UserWarning, match=r"numbers of 2\^53 .* rounded"):
        model.fit(form(BEYOND), [0, 0, 1, 1])
    with pytest.warns(UserWarning, match=r"numbers of 2\^53 .* rounded"):
        model.predict(form(BEYOND))
    with pytest.warns(UserWarning, match=r"numbers of 2\^53 .* rounded"):
        model.explain(form(BEYOND))


def test_a_regressor_warns_of_whole_numbers_in_y_that_are_rounded() -> None:
    with pytest.warns(UserWarning, match=r"'y' has numbers of 2\^53 .* rounded"):
        TreeRegressor().fit(FOUR, BEYOND)


def test_an_estimator_warns_of_instants_that_are_truncated() -> None:
    table = as_frame(np.array([100, 200, 300, 400]).astype("datetime64[ns]"))
    model = TreeClassifier()
    with pytest.warns(UserWarning, match="finer than a microsecond"):
        model.fit(table, [0, 0, 1, 1])
    with pytest.warns(UserWarning, match="finer than a microsecond"):
        model.predict(table)


@pytest.mark.parametrize("form", [as_frame, as_arrow, lambda cells: cells[:, None]])
def test_a_warning_names_the_line_that_has_called(form: Callable[[Any], Any]) -> None:
    table, model = form(BEYOND), TreeClassifier()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table, [0, 0, 1, 1], validation=(table[:2], [0, 1]))
        model.predict(table)
        model.predict_proba(table)
        model.explain(table)
        model.path_text(table)
        TreeRegressor().fit(FOUR, BEYOND)
    assert [warning.filename for warning in caught] == [__file__] * 7


def test_a_warning_of_a_function_names_the_line_that_has_called() -> None:
    table = as_frame(BEYOND).assign(y=["a", "b", "a", "b"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = espalier.train(table, target="y")
        espalier.predict(model, table)
        espalier.predict_table(model, table)
        espalier.evaluate(model, table)
    assert [warning.filename for warning in caught] == [__file__] * 4


def test_a_warning_of_an_index_names_the_line_that_has_called() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(pandas.DataFrame({"x": [1.0, 2, 3, 4]}, index=pandas.Index([7, 8, 9, 6])))
    with pytest.warns(UserWarning, match="index columns of pandas") as caught:
        TreeClassifier().fit(table, [0, 0, 1, 1]).predict(table)
    assert [warning.filename for warning in caught] == [__file__] * 2


@pytest.mark.parametrize("beyond", [BEYOND.astype(object), [2**60, 2**64, 3, 4], pytest.param(None, id="nullable")])
def test_a_regressor_warns_of_whole_numbers_of_objects_in_y_that_are_rounded(beyond: Any) -> None:
    target = pytest.importorskip("pandas").Series(BEYOND, dtype="Int64") if beyond is None else beyond
    with pytest.warns(UserWarning, match=r"'y' has numbers of 2\^53 .* rounded"):
        TreeRegressor().fit(FOUR, target)


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_are_classes_by_their_texts_and_none_may_be_missing(unit: str) -> None:
    dates = np.array(["2020-01-01", "2021-06-30", "2020-01-01", "2021-06-30"], dtype=f"datetime64[{unit}]")
    model = TreeClassifier().fit(FOUR, dates, validation=(FOUR + 0.1, dates))
    assert [str(label)[:10] for label in model.model_.schema.classes] == ["2020-01-01", "2021-06-30"]
    assert model.predict(FOUR).tolist() == dates.tolist()
    assert model.model_.training.held_out["errors"] == 0
    dates[1] = "NaT"
    for estimator in (TreeClassifier(), TreeRegressor()):
        with pytest.raises(ValueError, match="y contains NaN"):
            estimator.fit(FOUR, dates)


def test_numbers_that_are_kept_exactly_give_no_warning() -> None:
    whole = np.array([0, 1, 2**53 - 2, 2**53 - 1])
    for cells in (whole, whole.astype(np.uint64), np.array([1.0, 2.0, 1e20, 1e300])):
        for table in (cells[:, None], as_frame(cells), as_arrow(cells)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert TreeClassifier().fit(table, [0, 0, 1, 1]).predict(table).tolist() == [0, 0, 1, 1]


def test_large_whole_numbers_of_a_nominal_column_are_kept() -> None:
    inputs = BEYOND[:, None]
    model = TreeClassifier(nominal_columns=[0], nominal="multiway").fit(inputs, [0, 1, 1, 0])
    assert model.model_.schema.attributes[0].categories == tuple(map(str, BEYOND.tolist()))
    assert model.predict(inputs).tolist() == [0, 1, 1, 0]


def test_masked_values_of_y_and_of_the_weights_are_refused() -> None:
    numbers = np.ma.array([0.0, 1, 0, 1000], mask=[0, 0, 0, 1])
    texts = np.ma.array(["a", "b", "a", "b"], dtype=object, mask=[0, 0, 0, 1])
    with pytest.raises(EstimatorError, match="/y: must not have masked values"):
        TreeRegressor().fit(FOUR, numbers)
    for classes in (numbers.astype(int), texts):
        with pytest.raises(EstimatorError, match="/y: must not have masked values"):
            TreeClassifier().fit(FOUR, classes)
    with pytest.raises(EstimatorError, match="/y: must not have masked values"):
        TreeClassifier().fit(FOUR, [0, 1, 0, 1], validation=(FOUR, np.ma.array([0, 1, 0, 1], mask=[1, 0, 0, 0])))
    for weighted in (TreeClassifier(), TreeRegressor()):
        with pytest.raises(EstimatorError, match="/sample_weight: must not have masked values"):
            weighted.fit(FOUR, [0, 1, 0, 1], numbers + 1)


def test_masks_that_hide_nothing_are_legal() -> None:
    masked = np.ma.array([0, 0, 1, 1], mask=False)
    assert TreeRegressor(max_depth=1).fit(FOUR, masked, masked + 1).predict(FOUR).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "Float64"])
def test_a_nullable_y_has_the_classes_of_its_plain_type(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    values = np.array([2**53 + each for each in range(4)] * 3) if "nt" in dtype else np.array([0.0, 1, 2, 3] * 3)
    inputs = np.arange(12.0)[:, None]
    plain = TreeClassifier().fit(inputs, values)
    for y in (pandas.Series(values, dtype=dtype), pandas.Series(values).astype(dtype).set_axis(range(7, 19))):
        model = TreeClassifier().fit(inputs, y)
        assert (model.classes_.dtype, model.classes_.tolist()) == (values.dtype, sorted(set(values.tolist())))
        assert model.predict(inputs).tolist() == plain.predict(inputs).tolist() == values.tolist()


def test_a_nullable_boolean_y_has_the_classes_true_and_false() -> None:
    pandas = pytest.importorskip("pandas")
    y = pandas.Series([True, False, True, False], dtype="boolean")
    model = TreeClassifier(max_depth=0, class_weight={True: 3}).fit(FOUR, y)
    assert (model.classes_.dtype, model.predict(FOUR[:1]).tolist()) == (np.bool_, [True])


@pytest.mark.parametrize("dtype", ["string", "str", "Int64", "boolean", "Float64", "object", "int64[pyarrow]"])
def test_a_missing_value_in_a_pandas_y_is_refused_as_missing(dtype: str) -> None:
    pandas = pytest.importorskip("pandas")
    known = {"string": ["a", "b"], "str": ["a", "b"], "boolean": [True, False], "object": ["a", "b"]}.get(dtype, [1, 2])
    y = pandas.Series([*known, None, known[0]], dtype=dtype)
    with pytest.raises(ValueError, match="y contains NaN"):
        TreeClassifier().fit(FOUR, y)
    if known == [1, 2]:
        with pytest.raises(ValueError, match="y contains NaN"):
            TreeRegressor().fit(FOUR, y)


@pytest.mark.parametrize("weights", [{0: 1, "0": 9}, {"0": 1, 0: 9, 1: 2}, {0: 1, np.str_("0"): 1}], ids=str)
def test_two_class_weights_of_one_class_are_refused(weights: dict[Any, float]) -> None:
    with pytest.raises(EstimatorError, match=r"^/class_weight/0: two keys name this class$"):
        TreeClassifier(class_weight=weights).fit(FOUR, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        (np.array([[1, b"x"], [2, b"y"]], dtype=object), "bytes"),
        (np.array([[1, {"a": 1}], [2, None]], dtype=object), "dict"),
        (np.array([[1, datetime.timedelta(1)], [2, None]], dtype=object), "timedelta"),
        ([["a", b"x"], ["b", b"y"]], "bytes"),
    ],
    ids=str,
)
def test_an_array_cell_of_an_unknown_type_is_refused_with_its_column_and_type(cells: Any, type_: str) -> None:
    # A check of scikit-learn expects a TypeError.
    with pytest.raises(TypeError, match=rf"^/x1: argument must be a string, a number or a date, not '{type_}'$"):
        TreeClassifier().fit(cells, ["p", "q"])
    named = as_frame([1.0, 2.0]).assign(size=[1.0, 2.0])
    model = TreeClassifier().fit(named, ["p", "q"])
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(TypeError, match=rf"^/size: .*, not '{type_}'$"),
    ):
        model.predict(np.array([[1.0, cell] for _, cell in cells], dtype=object))


def test_a_timedelta_array_is_refused_with_its_column_and_type() -> None:
    with pytest.raises(TypeError, match=r"^/x0: .*, not 'timedelta'$"):
        TreeClassifier().fit(np.array([[1], [2]], dtype="m8[s]"), ["p", "q"])


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_functions_that_take_a_table_warn_of_values_that_are_changed(library: str) -> None:
    make = {"pandas": as_frame, "pyarrow": as_arrow}[library]
    pytest.importorskip(library)
    exact = espalier.dataset_from_columns({"id": [1, 2, 3, 4], "y": ["a", "a", "b", "b"]}, target="y")
    model = espalier.train(exact, "cart")
    for ask in (espalier.predict_table, espalier.predict, espalier.explain):
        with pytest.warns(UserWarning, match=r"'id' has numbers of 2\^53 .* rounded"):
            ask(model, make(BEYOND))
    whole = espalier.dataset_from_arrow(make(BEYOND))
    assert whole.notices[0].code == "rounded"  # a data set has notices: no warning
    espalier.predict_table(model, whole)


def test_training_on_a_table_warns_of_values_that_are_changed() -> None:
    with pytest.warns(UserWarning, match=r"'id' has numbers of 2\^53 .* rounded"):
        espalier.train(as_frame(BEYOND).assign(y=["a", "a", "b", "b"]), "cart", target="y")
    instants = np.array([100, 200, 300, 400]).astype("datetime64[ns]")
    with pytest.warns(UserWarning, match="finer than a microsecond"):
        espalier.train(as_frame(instants).assign(y=["a", "a", "b", "b"]), "cart", target="y")


def test_a_warning_within_scikit_learn_names_the_line_that_has_called_it() -> None:
    exact = TreeClassifier().fit(FOUR, [0, 0, 1, 1])
    with pytest.warns(UserWarning, match=r"numbers of 2\^53 .* rounded") as caught:
        exact.score(BEYOND[:, None], [0, 0, 1, 1])
    assert [warning.filename for warning in caught] == [__file__]


BOOLEANS = np.array([[False, True], [True, True], [False, False], [True, False]])


@pytest.mark.parametrize("nominal", [None, [0]], ids=str)
@pytest.mark.parametrize("form", ["plain", "masked"])
@pytest.mark.parametrize("fitted_on", ["array", "frame"])
def test_booleans_are_read_alike_from_an_array_and_from_a_frame(fitted_on: str, form: str, nominal: Any) -> None:
    pandas = pytest.importorskip("pandas")
    y = ["q", "p", "q", "p"]
    given = BOOLEANS if fitted_on == "array" else pandas.DataFrame(BOOLEANS)
    model = TreeClassifier(nominal_columns=nominal).fit(given, y, validation=(BOOLEANS[:3], y[:3]))
    array = np.ma.masked_array(BOOLEANS, [[False, True]] * 4) if form == "masked" else BOOLEANS
    for table in (array, pandas.DataFrame(BOOLEANS), pandas.DataFrame(BOOLEANS, dtype="boolean")):
        assert model.predict(table).tolist() == y
        assert model.explain(table)[1].prediction.label == "p"
    if fitted_on == "array":
        assert model.predict(BOOLEANS.astype(float)).tolist() == y


def test_booleans_beside_other_categories_stay_booleans() -> None:
    inputs = np.array([[True], [False], ["x"], [True], [False], ["x"]], dtype=object)
    y = ["p", "q", "r"] * 2
    model = TreeClassifier("id3").fit(inputs, y)
    assert model.predict(inputs[:2]).tolist() == model.predict(BOOLEANS[1::-1, :1]).tolist() == ["p", "q"]


def test_booleans_stand_for_the_texts_true_and_false() -> None:
    pandas = pytest.importorskip("pandas")
    y = ["q", "p", "q", "p"]
    model = TreeClassifier().fit(pandas.DataFrame(BOOLEANS.astype(str)), y)
    for table in (BOOLEANS, pandas.DataFrame(BOOLEANS)):
        assert model.predict(table).tolist() == y


def test_a_polars_column_that_is_called_like_an_index_of_pandas_is_learned_from_like_any_other() -> None:
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"same": [1.0] * 4, "__index_level_0__": [1.0, 2.0, 3.0, 4.0]})
    model = TreeClassifier().fit(table, ["a", "a", "b", "b"])
    assert model.predict(table).tolist() == ["a", "a", "b", "b"]
    assert model.n_features_in_ == len(model.model_.schema.attributes) == 2


class CountingLabel(str):
    """A class that counts how often classes are compared."""

    n_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountingLabel.n_compared += 1
        return str.__eq__(self, other)


def test_classes_of_validation_rows_and_of_weights_are_not_compared_one_by_one() -> None:
    classes = [CountingLabel(f"class {number:03}") for number in range(300)]
    y, inputs = np.array(classes * 2, dtype=object), np.arange(600.0)[:, None]
    weights = dict.fromkeys(classes, 1.5)
    CountingLabel.n_compared = 0
    TreeClassifier(max_depth=1, class_weight=weights).fit(inputs, y, validation=(inputs + 0.5, y))
    assert CountingLabel.n_compared < 40 * 300  # one by one: 300 * 301 / 2 and more


def test_validation_rows_and_weights_of_many_classes_are_those_of_their_labels() -> None:
    classes = [f"class {number}" for number in range(40)]
    inputs = np.arange(80.0)[:, None]
    weights = {label: 1.0 + (label == "class 7") for label in classes}
    model = TreeClassifier(class_weight=weights).fit(inputs, classes * 2, validation=(inputs[5:9], classes[5:9]))
    assert model.model_.training.held_out["errors"] == 0
    assert dict(model.model_.config.class_weight) == weights
