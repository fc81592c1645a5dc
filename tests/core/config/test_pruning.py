"""What may be said of pruning: parameters, their combinations, and how a configuration holds them."""

import pytest

from espalier import (
    PRESETS,
    PRUNERS,
    ConfigError,
    CostComplexity,
    Holdout,
    Pessimistic,
    ReducedError,
    config_from_dict,
    config_to_dict,
    dataset_from_rows,
    from_json,
    prune,
    pruning_method,
    summary,
    to_json,
    train,
    train_traced,
    training_config,
)


def faults(error: pytest.ExceptionInfo[ConfigError]) -> set[str]:
    return {fault.path for fault in error.value.faults}


def noisy_rows(n_rows: int = 60) -> list[dict[str, object]]:
    """One attribute that tells the class of nine rows in ten, and one that tells nothing."""
    return [
        {"length": row % 10, "other": row * 7 % 13, "kind": "ab"[(row % 10 > 4) ^ (row % 11 == 3)]}
        for row in range(n_rows)
    ]


def data():
    return dataset_from_rows(noisy_rows(), target="kind")


def test_every_wrong_parameter_is_told_by_its_path() -> None:
    with pytest.raises(ConfigError) as error:
        pruning_method("pessimistic", confidence=0, quantile="t", raise_=1)
    assert faults(error) == {"/confidence", "/quantile", "/raise_"}


@pytest.mark.parametrize("params", [{}, {"alpha": 0.1, "select": "cv"}])
def test_a_price_is_either_given_or_selected(params: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="either alpha or select must be given") as error:
        pruning_method("cost_complexity", **params)
    assert faults(error) == {"/alpha"}


def test_presets_prune_as_their_systems_do() -> None:
    assert PRESETS["cart"].pruning is None
    assert PRESETS["id3"].pruning is None
    assert PRESETS["c45"].pruning == Pessimistic(0.25, "c45", raising=True)
    assert PRESETS["j48"].pruning == Pessimistic(0.25, "normal", raising=True)
    assert PRESETS["reptree"].pruning == ReducedError(ties="prune", backfit=True)


def test_what_an_object_does_not_say_stays_as_the_preset_has_it() -> None:
    changed = training_config("c45", pruning={"confidence": 0.1}).pruning
    assert changed == Pessimistic(0.1, "c45")
    assert training_config("c45", pruning={"method": "reduced_error"}).pruning == ReducedError()
    assert training_config("c45", pruning=None).pruning is None
    assert training_config("cart", pruning=CostComplexity(0.5)).pruning == CostComplexity(0.5)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"confidence": 0.1}, "/pruning/method"),
        ({"method": "axe"}, "/pruning/method"),
        ({"method": "pessimistic", "confidence": 3}, "/pruning/confidence"),
        ({"method": "cost_complexity"}, "/pruning/alpha"),
        (CostComplexity(), "/pruning/alpha"),
        ("pessimistic", "/pruning"),
    ],
)
def test_a_wrong_pruning_is_told_by_its_path_inside_the_configuration(given: object, path: str) -> None:
    with pytest.raises(ConfigError) as error:
        training_config("cart", pruning=given)
    assert faults(error) == {path}


def test_a_configuration_with_its_pruning_comes_back_from_its_json_form() -> None:
    for config in [*PRESETS.values(), training_config("cart", pruning={"method": "cost_complexity", "select": "cv"})]:
        assert config_from_dict(config_to_dict(config)) == config


def test_training_prunes_at_its_end_and_says_so() -> None:
    grown, pruned = train(data(), "c45", pruning=None), train(data(), "c45")
    assert prune(grown, Pessimistic(quantile="c45"), dataset=data()).model.tree == pruned.tree
    assert any(note.startswith("unpruned") for note in grown.notes)
    assert not any(note.startswith("unpruned") for note in pruned.notes)
    assert summary(pruned)["pruning"]["method"] == "pessimistic"
    again = from_json(to_json(pruned))
    assert (again.tree, again.pruning, again.config) == (pruned.tree, pruned.pruning, pruned.config)


def test_the_trace_of_a_pruning_in_training_is_that_of_the_same_pruning_afterwards() -> None:
    _, trace = train_traced(data(), "c45")
    grown, none = train_traced(data(), "c45", pruning=None)
    assert none is None
    assert trace == prune(grown, Pessimistic(quantile="c45"), dataset=data()).trace


def test_reptree_sets_aside_a_third_of_the_rows_and_calls_them_validation() -> None:
    model = train(data(), "reptree", seed=5)
    assert model.training.holdout == Holdout(1 / 3, 5)
    assert model.training.held_out_use == "validation"
    assert model.tree.weight[0] == 60  # the rows set aside are counted in afterwards


def test_listed_rows_are_set_aside_instead() -> None:
    rows = Holdout(rows=(1, 5, 9, 20, 40))
    assert train(data(), "reptree", holdout=rows).training.holdout == rows


def test_without_rows_to_prune_by_another_preset_asks_for_them() -> None:
    with pytest.raises(ConfigError) as error:
        train(data(), "cart", pruning={"method": "reduced_error"})
    assert faults(error) == {"/holdout"}


def test_a_regression_cannot_be_pruned_by_numbers_of_errors() -> None:
    numbers = dataset_from_rows([{"x": x, "y": x * 0.5} for x in range(30)], target="y", task="regression")
    with pytest.raises(ConfigError) as error:
        train(numbers, "cart", pruning={"method": "pessimistic"})
    assert faults(error) == {"/pruning/method"}


def test_rows_that_only_measured_stay_a_holdout_and_rows_that_chose_are_validation() -> None:
    model = train(data(), "cart", holdout=Holdout(0.3))
    measured = prune(model, Pessimistic(), dataset=data()).model
    assert measured.training.held_out_use == "holdout"
    chosen = prune(measured, CostComplexity(select="validation"), dataset=data()).model
    assert chosen.training.held_out_use == "validation"
    assert prune(chosen, CostComplexity(0.0), dataset=data()).model.training.held_out_use == "validation"


def test_every_pruning_method_can_be_found_by_name() -> None:
    assert {"reduced_error", "pessimistic", "cost_complexity"} <= set(PRUNERS)
