"""Operating points over HTTP: by every way in, in the log, in explanations that stay true."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

import espalier
from service.database.engine import read_session, transaction
from service.database.tables import DecisionRecord
from service.repositories.job_queue import find_job
from service.serialization.json_columns import MANY_ROWS
from service.settings import Settings
from tests.service.api.test_masks import WAYS, decision, explained
from tests.service.served import HOURS, TENNIS, Served, assert_problem, serving

# Pruned to its root, the tree of the tennis data says what the rows say: 9 Yes, 5 No of 14.
NO_FROM_A_THIRD = {"label": "No", "probability": 0.35}
NO_FROM_TWO_FIFTHS = {"label": "No", "probability": 0.4}


def keep_root(served: Served) -> None:
    """Keep a version that is a single leaf: its shares are those of all rows."""
    served.keep("tennis", espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "cart", max_depth=0))


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as one:
        keep_root(one)
        yield one


def at(served: Served, point: Any, name: str = "tennis") -> dict[str, Any]:
    response = served.client.patch(f"/v1/models/{name}", json={"operating_point": point})
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.get_json()
    assert shown["operating_point"] == point
    return shown


def test_a_label_is_given_from_its_probability_on(served: Served) -> None:
    rows = {"rows": [{"Outlook": "Sunny"}]}
    plain = served.predict("tennis", rows)
    assert (plain["operating_point"], plain["predictions"][0]["label"]) == (None, "Yes")
    at(served, NO_FROM_A_THIRD)
    answer = served.predict("tennis", rows)
    assert (answer["operating_point"], answer["predictions"][0]["label"]) == (NO_FROM_A_THIRD, "No")  # 5/14 = 0.357
    assert answer["predictions"][0]["distribution"] == plain["predictions"][0]["distribution"]
    at(served, NO_FROM_TWO_FIFTHS)
    assert served.predict("tennis", rows)["predictions"][0]["label"] == "Yes"
    at(served, {"label": "Yes", "probability": 0.65})  # 9/14 = 0.643 does not reach it
    assert served.predict("tennis", rows)["predictions"][0]["label"] == "No"
    at(served, None)
    assert served.predict("tennis", rows)["predictions"][0]["label"] == "Yes"


def test_a_table_of_rows_is_answered_by_the_point_in_force(served: Served) -> None:
    table = {"rows": [{"Outlook": "Sunny"}] * MANY_ROWS, "explain": "none"}
    for point, label in ((None, "Yes"), (NO_FROM_A_THIRD, "No"), (NO_FROM_TWO_FIFTHS, "Yes"), (None, "Yes")):
        at(served, point)
        assert {one["label"] for one in served.predict("tennis", table)["predictions"]} == {label}


def test_a_label_that_equals_the_former_one_in_python_is_another_label(settings: Settings) -> None:
    rows = [{"x": place, "y": (1, True)[place % 3 == 0]} for place in range(12)]
    schema = {"target": "y", "columns": [{"name": "y", "kind": "nominal", "categories": [1, True]}]}
    model = espalier.train(espalier.dataset_from_rows(rows, schema=schema), "cart", max_depth=0)
    with serving(settings) as served:
        served.keep("either", model)
        for label in (1, True, 1):
            at(served, {"label": label, "probability": 0.0}, name="either")
            shown = served.client.get("/v1/models/either").get_json()["operating_point"]
            answer = served.predict("either", {"rows": [{}]})["predictions"][0]
            assert json.dumps([shown["label"], answer["label"]]) == json.dumps([label, label])


@pytest.mark.parametrize("way", WAYS)
def test_by_every_way_in_the_label_is_decided_logged_and_verified(served: Served, way: str) -> None:
    point = {"label": "Yes", "probability": 0.0}
    at(served, point)
    ids = WAYS[way](served)
    shown = decision(served, ids[0])
    assert (shown["answer"]["label"], shown["operating_point"]) == ("Yes", point)
    at(served, NO_FROM_A_THIRD)
    for later in (None, point):  # what is said today changes nothing of what was decided
        found = explained(served, ids[0])
        assert (found["verified"], found["operating_point"]) == (True, point)
        assert found["explanation"]["label"] == "Yes"
        at(served, later)


def test_streams_and_the_inference_protocol_say_which_point_was_in_force(served: Served) -> None:
    assert "Espalier-Operating-Point" not in ask_csv(served).headers
    at(served, NO_FROM_A_THIRD)
    response = ask_csv(served)
    assert json.loads(response.headers["Espalier-Operating-Point"]) == NO_FROM_A_THIRD
    row = response.text.splitlines()[1].split(",")
    assert (row[2], float(row[3])) == ("No", pytest.approx(5 / 14))
    inputs = [{"name": "Outlook", "shape": [1], "datatype": "BYTES", "data": ["Sunny"]}]
    answer = served.post("/v2/models/tennis/infer", {"inputs": inputs}).get_json()
    assert json.loads(answer["parameters"]["operating_point"]) == NO_FROM_A_THIRD
    assert next(one for one in answer["outputs"] if one["name"] == "label")["data"] == ["No"]


def ask_csv(served: Served) -> Any:
    return served.client.post("/v1/models/tennis/predict", data="Outlook\nSunny\n", content_type="text/csv")


def test_a_job_keeps_to_the_point_of_the_moment_when_it_was_asked_for(served: Served) -> None:
    at(served, NO_FROM_A_THIRD)
    data = served.upload(TENNIS, target="PlayTennis")["id"]
    job = served.post("/v1/prediction-jobs", {"model": "tennis", "dataset": data}).get_json()["id"]
    at(served, None)
    with read_session(served.service.sessions) as session:
        assert find_job(session, job).payload["operating_point"] == NO_FROM_A_THIRD


def test_what_the_log_says_was_applied_is_held_against_the_answer(served: Served) -> None:
    at(served, NO_FROM_A_THIRD)
    [one] = served.predict("tennis", {"rows": [{"Outlook": "Sunny"}]})["predictions"]
    with transaction(served.service.sessions) as session:
        session.execute(sqlalchemy.update(DecisionRecord).values(operating_point=NO_FROM_TWO_FIFTHS))
    assert explained(served, one["decision_id"])["verified"] is False


def test_a_version_without_the_class_answers_as_it_was_trained(served: Served) -> None:
    served.train("tennis", HOURS, preset="cart", target="hours", task="regression")
    at(served, NO_FROM_A_THIRD)  # of version 1
    answer = served.predict("tennis", {"rows": [{"size": 2}]})
    assert (answer["version"], answer["operating_point"]) == (2, None)
    assert decision(served, answer["predictions"][0]["decision_id"])["operating_point"] is None
    old = served.post("/v1/models/tennis/versions/1/predict", {"rows": [{}]}).get_json()
    assert (old["operating_point"], old["predictions"][0]["label"]) == (NO_FROM_A_THIRD, "No")


@pytest.mark.parametrize(
    ("point", "pointers"),
    [
        ("No", ["/operating_point"]),
        ({}, ["/operating_point/label", "/operating_point/probability"]),
        ({"label": "Perhaps", "probability": 2}, ["/operating_point/label", "/operating_point/probability"]),
        ({"label": None, "probability": None}, ["/operating_point/label", "/operating_point/probability"]),
        ({"label": "No", "probability": 0.5, "cost": 3}, ["/operating_point/cost"]),
    ],
)
def test_what_is_no_point_is_refused(served: Served, point: Any, pointers: list[str]) -> None:
    response = served.client.patch("/v1/models/tennis", json={"operating_point": point})
    assert_problem(response, 422, *pointers)
    assert served.client.get("/v1/models/tennis").get_json()["operating_point"] is None


def test_a_regression_takes_no_point(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours", task="regression")
    response = served.client.patch("/v1/models/hours", json={"operating_point": NO_FROM_A_THIRD})
    assert_problem(response, 422, "/operating_point/label")


def test_counterfactuals_and_consultations_are_by_the_point(served: Served) -> None:
    served.train("tennis")
    asked = {"rows": [{"Outlook": "Sunny", "Humidity": "High"}]}

    def changes() -> list[Any]:
        [one] = served.predict("tennis", asked)["predictions"]
        response = served.post(f"/v1/decisions/{one['decision_id']}/counterfactuals", {})
        assert response.status_code == 200, response.text
        return list(response.get_json()["counterfactuals"])

    def settled() -> Any:
        return served.post("/v1/models/tennis/consultations", {"known": {}}).get_json().get("label")

    assert changes() != []
    assert settled() is None
    at(served, {"label": "Yes", "probability": 0.0})  # every row is answered Yes: nothing is to be asked or changed
    assert changes() == []
    assert settled() == "Yes"
