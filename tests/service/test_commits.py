"""What others commit to an SQLite file ends a wait early, but is not run after."""

from collections.abc import Callable
from pathlib import Path

import pytest

from service.commits import ASK_SECONDS, MOST_REST, Commits
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, connect, sessions, transaction
from service.database.migrate import migrate
from service.database.tables import ModelName
from service.settings import Settings

LONG = 60.0


@pytest.fixture
def source(tmp_path: Path) -> Sessions:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/a.db", auth="none")
    migrate(settings)
    return sessions(connect(settings))


def commit(source: Sessions) -> None:
    with transaction(source) as session:
        session.add(ModelName(id=new_id(), name=new_id(), created=utc_now()))


class Pauses:
    """Pauses that take no time; in one of them something happens."""

    def __init__(self, happens: Callable[[], object] = lambda: None, *, at: int = 0) -> None:
        self.asked: list[float] = []
        self._happens, self._at = happens, at

    def __call__(self, seconds: float) -> object:
        self.asked.append(seconds)
        return self._happens() if len(self.asked) == self._at else None


def test_a_wait_ends_with_the_next_commit(source: Sessions) -> None:
    commits, pauses = Commits(source.engine), Pauses(lambda: commit(source), at=3)

    commits.wait(LONG, pauses)

    assert pauses.asked == [ASK_SECONDS] * 3


def test_waits_that_are_cut_short_for_nothing_begin_with_ever_longer_rests(source: Sessions) -> None:
    commits, rests = Commits(source.engine), []

    for _ in range(5):
        pauses = Pauses(lambda: commit(source), at=1)
        commits.wait(LONG, pauses)
        rests.append(pauses.asked)

    assert rests == [*([times * ASK_SECONDS] for times in (1, 2, 4, 8)), [MOST_REST]]


def test_after_a_rest_in_which_nothing_was_committed_the_next_one_is_short_again(source: Sessions) -> None:
    commits = Commits(source.engine)
    third, fourth = Pauses(lambda: commit(source), at=2), Pauses(lambda: commit(source), at=1)
    for _ in range(2):
        commits.wait(LONG, Pauses(lambda: commit(source), at=1))

    commits.wait(LONG, third)
    commits.wait(LONG, fourth)

    assert third.asked == [4 * ASK_SECONDS, ASK_SECONDS]
    assert fourth.asked == [2 * ASK_SECONDS]


def test_a_wait_after_one_that_was_worth_while_may_be_cut_short_too(source: Sessions) -> None:
    commits, pauses = Commits(source.engine), Pauses(lambda: commit(source), at=2)
    commits.wait(LONG, Pauses(lambda: commit(source), at=1))

    commits.welcome()
    commits.wait(LONG, pauses)

    assert pauses.asked == [ASK_SECONDS] * 2


def test_a_wait_ends_when_it_is_told_to(source: Sessions) -> None:
    pauses = Pauses(lambda: True, at=2)

    Commits(source.engine).wait(LONG, pauses)

    assert len(pauses.asked) == 2


def test_a_wait_without_a_commit_ends_in_time(source: Sessions) -> None:
    pauses = Pauses()

    Commits(source.engine).wait(0.0, pauses)

    assert pauses.asked == []


def test_where_the_database_cannot_be_asked_the_wait_takes_its_time(source: Sessions) -> None:
    commits, pauses = Commits(source.engine), Pauses(lambda: commit(source), at=1)

    could_be = commits.are_seen
    commits.close()
    commits.wait(LONG, pauses)

    assert (could_be, commits.are_seen, pauses.asked) == (True, False, [LONG])
