"""Every route held against every key: with each scope, without one, expired, revoked, limited to another model."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from werkzeug.test import TestResponse

from service.api.auth import OPEN
from service.app import RESOURCES
from service.database.clock import utc_now
from service.database.engine import read_session, transaction
from service.database.tables import Key, Scope
from service.repositories import keys
from service.repositories.job_queue import find_job
from service.settings import Settings
from service.web.pages import pages
from tests.service.served import TENNIS, UNKNOWN, Served, assert_problem, serving

# What each route needs, by the design of the API; None: it is open to all. A new route gets its line here.
NEEDS: dict[str, str | None] = {
    "POST /v1/datasets": "train",
    "GET /v1/datasets": "read",
    "GET /v1/datasets/<id:data_set_id>": "read",
    "GET /v1/datasets/<id:data_set_id>/rows": "read",
    "GET /v1/datasets/<id:data_set_id>/profile": "read",
    "PATCH /v1/datasets/<id:data_set_id>": "train",
    "DELETE /v1/datasets/<id:data_set_id>": "train",
    "POST /v1/training-jobs": "train",
    "POST /v1/pruning-jobs": "train",
    "POST /v1/evaluation-jobs": "train",
    "POST /v1/prediction-jobs": "predict",
    "GET /v1/jobs": "read",
    "GET /v1/jobs/<id:job_id>": "read",
    "GET /v1/jobs/<id:job_id>/events": "read",
    "GET /v1/jobs/<id:job_id>/result": "read",
    "POST /v1/jobs/<id:job_id>/cancel": "train",
    "POST /v1/jobs/<id:job_id>/retry": "train",
    "GET /v1/models": "read",
    "GET /v1/models/<model:name>": "read",
    "PATCH /v1/models/<model:name>": "admin",
    "DELETE /v1/models/<model:name>": "train",
    "POST /v1/models/<model:name>/versions/<number>/archive": "train",
    "DELETE /v1/models/<model:name>/versions/<number>": "train",
    "DELETE /v1/decisions": "admin",
    "GET /v1/models/<model:name>/versions": "read",
    "POST /v1/models/<model:name>/versions": "train",
    "GET /v1/models/<model:name>/versions/<number>": "read",
    "GET /v1/models/<model:name>/versions/<number>/tree": "read",
    "GET /v1/models/<model:name>/versions/<number>/rules": "read",
    "GET /v1/models/<model:name>/versions/<number>/importances": "read",
    "GET /v1/models/<model:name>/versions/<number>/document": "read",
    "GET /v1/models/<model:name>/versions/<number>/export": "read",
    "GET /v1/models/<model:name>/versions/<number>/schema": "read",
    "GET /v1/models/<model:name>/versions/<number>/pruning": "read",
    "GET /v1/models/<model:name>/aliases": "read",
    "PUT /v1/models/<model:name>/aliases/<alias:alias>": "train",
    "GET /v1/models/<model:name>/aliases/<alias:alias>/history": "read",
    "POST /v1/models/<model:name>/aliases/<alias:alias>/rollback": "train",
    "POST /v1/models/<model:name>/predict": "predict",
    "POST /v1/models/<model:name>/versions/<number>/predict": "predict",
    "GET /v2": None,
    "GET /v2/health/live": None,
    "GET /v2/health/ready": None,
    "GET /v2/models/<model:name>": "predict",
    "GET /v2/models/<model:name>/ready": "predict",
    "GET /v2/models/<model:name>/versions/<number>": "predict",
    "GET /v2/models/<model:name>/versions/<number>/ready": "predict",
    "POST /v2/models/<model:name>/infer": "predict",
    "POST /v2/models/<model:name>/versions/<number>/infer": "predict",
    "POST /v2/repository/index": "read",
    "GET /v1/decisions": "audit",
    "GET /v1/decisions/<decision:decision_id>": "audit",
    "GET /v1/decisions/<decision:decision_id>/explanation": "audit",
    "POST /v1/decisions/<decision:decision_id>/outcome": "predict",
    "POST /v1/decisions/<decision:decision_id>/counterfactuals": "audit",
    "POST /v1/models/<model:name>/consultations": "predict",
    "GET /v1/models/<model:name>/versions/<number>/accuracy": "read",
    "POST /v1/keys": "admin",
    "GET /v1/keys": "admin",
    "DELETE /v1/keys/<id:key_id>": "admin",
    "GET /": None,
    "GET /health": None,
    "GET /livez": None,
    "GET /readyz": None,
    "GET /metrics": "read",
    "GET /openapi.json": None,
    "GET /docs": None,
    "GET /static/<path:filename>": None,
}
NUMBER = "<int(min=1,max=2147483647):number>"
# Where a key for another model is refused; elsewhere it sees less, or what belongs to no model.
SHARED = {"PATCH /v1/datasets/<id:data_set_id>", "DELETE /v1/datasets/<id:data_set_id>", "GET /metrics"}
BOUND = {route for route in NEEDS if "<model:" in route or "<id:job_id>" in route or "<decision:" in route} | SHARED
OUTCOME = "POST /v1/decisions/<decision:decision_id>/outcome"
COUNTERFACTUALS = "POST /v1/decisions/<decision:decision_id>/counterfactuals"
BOUND -= {OUTCOME, COUNTERFACTUALS}  # their bodies are read first: they have a test of their own
# A key with the scope predict alone reaches the prediction jobs that it asked for.
OWN_JOBS = {
    "GET /v1/jobs/{job_id}",
    "GET /v1/jobs/{job_id}/events",
    "GET /v1/jobs/{job_id}/result",
    "POST /v1/jobs/{job_id}/cancel",
}
OF_A_JOB = [route for route in NEEDS if "<id:job_id>" in route]


class Guarded:
    """A service with keys on, one model "tennis" with a decision and a job, and a key of every kind."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.admin = self.key(Scope.ADMIN)
        dataset = self.ask("POST", "/v1/datasets?target=PlayTennis", self.admin, data=TENNIS, content_type="text/csv")
        asked = {"model": "tennis", "dataset": dataset.get_json()["id"]}
        job = self.ask("POST", "/v1/training-jobs", self.admin, json=asked)
        answer = self.ask("POST", "/v1/models/tennis/predict", self.admin, json={"rows": [{"Wind": "Weak"}]})
        self.arguments = {
            "<id:data_set_id>": asked["dataset"],
            "<id:job_id>": job.get_json()["id"],
            "<model:name>": "tennis",
            "<number>": "1",
            "<alias:alias>": "production",
            "<decision:decision_id>": answer.get_json()["predictions"][0]["decision_id"],
            "<id:key_id>": "01890000-0000-7000-8000-000000000000",
            "<path:filename>": "docs.js",
        }

    def key(self, *scopes: Scope, models: list[str] | None = None, **changes: Any) -> str:
        with transaction(self.served.service.sessions) as session:
            key, token = keys.create(session, name="test", scopes=scopes, models=models)
            for name, value in changes.items():
                setattr(key, name, value)
        return token

    def ask(self, method: str, path: str, token: str | None, **more: Any) -> TestResponse:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        with self.served.client.open(path, method=method, headers=headers, **more) as response:
            response.get_data()
            return response

    def walk(self, route: str, token: str | None) -> TestResponse:
        """Ask a route for what is there, without a body: what comes after the key was looked at does not matter."""
        method, path = route.split()
        for name, value in self.arguments.items():
            path = path.replace(name, value)
        return self.ask(method, path, token)


