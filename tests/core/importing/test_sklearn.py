"""Trees of scikit-learn answer as they did there, for every double."""

import math
import zipfile
from io import BytesIO

import numpy as np
import pandas
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import espalier
from espalier.importing.sklearn import last_double


def rows_at_thresholds(estimator, table, *, seed=0):
    """Rows at each threshold, at its neighbours among doubles and 32-bit floats, and with missing values."""
    draw = np.random.default_rng(seed)
    rows = []
    for feature, cut in zip(estimator.tree_.feature, estimator.tree_.threshold, strict=True):
        if feature < 0 or math.isinf(cut):  # the values that are known against those that are missing
            continue
        near = np.float32(cut)
        moved = last_double(float(cut))
        cells = [cut, near, np.nextafter(near, np.float32(9e9)), np.nextafter(near, np.float32(-9e9)), moved]
        for cell in [*cells, *(np.nextafter(float(each), end) for each in cells for end in (-1e9, 1e9)), math.nan]:
            row = table[draw.integers(len(table))].astype(np.float64).copy()
            row[feature] = cell
            rows.append(row)
    return np.array(rows)


def check(estimator, rows) -> None:
    model = espalier.from_json(espalier.to_json(espalier.from_sklearn(estimator)))
    names = [feature.name for feature in model.schema.attributes]
    given = [
        {name: None if math.isnan(cell) else cell for name, cell in zip(names, row, strict=True)}
        for row in rows.tolist()
    ]
    found = espalier.predict(model, given)
    assert [each.value if each.label is None else each.label for each in found] == estimator.predict(rows).tolist()
    if model.task == "classification":
        shares = [[share for _, share in each.distribution] for each in found]
        np.testing.assert_allclose(shares, estimator.predict_proba(rows), rtol=0, atol=1e-12)


def with_holes(table):
    holes = np.random.default_rng(1).random(table.shape) < 0.1
    return np.where(holes, np.nan, table)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=6, class_weight="balanced", random_state=0),
        DecisionTreeClassifier(ccp_alpha=0.02, random_state=0),
        ExtraTreeClassifier(random_state=0),
        DecisionTreeRegressor(random_state=0),
        DecisionTreeRegressor(criterion="poisson", max_depth=3, random_state=0),
        DecisionTreeRegressor(criterion="absolute_error", max_depth=3, random_state=0),
    ],
    ids=lambda each: f"{type(each).__name__} {each.criterion} {each.max_leaf_nodes} {each.ccp_alpha}",
)
@pytest.mark.parametrize("holes", [False, True])
def test_an_imported_tree_answers_as_in_scikit_learn(estimator, holes) -> None:
    table, target = load_iris(return_X_y=True)
    if holes and (estimator.criterion == "absolute_error" or isinstance(estimator, ExtraTreeClassifier)):
        table = np.round(table * 7) / 7  # scikit-learn takes no missing values here: other thresholds instead
    elif holes:
        table = with_holes(table)
    estimator.fit(table, target)
    rows = rows_at_thresholds(estimator, table)
    takes_missing = not (estimator.criterion == "absolute_error" or isinstance(estimator, ExtraTreeClassifier))
    check(estimator, rows if takes_missing else rows[~np.isnan(rows).any(axis=1)])


@settings(max_examples=300)
@given(threshold=st.floats(-1e30, 1e30), steps=st.integers(-3, 3))
def test_a_moved_threshold_divides_doubles_where_their_rounded_values_divide(threshold, steps) -> None:
    moved = last_double(threshold)
    for _ in range(abs(steps)):
        moved = math.nextafter(moved, math.copysign(math.inf, steps))
    assert (float(np.float32(moved)) <= threshold) == (steps <= 0)


@pytest.mark.filterwarnings("error")
def test_a_threshold_beyond_the_32_bit_numbers_stays() -> None:
    for threshold in (1e300, math.inf, -1e300):
        assert last_double(threshold) == min(threshold, np.finfo(np.float64).max)


def test_doubles_that_are_rounded_to_the_largest_32_bit_number_are_not_above_it() -> None:
    largest = float(np.finfo(np.float32).max)
    moved = last_double(largest)
    with np.errstate(over="ignore"):
        assert np.float32(moved) == largest
        assert np.float32(math.nextafter(moved, math.inf)) == math.inf


