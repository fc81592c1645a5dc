"""Models as JSON: canonical bytes, read back with nothing taken on trust."""

import contextlib
import copy
import dataclasses
import functools
import hashlib
import json
import math
import operator

import numpy as np
import orjson
import pytest
from hypothesis import given, settings, strategies as st

from espalier import (
    DocumentError,
    Feature,
    FeatureKind,
    Holdout,
    Role,
    RowError,
    Schema,
    dataset_from_rows,
    explain,
    extract_rules,
    from_document,
    from_json,
    predict,
    prune,
    render_explanation,
    summary,
    to_document,
    to_json,
    to_mermaid,
    to_text,
    train,
)
from espalier.model.surrogates import Surrogates
from espalier.model.tree import Tree
from tests.altered import changed, spots, with_value
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, mixed_rows, plant, roots

A, B, C = Leaf((4.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0)), Leaf((0.0, 1.0, 3.0))
ROOT = Cut(0, 1.5, (Ask(1, (0, 1, -1), (A, B)), Known(2, (C, Ask(3, (1, 0), (A, B), fallback=1)))))
DATES = Schema(
    (
        Feature("day", FeatureKind.DATETIME),
        Feature("grade", FeatureKind.NOMINAL, categories=("007", 1, 1.5, True, "true", "", "🌳", "é")),
        Feature("w", FeatureKind.NUMERIC, Role.WEIGHT),
        Feature("id", FeatureKind.NOMINAL, Role.IGNORE, ("x",)),
        Feature("y", FeatureKind.BOOLEAN, Role.TARGET, (False, True)),
    ),
    ("?", "-"),
)
ROWS = [{}, {"length": 1, "colour": "red", "size": "small", "sold": True}, {"length": 9, "colour": "mauve"}]


def mixed_model():
    return plant(MIXED, ROOT)


def number_model():
    tree = Cut(0, 1.5, (Leaf((2.0, -3.0, 1.0)), Ask(1, (0, 1, 0), (Leaf((1.0, 5.5, 0.0)), Leaf((3.0, 2.0, 0.5))))))
    return plant(NUMBERS, tree, imputed=(math.nan, 0.0, 1.0, 0.0))


def date_model():
    tree = Cut(0, 86400.0, (Ask(1, (0, 1, 0, 1, 0, 1, 0, -1), (Leaf((1.0, 2.0)), Leaf((3.0, 0.0)))), Leaf((0.0, 1.0))))
    return plant(DATES, tree)


def surrogate_model():
    model = plant(MIXED, Cut(0, 1.5, (A, B)))
    extra = Surrogates(
        start=np.array([0, 2, 2, 2], dtype=np.int32),
        feature=np.array([2, 1], dtype=np.int32),
        test=np.array([1, 2], dtype=np.int8),
        threshold=np.array([0.5, math.nan]),
        below=np.array([1, 0], dtype=np.int32),
        code_start=np.array([0, 0, 3], dtype=np.int32),
        code_branch=np.array([0, 1, -1], dtype=np.int32),
        agreement=np.array([0.75, 0.5]),
    )
    return dataclasses.replace(model, body=dataclasses.replace(model.tree, surrogates=extra))


def trained_model():
    rows = [{"x": n % 7, "c": "uvw"[n % 3], "y": "ab"[(n * n) % 5 > 1]} for n in range(40)]
    data = dataset_from_rows(rows, target="y")
    model = train(data, "cart", holdout=Holdout(0.3, seed=3), class_weight={"a": 2.0})
    return prune(model, "reduced_error", dataset=data).model


def model_tree():
    rows = [{"x": n % 17 / 3, "c": "uvw"[n % 3], "y": n % 17 * 2.5 + n % 3 * (n * 7 % 11)} for n in range(60)]
    return train(dataset_from_rows(rows, target="y"), "m5")


def rule_list():
    rows = [{"x": n % 17 / 3, "c": "uvw"[n % 3], "y": "ab"[n % 17 * n % 3 > 0]} for n in range(60)]
    return extract_rules(train(dataset_from_rows(rows, target="y"), "cart", max_depth=2))


MODELS = [mixed_model, number_model, date_model, surrogate_model, trained_model, model_tree, rule_list]


def sha(model):
    return hashlib.sha256(to_json(model)).hexdigest()


@pytest.mark.parametrize("make", MODELS)
def test_a_model_reads_back_with_the_same_bytes_and_the_same_tree(make):
    model = make()
    again = from_json(to_json(model))
    assert to_json(again) == to_json(model)
    assert again.body == model.body
    assert (again.schema, again.config, again.notes) == (model.schema, model.config, model.notes)
    assert to_text(again) == to_text(model)
    assert summary(again) == summary(model)


