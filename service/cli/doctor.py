"""Whether an installation is sound: each check looks at one thing, says what it found, and changes nothing.

``CHECKS`` names them in the order in which they are shown.
"""

import difflib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import sqlalchemy
from sqlalchemy import Engine, func, or_, select

import espalier
from service.database.clock import now, utc_now
from service.database.engine import connect_to_look, read_session, sessions
from service.database.migrate import revisions
from service.database.tables import Key, Scope
from service.errors import SettingsError
from service.settings import Settings, check_listening, unknown_variables, variables

LITTLE_DISK = 1024 * 2**20  # bytes; below it a person is warned
TOO_LITTLE_DISK = 64 * 2**20  # below it an upload or a decision may not be kept
SOON = timedelta(days=14)
MOST_APART = timedelta(seconds=5)  # between this host's clock and the database's
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class Level(StrEnum):
    """How good a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, as a sentence for people."""

    check: str
    level: Level
    message: str


Found = tuple[Level, str]


@dataclass(frozen=True, slots=True)
class Place:
    """What the checks look at."""

    settings: Settings
    engine: Engine | None  # None: the database does not answer


def report(*, as_json: bool) -> int:
    """Print what all checks find; return the exit code: 1 if there is a fault, else 0."""
    findings = examine()
    has_fault = any(finding.level == Level.FAULT for finding in findings)
    if as_json:
        json.dump({"sound": not has_fault, "findings": [asdict(finding) for finding in findings]}, sys.stdout, indent=2)
        print()
    else:
        for finding in findings:
            print(f"{finding.level:<8} {finding.check:<11} {finding.message}")
    return int(has_fault)


