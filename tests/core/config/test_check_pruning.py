"""What is refused before a pruning is what the pruning itself would refuse, and nothing else."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import espalier

CLASSES = espalier.dataset_from_rows(
    [{"x": row * 7 % 31, "c": "abc"[row % 3], "y": "pq"[(row * 7 % 31 > 15) ^ (row % 5 == 0)]} for row in range(60)],
    target="y",
)
NUMBERS = espalier.dataset_from_rows(
    [{"x": row * 7 % 31, "c": "abc"[row % 3], "y": row * 11 % 37 / 2 + row * 7 % 31} for row in range(60)], target="y"
)
KEPT = espalier.Holdout(rows=tuple(range(0, 60, 4)))
TREES: list[tuple[espalier.Dataset, dict[str, Any]]] = [
    (CLASSES, {"preset": "cart"}),
    (CLASSES, {"preset": "c45", "pruning": None}),
    (CLASSES, {"preset": "cart", "validation_stop": True}),
    (CLASSES, {"preset": "reptree"}),
    (NUMBERS, {"preset": "cart"}),
    (NUMBERS, {"preset": "cart", "criterion": "absolute_error"}),
    (NUMBERS, {"preset": "cart", "criterion": "poisson"}),
    (NUMBERS, {"preset": "m5", "pruning": None}),
]
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("reduced_error", {}),
    ("reduced_error", {"backfit": True}),
    ("pessimistic", {}),
    ("pessimistic", {"raising": False}),
    ("cost_complexity", {"alpha": 0.01}),
    ("cost_complexity", {"alpha": 0.01, "risk": "error"}),
    ("cost_complexity", {"alpha": 0.01, "risk": "leaf_impurity"}),
    ("cost_complexity", {"select": "validation"}),
    ("cost_complexity", {"select": "cv", "folds": 3, "risk": "error"}),
    ("cost_complexity", {"select": "cv", "folds": 46}),
    ("rules", {}),
    ("rules", {"estimate": "pessimistic"}),
    ("model_tree", {}),
]


def refused(check: Any) -> bool:
    try:
        check()
    except (espalier.NotApplicable, espalier.ConfigError):
        return True
    return False


@pytest.mark.parametrize("at_hand", ["the data set at hand", "the data set gone"])
@pytest.mark.parametrize("place", range(len(TREES)))
def test_a_method_is_refused_beforehand_just_where_it_refuses_itself(place: int, at_hand: str) -> None:
    dataset, config = TREES[place]
    has_rows = at_hand == "the data set at hand"
    # Without the data set the held-out rows are another one's, so that nothing but the training rows is not at hand.
    rows = [row for row in range(60) if row not in (KEPT.rows or ())]
    held_out: Any = KEPT if has_rows else dataset.take(np.array(KEPT.rows))
    model = espalier.train(dataset if has_rows else dataset.take(np.array(rows)), config, holdout=held_out)
    for method, params in METHODS:
        pruner = espalier.pruning_method(method, **params)

        validation_data = None if has_rows else held_out.fingerprint
        beforehand = refused(
            partial(espalier.check_pruning, model, pruner, has_training_rows=has_rows, validation_data=validation_data)
        )
        given = {"dataset": dataset} if has_rows else {"holdout": held_out}
        itself = refused(partial(espalier.prune, model, pruner, **given))

        assert beforehand == itself, (config, method, params)


def test_a_list_of_rules_is_refused_by_every_method() -> None:
    rules = espalier.prune(espalier.train(CLASSES, "cart", holdout=KEPT), "rules", dataset=CLASSES).model
    for method, params in METHODS:
        pruner = espalier.pruning_method(method, **params)
        with pytest.raises(espalier.ConfigError) as error:
            espalier.check_pruning(rules, pruner)
        assert [fault.path for fault in error.value.faults] == ["/method"]
        with pytest.raises(espalier.NotApplicable):
            espalier.prune(rules, pruner, dataset=CLASSES)


@pytest.mark.parametrize("place", range(len(TREES)))
def test_a_training_that_is_not_refused_before_it_begins_is_pruned_to_its_end(place: int) -> None:
    dataset, fields = TREES[place]
    for method, params in METHODS:
        if params.get("folds") == 46:  # more than rows: that is not a matter of the configuration
            continue
        config = espalier.training_config(**(fields | {"pruning": {"method": method, **params}}))
        if not refused(partial(espalier.check_training, dataset.schema, config)):
            assert espalier.train(dataset, config, holdout=KEPT).pruning == {
                "method": method,
                **espalier.config_to_dict(config)["pruning"],
            }
