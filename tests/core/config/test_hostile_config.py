"""Configurations as an enemy would write them: whatever is given, a configuration or every fault of it by its path.

And what passes trains on small tables, or is refused for a reason.
"""

import contextlib
import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from espalier import (
    PRESETS,
    ConfigError,
    CostComplexity,
    Dataset,
    EspalierError,
    Holdout,
    Pessimistic,
    TrainingConfig,
    config_from_dict,
    config_to_dict,
    dataset_from_rows,
    field_table,
    from_json,
    holdout_from_dict,
    predict,
    profile,
    prune,
    pruning_method,
    to_json,
    train,
    training_config,
)

FIELDS = field_table(TrainingConfig)
HUGE = [10**400, -(10**400), 2**1024, 2**70, 2**63, 2**64 - 1, 2**53 + 1, 1e308, 5e-324, math.nan, math.inf, -math.inf]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(HUGE)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def nested(depth: int, wrap: Any) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


NEVER_LEGAL = [
    *(value for value in HUGE if not 0 < value <= 1e308),
    nested(50_000, lambda inner: [inner]),
    nested(50_000, lambda inner: {"a": inner}),
    {"a": 10**400},
    {"a": [10**400]},
    {"a": {}},
    {"a": []},
    {"": None},
    {1: 2},
    [[]],
    (),
    (("a", 1), ("a", 2)),
    b"x",
]


def ages(**changed: Any) -> Dataset:
    rows = [{"age": n % 5, "town": "xyz"[n % 3] if n % 7 else None, "y": "pq"[n % 2]} for n in range(12)]
    return dataset_from_rows([{**row, **changed} for row in rows], target="y")


def hours() -> Dataset:
    return dataset_from_rows([{"age": n % 5, "town": "xyz"[n % 3], "y": n / 3} for n in range(12)], target="y")


CLASSES, NUMBERS = ages(), hours()


def faults_of(call: Any) -> set[str]:
    with pytest.raises(ConfigError) as caught:
        call()
    return {fault.path for fault in caught.value.faults}


@pytest.mark.parametrize("value", NEVER_LEGAL, ids=range(len(NEVER_LEGAL)))
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_no_field_takes_what_is_out_of_every_range(field: Any, value: Any) -> None:
    assert all(
        path.startswith(f"/{field.name}") for path in faults_of(lambda: training_config("cart", **{field.name: value}))
    )


@pytest.mark.parametrize("name", ["max_depth", "max_leaf_nodes", "seed"])
@pytest.mark.parametrize("value", [10**400, 2**70, 2**64 - 1, 2**63])
def test_a_whole_number_fits_where_it_is_put(name: str, value: int) -> None:
    assert faults_of(lambda: training_config("cart", **{name: value})) == {f"/{name}"}


def test_the_largest_legal_values_train() -> None:
    largest = {"max_depth": 2**53, "max_leaf_nodes": 2**53, "seed": 2**63 - 1, "max_surrogates": 100}
    assert train(CLASSES, "cart", **largest).tree == train(CLASSES, "cart", max_leaf_nodes=1000).tree
    assert train(CLASSES, "cart", min_weight_leaf=1e308, min_weight_split=1e308).tree.n_nodes == 1
    assert from_json(to_json(train(CLASSES, "cart", **largest))).config.seed == 2**63 - 1


@pytest.mark.parametrize("given_value", [[], {}, ["cart"], {"cart": 1}, None, 3, 10**400, b"cart", ("cart",)])
def test_what_is_no_name_is_no_preset_and_no_method(given_value: Any) -> None:
    assert faults_of(lambda: training_config(given_value)) == {"/preset"}
    assert faults_of(lambda: pruning_method(given_value)) == {"/method"}
    assert faults_of(lambda: training_config("cart", pruning={"method": given_value})) == {"/pruning/method"}


@pytest.mark.parametrize("document", [None, 3, "cart", ["cart"], [[]], b"x", 1.5, object()])
def test_what_is_no_object_is_no_configuration(document: Any) -> None:
    assert faults_of(lambda: config_from_dict(document)) == {""}


