"""Clients who ask, train, prune, compare and cancel without pause, and remember what they were promised."""

import functools
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.acceptance.running import FINAL, Service, until
from tests.chaos.system import MINUTES, System

MODEL = "asked"
CANCELLED_SHARE = 0.2  # of the jobs
PATIENT = {429, 503}  # not now: the same request is sent again


@dataclass(slots=True)
class Promises:
    """What the service promised to clients in responses that they received completely.

    Attributes:
        jobs: Id of each accepted job, and the final state that a client saw; None before.
        cancelled: Ids of the jobs that a response called cancelled.
        decisions: Ids of the decisions.
        refused: Number of responses that asked a client to try again later.
        wrong: Unexpected responses, in words.
    """

    jobs: dict[str, str | None] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    decisions: list[str] = field(default_factory=list)
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Load:
    """Threads that are clients of a system.

    Attributes:
        system: The system that they use.
        data: Id of the data set that they train on.
        seed: Seed of the random choices; each thread has a separate generator.
        pause: Seconds between two predictions of a client.
        promises: What the service promised to them.
        stopping: Set when the clients are to stop.
    """

    system: System
    data: str
    seed: int
    pause: float = 0.0
    promises: Promises = field(default_factory=Promises)
    stopping: threading.Event = field(default_factory=threading.Event)

    def ask(self, number: int) -> None:
        """Ask for predictions: mostly one row, sometimes some; every second client keeps its connection open."""
        draw = random.Random(f"{self.seed} asks {number}")
        with httpx.Client(timeout=60, limits=httpx.Limits(max_keepalive_connections=number % 2)) as client:
            while not self.stopping.wait(self.pause):
                rows = [{name: draw.random() for name in "abcdef"} for _ in range(draw.choice((1, 1, 1, 5)))]
                path = f"/v1/models/{MODEL}/predict"
                answer = self.tell("POST", path, {"rows": rows}, insist=False, client=client)
                if answer is not None and self.expect(answer, 200):
                    self.promises.decisions += [one["decision_id"] for one in answer.json()["predictions"]]

    def work(self, number: int) -> None:
        """Ask for one job after the other, and watch each to its end; some are cancelled on the way."""
        draw = random.Random(f"{self.seed} works {number}")
        while not self.stopping.is_set():
            path, body = job_of(draw, data=self.data, model=f"made-{number}")
            answer = self.tell("POST", path, body)
            if not self.expect(answer, 202):
                return
            job = answer.json()["id"]
            self.promises.jobs[job] = None
            cancel_after = draw.uniform(0, 3) if draw.random() < CANCELLED_SHARE else None
            self.watch(job, cancel_after)

    def watch(self, job: str, cancel_after: float | None) -> None:
        """Read a job until it has ended, and note the end. After the faults it has `MINUTES` to end."""
        began = time.monotonic()
        deadline = began + MINUTES
        while not self.stopping.is_set() or time.monotonic() < deadline:
            if not self.stopping.is_set():
                deadline = time.monotonic() + MINUTES
            if cancel_after is not None and time.monotonic() > began + cancel_after:
                cancel_after = None
                answer = self.tell("POST", f"/v1/jobs/{job}/cancel", {})
                if answer.status_code != 409 and self.expect(answer, 202) and answer.json()["state"] == "cancelled":
                    self.promises.cancelled.add(job)
            answer = self.tell("GET", f"/v1/jobs/{job}")
            if not self.expect(answer, 200):
                return
            if (state := answer.json()["state"]) in FINAL:
                self.promises.jobs[job] = state
                return
            time.sleep(0.1)
        self.promises.wrong.append(f"job {job} did not end within {MINUTES:g} s")

    def tell(
        self, method: str, path: str, body: object = None, *, insist: bool = True, client: httpx.Client | None = None
    ) -> Any:
        """Send a request, and again as long as there is no response or it asks to try later.

        Args:
            method: Method of HTTP.
            path: Path of the request.
            body: Content, sent as JSON.
            insist: Whether to send the request again; if not, None is returned instead.
            client: The client whose connections are used; None: a new connection for each request.
        """
        request = functools.partial(httpx.request, timeout=60) if client is None else client.request
        deadline = time.monotonic() + MINUTES
        while time.monotonic() < deadline:
            try:
                answer = request(method, self.system.address + path, json=body)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code not in PATIENT:
                return answer
            self.promises.refused += answer is not None
            if not insist:
                return None
            time.sleep(0.1)
        raise TimeoutError(f"{method} {path} was not answered within {MINUTES:g} s")

    def expect(self, answer: httpx.Response, status: int) -> bool:
        """Return whether a response has the status; note it as wrong if not."""
        if answer.status_code == status:
            return True
        self.promises.wrong.append(
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}"
        )
        return False


@contextmanager
def load(system: System, *, seed: int, askers: int, jobbers: int, pause: float = 0.0) -> Iterator[Load]:
    """Run clients until the block ends. Jobs that they created are then watched to their end."""
    one = Load(system, data_set(system), seed, pause)
    work = [(one.ask, number) for number in range(askers)] + [(one.work, number) for number in range(jobbers)]
    threads = [threading.Thread(target=guarded, args=(one, *task), daemon=True) for task in work]
    for thread in threads:
        thread.start()
    try:
        until(lambda: one.promises.decisions or not askers, seconds=MINUTES, what="the first answers")
        yield one
    finally:
        one.stopping.set()
        for thread in threads:
            thread.join(2 * MINUTES)


def guarded(one: Load, task: Any, number: int) -> None:
    """Run a client, and note the exception that ends it."""
    try:
        task(number)
    except Exception as error:  # whatever it is, it is told in the table
        one.promises.wrong.append(f"a client broke off: {type(error).__name__}: {error}")


def data_set(system: System) -> str:
    """Return the id of the data set. The first call for a system uploads it and trains the model that predicts."""
    service = Service(system.address)
    try:
        found = service.get("/v1/datasets")["items"]
        if found:
            return str(found[-1]["id"])
        data = service.upload(noise(), target="y", name="noise")
        service.train(MODEL, data)
        return data
    finally:
        service.client.close()


def noise(n_rows: int = 3000) -> str:
    """CSV rows whose class is independent of the attributes, so that the tree is large."""
    draw = random.Random(7)
    lines = (",".join([*(f"{draw.random():.6f}" for _ in range(6)), draw.choice("pq")]) for _ in range(n_rows))
    return "a,b,c,d,e,f,y\n" + "\n".join(lines) + "\n"


def job_of(draw: random.Random, *, data: str, model: str) -> tuple[str, Mapping[str, Any]]:
    """Draw a job: its path and its body."""
    candidates = [{"preset": preset} for preset in ("cart", "c45")]
    jobs: list[tuple[str, Mapping[str, Any]]] = [
        ("/v1/training-jobs", {"model": model, "dataset": data, "preset": draw.choice(("cart", "c45"))}),
        ("/v1/pruning-jobs", {"model": MODEL, "version": 1, "method": "pessimistic"}),
        ("/v1/evaluation-jobs", {"dataset": data, "candidates": candidates, "folds": draw.choice((2, 4))}),
        ("/v1/prediction-jobs", {"model": MODEL, "version": 1, "dataset": data}),
    ]
    return draw.choice(jobs)
