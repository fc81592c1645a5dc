"""New connections go to the web process that has fewer: one that is kept open stays where it was accepted."""

import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from service.api.sharing import BURST_SECONDS
from tests.acceptance.running import Running, running, until

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="who has a connection is read in /proc")

N_CONNECTIONS = 8
MOST_TRIES = 20
ASKED = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def workers(one: Running) -> list[int]:
    """The web processes: children of the process that `espalier up` started."""
    (master,) = one.children("serve")
    return [int(child) for child in Path(f"/proc/{master}/task/{master}/children").read_text().split()]


def asked(one: Running, opened: ExitStack) -> socket.socket:
    """A new connection that has had an answer, and stays open."""
    host, port = one.address.removeprefix("http://").split(":")
    connection = opened.enter_context(socket.create_connection((host, int(port)), timeout=60))
    connection.sendall(ASKED)
    assert connection.recv(2**16).startswith(b"HTTP/1.1 200")
    return connection


def one_by_one(one: Running, opened: ExitStack) -> socket.socket:
    """A new connection after any burst has ended: in one, who has taken fewer of it is next, whatever else is open."""
    time.sleep(1.2 * BURST_SECONDS)
    return asked(one, opened)


def holders(connections: Sequence[socket.socket], processes: Sequence[int]) -> Counter[int]:
    """How many of the connections each process has."""
    ours = {connection.getsockname()[1] for connection in connections}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    theirs = {f"socket:[{line[9]}]" for line in lines if int(line[2].split(":")[1], 16) in ours}
    found: Counter[int] = Counter()
    for process in processes:
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                found[process] += str(file.readlink()) in theirs
    return found


def test_a_process_that_was_held_up_gets_the_next_connections(tmp_path: Path) -> None:
    with running(tmp_path, ESPALIER_WEB_WORKERS="2") as one:
        until(lambda: len(workers(one)) == 2, what="two web processes")
        busy, held_up = workers(one)

        def all_go_to_the_other() -> bool:
            with ExitStack() as opened:
                os.kill(held_up, signal.SIGSTOP)
                try:
                    first = [asked(one, opened) for _ in range(N_CONNECTIONS)]
                finally:
                    os.kill(held_up, signal.SIGCONT)
                assert holders(first, workers(one)) == {busy: N_CONNECTIONS, held_up: 0}  # in vain was it left to it
                then = [one_by_one(one, opened) for _ in range(N_CONNECTIONS)]
                return holders(then, workers(one)) == {busy: 0, held_up: N_CONNECTIONS}

        # Where this machine is busy, the other may not wake within the milliseconds that it is waited for.
        # By chance it has all of them once in 256 times.
        n_times = 0
        for _ in range(MOST_TRIES):
            n_times += all_go_to_the_other()
            if n_times == 3:
                return
        pytest.fail(f"only {n_times} times of {MOST_TRIES} the other process had all new connections")
