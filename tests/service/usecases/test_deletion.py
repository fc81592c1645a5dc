"""Erased, archived, deleted: what goes, what stays, and what refuses to go."""

from collections.abc import Iterator
from typing import Any

import pytest

from service.database.engine import read_session, transaction
from service.repositories.models import add_version, find_version
from service.settings import Settings
from service.usecases import decisions as usecases
from tests.service.api.test_masks import all_that_is_stored, decision, explained
from tests.service.kept import new_version
from tests.service.served import ON_SQLITE, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Strong"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def decide(served: Served, *rows: dict[str, Any], **more: Any) -> list[str]:
    found = served.predict("tennis", {"rows": list(rows), **more})["predictions"]
    return [one["decision_id"] for one in found]


def erased(served: Served, subject: str) -> tuple[int, int]:
    response = served.client.delete("/v1/decisions", query_string={"subject": subject})
    assert response.status_code == 200, response.text
    found = response.get_json()
    return found["n_records"], found["n_decisions"]


# Erasure


def test_a_persons_inputs_are_erased_and_the_records_stay(served: Served) -> None:
    [single] = decide(served, SUNNY, subject="Ada")
    many = decide(served, SUNNY, {"Outlook": "Overcast"}, subject="Ada")
    [other] = decide(served, SUNNY, subject="Grace")
    before = {one: decision(served, one) for one in (single, *many)}

    assert erased(served, "Ada") == (2, 3)

    for one, was in before.items():
        now = decision(served, one)
        assert (now["input"], was["erased"]) == ({}, None)
        assert now["erased"] is not None
        assert {**now, "input": was["input"], "erased": None} == was
        found = explained(served, one)
        assert (found["verified"], found["erased"]) == (None, ["Outlook", "Temperature", "Humidity", "Wind"])
        assert "erased on" in found["reason"]
        assert found["explanation"]["nodes"] == was["nodes"]
    assert decision(served, other)["input"] == SUNNY
    assert explained(served, other)["verified"] is True
    assert [one["id"] for one in served.client.get("/v1/decisions?subject=Ada").get_json()["items"]] == [*many, single]


def test_asked_again_only_what_has_come_since_is_erased(served: Served) -> None:
    [first] = decide(served, SUNNY, subject="Ada")
    assert erased(served, "Ada") == (1, 1)
    when = decision(served, first)["erased"]
    decide(served, SUNNY, subject="Ada")
    assert erased(served, "Ada") == (1, 1)
    assert erased(served, "Ada") == (0, 0)
    assert decision(served, first)["erased"] == when


@pytest.mark.parametrize("content_type", ["text/csv", "application/x-ndjson"])
def test_what_came_in_a_stream_is_erased_too(served: Served, content_type: str) -> None:
    body = {
        "text/csv": "Outlook,Humidity\nSunny,High\nFog,\nOvercast,High\n",
        "application/x-ndjson": '{"Outlook":"Sunny","Humidity":"High"}\n{"Outlook":"Fog"}\n{"Outlook":"Overcast"}\n',
    }[content_type]
    path = "/v1/models/tennis/predict?subject=Ada"
    assert served.client.post(path, data=body, content_type=content_type).status_code == 200
    ids = [one["id"] for one in served.client.get("/v1/decisions?subject=Ada").get_json()["items"]]
    before = [decision(served, one)["answer"] for one in ids]
    assert b"Fog" in all_that_is_stored(served)
    assert erased(served, "Ada") == (1, 3)
    assert [decision(served, one)["answer"] for one in ids] == before  # labels, leaves, what was missing or unseen
    assert [decision(served, one)["input"] for one in ids] == [{}, {}, {}]
    assert b"Fog" not in all_that_is_stored(served)


def test_of_a_refused_row_the_names_that_the_caller_gave_are_erased_too(served: Served) -> None:
    [one] = decide(served, {"Adas disease": "flu", "Wind": 5}, subject="Ada", on_error="skip")
    assert "Adas disease" in str(decision(served, one))
    assert erased(served, "Ada") == (1, 1)
    shown = decision(served, one)
    assert "Adas disease" not in str(shown)
    assert sorted(fault["code"] for fault in shown["answer"]["errors"]) == ["unknown_attribute", "wrong_type"]


def test_more_records_than_go_at_once_are_erased_all(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usecases, "RECORDS_AT_ONCE", 2)
    for n_records in (4, 5):
        for _ in range(n_records):
            decide(served, SUNNY, subject="Ada")
        assert erased(served, "Ada") == (n_records, n_records)


