"""Data sets from files and streams of bytes, whatever their format: one table of formats, one way in."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from espalier.arff import arff_blocks
from espalier.arrow_files import arrow_blocks, parquet_blocks
from espalier.csv_blocks import csv_blocks
from espalier.csv_lines import ByteStream
from espalier.dataset import Column, Dataset
from espalier.dataset_file import DatasetFile
from espalier.declaring import Declared
from espalier.errors import DataError, Fault
from espalier.gathering import Block, Gatherer
from espalier.json_tables import dataset_from_json, json_rows, ndjson_blocks, ndjson_rows
from espalier.limits import UNLIMITED, Limits
from espalier.reading import rows_from_csv
from espalier.schema import Schema
from espalier.sources import Source, opened

__all__ = ["FORMATS", "Table", "dataset_from_csv", "dataset_from_file", "format_of", "read_table", "rows_from_file"]

PACKED: Final = ".gz"


class Table(Protocol):
    """What can be said of a data set wherever its cells are: `Dataset`, in memory, and `DatasetFile`, in a file."""

    @property
    def schema(self) -> Schema:
        """Kind, role and categories of each column."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the data."""
        ...

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the schema and every cell."""
        ...

    def stretch(self, start: int, stop: int) -> Iterator[Column]:
        """Give the cells of rows ``start:stop``, an array a column."""
        ...


Blocks = Callable[..., Iterator[Block]]
Whole = Dataset | DatasetFile


@dataclass(frozen=True, slots=True)
class Format:
    """A format of tables: the endings of its files, and how it is read."""

    endings: tuple[str, ...]
    read: Callable[[Source, Limits, dict[str, Any]], Whole]


def _in_stretches(blocks: Blocks) -> Callable[[Source, Limits, dict[str, Any]], Whole]:
    def read(source: Source, limits: Limits, declared: dict[str, Any]) -> Whole:
        gatherer = Gatherer(Declared(**declared), limits=limits)
        try:
            for block in blocks(source, gatherer, limits=limits):
                gatherer.add(block)
            if gatherer.missed:
                source.rewind()
                gatherer.read_again()
                for block in blocks(source, gatherer, limits=limits):
                    gatherer.add(block)
            return gatherer.finish()
        except BaseException:
            gatherer.close()
            raise

    return read


def _json(source: Source, limits: Limits, declared: dict[str, Any]) -> Whole:
    return dataset_from_json(source.file().read(), limits=limits, **declared)


FORMATS: Final = MappingProxyType(
    {
        "csv": Format((".csv",), _in_stretches(csv_blocks)),
        "json": Format((".json",), _json),
        "ndjson": Format((".ndjson", ".jsonl"), _in_stretches(ndjson_blocks)),
        "parquet": Format((".parquet",), _in_stretches(parquet_blocks)),
        "arrow": Format((".arrow", ".arrows", ".feather"), _in_stretches(arrow_blocks)),
        "arff": Format((".arff",), _in_stretches(arff_blocks)),
    }
)
"""By name."""


def read_table(stream: ByteStream | Source, form: str, *, limits: Limits = UNLIMITED, **declared: Any) -> Table:
    r"""Read a data set from a stream, as large as the disk allows: its cells are in a temporary file, if need be.

    Args:
        stream: Bytes as they come; read once.
        form: One of `FORMATS`.
        limits: How large the table may be.
        **declared: As in `espalier.reading.dataset_from_columns`; it stands over what the format says of a column.

    Raises:
        DataError: It is not in this format, or no table, and all that `dataset_from_columns` raises.
        SchemaError: The declaration is wrong.
        TooLarge: The table passes a limit; it was not read further.
        MemoryError: A Parquet file or an Arrow stream asks for more memory than there is.

    >>> import io
    >>> table = read_table(io.BytesIO(b"wind,play\nweak,yes\nstrong,no\n"), "csv", target="play")
    >>> table.n_rows, table.schema.task
    (2, 'classification')
    """
    if isinstance(stream, Source):
        return FORMATS[form].read(stream, limits, declared)
    source = Source(stream, limits=limits)
    try:
        return FORMATS[form].read(source, limits, declared)
    finally:
        source.close()


def dataset_from_file(path: Path, *, form: str | None = None, **declared: Any) -> Dataset:
    """Read a data set from a file: CSV, JSON, NDJSON, Parquet, Arrow or ARFF, each packed by gzip or not.

    Args:
        path: Its ending says the format, as in ``table.csv`` and ``table.csv.gz``.
        form: The format, one of `FORMATS`, whatever the ending.
        **declared: As in `espalier.reading.dataset_from_columns`.

    Raises:
        DataError: No such format, and all that `read_table` raises.
        SchemaError: The declaration is wrong.
        OSError: The file cannot be read.
    """
    form = format_of(path) if form is None else form
    with opened(path) as source:
        return _in_memory(FORMATS[form].read(source, UNLIMITED, declared))


def dataset_from_csv(source: str | bytes | Path, **declared: Any) -> Dataset:
    r"""Read a data set from CSV (RFC 4180, comma, first line the names, UTF-8).

    Args:
        source: A `Path` (packed by gzip or not), the content as bytes, or the content as text.
        **declared: As in `espalier.reading.dataset_from_columns`. An empty cell is a missing value.

    Raises:
        DataError: Not CSV, ragged lines, no rows, and all that `dataset_from_columns` raises. Of text that is one line,
            such as the name of a file, it is said that it was read as the content.

    >>> dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play").n_rows
    2
    """
    if isinstance(source, Path):
        return dataset_from_file(source, form="csv", **declared)
    content = io.BytesIO(source.encode(errors="surrogatepass") if isinstance(source, str) else source)
    try:
        return _in_memory(FORMATS["csv"].read(Source(content, kept=content), UNLIMITED, declared))
    except DataError as error:
        raise _perhaps_a_path(error, source) from None


def _perhaps_a_path(error: DataError, source: str | bytes) -> DataError:
    first = error.faults[0]
    if isinstance(source, bytes) or first.code != "empty" or len(source.splitlines()) != 1:
        return error
    hint = "; text is read as the content itself: to read a file, give a pathlib.Path"
    return DataError([Fault(first.path, first.code, first.message + hint)])


def rows_from_file(schema: Schema, path: Path, *, form: str | None = None) -> list[Mapping[str, Any]]:
    """Read rows to be answered from a file in any of `FORMATS`; see `rows_from_csv` for CSV.

    Its ending says the format, unless it is given.

    Raises:
        DataError: No such format, or the file is not in it.
    """
    form = format_of(path) if form is None else form
    if form == "csv":
        return list(rows_from_csv(schema, path))
    with opened(path) as source:
        if form == "json":
            return json_rows(source.file().read())
        if form == "ndjson":
            return ndjson_rows(source)
        return list(_in_memory(FORMATS[form].read(source, UNLIMITED, {})).rows())


def format_of(path: Path | str) -> str:
    """Say which of `FORMATS` the ending of a file's name means.

    Raises:
        DataError: None of them.

    >>> format_of("table.jsonl.gz")
    'ndjson'
    """
    name = str(path).lower().removesuffix(PACKED)
    for form, known in FORMATS.items():
        if name.endswith(known.endings):
            return form
    legal = ", ".join(ending for known in FORMATS.values() for ending in known.endings)
    message = f"the ending of the file's name must say its format: {legal}, each also followed by {PACKED}"
    raise DataError([Fault("", "unknown_format", message)])


def _in_memory(table: Whole) -> Dataset:
    if isinstance(table, Dataset):
        return table
    try:
        return table.dataset()
    finally:
        table.close()
