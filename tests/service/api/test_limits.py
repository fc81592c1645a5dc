"""Limits of the settings, each at its edge: what is still taken, and what is not."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from service.database.engine import Sessions, transaction
from service.database.tables import Job, Kind
from service.errors import LimitExceeded
from service.rate_limit import RateLimit
from service.repositories import job_queue
from service.settings import MAX_CELL_CHARS, Settings
from tests.service.served import assert_problem, serving
from tests.service.waiting import until


def test_a_key_may_make_a_seconds_worth_of_requests_at_once_and_then_one_by_one() -> None:
    seconds = [10.0]
    rates = RateLimit(4, clock=lambda: seconds[0])
    for _ in range(4):
        rates.check("a")

    with pytest.raises(LimitExceeded) as caught:
        rates.check("a")
    assert caught.value.seconds == pytest.approx(0.25)  # the next of four a second
    rates.check("b")  # another key has its own count

    seconds[0] += 0.25
    rates.check("a")
    with pytest.raises(LimitExceeded):
        rates.check("a")


def test_without_a_limit_nothing_is_counted() -> None:
    rates = RateLimit(0, clock=lambda: 0.0)
    for _ in range(1000):
        rates.check(None)


def test_too_many_requests_are_told_when_to_come_again(settings: Settings) -> None:
    with serving(settings, max_requests=1) as served:
        answers = [served.client.get("/v1/models") for _ in range(3)]
        refused = next(answer for answer in answers if answer.status_code != 200)
        assert assert_problem(refused, 429)["retryable"] is True
        assert refused.headers["Retry-After"] == "1"
        assert served.client.get("/livez").status_code == 200


def test_a_text_that_is_longer_than_a_cell_may_be_is_refused(settings: Settings) -> None:
    with serving(settings, max_cell_chars=8) as served:
        assert served.upload("a,b\nabcdefgh,x\nc,y\n")["n_rows"] == 2
        rows = {"rows": [{"a": "abcdefghi", "b": "x"}, {"a": "c", "b": "y"}]}
        assert "at most 8 are" in assert_problem(served.post("/v1/datasets", rows), 413)["detail"]
        served.train("tennis")
        assert served.post("/v1/models/tennis/predict", {"rows": [{"Wind": "w" * 8}]}).status_code == 200
        assert_problem(served.post("/v1/models/tennis/predict", {"rows": [{"Wind": "w" * 9}]}), 413)


def test_as_many_characters_as_can_be_set_are_taken_in_every_format(settings: Settings) -> None:
    longest, longer = ("w" * n_chars for n_chars in (MAX_CELL_CHARS, MAX_CELL_CHARS + 1))
    with serving(settings, max_cell_chars=MAX_CELL_CHARS) as served:
        for quote in ("", '"'):
            assert served.upload(f"a,b\n{quote}{longest}{quote},x\nc,y\n")["n_rows"] == 2
        rows = [{"a": longest, "b": "x"}, {"a": "c", "b": "y"}]
        assert served.post("/v1/datasets", {"rows": rows}).status_code == 201
        rows[0]["a"] = longer
        assert_problem(served.post("/v1/datasets", {"rows": rows}), 413)
        csv = served.client.post("/v1/datasets", data=f"a,b\n{longer},x\nc,y\n", content_type="text/csv")
        assert_problem(csv, 413)


def test_a_key_may_have_only_so_many_unfinished_jobs(settings: Settings) -> None:
    with serving(settings, max_jobs=2) as served:
        asked = {"model": "m", "dataset": served.upload("a,b\n1,x\n2,y\n", target="b")["id"]}
        jobs = [served.post("/v1/training-jobs", asked) for _ in range(3)]
        assert [job.status_code for job in jobs] == [202, 202, 429]
        assert_problem(jobs[2], 429)
        assert jobs[2].headers["Retry-After"] == "5"

        first = jobs[0].get_json()["id"]
        assert served.client.post(f"/v1/jobs/{first}/cancel").status_code == 202
        assert served.post("/v1/training-jobs", asked).status_code == 202
        assert_problem(served.client.post(f"/v1/jobs/{first}/retry"), 429)
        described = served.client.get("/openapi.json").get_json()["paths"]
        kinds = ("training", "pruning", "evaluation", "prediction")
        for path in ("/v1/jobs/{job_id}/retry", *(f"/v1/{kind}-jobs" for kind in kinds)):
            assert "429" in described[path]["post"]["responses"]  # without keys, too


def test_of_requests_at_once_no_more_than_the_limit_are_taken(settings: Settings) -> None:
    with serving(settings, max_jobs=3) as served:
        asked = {"model": "m", "dataset": served.upload("a,b\n1,x\n2,y\n", target="b")["id"]}
        together = threading.Barrier(8)

        def ask(_: int) -> int:
            client = served.client.application.test_client()
            together.wait()
            return client.post("/v1/training-jobs", json=asked).status_code

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(ask, range(8))) == [202] * 3 + [429] * 5
        assert len(served.client.get("/v1/jobs").get_json()["items"]) == 3


def test_who_counts_while_another_adds_waits_and_counts_its_job(settings: Settings, source: Sessions) -> None:
    def add(session: Session, key_id: str) -> None:
        job_queue.check_room(session, key_id=key_id, limit=1)
        job_queue.enqueue(session, Job(kind=Kind.TRAIN, payload={}), max_attempts=1).key_id = key_id

    def second(key_id: str) -> None:
        with transaction(source) as session:
            add(session, key_id)

    with ThreadPoolExecutor(2) as pool:
        with transaction(source) as session:
            add(session, "one")
            waiting = pool.submit(second, "one")
            if settings.database_file is None:  # a writer of SQLite waits at its begin
                pool.submit(second, "another").result()  # another key's count is its own
                until(lambda: waits_for_another(session), what="the second's waiting")
        with pytest.raises(LimitExceeded):
            waiting.result()


def waits_for_another(session: Session) -> bool:
    """Whether a transaction in this database waits for a name that another holds."""
    here = "SELECT oid FROM pg_database WHERE datname = current_database()"
    waiting = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = ({here})"  # noqa: S608
    return session.scalar(text(waiting)) is not None
