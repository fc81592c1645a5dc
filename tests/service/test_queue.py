"""The job queue: transitions, leases, fencing, the cap on attempts."""

import multiprocessing
from datetime import timedelta
from multiprocessing.queues import Queue

import pytest
from sqlalchemy import select, update

from service import db, queue
from service.db import Sessions, now, reading, transaction
from service.errors import Conflict, LeaseLost, NotFound, Rejected, Unavailable
from service.queue import FINAL, TRANSITIONS, Claim, Event
from service.settings import Settings
from service.tables import Job, JobEvent, Kind, State
from tests.service.waiting import until

ERROR = {"code": "unexpected", "message": "it broke", "errors": []}


def enqueue(source: Sessions, *, model: str = "m", kind: Kind = Kind.TRAIN, attempts: int = 3) -> str:
    with transaction(source) as session:
        return queue.enqueue(session, kind=kind, payload={"model": model}, max_attempts=attempts, model=model).id


def claim(source: Sessions, *, worker: str = "w1", lease: float = 30.0) -> Claim:
    with transaction(source) as session:
        claim = queue.claim(session, worker=worker, lease_seconds=lease)
    assert claim is not None
    return claim


def job(source: Sessions, job_id: str) -> Job:
    with reading(source) as session:
        return queue.find_job(session, job_id)


def events(source: Sessions, job_id: str) -> list[tuple[str | None, str, str]]:
    with reading(source) as session:
        return [(event.from_state, event.event, event.to_state) for event in queue.list_events(session, job_id)]


def expire_lease(source: Sessions, job_id: str) -> None:
    with transaction(source) as session:
        session.execute(update(Job).where(Job.id == job_id).values(lease_expires_at=now(-1)))


def test_a_new_job_is_queued_with_its_payload(source: Sessions) -> None:
    job_id = enqueue(source, model="drugs")

    found = job(source, job_id)
    assert (found.state, found.kind, found.model, found.attempt) == ("queued", "train", "drugs", 0)
    assert found.payload == {"model": "drugs"}
    assert found.progress == 0
    assert found.started is None


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
        assert not queue.has_work(session)
        assert queue.claim(session, worker="w1", lease_seconds=30) is None


def test_there_is_work_while_a_job_waits_or_a_lease_ran_out(source: Sessions) -> None:
    job_id = enqueue(source)
    with reading(source) as session:
        assert queue.has_work(session)
    claim(source)
    with reading(source) as session:
        assert not queue.has_work(session)
    expire_lease(source, job_id)
    with reading(source) as session:
        assert queue.has_work(session)


def test_a_job_that_pauses_is_not_claimed_yet(source: Sessions) -> None:
    enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(run_at=now(60)))

    with transaction(source) as session:
        assert not queue.has_work(session)
        assert queue.claim(session, worker="w1", lease_seconds=30) is None


def test_a_heartbeat_prolongs_the_lease_and_publishes_progress(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source, lease=5)
    claimed = job(source, job_id)
    before = claimed.lease_expires_at

    with transaction(source) as session:
        cancel = queue.heartbeat(session, taken, lease_seconds=60, progress=0.25, phase="growing")

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
        queue.finish(session, taken, result={"version": 1})

    found = job(source, job_id)
    assert (found.state, found.result, found.progress, found.lease_token) == ("succeeded", {"version": 1}, 1.0, None)
    assert found.finished is not None


