"""Killed in the middle of a job and of a burst of predictions: the job finishes once, every answer is in the log."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.running import Running, held, running, until

TENNIS = "Outlook,Wind,Play\nSunny,Weak,No\nRain,Weak,Yes\nRain,Strong,No\nOvercast,Weak,Yes\n"
N_CLIENTS = 6
ENOUGH_ANSWERS = 60
BETWEEN_SECONDS = 0.02  # one request of a client and its next: what starts again needs the processors, too


def test_the_web_server_and_the_worker_are_killed_and_start_again_by_themselves(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        service.train("burst", service.upload(TENNIS, target="Play"))
        long_data = service.upload(noise(), target="y")
        with burst(service.address) as answered:
            until(lambda: len(answered) > ENOUGH_ANSWERS, what="the first answers")
            with running_job(service, long_data) as job:
                kill_group(service, "worker")
                kill_group(service, "serve")
            before = len(answered)
            until(lambda: len(answered) > before + ENOUGH_ANSWERS, what="answers after the restart")
        assert_finished_once(service, job)
        assert_all_logged(service, answered)
        reported = service.output()
        assert "the web server died (SIGKILL); it starts again" in reported
        assert "the worker died (SIGKILL); it starts again" in reported


def test_everything_is_killed_and_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        service.train("burst", service.upload(TENNIS, target="Play"))
        long_data = service.upload(noise(), target="y")
        with burst(service.address) as answered:
            until(lambda: len(answered) > ENOUGH_ANSWERS, what="the first answers")
            with running_job(service, long_data) as job:
                groups = [*service.children("serve"), *service.children("worker")]
                service.process.kill()
                for group in groups:
                    os.killpg(group, signal.SIGKILL)
                service.process.wait()
    with running(tmp_path) as again:
        assert_finished_once(again, job)
        assert_all_logged(again, answered)


@contextmanager
def running_job(service: Running, dataset: str) -> Iterator[dict[str, Any]]:
    """Give a training job that runs until the block ends."""
    [worker] = service.children("worker")
    with held(worker):
        job: dict[str, Any] = service.post("/v1/training-jobs", {"model": "long", "dataset": dataset}, status=202)
        until(lambda: service.get(f"/v1/jobs/{job['id']}")["state"] == "running", what="the beginning of the job")
        yield job


def kill_group(service: Running, command: str) -> None:
    for process in service.children(command):
        os.killpg(process, signal.SIGKILL)


def assert_finished_once(service: Running, job: dict[str, Any]) -> None:
    finished = service.finished(job)
    assert finished["state"] == "succeeded", finished
    assert finished["attempt"] > 1, "the job was over before the kill: nothing was shown"
    assert [version["job"] for version in service.get("/v1/models/long/versions")["items"]] == [job["id"]]


def assert_all_logged(service: Running, answered: list[str]) -> None:
    assert len(set(answered)) == len(answered)
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        explained = pool.map(lambda decision_id: service.get(f"/v1/decisions/{decision_id}/explanation"), answered)
        assert all(explanation["verified"] for explanation in explained)


@contextmanager
def burst(address: str) -> Iterator[list[str]]:
    """Clients that ask again and again; the decision ids of all answers that arrived whole."""
    answered: list[str] = []
    ending = threading.Event()
    threads = [threading.Thread(target=_ask, args=(address, answered.append, ending)) for _ in range(N_CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield answered
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def _ask(address: str, keep: Callable[[str], None], ending: threading.Event) -> None:
    body = {"rows": [{"Outlook": "Rain", "Wind": "Strong"}]}
    while not ending.is_set():
        try:
            with httpx.Client(base_url=address, timeout=10) as client:
                while not ending.is_set():
                    response = client.post("/v1/models/burst/predict", json=body)
                    assert response.status_code == 200, response.text
                    keep(response.json()["predictions"][0]["decision_id"])
                    ending.wait(BETWEEN_SECONDS)
        except httpx.TransportError:  # the kill; a whole answer was not received
            ending.wait(0.05)


def noise() -> str:
    """Rows whose class has nothing to do with the attributes: the tree is large, the training takes a while."""
    draw = random.Random(7)
    lines = (",".join([*(f"{draw.random():.6f}" for _ in range(6)), draw.choice("pq")]) for _ in range(2000))
    return "a,b,c,d,e,f,y\n" + "\n".join(lines) + "\n"


pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
