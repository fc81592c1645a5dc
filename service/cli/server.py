"""The commands that run, migrate and check the service: doctor, up, serve, worker, migrate, ready."""

import gc
import json
import logging.config
import os
import socket
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TextIO

from service.cli import Command, Refused
from service.cli.listening import host_of, listen, lock_database, url_of
from service.cli.supervisor import Child, Supervisor, end_with_parent
from service.settings import Settings, check_listening

GUNICORN_CONFIGURATION = Path(__file__).resolve().parent.parent / "gunicorn_conf.py"
METRICS_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it when it is imported
METRICS_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - in memory, never on a disk
METRICS_PREFIX: Final = "espalier-figures-"
READY_SECONDS = 60.0
WORKER_SECONDS = 3.0  # after this time, the worker starts even if the web server does not answer yet
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - how to reach a server that listens everywhere


def up(arguments: Namespace) -> int:
    """Migrate the database, and run the web server and a worker until stopped."""
    settings = _settings(arguments)
    if arguments.examples and settings.auth == "keys" and settings.admin_key == "random":
        raise Refused("--examples needs a key if keys are on: set ESPALIER_ADMIN_KEY")
    file = settings.database_file
    lock = nullcontext() if file is None else lock_database(file, address=url_of(settings.host, settings.port))
    with lock, listen(settings.host, settings.port) as listener:
        # This child frees the memory of its imports when it ends. The web server is ready only with current tables.
        migration = Child("the migration", ("migrate",), ends=True)
        web = Child("the web server", ("serve", "--socket", str(listener.fileno())), keep_open=[listener.fileno()])
        # The worker starts later, since it would slow down the start of the web server.
        worker = Child("the worker", ("worker",), after=migration, start_at=time.monotonic() + WORKER_SECONDS)
        # On stop, the parent closes its socket first: the port then closes with the web server, and no client waits.
        supervisor = Supervisor([migration, web, worker], report=_report, before_stop=listener.close)
        greeting = threading.Thread(
            target=_greet,
            args=(supervisor, settings, url_of(*listener.getsockname()[:2])),
            kwargs={"worker": worker, "examples": arguments.examples},
            daemon=True,  # else an error of the supervisor, or Ctrl-C before it handles signals, would wait for it
        )
        greeting.start()
        supervisor.run()
        greeting.join()
    if not migration.code:
        _report("stopped")
    return migration.code or 0


def serve(arguments: Namespace) -> int:
    """Run the web server alone."""
    settings = _settings(arguments)
    _follow(arguments, settings)
    if arguments.socket is not None:
        try:
            with socket.socket(fileno=os.dup(arguments.socket)) as given:
                check_listening(settings, host_of(given))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", "no file descriptor is so large")
            raise Refused(f"--socket {arguments.socket}: cannot be used: {reason}") from None
        return _gunicorn(arguments.socket)
    listener = listen(settings.host, settings.port)
    _report(f"listening at {url_of(*listener.getsockname()[:2])}")
    return _gunicorn(listener.detach())


def worker(arguments: Namespace) -> int:
    """Run a worker alone."""
    settings = _settings(arguments)
    _follow(arguments, settings)
    from service.worker.loop import run

    run(settings)
    return 0


def migrate(arguments: Namespace) -> int:
    """Migrate the database to the revision of this version."""
    settings = _settings(arguments)
    with database_refusals():
        from service.database.migrate import migrate as upgrade

        first_key = upgrade(settings)
    if arguments.parent is None:
        _report("the tables have the revision of this version")
    if first_key is not None:
        print(f"The first key, with the scope admin, is not shown again: {first_key}", flush=True)
    return 0


def ready(arguments: Namespace) -> int:
    """Check once whether the web server of this machine is ready; return 0 if it is, else 1."""
    from service.cli.examples import is_ready

    settings = read_settings(arguments)
    address = url_of(LOOPBACK_OF.get(settings.host, settings.host), settings.port)
    if is_ready(address, stopping=threading.Event()):
        return 0
    _report(f"the web server at {address} is not ready")
    return 1


def doctor(arguments: Namespace) -> int:
    """Check the installation and print the findings; return 1 if there is a fault, else 0."""
    from service.usecases.doctor import Level, examine

    findings = examine()
    has_fault = any(finding.level == Level.FAULT for finding in findings)
    if arguments.json:
        shown = {"sound": not has_fault, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(shown, indent=2))
    else:
        for finding in findings:
            print(f"{finding.level:<8} {finding.check:<11} {finding.message}")
    return int(has_fault)


OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "--json": {"action": "store_true", "help": "print the findings as JSON"},
    "--host": {"help": "the address of the web server (default: ESPALIER_HOST, else 127.0.0.1)"},
    "--port": {"help": "the port of the web server (default: ESPALIER_PORT, else 8080)"},
    "--examples": {"action": "store_true", "help": "upload two example data sets and train a model on each"},
    "--socket": {"type": int, "metavar": "NUMBER", "help": "file descriptor of a socket that listens already"},
    "--parent": {
        "type": int,
        "metavar": "PROCESS",
        "help": "id of the parent process; a server or worker ends when its parent ends",
    },
}


def _command(summary: str, run: Callable[[Namespace], int], *options: str) -> Command:
    def add_arguments(parser: ArgumentParser) -> None:
        for option in options:
            parser.add_argument(option, **OPTIONS[option])

    return Command(summary, add_arguments, run)


