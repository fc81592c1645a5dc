"""What is said of a model, and inputs that are not logged: by every way in that there is."""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy

import espalier
from service.database.engine import read_session, transaction
from service.database.tables import DecisionRecord, Kind
from service.repositories import decisions, job_queue
from service.serialization.table_records import read_record
from service.settings import Settings
from service.usecases.models import MAX_VERSIONS_READ
from service.worker import handlers
from tests.service.served import HOURS, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Strong"}
DAYS = "Outlook,Humidity,Wind\nSunny,High,Strong\nOvercast,,Weak\n"


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def change(served: Served, **changes: Any) -> dict[str, Any]:
    response = served.client.patch("/v1/models/tennis", json=changes)
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.get_json()
    assert served.client.get("/v1/models/tennis").get_json() == shown
    return shown


def decision(served: Served, decision_id: str) -> dict[str, Any]:
    response = served.client.get(f"/v1/decisions/{decision_id}")
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.get_json()
    return shown


def explained(served: Served, decision_id: str) -> dict[str, Any]:
    response = served.client.get(f"/v1/decisions/{decision_id}/explanation")
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.get_json()
    return shown


def all_that_is_stored(served: Served) -> bytes:
    """Every record of the log as bytes, what is packed unpacked."""
    with read_session(served.service.sessions) as session:
        records = session.scalars(sqlalchemy.select(DecisionRecord)).all()
        found = b""
        for record in records:
            found += repr((record.inputs, record.answers)).encode()
            if record.packed is not None:
                rows = read_record(record.packed)
                found += repr([rows.row(place) for place in range(rows.n_rows)]).encode() + record.packed
        return found


# What is said


def test_what_is_said_of_a_model_is_changed_field_by_field(served: Served) -> None:
    plain = served.client.get("/v1/models/tennis").get_json()
    assert (plain["description"], plain["tags"], plain["mask"], plain["retention_days"]) == (None, [], [], None)
    said = {"description": "plays?\n🎾", "tags": ["sport", "007"], "mask": ["Humidity"], "retention_days": 30}
    assert change(served, **said) == {**plain, **said}
    assert change(served, tags=["weather"]) == {**plain, **said, "tags": ["weather"]}
    assert change(served) == {**plain, **said, "tags": ["weather"]}
    assert change(served, description=None, tags=[], mask=None, retention_days=None) == plain


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"description": 5}, ["/description"]),
        ({"description": "a\0b"}, ["/description"]),
        ({"description": "x" * 10_001}, ["/description"]),
        ({"tags": "sport"}, ["/tags"]),
        ({"tags": ["", "x" * 65, "a\nb", "a", "a"]}, ["/tags/0", "/tags/1", "/tags/2", "/tags/4"]),
        ({"tags": [str(number) for number in range(51)]}, ["/tags"]),
        ({"tags": [None] * 51, "mask": [None] * 100_001}, ["/tags", "/mask"]),
        ({"mask": ["Humidity", "humidity", "PlayTennis", "Humidity"]}, ["/mask/3", "/mask/1", "/mask/2"]),
        ({"mask": [None]}, ["/mask/0"]),
        ({"retention_days": 0}, ["/retention_days"]),
        ({"retention_days": 1.5}, ["/retention_days"]),
        ({"retention_days": 36_501}, ["/retention_days"]),
        ({"retention_days": "7"}, ["/retention_days"]),
        ({"name": "other"}, ["/name"]),
        ([], [""]),
    ],
)
def test_what_cannot_be_said_is_refused_by_its_place_and_nothing_is_changed(
    served: Served, changes: Any, pointers: list[str]
) -> None:
    before = served.client.get("/v1/models/tennis").get_json()
    assert_problem(served.client.patch("/v1/models/tennis", json=changes), 422, *pointers)
    assert served.client.get("/v1/models/tennis").get_json() == before


