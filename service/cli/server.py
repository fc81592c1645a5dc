"""The commands that run the service and look after it: compile, doctor, up, serve, worker, migrate, ready."""

import gc
import logging.config
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from service.cli import Command, Refused
from service.cli.listening import address_of, host_of, listen, lock_database, url_of
from service.cli.supervisor import Child, Supervisor, end_with_parent

if TYPE_CHECKING:
    from service.settings import Settings

GUNICORN_CONFIGURATION = Path(__file__).resolve().parent.parent / "gunicorn_conf.py"
METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
METRICS_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - what never reaches a disk
METRICS_PREFIX: Final = "espalier-figures-"
LOCK_FILE: Final = "lock"
READY_SECONDS = 60.0
PATIENCE_SECONDS = 3.0  # before a person is told what takes so long
WORKER_SECONDS = 3.0  # after which the worker waits for the web server no longer
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where one that listens everywhere is found
WHAT_TAKES_LONG = "Training the examples ..."


def up(arguments: Namespace) -> int:
    """Migrate, then run the web server and a worker until asked to stop."""
    settings = _settings(arguments)
    if arguments.examples and settings.auth == "keys" and settings.admin_key == "random":
        raise Refused("--examples needs a key where keys are on: give one in ESPALIER_ADMIN_KEY")
    with _claimed(settings) as listener:
        migration = _migration(settings)
        # The worker would take the processor from those that somebody waits for.
        answers = threading.Event()
        children = [
            *([] if migration is None else [migration]),
            Child("the web server", ("serve", "--socket", str(listener.fileno())), keep_open=[listener.fileno()]),
            Child("the worker", ("worker",), after=migration, go=answers),
        ]
        # While this process held the port open, whoever comes would wait there in vain.
        supervisor = Supervisor(children, report=_report, before_stop=listener.close)
        greeting = threading.Thread(
            target=_greet,
            args=(supervisor, settings, address_of(listener)),
            kwargs={"answers": answers, "examples": arguments.examples},
        )
        greeting.start()
        supervisor.run()
        greeting.join()
    failed = 0 if migration is None else migration.code or 0
    if not failed:
        _report("stopped")
    return failed


def serve(arguments: Namespace) -> int:
    """Run the web server alone."""
    settings = _settings(arguments)
    _follow(arguments, settings)
    if arguments.socket is not None:
        with socket.socket(fileno=os.dup(arguments.socket)) as given:
            _check_listening(settings, host_of(given))
        return _gunicorn(arguments.socket)
    listener = listen(settings.host, settings.port)
    _report(f"listening at {address_of(listener)}")
    return _gunicorn(listener.detach())


def worker(arguments: Namespace) -> int:
    """Run one worker."""
    settings = _settings(arguments)
    _follow(arguments, settings)
    from service.errors import SchemaMismatch  # noqa: PLC0415 - as above
    from service.worker.loop import run  # noqa: PLC0415 - as above

    try:
        run(settings)
    except SchemaMismatch as error:
        raise Refused(str(error)) from None
    return 0


def migrate(arguments: Namespace) -> int:
    """Bring the database's tables up to this version."""
    settings = _settings(arguments)
    with failing_clearly():
        from service.database.migrate import migrate as upgrade  # noqa: PLC0415 - `espalier --help` needs no database

        first_key = upgrade(settings)
    if arguments.parent is None:
        _report("the tables are of this version")
    if first_key is not None:
        print(f"The first key, with the scope admin, is shown this once: {first_key}", flush=True)
    return 0


def ready(arguments: Namespace) -> int:
    """Ask the web server of this machine, once, whether it can answer; 0 if it can."""
    from service.cli.examples import is_ready_now  # noqa: PLC0415 - `espalier --help` stays cheap

    settings = _given_settings(arguments)
    address = url_of(LOOPBACK_OF.get(settings.host, settings.host), settings.port)
    if is_ready_now(address):
        return 0
    _report(f"the web server at {address} is not ready")
    return 1


def compile_all(_: Namespace) -> int:
    """Compile all kernels, in two processes where there are two processors."""
    # Imported here: `espalier --help` needs no kernels.
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415
    from multiprocessing import get_context  # noqa: PLC0415

    import espalier  # noqa: PLC0415

    if espalier.warm_up([]) is None:
        raise Refused("compiled code cannot be kept: name a folder that can be written in NUMBA_CACHE_DIR")
    print("Compiling all kernels, a minute or two ...", flush=True)
    began = time.monotonic()
    n_processes = min(len(espalier.WARM_UPS), os.cpu_count() or 1)
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        folders = list(pool.map(espalier.warm_up, [(name,) for name in espalier.WARM_UPS]))
    print(f"Compiled in {time.monotonic() - began:.0f} s; kept in {folders[0]}")
    return 0


