"""CSV as text: its names and its lines, checked to be a table, before anything is read into its cells."""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from espalier.errors import DataError, Fault

__all__ = ["LONG_CELL", "check_names", "ragged", "read_csv_text", "unreadable"]

LONG_CELL: Final = "long_cell"
"""The code of a cell that is longer than `csv.reader` takes."""
GZIP_MAGIC: Final = b"\x1f\x8b"
BYTE_ORDER_MARK: Final = "\ufeff"
OTHER_SEPARATORS: Final = ";\t|"


def read_csv_text(source: str | bytes | Path) -> tuple[list[str], list[list[str]]]:
    """Read CSV into its names and its lines of texts, each as long as the names.

    Raises:
        DataError: Not UTF-8, NUL bytes, no names, a name twice, no lines, a line of another length (with its number).
    """
    reader = csv.reader(io.StringIO(_csv_content(source), newline=""), strict=True)
    try:
        names = next(reader, None)
        names = names or []
        check_names(names)
        lines = []
        for line in reader:
            if not line:
                continue
            if len(line) != len(names):
                raise ragged(reader.line_num, len(line), names)
            lines.append(line)
    except csv.Error as error:
        raise unreadable(reader.line_num, error) from None
    if not lines:
        raise DataError([Fault("", "empty", f"the CSV has {len(names)} column names and no rows")])
    return names, lines


def unreadable(line: int, error: csv.Error) -> DataError:
    """Give the error of a line that `csv.reader` does not take; it has a limit of its own for a cell."""
    is_long = str(error).startswith("field larger than")
    what = f" has a cell of more than {csv.field_size_limit()} characters" if is_long else f": {error}"
    return DataError([Fault("", LONG_CELL if is_long else "not_csv", f"not CSV: line {line}{what}")])


def _csv_content(source: str | bytes | Path) -> str:
    if isinstance(source, str):
        text = source.removeprefix(BYTE_ORDER_MARK)
    else:
        content = source.read_bytes() if isinstance(source, Path) else source
        if isinstance(source, Path) and content[:2] == GZIP_MAGIC:
            content = _decompressed(content)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"not CSV: byte {error.start} is not UTF-8 text"
            raise DataError([Fault("", "not_csv", message)]) from None
    if "\0" in text:
        raise DataError([Fault("", "not_csv", "not CSV: it holds NUL characters")])
    return text


def _decompressed(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        raise DataError([Fault("", "not_csv", "not CSV: the gzip file is damaged or cut short")]) from None


def ragged(line: int, n_cells: int, names: Sequence[str]) -> DataError:
    """Give the error for a line of another number of cells than there are names."""
    message = f"line {line} has {n_cells} cells, the first line has {len(names)} name{'s' if len(names) > 1 else ''}"
    if len(names) == 1 and any(sign in names[0] for sign in OTHER_SEPARATORS):
        message += ": cells must be separated by commas"
    return DataError([Fault("", "ragged", message)])


def check_names(names: Sequence[str]) -> None:
    """See that each column has a name of its own.

    Raises:
        DataError: Every column that has none.
    """
    if not names:
        raise DataError([Fault("", "empty", "the CSV is empty: the first line must hold the column names")])
    faults = [
        Fault("", "empty_name", f"column {place + 1} has no name") for place, name in enumerate(names) if name == ""
    ]
    twice = sorted(name for name, n_columns in Counter(names).items() if name and n_columns > 1)
    faults += [Fault("", "duplicate", f"two columns are called {name!r}") for name in twice]
    if faults:
        raise DataError(faults)
