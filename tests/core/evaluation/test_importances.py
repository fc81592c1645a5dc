"""How much each attribute matters: sums by hand, scikit-learn's figures, and shuffles made again cell by cell."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import espalier
from espalier import TreeClassifier, TreeRegressor, attribute_importances, permutation_importances
from tests.core.planted import MIXED, plant, roots

PLAY = [
    {"outlook": outlook, "windy": windy, "play": play}
    for outlook, windy, play, times in [
        ("overcast", "no", "yes", 2), ("overcast", "yes", "yes", 2), ("rainy", "no", "yes", 3),
        ("rainy", "yes", "no", 2), ("sunny", "no", "no", 2), ("sunny", "no", "yes", 1), ("sunny", "yes", "no", 1),
        ("sunny", "yes", "yes", 1),
    ]
    for _ in range(times)
]  # fmt: skip
"""Quinlan's fourteen days (1986, table 1), with two of their attributes."""


def entropy(*counts):
    return -sum(count / sum(counts) * math.log2(count / sum(counts)) for count in counts if count)


def learned(rows, preset="cart", **fields):
    dataset = espalier.dataset_from_rows(rows, target=list(rows[0])[-1])
    return espalier.train(dataset, preset, **fields), dataset


def test_each_test_counts_with_its_gain_and_the_weight_of_its_rows():
    model, _ = learned(PLAY, "id3")
    # The root asks for the outlook; below sunny (2 yes, 3 no) and rainy (3 yes, 2 no) it is the wind.
    outlook = 14 * entropy(9, 5) - 5 * entropy(2, 3) - 5 * entropy(3, 2)
    windy = 5 * entropy(2, 3) - 3 * entropy(1, 2) - 2 * entropy(1, 1) + 5 * entropy(3, 2)
    expected = {"outlook": outlook / (outlook + windy), "windy": windy / (outlook + windy)}
    assert dict(attribute_importances(model)) == pytest.approx(expected, rel=1e-12)


def test_a_ratio_that_chooses_does_not_count_but_the_gain_does():
    model, _ = learned(PLAY, "id3", criterion="gain_ratio")
    outlook = 14 * entropy(9, 5) - 5 * entropy(2, 3) - 5 * entropy(3, 2)
    windy = 5 * entropy(2, 3) - 3 * entropy(1, 2) - 2 * entropy(1, 1) + 5 * entropy(3, 2)
    assert attribute_importances(model)["outlook"] == pytest.approx(outlook / (outlook + windy), rel=1e-12)


def test_a_statistic_that_grows_with_the_rows_is_not_weighted_again():
    cells = [(0, 0, "a")] * 3 + [(0, 1, "a")] * 3 + [(1, 0, "b")] * 2 + [(1, 1, "a")]
    model, _ = learned([{"x": x, "z": z, "y": y} for x, z, y in cells], criterion="chi_square")
    # Pearson's statistic of [[p, q], [r, s]]: n (ps - qr)^2 over the product of the four sums.
    at_root, below = 9 * (6 * 2 - 0 * 1) ** 2 / (6 * 3 * 7 * 2), 3 * (0 * 0 - 2 * 1) ** 2 / (2 * 1 * 1 * 2)
    assert attribute_importances(model)["x"] == pytest.approx(at_root / (at_root + below))


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("depth", [1, 2])
def test_shares_of_a_class_tree_are_scikit_learns(depth, criterion):
    features, target = load_wine(return_X_y=True)
    peer = DecisionTreeClassifier(criterion=criterion, max_depth=depth, random_state=0).fit(features, target)
    name = "information_gain" if criterion == "entropy" else criterion
    ours = TreeClassifier(criterion=name, max_depth=depth).fit(features, target)
    assert np.array_equal(ours.model_.tree.feature, np.maximum(peer.tree_.feature, -1))
    assert ours.feature_importances_ == pytest.approx(peer.feature_importances_, abs=1e-12)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_shares_of_a_tree_of_numbers_are_scikit_learns(criterion):
    features, target = load_diabetes(return_X_y=True)
    features = features.astype(np.float32)  # as scikit-learn reads them in any case
    peer = DecisionTreeRegressor(criterion=criterion, min_samples_leaf=20, random_state=0).fit(features, target)
    ours = TreeRegressor(criterion=criterion, min_weight_leaf=20).fit(features, target)
    assert np.array_equal(ours.apply(features), peer.apply(features))
    assert ours.feature_importances_ == pytest.approx(peer.feature_importances_, abs=1e-9)
    assert (ours.get_depth(), ours.get_n_leaves()) == (peer.get_depth(), peer.get_n_leaves())


