"""What web processes tell each other of their connections."""

import os

from service.api.sharing import NOBODY, PLACES, OpenConnections


def test_a_process_that_has_said_nothing_yet_is_left_nothing() -> None:
    table = OpenConnections()
    first = table.place([])
    second = table.place([first])
    assert (first, second) == (0, 1)
    table.say(first, 5)
    assert table.fewest() == 5
    table.say(second, 2)
    assert table.fewest() == 2


def test_the_place_of_a_process_that_has_ended_is_given_to_the_next() -> None:
    table = OpenConnections()
    table.say(0, 5)
    table.say(1, 2)
    table.leave(1)
    assert table.fewest() == 5
    assert table.place([0]) == 1
    table.leave(0)
    assert table.fewest() == NOBODY


def test_of_more_processes_than_places_the_rest_has_none_and_says_nothing() -> None:
    table = OpenConnections()
    place = table.place(range(PLACES))
    assert place is None
    table.say(place, 0)
    table.leave(place)
    assert table.fewest() == NOBODY


def test_what_one_process_says_another_sees() -> None:
    table = OpenConnections()
    child = os.fork()
    if child == 0:
        table.say(3, 7)
        os._exit(0)
    os.waitpid(child, 0)
    assert table.fewest() == 7
