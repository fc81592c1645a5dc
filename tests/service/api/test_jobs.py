"""Jobs over HTTP: listed, cancelled, tried again, waited for."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import event, text

from service.database.engine import read_session, transaction
from service.errors import ValidationFailed
from service.repositories import job_queue
from service.settings import Settings
from service.usecases.batch_prediction import plan_prediction
from service.usecases.jobs import JobRequest, queue_job
from service.usecases.pruning import plan_pruning
from service.usecases.training import plan_training
from tests.service.served import HOURS, UNKNOWN, Served, assert_problem, request_training, serving
from tests.service.waiting import until


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, web_threads=8) as one:
        yield one


def test_jobs_are_listed_by_state_kind_and_model(served: Served, tennis: str) -> None:
    first, second = request_training(served, tennis), request_training(served, tennis)
    served.client.post(f"/v1/jobs/{first}/cancel")
    found = served.client.get("/v1/jobs?state=cancelled&kind=train&model=tennis").get_json()["items"]
    assert [job["id"] for job in found] == [first]
    assert [job["id"] for job in served.client.get("/v1/jobs").get_json()["items"]] == [second, first]
    assert_problem(served.client.get("/v1/jobs?state=lost&kind=paint"), 422, "/state", "/kind")


def test_a_queued_job_is_cancelled_at_once_and_can_be_tried_again(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    assert served.client.post(f"/v1/jobs/{job}/cancel").get_json()["state"] == "cancelled"
    assert_problem(served.client.post(f"/v1/jobs/{job}/cancel"), 409)
    assert served.client.post(f"/v1/jobs/{job}/retry").get_json()["state"] == "queued"
    assert_problem(served.client.post(f"/v1/jobs/{job}/retry"), 409)


@pytest.mark.parametrize("changed", ["dataset", "holdout"])
def test_a_job_whose_data_is_not_what_it_was_cannot_be_tried_again(
    served: Served, tennis: str, more_tennis: str, changed: str
) -> None:
    job = request_training(served, tennis, holdout={"dataset": more_tennis})
    served.client.post(f"/v1/jobs/{job}/cancel")
    path = f"/v1/datasets/{tennis if changed == 'dataset' else more_tennis}"
    for name, status in (("Wind", 409), ("PlayTennis", 202)):  # declared anew, and as it was
        assert served.client.patch(path, json={"target": name}).status_code == 200
        response = served.client.post(f"/v1/jobs/{job}/retry")
        assert response.status_code == status, response.text
        assert status == 202 or "redeclared" in assert_problem(response, 409)["detail"]
    served.client.post(f"/v1/jobs/{job}/cancel")
    assert served.client.delete(path).status_code == 204
    assert "deleted" in assert_problem(served.client.post(f"/v1/jobs/{job}/retry"), 409)["detail"]
    assert served.client.get(f"/v1/jobs/{job}").get_json()["state"] == "cancelled"


def test_a_data_set_that_changes_between_plan_and_queue_is_refused_by_its_place(served: Served, tennis: str) -> None:
    asked = {"model": "m", "dataset": tennis, "preset": "id3", "params": {}, "holdout": None}
    with read_session(served.service.sessions) as session:
        plan = plan_training(JobRequest(session, served.service.models, asked))
    assert served.client.patch(f"/v1/datasets/{tennis}", json={"target": "Wind"}).status_code == 200
    with pytest.raises(ValidationFailed) as refused, transaction(served.service.sessions) as session:
        queue_job(session, plan, settings=served.settings)
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("/dataset", "changed_data_set")]


def on_version(served: Served, kind: str, data: str) -> str:
    """Ask for a job that works on version 1 of the model "tennis", and cancel it; give its id."""
    asked = {
        "pruning": {"model": "tennis", "version": 1, "method": "pessimistic"},
        "prediction": {"model": "tennis", "version": 1, "dataset": data},
    }[kind]
    response = served.post(f"/v1/{kind}-jobs", asked)
    assert response.status_code == 202, response.text
    job = str(response.get_json()["id"])
    assert served.client.post(f"/v1/jobs/{job}/cancel").status_code == 202
    return job


@pytest.mark.parametrize("kind", ["pruning", "prediction"])
@pytest.mark.parametrize("gone", ["models/tennis/versions/1", "models/tennis"])
def test_a_job_whose_version_was_deleted_cannot_be_tried_again(
    served: Served, more_tennis: str, kind: str, gone: str
) -> None:
    served.train("tennis")
    job = on_version(served, kind, more_tennis)
    assert served.client.delete(f"/v1/{gone}").status_code == 204
    served.train("tennis")  # another version is no substitute
    detail = assert_problem(served.client.post(f"/v1/jobs/{job}/retry"), 409)["detail"]
    assert "version 1 of model 'tennis' was deleted" in detail
    assert served.client.get(f"/v1/jobs/{job}").get_json()["state"] == "cancelled"


def test_of_an_archived_version_only_what_predicts_cannot_be_tried_again(served: Served, more_tennis: str) -> None:
    served.train("tennis")
    pruning, prediction = (on_version(served, kind, more_tennis) for kind in ("pruning", "prediction"))
    assert served.client.post("/v1/models/tennis/versions/1/archive").status_code == 200
    assert "archived" in assert_problem(served.client.post(f"/v1/jobs/{prediction}/retry"), 409)["detail"]
    assert served.client.post(f"/v1/jobs/{pruning}/retry").status_code == 202


@pytest.mark.parametrize("kind", ["pruning", "prediction"])
def test_a_version_that_goes_between_plan_and_queue_is_refused_by_its_place(
    served: Served, more_tennis: str, kind: str
) -> None:
    served.train("tennis")
    asked: dict[str, Any] = {"model": "tennis", "version": 1, "missing": None}
    asked |= {"pruning": {"method": "pessimistic", "params": {}, "holdout": None}, "prediction": {}}[kind]
    asked |= {"dataset": more_tennis, "explain": "none"} if kind == "prediction" else {}
    plans = {"pruning": plan_pruning, "prediction": plan_prediction}
    with read_session(served.service.sessions) as session:
        plan = plans[kind](JobRequest(session, served.service.models, asked))
    assert served.client.delete("/v1/models/tennis").status_code == 204
    with pytest.raises(ValidationFailed) as refused, transaction(served.service.sessions) as session:
        queue_job(session, plan, settings=served.settings)
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [("/version", "unknown_version")]


def test_who_deletes_a_model_waits_until_a_job_for_its_version_is_queued(served: Served, more_tennis: str) -> None:
    if served.service.sessions.engine.dialect.name == "sqlite":
        pytest.skip("its writers come one after the other")
    served.train("tennis")
    asked = {"model": "tennis", "version": 1, "missing": None, "dataset": more_tennis, "explain": "none"}
    with read_session(served.service.sessions) as session:
        plan = plan_prediction(JobRequest(session, served.service.models, asked))
    with ThreadPoolExecutor(1) as pool:
        with transaction(served.service.sessions) as session:
            job = queue_job(session, plan, settings=served.settings).id
            deleting = pool.submit(served.client.delete, "/v1/models/tennis")
            until(lambda: waits_for_a_lock(served), what="somebody who waits for the model")
        refused = deleting.result()
    assert job in assert_problem(refused, 409)["detail"]


def waits_for_a_lock(served: Served) -> bool:
    """Whether a statement on this PostgreSQL database waits for a row that another transaction holds."""
    look = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
    with served.service.sessions.engine.connect() as connection:
        return bool(connection.scalar(look))


def test_whoever_deletes_what_a_job_uses_is_told_that_it_is_being_cancelled(served: Served, tennis: str) -> None:
    served.train("tennis")
    job = request_training(served, tennis)
    with transaction(served.service.sessions) as session:
        assert job_queue.claim(session, worker="w", lease_seconds=60) is not None
    for said in ("cancel the job first", "is being cancelled; try again when it has ended"):
        for path in (f"datasets/{tennis}", "models/tennis"):
            detail = assert_problem(served.client.delete(f"/v1/{path}"), 409)["detail"]
            assert job in detail
            assert said in detail
        served.client.post(f"/v1/jobs/{job}/cancel")


def test_an_unfinished_job_has_no_result(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    assert "queued" in assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)["detail"]


def test_a_job_that_succeeded_has_a_result(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    finish(served, {"model": "tennis", "version": 1, "summary": {"n_leaves": 5}})
    shown = served.client.get(f"/v1/jobs/{job}/result").get_json()
    assert shown == {"model": "tennis", "version": 1, "summary": {"n_leaves": 5}}


@dataclass
class Clock:
    """A clock that goes on by a second whenever it is looked at, as if so long had been waited; then maybe does more.

    Attributes:
        now: Seconds; then: by seconds, what happens when so many have gone by.
    """

    now: int = 0
    then: dict[int, Callable[[], object]] = field(default_factory=dict)

    def monotonic(self) -> int:
        """Give the seconds as they were."""
        self.now += 1
        self.then.get(self.now, lambda: None)()
        return self.now - 1

    def sleep(self, _seconds: float) -> None:
        """Wait for nothing: time goes on when the clock is looked at."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of those who wait for a job, before they begin."""
    clock = Clock()
    monkeypatch.setattr("service.api.jobs.time", clock)
    return clock


