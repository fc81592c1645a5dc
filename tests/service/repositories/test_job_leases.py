"""Leases that run out, and workers that share the jobs."""

from multiprocessing.queues import Queue

import pytest
from sqlalchemy import update

from service.database.clock import now
from service.database.engine import Sessions, connect, end_idle_transactions, read_session, sessions, transaction
from service.database.tables import Job, State
from service.errors import LeaseLost, Unavailable
from service.repositories import job_queue
from service.settings import MAX_LEASE_SECONDS, Settings
from tests.service.queued import ERROR, claim, enqueue, events, expire_lease, job
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE, until


def test_a_lease_that_ran_out_gives_the_job_to_the_next_worker(source: Sessions) -> None:
    job_id = enqueue(source)
    claim(source, worker="w1")

    expire_lease(source, job_id)
    taken = claim(source, worker="w2")

    assert (taken.job_id, taken.attempt) == (job_id, 2)
    assert events(source, job_id) == [
        (None, "enqueue", "queued"),
        ("queued", "claim", "running"),
        ("running", "lose_lease", "queued"),
        ("queued", "claim", "running"),
    ]


def test_a_lease_that_ran_out_on_the_last_attempt_leaves_a_dead_job_with_the_reason(source: Sessions) -> None:
    job_id = enqueue(source, attempts=1)
    claim(source, worker="w1")

    expire_lease(source, job_id)
    with transaction(source) as session:
        assert job_queue.reap(session) == 1

    found = job(source, job_id)
    assert found.state == "dead"
    assert found.error is not None
    assert found.error["message"] == "worker w1 stopped reporting and its lease ran out"


def test_a_job_that_was_queued_before_the_clock_was_set_back_is_taken_at_once(source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:  # as it looks to a clock that was set back by five hours
        session.execute(update(Job).where(Job.id == job_id).values(run_at=now(5 * 3600)))

    with read_session(source) as session:
        assert job_queue.has_work(session)
    assert claim(source).job_id == job_id


def test_a_job_that_waits_for_its_next_attempt_is_not_taken_early(source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:  # the longest pause there is: a minute, and half of it more
        session.execute(update(Job).where(Job.id == job_id).values(run_at=now(60 * 1.5)))

    with transaction(source) as session:
        assert not job_queue.has_work(session)
        assert job_queue.claim(session, worker="w1", lease_seconds=30) is None


def test_a_lease_from_before_the_clock_was_set_back_does_not_keep_the_job_of_a_lost_worker(source: Sessions) -> None:
    job_id = enqueue(source)
    claim(source, worker="w1")
    with transaction(source) as session:
        session.execute(update(Job).where(Job.id == job_id).values(lease_expires_at=now(5 * 3600)))

    taken = claim(source, worker="w2")

    assert (taken.job_id, taken.attempt) == (job_id, 2)


def test_the_longest_lease_that_can_be_set_is_kept(source: Sessions) -> None:
    enqueue(source)
    claim(source, lease=MAX_LEASE_SECONDS)

    with transaction(source) as session:
        assert not job_queue.has_work(session)
        assert job_queue.reap(session) == 0


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(source: Sessions) -> None:
    job_id = enqueue(source)
    claim(source)
    with transaction(source) as session:
        job_queue.cancel(session, job_id)

    expire_lease(source, job_id)
    with transaction(source) as session:
        job_queue.reap(session)

    assert job(source, job_id).state == "cancelled"


def test_a_worker_that_lost_its_lease_can_write_nothing(source: Sessions) -> None:
    job_id = enqueue(source)
    old = claim(source, worker="w1")
    expire_lease(source, job_id)
    new = claim(source, worker="w2")
    before = job(source, job_id)

    writes = [
        lambda session: job_queue.heartbeat(session, old, lease_seconds=30, progress=0.9, phase="late"),
        lambda session: job_queue.finish(session, old, result={}),
        lambda session: job_queue.fail_or_retry(session, old, error=ERROR, retryable=True),
        lambda session: job_queue.fail_or_retry(session, old, error=ERROR, retryable=False),
        lambda session: job_queue.release(session, old, reason="late"),
        lambda session: job_queue.mark_cancelled(session, old),
    ]
    for write in writes:
        with pytest.raises(LeaseLost), transaction(source) as session:
            write(session)

    after = job(source, job_id)
    assert (after.lease_token, after.progress, after.state) == (new.token, 0.0, "running")
    assert after.lease_expires_at == before.lease_expires_at


def test_a_lease_that_ran_out_but_was_not_taken_over_still_holds(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    expire_lease(source, job_id)
    with transaction(source) as session:
        job_queue.finish(session, taken, result={})

    assert job(source, job_id).state == "succeeded"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_worker_that_is_stopped_before_its_commit_does_not_keep_its_job_from_the_others(
    settings: Settings, source: Sessions
) -> None:
    enqueue(source)
    held = claim(source)
    expire_lease(source, held.job_id)
    engine = connect(settings)
    end_idle_transactions(engine, seconds=0.2)

    def is_taken_back() -> bool:
        with transaction(source) as session:
            return job_queue.reap(session) == 1

    def beat_and_stop() -> None:
        with transaction(sessions(engine)) as session:
            job_queue.heartbeat(session, held, lease_seconds=30, progress=0.5, phase="")
            until(is_taken_back)

    with pytest.raises(Unavailable):
        beat_and_stop()
    engine.dispose()
    assert job(source, held.job_id).state == State.QUEUED


def test_many_workers_share_the_jobs_without_taking_one_twice(settings: Settings, source: Sessions) -> None:
    ids = [enqueue(source) for _ in range(40)]
    context = process_context()
    taken: Queue[str | None] = context.Queue()
    workers = [context.Process(target=_claim_all, args=(settings, taken)) for _ in range(4)]
    for worker in workers:
        worker.start()
    claimed = []
    n_ended = 0
    while n_ended < len(workers):
        job_id = taken.get(timeout=120)
        if job_id is None:
            n_ended += 1
        else:
            claimed.append(job_id)
    for worker in workers:
        worker.join(PATIENCE)

    assert sorted(claimed) == sorted(ids)


def _claim_all(settings: Settings, taken: "Queue[str | None]") -> None:
    engine = connect(settings)
    source = sessions(engine)
    while True:
        with transaction(source) as session:
            claim = job_queue.claim(session, worker="one of many", lease_seconds=60)
        taken.put(None if claim is None else claim.job_id)
        if claim is None:
            break
        with transaction(source) as session:
            job_queue.finish(session, claim, result={})
    engine.dispose()
