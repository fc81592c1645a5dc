"""The OpenAPI document says what is there, all of it, and nothing else; the page that shows it asks no other host."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import flask
import pytest

import espalier
from service.api.openapi import STATIC
from service.serialization.media_types import MULTIPART, TABLES
from service.settings import Settings
from tests.service.served import Served, serving

METHODS = {"get", "post", "put", "patch", "delete"}
UNDESCRIBED = {"/docs", "/openapi.json", "/static/{filename}"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


@pytest.fixture
def document(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = served.client.get("/openapi.json").get_json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in METHODS & item.keys():
            yield f"{method.upper()} {path}", item[method]


def test_json_is_the_first_of_several_types_since_generated_clients_take_the_first(document: dict[str, Any]) -> None:
    answers = [answer for _, one in operations(document) for answer in one["responses"].values()]
    several = [list(answer["content"]) for answer in answers if len(answer.get("content", ())) > 1]
    assert several
    assert {types[0] for types in several} == {"application/json"}


def test_it_is_of_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"


def test_every_route_is_described_and_every_described_route_exists(served: Served, document: dict[str, Any]) -> None:
    app: flask.Flask = served.client.application
    routes = set()
    for rule in (one for one in app.url_map.iter_rules() if not one.endpoint.startswith("pages.")):
        path = re.sub(r"<(?:[^<>]*:)?(\w+)>", r"{\1}", rule.rule)
        routes |= {f"{method} {path}" for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}}
    routes = {route for route in routes if route.split()[1] not in UNDESCRIBED}
    assert routes == {name for name, _ in operations(document)}


def test_every_operation_has_a_name_of_its_own_for_generated_clients(document: dict[str, Any]) -> None:
    names = [operation.get("operationId", "") for _, operation in operations(document)]
    assert sorted(names) == sorted(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)
    assert {"upload_data_set", "train", "get_job", "predict", "explain_decision"} <= set(names)


def test_every_operation_has_a_summary_and_a_success_with_its_shape(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        assert operation["summary"], name
        successes = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
        assert successes, name
        for status, answer in successes.items():
            assert status == "204" or all(content["schema"] for content in answer["content"].values()), name


def test_every_error_is_a_problem_document(document: dict[str, Any]) -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    inference_error = {"application/json": {"schema": {"$ref": "#/components/schemas/InferenceError"}}}
    for name, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status == "default" or status >= "400":
                found = (
                    document["components"]["responses"][answer["$ref"].rsplit("/", 1)[1]]
                    if "$ref" in answer
                    else answer
                )
                assert found["content"] == (inference_error if " /v2" in name else problem), (name, status)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in references(document):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]


def test_every_post_with_a_body_says_what_the_body_is(document: dict[str, Any]) -> None:
    bodies = {name: one["requestBody"]["content"] for name, one in operations(document) if "requestBody" in one}
    assert set(bodies) == {
        "POST /v1/datasets",
        "POST /v1/training-jobs",
        "POST /v1/pruning-jobs",
        "POST /v1/prediction-jobs",
        "POST /v1/decisions/{decision_id}/outcome",
        "POST /v1/decisions/{decision_id}/counterfactuals",
        "POST /v1/models/{name}/consultations",
        "POST /v1/evaluation-jobs",
        "POST /v1/keys",
        "PATCH /v1/datasets/{data_set_id}",
        "PATCH /v1/models/{name}",
        "PUT /v1/models/{name}/aliases/{alias}",
        "POST /v1/models/{name}/versions",
        "POST /v1/models/{name}/predict",
        "POST /v1/models/{name}/versions/{number}/predict",
        "POST /v2/models/{name}/infer",
        "POST /v2/models/{name}/versions/{number}/infer",
        "POST /v2/repository/index",
    }
    assert set(bodies["POST /v1/datasets"]) == {*TABLES, MULTIPART}
    assert set(TABLES.values()) == set(espalier.FORMATS)


def test_every_pattern_is_one_of_javascript_from_the_first_sign_to_the_last(document: dict[str, Any]) -> None:
    def patterns(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                yield value["pattern"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from patterns(item)

    found = set(patterns(document))
    assert len(found) >= 4
    assert all(re.fullmatch(r"\^.*\$", one) and not re.search(r"\\[AZz]|\(\?P", one) for one in found), found


def test_the_presets_fields_and_methods_are_the_cores(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    training, pruning = schemas["TrainingJobRequest"]["properties"], schemas["PruningJobRequest"]["properties"]
    assert {"id3", "c45", "cart"} <= set(training["preset"]["enum"])
    assert {"criterion", "max_depth", "min_weight_leaf"} <= set(training["params"]["properties"])
    assert "reduced_error" in pruning["method"]["enum"]


def test_the_page_takes_everything_from_this_host(served: Served) -> None:
    with served.client.get("/docs") as response:
        policy, page = response.headers["Content-Security-Policy"], response.text
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.search(r"https?://", page)
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]* src=)", page)
    for link in re.findall(r'(?:src|href)="([^"]+)"', page):
        with served.client.get(f"/{link}") as found:
            assert found.status_code == 200, link


def test_vendored_files_are_as_they_came() -> None:
    for sums in STATIC.glob("vendor/*/SHA256SUMS"):
        listed = dict(line.split()[::-1] for line in sums.read_text().splitlines())
        present = {file.name for file in sums.parent.iterdir()} - {sums.name}
        assert present == set(listed)
        assert any(name.startswith("LICENSE") for name in present)
        for name, expected in listed.items():
            assert hashlib.sha256((sums.parent / name).read_bytes()).hexdigest() == expected, name


def test_a_route_that_takes_an_idempotency_key_says_what_it_takes_in_the_query_too(document: dict[str, Any]) -> None:
    parameters = document["paths"]["/v1/datasets"]["post"]["parameters"]
    assert {(one["in"], one["name"]) for one in parameters} == {
        ("header", "Idempotency-Key"),
        *(("query", name) for name in ("name", "target", "task", "missing_values", "weight", "ignore")),
    }


def test_no_type_is_listed_twice(document: dict[str, Any]) -> None:
    def types(value: object) -> Iterator[list[str]]:
        if isinstance(value, dict):
            if isinstance(value.get("type"), list):
                yield value["type"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from types(item)

    assert [found for found in types(document) if len(set(found)) < len(found)] == []