def test_waiting_ends_when_the_job_ends(served: Served, tennis: str, clock: Clock) -> None:
    job = request_training(served, tennis)
    clock.then[4] = lambda: finish(served, {"model": "tennis", "version": 1})
    assert served.client.get(f"/v1/jobs/{job}?wait=20").get_json()["state"] == "succeeded"
    assert clock.now == 4


def test_waiting_ends_when_the_seconds_are_over(served: Served, tennis: str, clock: Clock) -> None:
    job = request_training(served, tennis)
    assert served.client.get(f"/v1/jobs/{job}?wait=3").get_json()["state"] == "queued"
    assert clock.now == 4  # from 0 to 3


@pytest.mark.parametrize("path", ["?wait=3", "/events"])
def test_whoever_watches_a_job_does_not_read_what_was_requested(
    served: Served, tennis: str, clock: Clock, path: str
) -> None:
    job = request_training(served, tennis)  # a holdout may list a million rows
    statements: list[str] = []

    def note(*args: Any) -> None:
        statements.append(args[2])

    event.listen(served.service.sessions.engine, "before_cursor_execute", note)
    assert served.client.get(f"/v1/jobs/{job}{path}").status_code == 200
    event.remove(served.service.sessions.engine, "before_cursor_execute", note)
    read = [statement for statement in statements if "FROM jobs" in statement]
    assert read
    assert not [statement for statement in read if "payload" in statement]


