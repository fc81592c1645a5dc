"""Two web servers and two workers are restarted one by one under load: no request fails, no job runs twice."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.acceptance.running import PATIENCE, until
from tests.acceptance.test_kill import TENNIS, noise
from tests.acceptance.topology import Process, Topology, is_ready, topology
from tests.service.conftest import empty_database

N_CLIENTS = 3
N_CONNECTING = 24
ENOUGH = 25  # answers between two restarts
BETWEEN_SECONDS = 0.02  # one request of a client and its next: what starts again needs the processors, too
ROW = {"Outlook": "Rain", "Wind": "Strong"}


@dataclass
class Seen:
    """What clients got: decisions by id, jobs by id, and whatever was no success."""

    decisions: list[str] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    folder = tmp_path_factory.mktemp("topology")
    with empty_database("postgresql", folder) as url, topology(url, folder) as one:
        yield one


def test_every_process_is_restarted_in_turn_and_no_client_sees_it(own: Topology) -> None:
    own.service.train("asked", own.service.upload(TENNIS, target="Play"))
    data = own.service.upload(noise(), target="y")
    with load(own, data) as seen:
        for place, web in enumerate(own.webs):
            pause(seen)
            own.webs[place] = restarted(own, web)
            until(lambda place=place: is_ready(own.servers[place]), what="the restarted web server")
        for place, worker in enumerate(own.workers):
            pause(seen)
            began = len(seen.jobs)
            own.workers[place] = restarted(own, worker)
            until(lambda began=began: len(seen.jobs) > began or seen.failures, what="another job")
        pause(seen)
    assert seen.failures == []
    assert len(seen.jobs) >= 2
    for job, model in seen.jobs.items():
        finished = own.service.finished({"id": job, "state": "queued"})
        # A worker that is asked to stop gives its job back unspent; one that lost it would cost an attempt.
        assert (finished["state"], finished["attempt"]) == ("succeeded", 1), finished
        assert [version["job"] for version in own.service.get(f"/v1/models/{model}/versions")["items"]] == [job]
    assert set(seen.decisions) <= set(logged(own))


def test_a_request_that_waits_is_answered_at_the_stop_however_many_connect(own: Topology) -> None:
    """A stopping process must not wait for a lock that it holds itself, and be killed with the answer unsent."""
    for worker in own.workers:  # the job stays queued
        worker.terminate()
        assert worker.wait(timeout=PATIENCE) == 0
    data = own.service.upload(TENNIS, target="Play")
    job = own.service.post("/v1/training-jobs", {"model": "waiting", "dataset": data}, status=202)["id"]
    server, [process, _] = own.servers[0], own.webs
    over, answers = threading.Event(), []

    def connect() -> None:
        with httpx.Client(base_url=server.address, headers={"Connection": "close"}) as client:
            while not over.is_set():
                with suppress(httpx.TransportError):
                    answers.append(client.get("/healthz"))

    with ThreadPoolExecutor(N_CONNECTING + 1) as pool:
        waiting = pool.submit(server.get, f"/v1/jobs/{job}", wait=20)
        for _ in range(N_CONNECTING):
            pool.submit(connect)
        try:
            until(lambda: len(answers) > 4 * N_CONNECTING, what="answers to requests that were sent after it")
            process.terminate()
            assert waiting.result(PATIENCE)["state"] == "queued"
        finally:
            over.set()


def logged(own: Topology) -> Iterator[str]:
    """Yield the ids of all decisions in the log."""
    query: dict[str, Any] = {"limit": 200}
    while True:
        page = own.service.get("/v1/decisions", **query)
        yield from (decision["id"] for decision in page["items"])
        if page["next"] is None:
            return
        query["cursor"] = page["next"]


def restarted(own: Topology, process: Process) -> Process:
    """Ask a process to stop, see that it does so in good order, and start it again."""
    process.terminate()
    assert process.wait(timeout=PATIENCE) == 0
    return own.start(process)


def pause(seen: Seen) -> None:
    """Let the clients get some answers."""
    before = len(seen.decisions)
    until(lambda: len(seen.decisions) >= before + ENOUGH or seen.failures, what="answers")


@contextmanager
def load(own: Topology, data: str) -> Iterator[Seen]:
    """Predict with several clients, and have one job after the other run, until the block ends."""
    seen, over = Seen(), threading.Event()

    def ask(send: Callable[[Any], Any], keep: Callable[[dict[str, Any]], None], status: int) -> None:
        with own.service.client_with(own.service.key) as client:
            while not over.is_set() and not seen.failures:
                try:
                    answer = send(client)
                except Exception as error:
                    seen.failures.append(repr(error))
                    return
                if answer.status_code != status:
                    seen.failures.append(answer.text)
                    return
                keep(answer.json())
                over.wait(BETWEEN_SECONDS)

    def predict(client: Any) -> Any:
        return client.post("/v1/models/asked/predict", json={"rows": [ROW]})

    def train(client: Any) -> Any:
        body = {"model": f"long-{len(seen.jobs)}", "dataset": data}
        if seen.jobs:  # at most two are under way: what is queued must be done before the test is
            before = list(seen.jobs)[-2:][0]
            client.get(f"/v1/jobs/{before}", params={"wait": 10})
        return client.post("/v1/training-jobs", json=body)

    def keep_decision(answer: dict[str, Any]) -> None:
        seen.decisions.append(answer["predictions"][0]["decision_id"])

    def keep_job(answer: dict[str, Any]) -> None:
        seen.jobs[answer["id"]] = answer["model"]

    with ThreadPoolExecutor(N_CLIENTS + 1) as pool:
        for _ in range(N_CLIENTS):
            pool.submit(ask, predict, keep_decision, 200)
        pool.submit(ask, train, keep_job, 202)
        try:
            yield seen
        finally:
            over.set()
