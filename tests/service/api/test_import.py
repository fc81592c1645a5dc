"""Documents that come in from outside: the same model as where they came from, or refused; nothing in between."""

import json
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

import espalier
from service.settings import Settings
from tests.altered import spots, with_value
from tests.factories import ROOT
from tests.service.served import TENNIS, Served, assert_problem, serving


@pytest.fixture(scope="module")
def served(shared_sqlite: Settings) -> Iterator[Served]:
    with serving(shared_sqlite) as one:
        one.train("tennis")
        yield one


@pytest.fixture
def on_both(settings: Settings) -> Iterator[Served]:
    """One of its own, on either database."""
    with serving(settings) as one:
        one.train("tennis")
        yield one


def document(served: Served, name: str = "tennis", number: int = 1) -> bytes:
    response = served.client.get(f"/v1/models/{name}/versions/{number}/document")
    assert response.status_code == 200
    return response.data


def bring(served: Served, content: bytes | dict[str, Any], *, name: str = "brought") -> Any:
    body = content if isinstance(content, bytes) else orjson.dumps(content)
    return served.client.post(f"/v1/models/{name}/versions", data=body, content_type="application/json")


# The same model


def test_an_imported_version_is_the_one_it_came_from(on_both: Served) -> None:
    content = document(on_both)
    response = bring(on_both, content)
    made = response.get_json()
    assert (response.status_code, response.headers["Location"]) == (201, "/v1/models/brought/versions/1")
    origin = on_both.client.get("/v1/models/tennis/versions/1").get_json()
    same = ("document_sha256", "preset", "summary")
    assert {name: made[name] for name in same} == {name: origin[name] for name in same}
    assert (made["dataset"], made["job"], made["parent"]) == (None, None, None)
    assert document(on_both, "brought") == content
    assert bring(on_both, content).get_json()["version"] == 2
    answer = on_both.predict("brought", {"rows": [{"Outlook": "Sunny"}]})["predictions"][0]
    explained = on_both.client.get(f"/v1/decisions/{answer['decision_id']}/explanation").get_json()
    assert explained["verified"] is True


def test_spaces_order_and_escapes_of_the_json_do_not_matter(served: Served) -> None:
    content = document(served)
    turned = dict(reversed(json.loads(content).items()))
    response = bring(served, json.dumps(turned, indent=3, ensure_ascii=True).encode())
    assert response.status_code == 201
    assert document(served, "brought", response.get_json()["version"]) == content


CELL = st.none() | st.integers(-3, 3) | st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
TABLES = st.lists(
    st.fixed_dictionaries(
        {"a": CELL, "b": CELL, "c": st.sampled_from(["x", "y", "ü\n", None]), "d": st.sampled_from([True, False, None])}
    ),
    min_size=6,
    max_size=25,
)
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "id3": ("id3", {"numeric": "best"}),
    "c45, several ways for missing values": ("c45", {"min_weight_leaf": 1}),
    "cart": ("cart", {}),
    "cart with surrogates": ("cart", {"missing": "surrogate"}),
    "reptree": ("reptree", {"pruning": None}),
    "regression": ("cart", {"task": "regression"}),
    "model tree": ("m5", {}),
    "rules": ("cart", {}),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_any_document_comes_back_with_the_same_sha256_and_the_same_answers(served: Served, kind: str) -> None:
    preset, fields = CONFIGS[kind]
    numbers = kind in ("regression", "model tree")

    @hypothesis.settings(max_examples=15)
    @hypothesis.given(TABLES, st.integers(0, 10**6))
    def holds(rows: list[dict[str, Any]], seed: int) -> None:
        draw = random.Random(seed)
        for place, row in enumerate(rows):
            row["y"] = draw.gauss(0, 10) if numbers else ("no", "yes")[place % 2 or draw.randrange(2)]
        columns = [{"name": name, "kind": "numeric"} for name in "ab"] + [
            {"name": "c", "kind": "nominal", "categories": ["x", "y", "ü\n"]},
            {"name": "d", "kind": "boolean", "categories": [False, True]},
            {"name": "y", "kind": "numeric" if numbers else "nominal"},
        ]
        dataset = espalier.dataset_from_rows(rows, schema={"columns": columns, "target": "y"})
        if len(dataset.schema.classes) == 1:
            return
        model = espalier.train(dataset, preset, **{name: value for name, value in fields.items() if name != "task"})
        if kind == "rules":
            method = espalier.pruning_method("rules", estimate="pessimistic")
            model = espalier.prune(model, method, dataset=dataset).model
            assert isinstance(model.body, espalier.RuleList)
        same_everywhere(served, model, rows)

    holds()


def same_everywhere(served: Served, model: espalier.Model, rows: list[dict[str, Any]]) -> None:
    """Keep a model, fetch its document, bring that in, and see that both answer the same rows in the same way."""
    served.keep("origin", model)
    number = served.client.get("/v1/models/origin").get_json()["newest_version"]
    origin = served.client.get(f"/v1/models/origin/versions/{number}").get_json()
    made = bring(served, document(served, "origin", number))
    assert made.status_code == 201, made.text
    assert made.get_json()["document_sha256"] == origin["document_sha256"]
    body = {"rows": [{name: row[name] for name in "abcd"} for row in rows], "explain": "full"}
    one, other = (served.predict(name, body)["predictions"] for name in ("origin", "brought"))
    assert [answer | {"decision_id": None} for answer in one] == [answer | {"decision_id": None} for answer in other]


