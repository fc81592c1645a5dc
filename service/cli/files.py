"""Read the input files of commands, and write their output files."""

import json
import os
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

import espalier
from service.cli import Refused, lines_of

SHOWN_NOTICES: Final = 5
FORMATS: Final = "CSV, JSON, NDJSON, Parquet, Arrow or ARFF, by the ending of the name; each also as .gz"


@contextmanager
def about(subject: Path | str) -> Iterator[None]:
    """Convert an `EspalierError` or `OSError` of the block to a `Refused` whose lines all begin with `subject`."""
    try:
        yield
    except (espalier.EspalierError, OSError) as error:
        raise Refused("\n".join(f"{subject}: {line}" for line in lines_of(error))) from None


def read_data(file: Path, arguments: Namespace) -> "espalier.Dataset":
    """Read a file as the arguments of `options.data_arguments` declare it; raise `Refused` if no target is declared."""
    dataset = dataset_of(file, **declaration(file, arguments))
    if dataset.schema.target is None:
        columns = espalier.listed(feature.name for feature in dataset.schema.features)
        raise Refused(f"{file}: which column is to be predicted? Give --target, one of: {columns}")
    return dataset


def declaration(file: Path, arguments: Namespace) -> dict[str, Any]:
    """Return the values of `options.data_arguments` as keyword arguments of `dataset_of`; read the schema file."""
    beside = _schema_beside(file)
    schema = _read_schema(arguments.schema or (beside if beside.is_file() else None))
    return {"schema": schema} | {name: getattr(arguments, name) for name in ("target", "task", "weight", "ignore")}


def _schema_beside(file: Path) -> Path:
    return file.with_name(f"{stem_of(file)}.schema.json") if file.name else file


def stem_of(file: Path) -> str:
    """Return the name of a file without the ending of its format and without .gz."""
    return Path(file.stem if file.suffix.lower() == ".gz" else file.name).stem


def dataset_of(file: Path, **declared: Any) -> "espalier.Dataset":
    """Read a file in the format of its ending, or as CSV if the ending is not known, and print the notices."""
    with about(file):
        dataset = espalier.dataset_from_file(existing(file), form=form_of(file), **declared)
    print_notices(dataset)
    return dataset


def print_notices(dataset: "espalier.Dataset") -> None:
    """Print the notices of a table to standard error: up to `SHOWN_NOTICES` of each code, and the number of others."""
    by_code: dict[str, list[str]] = {}
    for notice in dataset.notices:
        by_code.setdefault(notice.code, []).append(notice.message)
    for messages in by_code.values():
        hidden = len(messages) - SHOWN_NOTICES
        for message in (*messages[:SHOWN_NOTICES], *([f"the same for {hidden} more columns"] if hidden > 0 else [])):
            print(f"notice    {message}", file=sys.stderr)


def read_model(file: Path) -> "espalier.Model":
    """Read a model file."""
    with about(file):
        return espalier.from_json(existing(file).read_bytes())


def read_tree(file: Path) -> "espalier.Model":
    """Read a model file; raise `Refused` if it is a list of rules, not a tree."""
    model = read_model(file)
    with about(file):
        _ = model.tree
    return model


def existing(file: Path) -> Path:
    """Return the path; raise `Refused` if there is no such file, or if it is not a regular file."""
    if not file.is_file():
        raise Refused(f"{file}: {'is no regular file' if file.exists() else 'there is no such file'}")
    return file


def form_of(file: Path) -> str:
    """Return the format of a file by the ending of its name, or CSV if the ending is not known."""
    try:
        return espalier.format_of(file)
    except espalier.DataError:
        return "csv"


def _read_schema(file: Path | None) -> dict[str, Any] | None:
    if file is None:
        return None
    try:
        document = json.loads(existing(file).read_bytes())
    except (ValueError, RecursionError) as error:
        raise Refused(f"{file}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f'{file}: a schema must be an object: {{"target": …, "columns": […]}}')
    return document


def check_out(arguments: Namespace) -> None:
    """Raise `Refused` if ``--out`` is a folder, an input, in a folder that does not exist, or in a data or work folder.

    Only ``prune`` and ``rules`` may replace the model that they read.
    """
    if (file := arguments.out) is None:
        return
    if not file.parent.is_dir():
        raise Refused(f"{file}: there is no folder {file.parent}")
    if file.is_dir():
        raise Refused(f"{file}: is a folder; give the name of a file")
    given = vars(arguments)
    folders = [given["data"], given["work"] or given["data"]] if given.get("out_of_core") else []
    if any(Path(folder).resolve() in file.resolve().parents for folder in folders):
        raise Refused(f"{file}: is in a folder that this command reads or removes; give another file to write to")
    inputs = ["data", "rows", "schema", "holdout", "file"] + ["model"] * (arguments.command not in {"prune", "rules"})
    reads_beside = "schema" in given and given["schema"] is None and isinstance(given.get("data"), Path)
    beside = [_schema_beside(given["data"])] if reads_beside else []
    for read in (*beside, *map(given.get, inputs)):
        with suppress(OSError, ValueError):  # if no file can have this name
            if isinstance(read, Path) and file.samefile(read):
                raise Refused(f"{file}: is read by this command and would be lost; give another file to write to")


def write_whole(file: Path, content: bytes) -> None:
    """Write a file as a whole or not at all, so that no reader sees half of it; write devices and pipes directly."""
    if output := {"/dev/stdout": sys.stdout, "/dev/stderr": sys.stderr}.get(str(file)):
        output.flush()
        output.buffer.write(content)
        return
    partial = file.with_name(f".espalier-{os.getpid()}")
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(content)
            return
        target = file.resolve()  # so that a symbolic link remains a link
        partial = target.with_name(partial.name)
        partial.touch(0o600 if file.exists() else 0o666)
        partial.write_bytes(content)
        if file.exists():
            partial.chmod(stat.S_IMODE(file.stat().st_mode))  # a private file stays private
        partial.replace(target)
    except (OSError, RuntimeError) as error:  # RuntimeError: a symbolic link that leads to itself
        raise Refused(f"{file}: cannot be written: {getattr(error, 'strerror', error)}") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_or_print(file: Path | None, content: str | bytes, *, report: TextIO | None = None) -> None:
    """Write text or bytes to a file, and the file's name to `report`; if `file` is None, write to standard output."""
    if file is not None:
        write_whole(file, content.encode() if isinstance(content, str) else content)
        if report is not None:
            print(f"written   {file}", file=report)
    elif isinstance(content, str):
        sys.stdout.write(content)
    else:
        sys.stdout.buffer.write(content)