def test_labels_names_and_numbers_of_rows_are_kept() -> None:
    table = pandas.DataFrame({"length": [1.0, 2.0, 3.0, 4.0], "width": [0.0, 0.0, 1.0, 1.0]})
    model = espalier.from_sklearn(DecisionTreeClassifier().fit(table, ["no", "no", "yes", "yes"]), target="play")
    assert [feature.name for feature in model.schema.features] == ["length", "width", "play"]
    assert model.schema.classes == ("no", "yes")
    assert model.training.n_rows == 4
    assert espalier.predict(model, [{"length": 1.0, "width": 0.0}])[0].support == 2
    assert model.tree.gain[0] == pytest.approx(0.5)  # Gini of the root, both leaves pure


def test_a_spread_that_scikit_learn_rounded_below_zero_is_zero() -> None:
    table = np.array([[0.0], [0.0], [0.0], [1.0]])
    estimator = DecisionTreeRegressor(random_state=0).fit(table, [870.2, 870.2, 870.2, 5.0])
    assert estimator.tree_.impurity.min() < 0
    check(estimator, table)


def test_an_impurity_that_scikit_learn_could_not_compute_is_zero() -> None:
    table = np.array([[0.0], [1.0], [2.0]])
    estimator = DecisionTreeRegressor(criterion="poisson").fit(table, [1.0, 0.0, 0.0], sample_weight=[0.0, 0.1, 1.0])
    assert estimator.tree_.impurity.tolist() == [math.inf]
    check(estimator, table)


def test_a_child_that_rounding_made_heavier_than_its_parent_has_the_whole_share() -> None:
    estimator = DecisionTreeClassifier().fit([[1.0], [2.0]], [0, 1])
    state = estimator.tree_.__getstate__()
    state["nodes"]["weighted_n_node_samples"][1:] = math.nextafter(2.0, 3.0), 1e-30
    estimator.tree_.__setstate__(state)
    check(estimator, np.array([[1.0], [2.0]]))


def test_a_tree_that_no_document_can_hold_is_refused_at_once() -> None:
    with pytest.raises(espalier.DocumentError, match="the target has one value"):
        espalier.from_sklearn(DecisionTreeClassifier().fit([[1.0], [2.0]], [1, 1]))


def test_monotonic_constraints_are_noted() -> None:
    estimator = DecisionTreeClassifier(monotonic_cst=[1]).fit([[1.0], [2.0]], [0, 1])
    assert any("monotonic" in note for note in espalier.from_sklearn(estimator).notes)


def test_what_is_no_single_fitted_tree_is_refused() -> None:
    custom = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    custom.criterion = object()
    for estimator, reason in (
        (RandomForestClassifier(), "must be a decision tree"),
        (custom, "criterion must be one of gini, entropy"),
        (DecisionTreeClassifier(), "not fitted"),
        (DecisionTreeRegressor().fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]]), "2 columns"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.from_sklearn(estimator)


def test_a_skops_file_that_unpacks_to_gigabytes_is_refused_unread() -> None:
    pytest.importorskip("skops.io", reason="skops is not installed")
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(2**20))
    size = (2**20).to_bytes(4, "little")
    content = packed.getvalue().replace(size, (2**31).to_bytes(4, "little"))
    with pytest.raises(espalier.NotApplicable, match="at most 1073741824 bytes"):
        espalier.from_skops(content)


def test_what_skops_saved_is_read_without_trust(tmp_path) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    table, target = load_iris(return_X_y=True)
    estimator = DecisionTreeClassifier(random_state=0).fit(table, target)
    model = espalier.from_skops(skops.dumps(estimator), target="kind")
    assert espalier.to_json(model) == espalier.to_json(espalier.from_sklearn(estimator, target="kind"))
    estimator.more = Unknown()
    for content, reason in (
        (b"", "no decision tree that can be read"),
        (b"PK", "no decision tree that can be read"),
        (skops.dumps([1, 2]), "must be a decision tree of scikit-learn"),
        (skops.dumps(estimator), "types that are not trusted: .*Unknown"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.from_skops(content)


class Unknown:
    pass


def test_nodes_in_a_cycle_are_refused() -> None:
    estimator = DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], [0, 1, 0])
    state = estimator.tree_.__getstate__()
    state["nodes"]["left_child"][2] = 0
    estimator.tree_.__setstate__(state)
    with pytest.raises(espalier.NotApplicable, match="not a tree"):
        espalier.from_sklearn(estimator)
