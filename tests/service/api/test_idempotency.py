"""A POST that creates, sent twice with one Idempotency-Key, creates once, whoever dies in between."""

import io
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select, update
from werkzeug.test import TestResponse

import espalier
from service.api import idempotency as over_http
from service.database.clock import now
from service.database.engine import read_session, transaction
from service.database.tables import IdempotentRequest, Scope
from service.errors import Conflict, RequestInProgress
from service.repositories import datasets, idempotency
from service.settings import Settings
from tests.service.guarded import token_of
from tests.service.served import TENNIS, Served, assert_problem, serving

KEY = "Idempotency-Key"
JSON = "application/json"
# What is no creation: asked twice it does no more than asked once, or it is a prediction.
NOT_CREATING = {
    "POST /v1/decisions/{decision_id}/counterfactuals",
    "POST /v1/decisions/{decision_id}/outcome",
    "POST /v1/jobs/{job_id}/cancel",
    "POST /v1/jobs/{job_id}/retry",
    "POST /v1/models/{name}/consultations",
    "POST /v1/models/{name}/predict",
    "POST /v1/models/{name}/versions/{number}/archive",
    "POST /v1/models/{name}/versions/{number}/predict",
    "POST /v2/models/{name}/infer",
    "POST /v2/models/{name}/versions/{number}/infer",
    "POST /v2/repository/index",
}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def upload(served: Served, key: str | None = "k1", *, csv: str = TENNIS, **more: Any) -> TestResponse:
    headers = {} if key is None else {KEY: key}
    more = {"query_string": {"target": "PlayTennis"}, "content_type": "text/csv"} | more
    return served.client.post("/v1/datasets", data=csv, headers=headers | more.pop("headers", {}), **more)


def count(served: Served, path: str = "/v1/datasets", **headers: str) -> int:
    return len(served.client.get(path, headers=headers).get_json()["items"])


def shift(served: Served, **values: Any) -> None:
    """Set columns of every remembered request."""
    with transaction(served.service.sessions) as session:
        session.execute(update(IdempotentRequest).values(**values))


# The first answer again


def test_the_same_request_is_answered_as_the_first_time_and_creates_nothing_more(served: Served) -> None:
    first, second, third = upload(served), upload(served), upload(served)
    assert [one.status_code for one in (first, second, third)] == [201] * 3
    assert first.data == second.data == third.data
    assert second.headers["Location"] == first.headers["Location"]
    assert second.content_type == first.content_type
    assert [one.headers.get("Idempotent-Replayed") for one in (first, second, third)] == [None, "true", "true"]
    assert count(served) == 1


def test_without_a_key_each_request_creates(served: Served) -> None:
    assert upload(served, None).get_json()["id"] != upload(served, None).get_json()["id"]
    assert upload(served, "k2").get_json()["id"] != upload(served, "k3").get_json()["id"]
    assert count(served) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"csv": TENNIS + "Rain,Mild,High,Weak,No\n"},
        {"query_string": {"target": "Wind"}},
        {"query_string": {}},
        {"content_type": "text/csv; charset=utf-8"},
    ],
)
def test_another_request_with_the_same_key_is_refused(served: Served, change: dict[str, Any]) -> None:
    upload(served)
    problem = assert_problem(upload(served, **change), 422, "/Idempotency-Key")
    assert problem["errors"][0]["code"] == "reused"
    assert count(served) == 1


def test_the_same_key_on_another_route_is_another_request(served: Served) -> None:
    upload(served)
    response = served.client.post("/v1/training-jobs", json={"model": "m", "dataset": "x"}, headers={KEY: "k1"})
    assert_problem(response, 422, "/Idempotency-Key")


@pytest.mark.parametrize("key", ["", "two words", "x" * 256, "ü", "a\tb"])
def test_what_cannot_be_a_key_is_refused(served: Served, key: str) -> None:
    headers = {KEY: key.encode().decode("latin-1")}
    assert_problem(upload(served, None, headers=headers), 422, "/Idempotency-Key")
    assert count(served) == 0