@pytest.mark.parametrize("value", [*NEVER_LEGAL, -1, True, "x", []], ids=range(len(NEVER_LEGAL) + 4))
@pytest.mark.parametrize("name", ["fraction", "rows", "seed", "stratified"])
def test_no_part_of_a_holdout_takes_what_is_out_of_every_range(name: str, value: Any) -> None:
    if (name, value) == ("stratified", True):
        return
    document = {name: value} if name in ("fraction", "rows") else {"fraction": 0.5, name: value}
    assert faults_of(lambda: holdout_from_dict(document)) == {f"/{name}"}
    assert faults_of(lambda: train(CLASSES, holdout=document)) == {f"/holdout/{name}"}


@pytest.mark.parametrize("holdout", [0.3, "0.3", [1], {}, {"fraction": 0.3, "rows": [1]}])
def test_what_is_no_holdout_is_refused_by_its_place(holdout: Any) -> None:
    model = train(CLASSES, "cart")
    assert faults_of(lambda: train(CLASSES, holdout=holdout)) == {"/holdout"}
    assert faults_of(lambda: prune(model, "reduced_error", dataset=CLASSES, holdout=holdout)) == {"/holdout"}


def test_a_holdout_may_be_given_in_its_json_form() -> None:
    by_value = train(CLASSES, holdout=Holdout(0.5, seed=3))
    assert to_json(train(CLASSES, holdout={"fraction": 0.5, "seed": 3})) == to_json(by_value)


@pytest.mark.parametrize("rows", [5, None, "12", [0, -1]])
def test_a_holdout_made_by_hand_is_checked_too(rows: Any) -> None:
    assert faults_of(lambda: train(CLASSES, holdout=Holdout(rows=rows))) <= {"/holdout/rows", "/holdout/fraction"}


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (TrainingConfig(preset="magic"), "/preset"),
        (TrainingConfig(preset=["cart"]), "/preset"),  # type: ignore[arg-type]
        (TrainingConfig(max_depth="3"), "/max_depth"),  # type: ignore[arg-type]
        (TrainingConfig(cost_weight=[]), "/cost_weight"),  # type: ignore[arg-type]
        (TrainingConfig(attribute_costs=[("age", 1.0)]), "/attribute_costs"),  # type: ignore[arg-type]
        (TrainingConfig(min_weight_leaf=math.nan), "/min_weight_leaf"),
        (TrainingConfig(pruning="pessimistic"), "/pruning"),  # type: ignore[arg-type]
        (TrainingConfig(pruning=Pessimistic(confidence=7)), "/pruning/confidence"),
        (TrainingConfig(pruning=CostComplexity()), "/pruning/alpha"),
    ],
    ids=lambda each: str(each)[:40] if isinstance(each, str) else "",
)
def test_a_configuration_made_by_hand_is_checked_before_it_is_used(config: TrainingConfig, path: str) -> None:
    assert faults_of(lambda: train(CLASSES, config)) == {path}


def test_whole_numbers_and_numpy_s_are_numbers_like_any_other() -> None:
    by_hand = dataclasses.replace(PRESETS["cart"], min_weight_leaf=2, max_depth=np.int64(2))
    config = training_config("cart", min_weight_leaf=np.float32(2), max_depth=np.int64(2))
    assert config_to_dict(config) == config_to_dict(training_config("cart", min_weight_leaf=2.0, max_depth=2))
    assert to_json(train(CLASSES, by_hand)) == to_json(train(CLASSES, config))


@pytest.mark.parametrize("confidence", [5e-324, 1e-300, 1e-17])
@pytest.mark.parametrize("quantile", ["normal", "c45", "exact"])
def test_the_smallest_confidence_prunes_to_the_root(confidence: float, quantile: str) -> None:
    # No limit is above the whole weight, and that of the root is close to it: nothing is better than a leaf.
    method = pruning_method("pessimistic", confidence=confidence, quantile=quantile, raising=False)
    noise = dataset_from_rows([{"x": n, "y": "ab"[n % 2]} for n in range(40)], target="y")
    assert train(noise, "cart", pruning=method).tree.n_leaves <= train(noise, "cart").tree.n_leaves