def test_where_no_test_gains_anything_all_shares_are_none():
    model, _ = learned([{"x": 1, "y": "a"}, {"x": 2, "y": "a"}, {"x": 3, "y": "b"}], max_depth=0)
    assert dict(attribute_importances(model)) == {"x": 0.0}


def test_a_list_of_rules_has_no_tests_that_gain():
    model, _ = learned(PLAY, "id3")
    with pytest.raises(espalier.NotApplicable, match="list of rules"):
        attribute_importances(espalier.extract_rules(model))


def of_document(model, **columns):
    document = json.loads(espalier.to_json(model))
    for name, value in columns.items():
        document["tree"][name] = [old if old is None else value(old) for old in document["tree"][name]]
    return espalier.from_json(json.dumps(document))


def test_figures_of_a_document_near_the_largest_float_have_shares_all_the_same():
    model, _ = learned(PLAY, "id3")
    large = of_document(model, gain=lambda gain: gain * 2.0**1023)
    assert dict(attribute_importances(large)) == dict(attribute_importances(model))  # a power of two rounds nothing


def test_a_document_that_leaves_gains_out_is_refused_not_told_that_nothing_gains():
    model, _ = learned(PLAY, "id3")
    with pytest.raises(espalier.NotApplicable, match=r"gain of node 0 \(tree.gain\)"):
        attribute_importances(of_document(model, gain=lambda _: None))


def test_an_estimator_that_is_not_fitted_says_so():
    for ask in (lambda each: each.feature_importances_, lambda each: each.get_depth(), lambda each: each.apply([[1]])):
        with pytest.raises(ValueError, match="not fitted yet"):
            ask(TreeClassifier())


@given(roots(MIXED))
def test_shares_are_at_least_zero_and_add_up_to_one_or_to_nothing(root):
    shares = attribute_importances(plant(MIXED, root))
    assert min(shares.values()) >= 0
    assert sum(shares.values()) in (0, pytest.approx(1.0))


# What a model loses


def shuffled_by_hand(model, rows, name, seed, repeats):
    """Accuracy lost by each shuffle, a row at a time, in the order that the docstring promises."""
    target = list(rows[0])[-1]
    place = [feature.name for feature in model.schema.attributes].index(name)
    source = np.random.PCG64([seed, place])

    def accuracy(table):
        return np.mean([espalier.predict(model, [row])[0].label == row[target] for row in table])

    for _ in range(repeats):
        order = np.argsort(source.random_raw(len(rows)), kind="stable")
        yield accuracy(rows) - accuracy([{**row, name: rows[at][name]} for row, at in zip(rows, order, strict=True)])


def test_a_shuffle_takes_the_cells_of_a_column_to_other_rows_and_nothing_else():
    model, dataset = learned(PLAY, "id3")
    found = permutation_importances(model, dataset, repeats=7, seed=3)
    for name in ("outlook", "windy"):
        lost = list(shuffled_by_hand(model, PLAY, name, 3, 7))
        assert found[name].mean == pytest.approx(np.mean(lost))
        assert found[name].deviation == pytest.approx(np.std(lost, ddof=1))
    assert found["outlook"].mean > 0


def test_the_same_of_rules_and_of_the_tree_that_they_are_made_from():
    model, dataset = learned(PLAY, "id3")
    assert permutation_importances(espalier.extract_rules(model), dataset) == permutation_importances(model, dataset)


