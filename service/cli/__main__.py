"""The table of all commands, and the function that runs one: ``espalier`` or ``python -m service.cli``."""

import argparse
import io
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

import espalier
import service
from service.cli import Refused, evaluate, inspect, interchange, keys, lines_of, predict, presets, prune, server, train
from service.errors import DISK_FULL, ServiceError

# In the order of ``espalier --help``.
COMMANDS = {
    **train.COMMANDS,
    **prune.COMMANDS,
    **predict.COMMANDS,
    "show": inspect.COMMANDS["show"],
    **presets.COMMANDS,
    **evaluate.COMMANDS,
    **inspect.COMMANDS,
    **interchange.COMMANDS,
    **server.COMMANDS,
    **keys.COMMANDS,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of `argv` (default: the arguments of the process) and return its exit code.

    The exit code is 0 (done), 1 (failed), 2 (refused) or 143 (terminated as process 1 of a container); `service.main`
    adds 130 (interrupted). A refusal prints its reason to standard error. Errors of the core and of the service, and
    files that cannot be used, are refusals, too.
    """
    if os.getpid() == 1:  # in a container: the kernel drops signals that process 1 does not handle
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            # Not every terminal has ≤. What is not shown on a terminal is read by programs, as UTF-8.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    try:
        try:
            arguments = parser().parse_args(argv)
            return COMMANDS[arguments.command].run(arguments)
        finally:
            sys.stdout.flush()  # a broken pipe raises here, and is not reported by Python at exit
    except (Refused, ServiceError, espalier.EspalierError) as refusal:
        for line in lines_of(refusal):
            print(f"espalier: {line}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in {"espalier", "service"}:
            raise
        extra = "postgres" if error.name == "psycopg" else "service"
        print(f"espalier: this command needs {error.name}: pip install 'espalier[{extra}]'", file=sys.stderr)
        return 2
    except MemoryError:
        print("espalier: there is not enough memory", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipe, such as head, has ended
        _drop_output()
        return 1
    except OSError as error:
        return _refuse_file(error)


def _refuse_file(error: OSError) -> int:
    """Print which file cannot be used, or that the disk is full; return the exit code. Re-raise any other error."""
    if error.errno in DISK_FULL:
        print(f"espalier: cannot write {error.filename or 'all of the output'}: {error.strerror}", file=sys.stderr)
        _drop_output()
        return 1
    if error.filename is None and not isinstance(error, FileNotFoundError):  # of `tempfile`, which names no file
        raise error
    print(f"espalier: {f'{error.filename}: ' if error.filename else ''}{error.strerror}", file=sys.stderr)
    return 2


def _drop_output() -> None:
    # Otherwise Python would try to write the rest of the output again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _ShowVersion(argparse.Action):
    """Reads the version only when it is needed, since reading it takes 20 ms."""

    def __call__(self, parser: ArgumentParser, *_: object) -> None:
        print(f"espalier {espalier.__version__}")
        parser.exit()


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    description = "Decision trees you can read: train, prune, serve; each answer with its path."
    whole = ArgumentParser(prog="espalier", description=description)
    whole.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.summary, description=command.summary))
    return whole


if __name__ == "__main__":  # a worker's spawned child imports this file, too
    sys.exit(service.main())
