"""A tree of another system is pruned by the statistics of its nodes only if these are the sums over their branches."""

from pathlib import Path

import numpy as np
import pytest

import espalier
from espalier import Model, NotApplicable
from tests.reference.pessimistic import Limit, added

DOCUMENTS = Path(__file__).parents[1] / "importing" / "pmml"
BY_STATISTICS = [
    ("cost_complexity", {"alpha": 0.0, "risk": "error"}),
    ("cost_complexity", {"select": "validation"}),
    ("pessimistic", {"raising": False}),
]
WITHOUT_SUMS = ["partykit", "knime", "rpart"]
"""In the first two, a leaf repeats its node for missing values; the last does not give the spread of the rows."""


def imported(name: str) -> Model:
    missing = "majority" if name.startswith("sklearn") else None
    return espalier.from_pmml((DOCUMENTS / f"{name}.pmml").read_bytes(), missing=missing)


def held_out(model: Model) -> espalier.Dataset:
    target = model.schema.target
    assert target is not None
    rows = [{feature.name: None for feature in model.schema.attributes} for _ in range(4)]
    answers = model.schema.classes[:2] or (1.0, 2.0)
    listed = [{**row, target.name: answers[place % 2]} for place, row in enumerate(rows)]
    return espalier.dataset_from_rows(listed, schema=model.schema)


@pytest.mark.parametrize(("method", "parameters"), BY_STATISTICS)
@pytest.mark.parametrize("name", WITHOUT_SUMS)
def test_statistics_that_are_not_sums_over_the_branches_do_not_prune(
    name: str, method: str, parameters: dict[str, object]
) -> None:
    model = imported(name)
    if model.task == "regression" and method == "pessimistic":
        method, parameters = "model_tree", {}
    with pytest.raises(NotApplicable, match="method: needs the statistics of training rows at every node"):
        espalier.prune(model, method, holdout=held_out(model), **parameters)


@pytest.mark.parametrize("name", WITHOUT_SUMS)
def test_there_is_no_path_of_such_a_tree(name: str) -> None:
    with pytest.raises(NotApplicable, match="needs the statistics of training rows at every node"):
        espalier.pruning_path(imported(name), "error")


@pytest.mark.parametrize("name", WITHOUT_SUMS)
def test_held_out_rows_prune_such_a_tree_and_its_training_figures_stay_unknown(name: str) -> None:
    model = imported(name)
    pruned = espalier.prune(model, "reduced_error", holdout=held_out(model)).model
    assert pruned.training.train == model.training.train == {"n_rows": model.training.n_rows}


def test_a_document_with_the_counts_of_all_nodes_is_pruned_by_them() -> None:
    model = imported("sklearn_iris")
    path = espalier.pruning_path(model, "error")
    assert path.leaves[0] == model.tree.n_leaves  # no leaf has an error: each saves some
    assert path.risk[-1] == model.tree.weight[0] - model.tree.stats[0].max()


# Repeated numbers: nodes whose rows have the same number have squared deviations that are rounding errors.
@pytest.mark.parametrize("target", ["classes", "numbers", "repeated numbers"])
def test_the_path_of_a_tree_of_scikit_learn_is_the_one_that_it_gives_itself(target: str) -> None:
    tree = pytest.importorskip("sklearn.tree")
    draw = np.random.default_rng(3)
    x, noise = draw.standard_normal((150, 3)), draw.standard_normal(150)
    numbers = x[:, 0] * x[:, 1] + noise
    if target == "repeated numbers":
        numbers = np.floor(numbers) + 0.1
    kind = tree.DecisionTreeClassifier if target == "classes" else tree.DecisionTreeRegressor
    estimator = kind(random_state=0)
    y = (numbers > 0).astype(int) + (numbers > 1) if target == "classes" else numbers
    theirs = estimator.fit(x, y).cost_complexity_pruning_path(x, y)
    ours = espalier.pruning_path(espalier.from_sklearn(estimator))
    is_last = np.append(np.diff(theirs.ccp_alphas) > 1e-9, True)  # equal prices are listed several times there
    assert ours.alpha == pytest.approx(theirs.ccp_alphas[is_last], rel=1e-6, abs=1e-9)
    assert ours.risk == pytest.approx(theirs.impurities[is_last], rel=1e-6, abs=1e-9)


def test_a_tree_of_scikit_learn_whose_numbers_are_far_from_zero_is_pruned() -> None:
    """Scikit-learn computes deviations as the mean square less the squared mean, which loses digits here."""
    tree = pytest.importorskip("sklearn.tree")
    draw = np.random.default_rng(3)
    x = draw.standard_normal((150, 3))
    for offset in (1e6, 1e7):
        y = x[:, 0] * x[:, 1] + draw.standard_normal(150) + offset
        estimator = tree.DecisionTreeRegressor(random_state=0, max_depth=4).fit(x, y)
        assert espalier.pruning_path(espalier.from_sklearn(estimator)).leaves[-1] == 1


def test_estimated_errors_are_those_of_the_answers_even_if_another_class_is_heavier() -> None:
    """With a loss matrix, other systems may answer with a class that is not the most frequent one."""
    counts = {0: {"a": 40, "b": 2}, 1: {"a": 5, "b": 20}}
    rows = [{"x": x, "y": y} for x, of_class in counts.items() for y, count in of_class.items() for _ in range(count)]
    document = espalier.to_document(espalier.train(espalier.dataset_from_rows(rows, target="y"), "cart"))
    assert document["tree"]["value"] == [0, 0, 1]
    changed = {**document, "tree": {**document["tree"], "value": [0, 0, 0]}}

    found = espalier.prune(espalier.from_document(changed), "pessimistic", raising=False)

    limit = Limit(0.25)
    assert found.trace["before"]["estimate"] == pytest.approx(2 + added(42, 2, limit) + 20 + added(25, 20, limit))
    assert found.trace["after"] == {"leaves": 1, "nodes": 1, "estimate": pytest.approx(22 + added(67, 22, limit))}
    kept = espalier.prune(espalier.from_document(document), "pessimistic", raising=False)
    assert kept.trace["before"]["estimate"] == pytest.approx(2 + added(42, 2, limit) + 5 + added(25, 5, limit))
    assert kept.model.tree.n_leaves == 2
