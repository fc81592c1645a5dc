"""Training configurations, presets, pruning parameters, held-out rows: what is legal, and every fault by its path."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, strategies as st

from espalier import (
    PRESET_SENTENCES,
    PRESETS,
    PRUNERS,
    ConfigError,
    Feature,
    FeatureKind,
    Holdout,
    Role,
    Schema,
    TrainingConfig,
    check_training,
    config_from_dict,
    config_to_dict,
    field_table,
    holdout_from_dict,
    pruning_method,
    training_config,
)
from tests.core.planted import MIXED, NUMBERS

FIELDS = field_table(TrainingConfig)
NOMINAL_ONLY = Schema((MIXED.features[1], MIXED.features[-1]))
NEVER_LEGAL = [object(), {"": object()}, math.nan, math.inf, -1, -0.5, "magic", [], [None], b"gini", 1j]


def refused(call):
    with pytest.raises(ConfigError) as caught:
        call()
    return {(fault.path, fault.code) for fault in caught.value.faults}


def may_be_null(field):
    return field.legal.endswith("or null")


def test_every_field_of_the_configuration_is_in_the_table_with_its_meaning():
    names = {field.name for field in dataclasses.fields(TrainingConfig)} - {"preset"}
    assert {field.name for field in FIELDS} == names
    assert all(field.meaning and field.legal for field in FIELDS)


def test_every_preset_says_in_a_sentence_what_it_is():
    assert set(PRESET_SENTENCES) == set(PRESETS)
    assert {config.preset for config in PRESETS.values()} == set(PRESETS)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_default_and_every_choice_of_a_field_is_legal(field):
    for value in (field.default, *field.choices):
        config = training_config("cart", **{field.name: value})
        assert getattr(config, field.name) == value


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_null_is_legal_exactly_where_the_table_says_so(field):
    if may_be_null(field):
        assert getattr(training_config("cart", **{field.name: None}), field.name) is None
    else:
        assert refused(lambda: training_config("cart", **{field.name: None})) == {(f"/{field.name}", "not_legal")}


@pytest.mark.parametrize("value", NEVER_LEGAL, ids=range(len(NEVER_LEGAL)))
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_value_that_is_never_legal_is_refused_with_the_legal_ones(field, value):
    with pytest.raises(ConfigError) as caught:
        training_config("cart", **{field.name: value})
    (fault,) = caught.value.faults
    if field.name == "pruning":  # an object with fields of its own, which say what is wrong with them
        assert fault.path.startswith("/pruning")
    else:
        assert (fault.path, fault.code, fault.message) == (f"/{field.name}", "not_legal", f"must be {field.legal}")


@pytest.mark.parametrize("field", [field for field in FIELDS if field.legal == "true or false"], ids=lambda f: f.name)
def test_a_switch_takes_true_and_false_only(field):
    for value in (0, 1, "true", "false", 1.0):
        assert refused(lambda value=value: training_config("cart", **{field.name: value}))
    assert getattr(training_config("cart", **{field.name: True}), field.name) is True


@pytest.mark.parametrize("field", [field for field in FIELDS if "whole number" in field.legal], ids=lambda f: f.name)
def test_a_whole_number_is_no_truth_value_no_fraction_and_no_text(field):
    for value in (True, 1.5, 1.0, "1"):
        assert refused(lambda value=value: training_config("cart", **{field.name: value}))


def test_all_faults_come_at_once_each_with_its_path():
    given_fields = {"criterion": "magic", "max_depth": -1, "collapse": 1, "a/b": 2, "min_weight_leaf": "x"}
    assert refused(lambda: training_config("cart", **given_fields)) == {
        ("/criterion", "not_legal"),
        ("/max_depth", "not_legal"),
        ("/collapse", "not_legal"),
        ("/a~1b", "unknown_field"),
        ("/min_weight_leaf", "not_legal"),
    }


@pytest.mark.parametrize("preset", ["", "CART", "magic", 3])
def test_another_preset_is_refused_with_the_legal_ones(preset):
    with pytest.raises(ConfigError, match="/preset: must be one of id3, c45"):
        training_config(preset)


@pytest.mark.parametrize("preset", [None, 3, [], {}])
def test_a_document_whose_preset_is_no_text_is_refused(preset):
    assert refused(lambda: config_from_dict({"preset": preset})) == {("/preset", "wrong_type")}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_reads_back_from_its_json_form(preset):
    document = json.loads(json.dumps(config_to_dict(PRESETS[preset])))
    assert config_from_dict(document) == PRESETS[preset]


@given(
    costs=st.none() | st.dictionaries(st.text(max_size=3), st.floats(0, 9), min_size=1, max_size=3),
    cuts=st.none()
    | st.dictionaries(st.text(max_size=3), st.lists(st.floats(-9, 9), min_size=1, max_size=3), min_size=1, max_size=3),
    weights=st.none() | st.just("balanced") | st.dictionaries(st.text(max_size=3), st.floats(0, 9), min_size=1),
    depth=st.none() | st.integers(0, 99),
    leaf=st.floats(0, 1e6) | st.integers(0, 10**6),
)
def test_a_changed_preset_reads_back_from_its_json_form(costs, cuts, weights, depth, leaf):
    config = training_config(
        "cart", attribute_costs=costs, cut_points=cuts, class_weight=weights, max_depth=depth, min_weight_leaf=leaf
    )
    assert config_from_dict(json.loads(json.dumps(config_to_dict(config)))) == config
    assert hash(config) == hash(config_from_dict(config_to_dict(config)))


def test_a_configuration_cannot_be_written():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRESETS["cart"].max_depth = 3
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["cart"]


# What may be combined with which data


def test_id3_refuses_ordered_attributes_and_names_c45():
    with pytest.raises(ConfigError, match=r"/numeric: .*'length', 'size' are not: use the preset c45"):
        check_training(MIXED, PRESETS["id3"])
    check_training(MIXED, training_config("id3", numeric="best"))
    check_training(NOMINAL_ONLY, PRESETS["id3"])


@pytest.mark.parametrize("preset", ["id3", "c45"])
def test_a_preset_for_classes_refuses_a_target_of_numbers_and_names_cart(preset):
    with pytest.raises(ConfigError, match=r"/criterion: the target has numbers: .*or use the preset cart"):
        check_training(NUMBERS, PRESETS[preset])
    check_training(NUMBERS, PRESETS["cart"])


@pytest.mark.parametrize(
    ("schema", "fields", "fault"),
    [
        (MIXED, {"criterion": "squared_error"}, ("/criterion", "task")),
        (NUMBERS, {"criterion": "gini"}, ("/criterion", "task")),
        (NUMBERS, {"class_weight": "balanced"}, ("/class_weight", "task")),
        (MIXED, {"class_weight": {"z": 1.0}}, ("/class_weight/z", "unknown_class")),
        (MIXED, {"class_weight": dict.fromkeys(map(str, MIXED.classes), 0)}, ("/class_weight", "not_legal")),
        (MIXED, {"cost_function": "nunez"}, ("/attribute_costs", "required")),
        (MIXED, {"attribute_costs": {"length": 1}}, ("/cost_function", "required")),
        (MIXED, {"attribute_costs": {"z": 1}, "cost_function": "nunez"}, ("/attribute_costs/z", "unknown_attribute")),
        (
            MIXED,
            {"attribute_costs": {"length": 0}, "cost_function": "norton"},
            ("/attribute_costs/length", "not_legal"),
        ),
        (MIXED, {"cut_points": {"z": [1]}}, ("/cut_points/z", "unknown_attribute")),
        (MIXED, {"cut_points": {"colour": [1]}}, ("/cut_points/colour", "kind")),
        (MIXED, {"cut_points": {"kind": [1]}}, ("/cut_points/kind", "unknown_attribute")),
        (Schema(MIXED.features[:1]), {}, ("/target", "required")),
        (Schema(MIXED.features[-1:]), {}, ("/attributes", "required")),
        (
            Schema((MIXED.features[0], Feature("y", FeatureKind.NOMINAL, Role.TARGET, ("a",)))),
            {},
            ("/target", "one_class"),
        ),
    ],
)
def test_what_the_data_cannot_take_is_refused_by_path(schema, fields, fault):
    assert fault in refused(lambda: check_training(schema, training_config("cart", **fields)))


def test_a_message_lists_only_some_of_many_classes():
    target = Feature("y", FeatureKind.NOMINAL, Role.TARGET, tuple(f"class {place:04}" for place in range(5000)))
    with pytest.raises(ConfigError) as caught:
        check_training(Schema((MIXED.features[0], target)), training_config("cart", class_weight={"z": 1, "zz": 1}))
    legal = ", ".join(f"class {place:04}" for place in range(20))
    assert [fault.message for fault in caught.value.faults] == [f"must be one of {legal}, …"] * 2


@pytest.mark.parametrize("fields", [{"attribute_costs": {}}, {"cut_points": {}}, {"cut_points": {"length": []}}])
def test_what_must_not_be_empty_says_so(fields):
    with pytest.raises(ConfigError, match="at least one"):
        training_config("cart", **fields)


def test_costs_of_zero_are_legal_where_nothing_is_divided_by_them():
    check_training(MIXED, training_config("cart", attribute_costs={"length": 0}, cost_function="nunez"))


# Pruning methods


@pytest.mark.parametrize("method", PRUNERS)
def test_every_default_and_choice_of_a_pruning_method_is_legal(method):
    needed = {"cost_complexity": {"select": "validation"}}.get(method, {})
    for field in field_table(PRUNERS[method]):
        for value in (field.default, *field.choices):
            params = {**needed, field.name: value} if value is not None else needed
            assert getattr(pruning_method(method, **params), field.name) == params.get(field.name, value)
        assert refused(lambda field=field: pruning_method(method, **{**needed, field.name: object()})) == {
            (f"/{field.name}", "not_legal")
        }
    assert refused(lambda: pruning_method(method, **needed, magic=1)) == {("/magic", "unknown_field")}


@pytest.mark.parametrize("method", ["", "magic", "Reduced_Error"])
def test_another_pruning_method_is_refused_with_the_legal_ones(method):
    with pytest.raises(ConfigError, match=r"/method: must be one of .*reduced_error"):
        pruning_method(method)


# Held-out rows


@pytest.mark.parametrize(
    ("document", "holdout"),
    [
        ({"fraction": 0.3}, Holdout(0.3)),
        ({"fraction": 0.3, "seed": 7, "stratified": False}, Holdout(0.3, 7, stratified=False)),
        ({"rows": [3, 0]}, Holdout(rows=(3, 0))),
        ({"rows": (1,)}, Holdout(rows=(1,))),
    ],
)
def test_a_holdout_is_read(document, holdout):
    assert holdout_from_dict(document) == holdout


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (None, ""),
        ([], ""),
        (0.3, ""),
        ({}, ""),
        ({"seed": 1}, ""),
        ({"fraction": 0.3, "rows": [1]}, ""),
        ({"fraction": 0}, "/fraction"),
        ({"fraction": 1}, "/fraction"),
        ({"fraction": -0.5}, "/fraction"),
        ({"fraction": math.nan}, "/fraction"),
        ({"fraction": "0.3"}, "/fraction"),
        ({"fraction": True}, "/fraction"),
        ({"fraction": None}, "/fraction"),
        ({"fraction": 0.3, "seed": -1}, "/seed"),
        ({"fraction": 0.3, "seed": 1.0}, "/seed"),
        ({"fraction": 0.3, "seed": True}, "/seed"),
        ({"fraction": 0.3, "stratified": 1}, "/stratified"),
        ({"fraction": 0.3, "share": 1}, "/share"),
        ({"rows": []}, "/rows"),
        ({"rows": [1, 1]}, "/rows"),
        ({"rows": [-1]}, "/rows"),
        ({"rows": [1.0]}, "/rows"),
        ({"rows": "12"}, "/rows"),
        ({"rows": [1], "seed": 3}, "/seed"),
    ],
)
def test_what_is_no_holdout_is_refused_by_path(document, path):
    assert path in {place for place, _ in refused(lambda: holdout_from_dict(document))}