def test_what_was_refused_is_not_remembered(served: Served) -> None:
    assert upload(served, csv="").status_code == 422
    assert upload(served, content_type="text/plain").status_code == 415
    assert upload(served).status_code == 201
    assert upload(served).headers["Idempotent-Replayed"] == "true"


def test_an_unexpected_error_is_not_remembered(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("of ours")

    with monkeypatch.context() as patched:
        patched.setattr("service.repositories.datasets.add_data_set", broken)
        assert_problem(upload(served), 500)
    assert upload(served).status_code == 201


def test_an_answer_is_kept_for_its_time_and_then_swept_away(served: Served) -> None:
    first = upload(served).get_json()["id"]
    shift(served, expires=now(-1))
    assert upload(served).get_json()["id"] != first
    upload(served, "k2")
    shift(served, expires=now(-1))
    upload(served, "k3")
    with read_session(served.service.sessions) as session:
        assert len(session.scalars(select(IdempotentRequest)).all()) == 1


def test_a_row_past_its_time_that_was_not_swept_yet_counts_for_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_SWEPT", 0)
    first = upload(served).get_json()["id"]
    shift(served, expires=now(-1))
    second = upload(served, csv=TENNIS + "Rain,Mild,High,Weak,No\n")
    assert (second.status_code, second.get_json()["id"] != first) == (201, True)


def test_the_time_is_that_of_the_settings(settings: Settings) -> None:
    with serving(settings, replay_seconds=500.0) as served:
        upload(served)
        with read_session(served.service.sessions) as session:
            soon = session.scalar(select(IdempotentRequest.expires < now(501)))
            late = session.scalar(select(IdempotentRequest.expires > now(400)))
        assert soon
        assert late


# While it is running


def test_while_the_first_is_worked_at_the_second_is_told_to_wait(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TestResponse] = []
    check = datasets.check_data_set_name

    def in_the_middle(*arguments: Any, **more: Any) -> Any:
        if not seen:
            seen.append(upload(served))
        return check(*arguments, **more)

    monkeypatch.setattr(datasets, "check_data_set_name", in_the_middle)
    assert upload(served).status_code == 201
    problem = assert_problem(seen[0], 409)
    assert problem["retryable"]
    assert problem["type"].endswith("still-running")
    assert seen[0].headers["Retry-After"] == "1"
    assert upload(served).headers["Idempotent-Replayed"] == "true"


def test_many_at_once_create_one(settings: Settings) -> None:
    answers: list[TestResponse] = []
    with serving(settings) as served:
        barrier = threading.Barrier(8)

        def ask() -> None:
            client = served.client.application.test_client()
            barrier.wait()
            sent = {"data": TENNIS, "query_string": {"target": "PlayTennis"}, "content_type": "text/csv"}
            answers.append(client.post("/v1/datasets", headers={KEY: "same"}, **sent))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {one.status_code for one in answers} <= {201, 409}
        created = [one.data for one in answers if one.status_code == 201]
        assert len(set(created)) == 1
        assert count(served) == 1


# Whoever dies in between


def test_a_claim_that_ran_out_is_taken_over_and_its_holder_creates_nothing(served: Served) -> None:
    sessions = served.service.sessions

    def claim() -> Any:
        with transaction(sessions) as session:
            return idempotency.claim(session, owner=None, key="k", keep_seconds=60)

    def finish(held: IdempotentRequest, body: bytes) -> None:
        with transaction(sessions) as session:
            datasets.add_data_set(session, name=body.decode(), new=datasets.new_data_set(some_table()))
            idempotency.finish(session, held, request_sha256="0" * 64, status=201, headers={}, body=body)

    lost = claim()
    with pytest.raises(RequestInProgress):
        claim()
    shift(served, claimed_until=now(-1))
    second = claim()
    with pytest.raises(Conflict):
        finish(lost, b"lost")
    finish(second, b"second")
    with pytest.raises(Conflict):
        finish(lost, b"lost")
    with transaction(sessions) as session:
        idempotency.release(session, lost)
        idempotency.release(session, second)
    found = claim()
    assert (found.status, found.body) == (201, b"second")
    assert [one["name"] for one in served.client.get("/v1/datasets").get_json()["items"]] == ["second"]


def claimed(served: Served) -> IdempotentRequest:
    with transaction(served.service.sessions) as session:
        return idempotency.claim(session, owner=None, key="k", keep_seconds=60)


def test_a_clock_that_is_set_right_by_a_little_takes_no_claim_away(served: Served) -> None:
    claimed(served)
    shift(served, claimed_until=now(idempotency.CLAIM_SECONDS + 5))
    with pytest.raises(RequestInProgress):
        claimed(served)


def test_a_claim_from_before_the_clock_was_set_back_is_taken_for_lost(served: Served) -> None:
    first = claimed(served)
    shift(served, claimed_until=now(5 * 3600))
    second = claimed(served)
    assert (first.status, second.status) == (None, None)
    assert second.token != first.token


def some_table() -> espalier.Dataset:
    return espalier.dataset_from_csv(TENNIS, target="PlayTennis")


def test_what_was_created_and_its_answer_are_there_together_or_not_at_all(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = idempotency.finish

    def failing(*arguments: Any, **more: Any) -> None:
        finish(*arguments, **more)
        raise Conflict("after all was written, before it was committed")

    with monkeypatch.context() as patched:
        patched.setattr(idempotency, "finish", failing)
        assert_problem(upload(served), 409)
    assert count(served) == 0
    assert upload(served).status_code == 201
    assert count(served) == 1


# Every route


def test_every_post_that_creates_takes_a_key_and_no_other(served: Served) -> None:
    document = served.client.get("/openapi.json").get_json()
    taking, posts = set(), set()
    for path, operations in document["paths"].items():
        if "post" in operations:
            name = f"POST {path}"
            posts.add(name)
            parameters = operations["post"].get("parameters", [])
            if any(one.get("name") == KEY for one in parameters):
                taking.add(name)
                assert {"409", "422"} <= operations["post"]["responses"].keys(), name
    assert taking == posts - NOT_CREATING
    assert posts >= NOT_CREATING


def creations(served: Served) -> dict[str, tuple[Callable[[dict[str, str]], TestResponse], str]]:
    """Give, by route, what sends a request that succeeds, and the list that then is one longer."""
    dataset = served.upload(TENNIS, target="PlayTennis")["id"]
    served.train("tennis")
    served.train("tennis")
    for version in (1, 2, 1):
        served.client.put("/v1/models/tennis/aliases/production", json={"version": version})
    document = served.client.get("/v1/models/tennis/versions/1/document").data

    def post(path: str, body: object) -> Callable[[dict[str, str]], TestResponse]:
        return lambda headers: served.client.post(path, json=body, headers=headers)

    def bring(headers: dict[str, str]) -> TestResponse:
        kind = {"content_type": "application/json", "headers": headers}
        return served.client.post("/v1/models/tennis/versions", data=document, **kind)

    candidates = [{"name": "a"}, {"name": "b"}]
    return {
        "training": (post("/v1/training-jobs", {"model": "m", "dataset": dataset}), "/v1/jobs"),
        "pruning": (
            post("/v1/pruning-jobs", {"model": "tennis", "method": "pessimistic"}),
            "/v1/jobs",
        ),
        "evaluation": (
            post("/v1/evaluation-jobs", {"dataset": dataset, "candidates": candidates, "folds": 2}),
            "/v1/jobs",
        ),
        "prediction": (post("/v1/prediction-jobs", {"model": "tennis", "dataset": dataset}), "/v1/jobs"),
        "import": (bring, "/v1/models/tennis/versions"),
        "rollback": (
            lambda headers: served.client.post("/v1/models/tennis/aliases/production/rollback", headers=headers),
            "/v1/models/tennis/aliases/production/history",
        ),
    }


@pytest.mark.parametrize("route", ["training", "pruning", "evaluation", "prediction", "import", "rollback"])
def test_each_of_them_creates_once(served: Served, route: str) -> None:
    ask, path = creations(served)[route]
    before = count(served, path)
    first, second = ask({KEY: "k"}), ask({KEY: "k"})
    assert first.status_code in (200, 201, 202), first.text
    assert (second.status_code, second.data) == (first.status_code, first.data)
    assert second.headers.get("Location") == first.headers.get("Location")
    assert count(served, path) == before + 1
    assert ask({KEY: "other"}).data != first.data
    assert count(served, path) == before + 2


def test_a_view_that_forgot_to_remember_is_an_error_of_ours(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.api.datasets.remember", lambda _, response, **__: response)
    assert_problem(upload(served), 500)


# Keys


def test_each_api_key_has_keys_of_its_own(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        one, other = ({"Authorization": f"Bearer {token_of(served, Scope.TRAIN, Scope.READ)}"} for _ in range(2))
        first = upload(served, headers=one)
        assert upload(served, headers=one).data == first.data
        assert upload(served, headers=other).data != first.data
        assert count(served, **one) == 2


def test_a_repeated_request_for_a_key_makes_no_other_and_its_token_is_written_nowhere(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        admin = {"Authorization": f"Bearer {token_of(served, Scope.ADMIN)}", KEY: "k"}
        asked = {"name": "robot", "scopes": ["read"]}
        first, second = (served.client.post("/v1/keys", json=asked, headers=admin) for _ in range(2))
        assert first.status_code == 201
        assert "shown once" in assert_problem(second, 409)["detail"]
        assert count(served, "/v1/keys", **admin) == 2
        token = first.get_json()["token"]
        assert served.client.get("/v1/models", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        with read_session(served.service.sessions) as session:
            row = session.scalars(select(IdempotentRequest)).one()
        assert row.body is None


def test_another_who_uses_the_key_of_a_request_is_asked_for_its_scope_first(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        reader = {"Authorization": f"Bearer {token_of(served, Scope.READ)}"}
        assert_problem(upload(served, headers=reader), 403)
        assert_problem(upload(served), 401)


def test_the_pattern_in_the_description_is_the_one_that_is_checked(served: Served) -> None:
    document = served.client.get("/openapi.json").get_json()
    parameters = document["paths"]["/v1/datasets"]["post"]["parameters"]
    described = next(one for one in parameters if one["name"] == KEY)
    assert described["schema"]["pattern"] == f"^{over_http.LEGAL}$"


class Watched(io.RawIOBase):
    """A body that notes whether a connection is in use while it is read."""

    def __init__(self, served: Served, content: bytes) -> None:
        super().__init__()
        self.pool: Any = served.service.sessions.engine.pool
        self.rest, self.in_use = content, [0]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.in_use.append(self.pool.checkedout())
        part, self.rest = self.rest[:1], self.rest[1:]
        buffer[: len(part)] = part
        return len(part)


def test_no_view_reads_a_body_within_a_transaction(served: Served) -> None:
    served.train("tennis")
    data_set = served.train("tennis")
    for version in (1, 2):
        served.client.put("/v1/models/tennis/aliases/production", json={"version": version})
    values = {"name": "tennis", "number": "1", "alias": "production", "data_set_id": data_set}
    unknown = "01890000-0000-7000-8000-000000000000"
    rules = [rule for rule in served.client.application.url_map.iter_rules() if rule.endpoint != "static"]
    n_walked = 0
    for rule in rules:
        for method in sorted((rule.methods or set()) & {"POST", "PUT", "PATCH", "DELETE"}):
            path = re.sub(r"<(?:[^:<>]+:)?(\w+)>", lambda found: values.get(found[1], unknown), rule.rule)
            for content in (b"{} ", b'{"version": 1} ', b'{"tags": ["a"]} ', b'{"target": "Wind"} '):
                body = Watched(served, content)
                served.client.open(
                    path,
                    method=method,
                    headers={KEY: f"{method} {rule.rule} {content!r}".replace(" ", "_")[:255], "Content-Type": JSON},
                    environ_overrides={"wsgi.input": body, "CONTENT_LENGTH": str(len(content))},
                )
                assert max(body.in_use) == 0, f"{method} {rule.rule} reads {content!r} within a transaction"
                n_walked += len(body.in_use) > 1
    assert n_walked > 20
