"""The command line: ``espalier COMMAND …``; `service.cli.__main__` lists the commands and runs one.

Each command module has a table of its commands. Importing this package is cheap: functions import the web framework and
the database when they need them, and ``import espalier`` loads each of its modules on first use.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

import espalier
from service.errors import SettingsError, ValidationFailed


@dataclass(frozen=True, slots=True)
class Command:
    """A row of the table of commands."""

    summary: str  # the line of ``espalier --help``
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]  # returns the exit code


class Refused(Exception):  # noqa: N818 - a refusal is not an error of the program
    """The command refuses to run; `main` prints each line of the message and returns 2."""


def lines_of(error: Exception) -> list[str]:
    """Return the lines of an error's message: one per fault, if the error lists faults."""
    match error:
        case espalier.InvalidInput(faults=faults):
            places = [fault.path.removeprefix("/").replace("/", ".") for fault in faults]
            names = [place.replace("~1", "/").replace("~0", "~") for place in places]
            return [f"{name and name + ': '}{fault.message}" for name, fault in zip(names, faults, strict=True)]
        case ValidationFailed(faults=faults):
            return [fault.message for fault in faults]
        case SettingsError(faults=lines):
            return list(lines)
    return str(error).splitlines()