def test_nothing_can_be_said_of_a_model_that_is_not_there(served: Served) -> None:
    assert_problem(served.client.patch("/v1/models/other", json={"tags": ["a"]}), 404)


def test_an_attribute_of_an_older_version_can_be_masked_too(served: Served) -> None:
    served.train("tennis", HOURS, preset="cart", target="hours", task="regression")
    assert change(served, mask=["size", "Humidity"])["mask"] == ["size", "Humidity"]


def test_a_mask_keeps_its_attributes_when_newer_versions_lack_them(served: Served) -> None:
    change(served, mask=["Humidity"])
    hours = espalier.train(espalier.dataset_from_csv(HOURS, target="hours", task="regression"), "cart")
    for _ in range(MAX_VERSIONS_READ):
        served.keep("tennis", hours)
    assert change(served, mask=["size", "Humidity"])["mask"] == ["size", "Humidity"]
    assert_problem(served.client.patch("/v1/models/tennis", json={"mask": ["Humidity", "Wind"]}), 422, "/mask/1")


# Masks


def test_a_masked_input_is_not_logged_and_its_explanation_says_so(served: Served) -> None:
    change(served, mask=["Humidity"])
    answer = served.predict("tennis", {"rows": [SUNNY], "subject": "Ada"})["predictions"][0]
    assert [step["attribute"] for step in answer["path"]] == ["Outlook", "Humidity"]

    shown = decision(served, answer["decision_id"])
    assert shown["input"] == {"Outlook": "Sunny", "Wind": "Strong"}
    assert (shown["masked"], shown["erased"], shown["subject"]) == (["Humidity"], None, "Ada")
    found = explained(served, answer["decision_id"])
    assert (found["verified"], found["erased"]) == (None, ["Humidity"])
    assert "mask" in found["reason"]
    assert found["explanation"] == {**shown["answer"], "nodes": shown["nodes"]}
    assert [*[step["node"] for step in answer["path"]], answer["leaf"]] == found["explanation"]["nodes"]


def test_the_text_and_the_picture_of_a_masked_decision_show_its_way_without_values(served: Served) -> None:
    change(served, mask=["Humidity"])
    answer = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]
    path = f"/v1/decisions/{answer['decision_id']}/explanation?format="
    text = served.client.get(path + "text").text
    assert "cannot be verified: some inputs are not logged" in text
    nodes = [*[step["node"] for step in answer["path"]], answer["leaf"]]
    assert text.endswith("".join(f"  node {node}\n" for node in nodes) + "answer: No\nerased: 'Humidity'\n")
    svg = served.client.get(path + "svg")
    assert svg.content_type.startswith("image/svg+xml")
    assert f"nodes {', '.join(map(str, nodes))}" in svg.text


def test_a_mask_of_attributes_that_a_version_does_not_have_changes_nothing_there(served: Served) -> None:
    served.train("tennis", HOURS, preset="cart", target="hours", task="regression")
    change(served, mask=["size"])
    answer = served.post("/v1/models/tennis/versions/1/predict", {"rows": [SUNNY]}).get_json()["predictions"][0]
    assert decision(served, answer["decision_id"])["masked"] == []
    assert explained(served, answer["decision_id"])["verified"] is True


def test_a_decision_made_before_the_mask_stays_as_it_was(served: Served) -> None:
    answer = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]
    change(served, mask=["Humidity"])
    assert decision(served, answer["decision_id"])["input"] == SUNNY
    found = explained(served, answer["decision_id"])
    assert (found["verified"], found["reason"], found["erased"]) == (True, None, [])


def test_a_decision_made_behind_a_mask_stays_masked_without_it(served: Served) -> None:
    change(served, mask=["Humidity"])
    answer = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]
    change(served, mask=[])
    assert explained(served, answer["decision_id"])["verified"] is None


def ask_json(served: Served) -> list[str]:
    rows = [SUNNY, {"Outlook": "Overcast", "Wind": "Weak"}, {"Humidity": 5, "Wind": "Weak"}]
    found = served.predict("tennis", {"rows": rows, "on_error": "skip"})["predictions"]
    return [one["decision_id"] for one in found]


