"""What a command of the command line is: a sentence, its arguments, and the function that runs it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
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
