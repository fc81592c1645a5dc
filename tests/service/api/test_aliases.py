"""Aliases over HTTP: compare and set, the story, the way back, and who answers."""

from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest

from service.database.engine import transaction
from service.errors import Conflict
from service.repositories import aliases
from service.settings import Settings
from service.usecases.version_resolver import VersionResolver
from tests.service.served import Served, assert_problem, serving

PRODUCTION = "/v1/models/tennis/aliases/production"
ROW = {"rows": [{"Wind": "Weak"}], "explain": "none"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        for preset in ("id3", "c45", "cart"):
            one.train("tennis", preset=preset)
        yield one


def point(served: Served, version: int, **more: Any) -> dict[str, Any]:
    response = served.client.put(PRODUCTION, json={"version": version, **more})
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.get_json()
    return shown


def story(served: Served, **query: Any) -> list[tuple[int, int, str]]:
    items = served.client.get(f"{PRODUCTION}/history", query_string=query).get_json()["items"]
    return [(item["number"], item["version"], item["event"]) for item in items]


def test_the_aliases_of_a_model_are_listed_by_name_each_with_what_is_in_force(served: Served) -> None:
    assert served.client.get("/v1/models/tennis/aliases").get_json() == {"items": [], "next": None}
    point(served, 1)
    point(served, 3)
    for alias in ("canary", "beta"):
        assert served.client.put(f"/v1/models/tennis/aliases/{alias}", json={"version": 2}).status_code == 200
    served.train("other")
    assert served.client.put("/v1/models/other/aliases/production", json={"version": 1}).status_code == 200

    def listed(**query: Any) -> dict[str, Any]:
        found: dict[str, Any] = served.client.get("/v1/models/tennis/aliases", query_string=query).get_json()
        return found

    shown = [(one["model"], one["alias"], one["version"], one["number"]) for one in listed()["items"]]
    assert shown == [("tennis", "beta", 2, 1), ("tennis", "canary", 2, 1), ("tennis", "production", 3, 2)]
    first = listed(limit=2)
    assert [one["alias"] for one in first["items"]] == ["beta", "canary"]
    rest = listed(limit=2, cursor=first["next"])
    assert ([one["alias"] for one in rest["items"]], rest["next"]) == (["production"], None)
    assert_problem(served.client.get("/v1/models/nothing/aliases"), 404)
    assert_problem(served.client.get("/v1/models/tennis/aliases?limit=0&cursor=_"), 422, "/limit", "/cursor")


def answering(served: Served, path: str = "/v1/models/tennis/predict") -> int:
    answer = served.post(path, ROW)
    assert answer.status_code == 200, answer.text
    number: int = answer.get_json()["version"]
    return number


def test_without_an_alias_the_newest_version_answers_and_with_production_that_one(served: Served) -> None:
    assert answering(served) == 3
    point(served, 1)
    assert answering(served) == 1
    served.train("tennis", preset="id3")
    assert answering(served) == 1
    assert answering(served, "/v1/models/tennis/versions/4/predict") == 4


def test_an_alias_is_asked_by_its_name_and_noted_in_the_decision(served: Served) -> None:
    served.client.put("/v1/models/tennis/aliases/candidate", json={"version": 2})
    answer = served.post("/v1/models/tennis/predict?alias=candidate", ROW).get_json()
    decision = served.client.get(f"/v1/decisions/{answer['predictions'][0]['decision_id']}").get_json()
    assert (decision["version"], decision["alias"]) == (2, "candidate")
    newest = served.post("/v1/models/tennis/predict", ROW).get_json()["predictions"][0]["decision_id"]
    assert served.client.get(f"/v1/decisions/{newest}").get_json()["alias"] is None


def test_an_alias_that_is_not_there_does_not_answer(served: Served) -> None:
    assert "nobody" in assert_problem(served.post("/v1/models/tennis/predict?alias=nobody", ROW), 404)["detail"]
    assert_problem(served.post("/v1/models/other/predict?alias=nobody", ROW), 404)
    assert_problem(served.post("/v1/models/tennis/predict?alias=", ROW), 422, "/alias")
    for version in (1, 2, 3):
        served.client.post(f"/v1/models/tennis/versions/{version}/archive")
    assert_problem(served.post("/v1/models/tennis/predict?alias=nobody", ROW), 404)
    assert_problem(served.post("/v1/models/tennis/predict", ROW), 409)


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
def test_a_condition_that_an_alias_cannot_keep_is_refused_and_not_overlooked(served: Served, header: str) -> None:
    point(served, 1)
    refused = served.client.put(PRODUCTION, json={"version": 2}, headers={header: "*"})
    assert refused.status_code == 412
    assert "if_current" in refused.get_json()["detail"]
    assert story(served) == [(1, 1, "set")]


def test_the_version_must_be_there(served: Served) -> None:
    assert_problem(served.client.put(PRODUCTION, json={"version": 9}), 404)
    assert_problem(served.client.put("/v1/models/other/aliases/production", json={"version": 1}), 404)
    assert_problem(served.client.put(PRODUCTION, json={"version": 0}), 422, "/version")
    assert_problem(served.client.get(f"{PRODUCTION}/history"), 404)


def test_compare_and_set_leaves_alone_what_has_changed_meanwhile(served: Served) -> None:
    assert_problem(served.client.put(PRODUCTION, json={"version": 1, "if_current": 2}), 409)
    point(served, 1, if_current=None)
    assert_problem(served.client.put(PRODUCTION, json={"version": 2, "if_current": None}), 409)
    assert (
        "version 1"
        in assert_problem(served.client.put(PRODUCTION, json={"version": 3, "if_current": 2}), 409)["detail"]
    )
    point(served, 2, if_current=1)
    assert story(served) == [(2, 2, "set"), (1, 1, "set")]


def test_of_two_that_compare_and_set_at_once_one_wins(served: Served) -> None:
    point(served, 1)
    start, outcomes = Barrier(2), []

    def change(version: int) -> None:
        start.wait()
        try:
            with transaction(served.service.sessions) as session:
                aliases.point(session, "tennis", "production", version, if_current=1)
            outcomes.append(version)
        except Conflict:
            outcomes.append(None)

    threads = [Thread(target=change, args=(version,)) for version in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    [winner] = [outcome for outcome in outcomes if outcome is not None]
    assert story(served) == [(2, winner, "set"), (1, 1, "set")]


def test_going_back_twice_goes_back_two_steps_and_the_story_keeps_all(served: Served) -> None:
    for version in (1, 2, 3):
        point(served, version)
    assert served.client.post(f"{PRODUCTION}/rollback").get_json()["version"] == 2
    assert answering(served) == 2
    assert served.client.post(f"{PRODUCTION}/rollback").get_json()["version"] == 1
    assert answering(served) == 1
    assert_problem(served.client.post(f"{PRODUCTION}/rollback"), 409)
    assert story(served) == [(5, 1, "rollback"), (4, 2, "rollback"), (3, 3, "set"), (2, 2, "set"), (1, 1, "set")]
    point(served, 3)
    assert served.client.post(f"{PRODUCTION}/rollback").get_json()["version"] == 1


def test_pointing_an_alias_where_it_points_already_changes_nothing(served: Served) -> None:
    point(served, 1)
    once, again = point(served, 2), point(served, 2, if_current=2)
    assert once == again
    assert story(served) == [(2, 2, "set"), (1, 1, "set")]
    assert_problem(served.client.put(PRODUCTION, json={"version": 2, "if_current": 1}), 409)
    assert served.client.post(f"{PRODUCTION}/rollback").get_json()["version"] == 1


def test_the_story_is_paged_and_tells_what_was_in_force_at_a_moment(served: Served) -> None:
    first, second, third = (point(served, version) for version in (1, 2, 3))
    page = served.client.get(f"{PRODUCTION}/history?limit=2").get_json()
    assert [item["version"] for item in page["items"]] == [3, 2]
    assert story(served, limit=2, cursor=page["next"]) == [(1, 1, "set")]
    assert story(served, at=third["at"])[0][1] == 3
    assert story(served, at="2001-01-01T00:00:00+00:00") == []
    assert first["at"] <= second["at"] <= third["at"]


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00%2B01:00"])
def test_what_was_in_force_beyond_the_calendar_is_not_asked(served: Served, moment: str) -> None:
    point(served, 1)
    assert_problem(served.client.get(f"{PRODUCTION}/history?at={moment}"), 422, "/at")
    assert story(served, at="9999-12-31T23:59:59Z") == [(1, 1, "set")]


def test_a_change_elsewhere_is_seen_after_a_second(served: Served) -> None:
    point(served, 1)
    seconds = [0.0]
    elsewhere = VersionResolver(served.service.sessions, timer=lambda: seconds[0])
    found = []
    for moment, version in ((0.0, 2), (0.89, 3), (1.0, 3)):
        seconds[0] = moment
        found.append(elsewhere.resolve("tennis").version.number)
        point(served, version)

    assert found == [1, 1, 3]
