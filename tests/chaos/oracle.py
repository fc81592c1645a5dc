"""Whether what clients were promised was kept: read from the tables, and asked again over HTTP."""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import httpx
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.database.tables import DecisionRecord, Job, JobEvent, Kind, State, Version
from service.repositories.job_queue import FINAL, TRANSITIONS, Event
from tests.acceptance.running import until
from tests.chaos.load import Promises
from tests.chaos.system import MINUTES, System

MAKE_A_VERSION = {Kind.TRAIN, Kind.PRUNE}
N_CLIENTS = 4
N_ASKED = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the promises of a phase.

    Attributes:
        states: How many accepted jobs ended in each state.
        taken_over: How many attempts were lost by one worker and begun again by another, or given up.
        n_decisions: How many decision ids clients were given.
        broken: The promises that were not kept, in words.
    """

    states: Counter[str]
    taken_over: int
    n_decisions: int
    broken: Sequence[str]


def judge(system: System, promises: Promises) -> Verdict:
    """Compare the promises to clients with the database and the API, once every job has ended.

    Jobs that no client knows are checked, too: if the response to a request was lost, the client sent it again.
    """
    with suppress(AssertionError):
        until(lambda: not n_unended(system), seconds=MINUTES, what="the end of all jobs")
    with system.look() as session:
        jobs = {job.id: job for job in session.scalars(select(Job))}
        mine = [jobs[job_id] for job_id in promises.jobs if job_id in jobs]
        events = events_of(session)
        broken = [*promises.wrong, *unkept(promises, jobs), *versions_wrong(session, jobs.values())]
        broken += rows_wrong(session, mine)
    for job in jobs.values():
        broken += [f"job {job.id} ({job.kind}): {fault}" for fault in life_wrong(job, events.get(job.id, []))]
    broken += unverified(system.address, promises.decisions)
    taken = sum(event.event == Event.LOSE_LEASE for job in mine for event in events[job.id])
    return Verdict(Counter(job.state for job in mine), taken, len(promises.decisions), broken)


def n_unended(system: System) -> int:
    """How many jobs have not ended."""
    with system.look() as session:
        return session.scalar(select(func.count()).where(Job.state.not_in(FINAL))) or 0


def unkept(promises: Promises, jobs: dict[str, Job]) -> Iterator[str]:
    """Jobs that are not there, or are not what the client saw."""
    for job_id, seen in promises.jobs.items():
        job = jobs.get(job_id)
        if job is None:
            yield f"job {job_id} was accepted and is not there"
        elif seen is not None and job.state != seen:
            yield f"job {job_id} was seen {seen} and is {job.state}"
        elif job_id in promises.cancelled and job.state != State.CANCELLED:
            yield f"job {job_id} was said to be cancelled and is {job.state}"
        elif job.state == State.FAILED:  # none of the jobs asked for is wrong in itself
            yield f"job {job_id} failed: {job.error}"


def life_wrong(job: Job, events: Sequence[JobEvent]) -> Iterator[str]:
    """What is wrong with the life of a job: it goes from state to state as the table says, into one end."""
    if [event.to_state for event in events if event.to_state in FINAL] != [job.state]:
        yield f"is {job.state}; its ends: {[event.to_state for event in events if event.to_state in FINAL]}"
    state = None
    for event in events:
        if event.from_state != state:
            yield f"{event.event} from {event.from_state}, when it was {state}"
        legal = TRANSITIONS.get((None if event.from_state is None else State(event.from_state), Event(event.event)))
        if legal != event.to_state:
            yield f"{event.event} from {event.from_state} to {event.to_state}"
        state = event.to_state


def versions_wrong(session: Session, jobs: Collection[Job]) -> Iterator[str]:
    """Jobs that have another number of versions than they should: one a success, none otherwise."""
    made = Counter(session.scalars(select(Version.job_id)))
    for job in jobs:
        should = int(job.state == State.SUCCEEDED and job.kind in MAKE_A_VERSION)
        if made[job.id] != should:
            yield f"job {job.id} ({job.kind}, {job.state}) has {made[job.id]} versions"


def rows_wrong(session: Session, jobs: Collection[Job]) -> Iterator[str]:
    """Prediction jobs whose records do not hold each row of the data set once."""
    place = (DecisionRecord.job_id, DecisionRecord.first_row, DecisionRecord.n_rows)
    wanted = select(*place).where(DecisionRecord.job_id.is_not(None)).order_by(*place)
    parts = {job: list(rows) for job, rows in itertools.groupby(session.execute(wanted), lambda row: row.job_id)}
    for job in jobs:
        next_row = 0
        for part in parts.get(job.id, []):
            if part.first_row != next_row:
                yield f"job {job.id}: after row {next_row} comes row {part.first_row}"
            next_row = part.first_row + part.n_rows
        if job.state == State.SUCCEEDED and job.kind == Kind.PREDICT and next_row != (job.result or {})["n_rows"]:
            yield f"job {job.id}: {next_row} rows are logged, its result says {job.result}"


def unverified(address: str, decisions: Sequence[str]) -> list[str]:
    """Decisions that cannot be found, or do not come out again as they were answered."""
    if len(set(decisions)) != len(decisions):
        return ["a decision id was given twice"]

    def asked(own: Sequence[str]) -> list[str]:
        wrong = []
        with httpx.Client(base_url=address, timeout=MINUTES) as client:
            for decision in own:
                answer = asked_again(client, f"/v1/decisions/{decision}/explanation")
                if answer is None:
                    wrong.append(f"decision {decision}: nobody answered {N_ASKED} times")
                elif answer.status_code != 200 or answer.json()["verified"] is not True:
                    wrong.append(f"decision {decision}: {answer.status_code} {answer.text[:200]}")
        return wrong

    with ThreadPoolExecutor(N_CLIENTS) as pool:
        shares = [decisions[number::N_CLIENTS] for number in range(N_CLIENTS)]
        return list(itertools.chain.from_iterable(pool.map(asked, shares)))


def asked_again(client: httpx.Client, path: str) -> httpx.Response | None:
    """Ask, and again where the connection breaks: a web process that had no processor for long is replaced."""
    for _ in range(N_ASKED):
        with suppress(httpx.TransportError):
            return client.get(path)
    return None


def events_of(session: Session) -> dict[str, list[JobEvent]]:
    """All transitions of all jobs, in their order."""
    transitions = select(JobEvent).where(JobEvent.event.in_(Event))  # a fenced-out write is noted, and is none
    found = session.scalars(transitions.order_by(JobEvent.job_id, JobEvent.id))
    return {job: list(events) for job, events in itertools.groupby(found, lambda event: event.job_id)}
