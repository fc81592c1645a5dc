"""Check an installation without changing it: settings, database, revision, clock, disk, store, keys."""

import difflib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import sqlalchemy
from sqlalchemy import Engine, func, or_, select

from service.database.clock import database_time, now, utc_now
from service.database.engine import connect_read_only, driver_message, read_session, sessions
from service.database.migrate import schema_mismatch
from service.database.tables import Key, Scope
from service.errors import SettingsError, StoreUnavailable, Unavailable
from service.serialization.parquet_store import store_at
from service.settings import Settings, check_listening, unknown_variables, variables

LITTLE_DISK = 1024 * 2**20  # bytes; less is a warning
TOO_LITTLE_DISK = 64 * 2**20  # less is a fault: an upload or a decision may not fit
SOON = timedelta(days=14)  # a key that expires within this time gives a warning
MAX_CLOCK_SKEW = timedelta(seconds=5)  # between this host's clock and the database's
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class Level(StrEnum):
    """Severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; `message` is one sentence."""

    check: str
    level: Level
    message: str


Found = tuple[Level, str]  # level and message of a finding


def examine() -> list[Finding]:
    """Run all checks with the settings of the environment; if these are not legal, return only their faults."""
    try:
        settings = Settings.from_env()
    except SettingsError as error:
        return [Finding("settings", Level.FAULT, fault) for fault in error.faults]
    return examine_with(settings)


def examine_with(settings: Settings) -> list[Finding]:
    """Run all checks; the checks of revision, clock and keys need a database that answers."""
    engine, of_database = _database(settings)
    of_settings = list(_faults_of(settings)) or [(Level.OK, "legal and consistent")]
    findings = [*(Finding("settings", *each) for each in of_settings), Finding("database", *of_database)]
    try:
        for name, check in CHECKS.items():
            try:
                findings += [Finding(name, *each) for each in check(settings, engine)]
            except (Unavailable, sqlalchemy.exc.SQLAlchemyError) as error:
                findings.append(Finding(name, Level.FAULT, f"the database cannot be read ({driver_message(error)})"))
    finally:
        if engine is not None:
            engine.dispose()
    return findings


def _faults_of(settings: Settings) -> Iterator[Found]:
    try:
        check_listening(settings)
    except SettingsError as error:
        yield Level.FAULT, error.faults[0]
    if settings.auth == "none" and settings.admin_key != Settings().admin_key:
        yield Level.WARNING, "ESPALIER_ADMIN_KEY has no effect: keys are off (ESPALIER_AUTH=none)"
    if settings.auth == "none" and settings.proxies:
        yield Level.WARNING, "ESPALIER_PROXIES is set, but without keys (ESPALIER_AUTH=none) only this host is served"
    if settings.job_seconds <= settings.lease_seconds:
        pair = f"ESPALIER_JOB_SECONDS ({settings.job_seconds:g}), ESPALIER_LEASE_SECONDS ({settings.lease_seconds:g})"
        yield Level.WARNING, f"{pair}: the first should be larger, else a job is stopped before its lease ends"
    memory = _memory()
    if memory is not None and settings.job_memory_mb * 2**20 > memory:
        allowed = f"ESPALIER_JOB_MEMORY_MB allows a job {settings.job_memory_mb} MiB"
        yield Level.WARNING, f"{allowed}, but this machine has {memory // 2**20} MiB"
    for name in unknown_variables():
        near = difflib.get_close_matches(name, [variable.name for variable in variables()], n=1)
        hint = f"is {near[0]} meant?" if near else "docs/reference/settings.md lists all settings"
        yield Level.WARNING, f"{name} is not a setting: {hint}"


def _memory() -> int | None:
    """Return the memory of this machine or, if lower, the limit of this container, in bytes; None if unknown."""
    try:
        known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (OSError, ValueError):
        return None
    for file in MEMORY_LIMITS:
        if file.is_file() and (text := file.read_text().strip()).isdigit():
            known.append(int(text))
    return min(known)


def _database(settings: Settings) -> tuple[Engine | None, Found]:
    """Return an engine (None: no connection) and the finding, which names the database without its passwords."""
    named = str(settings.database_file or sqlalchemy.make_url(settings.database_url).set(query={}).render_as_string())
    try:
        engine = connect_read_only(settings)
        with engine.connect() as connection:
            connection.execute(select(func.count()).select_from(sqlalchemy.text("(SELECT 1) AS one")))
            if settings.database_file is not None:
                connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # reads the file's first page
            version = ".".join(str(part) for part in connection.dialect.server_version_info or ())
    except FileNotFoundError:
        gone = _still_open(settings.database_file)
        hint = gone or "create it with espalier migrate (ESPALIER_DATABASE_URL)"
        return None, (Level.FAULT, f"there is no file {named}: {hint}")
    except (OSError, sqlalchemy.exc.SQLAlchemyError) as error:
        return None, (Level.FAULT, f"{named} cannot be used ({driver_message(error)}); see ESPALIER_DATABASE_URL")
    if gone := _still_open(settings.database_file):
        return engine, (Level.FAULT, f"{named} was replaced: {gone}")
    return engine, (Level.OK, f"{engine.dialect.name} {version} at {named}")


