"""The estimators take scikit-learn's parameters, and give what its trees give."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from espalier import EstimatorError, TreeClassifier, TreeRegressor


def table(n_rows: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct numbers, three noisy classes of them, and a noisy number.

    With this seed scikit-learn's trees of `PARAMETERS` are the same for every random state: no two splits tie.
    """
    random = np.random.default_rng(7)
    inputs = random.normal(size=(n_rows, 2))
    classes = (inputs[:, 0] > 0).astype(int) + (inputs[:, 1] + random.normal(scale=0.7, size=n_rows) > 0)
    return inputs, classes, inputs[:, 0] * 3 + random.normal(size=n_rows)


PARAMETERS = [
    {"min_samples_leaf": 30},
    {"min_samples_leaf": 0.043},
    {"min_samples_split": 150},
    {"min_samples_split": 0.31},
    {"max_leaf_nodes": 9},
    {"max_depth": 4, "random_state": 3},
    {"ccp_alpha": 0.01},
    {"ccp_alpha": 0.02, "min_samples_leaf": 20},
]


@pytest.mark.parametrize("criterion", ["gini", "entropy", "log_loss"])
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_classifier_is_the_tree_of_scikit_learn(parameters: dict[str, Any], criterion: str) -> None:
    inputs, classes, _ = table()
    ours = TreeClassifier(criterion=criterion, **parameters).fit(inputs, classes)
    theirs = DecisionTreeClassifier(criterion=criterion, **{"random_state": 0} | parameters).fit(inputs, classes)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    np.testing.assert_allclose(ours.predict_proba(inputs), theirs.predict_proba(inputs), rtol=1e-12)
    with np.errstate(divide="ignore"):
        expected = np.log(theirs.predict_proba(inputs))
    np.testing.assert_allclose(ours.predict_log_proba(inputs), expected, rtol=1e-12)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-9, atol=1e-12)
    assert ours.n_classes_ == theirs.n_classes_ == 3


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_regressor_is_the_tree_of_scikit_learn(parameters: dict[str, Any]) -> None:
    inputs, _, numbers = table()
    ours = TreeRegressor(**parameters).fit(inputs, numbers)
    theirs = DecisionTreeRegressor(**{"random_state": 0} | parameters).fit(inputs, numbers)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    np.testing.assert_allclose(ours.predict(inputs), theirs.predict(inputs), rtol=1e-9)


@pytest.mark.parametrize("weights", ["equal", "different"])
def test_the_pruning_path_is_that_of_scikit_learn(weights: str) -> None:
    inputs, _, numbers = table()
    weight = np.random.default_rng(2).uniform(0.5, 2, size=600) if weights == "different" else None
    ours = TreeRegressor().cost_complexity_pruning_path(inputs, numbers, weight)
    theirs = DecisionTreeRegressor(random_state=0).cost_complexity_pruning_path(inputs, numbers, weight)
    np.testing.assert_allclose(ours.ccp_alphas, theirs.ccp_alphas, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(ours.impurities, theirs.impurities, rtol=1e-6, atol=1e-10)


def test_the_path_of_a_row_is_the_nodes_from_the_root_to_its_leaf() -> None:
    inputs, classes, _ = table()
    ours = TreeClassifier(max_depth=5).fit(inputs, classes)
    path = ours.decision_path(inputs)
    assert path.shape == (600, ours.model_.tree.n_nodes)
    theirs = DecisionTreeClassifier(max_depth=5, random_state=0).fit(inputs, classes).decision_path(inputs)
    assert path.sum(axis=1).tolist() == theirs.sum(axis=1).tolist()
    leaves = ours.apply(inputs)
    for row in (0, 17, 599):
        nodes = path[row].indices.tolist()
        assert nodes == [step.node for step in ours.explain(inputs[row : row + 1])[0].paths[0]] + [leaves[row]]


def test_a_row_that_goes_down_several_branches_visits_them_all() -> None:
    inputs = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan]])
    model = TreeClassifier("c45", min_weight_leaf=1, pruning=None).fit(inputs, [0, 0, 1, 1, 1])
    assert model.decision_path(np.array([[np.nan], [1.0]])).toarray().tolist() == [
        [True, True, True],
        [True, True, False],
    ]


def test_validation_rows_are_tested_on_and_measured() -> None:
    inputs, classes, _ = table()
    data, other = (inputs[:400], classes[:400]), (inputs[400:], classes[400:])
    full = TreeClassifier().fit(*data, validation=other)
    n_wrong = int((full.predict(other[0]) != other[1]).sum())
    assert full.model_.training.held_out["errors"] == n_wrong
    pruned = TreeClassifier(pruning={"method": "reduced_error"}).fit(*data, validation=other)
    assert pruned.get_n_leaves() < full.get_n_leaves()
    assert (pruned.predict(other[0]) != other[1]).sum() <= n_wrong