def test_a_tree_of_one_leaf_has_one_price() -> None:
    method = {"method": "cost_complexity", "select": "cv", "folds": 2}
    model = train(CLASSES, "cart", max_depth=0, pruning=method)
    assert (model.tree.n_nodes, predict(model, [{}])[0].label) == (1, "p")


def test_a_name_as_long_as_a_book_is_not_said_again() -> None:
    with pytest.raises(ConfigError) as caught:
        training_config("cart", **{"x" * 1_000_000: 1})
    assert len(caught.value.faults[0].message) < 2_000


@given(document=JSON)
def test_any_json_is_a_configuration_or_refused(document: Any) -> None:
    for read in (config_from_dict, holdout_from_dict, pruning_method, training_config):
        with contextlib.suppress(ConfigError):
            read(document)


NUMBERS_TO_TRY = st.sampled_from([0, 1, 2, 5, 2**53, 0.0, 0.05, 0.5, 1.0, 3.5, 1e308, 5e-324])
NAMED = {
    "attribute_costs": st.dictionaries(st.sampled_from(["age", "town"]), NUMBERS_TO_TRY, min_size=1),
    "cut_points": st.dictionaries(st.just("age"), st.lists(NUMBERS_TO_TRY, min_size=1, max_size=3), min_size=1),
    "class_weight": st.just("balanced") | st.dictionaries(st.sampled_from("pq"), NUMBERS_TO_TRY, min_size=1),
    "pruning": st.sampled_from(
        [
            None,
            {"confidence": 5e-324},
            {"method": "pessimistic", "confidence": 0.5, "quantile": "exact"},
            {"method": "reduced_error", "order": "greedy", "compare": "initial"},
            {"method": "cost_complexity", "alpha": 1e308},
            {"method": "cost_complexity", "select": "cv", "folds": 2, "rule": "one_se"},
            {"method": "rules", "estimate": "pessimistic"},
            {"method": "model_tree"},
        ]
    ),
}


def likely(field: Any) -> st.SearchStrategy[Any]:
    """What is legal for the field, most of the time."""
    if field.name in NAMED:
        return NAMED[field.name]
    if field.choices:
        return st.sampled_from([*field.choices, field.default])
    return st.booleans() if field.legal == "true or false" else NUMBERS_TO_TRY


@st.composite
def likely_documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = {"preset": draw(st.sampled_from(["cart", "cart", *PRESETS]))}
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True)):
        document[field.name] = draw(likely(field))
    if "attribute_costs" in document:
        document.setdefault("cost_function", draw(st.sampled_from(["nunez", "norton", "tan_schlimmer"])))
    return document


@settings(max_examples=200)
@given(
    document=likely_documents(),
    data=st.sampled_from([CLASSES, NUMBERS]),
    holdout=st.sampled_from([None, {"fraction": 0.4, "seed": 1}]),
)
def test_what_passes_trains_or_is_refused(document: dict[str, Any], data: Dataset, holdout: Any) -> None:
    try:
        model = train(data, config_from_dict(document), holdout=holdout)
    except EspalierError:
        return
    again = from_json(to_json(model))
    assert again.config == model.config
    rows = data.rows()
    assert [answer.to_dict() for answer in predict(again, rows)] == [
        answer.to_dict() for answer in predict(model, rows)
    ]


@pytest.mark.parametrize(
    "base", [*HUGE[:3], 10**5000, math.nan, -1, True, [], {}, None, "", "x", b"2", 1j], ids=range(14)
)
def test_another_base_of_logarithms_is_refused(base: Any) -> None:
    assert faults_of(lambda: profile(CLASSES, log_base=base)) == {"/log_base"}
