"""Records that wait at the same time are committed together, and each is there when its request goes on."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import OperationalError

import espalier
from service.database.engine import Sessions, read_session, transaction
from service.errors import Conflict, LimitExceeded, NotFound, Unavailable
from service.repositories import decision_log, decisions
from service.repositories.decision_log import DecisionLog
from service.repositories.model_cache import LoadedVersion, load_version
from tests.service.kept import context_of, keep_version
from tests.service.waiting import PATIENCE, until

YOUNG: dict[str, Any] = {"age": 30, "pressure": "HIGH"}


@pytest.fixture
def version(source: Sessions) -> LoadedVersion:
    kept = keep_version(source)
    with read_session(source) as session:
        return load_version(session, kept.id)


@pytest.fixture
def log(source: Sessions) -> DecisionLog:
    return DecisionLog(source.engine)


def entry(version: LoadedVersion, **changes: Any) -> dict[str, Any]:
    [prediction] = espalier.predict(version.model, [YOUNG])
    made = decisions.row_record(
        context_of(version),
        attributes=version.attributes,
        inputs=[YOUNG],
        answers=[prediction.to_dict()],
        nodes=[prediction.nodes],
        milliseconds=1.0,
    )
    return made | changes


def is_found(source: Sessions, decision_id: str) -> bool:
    try:
        with read_session(source) as session:
            return decisions.find(session, decision_id).input == YOUNG
    except NotFound:
        return False


class Requests:
    """Threads that append one record each, and what became of it."""

    def __init__(self, source: Sessions, log: DecisionLog) -> None:
        self.source, self.log = source, log
        self.threads: list[threading.Thread] = []
        self.found: dict[str, bool] = {}  # at the moment at which the request went on
        self.faults: dict[str, Exception] = {}

    def begin(self, entry: dict[str, Any]) -> None:
        def run() -> None:
            try:
                self.log.append(entry)
            except Exception as fault:
                self.faults[entry["id"]] = fault
            self.found[entry["id"]] = is_found(self.source, entry["id"])

        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()

    def end(self) -> None:
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)


@contextmanager
def nobody_else_writes(source: Sessions) -> Iterator[None]:
    with transaction(source) as session:
        is_sqlite = source.engine.dialect.name == "sqlite"  # there is one writer at a time
        session.execute(text("SELECT 1" if is_sqlite else "LOCK TABLE decisions IN SHARE ROW EXCLUSIVE MODE"))
        yield


def taken_by_the_first(source: Sessions) -> int:
    """How many records the first writer has taken while nobody can write: on SQLite it waits for the lock to begin."""
    return 0 if source.engine.dialect.name == "sqlite" else 1


def behind_one_that_waits(source: Sessions, log: DecisionLog, entries: list[dict[str, Any]]) -> Requests:
    """Append the first entry where nobody can write, and the others behind it; let them go, and wait for all."""
    requests = Requests(source, log)
    with nobody_else_writes(source):
        requests.begin(entries[0])
        n_taken = taken_by_the_first(source)
        until(lambda: log.is_committing and log.n_waiting == 1 - n_taken, what="that the first one writes")
        for one in entries[1:]:
            requests.begin(one)
        until(lambda: log.n_waiting == len(entries) - n_taken, what="that the others wait")
        assert not requests.found
    requests.end()
    return requests


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Give how many records each commit had, as they come."""
    sizes: list[int] = []
    insert = decision_log.insert_records

    def counted(engine: Engine, take: Callable[[], Sequence[dict[str, Any]]]) -> None:
        def taken() -> Sequence[dict[str, Any]]:
            records = take()
            sizes.append(len(records))
            return records

        insert(engine, taken)

    monkeypatch.setattr(decision_log, "insert_records", counted)
    return sizes


def test_what_waits_together_is_committed_together(
    source: Sessions, version: LoadedVersion, log: DecisionLog, commits: list[int]
) -> None:
    requests = behind_one_that_waits(source, log, [entry(version) for _ in range(9)])
    assert requests.faults == {}
    assert list(requests.found.values()) == [True] * 9
    assert commits == ([1, 8] if taken_by_the_first(source) else [9])


def test_many_requests_one_after_another(source: Sessions, version: LoadedVersion, log: DecisionLog) -> None:
    requests = Requests(source, log)
    for _ in range(40):
        requests.begin(entry(version))
    requests.end()
    assert (requests.faults, set(requests.found.values()), len(requests.found)) == ({}, {True}, 40)
    assert (log.is_committing, log.n_waiting) == (False, 0)


def test_a_commit_takes_so_many_and_the_rest_is_led_by_another(
    source: Sessions, version: LoadedVersion, log: DecisionLog, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "MAX_TOGETHER", 3)
    requests = behind_one_that_waits(source, log, [entry(version) for _ in range(8)])
    assert list(requests.found.values()) == [True] * 8
    assert commits == ([1, 3, 3, 1] if taken_by_the_first(source) else [3, 3, 2])


