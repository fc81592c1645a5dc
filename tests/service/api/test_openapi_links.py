"""The links of the OpenAPI document lead from an answer to the routes of what was made."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import espalier
from service.database.tables import Scope
from service.settings import Settings
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served, serving

NAMES = {"name": "tennis", "number": 1, "alias": "a"}
ROWS = {"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}]}
TRACE = "/v1/models/{name}/versions/{number}/pruning"  # a version has one where it was pruned


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, auth="keys") as one:
        one.client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {token_of(one, Scope.ADMIN)}"
        yield one


def bodies(data_set: str) -> Mapping[str, Any]:
    """What makes something, by the route that takes it."""
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    return {
        "post /v1/datasets": ROWS,
        "post /v1/training-jobs": {"model": "tennis", "dataset": data_set},
        "post /v1/pruning-jobs": {"model": "tennis", "method": "reduced_error"},
        "post /v1/evaluation-jobs": {"dataset": data_set, "candidates": [{}]},
        "post /v1/prediction-jobs": {"model": "tennis", "dataset": data_set},
        "post /v1/models/{name}/versions": espalier.to_document(model),
        "put /v1/models/{name}/aliases/{alias}": {"version": 1},
        "post /v1/models/{name}/predict": ROWS,
        "post /v1/models/{name}/versions/{number}/predict": ROWS,
        "post /v1/keys": {"name": "a", "scopes": ["read"]},
    }


def test_every_link_leads_to_what_was_made(served: Served) -> None:
    data_set = served.train("tennis", holdout={"fraction": 0.3})
    paths = served.client.get("/openapi.json").get_json()["paths"]
    led = set()
    for source, body in bodies(data_set).items():
        method, path = source.split()
        response = served.client.open(path.format(**NAMES), method=method.upper(), json=body)
        links = paths[path][method]["responses"][str(response.status_code)]["links"]
        for link in links.values():
            target, asked = target_of(link)
            expressions = link["parameters"]
            assert asked in paths[target]
            assert expressions.keys() == set(re.findall(r"{(\w+)}", target))
            given = {name: evaluated(said, response.get_json()) for name, said in expressions.items()}
            if asked == "get" and target != TRACE:
                assert served.client.get(target.format(**given)).status_code != 404, (source, target)
            led.add((asked, target))
    linked = {(method, path) for path, item in paths.items() for method, one in item.items() if "links" in str(one)}
    assert {f"{method} {path}" for method, path in linked} == set(bodies(data_set))
    assert {("get", "/v1/jobs/{job_id}/events"), ("post", "/v1/decisions/{decision_id}/outcome")} < led


def test_links_stand_in_the_order_of_the_routes_whatever_process_lists_them(served: Served) -> None:
    paths = served.client.get("/openapi.json").get_json()["paths"]
    linked = {
        ("/v1/datasets", "201"): "/v1/datasets/{data_set_id}",
        ("/v1/training-jobs", "202"): "/v1/jobs/{job_id}",
        ("/v1/keys", "201"): "/v1/keys/{key_id}",
    }
    for (path, status), below in linked.items():
        routes = [
            (place, method)
            for place, item in paths.items()
            if place.startswith(below)
            for method in item
            if method != "parameters"
        ]
        assert list(map(target_of, paths[path]["post"]["responses"][status]["links"].values())) == routes


def target_of(link: Mapping[str, Any]) -> tuple[str, str]:
    """Give the path and the method of the operation that a link names by a JSON pointer."""
    place, method = link["operationRef"].removeprefix("#/paths/").rsplit("/", 1)
    return place.replace("~1", "/").replace("~0", "~"), method


def evaluated(said: str, answer: Any) -> Any:
    """Find what a runtime expression of OpenAPI names, in an answer or in the path of its request."""
    if said.startswith("$request.path."):
        return NAMES[said.removeprefix("$request.path.")]
    for part in said.removeprefix("$response.body#/").split("/"):
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer
