"""As process 1 of a container: asked to stop it stops, and it buries what falls to it. A PID namespace stands in."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy
from sqlalchemy.pool import NullPool

from tests.acceptance.running import PATIENCE, environment_for, free_port, until
from tests.factories import ROOT
from tests.service.conftest import empty_database

ADVISORY_LOCK = int.from_bytes(b"espalier")  # what migrations/env.py holds
WAITING = sqlalchemy.text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
APART = ("unshare", "--pid", "--fork", "--kill-child")
CAN_BE_APART = (
    sys.platform == "linux" and subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0
)
pytestmark = pytest.mark.skipif(not CAN_BE_APART, reason="this user may make no PID namespace")


def test_migrating_stops_when_asked_while_it_waits_for_another(tmp_path: Path) -> None:
    with (
        empty_database("postgresql", tmp_path) as url,
        sqlalchemy.create_engine(url, poolclass=NullPool).begin() as busy,
    ):
        busy.execute(sqlalchemy.text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        with process_one("migrate", folder=tmp_path, ESPALIER_DATABASE_URL=url) as (outer, inner):
            until(lambda: busy.scalar(WAITING), what="the waiting for the lock")
            os.kill(inner, signal.SIGTERM)
            assert outer.wait(timeout=PATIENCE) == 128 + signal.SIGTERM


def test_what_dead_children_leave_behind_is_buried(tmp_path: Path) -> None:
    port = str(free_port())
    with process_one("up", "--port", port, folder=tmp_path) as (outer, inner):
        web_workers = until(lambda: grandchildren(inner, " serve "), what="the web workers")
        [server] = {parent for _, parent in web_workers}
        os.kill(server, signal.SIGKILL)
        orphans = {process for process, _ in web_workers}
        until(lambda: not any(Path(f"/proc/{process}").exists() for process in orphans), what="their burial")
        os.kill(inner, signal.SIGTERM)
        assert outer.wait(timeout=PATIENCE) == 0


@contextmanager
def process_one(*command: str, folder: Path, **environment: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run a command of `espalier` as process 1 of a namespace; give the process outside and its id here."""
    words = [*APART, sys.executable, "-m", "service.cli", *command]
    given = environment_for(folder) | environment
    with subprocess.Popen(words, cwd=ROOT, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as outer:
        try:
            yield outer, until(lambda: children(outer.pid), what="the process inside")[0]
        finally:
            outer.kill()


def children(parent: int) -> list[int]:
    return [process for process, above, _ in processes() if above == parent]


def grandchildren(parent: int, word: str) -> list[tuple[int, int]]:
    """Give (process, its parent) of those two steps below whose command has `word`; "serve" alone is in forkserver."""
    below = set(children(parent))
    return [(process, above) for process, above, words in processes() if above in below and word in words]


def processes() -> list[tuple[int, int, str]]:
    shown = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in shown.splitlines()]
    return [(int(process), int(parent), words) for process, parent, words in rows]