@ON_SQLITE
def test_what_was_erased_is_in_no_file_of_the_database(served: Served) -> None:
    assert served.settings.database_file is not None
    folder = served.settings.database_file.parent
    decide(served, *[{"Outlook": "Adas secret"}] * 300, subject="Ada")
    decide(served, {"Outlook": "Adas secret"}, subject="Ada")
    assert erased(served, "Ada") == (2, 301)
    assert [file.name for file in folder.glob("espalier.db*") if b"Adas secret" in file.read_bytes()] == []


@ON_SQLITE
def test_while_an_older_state_is_read_the_files_keep_what_was_erased_until_the_request_is_repeated(
    served: Served,
) -> None:
    assert served.settings.database_file is not None
    log = served.settings.database_file.with_name("espalier.db-wal")
    decide(served, {"Outlook": "Adas secret"}, subject="Ada")
    with read_session(served.service.sessions) as session:
        find_version(session, "tennis", 1)
        assert erased(served, "Ada") == (1, 1)
        assert b"Adas secret" in log.read_bytes()
    assert erased(served, "Ada") == (0, 0)
    assert log.stat().st_size == 0


@pytest.mark.parametrize("query", ["", "?subject=", "?subject=a%00b", f"?subject={'x' * 201}"])
def test_nobody_in_particular_cannot_be_erased(served: Served, query: str) -> None:
    assert_problem(served.client.delete(f"/v1/decisions{query}"), 422, "/subject")


# Archives


def archive(served: Served, number: int = 1) -> Any:
    return served.client.post(f"/v1/models/tennis/versions/{number}/archive")


def test_an_archived_version_answers_no_more_and_still_explains(served: Served) -> None:
    served.train("tennis", preset="c45")
    [one] = [
        found["decision_id"]
        for found in served.post("/v1/models/tennis/versions/2/predict", {"rows": [SUNNY]}).get_json()["predictions"]
    ]
    assert served.client.get("/v1/models/tennis/versions/2").get_json()["archived"] is None
    shown = archive(served, 2)
    assert shown.status_code == 200
    assert shown.get_json()["archived"] is not None
    assert (
        archive(served, 2).get_json()
        == shown.get_json()
        == served.client.get("/v1/models/tennis/versions/2").get_json()
    )

    for path in ("/v1/models/tennis/versions/2/predict", "/v1/models/tennis/versions/2/predict?explain=none"):
        for content, kind in ((b'{"rows": [{}]}', "application/json"), (b"Wind\nWeak\n", "text/csv")):
            if "?" not in path or kind == "text/csv":
                response = served.client.post(path, data=content, content_type=kind)
                assert "archived" in assert_problem(response, 409)["detail"]
    assert explained(served, one)["verified"] is True
    assert served.client.get("/v1/models/tennis/versions/2/tree").status_code == 200
    assert served.predict("tennis", {"rows": [SUNNY]})["version"] == 1  # the newest one that answers


def test_where_all_versions_are_archived_nothing_answers(served: Served) -> None:
    assert archive(served).status_code == 200
    refused = assert_problem(served.post("/v1/models/tennis/predict", {"rows": [SUNNY]}), 409)
    assert "all versions" in refused["detail"]


def test_the_inference_protocol_knows_archived_versions_as_not_ready(served: Served) -> None:
    served.train("tennis")
    archive(served, 2)
    for path in ("", "/ready"):
        assert_problem(served.client.get(f"/v2/models/tennis/versions/2{path}"), 409)
    assert served.client.get("/v2/models/tennis").get_json()["versions"] == ["1"]
    asked = {"inputs": [{"name": "Wind", "shape": [1], "datatype": "BYTES", "data": ["Weak"]}]}
    assert_problem(served.post("/v2/models/tennis/versions/2/infer", asked), 409)
    index = served.post("/v2/repository/index", {}).get_json()
    assert [(one["version"], one["state"], one["reason"]) for one in index] == [
        ("2", "UNAVAILABLE", "archived"),
        ("1", "READY", ""),
    ]
    assert [one["version"] for one in served.post("/v2/repository/index", {"ready": True}).get_json()] == ["1"]


def test_an_archived_version_takes_no_prediction_job_but_can_be_pruned(served: Served) -> None:
    data = served.train("tennis")
    archive(served, 1)
    asked = {"model": "tennis", "dataset": data}
    assert_problem(served.post("/v1/prediction-jobs", {**asked, "version": 1}), 422, "/version")
    assert served.post("/v1/prediction-jobs", asked).status_code == 202
    archive(served, 2)
    assert_problem(served.post("/v1/prediction-jobs", asked), 409)
    pruning = {"model": "tennis", "version": 1, "method": "pessimistic"}
    assert served.post("/v1/pruning-jobs", pruning).status_code == 202


