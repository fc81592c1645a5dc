"""What web processes tell each other of their connections."""

import os
import socket
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config

from service.api.sharing import BURST_SECONDS, IN_VAIN_SECONDS, NOBODY, PLACES, OpenConnections, SharingWorker

NOW = 1000.0


class Worker(SharingWorker):
    """A web process that takes connections, and answers nothing."""

    def __init__(self, table: OpenConnections, place: int, *, n_open: int) -> None:
        self.cfg, self.alive = Config(), True
        self.open_connections, self.place, self.nr_conns = table, place, n_open
        self.taken: list[Any] = []
        self._say()

    def enqueue_req(self, conn: Any) -> None:
        self.taken.append(conn)

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001 - gunicorn's own
        pass

    def pass_once(self, listener: socket.socket) -> None:
        """What the main loop does where a client knocks."""
        self.accept(listener)
        self._say()


def test_a_process_that_has_said_nothing_yet_is_left_nothing() -> None:
    table = OpenConnections()
    first = table.place([])
    second = table.place([first])
    assert (first, second) == (0, 1)
    table.say(first, 5)
    assert table.fewest(NOW) == 5
    table.say(second, 2)
    assert table.fewest(NOW) == 2


def test_the_place_of_a_process_that_has_ended_is_given_to_the_next() -> None:
    table = OpenConnections()
    table.say(0, 5)
    table.say(1, 2)
    table.leave(1)
    assert table.fewest(NOW) == 5
    assert table.place([0]) == 1
    table.leave(0)
    assert table.fewest(NOW) == NOBODY


def test_of_more_processes_than_places_the_rest_has_none_and_says_nothing() -> None:
    table = OpenConnections()
    place = table.place(range(PLACES))
    assert place is None
    table.say(place, 0)
    table.leave(place)
    assert table.fewest(NOW) == NOBODY


def test_what_one_process_says_another_sees() -> None:
    table = OpenConnections()
    child = os.fork()
    if child == 0:
        table.say(3, 7)
        os._exit(0)
    os.waitpid(child, 0)
    assert table.fewest(NOW) == 7


def test_connections_of_a_burst_count_first_until_it_is_over() -> None:
    table = OpenConnections()
    table.say(0, 30, n_of_burst=1, burst_until=NOW + 1)
    table.say(1, 40)
    assert table.taken(0, NOW) > table.taken(1, NOW) == 40
    assert table.taken(0, NOW + 1) == 30
    assert (table.fewest(NOW), table.fewest(NOW + 1)) == (40, 30)


def test_clients_that_come_together_are_dealt_out_evenly_whatever_else_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=NOW)
    monkeypatch.setattr("service.api.sharing.time", SimpleNamespace(monotonic=lambda: clock.now))
    table = OpenConnections()
    many, few = Worker(table, 0, n_open=35), Worker(table, 1, n_open=29)
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.setblocking(False)

        def come(n_clients: int) -> None:
            for _ in range(n_clients):
                opened.enter_context(socket.create_connection(listener.getsockname()))

        come(8)
        for _ in range(4):
            few.pass_once(listener)
            many.pass_once(listener)
            clock.now += (IN_VAIN_SECONDS + BURST_SECONDS) / 2  # what is left to others is no more left in vain
        assert (len(many.taken), len(few.taken)) == (4, 4)
        clock.now += BURST_SECONDS  # the burst is over; nobody has said anything since
        come(1)
        many.pass_once(listener)
        assert len(many.taken) == 4  # it has more open
        few.pass_once(listener)
        assert len(few.taken) == 5
        for connection in (*many.taken, *few.taken):
            connection.sock.close()