@pytest.mark.parametrize("make", MODELS)
def test_the_bytes_are_plain_json_without_nan_and_sorted(make):
    content = to_json(make())
    read = json.loads(content, parse_constant=lambda word: pytest.fail(f"{word} in the document"))
    assert orjson.dumps(read, option=orjson.OPT_SORT_KEYS) == content
    assert (read["format"], read["format_version"]) == ("espalier", 1)
    assert read["kind"] in read


def test_a_document_that_went_through_another_json_library_gives_the_same_bytes():
    content = to_json(date_model())
    shuffled = json.dumps(json.loads(content), indent=3, ensure_ascii=True)
    assert to_json(from_json(shuffled)) == content


def test_labels_keep_their_type_and_spelling():
    again = from_json(to_json(date_model()))
    labels = again.schema.attributes[1].categories
    assert [(type(label), label) for label in labels] == [
        (str, "007"), (int, 1), (float, 1.5), (bool, True), (str, "true"), (str, ""), (str, "🌳"), (str, "é"),
    ]  # fmt: skip
    answer = predict(again, [{"day": "1969-01-01", "grade": "true"}])[0]
    assert answer.label is True
    assert answer.leaf == 2


@given(root=roots(MIXED), row=mixed_rows())
def test_a_classifier_answers_the_same_after_a_round_trip(root, row):
    model = plant(MIXED, root)
    again = from_json(to_json(model))
    assert to_json(again) == to_json(model)
    assert explain(again, [row], detail="full")[0].to_dict() == explain(model, [row], detail="full")[0].to_dict()


@given(root=roots(NUMBERS), row=mixed_rows())
def test_a_regression_answers_the_same_after_a_round_trip(root, row):
    model = plant(NUMBERS, root)
    again = from_json(to_json(model))
    assert to_json(again) == to_json(model)
    assert predict(again, [row])[0].to_dict() == predict(model, [row])[0].to_dict()


def test_training_twice_gives_the_same_bytes():
    assert sha(trained_model()) == sha(trained_model())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null",
        b"[]", b"3", b'"espalier"', b"\xff\xfe", b"\x00", b"NaN", b'{"format": NaN}', b"[" * 100_000,
        b'{"a":' * 100_000, '{"format": "\ud800"}', b"\xef\xbb\xbf{}", b'{"format":"espalier"}', b"{}",
        b'{"format":"espalier","format_version":1e400}',
    ],
)  # fmt: skip
def test_what_is_no_model_document_is_refused(content):
    with pytest.raises(DocumentError):
        from_json(content)


@pytest.mark.parametrize("document", [None, [], 3, "espalier", {}, {"format": "onnx"}])
def test_values_that_are_no_model_document_are_refused(document):
    with pytest.raises(DocumentError, match="/format"):
        from_document(document)


@pytest.mark.parametrize("value", ["\ud800", 2**64, {1: 2}, {3}, b"x", object()])
def test_values_that_json_cannot_hold_are_refused(value):
    with pytest.raises(DocumentError, match="values that JSON can hold"):
        from_document({**to_document(mixed_model()), "more": value})


def test_a_pruning_that_is_nested_deeper_than_can_be_written_is_refused():
    def content(n_levels):
        nested = b'{"a":' * (n_levels - 1) + b"{}" + b"}" * (n_levels - 1)
        return to_json(mixed_model()).replace(b'"pruning":null,"schema"', b'"pruning":' + nested + b',"schema"')

    assert to_json(from_json(content(250))) == content(250)
    for n_levels in (251, 254, 255, 900):
        with pytest.raises(DocumentError, match="/pruning: must have at most 250 levels"):
            from_json(content(n_levels))


@pytest.mark.parametrize("version", [0, 2, -1, 2**63, True, 1.0, "1", None, [1]])
def test_another_format_version_is_refused_and_says_which_can_be_read(version):
    with pytest.raises(DocumentError, match="/format_version: must be a version from 1 to 1"):
        from_document({**to_document(mixed_model()), "format_version": version})


def survives(document):
    """Read a document: refused with DocumentError, or a model for which everything works."""
    try:
        model = from_document(document)
    except DocumentError:
        return
    assert to_json(from_json(to_json(model))) == to_json(model)
    for row in [*ROWS, {"day": "2020-02-02", "grade": "🌳"}, {"x": 3, "c": "u"}]:
        try:
            (explanation,) = explain(model, [row], detail="full")
        except RowError:
            continue
        orjson.dumps(explanation.to_dict())
        assert all(share == share for _, share in explanation.prediction.distribution)  # noqa: PLR0124 - no NaN
        render_explanation(explanation)
    to_text(model)
    to_mermaid(model)
    summary(model)
    if isinstance(model.body, Tree):
        model.tree.collapsed(np.ones(model.tree.n_nodes, dtype=bool))


