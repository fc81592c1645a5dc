"""The command line: ``espalier COMMAND …``; `COMMANDS` lists them.

Each command module brings a table of its commands. Importing this package must stay cheap: what a command needs (the
web framework, the database, the compiled kernels) is imported inside the function that runs it.
"""

import argparse
import errno
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table of commands.

    Attributes:
        summary: One sentence for ``espalier --help``.
        add_arguments: Declares the command's own arguments.
        run: Does it; gives the exit code of the process.
    """

    summary: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]


class Refused(Exception):  # noqa: N818 - says what happens: the command is refused
    """The command cannot be done as asked; shown as one line, exit code 2.

    Several reasons are given as several lines.
    """


# The commands need the two above.
from service.cli import evaluate, inspect, keys, models, presets, server  # noqa: E402

# In the order of ``espalier --help``.
COMMANDS: Mapping[str, Command] = {
    **models.COMMANDS,
    "show": inspect.COMMANDS["show"],
    **presets.COMMANDS,
    **evaluate.COMMANDS,
    **inspect.COMMANDS,
    **server.COMMANDS,
    **keys.COMMANDS,
}

INTERRUPTED = 130  # what a shell reports for a program ended by Ctrl-C
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Of a write: there is no room for it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named by `argv` (default: the process's arguments) and give its exit code.

    Exit codes: 0 done; 1 failed; 2 refused, with one line on standard error that says why and what is legal.
    """
    if os.getpid() == 1:  # of a container; the kernel drops signals that process 1 has not asked for
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        try:
            arguments = parser().parse_args(argv)
            return COMMANDS[arguments.command].run(arguments)
        finally:
            sys.stdout.flush()  # where a pipe without a reader is caught: Python would complain of it at the very end
    except Refused as refusal:
        for line in str(refusal).splitlines():
            print(f"espalier: {line}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in {"espalier", "service"}:
            raise
        print(f"espalier: this command needs {error.name}: pip install 'espalier[service]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe (head, less) has gone: not worth a traceback
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in FULL:
            raise
        print(f"espalier: cannot write {error.filename or 'all of the output'}: {error.strerror}", file=sys.stderr)
        _drop_output()
        return 1


def _drop_output() -> None:
    """Have what is still to be written end nowhere: Python would try once more at the very end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _ShowVersion(argparse.Action):
    """Looks the version up only when it is asked for, which takes 20 ms."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import espalier  # noqa: PLC0415 - as above

        print(f"espalier {espalier.__version__}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Give the parser of the whole command line."""
    whole = argparse.ArgumentParser(
        prog="espalier", description="Decision trees you can read: train, prune, serve; each answer with its path."
    )
    whole.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        # A command may have a --help of its own.
        own = commands.add_parser(name, help=command.summary, description=command.summary, conflict_handler="resolve")
        command.add_arguments(own)
    return whole