def examine() -> list[Finding]:
    """Do all checks; those that need legal settings or a database that answers are left out where there is none."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        return [Finding("settings", Level.FAULT, fault) for fault in error.faults]
    findings = [Finding("settings", level, message) for level, message in _settings(settings)]
    engine, found = _database(settings)
    findings.append(Finding("database", *found))
    place = Place(settings, engine)
    try:
        for name, check in CHECKS.items():
            findings += [Finding(name, level, message) for level, message in check(place)]
    finally:
        if engine is not None:
            engine.dispose()
    return findings


# --- settings


def _settings(settings: Settings) -> Iterator[Found]:
    """Contradictions, and variables that nobody reads."""
    faults = list(_contradictions(settings))
    for name in unknown_variables():
        near = difflib.get_close_matches(name, [variable.name for variable in variables()], n=1)
        meant = f": is {near[0]} meant?" if near else "; docs/reference/settings.md lists them all"
        faults.append((Level.WARNING, f"{name} is no setting of this service{meant}"))
    yield from faults or [(Level.OK, "legal, and at one with each other")]


def _contradictions(settings: Settings) -> Iterator[Found]:
    try:
        check_listening(settings)
    except SettingsError as error:
        yield Level.FAULT, error.faults[0]
    if settings.auth == "none" and settings.admin_key != Settings().admin_key:
        yield Level.WARNING, "ESPALIER_ADMIN_KEY is given, but keys are off (ESPALIER_AUTH=none): it is not asked for"
    if settings.auth == "none" and settings.proxies:
        yield (
            Level.WARNING,
            "ESPALIER_PROXIES is given, but without keys (ESPALIER_AUTH=none) only this machine is answered",
        )
    if settings.job_seconds <= settings.lease_seconds:
        yield (
            Level.WARNING,
            f"ESPALIER_JOB_SECONDS ({settings.job_seconds:g}) is not longer than ESPALIER_LEASE_SECONDS "
            f"({settings.lease_seconds:g})",
        )
    memory = _memory()
    if memory is not None and settings.job_memory_mb * 2**20 > memory:
        yield (
            Level.WARNING,
            f"ESPALIER_JOB_MEMORY_MB allows a job {settings.job_memory_mb} MiB, there are {memory // 2**20}",
        )


def _memory() -> int | None:
    """Bytes of memory of this machine or of this container, whichever is less; None where nobody tells."""
    try:
        known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (OSError, ValueError):
        return None
    for file in MEMORY_LIMITS:
        if file.is_file() and (text := file.read_text().strip()).isdigit():
            known.append(int(text))
    return min(known)


# --- the database


def _database(settings: Settings) -> tuple[Engine | None, Found]:
    """Whether it answers, and which it is; a password is not shown."""
    named = str(settings.database_file or sqlalchemy.make_url(settings.database_url).render_as_string())
    try:
        engine = connect_to_look(settings)
        with engine.connect() as connection:
            connection.execute(select(func.count()).select_from(sqlalchemy.text("(SELECT 1) AS one")))
            if settings.database_file is not None:
                connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # reads the file's first page
            version = ".".join(str(part) for part in connection.dialect.server_version_info or ())
    except FileNotFoundError:
        return None, (Level.FAULT, f"there is no file {named} yet: espalier migrate makes it (ESPALIER_DATABASE_URL)")
    except (OSError, sqlalchemy.exc.SQLAlchemyError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        return None, (Level.FAULT, f"{named} cannot be used ({reason}); see ESPALIER_DATABASE_URL")
    return engine, (Level.OK, f"{engine.dialect.name} {version} at {named}")


def _migrations(place: Place) -> Iterator[Found]:
    if place.engine is None:
        return
    found, needed = revisions(place.engine)
    if found == {needed}:
        yield Level.OK, f"the tables are of this version ({needed})"
    else:
        has = ", ".join(sorted(found)) or "none"
        yield Level.FAULT, f"the tables are of revision {has}, this version needs {needed}: run espalier migrate"


def _clock(place: Place) -> Iterator[Found]:
    """Leases, retention and the ends of keys go by the database's clock, the times of decisions by this host's."""
    if place.engine is None:
        return
    with place.engine.connect() as connection:
        theirs = connection.scalar(select(now()))
    apart = abs(theirs - utc_now()) if theirs is not None else timedelta()
    if apart > MOST_APART:
        yield Level.WARNING, f"this host's clock and the database's are {apart.total_seconds():.0f} s apart"
    else:
        yield Level.OK, "this host's clock and the database's agree"


# --- the machine


def _disk(place: Place) -> Iterator[Found]:
    """Room where the database is, if it is a file, and where what is uploaded waits."""
    file = place.settings.database_file
    folders = {"temporary files": Path(tempfile.gettempdir())}
    if file is not None:
        folders = {"the database": file.parent, **folders}
    for what, folder in folders.items():
        there = next(one for one in (folder, *folder.parents) if one.exists())
        free = shutil.disk_usage(there).free
        level = Level.FAULT if free < TOO_LITTLE_DISK else Level.WARNING if free < LITTLE_DISK else Level.OK
        message = f"{free / 2**30:.1f} GiB free for {what}, in {folder}"
        if not os.access(there, os.W_OK | os.X_OK):
            level, message = Level.FAULT, f"{folder}, for {what}, cannot be written by this user ({os.geteuid()})"
        yield level, message


def _kernels(_: Place) -> Iterator[Found]:
    code = espalier.compiled_code()
    kept = f"{code.n_kernels} compiled kernels are kept"
    if code.folder is None and not code.n_kernels:
        yield Level.WARNING, "no folder for compiled code can be written: name one in NUMBA_CACHE_DIR"
    elif not code.n_kernels:
        yield (
            Level.WARNING,
            f"nothing is compiled yet, in {code.folder}: the first training does it (espalier compile: now)",
        )
    else:
        yield Level.OK, f"{kept}; more goes to {code.folder}" if code.folder else f"{kept}; nothing can be added"


# --- keys


def _keys(place: Place) -> Iterator[Found]:
    if place.settings.auth == "none":
        yield Level.OK, "keys are off: whoever is on this machine may do all"
        return
    if place.engine is None or revisions(place.engine)[0] != {revisions(place.engine)[1]}:
        return
    live = select(Key).where(Key.revoked.is_(None), or_(Key.expires.is_(None), Key.expires > now()))
    with read_session(sessions(place.engine)) as session:
        keys, time = session.scalars(live).all(), session.scalars(select(now())).one()
    admins = [key for key in keys if Scope.ADMIN in key.scopes]
    soon = [key for key in keys if key.expires is not None and key.expires <= time + SOON]
    if not admins:
        yield Level.FAULT, "there is no key with the scope admin: espalier keys create NAME --scope admin makes one"
    elif all(key in soon for key in admins):
        yield Level.WARNING, f"every key with the scope admin expires within {SOON.days} days"
    for key in soon:
        yield Level.WARNING, f"the key {key.name!r} ({key.id}) expires at {key.expires:%Y-%m-%d %H:%M} UTC"
    if admins:
        yield Level.OK, f"{len(keys)} live keys, {len(admins)} of them with the scope admin"


CHECKS: Mapping[str, Callable[[Place], Iterator[Found]]] = {
    "migrations": _migrations,
    "clock": _clock,
    "disk": _disk,
    "kernels": _kernels,
    "keys": _keys,
}
"""What is looked at after the settings and the database; each gives nothing where it cannot be told."""