def doctor(arguments: Namespace) -> int:
    """Check the installation, and change nothing."""
    from service.cli.doctor import report  # noqa: PLC0415 - `espalier --help` needs no database

    return report(as_json=arguments.json)


def _no_arguments(_: ArgumentParser) -> None:
    pass


def _doctor_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def _listening_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", help="the address to listen on (ESPALIER_HOST, 127.0.0.1)")
    parser.add_argument("--port", help="the port to listen on (ESPALIER_PORT, 8080)")


def _up_arguments(parser: ArgumentParser) -> None:
    _listening_arguments(parser)
    parser.add_argument("--examples", action="store_true", help="load two example data sets and train a model on each")


def _serve_arguments(parser: ArgumentParser) -> None:
    _listening_arguments(parser)
    parser.add_argument("--socket", type=int, metavar="NUMBER", help="a listening socket that is open already")
    _worker_arguments(parser)


def _worker_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--parent", type=int, metavar="PROCESS", help="end when this process, which started us, ends")


COMMANDS: Mapping[str, Command] = {
    "compile": Command("compile all kernels now, not at the first training", _no_arguments, compile_all),
    "doctor": Command(
        "look whether this installation is sound, and change nothing: exit code 1 if there is a fault",
        _doctor_arguments,
        doctor,
    ),
    "up": Command("run everything: the web server and a worker under one command", _up_arguments, up),
    "serve": Command("run the web server alone", _serve_arguments, serve),
    "worker": Command("run a worker alone: it trains and prunes", _worker_arguments, worker),
    "migrate": Command("bring the database's tables up to this version", _worker_arguments, migrate),
    "ready": Command(
        "ask the web server on this machine whether it can answer: exit code 0 or 1", _listening_arguments, ready
    ),
}


def _settings(arguments: Namespace) -> "Settings":
    """Read the settings; refuse strangers without keys, and a database file that cannot be written."""
    settings = _given_settings(arguments)
    _check_listening(settings)
    if settings.database_file is not None:
        check_place(settings.database_file)
    return settings


def _given_settings(arguments: Namespace) -> "Settings":
    """Read the settings; what the command line says stands over the environment, also for the children."""
    for name in ("host", "port"):
        if (value := getattr(arguments, name, None)) is not None:
            os.environ[f"ESPALIER_{name.upper()}"] = value
    return read_settings()


def _check_listening(settings: "Settings", host: str | None = None) -> None:
    from service.errors import SettingsError  # noqa: PLC0415 - as above
    from service.settings import check_listening  # noqa: PLC0415 - as above

    try:
        check_listening(settings, host)
    except SettingsError as error:
        raise Refused("\n".join(error.faults)) from None


@contextmanager
def _claimed(settings: "Settings") -> Iterator[socket.socket]:
    """Hold the database (if it is a file) and the port."""
    file = settings.database_file
    lock = lock_database(file, address=url_of(settings.host, settings.port)) if file is not None else None
    try:
        with listen(settings.host, settings.port) as listener:
            yield listener
    finally:
        if lock is not None:
            lock.close()


def _follow(arguments: Namespace, settings: "Settings") -> None:
    """Log on standard error, and end with the process that started this one."""
    from service.log_config import configuration  # noqa: PLC0415 - `espalier --help` needs no log

    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    if arguments.parent is not None:
        end_with_parent(arguments.parent)


def _gunicorn(descriptor: int) -> int:
    # Loading code makes a million objects and no rubbish. gunicorn_conf.py has the collector work again.
    gc.disable()
    from gunicorn.app.wsgiapp import WSGIApplication  # noqa: PLC0415 - as above

    os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's own
    sys.argv = ["espalier serve", "--config", str(GUNICORN_CONFIGURATION), "--bind", f"fd://{descriptor}"]
    with metrics_directory():
        WSGIApplication("%(prog)s [OPTIONS]").run()
    return 0


def _migration(settings: "Settings") -> Child | None:
    """Give what brings the tables up to this version; None where they are, and there is no first key to be made.

    In a process of its own, which takes all that it loaded with it. The web server loads its code meanwhile, and does
    not answer before the tables are of its version.
    """
    file = settings.database_file
    if settings.auth == "none" and file is not None and has_tables_of_now(file):
        return None
    return Child("the migration", ("migrate",), ends=True)


def _greet(
    supervisor: Supervisor, settings: "Settings", address: str, *, answers: threading.Event, examples: bool
) -> None:
    """Set `answers` and say where the service is, once it answers; with `examples`, what to try, too."""
    from service.cli.examples import is_ready  # noqa: PLC0415 - as above

    patience = threading.Timer(WORKER_SECONDS, answers.set)  # jobs are done without a web server, too
    patience.daemon = True
    patience.start()
    answered = is_ready(address, stopping=supervisor.stopping, seconds=READY_SECONDS)
    answers.set()
    patience.cancel()
    if not answered:
        if not supervisor.stopping.is_set():
            _report("the web server does not answer; see the lines above")
        return
    supervisor.wait_for_all()
    print(f"Espalier runs at {address}   (to read and try: {address}/docs)")
    print(f"Data: {settings.database_file or 'as ESPALIER_DATABASE_URL says'}   Stop: Ctrl-C", flush=True)
    if examples:
        _offer_examples(supervisor, address, key=settings.admin_key if settings.auth == "keys" else None)