def test_an_attribute_of_a_leafs_linear_model_counts_although_no_test_asks_for_it():
    rows = [{"x": x, "z": x % 7, "y": 3.0 * x} for x in range(40)]
    dataset = espalier.dataset_from_rows(rows, target="y")
    model = espalier.train(dataset, "m5", max_depth=0, pruning=None)
    found = permutation_importances(model, dataset)
    assert (model.tree.n_leaves, found["z"].mean) == (1, 0.0)
    assert (found["x"].mean > 0) == any(term.feature == 0 for term in model.linear.terms(0))


@pytest.mark.parametrize(
    ("measure", "is_lost"), [("accuracy", True), ("balanced_accuracy", True), ("macro_f1", True), ("log_loss", True)]
)
def test_more_is_lost_the_worse_the_model_is_whatever_the_measure_calls_better(measure, is_lost):
    model, dataset = learned(PLAY, "id3")
    assert (permutation_importances(model, dataset, measure=measure, repeats=20)["outlook"].mean > 0) == is_lost


@pytest.mark.parametrize("measure", ["rmse", "mae", "r2"])
def test_so_it_is_with_numbers(measure):
    model, dataset = learned([{"x": x, "z": 0, "y": 1.5 * x} for x in range(30)], "cart")
    found = permutation_importances(model, dataset, measure=measure)
    assert found["x"].mean > 0
    assert found["z"] == espalier.PermutationImportance(0.0, 0.0)


def test_a_stored_data_set_has_the_importances_of_the_same_rows_in_memory(tmp_path):
    data, target = load_wine(return_X_y=True, as_frame=True)
    file = tmp_path / "wine.parquet"
    data.assign(kind=target.map(str)).to_parquet(file)
    held_in_memory = espalier.dataset_from_file(file, target="kind")
    model = espalier.train(held_in_memory, "cart", max_depth=3)
    stored = espalier.store_dataset([file], tmp_path, target="kind")
    assert permutation_importances(model, stored) == permutation_importances(model, held_in_memory)


def test_one_shuffle_has_no_deviation():
    model, dataset = learned(PLAY, "id3")
    assert permutation_importances(model, dataset, repeats=1)["outlook"].deviation == 0.0


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ({"measure": "rmse"}, "/measure"),
        ({"repeats": 0}, "/repeats"),
        ({"repeats": 1001}, "/repeats"),
        ({"repeats": True}, "/repeats"),
        ({"seed": -1}, "/seed"),
        ({"seed": 2**63}, "/seed"),
        ({"seed": 1.0}, "/seed"),
    ],
)
def test_an_argument_that_is_not_legal_is_named_with_what_is(argument, path):
    model, dataset = learned(PLAY, "id3")
    with pytest.raises(espalier.ConfigError, match="must be") as caught:
        permutation_importances(model, dataset, **argument)
    assert [fault.path for fault in caught.value.faults] == [path]


def test_one_row_cannot_be_shuffled():
    model, dataset = learned(PLAY, "id3")
    with pytest.raises(espalier.DataError, match="at least two rows"):
        permutation_importances(model, dataset.take([0]))


def test_looking_ends_where_it_is_stopped():
    model, dataset = learned(PLAY, "id3")
    watch = espalier.Progress()
    watch.stop()
    with pytest.raises(espalier.Cancelled):
        permutation_importances(model, dataset, progress=watch)


@given(st.integers(0, 2**63 - 1))
def test_the_same_seed_gives_the_same_figures(seed):
    model, dataset = learned(PLAY, "id3")
    once, again = (permutation_importances(model, dataset, seed=seed, repeats=2) for _ in range(2))
    assert once == again


def test_rows_without_weight_are_not_shuffled_into_the_others():
    rows = [{"x": x % 7, "z": x % 3, "w": 1.0, "y": "a" if x % 7 < 3 else "b"} for x in range(60)]
    declared = {"target": "y", "weight": "w"}
    data = espalier.dataset_from_rows(rows, **declared)
    model = espalier.train(data, "cart")
    more = [{"x": 6, "z": 0, "w": 0.0, "y": "a"}] * 40
    padded = espalier.dataset_from_rows([*more, *rows], **declared)
    assert permutation_importances(model, padded) == permutation_importances(model, data)
    with pytest.raises(espalier.DataError, match="at least two rows"):
        permutation_importances(model, espalier.dataset_from_rows([*rows[:1], *more], like=data.schema))