def ask_csv(served: Served) -> list[str]:
    response = served.client.post("/v1/models/tennis/predict", data=DAYS, content_type="text/csv")
    return [line.split(",")[1] for line in response.text.splitlines()[1:]]


def ask_json_lines(served: Served) -> list[str]:
    lines = '{"Outlook":"Sunny","Humidity":"High"}\n{"Wind":"Weak","Humidity":7}\n'
    path = "/v1/models/tennis/predict?on_error=skip"
    response = served.client.post(path, data=lines, content_type="application/x-ndjson")
    return [line.split('"')[5] for line in response.text.splitlines()]


def ask_inference(served: Served) -> list[str]:
    inputs = [
        {"name": "Outlook", "shape": [2], "datatype": "BYTES", "data": ["Sunny", "Overcast"]},
        {"name": "Humidity", "shape": [2], "datatype": "BYTES", "data": ["High", "High"]},
    ]
    outputs = [{"name": "decision_id"}]
    response = served.post("/v2/models/tennis/versions/1/infer", {"inputs": inputs, "outputs": outputs})
    found: list[str] = response.get_json()["outputs"][0]["data"]
    return found


def ask_job(served: Served) -> list[str]:
    source = served.service.sessions
    data = served.upload(DAYS)["id"]
    job_id = served.post("/v1/prediction-jobs", {"model": "tennis", "dataset": data}).get_json()["id"]
    with transaction(source) as session:
        claim = job_queue.claim(session, worker="here", lease_seconds=60)
    assert claim is not None
    assert claim.job_id == job_id
    kept: list[handlers.ResultChunk] = []
    context = handlers.JobContext(source, espalier.Progress(), job_id, kept.append, Settings())
    done = handlers.perform(context, Kind.PREDICT, claim.payload)
    assert isinstance(done, dict)
    [part] = kept
    with transaction(source) as session:
        decisions.add(session, part.record)
        job_queue.finish(session, claim, result=done)
    result = served.client.get(f"/v1/jobs/{job_id}/result?format=csv").text
    assert len(result.splitlines()) == 1 + part.record["n_rows"]  # the answers are kept, whatever is of the inputs
    return decisions.decision_ids(part.record["id"], part.record["n_rows"])


WAYS = {"json": ask_json, "csv": ask_csv, "lines": ask_json_lines, "inference": ask_inference, "job": ask_job}


@pytest.mark.parametrize("way", WAYS)
def test_a_masked_input_is_not_logged_whatever_way_it_comes_by(served: Served, way: str) -> None:
    change(served, mask=["Humidity"])
    ids = WAYS[way](served)
    assert len(ids) >= 2
    for decision_id in ids:
        shown = decision(served, decision_id)
        assert "Humidity" not in shown["input"]
        assert shown["masked"] == ["Humidity"]
    assert explained(served, ids[0])["erased"] == ["Humidity"]
    assert b"High'" not in all_that_is_stored(served)


@pytest.mark.parametrize("way", WAYS)
def test_without_a_mask_the_same_ways_log_every_input_and_verify(served: Served, way: str) -> None:
    ids = WAYS[way](served)
    assert decision(served, ids[0])["input"]["Humidity"] == "High"
    assert explained(served, ids[0])["verified"] is True


def test_a_regression_behind_a_mask_keeps_its_answer(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours", task="regression")
    assert served.client.patch("/v1/models/hours", json={"mask": ["size"]}).status_code == 200
    answer = served.predict("hours", {"rows": [{"size": 11}]})["predictions"][0]
    found = explained(served, answer["decision_id"])
    assert found["explanation"]["value"] == answer["value"]
    for form in ("text", "svg"):
        response = served.client.get(f"/v1/decisions/{answer['decision_id']}/explanation?format={form}")
        assert response.status_code == 200
