"""Databases that may be broken: each on a disk of its own, PostgreSQL in a cluster of its own."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.database.migrate import migrate
from service.settings import Settings
from tests.acceptance.running import free_port

DISK_MB = 400  # room for a cluster, its write-ahead log and a campaign
POSTGRES_USER = "postgres"  # whom root lets run the server, which refuses to run as root
PROGRAMS = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class Database:
    """A database with all tables that nobody else uses.

    Attributes:
        url: As ESPALIER_DATABASE_URL takes it.
        folder: Where its files are.
        has_disk: Whether the folder is a small disk, which may be filled.
    """

    url: str
    folder: Path
    has_disk: bool

    @property
    def is_postgresql(self) -> bool:
        """Whether it is a cluster that can be restarted."""
        return self.url.startswith("postgresql")

    def fill(self) -> Path:
        """Fill the disk to its last block; the file that does it is given, to be deleted again."""
        ballast = self.folder / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    continue
        return ballast

    def restart(self, how: str = "fast") -> None:
        """Restart the cluster: "fast" breaks off the transactions, "immediate" is a crash with recovery."""
        control(self.folder / "cluster", "restart", "--mode", how)

    def start_if_down(self) -> None:
        """Start a cluster that gave up."""
        if self.is_postgresql and control(self.folder / "cluster", "status", check=False) != 0:
            control(self.folder / "cluster", "start")


@contextmanager
def sqlite(folder: Path) -> Iterator[Database]:
    """Give an SQLite file."""
    with disk(folder) as has_disk:
        url = f"sqlite:///{folder}/espalier.db"
        migrate(Settings(database_url=url))
        yield Database(url, folder, has_disk)


@contextmanager
def postgresql(folder: Path) -> Iterator[Database]:
    """Give a PostgreSQL cluster that runs until the block ends."""
    with disk(folder) as has_disk:
        cluster, port = folder / "cluster", free_port()
        if os.geteuid() == 0:
            owner = pwd.getpwnam(POSTGRES_USER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        as_its_user("initdb", "--pgdata", str(cluster), "--username", POSTGRES_USER, "--auth", "trust", "--no-sync")
        with (cluster / "postgresql.conf").open("a") as settings:
            settings.write(f"listen_addresses='127.0.0.1'\nport={port}\nunix_socket_directories=''\n")
            settings.write("max_wal_size='64MB'\nmin_wal_size='32MB'\n")
        control(cluster, "start")
        try:
            url = f"postgresql+psycopg://{POSTGRES_USER}@127.0.0.1:{port}/postgres"
            migrate(Settings(database_url=url))
            yield Database(url, folder, has_disk)
        finally:
            control(cluster, "stop", "--mode", "immediate", check=False)


DATABASES = {"sqlite": sqlite, "postgresql": postgresql}


@cache
def programs() -> Path | None:
    """Where PostgreSQL's server programs are; None where there are none, or root finds no user to run them as."""
    found = [path.parent for path in sorted(PROGRAMS.glob("*/bin/initdb"))] or [
        Path(path).resolve().parent for path in [shutil.which("initdb")] if path
    ]
    try:
        if os.geteuid() == 0:
            pwd.getpwnam(POSTGRES_USER)
    except KeyError:
        return None
    return found[-1] if found else None


def control(cluster: Path, *words: str, check: bool = True) -> int:
    """Run pg_ctl and wait for what it does."""
    log = str(cluster.parent / "cluster.log")
    return as_its_user(
        "pg_ctl", "--pgdata", str(cluster), "--log", log, "--wait", "--timeout", "300", *words, check=check
    )


def as_its_user(program: str, *words: str, check: bool = True) -> int:
    """Run a program of PostgreSQL, for root as its user."""
    folder = programs()
    assert folder is not None, "PostgreSQL's server programs are not installed"
    command: Sequence[str] = [str(folder / program), *words]
    who = {"user": POSTGRES_USER, "group": pwd.getpwnam(POSTGRES_USER).pw_gid} if os.geteuid() == 0 else {}
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", check=False, **who)
    assert ran.returncode == 0 or not check, f"{program} {' '.join(words)} ended with {ran.returncode}"
    return ran.returncode


@contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """Put a small disk in memory below a folder, where this user may; say whether."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0755", "espalier-chaos", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