# Or refused


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"a": NaN}', 400),
        (b'{"format": "\\ud800"}', 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 100_000, 400),
        (b"null", 422),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"format": "espalier", "format_version": 2}', 422),
        (b'{"format": "espalier", "format_version": true}', 422),
        (b'{"format": "espalier", "format_version": 1, "kind": "forest"}', 422),
    ],
)
def test_what_is_no_document_is_refused(served: Served, content: bytes, status: int) -> None:
    response = bring(served, content, name="nothing")
    problem = assert_problem(response, status, *[fault["pointer"] for fault in response.get_json()["errors"]])
    assert (status == 422) == bool(problem["errors"])
    assert served.client.get("/v1/models/nothing").status_code == 404


def test_another_content_type_is_refused(served: Served) -> None:
    response = served.client.post("/v1/models/x/versions", data=document(served), content_type="text/plain")
    assert_problem(response, 415)


def test_each_fault_is_named_by_its_place_and_no_value_is_repeated(served: Served) -> None:
    wrong = json.loads(document(served))
    wrong["tree"]["value"][0] = 77123
    problem = assert_problem(bring(served, wrong), 422, "/tree/value")
    assert "77123" not in json.dumps(problem)
    wrong["schema"]["columns"][0]["kind"] = "secret-kind"
    assert "secret" not in json.dumps(assert_problem(bring(served, wrong), 422, "/schema/columns/0/kind"))


