"""Decisions on a table as one block of bytes: each row comes back as it was asked and answered."""

import io
import json
import zlib

import pyarrow.ipc
import pytest

import espalier
from service.packed import pack, unpack
from tests.core.test_routing import table

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

    rows = unpack(pack(espalier.answering_with(model, missing), dataset, answers).to_bytes())

    for place, (row, one) in enumerate(zip(ROWS, espalier.predict(model, ROWS, missing=missing), strict=True)):
        found = rows.row(place)
        assert {name: found.input[name] for name in ("age", "pressure", "visits")} == {
            name: row[name] for name in ("age", "pressure", "visits")
        }
        assert (found.input["joined"] or "")[:10] == (row["joined"] or "")[:10]
        assert plain(found.answer) == plain(one.to_dict())
        assert found.nodes == one.nodes
        assert espalier.predict(model, [found.input], missing=missing)[0].to_dict() == one.to_dict()
    assert rows.leaves().tolist() == [one.leaf for one in espalier.predict(model, ROWS, missing=missing)]
    assert rows.labels().tolist() == [json.dumps(one.label) for one in espalier.predict(model, ROWS, missing=missing)]


@pytest.mark.parametrize("preset", ["m5", "reptree"])
def test_numbers_come_back_to_the_last_bit(preset: str) -> None:
    model = espalier.train(table(300, 1, n_classes=0), preset)
    dataset = table(60, 2, n_classes=0)

    rows = unpack(pack(model, dataset, espalier.predict_table(model, dataset)).to_bytes())

    given = [{name: cell for name, cell in row.items() if name != "y"} for row in dataset.rows()]
    for place, one in enumerate(espalier.predict(model, given)):
        assert rows.row(place).answer == plain(one.to_dict())
        assert rows.row(place).input == given[place]
    assert rows.labels().tolist() == [None] * 60


def test_a_rule_list_answers_by_the_numbers_of_its_rules() -> None:
    data = table(200, 3)
    grown = espalier.train(data, "c45", pruning=None)
    model = espalier.prune(grown, "rules", dataset=data, estimate="pessimistic").model

    rows = unpack(pack(model, data, espalier.predict_table(model, data)).to_bytes())

    singles = espalier.predict(model, data.rows())
    assert [rows.row(place).nodes for place in range(200)] == [one.nodes for one in singles]
    assert [plain(one.to_dict()) for one in singles] == [rows.row(place).answer for place in range(200)]


def test_of_many_categories_only_those_that_occur_are_kept() -> None:
    text = "name,y\n" + "".join(f"customer {row},{'ab'[row % 2]}\n" for row in range(3000))
    model = espalier.train(espalier.dataset_from_csv(text, target="y"), "cart", nominal="subset", max_depth=2)
    dataset = espalier.dataset_from_rows([{"name": "customer 7"}, {"name": "new"}], like=model.schema)

    content = pack(model, dataset, espalier.predict_table(model, dataset)).to_bytes()

    assert len(content) < 3000
    rows = unpack(content)
    assert [rows.row(place).input for place in (0, 1)] == [{"name": "customer 7"}, {"name": "new"}]
    assert [rows.row(place).answer["flags"]["unseen"] for place in (0, 1)] == [[], ["name"]]


def test_of_erased_cells_only_flags_are_left() -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    answers = espalier.predict_table(model, dataset)
    whole = pack(model, dataset, answers)

    at_once = unpack(pack(model, dataset, answers, erased={"pressure", "joined"}).to_bytes())
    later = unpack(unpack(whole.to_bytes()).without({"pressure", "joined"}).to_bytes())
    all_of_it = unpack(later.without().to_bytes())

    for place in range(len(ROWS)):
        row = whole.row(place)
        for erased, names in ((at_once, {"age", "visits"}), (later, {"age", "visits"}), (all_of_it, set())):
            left = erased.row(place)
            assert left.input == {name: cell for name, cell in row.input.items() if name in names}
            assert (plain(left.answer), left.nodes) == (plain(row.answer), row.nodes)
    assert b"never seen" not in all_of_it.to_bytes()
    assert all((left == right).all() for left, right in zip(all_of_it.flags(), whole.flags(), strict=True))


def test_a_record_from_before_with_an_arrow_table_is_read() -> None:
    table = pyarrow.table(
        {
            "c0": pyarrow.array([1.5, None, 2.5]),
            "c1": pyarrow.array([1, None, 0], pyarrow.int32()),
            "c2": pyarrow.array([0, 1, 2], pyarrow.int8()),
            "leaf": pyarrow.array([1, 2, 1], pyarrow.int32()),
        }
    )
    block = io.BytesIO()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(block, table.schema, options=options) as writer:
        writer.write_table(table)
    columns = [
        {"name": "size", "kind": "numeric"},
        {"name": "wind", "kind": "nominal", "categories": ["new", "weak"], "unseen": [0]},
        {"name": "name", "erased": True},
    ]
    leaves = {"1": [{"label": "yes", "leaf": 1}, [0, 1]], "2": [{"label": "no", "leaf": 2}, [0, 2]]}
    head = {"attributes": ["name", "size", "wind", "far"], "columns": columns, "leaves": leaves, "several": {}}
    first = zlib.compress(json.dumps(head).encode())

    for rows in (found := unpack(len(first).to_bytes(4) + first + block.getvalue()), unpack(found.to_bytes())):
        assert rows.row(0).input == {"size": 1.5, "wind": "weak"}
        assert rows.row(0).answer == {"label": "yes", "leaf": 1, "flags": {"missing": ["far"], "unseen": []}}
        assert rows.row(1).input == {"size": None, "wind": None}
        assert rows.row(1).nodes == (0, 2)
        assert rows.row(1).answer["flags"] == {"missing": ["name", "size", "wind", "far"], "unseen": []}
        assert rows.row(2).answer["flags"] == {"missing": ["far"], "unseen": ["name", "wind"]}
        assert rows.leaves().tolist() == [1, 2, 1]
        assert rows.label_counts() == {"yes": 2, "no": 1}


def test_sentences_are_kept_only_where_that_is_asked_for() -> None:
    model = espalier.train(espalier.dataset_from_csv(CSV, schema=DECLARED), "cart")
    dataset = espalier.dataset_from_rows(ROWS, like=model.schema)
    answers = espalier.predict_table(model, dataset, missing="fractional")
    rows = pack(espalier.answering_with(model, "fractional"), dataset, answers, rules=True)
    explained = espalier.explain(model, ROWS, missing="fractional")

    kept, bare = unpack(rows.to_bytes(with_rules=True)), unpack(rows.to_bytes())

    several = kept.several()
    assert several
    for place, one in enumerate(explained):
        assert (several[place][1] if place in several else kept.rule(one.prediction.leaf)) == one.rule
        assert bare.rule(one.prediction.leaf) is None
    assert {rule for _, rule in bare.several().values()} == {None}
