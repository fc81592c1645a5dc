"""The decision log over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

from service.database.engine import transaction
from service.database.tables import DecisionRecord
from service.settings import Settings
from tests.service.served import UNKNOWN, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Strong"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def decide(served: Served, *rows: dict[str, Any], **more: object) -> list[dict[str, Any]]:
    predictions: list[dict[str, Any]] = served.predict("tennis", {"rows": list(rows), **more})["predictions"]
    return predictions


def test_a_decision_is_shown_as_it_was_made(served: Served) -> None:
    prediction = decide(served, SUNNY, subject="Ada")[0]
    shown = served.client.get(f"/v1/decisions/{prediction['decision_id']}").get_json()
    assert (shown["id"], shown["model"], shown["version"]) == (prediction["decision_id"], "tennis", 1)
    assert (shown["input"], shown["subject"], shown["leaf"]) == (SUNNY, "Ada", prediction["leaf"])
    assert shown["answer"] == {name: prediction[name] for name in shown["answer"]}
    assert [*[step["node"] for step in prediction["path"]], prediction["leaf"]] == shown["nodes"]
    version = served.client.get("/v1/models/tennis/versions/1").get_json()
    assert shown["document_sha256"] == version["document_sha256"]


def test_an_explanation_is_the_same_path_and_verified(served: Served) -> None:
    prediction = decide(served, SUNNY)[0]
    shown = served.client.get(f"/v1/decisions/{prediction['decision_id']}/explanation").get_json()
    assert (shown["decision_id"], shown["verified"]) == (prediction.pop("decision_id"), True)
    assert shown["explanation"] == prediction


def test_each_row_of_a_request_has_its_own_explanation(served: Served) -> None:
    predictions = decide(served, SUNNY, {"Outlook": "Overcast"})
    for prediction in predictions:
        shown = served.client.get(f"/v1/decisions/{prediction['decision_id']}/explanation").get_json()
        assert (shown["verified"], shown["explanation"]["rule"]) == (True, prediction["rule"])


def test_an_explanation_as_text_says_version_verification_and_rule(served: Served) -> None:
    prediction = decide(served, SUNNY)[0]
    response = served.client.get(f"/v1/decisions/{prediction['decision_id']}/explanation?format=text")
    assert response.content_type == "text/plain; charset=utf-8"
    assert "tennis, version 1" in response.text
    assert "verified" in response.text
    assert "Humidity" in response.text
    assert response.text.endswith("\n")
    assert not response.text.endswith("\n\n")
    unknown = served.client.get(f"/v1/decisions/{prediction['decision_id']}/explanation?format=pdf")
    assert_problem(unknown, 422, "/format")


def test_a_decision_that_was_tampered_with_is_not_verified(served: Served) -> None:
    decision_id = decide(served, SUNNY)[0]["decision_id"]
    with transaction(served.service.sessions) as session:
        session.execute(sqlalchemy.update(DecisionRecord).values(inputs=[SUNNY | {"Humidity": "Normal"}]))
    shown = served.client.get(f"/v1/decisions/{decision_id}/explanation").get_json()
    assert shown["verified"] is False


def test_decisions_are_listed_newest_first_page_by_page(served: Served) -> None:
    ids = [decide(served, SUNNY)[0]["decision_id"] for _ in range(3)]
    first = served.client.get("/v1/decisions?limit=2").get_json()
    second = served.client.get(f"/v1/decisions?limit=2&cursor={first['next']}").get_json()
    assert [item["id"] for item in first["items"] + second["items"]] == ids[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("model=tennis", 2),
        ("model=other", 0),
        ("version=1", 2),
        ("version=2", 0),
        ("label=Yes", 1),
        ("subject=Ada", 1),
        ("from=2020-01-01T00:00:00Z", 2),
        ("to=2020-01-01T00:00:00Z", 0),
        ("from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59.999999Z", 2),
    ],
)
def test_decisions_are_found_by_what_is_known_of_them(served: Served, query: str, found: int) -> None:
    decide(served, SUNNY, subject="Ada")
    decide(served, {"Outlook": "Overcast"})
    assert len(served.client.get(f"/v1/decisions?{query}").get_json()["items"]) == found


def test_bad_filters_are_refused_with_their_places(served: Served) -> None:
    response = served.client.get("/v1/decisions?version=0&leaf=x&from=yesterday&to=2020-01-01T00:00:00&colour=red")
    problem = assert_problem(response, 422, "/version", "/leaf", "/from", "/to", "/colour")
    messages = {fault["pointer"]: fault["message"] for fault in problem["errors"]}
    assert messages["/to"] == messages["/from"] == "must be a date and time in ISO 8601 with a time zone"


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00%2B01:00"])
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_moment_beyond_the_calendar_is_refused(served: Served, name: str, moment: str) -> None:
    problem = assert_problem(served.client.get(f"/v1/decisions?{name}={moment}"), 422, f"/{name}")
    assert "years 1 to 9999" in problem["errors"][0]["message"]


@pytest.mark.parametrize("name", ["model", "label", "subject"])
def test_nul_is_looked_for_on_no_database(served: Served, name: str) -> None:
    assert_problem(served.client.get(f"/v1/decisions?{name}=a%00b"), 422, f"/{name}")


@pytest.mark.parametrize("decision_id", [UNKNOWN, f"{UNKNOWN}:0", "x", f"{UNKNOWN}:99999999999"])
def test_an_unknown_decision_is_not_found(served: Served, decision_id: str) -> None:
    assert_problem(served.client.get(f"/v1/decisions/{decision_id}"), 404)
    assert_problem(served.client.get(f"/v1/decisions/{decision_id}/explanation"), 404)