@pytest.mark.parametrize(
    ("limit", "said"), [({"max_nodes": 7}, "nodes"), ({"max_columns": 4}, "columns"), ({"max_cell_chars": 7}, "cell")]
)
def test_what_no_training_may_make_no_import_may_bring(on_sqlite: Settings, limit: dict[str, int], said: str) -> None:
    content = espalier.to_json(espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3"))
    with serving(on_sqlite, **limit) as small:
        assert said in assert_problem(bring(small, content), 413)["detail"]


def test_a_list_of_rules_has_the_limit_of_a_tree(on_sqlite: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    dataset = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    rules = espalier.prune(model, espalier.pruning_method("rules", estimate="pessimistic"), dataset=dataset).model
    with serving(on_sqlite, max_nodes=2) as small:
        assert "rules" in assert_problem(bring(small, espalier.to_json(rules)), 413)["detail"]


def test_a_wrong_document_of_megabytes_takes_memory_by_its_length(served: Served) -> None:
    wrong = json.loads(document(served))
    wrong["tree"]["parent"] = [0] * 4_000_000
    content = orjson.dumps(wrong)
    tracemalloc.start()
    assert_problem(bring(served, content), 422, "/tree/parent")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 30 * len(content)


JUNK: list[Any] = [None, True, -1, 2**31, 2**63, 1e308, -1e300, 0.5, "", "\x00", "x" * 300, [], {}, [[]], {"a": None}]
READS = (
    "",
    "/tree",
    "/tree?format=text",
    "/tree?format=mermaid",
    "/rules",
    "/rules?format=text",
    "/rules?format=logic",
)
ROWS = [{}, {"Outlook": "Sunny"}, {"Outlook": "Rain", "Wind": "Weak", "Humidity": "never seen"}]


@pytest.mark.parametrize("part", ["schema", "config", "preparation", "tree", "training", "pruning", "notes", "format"])
def test_whatever_stands_anywhere_is_refused_or_can_be_asked_and_shown(served: Served, part: str) -> None:
    whole = json.loads(document(served))
    draw = random.Random(part)
    for path in [path for path in spots(whole[part], (part,)) if path]:
        for junk in draw.sample(JUNK, 4):
            response = bring(served, with_value(whole, path, junk), name="junk")
            assert response.status_code in (201, 422), (path, junk, response.text)
            if response.status_code == 201:
                works(served, f"/v1/models/junk/versions/{response.get_json()['version']}")


def works(served: Served, version: str) -> None:
    for read in (*READS, "/document", "/schema"):
        assert served.client.get(version + read).status_code == 200, read
    answers = served.post(f"{version}/predict", {"rows": ROWS, "explain": "full"})
    assert answers.status_code in (200, 422), answers.text
    assert "NaN" not in answers.text


def test_what_came_in_is_kept_on_either_database_whatever_its_texts_say(on_both: Served) -> None:
    whole = json.loads(document(on_both))
    whole["notes"] = ["\x00 nothing", "🌳"]
    whole["pruning"] = {"method": "\x00", "deep": [[[{"a": None}]]]}
    whole["training"]["fingerprint"] = "\x00"
    response = bring(on_both, whole)
    assert response.status_code in (201, 422), response.text
    if response.status_code == 201:
        shown = on_both.client.get(response.headers["Location"]).get_json()
        assert shown["summary"]["notes"] == whole["notes"]


def test_the_example_of_the_package_is_brought_in_and_pruned_without_rows(on_both: Served) -> None:
    csv = (ROOT / "service" / "examples" / "drug200.csv").read_text()
    on_both.train("drugs", csv, preset="cart", target="Drug")
    assert bring(on_both, document(on_both, "drugs")).status_code == 201
    asked = {"model": "brought", "method": "pessimistic", "params": {"raising": False}}
    assert on_both.post("/v1/pruning-jobs", asked).status_code == 202
    assert_problem(on_both.post("/v1/pruning-jobs", asked | {"params": {"raising": True}}), 422, "/params/raising")


# PMML of other systems

RPART = (ROOT / "tests" / "core" / "importing" / "pmml" / "rpart.pmml").read_bytes()
SKLEARN = (ROOT / "tests" / "core" / "importing" / "pmml" / "sklearn_iris.pmml").read_bytes()


def bring_pmml(served: Served, content: bytes, query: str = "", **headers: str) -> Any:
    path = f"/v1/models/pmml/versions{query}"
    return served.client.post(path, data=content, content_type="application/xml", headers=headers)


def test_a_pmml_document_becomes_a_version_that_predicts(on_both: Served) -> None:
    response = bring_pmml(on_both, RPART)
    assert (response.status_code, response.headers["Location"]) == (201, "/v1/models/pmml/versions/1")
    assert response.get_json()["dataset"] is None
    [answer] = on_both.predict("pmml", {"rows": [{"cylinders": "8", "power": 150}]})["predictions"]
    assert answer["value"] == 14.2880952380952
    notes = json.loads(document(on_both, "pmml"))["notes"]
    assert notes[0] == "imported from PMML 4.4, written by SoftwareAG PMML Generator 2.5.2"


def test_a_pmml_tree_without_the_statistics_of_its_rows_is_not_pruned_by_them(served: Served) -> None:
    """RPART gives no spread of the numbers: every leaf would look as good as the subtree that it replaces."""
    assert bring_pmml(served, RPART).status_code == 201
    for method, params in (("cost_complexity", {"alpha": 0.0, "risk": "error"}), ("model_tree", {})):
        asked = {"model": "pmml", "method": method, "params": params}
        assert_problem(served.post("/v1/pruning-jobs", asked), 422, "/method")
    page = served.client.get("/ui/models/pmml/versions/1/prune")
    assert (page.status_code, "step-line" in page.text) == (200, False)
    preview = served.client.get("/ui/models/pmml/versions/1/prune/preview?step=0")
    assert preview.status_code == 422


def test_the_other_media_type_and_an_export_come_in_alike(served: Served) -> None:
    exported = served.client.get("/v1/models/tennis/versions/1/export?format=pmml&missing=majority").data
    response = served.client.post("/v1/models/again/versions", data=exported, content_type="application/pmml+xml")
    assert response.status_code == 201
    rows = [{"Outlook": "Overcast"}, {"Outlook": "Sunny", "Humidity": "High"}, {}]
    again, tennis = (
        [each["label"] for each in served.predict(name, {"rows": rows, "missing": "majority"})["predictions"]]
        for name in ("again", "tennis")
    )
    assert again == tennis


def test_the_same_request_with_the_same_key_imports_once(served: Served) -> None:
    first, second = (bring_pmml(served, RPART, **{"Idempotency-Key": "pmml-1"}) for _ in range(2))
    assert first.get_json() == second.get_json()
    assert second.headers["Idempotent-Replayed"] == "true"


def test_what_pmml_cannot_be_read_is_refused_with_its_place(served: Served) -> None:
    response = bring_pmml(served, SKLEARN)
    assert_problem(response, 422, "")
    assert "line 32, column 5: SimplePredicate: a missing value" in response.text
    assert bring_pmml(served, SKLEARN, "?missing=majority").status_code == 201
    assert_problem(bring_pmml(served, b"<PMML"), 400)
    assert "the body is not well-formed XML: line 1" in bring_pmml(served, b"<PMML").text
    entity = b'<!DOCTYPE PMML [<!ENTITY a "b">]>' + RPART.partition(b"?>")[2]
    assert "must have no document type" in bring_pmml(served, entity).text
    deep = b'<PMML xmlns="http://www.dmg.org/PMML-4_4">' + b"<Node>" * 1_000_000
    assert "deeper than 10000" in bring_pmml(served, deep).text
    assert_problem(bring_pmml(served, RPART, "?missing=fractional"), 422, "/missing")
    response = served.client.post(
        "/v1/models/pmml/versions?missing=majority", data=document(served), content_type="application/json"
    )
    assert_problem(response, 422, "/missing")
    wrong = served.client.post("/v1/models/pmml/versions", data=RPART, content_type="text/xml")
    assert wrong.status_code == 415


def test_a_pmml_tree_with_more_nodes_than_are_stored_is_refused(settings: Settings) -> None:
    with serving(settings, max_nodes=5) as served:
        assert_problem(bring_pmml(served, RPART), 413)
