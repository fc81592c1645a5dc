"""Events and lists of jobs."""

import pytest
from sqlalchemy import select

from service.database.engine import Sessions, read_session, transaction
from service.database.tables import JobEvent, Kind, State
from service.errors import NotFound
from service.repositories import job_queue
from service.repositories.job_queue import FINAL, TRANSITIONS, Event
from tests.service.queued import ERROR, claim, enqueue


def test_every_transition_leaves_an_event_of_the_table(source: Sessions) -> None:
    job_id = enqueue(source)
    taken = claim(source)
    with transaction(source) as session:
        job_queue.fail_or_retry(session, taken, error=ERROR, retryable=False)
        job_queue.retry(session, job_id)
        job_queue.cancel(session, job_id)

    with read_session(source) as session:
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
        job_queue.cancel(session, second)

    with read_session(source) as session:
        listed = {
            "all": job_queue.list_jobs(session),
            "queued": job_queue.list_jobs(session, state="queued"),
            "prune": job_queue.list_jobs(session, kind="prune"),
            "b": job_queue.list_jobs(session, model="b"),
        }

    assert {name: [job.id for job in page.items] for name, page in listed.items()} == {
        "all": [third, second, first],
        "queued": [third, first],
        "prune": [second],
        "b": [third, second],
    }


def test_a_list_is_paged_by_cursor_and_stays_right_while_jobs_are_added(source: Sessions) -> None:
    ids = [enqueue(source) for _ in range(5)]
    with read_session(source) as session:
        first = job_queue.list_jobs(session, limit=2)
    enqueue(source)
    with read_session(source) as session:
        second = job_queue.list_jobs(session, limit=2, cursor=first.next)
        third = job_queue.list_jobs(session, limit=2, cursor=second.next)

    assert [job.id for page in (first, second, third) for job in page.items] == ids[::-1]
    assert third.next is None


def test_a_job_that_does_not_exist_is_not_found(source: Sessions) -> None:
    for ask in (job_queue.find_job, job_queue.cancel, job_queue.retry):
        with pytest.raises(NotFound, match="there is no job 'none'"), transaction(source) as session:
            ask(session, "none")