def test_an_alias_and_an_archive_exclude_each_other(served: Served) -> None:
    served.train("tennis")
    alias = "/v1/models/tennis/aliases/production"
    for version in (1, 2):
        assert served.client.put(alias, json={"version": version}).status_code == 200
    assert "production" in assert_problem(archive(served, 2), 409)["detail"]
    assert archive(served, 1).status_code == 200
    assert_problem(served.client.put(alias, json={"version": 1}), 409)
    assert_problem(served.client.post(f"{alias}/rollback"), 409)
    assert served.predict("tennis", {"rows": [SUNNY]})["version"] == 2


def test_what_is_not_there_cannot_be_archived(served: Served) -> None:
    assert_problem(archive(served, 9), 404)
    assert_problem(served.client.post("/v1/models/other/versions/1/archive"), 404)


# Deleting


def remove(served: Served, path: str = "/v1/models/tennis/versions/1") -> Any:
    return served.client.delete(path)


def test_a_version_that_nothing_refers_to_is_deleted_and_its_number_not_given_again(served: Served) -> None:
    served.train("tennis")
    assert remove(served, "/v1/models/tennis/versions/2").status_code == 204
    assert_problem(served.client.get("/v1/models/tennis/versions/2"), 404)
    assert_problem(remove(served, "/v1/models/tennis/versions/2"), 404)
    assert_problem(served.post("/v1/models/tennis/versions/2/predict", {"rows": [SUNNY]}), 404)
    served.train("tennis")
    assert served.predict("tennis", {"rows": [SUNNY]})["version"] == 3


def test_a_version_with_decisions_is_not_deleted(served: Served) -> None:
    [one] = decide(served, SUNNY)
    assert "archive it instead" in assert_problem(remove(served), 409)["detail"]
    assert "archive its versions" in assert_problem(remove(served, "/v1/models/tennis"), 409)["detail"]
    assert explained(served, one)["verified"] is True


def test_a_version_that_an_alias_points_at_or_did_is_not_deleted(served: Served) -> None:
    served.train("tennis")
    for version in (1, 2):
        served.client.put("/v1/models/tennis/aliases/best", json={"version": version})
    for version in (1, 2):
        response = remove(served, f"/v1/models/tennis/versions/{version}")
        assert "alias 'best'" in assert_problem(response, 409)["detail"]


def test_a_version_that_another_was_pruned_from_is_not_deleted(served: Served) -> None:
    with read_session(served.service.sessions) as session:
        parent = find_version(session, "tennis", 1).id
    with transaction(served.service.sessions) as session:
        add_version(session, new_version("tennis", parent_id=parent))
    assert "version 2" in assert_problem(remove(served), 409)["detail"]
    assert remove(served, "/v1/models/tennis/versions/2").status_code == 204
    assert remove(served).status_code == 204


def test_a_version_that_an_unfinished_job_uses_is_not_deleted(served: Served) -> None:
    data = served.train("tennis")
    job = served.post("/v1/prediction-jobs", {"model": "tennis", "version": 1, "dataset": data}).get_json()["id"]
    assert job in assert_problem(remove(served), 409)["detail"]
    assert job in assert_problem(remove(served, "/v1/models/tennis"), 409)["detail"]
    assert remove(served, "/v1/models/tennis/versions/2").status_code == 204
    assert served.client.post(f"/v1/jobs/{job}/cancel").status_code == 202
    assert remove(served).status_code == 204


def test_a_model_goes_with_its_versions_and_aliases(served: Served) -> None:
    served.train("tennis")
    served.client.put("/v1/models/tennis/aliases/production", json={"version": 2})
    assert served.client.get("/v1/models/tennis/aliases").get_json()["items"] != []
    assert remove(served, "/v1/models/tennis").status_code == 204
    for path in ("/v1/models/tennis", "/v1/models/tennis/versions", "/v1/models/tennis/versions/1"):
        assert_problem(served.client.get(path), 404)
    assert_problem(remove(served, "/v1/models/tennis"), 404)
    assert_problem(served.post("/v1/models/tennis/predict", {"rows": [SUNNY]}), 404)
    served.train("tennis")
    assert served.predict("tennis", {"rows": [SUNNY]})["version"] == 1


def test_a_model_without_versions_answers_not_found(served: Served) -> None:
    assert remove(served).status_code == 204
    assert served.client.get("/v1/models/tennis").status_code == 200
    refused = assert_problem(served.post("/v1/models/tennis/predict", {"rows": [SUNNY]}), 404)
    assert refused["detail"] == "there is no version of model 'tennis'"
