"""The queue on both databases: claims, ends, cancelling, retrying."""

from datetime import timedelta

import pytest
from sqlalchemy import select, update

from service.database.clock import now
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import Job, Kind, State
from service.errors import Conflict
from service.repositories import job_queue
from service.repositories.job_queue import FINAL
from tests.service.queued import ERROR, claim, enqueue, events, expire_lease, job
from tests.service.waiting import until


def test_a_new_job_is_queued_with_its_payload(source: Sessions) -> None:
    job_id = enqueue(source, model="drugs")

    found = job(source, job_id)
    assert (found.state, found.kind, found.model, found.attempt) == ("queued", "train", "drugs", 0)
    assert found.progress == 0
    assert found.started is None
    assert claim(source).payload == {"model": "drugs"}


def test_a_claim_takes_the_oldest_job_and_counts_the_attempt(source: Sessions) -> None:
    first, second = enqueue(source), enqueue(source)

    taken = claim(source)

    assert (taken.job_id, taken.attempt, taken.kind) == (first, 1, Kind.TRAIN)
    found = job(source, first)
    assert (found.state, found.worker, found.lease_token) == ("running", "w1", taken.token)
    assert found.started is not None
    assert found.lease_expires_at is not None
    assert timedelta(seconds=29) < found.lease_expires_at - found.started < timedelta(seconds=31)
    assert job(source, second).state == "queued"


def test_an_empty_queue_gives_nothing(source: Sessions) -> None:
    with transaction(source) as session:
        assert not job_queue.has_work(session)
        assert job_queue.claim(session, worker="w1", lease_seconds=30) is None


def test_there_is_work_while_a_job_waits_or_a_lease_ran_out(source: Sessions) -> None:
    job_id = enqueue(source)
    with read_session(source) as session:
        assert job_queue.has_work(session)
    claim(source)
    with read_session(source) as session:
        assert not job_queue.has_work(session)
    expire_lease(source, job_id)
    with read_session(source) as session:
        assert job_queue.has_work(session)


def test_a_job_that_pauses_is_not_claimed_yet(source: Sessions) -> None:
    enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(run_at=now(60)))

    with transaction(source) as session:
        assert not job_queue.has_work(session)
        assert job_queue.claim(session, worker="w1", lease_seconds=30) is None


def test_a_heartbeat_prolongs_the_lease_and_publishes_progress(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source, lease=5)
    claimed = job(source, job_id)
    before = claimed.lease_expires_at

    with transaction(source) as session:
        cancel = job_queue.heartbeat(session, taken, lease_seconds=60, progress=0.25, phase="growing")

    after = job(source, job_id)
    assert cancel is False
    assert (claimed.progress, claimed.phase) == (0.0, "starting")
    assert (after.progress, after.phase) == (0.25, "growing")
    assert before is not None
    assert after.lease_expires_at is not None
    assert after.lease_expires_at - before > timedelta(seconds=50)


def test_a_finished_job_has_its_result_and_no_lease(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    with transaction(source) as session:
        job_queue.finish(session, taken, result={"version": 1})

    found = job(source, job_id)
    assert (found.state, found.result, found.progress, found.lease_token) == ("succeeded", {"version": 1}, 1.0, None)
    assert found.finished is not None


def test_a_fault_that_would_come_back_fails_at_once(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    with transaction(source) as session:
        job_queue.fail_or_retry(session, taken, error=ERROR, retryable=False)

    found = job(source, job_id)
    assert (found.state, found.error, found.attempt) == ("failed", ERROR, 1)


def test_another_fault_is_tried_again_after_a_growing_pause_until_the_attempts_are_used_up(source: Sessions) -> None:
    job_id = enqueue(source, attempts=3)
    least, most = [], []  # the clock is read before and after: the machine may be slow in between
    for _ in range(3):
        with transaction(source) as session:
            session.execute(update(Job).values(run_at=now()))
        taken = until(lambda: claim(source), what="a claim")
        with transaction(source) as session:
            before = session.scalar(select(now()))
            failed = job_queue.fail_or_retry(session, taken, error=ERROR, retryable=True)
            after = session.scalar(select(now()))
            assert before is not None
            assert after is not None
            least.append((failed.run_at - after).total_seconds())
            most.append((failed.run_at - before).total_seconds())

    found = job(source, job_id)
    assert (found.state, found.error, found.attempt) == ("dead", ERROR, 3)
    assert most[0] > 0.4
    assert least[0] <= 1.5
    assert most[1] > 0.9
    assert least[1] <= 3.0
    assert [event for _, event, _ in events(source, job_id)][-1] == "give_up"


def test_a_released_job_keeps_its_attempts(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    with transaction(source) as session:
        job_queue.release(session, taken, reason="the worker was stopped")

    assert (job(source, job_id).state, job(source, job_id).attempt) == ("queued", 0)
    assert claim(source).attempt == 1


def test_a_queued_job_is_cancelled_at_once(source: Sessions) -> None:
    job_id = enqueue(source)

    with transaction(source) as session:
        job_queue.cancel(session, job_id)

    assert job(source, job_id).state == "cancelled"
    with transaction(source) as session:
        assert job_queue.claim(session, worker="w1", lease_seconds=30) is None


def test_a_running_job_is_asked_to_stop_once(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    for _ in range(2):
        with transaction(source) as session:
            assert job_queue.cancel(session, job_id).state == "running"
    with transaction(source) as session:
        assert job_queue.heartbeat(session, taken, lease_seconds=30, progress=0.5, phase="")
        job_queue.mark_cancelled(session, taken)

    assert job(source, job_id).state == "cancelled"
    assert [event for _, event, _ in events(source, job_id)] == ["enqueue", "claim", "request_cancel", "cancel"]


@pytest.mark.parametrize("ending", ["released", "failed"])
def test_a_job_that_was_to_be_cancelled_is_not_queued_again(ending: str, source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)
    with transaction(source) as session:
        job_queue.cancel(session, job_id)

    with transaction(source) as session:  # before a heartbeat has seen the flag
        if ending == "released":
            job_queue.release(session, taken, reason="the worker was stopped")
        else:
            job_queue.fail_or_retry(session, taken, error=ERROR, retryable=True)

    found = job(source, job_id)
    assert (found.state, found.lease_token) == ("cancelled", None)
    assert found.finished is not None
    assert events(source, job_id)[-1] == ("running", "cancel", "cancelled")


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_job_cannot_be_cancelled(state: State, source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(state=state))

    with (
        pytest.raises(Conflict, match=f"is {state}; cancel is possible only when queued or running"),
        transaction(source) as session,
    ):
        job_queue.cancel(session, job_id)


@pytest.mark.parametrize("state", ["failed", "dead", "cancelled"])
def test_a_job_that_did_not_succeed_can_be_retried_from_the_start(state: str, source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(state=state, attempt=3, error=ERROR, cancel_requested=True, progress=0.5))

    with transaction(source) as session:
        job_queue.retry(session, job_id)

    found = job(source, job_id)
    assert (found.state, found.attempt, found.error, found.cancel_requested, found.progress) == (
        "queued",
        0,
        None,
        0,
        0,
    )


@pytest.mark.parametrize("state", ["queued", "succeeded"])
def test_other_jobs_cannot_be_retried(state: str, source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(state=state))

    with (
        pytest.raises(Conflict, match="retry is possible only when cancelled or dead or failed"),
        transaction(source) as session,
    ):
        job_queue.retry(session, job_id)
