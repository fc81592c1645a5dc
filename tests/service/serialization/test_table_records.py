"""Decisions on a table as one block of bytes: each row comes back as it was asked and answered."""

import gc
import json
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow
import pytest

import espalier
from service.serialization import table_records
from service.serialization.table_records import NO_INPUTS, read_record, record_rows, table_record
from tests.core.prediction.test_apply import table

CSV = """age,pressure,visits,joined,drug
23,HIGH,1,2020-01-01,A
31,HIGH,2,2020-05-01,A
35,HIGH,1,2021-01-01,A
61,HIGH,3,2020-01-01,B
69,HIGH,1,2022-01-01,B
28,LOW,2,2020-03-01,C
47,LOW,1,2020-01-01,C
38,LOW,3,2020-01-01,C
"""
ROWS = [
    {"age": 30.0, "pressure": "HIGH", "visits": 2, "joined": "2020-06-01"},
    {"age": None, "pressure": "HIGH", "visits": 2, "joined": None},
    {"age": 70.0, "pressure": "never seen", "visits": None, "joined": "2020-01-01T10:00:00+00:00"},
    {"age": -1e300, "pressure": None, "visits": 3, "joined": "2020-06-01"},
    {"age": 62.0, "pressure": "LOW", "visits": 1, "joined": "2020-06-01"},
]
DECLARED = {
    "target": "drug",
    "columns": [{"name": "visits", "kind": "nominal", "categories": [1, 2, 3]}, {"name": "joined", "kind": "datetime"}],
}


def plain(document: object) -> object:
    return json.loads(json.dumps(document))


@pytest.mark.parametrize("missing", [None, "fractional", "last_prediction"])
def test_every_row_comes_back_with_input_answer_and_nodes(missing: str | None) -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    answers = espalier.predict_table(model, dataset, missing=missing)

    rows = read_record(table_record(espalier.with_missing_strategy(model, missing), dataset, answers).to_bytes())

    for place, (row, one) in enumerate(zip(ROWS, espalier.predict(model, ROWS, missing=missing), strict=True)):
        found = rows.row(place)
        assert {name: found["input"][name] for name in ("age", "pressure", "visits")} == {
            name: row[name] for name in ("age", "pressure", "visits")
        }
        assert (found["input"]["joined"] or "")[:10] == (row["joined"] or "")[:10]
        assert plain(found["answer"]) == plain(one.to_dict())
        assert found["nodes"] == one.nodes
        assert espalier.predict(model, [found["input"]], missing=missing)[0].to_dict() == one.to_dict()
    assert rows.leaves.tolist() == [one.leaf for one in espalier.predict(model, ROWS, missing=missing)]
    assert rows.labels().tolist() == [json.dumps(one.label) for one in espalier.predict(model, ROWS, missing=missing)]


@pytest.mark.parametrize("preset", ["m5", "reptree"])
def test_numbers_come_back_to_the_last_bit(preset: str) -> None:
    model = espalier.train(table(300, 1, n_classes=0), preset)
    dataset = table(60, 2, n_classes=0)

    rows = read_record(table_record(model, dataset, espalier.predict_table(model, dataset)).to_bytes())

    given = [{name: cell for name, cell in row.items() if name != "y"} for row in dataset.rows()]
    for place, one in enumerate(espalier.predict(model, given)):
        assert rows.row(place)["answer"] == plain(one.to_dict())
        assert rows.row(place)["input"] == given[place]
    assert rows.labels().tolist() == [None] * 60


def test_a_rule_list_answers_by_the_numbers_of_its_rules() -> None:
    data = table(200, 3)
    grown = espalier.train(data, "c45", pruning=None)
    model = espalier.prune(grown, "rules", dataset=data, estimate="pessimistic").model

    rows = read_record(table_record(model, data, espalier.predict_table(model, data)).to_bytes())

    singles = espalier.predict(model, data.rows())
    assert [rows.row(place)["nodes"] for place in range(200)] == [one.nodes for one in singles]
    assert [plain(one.to_dict()) for one in singles] == [rows.row(place)["answer"] for place in range(200)]


def test_of_many_categories_only_those_that_occur_are_kept() -> None:
    text = "name,y\n" + "".join(f"customer {row},{'ab'[row % 2]}\n" for row in range(3000))
    model = espalier.train(espalier.dataset_from_csv(text, target="y"), "cart", nominal="subset", max_depth=2)
    dataset = espalier.dataset_from_rows([{"name": "customer 7"}, {"name": "new"}], like=model.schema)

    content = table_record(model, dataset, espalier.predict_table(model, dataset)).to_bytes()

    assert len(content) < 3000
    rows = read_record(content)
    assert [rows.row(place)["input"] for place in (0, 1)] == [{"name": "customer 7"}, {"name": "new"}]
    assert [rows.row(place)["answer"]["flags"]["unseen"] for place in (0, 1)] == [[], ["name"]]


def test_of_erased_cells_only_flags_are_left() -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    answers = espalier.predict_table(model, dataset)
    whole = table_record(model, dataset, answers)

    at_once = read_record(table_record(model, dataset, answers, erased={"pressure", "joined"}).to_bytes())
    all_of_it = read_record(replace(at_once, inputs=NO_INPUTS).to_bytes())

    for place in range(len(ROWS)):
        row = whole.row(place)
        for erased, names in ((at_once, {"age", "visits"}), (all_of_it, set())):
            left = erased.row(place)
            assert left["input"] == {name: cell for name, cell in row["input"].items() if name in names}
            assert (plain(left["answer"]), left["nodes"]) == (plain(row["answer"]), row["nodes"])
    assert b"never seen" not in all_of_it.to_bytes()
    assert (all_of_it.flags == whole.flags).all()