@pytest.fixture(scope="module")
def guarded(shared_sqlite: Settings) -> Iterator[Guarded]:
    with serving(shared_sqlite, auth="keys") as served:
        served.train("tennis")
        yield Guarded(served)


def test_every_route_is_in_the_table_and_the_table_has_no_other(guarded: Guarded) -> None:
    rules = guarded.served.client.application.url_map.iter_rules()
    routes = {
        f"{method} {rule.rule.replace(NUMBER, '<number>')}"
        for rule in rules
        if not rule.endpoint.startswith("pages.")  # tests/service/web
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert routes == NEEDS.keys()


def test_every_route_declares_a_scope_where_it_is_made(guarded: Guarded) -> None:
    declared = {f"{resource.name}.{view}" for resource in RESOURCES for view in resource.scopes} | pages.scopes.keys()
    assert declared | OPEN == guarded.served.client.application.view_functions.keys()


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("route", NEEDS)
def test_a_key_opens_the_routes_of_its_scope_and_no_other(guarded: Guarded, route: str, scope: Scope) -> None:
    response = guarded.walk(route, guarded.key(scope))
    if NEEDS[route] in (None, scope) or scope == "admin":
        assert response.status_code not in (401, 403), response.text
    else:
        detail = assert_problem(response, 403)["detail"]
        assert f"scope {NEEDS[route]}" in detail


@pytest.mark.parametrize("kind", ["none", "basic", "nonsense", "wrong", "expired", "revoked"])
@pytest.mark.parametrize("route", NEEDS)
def test_without_a_key_that_is_valid_only_the_open_routes_answer(guarded: Guarded, route: str, kind: str) -> None:
    past = utc_now() - timedelta(seconds=1)
    tokens = {
        "none": lambda: None,
        "basic": lambda: "",
        "nonsense": lambda: "hunter2",
        "wrong": lambda: guarded.admin[:-3] + "abc",
        "expired": lambda: guarded.key(Scope.ADMIN, expires=past),
        "revoked": lambda: guarded.key(Scope.ADMIN, revoked=past),
    }
    response = guarded.walk(route, tokens[kind]())
    if NEEDS[route] is None:
        assert response.status_code == 200, response.text
    else:
        assert_problem(response, 401)
        assert response.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("route", NEEDS)
def test_a_key_for_another_model_is_refused_wherever_a_model_is_named(guarded: Guarded, route: str) -> None:
    every = [scope for scope in Scope if scope != Scope.ADMIN]
    response = guarded.walk(route, guarded.key(*every, models=["other"]))
    if NEEDS[route] == "admin":
        assert_problem(response, 403)
    elif route in BOUND:
        assert "only the models other" in assert_problem(response, 403)["detail"]
    else:
        assert response.status_code not in (401, 403), response.text


@pytest.mark.parametrize("path", ["/v1/training-jobs", "/v1/pruning-jobs"])
def test_a_key_for_another_model_cannot_train_this_one(guarded: Guarded, path: str) -> None:
    token = guarded.key(Scope.TRAIN, models=["other"])
    asked = {"model": "tennis", "dataset": guarded.arguments["<id:data_set_id>"]}
    asked = asked if "training" in path else {"model": "tennis", "method": "pessimistic"}
    assert_problem(guarded.ask("POST", path, token, json=asked), 403)


@pytest.mark.parametrize(
    ("route", "scope", "body"), [(OUTCOME, Scope.PREDICT, {"label": "yes"}), (COUNTERFACTUALS, Scope.AUDIT, {})]
)
def test_a_key_for_another_model_reaches_no_decision_of_this_one(
    guarded: Guarded, route: str, scope: Scope, body: dict[str, Any]
) -> None:
    path = route.split()[1].replace("<decision:decision_id>", guarded.arguments["<decision:decision_id>"])
    told = guarded.ask("POST", path, guarded.key(scope, models=["other"]), json=body)
    assert "only the models other" in assert_problem(told, 403)["detail"]


@pytest.mark.parametrize(
    ("method", "below", "scope", "body"),
    [
        ("GET", "", Scope.AUDIT, None),
        ("GET", "/explanation", Scope.AUDIT, None),
        ("POST", "/counterfactuals", Scope.AUDIT, {}),
        ("POST", "/outcome", Scope.PREDICT, {"label": "yes"}),
    ],
)
def test_a_key_for_another_model_cannot_tell_a_refused_decision_from_one_that_is_not_there(
    guarded: Guarded, method: str, below: str, scope: Scope, body: Any
) -> None:
    rows = {"rows": [{"Wind": ["no", "cell"]}, {"Wind": "Weak"}], "on_error": "skip"}
    guarded.served.train("fresh")  # the walk over all routes archives the other one
    refused = guarded.ask("POST", "/v1/models/fresh/predict", guarded.admin, json=rows)
    names = [
        guarded.arguments["<decision:decision_id>"],
        refused.get_json()["predictions"][0]["decision_id"],
        "01890000-0000-7000-8000-000000000000",
    ]
    limited = guarded.key(scope, models=["other"])
    details = {
        assert_problem(guarded.ask(method, f"/v1/decisions/{name}{below}", limited, json=body), 403)["detail"]
        for name in names
    }
    assert len(details) == 1


@pytest.mark.parametrize("route", OF_A_JOB)
def test_a_key_that_may_not_use_a_job_cannot_tell_it_from_one_that_is_not_there(guarded: Guarded, route: str) -> None:
    method, path = route.split()
    paths = [path.replace("<id:job_id>", job) for job in (guarded.arguments["<id:job_id>"], UNKNOWN)]
    for token in (guarded.key(Scope.READ, Scope.TRAIN, models=["other"]), guarded.key(Scope.PREDICT)):
        details = {assert_problem(guarded.ask(method, one, token), 403)["detail"] for one in paths}
        assert len(details) == 1
    assert_problem(guarded.ask(method, paths[1], guarded.admin), 404)


def test_a_key_that_only_predicts_watches_and_cancels_its_own_prediction_jobs_and_no_others(guarded: Guarded) -> None:
    mine, other = guarded.key(Scope.PREDICT), guarded.key(Scope.PREDICT)
    asked = {"model": "fresh", "dataset": guarded.served.train("fresh")}
    response = guarded.ask("POST", "/v1/prediction-jobs", mine, json=asked)
    assert response.status_code == 202, response.text
    job = response.headers["Location"]
    assert guarded.ask("GET", job, mine).get_json()["state"] == "queued"
    assert_problem(guarded.ask("GET", f"{job}/result", mine), 409)
    for token, path in ((other, job), (mine, f"/v1/jobs/{guarded.arguments['<id:job_id>']}")):
        assert "scope read" in assert_problem(guarded.ask("GET", path, token), 403)["detail"]
        assert "scope train" in assert_problem(guarded.ask("POST", f"{path}/cancel", token), 403)["detail"]
    assert guarded.ask("POST", f"{job}/cancel", mine).get_json()["state"] == "cancelled"
    assert b"event: end" in guarded.ask("GET", f"{job}/events", mine).data


@pytest.mark.parametrize("path", ["/v1/models", "/v1/jobs", "/v1/decisions"])
def test_lists_show_only_what_the_key_reaches(guarded: Guarded, path: str) -> None:
    scopes = [Scope.READ, Scope.AUDIT]
    mine = guarded.ask("GET", path, guarded.key(*scopes, models=["tennis"])).get_json()["items"]
    others = guarded.ask("GET", path, guarded.key(*scopes, models=["other"])).get_json()["items"]
    assert len(mine) >= 1
    assert others == []


def test_data_sets_are_shared_by_the_keys_of_all_models(guarded: Guarded) -> None:
    token = guarded.key(Scope.READ, Scope.TRAIN, models=["other"])
    path = f"/v1/datasets/{guarded.arguments['<id:data_set_id>']}"
    assert guarded.ask("GET", f"{path}/rows", token).status_code == 200
    asked = {"model": "other", "dataset": guarded.arguments["<id:data_set_id>"]}
    assert guarded.ask("POST", "/v1/training-jobs", token, json=asked).status_code == 202
    for method in ("PATCH", "DELETE"):
        assert "shared" in assert_problem(guarded.ask(method, path, token, json={"target": "Wind"}), 403)["detail"]
    assert guarded.ask("GET", path, token).get_json()["schema"]["columns"][-1]["role"] == "target"


def test_a_comparison_is_for_the_key_that_asked_and_for_those_without_a_limit(guarded: Guarded) -> None:
    scopes = (Scope.READ, Scope.TRAIN)
    mine, other, wide = guarded.key(*scopes, models=["tennis"]), guarded.key(*scopes, models=["tennis"]), guarded.admin
    asked = {"dataset": guarded.arguments["<id:data_set_id>"], "candidates": [{"name": "a"}, {"name": "b"}], "folds": 2}
    response = guarded.ask("POST", "/v1/evaluation-jobs", mine, json=asked)
    assert response.status_code == 202, response.text
    job = response.get_json()["id"]

    for token, sees in ((mine, True), (other, False), (wide, True)):
        listed = guarded.ask("GET", "/v1/jobs?kind=evaluate", token).get_json()["items"]
        assert (job in [one["id"] for one in listed]) == sees
    for route in OF_A_JOB:
        method, path = route.replace("<id:job_id>", job).split()
        assert "requested" in assert_problem(guarded.ask(method, path, other), 403)["detail"]
    for token in (mine, wide):
        assert guarded.ask("GET", f"/v1/jobs/{job}", token).status_code == 200
        assert_problem(guarded.ask("GET", f"/v1/jobs/{job}/result", token), 409)
        assert guarded.ask("POST", f"/v1/jobs/{job}/cancel", token).status_code == 202
        assert guarded.ask("POST", f"/v1/jobs/{job}/retry", token).status_code == 202


def test_a_path_that_is_not_there_is_not_found_by_anybody(guarded: Guarded) -> None:
    assert_problem(guarded.ask("GET", "/v1/nothing", None), 404)


def test_a_decision_and_a_job_tell_which_key_asked(guarded: Guarded) -> None:
    shown = guarded.walk("GET /v1/decisions/<decision:decision_id>", guarded.admin).get_json()
    upload = guarded.ask("POST", "/v1/datasets?target=PlayTennis", guarded.admin, data=TENNIS, content_type="text/csv")
    asked = {"model": "told", "dataset": upload.get_json()["id"]}
    queued = guarded.ask("POST", "/v1/training-jobs", guarded.admin, json=asked).get_json()["id"]
    with read_session(guarded.served.service.sessions) as session:
        job = find_job(session, queued)
    assert guarded.ask("POST", f"/v1/jobs/{queued}/cancel", guarded.admin).status_code == 202
    assert guarded.admin.startswith(f"esp_{shown['key']}_")
    assert job.key_id == shown["key"]


def test_a_job_that_is_tried_again_counts_for_the_key_that_asks(settings: Settings) -> None:
    with serving(settings, auth="keys", max_jobs=1) as served:
        guarded = Guarded.__new__(Guarded)
        guarded.served = served
        first, second = guarded.key(Scope.TRAIN), guarded.key(Scope.TRAIN)
        upload = guarded.ask("POST", "/v1/datasets?target=PlayTennis", first, data=TENNIS, content_type="text/csv")
        asked = {"model": "m", "dataset": upload.get_json()["id"]}
        jobs = []
        for _ in range(2):
            jobs.append(guarded.ask("POST", "/v1/training-jobs", first, json=asked).get_json()["id"])
            assert guarded.ask("POST", f"/v1/jobs/{jobs[-1]}/cancel", first).status_code == 202
        assert guarded.ask("POST", f"/v1/jobs/{jobs[0]}/retry", second).status_code == 202
        assert_problem(guarded.ask("POST", f"/v1/jobs/{jobs[1]}/retry", second), 429)
        assert guarded.ask("POST", f"/v1/jobs/{jobs[1]}/retry", first).status_code == 202


def test_where_keys_are_off_everybody_may_and_no_key_is_noted(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("tennis")
        prediction = served.predict("tennis", {"rows": [{"Wind": "Weak"}]})["predictions"][0]
        decision = served.client.get(f"/v1/decisions/{prediction['decision_id']}").get_json()
        assert decision["key"] is None
        assert served.client.get("/v1/keys").get_json() == {"items": [], "next": None}


def test_the_description_says_of_every_route_which_scope_it_needs(guarded: Guarded) -> None:
    described = guarded.ask("GET", "/openapi.json", None).get_json()
    found = {}
    for path, operations in described["paths"].items():
        for method in operations.keys() & {"get", "post", "put", "patch", "delete"}:
            operation = operations[method]
            found[f"{method.upper()} {path}"] = operation["security"]
            assert {"401", "403"} <= operation["responses"].keys() or operation["security"] == []
    needed = {
        re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route): [] if scope is None else [{"key": [scope]}]
        for route, scope in NEEDS.items()
        if route.split()[1] not in ("/docs", "/openapi.json", "/static/<path:filename>")
    }
    for route in OWN_JOBS:
        needed[route].append({"key": ["predict"]})
    assert found == needed
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_the_description_asks_for_no_key_where_keys_are_off(settings: Settings) -> None:
    with serving(settings) as served:
        described = served.client.get("/openapi.json").get_json()
    assert "securitySchemes" not in described["components"]
    assert "security" not in described["paths"]["/v1/models"]["get"]


# Keys over HTTP


def test_a_key_made_over_http_is_shown_once_and_works_until_it_is_revoked(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        guarded = Guarded.__new__(Guarded)
        guarded.served = served
        admin = guarded.key(Scope.ADMIN)
        asked = {"name": "robot", "scopes": ["read"], "models": ["tennis"], "expires": "2099-01-01T00:00:00+00:00"}
        response = guarded.ask("POST", "/v1/keys", admin, json=asked)
        made = response.get_json()
        assert response.status_code == 201
        assert response.headers["Cache-Control"] == "no-store"
        assert {name: made[name] for name in asked} == asked
        assert guarded.ask("GET", "/v1/models", made["token"]).status_code == 200

        listed = guarded.ask("GET", "/v1/keys", admin)
        assert listed.get_json()["items"][0]["id"] == made["id"]
        assert made["token"].split("_", 2)[2] not in listed.text

        assert guarded.ask("DELETE", f"/v1/keys/{made['id']}", admin).status_code == 204
        assert "revoked" in assert_problem(guarded.ask("GET", "/v1/models", made["token"]), 401)["detail"]
        with read_session(served.service.sessions) as session:
            assert session.get_one(Key, made["id"]).revoked is not None


def test_a_key_may_last_to_the_end_of_the_calendar(guarded: Guarded) -> None:
    body = {"name": "x", "scopes": ["read"], "expires": "9999-12-31T22:59:59-01:00"}
    made = guarded.ask("POST", "/v1/keys", guarded.admin, json=body).get_json()
    assert made["expires"] == "9999-12-31T23:59:59+00:00"
    assert guarded.ask("GET", "/v1/models", made["token"]).status_code == 200
    assert guarded.ask("GET", "/v1/keys", guarded.admin).get_json()["items"][0]["expires"] == made["expires"]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/name", "/scopes"]),
        ({"name": "x", "scopes": ["write"]}, ["/scopes/0"]),
        ({"name": "", "scopes": [], "models": []}, ["/name", "/scopes", "/models"]),
        ({"name": "x", "scopes": ["admin"], "models": ["a"]}, ["/models"]),
        ({"name": "x", "scopes": ["read"], "expires": "2001-01-01T00:00:00Z"}, ["/expires"]),
        ({"name": "x", "scopes": ["read"], "expires": "9999-12-31T23:59:59-01:00"}, ["/expires"]),
        ({"name": "x", "scopes": ["read"], "expires": "0001-01-01T00:00:00+01:00"}, ["/expires"]),
        ({"name": "x", "scopes": ["read"], "secret": "mine"}, ["/secret"]),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_by_its_places(
    guarded: Guarded, body: dict[str, Any], pointers: list[str]
) -> None:
    assert_problem(guarded.ask("POST", "/v1/keys", guarded.admin, json=body), 422, *pointers)
