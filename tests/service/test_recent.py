"""What is kept for a second is looked up again after it."""

from service.recent import CAPACITY, Recent


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
    for clock.seconds in (100.0, 100.5, 100.99, 101.0, 101.5):
        found.append(recent.get("a", look_up))

    assert found == [1, 1, 1, 2, 2]


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