def test_validation_rows_of_another_class_are_refused() -> None:
    inputs, classes, _ = table()
    with pytest.raises(ValueError, match="validation has the class 7, which is not in y"):
        TreeClassifier().fit(inputs, classes, validation=(inputs[:2], [7, 0]))
    with pytest.raises(ValueError, match=r"must be a tuple \(X, y\)"):
        TreeClassifier().fit(inputs, classes, validation=inputs)


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"min_samples_leaf": 0}, "/min_samples_leaf"),
        ({"min_samples_leaf": True}, "/min_samples_leaf"),
        ({"min_samples_leaf": 1.5}, "/min_samples_leaf"),
        ({"min_samples_leaf": 3, "min_weight_leaf": 2}, "/min_samples_leaf"),
        ({"min_samples_split": 1}, "/min_samples_split"),
        ({"ccp_alpha": -0.1}, "/ccp_alpha"),
        ({"ccp_alpha": math.inf}, "/ccp_alpha"),
        ({"ccp_alpha": 0.1, "pruning": {"method": "pessimistic"}}, "/ccp_alpha"),
    ],
    ids=str,
)
def test_a_parameter_that_is_not_legal_is_refused_by_its_name(parameters: dict[str, Any], path: str) -> None:
    with pytest.raises(EstimatorError) as caught:
        TreeClassifier(**parameters).fit(*table(50)[:2])
    assert [fault.path for fault in caught.value.faults] == [path]


def test_a_least_number_of_rows_is_refused_where_rows_have_weights() -> None:
    inputs, classes, _ = table(50)
    with pytest.raises(EstimatorError, match="set min_weight_leaf, which adds up weights"):
        TreeClassifier(min_samples_leaf=3).fit(inputs, classes, np.full(50, 2.0))


TWO = ([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"preset": "reptree"}, "n_samples=2 is too few to hold out rows"),
        ({"pruning": {"method": "reduced_error"}}, "the configuration stops or prunes by held-out rows"),
        ({"validation_stop": True}, "the configuration stops or prunes by held-out rows"),
    ],
    ids=str,
)
def test_lacking_validation_rows_are_named_as_the_argument_that_gives_them(parameters: Any, reason: str) -> None:
    with pytest.raises(EstimatorError) as caught:
        TreeClassifier(**parameters).fit(*TWO)
    [fault] = caught.value.faults
    assert fault.path == "/validation"
    assert "must be given, as in fit(..., validation=(X, y))" in fault.message
    assert reason in fault.message
    assert TreeClassifier(**parameters).fit(*TWO, validation=([[0.0], [3.0]], [0, 1])).model_.training.held_out


def test_training_rows_are_refused_as_validation_rows() -> None:
    with pytest.raises(EstimatorError, match=r"^/validation: is the training data itself: give other rows$"):
        TreeClassifier().fit(*TWO, validation=TWO)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"criterion": "absolute_error"}, "risk must be error: a tree grown by absolute_error does not keep"),
        ({"criterion": "poisson"}, "risk must be error: a tree grown by poisson does not keep"),
        ({"preset": "m5"}, "method must be model_tree if leaf is linear"),
    ],
    ids=str,
)
def test_a_ccp_alpha_and_a_pruning_path_are_refused_if_the_tree_keeps_no_impurity(parameters: Any, reason: str) -> None:
    inputs, _, numbers = table(50)
    for ask in (
        TreeRegressor(**parameters, ccp_alpha=0.1).fit,
        TreeRegressor(**parameters).cost_complexity_pruning_path,
    ):
        with pytest.raises(EstimatorError) as caught:
            ask(inputs, np.abs(numbers))
        [fault] = caught.value.faults
        assert fault.path == "/ccp_alpha"
        assert f"must be 0: set pruning, whose {reason}" in fault.message


def test_a_pruning_that_is_not_legal_is_refused_by_its_own_name() -> None:
    inputs, _, numbers = table(50)
    pruning = {"method": "cost_complexity", "alpha": 0.1}
    with pytest.raises(EstimatorError, match=r"^/pruning/risk: must be error"):
        TreeRegressor(criterion="absolute_error", pruning=pruning).fit(inputs, numbers)
    legal = TreeRegressor(criterion="absolute_error", pruning=pruning | {"risk": "error", "alpha": 1e9})
    assert legal.fit(inputs, numbers).get_n_leaves() == 1
