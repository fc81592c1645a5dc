"""What is kept for a second is looked up again after it."""

import gc
import weakref

import pytest

from service.usecases.recent import CAPACITY, Recent


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_value_is_looked_up_once_a_second() -> None:
    clock, looked_up = Clock(), []
    recent: Recent[str, int] = Recent(clock)

    def look_up() -> int:
        looked_up.append(clock.seconds)
        return len(looked_up)

    found = []
    for clock.seconds in (100.0, 100.5, 100.79, 101.0, 101.5):
        found.append(recent.get("a", look_up))

    assert found == [1, 1, 1, 2, 2]


def test_one_looks_up_again_what_is_nearly_too_old_while_the_others_go_on_with_it() -> None:
    clock = Clock()
    recent: Recent[str, int] = Recent(clock)
    recent.get("a", lambda: 1)
    clock.seconds = 100.9

    def look_up() -> int:
        found_meanwhile.append(recent.get("a", lambda: 3))
        clock.seconds = 101.0
        found_too_late.append(recent.get("a", lambda: 4))
        return 2

    found_meanwhile: list[int] = []
    found_too_late: list[int] = []

    assert recent.get("a", look_up) == 2
    assert (found_meanwhile, found_too_late) == ([1], [4])


def test_a_look_up_that_failed_is_made_again_by_the_next() -> None:
    clock = Clock()
    recent: Recent[str, int] = Recent(clock)
    recent.get("a", lambda: 1)
    clock.seconds = 100.9

    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 // 0)

    assert recent.get("a", lambda: 2) == 2


def test_the_age_counts_from_before_the_look_up() -> None:
    clock = Clock()
    recent: Recent[str, int] = Recent(clock)

    def slow() -> int:
        clock.seconds += 5
        return 1

    recent.get("a", slow)

    assert recent.get("a", lambda: 2) == 2


def test_what_was_forgotten_is_looked_up_at_once() -> None:
    recent: Recent[str, int] = Recent(Clock())
    recent.get("a", lambda: 1)
    recent.forget("a")

    assert recent.get("a", lambda: 2) == 2


def test_what_is_forgotten_while_it_is_looked_up_is_not_kept() -> None:
    recent: Recent[str, int] = Recent(Clock())

    def look_up() -> int:
        recent.forget_all()
        return 1

    assert recent.get("a", look_up) == 1
    assert recent.get("a", lambda: 2) == 2


def test_that_there_is_nothing_is_kept_too() -> None:
    recent: Recent[str, int | None] = Recent(Clock())
    recent.get("a", lambda: None)

    assert recent.get("a", lambda: 1) is None


def test_only_so_many_are_kept() -> None:
    recent: Recent[int, int] = Recent(Clock())
    for key in range(CAPACITY + 1):
        recent.get(key, lambda: 1)

    assert recent.get(CAPACITY, lambda: 2) == 1  # the newest is still there
    assert recent.get(0, lambda: 2) == 2  # the oldest made room


def test_what_is_too_old_is_let_go_of_when_something_else_is_kept() -> None:
    class Large:
        pass

    clock = Clock()
    recent: Recent[str, Large] = Recent(clock)
    old = weakref.ref(recent.get("old", Large))
    clock.seconds = 100.5
    young = weakref.ref(recent.get("young", Large))
    clock.seconds = 101.0
    recent.get("new", Large)
    gc.collect()

    assert old() is None
    assert young() is not None
