"""The command ``train``."""

import re
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import espalier
from service.cli import Command, Refused, files, options
from service.cli.presets import help_with_tables
from service.cli.progress import shown_progress
from service.cli.reports import data_lines, out_arguments, write_model

UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
DEFAULT_MEMORY: Final = 10**9
"""In bytes; equal on all machines, since a training can only continue a work folder that has the same limit."""


def memory_size(text: str) -> int:
    """Read a number of bytes, with or without a unit, such as ``512MB`` or ``2GB``.

    >>> memory_size("2GB"), memory_size("0.5 gb")
    (2000000000, 500000000)
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kmgt]?b?)", text.strip().lower())
    if match is None:
        raise ArgumentTypeError(f"{text!r} must be a number of bytes such as 512MB or 2GB")
    return int(Decimal(match[1]) * UNITS[match[2].removesuffix("b")])


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", type=Path, help=f"the training rows: {files.FORMATS}")
    options.data_arguments(parser)
    parser.add_argument("--preset", metavar="P", default="cart", help="see `espalier presets` (default: cart)")
    options.set_argument(parser, "a field of the preset; see `espalier presets`")
    meaning = "rows to set aside before training, for stopping, pruning or testing; the model remembers them"
    options.holdout_arguments(parser, meaning, seed=None)
    parser.add_argument(
        "--out-of-core",
        action="store_true",
        help="leave the table on disk and read one column after the other; DATA may be a folder of files, too",
    )
    parser.add_argument(
        "--memory", metavar="2GB", type=memory_size, help="memory for the table, --out-of-core only (default: 1GB)"
    )
    parser.add_argument(
        "--work",
        metavar="FOLDER",
        type=Path,
        help="folder for temporary files, --out-of-core only; to continue a killed command, repeat it unchanged",
    )
    parser.add_argument(
        "--cluster",
        metavar="tcp://HOST:PORT",
        help="a Dask scheduler whose workers search the columns; needs --work, at the same path on all workers",
    )
    out_arguments(parser)
    help_with_tables(parser)


def train(arguments: Namespace) -> int:
    """Train a model on a file and write it."""
    files.check_out(arguments)
    if not arguments.out_of_core and (arguments.memory, arguments.work, arguments.cluster) != (None, None, None):
        raise Refused("--memory, --work and --cluster need --out-of-core")
    with shown_progress() as progress:
        read = _table_on_disk if arguments.out_of_core else _table_in_memory
        table, given, lines = read(arguments)
        seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
        fields = options.assignments([*seed, *arguments.set], besides="preset")
        config = espalier.training_config(arguments.preset, **fields)
        begun = time.perf_counter()
        model = espalier.train(table, config, progress=progress, **given)
        seconds = time.perf_counter() - begun
    return write_model(arguments, model, seconds, lines)


def _table_in_memory(arguments: Namespace) -> tuple[Any, dict[str, Any], Iterable[str]]:
    if arguments.data.is_dir():
        raise Refused(f"{arguments.data}: is a folder, whose files are only read with --out-of-core")
    dataset = files.read_data(arguments.data, arguments)
    holdout = options.holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed or 0})
    return dataset, {"holdout": holdout}, data_lines(arguments.data, dataset)


def _table_on_disk(arguments: Namespace) -> tuple[Any, dict[str, Any], Iterable[str]]:
    if arguments.holdout is not None:
        raise Refused("--holdout cannot be used with --out-of-core: rows are drawn from a table in memory")
    if arguments.cluster is not None and arguments.work is None:
        raise Refused("--cluster needs --work, a folder that its workers share")
    declared = files.declaration(arguments.data, arguments)
    if declared["target"] is None and declared["schema"] is None:
        raise Refused("which column is to be predicted? Give --target")
    lines: list[str] = []

    def show(dataset: "espalier.Dataset") -> None:
        files.print_notices(dataset)
        lines.extend(data_lines(arguments.data, dataset))

    given = {
        "memory_limit": DEFAULT_MEMORY if arguments.memory is None else arguments.memory,
        "work": arguments.work,
        "cluster": arguments.cluster,
        "declared": declared,
        "on_read": show,
    }
    return arguments.data if arguments.data.is_dir() else files.existing(arguments.data), given, lines


COMMANDS: Mapping[str, Command] = {"train": Command("train a model on a file", _arguments, train)}