DOCUMENTS = {make.__name__: to_document(make()) for make in MODELS}


def places_by_document():
    """Places of each document to alter; outside tree and rules, one that an earlier document has alike is left out."""
    found, known = {}, set()
    for name, document in DOCUMENTS.items():
        found[name] = []
        for path in filter(None, spots(document)):
            place = (path, orjson.dumps(functools.reduce(operator.getitem, path, document)))
            if path[0] in ("tree", "rules") or place not in known:
                found[name].append(path)
            known.add(place)
    return found


PLACES = places_by_document()

OPTIONAL = {"notes", "pruning", "surrogates", "held_out", "held_out_use", "holdout", "imputed"}
OPTIONAL |= {"asked", "backfitted", "divided"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_without_one_of_its_parts_is_refused_or_was_complete_without(name):
    document = DOCUMENTS[name]
    for part in ("format", "format_version", "kind", "schema", "config", "preparation", document["kind"], "training"):
        with pytest.raises(DocumentError):
            from_document({key: value for key, value in document.items() if key != part})
    for part in (document["kind"], "training"):
        for field in document[part]:
            without = {**document, part: {key: value for key, value in document[part].items() if key != field}}
            if field in OPTIONAL:
                survives(without)
            else:
                with pytest.raises(DocumentError, match=f"/{part}/{field}"):
                    from_document(without)


HOSTILE = [
    None, True, 0, 1, -1, 2, 0.5, 1e308, -1e300, 10**400, 2**31, 2**63, 2**64, "", "x", "ordinal", "datetime", "target",
    "\ud800", "\x00", [], [0], [None], [[0.0, 0.0, 0.0]], {}, {"a": 1}, math.inf, math.nan,
]  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_hostile_value_in_any_place_does_anything_but_a_document_error(name):
    for path in PLACES[name]:
        for value in HOSTILE:
            survives(with_value(DOCUMENTS[name], path, value))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_missing_or_doubled_entry_does_anything_but_a_document_error(name):
    document = DOCUMENTS[name]
    for path in PLACES[name]:
        survives(changed(document, path, lambda holder, key: holder.__delitem__(key)))
        if isinstance(path[-1], int):
            survives(changed(document, path, lambda holder, key: holder.append(copy.deepcopy(holder[key]))))
            survives(changed(document, path, lambda holder, key: holder.reverse()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(data=st.data())
def test_several_random_changes_at_once_do_nothing_but_a_document_error(data):
    document = DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))]
    for _ in range(data.draw(st.integers(1, 3))):
        places = [path for path in spots(document) if path]
        path = data.draw(st.sampled_from(places))
        value = data.draw(JSON | st.sampled_from(HOSTILE) | st.integers(-3, 9))
        document = with_value(document, path, value)
    survives(document)


def with_tree(document, **columns):
    return {**document, "tree": {**document["tree"], **columns}}


@pytest.mark.parametrize(
    ("columns", "path"),
    [
        ({"threshold": [1.5]}, "/tree/threshold"),
        ({"value": [0, 0, 0, 1, 2, 2, 0, 0, 3]}, "/tree/value"),
        ({"value": [0.5] * 9}, "/tree/value"),
        ({"stats": [[0.0, 0.0, 0.0]] * 9}, "/tree/stats"),
        ({"stats": [[-1.0, 20.0, 0.0]] * 9}, "/tree/stats"),
        ({"stats": [[1.0, 1.0]] * 9}, "/tree/stats"),
        ({"stats": [[1.0, 1.0, 1.0]] * 8 + [[1.0]]}, "/tree/stats"),
        ({"stats": [[1.0, 1.0, None]] * 9}, "/tree/stats"),
        ({"stats": [[1e308, 1e308, 1e308]] * 9}, "/tree/stats"),
        ({"branch_weight": [0.0] * 8}, "/tree/branch_weight"),
        ({"parent": []}, "/tree/parent"),
        ({"parent": [-1, 0, 1, 1, 0, 4, 4, 7, 2**40]}, "/tree/parent"),
        ({"parent": [-1, 0, 1, 1, 0, 4, 4, 7, 7.0]}, "/tree/parent"),
        ({"parent": [-1, 0, 1, 1, 0, 4, 4, 7, True]}, "/tree/parent"),
        ({"parent": "-1"}, "/tree/parent"),
    ],
)
def test_a_wrong_column_is_refused_by_its_name(columns, path):
    with pytest.raises(DocumentError) as caught:
        from_document(with_tree(DOCUMENTS["mixed_model"], **columns))
    assert caught.value.faults[0].path == path


