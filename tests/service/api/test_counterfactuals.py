"""Counterfactuals of logged decisions, and consultations, over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

import espalier
from service.database.engine import read_session
from service.repositories import decisions
from service.settings import Settings
from tests.service.served import HOURS, TENNIS, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as one:
        one.train("tennis")
        one.train("hours", HOURS, preset="cart", target="hours", task="regression")
        yield one


def decided(served: Served, row: dict[str, Any], model: str = "tennis", **more: Any) -> str:
    found: str = served.predict(model, {"rows": [row], **more})["predictions"][0]["decision_id"]
    return found


def others(served: Served, decision_id: str, **asked: Any) -> dict[str, Any]:
    response = served.post(f"/v1/decisions/{decision_id}/counterfactuals", asked)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.get_json()
    return found


def consulted(served: Served, known: dict[str, Any], model: str = "tennis", **more: Any) -> dict[str, Any]:
    response = served.post(f"/v1/models/{model}/consultations", {"known": known, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.get_json()
    return found


def n_decisions(served: Served) -> int:
    with read_session(served.service.sessions) as session:
        return len(decisions.list_decisions(session, decisions.Filter()).items)


# Counterfactuals


def test_the_nearest_changes_of_a_decision_are_what_the_core_says(served: Served) -> None:
    decision_id = decided(served, SUNNY)
    found = others(served, decision_id)
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    expected = espalier.counterfactuals(model, SUNNY).to_dict()
    assert found == {"decision_id": decision_id, "model": "tennis", "version": 1, **expected}
    assert "if Humidity were Normal instead of High then Yes" in [one["text"] for one in found["counterfactuals"]]


def test_what_is_asked_narrows_them(served: Served) -> None:
    decision_id = decided(served, SUNNY)
    [only] = others(served, decision_id, label="Yes", immutable=["Outlook"], max=1)["counterfactuals"]
    assert only["changes"] == [{"attribute": "Humidity", "from": "High", "to": "Normal", "distance": 1.0, "cost": 1.0}]
    assert only["answer"]["label"] == "Yes"
    cheapest = others(served, decision_id, costs={"Outlook": 5}, max=1)["counterfactuals"]
    assert [change["attribute"] for change in cheapest[0]["changes"]] == ["Humidity"]


def test_a_regression_is_asked_for_a_range(served: Served) -> None:
    decision_id = decided(served, {"size": 2}, "hours")
    [nearest, *_] = others(served, decision_id, range=[30, None])["counterfactuals"]
    assert [change["to"] for change in nearest["changes"]] == [7]  # the threshold is 6.5, and sizes are whole
    assert nearest["answer"]["value"] >= 30
    problem = served.post(f"/v1/decisions/{decision_id}/counterfactuals", {})
    assert_problem(problem, 422, "/range")


def test_the_strategy_of_the_decision_is_kept(served: Served) -> None:
    decision_id = decided(served, {"Humidity": "High"}, missing="last_prediction")
    found = others(served, decision_id)
    assert found["answer"]["leaf"] == 0
    assert all(one["answer"]["label"] == "No" for one in found["counterfactuals"])


def test_neither_is_a_decision(served: Served) -> None:
    decision_id = decided(served, SUNNY)
    others(served, decision_id)
    consulted(served, {})
    assert n_decisions(served) == 1


@pytest.mark.parametrize(
    ("asked", "pointers"),
    [
        ({"label": "Maybe"}, ["/label"]),
        ({"label": "No"}, ["/label"]),
        ({"label": {}}, ["/label"]),
        ({"range": [1, 2]}, ["/range"]),
        ({"immutable": ["Moon"]}, ["/immutable/0"]),
        ({"immutable": "Outlook"}, ["/immutable"]),
        ({"costs": {"Wind": -1}}, ["/costs/Wind"]),
        ({"costs": [1]}, ["/costs"]),
        ({"max": 0}, ["/max"]),
        ({"max": 101}, ["/max"]),
        ({"max": "3"}, ["/max"]),
        ({"most": 3}, ["/most"]),
        ({"label": "Maybe", "immutable": ["Moon"]}, ["/label", "/immutable/0"]),
    ],
)
def test_what_is_not_legal_is_refused_by_its_place(served: Served, asked: dict[str, Any], pointers: list[str]) -> None:
    refused = served.post(f"/v1/decisions/{decided(served, SUNNY)}/counterfactuals", asked)
    assert_problem(refused, 422, *pointers)


def test_a_decision_that_is_not_there_or_was_refused_has_none(served: Served) -> None:
    missing = served.post("/v1/decisions/01890000-0000-7000-8000-000000000000/counterfactuals", {})
    assert_problem(missing, 404)
    decision_id = decided(served, {"Wind": 5}, on_error="skip")
    assert "refused" in assert_problem(served.post(f"/v1/decisions/{decision_id}/counterfactuals", {}), 409)["detail"]


def test_without_its_inputs_nothing_can_be_said_of_other_values(served: Served) -> None:
    erased = decided(served, SUNNY, subject="jane")
    assert served.client.delete("/v1/decisions?subject=jane").status_code == 200
    detail = assert_problem(served.post(f"/v1/decisions/{erased}/counterfactuals", {}), 409)["detail"]
    assert "erased" in detail
    assert served.client.patch("/v1/models/tennis", json={"mask": ["Wind"]}).status_code == 200
    masked = decided(served, SUNNY)
    detail = assert_problem(served.post(f"/v1/decisions/{masked}/counterfactuals", {}), 409)["detail"]
    assert detail == f"inputs of decision {masked} are not logged (the model's mask): 'Wind'"


def test_of_a_model_tree_they_are_refused_with_what_to_do(served: Served) -> None:
    served.train(
        "slopes",
        "x,y\n" + "\n".join(f"{x},{3 * x if x < 20 else -4 * x}" for x in range(40)),
        preset="m5",
        target="y",
        task="regression",
    )
    decision_id = decided(served, {"x": 3}, "slopes")
    refused = served.post(f"/v1/decisions/{decision_id}/counterfactuals", {"range": [0, 1]})
    assert "leaf=constant" in assert_problem(refused, 422)["detail"]


# Consultations


def test_it_asks_for_what_is_needed_until_the_answer_is_settled(served: Served) -> None:
    first = consulted(served, {})
    assert (first["settled"], first["next"]["attribute"], first["next"]["cost"]) == (False, "Outlook", 1.0)
    assert first["possible"] == [{"label": "No", "weight": 5.0}, {"label": "Yes", "weight": 9.0}]
    second = consulted(served, {"Outlook": "Sunny"})
    assert second["next"]["attribute"] == "Humidity"
    last = consulted(served, {"Outlook": "Sunny", "Humidity": "High"})
    assert (last["settled"], last["label"], last["answer"]["support"]) == (True, "No", 3.0)
    assert "next" not in last
    assert last["cost"] == {"total": 2.0, "attributes": {"Outlook": 1.0, "Humidity": 1.0}}


def test_that_a_value_is_not_known_is_a_reply(served: Served) -> None:
    assert consulted(served, {"Outlook": None}, missing="fractional")["next"]["attribute"] in {"Humidity", "Wind"}
    stopped = consulted(served, {"Outlook": None}, missing="last_prediction")
    assert (stopped["settled"], stopped["label"]) == (True, "Yes")


def test_of_a_regression_it_says_the_range(served: Served) -> None:
    assert consulted(served, {}, "hours")["range"][0] >= 10
    assert consulted(served, {"size": 2}, "hours")["settled"]


def test_the_alias_chooses_the_version(served: Served) -> None:
    served.train("tennis", preset="c45")
    assert consulted(served, {})["version"] == 2
    assert served.client.put("/v1/models/tennis/aliases/first", json={"version": 1}).status_code in (200, 201)
    response = served.post("/v1/models/tennis/consultations?alias=first", {})
    assert response.get_json()["version"] == 1
    assert_problem(served.post("/v1/models/tennis/consultations?alias=none", {}), 404)
    assert_problem(served.post("/v1/models/tennis/consultations?alias=-", {}), 422, "/alias")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"known": {"Moon": 1, "Wind": 5}}, ["/known/Moon", "/known/Wind"]),
        ({"known": []}, ["/known"]),
        ({"missing": "somehow"}, ["/missing"]),
        ({"missing": []}, ["/missing"]),
        ({"rows": []}, ["/rows"]),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(served: Served, body: dict[str, Any], pointers: list[str]) -> None:
    assert_problem(served.post("/v1/models/tennis/consultations", body), 422, *pointers)
