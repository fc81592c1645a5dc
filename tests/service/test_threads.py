"""Threads that wait for their clients do not count."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from service.api.threads import ClientSocket, Threads

PATIENCE = 60.0


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def assert_at_once(threads: Threads, n_at_once: int, *, given: int) -> None:
    """See that so many pieces of work are done at a time, and no more, of those that are given."""
    running, gate = threading.Semaphore(0), threading.Event()

    def work() -> None:
        running.release()
        gate.wait()

    done = [threads.submit(work) for _ in range(given)]
    try:
        assert all(running.acquire(timeout=PATIENCE) for _ in range(n_at_once))
        assert not running.acquire(timeout=0.3)
    finally:
        gate.set()
    assert not wait(done, PATIENCE).not_done


def test_no_more_than_the_most_work_at_a_time_and_all_is_done() -> None:
    threads = Threads(3)
    assert_at_once(threads, 3, given=7)
    assert sorted(one.result(PATIENCE) for one in [threads.submit(int, str(n)) for n in range(50)]) == list(range(50))
    threads.shutdown()


def test_an_error_is_the_result() -> None:
    threads = Threads(1)
    with pytest.raises(ValueError, match="invalid literal"):
        threads.submit(int, "x").result(PATIENCE)
    assert threads.submit(int, "1").result(PATIENCE) == 1
    threads.shutdown()


def test_a_thread_that_stands_aside_does_not_count_and_afterwards_it_does() -> None:
    threads, gate = Threads(2, most_aside=3), threading.Event()

    def stand_aside() -> None:
        with threads.aside():
            gate.wait()

    aside = [threads.submit(stand_aside) for _ in range(3)]
    assert_at_once(threads, 2, given=5)
    more = [threads.submit(stand_aside) for _ in range(2)]  # these count: no more than three may stand aside
    assert_at_once(threads, 0, given=0)
    blocked = threads.submit(int)
    with pytest.raises(TimeoutError):
        blocked.result(0.3)
    gate.set()
    wait([*aside, *more, blocked], PATIENCE)
    assert_at_once(threads, 2, given=7)
    threads.shutdown()


def test_who_holds_too_much_to_be_sent_stays_at_work() -> None:
    threads, gate = Threads(1, most_held=100), threading.Event()

    def hold(n_bytes: int) -> None:
        with threads.aside(n_bytes):
            gate.wait()

    first = threads.submit(hold, 60)
    second = threads.submit(hold, 60)
    third = threads.submit(int)
    with pytest.raises(TimeoutError):
        third.result(0.3)
    gate.set()
    wait([first, second, third], PATIENCE)
    threads.shutdown()


def test_threads_end_when_the_pool_does() -> None:
    threads = Threads(3)
    n_before = threading.active_count()
    assert_at_once(threads, 3, given=3)
    threads.shutdown()
    with pytest.raises(RuntimeError, match="to end"):
        threads.submit(int)
    deadline = time.monotonic() + PATIENCE
    while threading.active_count() > n_before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= n_before


def test_one_who_waits_for_bytes_lets_another_work(pair: tuple[socket.socket, socket.socket]) -> None:
    threads = Threads(1)
    ours, theirs = ClientSocket.of(pair[0], threads), pair[1]
    reading: Future[bytes] = threads.submit(ours.recv, 10)
    assert threads.submit(int, "7").result(PATIENCE) == 7
    theirs.sendall(b"abc")
    assert reading.result(PATIENCE) == b"abc"
    buffer = bytearray(10)
    into = threads.submit(ours.recv_into, memoryview(buffer))
    assert threads.submit(int, "8").result(PATIENCE) == 8
    theirs.sendall(b"def")
    assert into.result(PATIENCE) == 3
    assert buffer[:3] == b"def"
    ours.close()
    threads.shutdown()


def test_one_who_waits_to_send_lets_another_work_and_sends_all(pair: tuple[socket.socket, socket.socket]) -> None:
    threads = Threads(1)
    ours, theirs = ClientSocket.of(pair[0], threads), pair[1]
    content = bytes(range(256)) * 20_000
    sending = threads.submit(ours.sendall, content)
    assert threads.submit(int, "7").result(PATIENCE) == 7
    received = bytearray()
    while len(received) < len(content):
        received += theirs.recv(2**20)
    assert sending.result(PATIENCE) is None
    assert received == content
    ours.close()
    threads.shutdown()


def test_what_does_not_block_raises_as_ever_and_what_is_late_is_not_waited_for(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    threads = Threads(1)
    ours = ClientSocket.of(pair[0], threads)
    ours.until = time.monotonic() - 1
    with pytest.raises(BlockingIOError):
        ours.recv(1)
    ours.setblocking(False)
    with pytest.raises(BlockingIOError):
        ours.recv(1)
    ours.settimeout(0.05)
    with pytest.raises(TimeoutError):
        ours.recv(1)
    pair[1].sendall(b"a")
    assert ours.recv(1) == b"a"
    ours.close()
