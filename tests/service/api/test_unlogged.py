"""ESPALIER_DECISIONS: answers that do not wait until they are logged, and answers that are not logged at all."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine

from service.errors import Unavailable
from service.repositories import decision_log
from service.settings import Settings
from tests.service.served import Served, serving
from tests.service.waiting import until

ROW = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak", "Temperature": "Hot"}
LINES = "Outlook,Humidity,Wind,Temperature\nSunny,High,Weak,Hot\nRain,High,Weak,Hot\n"
TENSORS = [{"name": name, "shape": [1], "datatype": "BYTES", "data": [cell]} for name, cell in ROW.items()]


@contextmanager
def unlogged(settings: Settings, mode: str) -> Iterator[Served]:
    with serving(settings, decisions=mode) as served:
        served.train("play")
        yield served


def logged(served: Served) -> list[dict[str, Any]]:
    return list(served.client.get("/v1/decisions").get_json()["items"])


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [one["decision_id"] for one in answer["predictions"]]


def test_a_durable_answer_says_nothing_of_it(settings: Settings) -> None:
    with unlogged(settings, "durable") as served:
        assert "audited" not in served.predict("play", {"rows": [ROW]})
        assert len(logged(served)) == 1


def test_best_effort_answers_say_so_and_are_logged_behind(settings: Settings) -> None:
    with unlogged(settings, "best_effort") as served:
        answers = [served.predict("play", {"rows": [ROW] * n}) for n in (1, 2)]
        assert served.post("/v1/models/play/predict", {"rows": [{"Outlook": 5}]}).status_code == 422
        inferred = served.post("/v2/models/play/infer", {"inputs": TENSORS}).get_json()
        served.service.log.close()

        assert [answer["audited"] for answer in answers] == [False, False]
        assert inferred["parameters"] == {"audited": False}
        found = logged(served)
        assert len(found) == 5
        assert {key for answer in answers for key in ids_of(answer)} < {one["id"] for one in found}
        shown = served.client.get(f"/v1/decisions/{ids_of(answers[0])[0]}/explanation").get_json()
        assert shown["verified"] is True


def test_while_the_database_is_away_best_effort_answers_and_logs_later(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back, was_refused, insert = threading.Event(), threading.Event(), decision_log.insert_records

    def refused(engine: Engine, take: Callable[[], Sequence[dict[str, Any]]]) -> None:
        if not is_back.is_set():
            was_refused.set()
            raise Unavailable("the database is away")
        insert(engine, take)

    monkeypatch.setattr(decision_log, "insert_records", refused)
    monkeypatch.setattr(decision_log, "PAUSE_SECONDS", 0.0)
    with unlogged(settings, "best_effort") as served:
        served.predict("play", {"rows": [ROW]})
        assert was_refused.wait(60)
        assert logged(served) == []
        is_back.set()
        served.service.log.close()
        assert len(logged(served)) == 1


def test_what_is_too_much_to_wait_is_dropped_and_counted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "MAX_SUBMITTED", 2)
    monkeypatch.setattr(decision_log.DecisionLog, "_commit_submitted", lambda _: None)  # nobody writes
    with unlogged(settings, "best_effort") as served:
        for _ in range(5):
            served.predict("play", {"rows": [ROW]})
        assert served.service.log.n_lost == 3
        assert b"espalier_decisions_lost_total 3.0" in served.service.metrics.text(None)


def test_rows_that_wait_are_limited_not_requests(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_log, "MAX_SUBMITTED", 4)
    commit, is_allowed = decision_log.DecisionLog._commit_submitted, threading.Event()
    monkeypatch.setattr(decision_log.DecisionLog, "_commit_submitted", lambda log: is_allowed.wait() and commit(log))
    with unlogged(settings, "best_effort") as served:
        for n_lost in (0, 0, 1, 2):  # 3 rows wait, 6 rows wait
            served.predict("play", {"rows": [ROW] * 3})
            assert served.service.log.n_lost == n_lost
        is_allowed.set()
        until(lambda: len(logged(served)) == 6, what="that the records are committed")
        served.predict("play", {"rows": [ROW] * 3})
        served.service.log.close()
        assert (served.service.log.n_lost, len(logged(served))) == (2, 9)


def test_off_logs_nothing_by_no_way_in(settings: Settings) -> None:
    with unlogged(settings, "off") as served:
        answer = served.predict("play", {"rows": [ROW, ROW]})
        assert (ids_of(answer), answer["audited"]) == ([None, None], False)
        assert served.post("/v1/models/play/predict", {"rows": [{"Outlook": 5}]}).status_code == 422
        inferred = served.post("/v2/models/play/infer", {"inputs": TENSORS}).get_json()
        assert {one["name"]: one["data"] for one in inferred["outputs"]}["decision_id"] == [""]
        path = "/v1/models/play/predict"
        csv = served.client.post(path, data=LINES, content_type="text/csv")
        rows = "".join(json.dumps(row) + "\n" for row in (ROW, ROW))
        lines = served.client.post(path, data=rows, content_type="application/x-ndjson")

        assert csv.headers["Espalier-Audited"] == lines.headers["Espalier-Audited"] == "false"
        assert [line.split(",")[:2] for line in csv.text.splitlines()[1:]] == [["0", ""], ["1", ""]]
        assert [json.loads(line)["decision_id"] for line in lines.text.splitlines()] == [None, None]
        assert logged(served) == []


def test_the_openapi_document_has_the_parameters_of_an_inference_answer(settings: Settings) -> None:
    with unlogged(settings, "best_effort") as served:
        inferred = served.post("/v2/models/play/infer", {"inputs": TENSORS}).get_json()
        described = served.client.get("/openapi.json").get_json()["components"]["schemas"]["InferenceAnswer"]
        assert described["additionalProperties"] is False
        assert inferred.keys() <= described["properties"].keys()