def test_a_test_must_fit_the_kind_of_its_attribute():
    document = DOCUMENTS["mixed_model"]
    columns = copy.deepcopy(document["schema"]["columns"])
    columns[0] = {"name": "length", "kind": "nominal", "categories": ["u", "v"]}
    with pytest.raises(DocumentError, match="/tree/test: nominal attributes are tested by category"):
        from_document({**document, "schema": {**document["schema"], "columns": columns}})


def test_a_nominal_test_must_list_every_category_of_its_attribute():
    document = DOCUMENTS["mixed_model"]
    columns = copy.deepcopy(document["schema"]["columns"])
    columns[1]["categories"].append("violet")
    with pytest.raises(DocumentError, match="one entry per category"):
        from_document({**document, "schema": {**document["schema"], "columns": columns}})


def test_a_threshold_of_a_datetime_must_be_a_date():
    document = DOCUMENTS["date_model"]
    for seconds in (1e300, -1e12, 253402300800.0):
        broken = with_tree(document, threshold=[seconds, *document["tree"]["threshold"][1:]])
        with pytest.raises(DocumentError, match="/tree/threshold"):
            from_document(broken)


def test_a_regression_must_not_answer_numbers_whose_squares_are_none():
    document = DOCUMENTS["number_model"]
    n_nodes = len(document["tree"]["value"])
    with pytest.raises(DocumentError, match="/tree/value"):
        from_document(with_tree(document, value=[1e200] * n_nodes))


@pytest.mark.parametrize("name", ["number_model", "model_tree"])
def test_an_explanation_of_a_hostile_document_has_only_finite_numbers(name):
    document = copy.deepcopy(DOCUMENTS[name])
    tree = document["tree"]
    tree["weight"] = [5e-324] * len(tree["weight"])
    tree["stats"] = [[5e-324, mean, 1e300] for _, mean, _ in tree["stats"]]
    tree["threshold"] = [cut and -1.7e308 for cut in tree["threshold"]]
    if "linear" in tree:
        tree["linear"]["squares"] = [1e299] * len(tree["linear"]["squares"])
    model = from_document(document)
    for row in ({"length": 1.7e308}, {}, {"x": 1.7e308}):
        with contextlib.suppress(RowError):
            for missing in (None,) if "linear" in tree else (None, "fractional"):
                [explanation] = explain(model, [row], detail="full", missing=missing)
                json.dumps(explanation.to_dict(), allow_nan=False)


def test_faults_of_schema_and_configuration_come_with_their_place_in_the_document():
    document = copy.deepcopy(DOCUMENTS["mixed_model"])
    document["schema"]["columns"][0]["kind"] = "text"
    with pytest.raises(DocumentError, match="/schema/columns/0/kind: must be one of numeric, "):
        from_document(document)
    document = copy.deepcopy(DOCUMENTS["mixed_model"])
    document["config"]["criterion"] = "magic"
    with pytest.raises(DocumentError, match="/config/criterion: must be one of"):
        from_document(document)


def test_imputed_values_must_be_one_an_attribute():
    document = copy.deepcopy(DOCUMENTS["number_model"])
    document["preparation"]["imputed"] = [1.0]
    with pytest.raises(DocumentError, match="/preparation/imputed: must have one entry per attribute: 4"):
        from_document(document)


def test_an_imputed_date_must_be_one_that_can_be_written():
    schema = {"columns": [{"name": "t", "kind": "datetime"}], "target": "y"}
    rows = [{"t": "2026-01-01", "y": "p"}, {"t": "2026-01-02", "y": "q"}]
    document = json.loads(to_json(train(dataset_from_rows(rows, schema=schema), "cart", missing="imputed")))
    document["preparation"]["imputed"] = [1e18]
    with pytest.raises(DocumentError, match="within the years 1 to 9999"):
        from_json(json.dumps(document).encode())


def test_an_imputed_category_must_be_one_of_the_attributes():
    document = copy.deepcopy(DOCUMENTS["number_model"])
    for code in (3.0, 0.5, 1e300):
        document["preparation"]["imputed"][1] = code
        with pytest.raises(DocumentError, match="/preparation/imputed"):
            from_document(document)
