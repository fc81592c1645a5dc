"""Decisions are deleted when their model's days are over, and no others."""

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy

from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, transaction
from service.database.tables import DecisionRecord, Job, JobEvent, Kind, ModelName, Version
from service.repositories import job_queue
from service.settings import Settings
from service.worker import cleanup
from tests.service.clocks import set_wrong
from tests.service.served import Served, serving


def age(source: Sessions, *, days: float) -> None:
    """Make every decision so many days old."""
    with transaction(source) as session:
        session.execute(sqlalchemy.update(DecisionRecord).values(time=utc_now() - timedelta(days=days)))


def decide(served: Served, name: str) -> str:
    found: str = served.predict(name, {"rows": [{"Outlook": "Sunny"}]})["predictions"][0]["decision_id"]
    return found


def keep(served: Served, name: str, days: int | None) -> None:
    assert served.client.patch(f"/v1/models/{name}", json={"retention_days": days}).status_code == 200


def status(served: Served, decision_id: str) -> int:
    return served.client.get(f"/v1/decisions/{decision_id}").status_code


def test_only_decisions_whose_time_is_over_are_deleted(settings: Settings) -> None:
    with serving(settings) as served:
        for name in ("short", "long", "forever"):
            served.train(name)
        source = served.service.sessions
        old = {name: decide(served, name) for name in ("short", "long", "forever")}
        age(source, days=7.1)
        new = decide(served, "short")
        keep(served, "short", 7)
        keep(served, "long", 8)
        assert cleanup.delete_expired(source) == 1
        assert cleanup.delete_expired(source) == 0
        assert [status(served, one) for one in (old["short"], old["long"], old["forever"], new)] == [404, 200, 200, 200]


@pytest.mark.parametrize("hours", [2, -2])
def test_a_worker_whose_clock_is_wrong_deletes_nothing_before_its_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    with serving(settings) as served:
        source = served.service.sessions
        served.train("short")
        keep(served, "short", 1)
        old = decide(served, "short")
        age(source, days=25 / 24)
        new = decide(served, "short")
        with transaction(source) as session:
            made = utc_now() - timedelta(hours=23)
            session.execute(sqlalchemy.update(DecisionRecord).where(DecisionRecord.id == new).values(time=made))
            for age_in_hours in (23, 25):
                job = job_queue.enqueue(session, Job(kind=Kind.EVALUATE, payload={}), max_attempts=1)
                job_queue.cancel(session, job.id).finished = utc_now() - timedelta(hours=age_in_hours)
        set_wrong(monkeypatch, hours=hours)
        assert (cleanup.delete_expired(source), cleanup.delete_ended_jobs(source, days=1)) == (1, 1)
        assert [status(served, one) for one in (old, new)] == [404, 200]


def test_the_longest_retention_that_can_be_set_deletes_nothing(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("long")
        one = decide(served, "long")
        age(served.service.sessions, days=3_650)
        assert cleanup.delete_expired(served.service.sessions, days=36_500) == 0
        assert cleanup.delete_ended_jobs(served.service.sessions, days=36_500) == 0
        assert status(served, one) == 200


def test_many_are_deleted_some_at_a_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "RECORDS_AT_ONCE", 2)
    with serving(settings) as served:
        served.train("short")
        keep(served, "short", 1)
        for _ in range(5):
            decide(served, "short")
        age(served.service.sessions, days=2)
        assert [cleanup.delete_expired(served.service.sessions) for _ in range(4)] == [2, 2, 1, 0]


def test_a_cleaner_looks_again_at_once_while_there_are_more_and_else_after_a_minute(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "RECORDS_AT_ONCE", 1)
    moment: list[Any] = [100.0]
    with serving(settings) as served:
        served.train("short")
        keep(served, "short", 1)
        source = served.service.sessions
        cleaner = cleanup.Cleaner(source, settings, clock=lambda: moment[0])

        def left() -> int:
            with transaction(source) as session:
                return session.scalar(sqlalchemy.select(sqlalchemy.func.count(DecisionRecord.id))) or 0

        for _ in range(2):
            decide(served, "short")
        age(source, days=2)
        seen = []
        for step in (0, 0, 0):
            moment[0] += step
            cleaner.clean_up()
            seen.append(left())
        decide(served, "short")
        age(source, days=2)
        for step in (0, 59, 1):
            moment[0] += step
            cleaner.clean_up()
            seen.append(left())
        assert seen == [1, 0, 0, 1, 1, 0]