def test_a_record_that_is_refused_takes_no_other_with_it(
    source: Sessions, version: LoadedVersion, log: DecisionLog
) -> None:
    entries = [entry(version) for _ in range(4)]
    entries[2]["version_id"] = decisions.new_id()  # deleted meanwhile
    requests = behind_one_that_waits(source, log, entries)
    refused = entries[2]["id"]
    assert {key: type(fault) for key, fault in requests.faults.items()} == {refused: Conflict}
    assert requests.found == {one["id"]: one["id"] != refused for one in entries}


def test_where_nothing_can_be_written_all_are_told_so_and_the_next_one_is_written(
    source: Sessions, version: LoadedVersion, log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        log_is_full.wait(60)
        raise Unavailable("the disk is full")

    log_is_full = threading.Event()
    requests = Requests(source, log)
    with monkeypatch.context() as patched:
        patched.setattr(decision_log, "insert_records", fail)
        for _ in range(3):
            requests.begin(entry(version))
        until(lambda: log.is_committing and log.n_waiting == 3, what="that one leads and two wait")
        log_is_full.set()
        requests.end()
    assert [type(fault) for fault in requests.faults.values()] == [Unavailable] * 3
    assert list(requests.found.values()) == [False] * 3
    log.append(later := entry(version))
    assert is_found(source, later["id"])


def test_records_of_several_requests_are_committed_at_once_and_one_that_is_refused_takes_no_other_with_it(
    source: Sessions, version: LoadedVersion, log: DecisionLog, commits: list[int]
) -> None:
    entries = [entry(version) for _ in range(4)]
    assert log.append_all(entries) == [None] * 4
    assert commits == [4]
    assert all(is_found(source, one["id"]) for one in entries)

    others = [entry(version) for _ in range(3)]
    others[1]["version_id"] = decisions.new_id()  # deleted meanwhile
    assert [type(fault) for fault in log.append_all(others)] == [type(None), Conflict, type(None)]
    assert [is_found(source, one["id"]) for one in others] == [True, False, True]


def test_a_fault_of_our_own_leaves_nobody_waiting(source: Sessions, version: LoadedVersion, log: DecisionLog) -> None:
    entries = [entry(version) for _ in range(3)]
    entries[1]["answers"] = object()  # no JSON
    requests = behind_one_that_waits(source, log, entries)
    assert list(requests.faults) == [entries[1]["id"]]
    assert requests.found == {entries[0]["id"]: True, entries[1]["id"]: False, entries[2]["id"]: True}
    log.append(later := entry(version))
    assert is_found(source, later["id"])


def test_a_log_that_is_far_behind_takes_nothing_more_and_loses_nothing(
    source: Sessions, version: LoadedVersion, log: DecisionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "MAX_WAITING", 2)
    requests = Requests(source, log)
    with nobody_else_writes(source):
        requests.begin(entry(version))
        n_taken = taken_by_the_first(source)
        until(lambda: log.is_committing and log.n_waiting == 1 - n_taken, what="that the first one writes")
        for _ in range(1 + n_taken):
            requests.begin(entry(version))
        until(lambda: log.n_waiting == 2, what="that the others wait")
        with pytest.raises(LimitExceeded) as refused:
            log.append(entry(version))
        assert refused.value.seconds > 0
    requests.end()
    assert (requests.faults, list(requests.found.values())) == ({}, [True] * (2 + n_taken))


def test_an_insert_that_is_repeated_after_a_lost_commit_finds_its_own_record(
    source: Sessions, version: LoadedVersion, log: DecisionLog
) -> None:
    n_lost = 0

    def lose(connection: Connection) -> None:
        """Commit, and have the acknowledgement of the first commit lost together with the connection."""
        nonlocal n_lost
        if n_lost == 0:
            n_lost += 1
            connection.connection.driver_connection.execute("COMMIT")
            connection.invalidate()
            raise OperationalError("COMMIT", None, ConnectionError("no answer"), connection_invalidated=True)

    event.listen(source.engine, "commit", lose)
    records = [entry(version) for _ in range(3)]

    assert log.append_all(records) == [None] * 3

    event.remove(source.engine, "commit", lose)
    assert n_lost == 1
    assert all(is_found(source, one["id"]) for one in records)
    log.append(records[0])  # as often as need be
    with read_session(source) as session:
        assert session.scalar(text("SELECT count(*) FROM decisions")) == 3


def test_a_record_that_is_added_again_is_there_once(source: Sessions, version: LoadedVersion) -> None:
    record = entry(version)
    for _ in range(2):  # as a worker does that has not heard of its commit
        with transaction(source) as session:
            decisions.add(session, record)

    with read_session(source) as session:
        assert session.scalar(text("SELECT count(*) FROM decisions")) == 1