def _offer_examples(supervisor: Supervisor, address: str, *, key: str | None) -> None:
    from service.cli.examples import load_examples, suggestions  # noqa: PLC0415 - as above

    patience = threading.Timer(PATIENCE_SECONDS, print, (WHAT_TAKES_LONG,), {"flush": True})
    patience.start()
    try:
        failures = load_examples(address, key=key, stopping=supervisor.stopping)
    except OSError as error:  # the service runs all the same
        failures = [f"the examples could not be loaded: {error}"]
    patience.cancel()
    if supervisor.stopping.is_set():
        return
    for failure in failures:
        _report(failure)
    if not failures:
        print(
            "\nTry:\n" + "\n".join(f"  {line}" for line in suggestions(address, with_key=key is not None)), flush=True
        )


def _report(line: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        print(f"espalier: {line}", file=sys.stderr, flush=True)


# --- the database


def read_settings() -> "Settings":
    """Read the settings.

    Raises:
        Refused: Variables that are wrong, a line each.
    """
    from service.errors import SettingsError  # noqa: PLC0415 - `espalier --help` needs no settings
    from service.settings import Settings  # noqa: PLC0415 - as above

    try:
        return Settings.from_env()
    except SettingsError as error:
        raise Refused("\n".join(error.faults)) from None


def check_place(file: Path) -> None:
    """Make the folder of an SQLite file, and see that both can be written: SQLite keeps other files beside its own.

    Raises:
        Refused: They cannot; the line says whose they are and who asks.
    """
    folder = file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"the database cannot be used ({error.strerror}: {folder}); see ESPALIER_DATABASE_URL") from None
    for place in (folder, file):
        if place.exists() and not os.access(place, os.W_OK):
            raise Refused(
                f"cannot write to {place}: it belongs to user {place.stat().st_uid}, and this is user {os.geteuid()}; "
                "give it to this user (chown), or name another place in ESPALIER_DATABASE_URL"
            )


def has_tables_of_now(file: Path) -> bool:
    """Whether an SQLite file has the tables of this version; it is asked without what else databases need."""
    import sqlite3  # noqa: PLC0415 - as above

    from service.database import REVISION, VERSION_TABLE  # noqa: PLC0415 - as above

    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(file, timeout=1)) as connection:
            return connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall() == [(REVISION,)]  # noqa: S608 - ours
    except sqlite3.Error:  # no tables, or whatever the migration will say
        return False


@contextmanager
def failing_clearly() -> Iterator[None]:
    """Say in one line why the database cannot be used."""
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 - `espalier --help` needs no database

    from service.errors import Unavailable  # noqa: PLC0415 - as above

    try:
        yield
    except (Unavailable, DBAPIError) as error:
        cause = error if isinstance(error, DBAPIError) else error.__cause__
        reason = str(getattr(cause, "orig", None) or error).splitlines()[0]
        raise Refused(f"the database cannot be used ({reason}); see ESPALIER_DATABASE_URL") from None
    except OSError as error:
        raise Refused(f"the database cannot be used ({error.strerror}); see ESPALIER_DATABASE_URL") from None


# --- the metrics directory


@contextmanager
def metrics_directory() -> Iterator[None]:
    """Have a folder while the block runs in this process, and name it in the environment; not if one is named already.

    A server that is killed leaves its folder behind: the next one removes it.
    """
    if os.environ.get(METRICS_VARIABLE):
        yield
        return
    import fcntl  # noqa: PLC0415 - commands without a server run on systems that have none

    base = METRICS_MEMORY if os.access(METRICS_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _remove_abandoned(base)
    own, folder = os.getpid(), Path(tempfile.mkdtemp(prefix=f"{METRICS_PREFIX}{os.getpid()}-", dir=base))
    # Held by all processes of the server, since they inherit it; and let go of by the last, however that ends.
    held = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    (folder / "new").rename(folder / LOCK_FILE)  # not to be seen before it is held
    os.environ[METRICS_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if os.getpid() == own:  # web processes leave through here, too
            shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(base: Path) -> None:
    import fcntl  # noqa: PLC0415 - as above

    for lock in base.glob(f"{METRICS_PREFIX}*/{LOCK_FILE}"):
        try:
            # The folder above is everybody's: whatever has this name, it is neither followed nor waited for.
            tried = os.open(lock, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(tried) as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its server lives, it is another user's, or it has just gone
            continue
        shutil.rmtree(lock.parent, ignore_errors=True)