def _still_open(file: Path | None) -> str:
    """Return a hint with the ids of processes that still use a deleted file of this name; "" if none is seen."""
    deleted = () if file is None else (f"{file.resolve()} (deleted)", f"{file.resolve()}-wal (deleted)")
    processes = set()
    for opened in Path("/proc").glob("[0-9]*/fd/*") if deleted else ():
        with suppress(OSError):  # the process has ended, or belongs to another user
            if str(opened.readlink()) in deleted:
                processes.add(opened.parts[2])
    pids = ", ".join(sorted(processes))
    return f"processes still use the deleted one: restart them (pid {pids})" if pids else ""


def _migrations(_: Settings, engine: Engine | None) -> Iterator[Found]:
    if engine is None:
        return
    if mismatch := schema_mismatch(engine):
        yield Level.FAULT, str(mismatch)
    else:
        yield Level.OK, "the tables have the revision of this version"


def _clock(_: Settings, engine: Engine | None) -> Iterator[Found]:
    """Compare this host's clock (it dates decisions) with the database's clock (it times leases, retention, keys)."""
    if engine is None:
        return
    with read_session(sessions(engine)) as session:
        skew = abs(database_time(session) - utc_now())
    if skew > MAX_CLOCK_SKEW:
        message = f"this host's clock and the database's differ by {skew.total_seconds():.0f} s: synchronize them (NTP)"
        yield Level.WARNING, message
    else:
        yield Level.OK, "this host's clock and the database's agree"


def _disk(settings: Settings, _: Engine | None) -> Iterator[Found]:
    file = settings.database_file
    folders = {} if file is None else {"the database": file.parent}
    try:
        folders["temporary files"] = Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # for example, if the disk is full
        yield Level.FAULT, str(error.strerror)
    if settings.work != "system":
        folders["tables on disk"] = Path(settings.work)
    for what, folder in folders.items():
        existing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
        if not os.access(f"{existing}/.", os.W_OK | os.X_OK):  # nor is /. below a file, or a link that leads nowhere
            yield Level.FAULT, f"{folder}, for {what}, cannot be written by this user ({os.geteuid()})"
            continue
        free = shutil.disk_usage(existing).free
        level = Level.FAULT if free < TOO_LITTLE_DISK else Level.WARNING if free < LITTLE_DISK else Level.OK
        yield level, f"{free / 2**30:.1f} GiB free for {what}, in {folder}"


def _store(settings: Settings, _: Engine | None) -> Iterator[Found]:
    if settings.store == "none":
        yield Level.OK, "ESPALIER_STORE is none: data sets cannot refer to files in a folder or bucket"
        return
    try:
        store_at(settings.store).check()
    except StoreUnavailable as error:
        yield Level.FAULT, error.log_message
    else:
        yield Level.OK, "the folder or bucket of ESPALIER_STORE answers"


def _keys(settings: Settings, engine: Engine | None) -> Iterator[Found]:
    if settings.auth == "none":
        yield Level.OK, "keys are off: everybody on this machine may do everything"
        return
    if engine is None or schema_mismatch(engine) is not None:
        return
    live = select(Key).where(Key.revoked.is_(None), or_(Key.expires.is_(None), Key.expires > now()))
    with read_session(sessions(engine)) as session:
        keys, time = session.scalars(live).all(), database_time(session)
    admins = [key for key in keys if Scope.ADMIN in key.scopes]
    soon = [key for key in keys if key.expires is not None and key.expires <= time + SOON]
    if not admins:
        message = "there is no key with the scope admin: create one with espalier keys create NAME --scope admin"
        yield Level.FAULT, message
    elif all(key in soon for key in admins):
        yield Level.WARNING, f"every key with the scope admin expires within {SOON.days} days: create another"
    for key in soon:
        yield Level.WARNING, f"the key {key.name!r} ({key.id}) expires at {key.expires:%Y-%m-%d %H:%M} UTC"
    if admins:
        yield Level.OK, f"{len(keys)} live keys, {len(admins)} of them with the scope admin"


CHECKS: Mapping[str, Callable[[Settings, Engine | None], Iterator[Found]]] = {
    "migrations": _migrations,
    "clock": _clock,
    "disk": _disk,
    "store": _store,
    "keys": _keys,
}
"""The checks after those of settings and database. If the database does not answer, their second argument is None."""