def test_a_cleaner_outlives_a_database_without_tables(settings: Settings) -> None:
    with serving(settings) as served:
        with transaction(served.service.sessions) as session:
            session.execute(sqlalchemy.text(f"ALTER TABLE {ModelName.__tablename__} RENAME TO away"))
        cleaner = cleanup.Cleaner(served.service.sessions, served.settings, clock=lambda: 0.0)
        cleaner.clean_up()
        assert cleaner.due == cleanup.PAUSE_SECONDS


def test_models_that_say_nothing_keep_decisions_as_long_as_the_settings_say(settings: Settings) -> None:
    with serving(settings) as served:
        for name in ("own", "general"):
            served.train(name)
        old = {name: decide(served, name) for name in ("own", "general")}
        keep(served, "own", 30)
        age(served.service.sessions, days=8)
        assert cleanup.delete_expired(served.service.sessions, days=0) == 0
        assert cleanup.delete_expired(served.service.sessions, days=7) == 1
        assert [status(served, old[name]) for name in ("own", "general")] == [200, 404]


def test_a_look_asks_as_little_of_many_models_as_of_one(settings: Settings, source: Sessions) -> None:
    def statements() -> int:
        asked: list[str] = []

        def note(*args: Any) -> None:
            asked.append(args[2])

        sqlalchemy.event.listen(source.engine, "before_cursor_execute", note)
        assert cleanup.delete_expired(source, days=7) == 0
        sqlalchemy.event.remove(source.engine, "before_cursor_execute", note)
        return len(asked)

    def add(*, n_models: int) -> None:
        with transaction(source) as session:
            session.add_all(
                ModelName(id=new_id(), name=new_id(), created=utc_now(), retention_days=days)
                for days in (None, 3, 30)
                for _ in range(n_models)
            )

    add(n_models=1)
    few = statements()
    add(n_models=20)
    assert statements() == few


def test_ended_jobs_go_unless_something_refers_to_them(settings: Settings, source: Sessions) -> None:
    def ended(event: Any, *, days: float) -> str:
        with transaction(source) as session:
            job = job_queue.enqueue(session, Job(kind=Kind.EVALUATE, payload={}), max_attempts=1)
        with transaction(source) as session:
            held = job_queue.claim(session, worker="w", lease_seconds=60)
            assert held is not None
            event(session, held)
        with transaction(source) as session:
            when = utc_now() - timedelta(days=days)
            session.execute(sqlalchemy.update(Job).where(Job.id == job.id).values(finished=when))
        return job.id

    def fail(session: Any, held: job_queue.Claim) -> None:
        job_queue.fail_or_retry(session, held, error={"code": "x", "message": "x", "errors": []}, retryable=False)

    def succeed(session: Any, held: job_queue.Claim) -> None:
        job_queue.finish(session, held, result={})

    def answer(session: Any, held: job_queue.Claim) -> None:
        job_queue.finish(session, held, result={})
        model = ModelName(id=new_id(), name="m", created=utc_now())
        session.add(model)
        session.flush()
        new = {"document": b"{}", "document_sha256": "0" * 64, "preset": "id3", "summary": {}, "seconds": 0.0}
        session.add(Version(id=new_id(), model_id=model.id, number=1, job_id=held.job_id, created=utc_now(), **new))

    new, referred = ended(succeed, days=6), ended(answer, days=8)
    for event in (fail, succeed):
        ended(event, days=8)
    with transaction(source) as session:
        waiting = job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}), max_attempts=1).id

    assert cleanup.delete_ended_jobs(source, days=0) == 0
    assert [cleanup.delete_ended_jobs(source, days=7) for _ in range(2)] == [2, 0]
    with transaction(source) as session:
        assert set(session.scalars(sqlalchemy.select(Job.id))) == {new, referred, waiting}
        assert {event.job_id for event in session.scalars(sqlalchemy.select(JobEvent))} == {new, referred, waiting}