COMMANDS: Mapping[str, Command] = {
    "doctor": _command("check the installation without changing it; exit code 1 if there is a fault", doctor, "--json"),
    "up": _command("run everything: the web server and a worker", up, "--host", "--port", "--examples"),
    "serve": _command("run the web server alone", serve, "--host", "--port", "--socket", "--parent"),
    "worker": _command("run a worker alone, for training and other jobs", worker, "--parent"),
    "migrate": _command("create the database's tables, or migrate them to this version", migrate, "--parent"),
    "ready": _command("check if the local web server is ready; exit code 0 if so, else 1", ready, "--host", "--port"),
}


def _settings(arguments: Namespace) -> Settings:
    """Read the settings; raise if keys are off and other hosts can connect, or if SQLite cannot write its file."""
    settings = read_settings(arguments)
    check_listening(settings)
    if settings.database_file is not None:
        _check_place(settings.database_file)
    return settings


def read_settings(arguments: Namespace | None = None) -> Settings:
    """Read the settings; options of the command line replace environment variables, also for child processes."""
    for name in ("host", "port"):
        if (value := getattr(arguments, name, None)) is not None:
            os.environ[f"ESPALIER_{name.upper()}"] = value
    return Settings.from_env()


def _follow(arguments: Namespace, settings: Settings) -> None:
    """Set up logging; with ``--parent``, end this process when its parent ends."""
    from service.log_config import configuration

    logging.config.dictConfig(configuration(settings.log_format, settings.log_level))
    if arguments.parent is not None:
        end_with_parent(arguments.parent)


def _gunicorn(descriptor: int) -> int:
    # Imports create a million objects and no garbage; gunicorn_conf.py enables the garbage collector again.
    gc.disable()
    from gunicorn.app.wsgiapp import WSGIApplication

    os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's own
    sys.argv = ["espalier serve", "--config", str(GUNICORN_CONFIGURATION), "--bind", f"fd://{descriptor}"]
    with metrics_directory():
        WSGIApplication("%(prog)s [OPTIONS]").run()
    return 0


def _greet(supervisor: Supervisor, settings: Settings, address: str, *, worker: Child, examples: bool) -> None:
    """Wait for the web server, start the worker, print the address; on request, load examples and suggest commands."""
    from service.cli.examples import is_ready, load_examples, suggestions

    answered = is_ready(address, stopping=supervisor.stopping, seconds=READY_SECONDS)
    worker.start_at = 0.0 if worker.deaths == 0 else worker.start_at
    if not answered:
        if not supervisor.stopping.is_set():
            _report("the web server does not answer; see the lines above")
        return
    supervisor.wait_for_all()
    _print(f"Espalier runs at {address}   (open it in a browser; API documentation: {address}/docs)")
    _print(f"Data: {settings.database_file or 'in ESPALIER_DATABASE_URL'}   Stop: Ctrl-C")
    if not examples:
        return
    key = settings.admin_key if settings.auth == "keys" else None
    _print("Training the examples ...")
    try:
        failures = load_examples(address, key=key, stopping=supervisor.stopping)
    except OSError as error:  # the service runs without them
        failures = [f"the examples could not be loaded: {error}"]
    if supervisor.stopping.is_set():
        return
    for failure in failures:
        _report(failure)
    if not failures:
        _print("\n  ".join(["\nTry:", *suggestions(address, with_key=key is not None)]))


def _report(line: str) -> None:
    _print(f"espalier: {line}", sys.stderr)


def _print(text: str, file: TextIO | None = None) -> None:
    with suppress(OSError):  # the terminal may be gone
        print(text, file=file, flush=True)


def _check_place(file: Path) -> None:
    """Create the folder of an SQLite file; check that the folder and the file are writable: SQLite writes to both."""
    folder = file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"the database cannot be used ({error.strerror}: {folder}); see ESPALIER_DATABASE_URL") from None
    for place in (folder, file):
        if place.exists() and not os.access(place, os.W_OK):
            raise Refused(
                f"cannot write to {place}: it belongs to user {place.stat().st_uid}, and this is user {os.geteuid()}; "
                "change its owner (chown) or mode (chmod), or set ESPALIER_DATABASE_URL to another place"
            )


@contextmanager
def database_refusals() -> Iterator[None]:
    """Turn errors of the database, or of its file or folder, into `Refused`."""
    from sqlalchemy.exc import DBAPIError

    from service.database.engine import driver_message
    from service.errors import SchemaMismatch, Unavailable

    try:
        yield
    except SchemaMismatch as error:
        raise Refused(str(error)) from None
    except (Unavailable, DBAPIError, OSError) as error:
        raise Refused(f"the database cannot be used ({driver_message(error)}); see ESPALIER_DATABASE_URL") from None


@contextmanager
def metrics_directory() -> Iterator[None]:
    """If `METRICS_VARIABLE` is not set, create a folder for the metrics of all processes and set the variable to it.

    A server that is killed leaves its folder behind; the next server removes it.
    """
    if os.environ.get(METRICS_VARIABLE):
        yield
        return
    from service.locked_folders import locked_folder

    base = METRICS_MEMORY if os.access(METRICS_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    with locked_folder(METRICS_PREFIX, base) as folder:
        os.environ[METRICS_VARIABLE] = str(folder)
        yield  # forked web processes leave this block, too, but do not remove the folder