def test_beyond_a_quarter_of_the_threads_nobody_waits(served: Served, tennis: str, clock: Clock) -> None:
    job = request_training(served, tennis)
    held = [served.service.waiting.acquire(blocking=False) for _ in range(3)]
    assert served.client.get(f"/v1/jobs/{job}?wait=20").get_json()["state"] == "queued"
    assert held == [True, True, False]  # a quarter of 8 threads
    assert clock.now <= 1


def test_nobody_waits_in_a_process_that_stops(served: Served, tennis: str, clock: Clock) -> None:
    job = request_training(served, tennis)
    served.service.is_stopping = lambda: True
    assert served.client.get(f"/v1/jobs/{job}?wait=20").status_code == 200
    assert clock.now <= 2


@pytest.mark.parametrize("wait", ["21", "-1", "long"])
def test_a_wait_outside_0_to_20_seconds_is_refused(served: Served, tennis: str, wait: str) -> None:
    job = request_training(served, tennis)
    assert_problem(served.client.get(f"/v1/jobs/{job}?wait={wait}"), 422, "/wait")


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/result"), ("POST", "/cancel"), ("POST", "/retry")])
def test_an_unknown_job_is_not_found(served: Served, method: str, path: str) -> None:
    assert_problem(served.client.open(f"/v1/jobs/{UNKNOWN}{path}", method=method), 404)


def finish(served: Served, result: dict[str, object]) -> None:
    """Do what a worker does when a job has succeeded."""
    with transaction(served.service.sessions) as session:
        claim = job_queue.claim(session, worker="test", lease_seconds=60)
        assert claim is not None
        job_queue.finish(session, claim, result=result)


def test_a_malformed_version_is_not_read_as_the_version_of_production(served: Served) -> None:
    served.train("tennis")
    served.client.put("/v1/models/tennis/aliases/production", json={"version": 1})
    other = served.upload(HOURS, target="hours")["id"]
    body = {"model": "tennis", "dataset": other}
    assert_problem(served.post("/v1/prediction-jobs", body), 422, "/dataset")
    assert_problem(served.post("/v1/prediction-jobs", body | {"version": "1"}), 422, "/version")