@pytest.mark.parametrize("most", [1, 100])
def test_answers_of_leaves_are_made_once_for_all_strategies(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_records, "MAX_LEAF_ANSWERS", most)
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    known: dict[Any, Any] = {}
    for missing in (None, "majority", "last_prediction", "fractional"):
        reading = espalier.with_missing_strategy(model, missing)
        answers = espalier.predict_table(reading, dataset)
        for rules in (False, True):
            record = table_record(reading, dataset, answers, known=known, rules=rules)
            assert record.answers == table_record(reading, dataset, answers, rules=rules).answers
            assert len(known) <= most
    n_known = len(known)
    table_record(model, dataset, espalier.predict_table(model, dataset), known=known)
    assert (len(known) == n_known) or most == 1


def test_sentences_are_kept_only_where_that_is_asked_for() -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    answers = espalier.predict_table(model, dataset, missing="fractional")
    rows = table_record(espalier.with_missing_strategy(model, "fractional"), dataset, answers, rules=True)
    explained = espalier.explain(model, ROWS, missing="fractional")

    with_rules, without = read_record(rows.to_bytes(with_rules=True)), read_record(rows.to_bytes())

    assert len(answers.several) > 0
    assert [with_rules.answers[place].rule for place in with_rules.places] == [one.rule for one in explained]
    assert {answer.rule for answer in without.answers} == {None}


def test_a_record_keeps_no_model_in_memory() -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    record = table_record(model, dataset, espalier.predict_table(model, dataset), rules=True)
    still_there = weakref.ref(model)

    del model
    gc.collect()

    assert record.n_rows == len(ROWS)
    assert still_there() is None


def test_any_rows_of_a_record_are_read_alone() -> None:
    dataset = table(20_000, 4, n_classes=3)
    model = espalier.train(dataset, "c45", max_depth=4)
    content = table_record(model, dataset, espalier.predict_table(model, dataset)).to_bytes()
    whole = read_record(content)

    for start, stop in ((0, 1), (9_999, 10_003), (19_999, 20_000), (0, 20_000)):
        some = read_record(content, start=start, stop=stop)
        assert some.n_rows == stop - start
        assert [some.row(place) for place in range(min(4, some.n_rows))] == [
            whole.row(start + place) for place in range(min(4, some.n_rows))
        ]
    answered = read_record(content, inputs=False)
    assert (answered.inputs.columns, answered.leaves.tolist()) == ((), whole.leaves.tolist())


def test_a_row_of_a_wide_record_is_read_in_little_memory() -> None:
    rows, columns = 1_000, 2_000
    features = tuple(espalier.Feature(f"x{place}", espalier.FeatureKind.NUMERIC) for place in range(columns))
    target = espalier.Feature("y", espalier.FeatureKind.NOMINAL, espalier.Role.TARGET, categories=("a", "b"))
    numbers = np.random.default_rng(1).normal(size=(columns, rows))
    labels = (numbers[0] > 0).astype(np.int32)
    dataset = espalier.Dataset(espalier.Schema((*features, target)), (*numbers, labels))
    model = espalier.train(dataset, "cart", max_depth=2)
    content = table_record(model, dataset, espalier.predict_table(model, dataset)).to_bytes()

    before = pyarrow.total_allocated_bytes()
    some = read_record(content, start=500, stop=501)

    assert some.row(0)["input"]["x1999"] == numbers[1999, 500]
    assert len(content) > numbers.nbytes / 2
    assert pyarrow.total_allocated_bytes() - before < len(content) / 4


@pytest.mark.parametrize(
    ("n_numbers", "n_texts", "length", "character"),
    [
        (2_000, 0, 0, "0"),
        (20, 0, 0, "0"),
        (1, 10_000, 10, "0"),
        (1, 10_000, 2_000, "0"),
        (1, 10_000, 2_000, "\U0001f333"),
    ],
    ids=["wide", "narrow", "texts", "long texts", "long texts of four bytes per character"],
)
def test_a_record_is_bounded_by_bytes(n_numbers: int, n_texts: int, length: int, character: str) -> None:
    features = [espalier.Feature(f"x{place}", espalier.FeatureKind.NUMERIC) for place in range(n_numbers)]
    texts = tuple(f"{place:{character}>{length}}" for place in range(n_texts))
    n_bytes = max((len(text.encode()) for text in texts), default=0)
    if texts:
        features.append(espalier.Feature("text", espalier.FeatureKind.NOMINAL, categories=texts))

    n_rows = record_rows(espalier.Schema(tuple(features)), n_classes=2)

    assert 8 * n_rows * len(features) + n_bytes * min(n_rows, n_texts) <= 20 * 2**20
    assert n_rows >= (65_536 if n_numbers <= 20 and length <= 10 else 1_000)


@pytest.mark.parametrize("n_classes", [2, 20, 500])
def test_a_record_is_bounded_even_if_each_row_has_an_answer_with_all_classes(n_classes: int) -> None:
    schema = espalier.Schema((espalier.Feature("x", espalier.FeatureKind.NUMERIC),))

    n_rows = record_rows(schema, n_classes=n_classes)

    share = len('"c0":0.0')
    assert n_rows * n_classes * share <= 16 * 2**20
    assert n_rows >= (65_536 if n_classes <= 20 else 1_000)