def test_a_fault_that_would_come_back_fails_at_once(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    with transaction(source) as session:
        queue.fail_or_retry(session, taken, error=ERROR, retryable=False)

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
            failed = queue.fail_or_retry(session, taken, error=ERROR, retryable=True)
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
        queue.release(session, taken, reason="the worker was stopped")

    assert (job(source, job_id).state, job(source, job_id).attempt) == ("queued", 0)
    assert claim(source).attempt == 1


def test_a_queued_job_is_cancelled_at_once(source: Sessions) -> None:
    job_id = enqueue(source)

    with transaction(source) as session:
        queue.cancel(session, job_id)

    assert job(source, job_id).state == "cancelled"
    with transaction(source) as session:
        assert queue.claim(session, worker="w1", lease_seconds=30) is None


def test_a_running_job_is_asked_to_stop_once(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)

    for _ in range(2):
        with transaction(source) as session:
            assert queue.cancel(session, job_id).state == "running"
    with reading(source) as session:
        assert queue.is_cancel_requested(session, taken)
    with transaction(source) as session:
        assert queue.heartbeat(session, taken, lease_seconds=30, progress=0.5, phase="")
        queue.mark_cancelled(session, taken)

    assert job(source, job_id).state == "cancelled"
    assert [event for _, event, _ in events(source, job_id)] == ["enqueue", "claim", "request_cancel", "cancel"]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_job_cannot_be_cancelled(state: State, source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(state=state))

    with (
        pytest.raises(Conflict, match=f"is {state}; cancel is possible only when queued or running"),
        transaction(source) as session,
    ):
        queue.cancel(session, job_id)


@pytest.mark.parametrize("state", ["failed", "dead", "cancelled"])
def test_a_job_that_did_not_succeed_can_be_retried_from_the_start(state: str, source: Sessions) -> None:
    job_id = enqueue(source)
    with transaction(source) as session:
        session.execute(update(Job).values(state=state, attempt=3, error=ERROR, cancel_requested=True, progress=0.5))

    with transaction(source) as session:
        queue.retry(session, job_id)

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
        queue.retry(session, job_id)


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
        assert queue.reap(session) == 1

    found = job(source, job_id)
    assert found.state == "dead"
    assert found.error is not None
    assert found.error["message"] == "worker w1 stopped reporting and its lease ran out"


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(source: Sessions) -> None:
    job_id = enqueue(source)
    claim(source)
    with transaction(source) as session:
        queue.cancel(session, job_id)

    expire_lease(source, job_id)
    with transaction(source) as session:
        queue.reap(session)

    assert job(source, job_id).state == "cancelled"


def test_a_worker_that_lost_its_lease_can_write_nothing(source: Sessions) -> None:
    job_id = enqueue(source)
    old = claim(source, worker="w1")
    expire_lease(source, job_id)
    new = claim(source, worker="w2")
    before = job(source, job_id)

    writes = [
        lambda session: queue.heartbeat(session, old, lease_seconds=30, progress=0.9, phase="late"),
        lambda session: queue.finish(session, old, result={}),
        lambda session: queue.fail_or_retry(session, old, error=ERROR, retryable=True),
        lambda session: queue.fail_or_retry(session, old, error=ERROR, retryable=False),
        lambda session: queue.release(session, old, reason="late"),
        lambda session: queue.mark_cancelled(session, old),
        lambda session: queue.is_cancel_requested(session, old),
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
        queue.finish(session, taken, result={})

    assert job(source, job_id).state == "succeeded"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_worker_that_is_stopped_before_its_commit_does_not_keep_its_job_from_the_others(
    settings: Settings, source: Sessions
) -> None:
    enqueue(source)
    held = claim(source)
    expire_lease(source, held.job_id)
    engine = db.connect(settings)
    db.end_idle_transactions(engine, seconds=0.2)

    def is_taken_back() -> bool:
        with transaction(source) as session:
            return queue.reap(session) == 1

    def beat_and_stop() -> None:
        with transaction(db.sessions(engine)) as session:
            queue.heartbeat(session, held, lease_seconds=30, progress=0.5, phase="")
            until(is_taken_back)

    with pytest.raises(Unavailable):
        beat_and_stop()
    engine.dispose()
    assert job(source, held.job_id).state == State.QUEUED


def test_every_transition_leaves_an_event_of_the_table(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)
    with transaction(source) as session:
        queue.fail_or_retry(session, taken, error=ERROR, retryable=False)
        queue.retry(session, job_id)
        queue.cancel(session, job_id)

    with reading(source) as session:
        found = session.scalars(select(JobEvent).order_by(JobEvent.id)).all()
    assert [event.event for event in found] == ["enqueue", "claim", "fail", "retry", "cancel"]
    for event in found:
        from_state = None if event.from_state is None else State(event.from_state)
        assert TRANSITIONS[from_state, Event(event.event)] == event.to_state
    assert found[2].reason == "it broke"


def test_no_final_state_but_success_is_without_a_way_back() -> None:
    ways_out = {state for state, _ in TRANSITIONS if state is not None}

    assert set(State) - ways_out == {State.SUCCEEDED}
    assert {state for state in State if state not in (State.QUEUED, State.RUNNING)} == FINAL


def test_jobs_are_listed_from_the_newest_by_state_kind_and_model(source: Sessions) -> None:
    first = enqueue(source, model="a")
    second = enqueue(source, model="b", kind=Kind.PRUNE)
    third = enqueue(source, model="b")
    with transaction(source) as session:
        queue.cancel(session, second)

    with reading(source) as session:
        listed = {
            "all": queue.list_jobs(session),
            "queued": queue.list_jobs(session, state="queued"),
            "prune": queue.list_jobs(session, kind="prune"),
            "b": queue.list_jobs(session, model="b"),
        }

    assert {name: [job.id for job in page.items] for name, page in listed.items()} == {
        "all": [third, second, first],
        "queued": [third, first],
        "prune": [second],
        "b": [third, second],
    }


def test_a_list_is_paged_by_cursor_and_stays_right_while_jobs_are_added(source: Sessions) -> None:
    ids = [enqueue(source) for _ in range(5)]
    with reading(source) as session:
        first = queue.list_jobs(session, limit=2)
    enqueue(source)
    with reading(source) as session:
        second = queue.list_jobs(session, limit=2, cursor=first.next)
        third = queue.list_jobs(session, limit=2, cursor=second.next)

    assert [job.id for page in (first, second, third) for job in page.items] == ids[::-1]
    assert third.next is None


@pytest.mark.parametrize(("limit", "cursor"), [(0, None), (201, None), (10, "x"), (10, "' OR 1=1 --")])
def test_a_wrong_limit_or_cursor_is_rejected(limit: int, cursor: str | None, source: Sessions) -> None:
    with pytest.raises(Rejected), reading(source) as session:
        queue.list_jobs(session, limit=limit, cursor=cursor)


def test_a_job_that_does_not_exist_is_not_found(source: Sessions) -> None:
    for ask in (queue.find_job, queue.cancel, queue.retry):
        with pytest.raises(NotFound, match="there is no job 'none'"), transaction(source) as session:
            ask(session, "none")


def test_many_workers_share_the_jobs_without_taking_one_twice(settings: Settings, source: Sessions) -> None:
    ids = [enqueue(source) for _ in range(40)]
    context = multiprocessing.get_context("spawn")
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
        worker.join(30)

    assert sorted(claimed) == sorted(ids)


def _claim_all(settings: Settings, taken: "Queue[str | None]") -> None:
    engine = db.connect(settings)
    source = db.sessions(engine)
    while True:
        with transaction(source) as session:
            claim = queue.claim(session, worker="one of many", lease_seconds=60)
        taken.put(None if claim is None else claim.job_id)
        if claim is None:
            break
        with transaction(source) as session:
            queue.finish(session, claim, result={})
    engine.dispose()
