"""Server-sent events of a job: everything in its order, resumable, bounded in number, and with an end."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service.api import job_events
from service.database.engine import transaction
from service.database.tables import Job, Kind, Scope
from service.repositories import job_queue, keys
from service.repositories.job_queue import Claim
from service.settings import Settings
from tests.acceptance.running import running
from tests.service.guarded import token_of
from tests.service.served import Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(job_events, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(job_events, "MAX_SECONDS", 300.0)
    with serving(settings, web_threads=4) as one:
        yield one


@dataclass(frozen=True)
class Event:
    name: str
    data: Any
    id: int | None


def read(text: str) -> list[Event]:
    """Read a stream of events; comments and the pause before the next try are passed over."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "event" in fields:
            number = int(fields["id"]) if "id" in fields else None
            found.append(Event(fields["event"], json.loads(fields["data"]), number))
    return found


def enqueue(served: Served) -> str:
    with transaction(served.service.sessions) as session:
        return job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}), max_attempts=2).id


def claim(served: Served) -> Claim:
    with transaction(served.service.sessions) as session:
        held = job_queue.claim(session, worker="w", lease_seconds=60)
    assert held is not None
    return held


def beat(served: Served, held: Claim, progress: float, phase: str) -> None:
    with transaction(served.service.sessions) as session:
        job_queue.heartbeat(session, held, lease_seconds=60, progress=progress, phase=phase)


def finish(served: Served, held: Claim) -> None:
    with transaction(served.service.sessions) as session:
        job_queue.finish(session, held, result={"model": "m", "version": 1, "version_id": "v", "summary": {}})


def test_a_stream_tells_a_job_from_its_beginning_to_its_end(served: Served) -> None:
    job = enqueue(served)
    response = served.client.get(f"/v1/jobs/{job}/events")
    assert (response.status_code, response.content_type) == (200, "text/event-stream")
    assert response.headers["Cache-Control"] == "no-store"
    pieces = (piece.decode() for piece in response.response)  # type: ignore[union-attr] # bytes, as they come

    assert next(pieces).startswith("retry: ")
    [queued] = read(next(pieces))
    held = claim(served)
    claimed, started = read(next(pieces))
    beat(served, held, 0.25, "growing")
    [grown] = read(next(pieces))
    finish(served, held)
    succeeded, end = read("".join(pieces))
    response.close()

    assert [one.data["event"] for one in (queued, claimed, succeeded)] == ["enqueue", "claim", "succeed"]
    assert (claimed.data["from"], claimed.data["to"], claimed.data["attempt"]) == ("queued", "running", 1)
    assert (started.name, started.data["phase"], started.data["rate"]) == ("progress", "starting", 0.0)
    assert (grown.data["progress"], grown.data["phase"], grown.data["rate"] > 0) == (0.25, "growing", True)
    assert (end.name, end.data["state"], end.data["id"]) == ("end", "succeeded", job)
    numbers = [one.id for one in (queued, claimed, succeeded)]
    assert None not in numbers
    assert [one.id for one in (started, grown, end)] == [None] * 3

    again = served.client.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": str(claimed.id)})
    assert [one.data.get("event") for one in read(again.text)] == ["succeed", None]
    whole = served.client.get(f"/v1/jobs/{job}/events")
    assert [one.id for one in read(whole.text)] == [*numbers, None]


def test_a_silent_stream_says_that_it_is_there(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_events, "HEARTBEAT_SECONDS", 0.0)
    response = served.client.get(f"/v1/jobs/{enqueue(served)}/events")
    pieces = iter(response.response)
    assert [next(pieces) for _ in range(4)][2:] == [b": still here\n\n"] * 2
    response.close()


def test_streams_hold_no_more_than_a_quarter_of_the_threads_and_give_them_back(served: Served) -> None:
    job = enqueue(served)
    first = served.client.get(f"/v1/jobs/{job}/events")

    second = served.client.get(f"/v1/jobs/{job}/events")
    assert [one.name for one in read(second.text)] == ["transition"]

    first.close()
    third = served.client.get(f"/v1/jobs/{job}/events")
    pieces = iter(third.response)
    assert read(b"".join(next(pieces) for _ in range(2)).decode())[0].data["event"] == "enqueue"
    claim(served)
    assert read(next(pieces).decode())[0].data["event"] == "claim"  # type: ignore[union-attr] # bytes
    third.close()


def test_a_stream_ends_when_the_service_does_and_when_its_time_is_over(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = enqueue(served)
    monkeypatch.setattr(job_events, "MAX_SECONDS", 0.0)
    assert len(read(served.client.get(f"/v1/jobs/{job}/events").text)) == 1
    monkeypatch.setattr(job_events, "MAX_SECONDS", 300.0)
    served.service.is_stopping = lambda: True
    assert len(read(served.client.get(f"/v1/jobs/{job}/events").text)) == 1


def test_a_stream_ends_when_its_key_is_revoked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_events, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(job_events, "MAX_SECONDS", 20.0)
    with serving(settings, web_threads=4, auth="keys") as served:
        token = token_of(served, Scope.READ)
        headers = {"Authorization": f"Bearer {token}"}
        path = f"/v1/jobs/{enqueue(served)}/events"
        pieces = iter(served.client.get(path, headers=headers).response)
        assert read(b"".join(next(pieces) for _ in range(2)).decode())[0].data["event"] == "enqueue"
        with transaction(served.service.sessions) as session:
            keys.revoke(session, token.split("_")[1])
        served.service.keys.forget()  # as after a second
        assert list(pieces) == []
        assert "revoked" in assert_problem(served.client.get(path, headers=headers), 401)["detail"]


def test_who_may_not_see_a_job_or_names_no_event_is_refused(served: Served) -> None:
    assert_problem(served.client.get("/v1/jobs/01890000-0000-7000-8000-000000000000/events"), 404)
    job = enqueue(served)
    wrong = served.client.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": "x"})
    assert_problem(wrong, 422, "/Last-Event-ID")


def test_a_real_job_is_watched_to_its_end_while_others_are_answered(tmp_path: Path) -> None:
    with running(tmp_path, ESPALIER_WEB_WORKERS="1", ESPALIER_WEB_THREADS="4") as service:
        data = service.upload("a,b\n1,x\n2,y\n3,x\n4,y\n", name="rows", target="b")
        job = service.post("/v1/training-jobs", {"model": "m", "dataset": data}, status=202)
        with service.client.stream("GET", f"/v1/jobs/{job['id']}/events") as stream:
            assert service.get("/v1/models") is not None
            found = read("".join(stream.iter_text()))
    assert [one.data["event"] for one in found if one.name == "transition"] == ["enqueue", "claim", "succeed"]
    assert (found[-1].name, found[-1].data["state"]) == ("end", "succeeded")
