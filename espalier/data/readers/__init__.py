"""Read data sets from files, streams of bytes and data frames."""

import io
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from espalier.data.assembly import Block, TableAssembler
from espalier.data.dataset import Dataset
from espalier.data.declaration import declare
from espalier.data.inference import dataset_of_columns, dataset_with_warnings
from espalier.data.limits import UNLIMITED, Limits
from espalier.data.readers.arff import read_arff
from espalier.data.readers.arrow import read_arrow, read_parquet
from espalier.data.readers.csv import read_csv
from espalier.data.readers.frames import columns_of_frame
from espalier.data.readers.json import dataset_from_json, read_ndjson
from espalier.data.readers.source import ByteStream, Source, opened
from espalier.data.schema import Schema
from espalier.data.spill import MAX_BYTES_IN_MEMORY
from espalier.errors import DataError, Fault, listed

PACKED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of tables.

    Attributes:
        endings: The endings of file names in this format.
        read: Function that yields the blocks of a table; None for JSON, which is read as a whole.
    """

    endings: tuple[str, ...]
    read: Callable[..., Iterator[Block]] | None


FORMATS: Final = MappingProxyType(
    {
        "csv": Format((".csv",), read_csv),
        "json": Format((".json",), None),
        "ndjson": Format((".ndjson", ".jsonl"), read_ndjson),
        "parquet": Format((".parquet",), read_parquet),
        "arrow": Format((".arrow", ".arrows", ".feather"), read_arrow),
        "arff": Format((".arff",), read_arff),
    }
)


def read_table(stream: ByteStream, form: str, *, limits: Limits = UNLIMITED, **declared: Any) -> Dataset:
    r"""Read a data set from a stream. A large table is memory-mapped from a temporary file, unless it is JSON.

    Args:
        stream: A stream of bytes, which is read once.
        form: One of `FORMATS`.
        limits: Limits on the size of the table.
        **declared: As in `dataset_from_columns`. A declared kind overrides the column's type in the file.

    Raises:
        DataError: `form` is no format, the stream is not a table in it, or as in `dataset_from_columns`.
        SchemaError: The declaration is wrong.
        TooLarge: The table exceeds a limit, or a line of CSV is longer than 16 MiB.
        MemoryError: A Parquet file or an Arrow stream needs more memory than there is.

    >>> import io
    >>> table = read_table(io.BytesIO(b"wind,play\nweak,yes\nstrong,no\n"), "csv", target="play")
    >>> table.n_rows, table.schema.task
    (2, 'classification')
    """
    with closing(Source(stream, limits=limits)) as source:
        return read_source(source, form, limits=limits, bytes_in_memory=MAX_BYTES_IN_MEMORY, **declared)


def dataset_from_arrow(table: Any, **declared: Any) -> Dataset:
    """Read a data set from a pandas, polars or pyarrow table, or anything with ``__arrow_c_stream__``.

    Texts and categoricals become categories, dates and timestamps become datetimes, and booleans stay booleans. An
    unordered categorical of dates or booleans is read like a plain column. Numbers stay numbers; a target of at most 20
    distinct whole numbers becomes classes.

    Args:
        table: The table.
        **declared: As in `dataset_from_columns`, without `limits`. A declared kind overrides the column's type.

    Raises:
        DataError: `table` is not a table or has no rows, or as in `dataset_from_columns`.
        SchemaError: The declaration is wrong.

    >>> import pandas
    >>> frame = pandas.DataFrame({"wind": ["weak", "strong"], "hours": [3.5, None], "play": ["yes", "no"]})
    >>> [str(feature.kind) for feature in dataset_from_arrow(frame, target="play").schema.features]
    ['nominal', 'numeric', 'nominal']
    """
    return dataset_of_columns(columns_of_frame(table), declare(**declared))


def as_dataset(table: Any, **declared: Any) -> Dataset:
    """Return `table` if it is a `Dataset`; else read it as `dataset_from_arrow` does, and warn of changed values."""
    return table if isinstance(table, Dataset) else dataset_with_warnings(columns_of_frame(table), declare(**declared))


def attributes_of(table: Any, schema: Schema) -> Dataset:
    """Return a data set of those columns of `table` that are attributes of `schema`. Other columns are not read.

    Changed values give a warning, as in `as_dataset`.

    Raises:
        DataError: The table has none of the attributes, or as in `dataset_from_arrow`.
    """
    like = Schema(schema.attributes, schema.missing_values)
    names = {feature.name for feature in like.features}
    if not isinstance(table, Dataset):
        columns = columns_of_frame(table, names)
        check_has_attributes([column.name for column in columns], schema)
        return dataset_with_warnings(columns, declare(like=like))
    check_has_attributes([feature.name for feature in table.schema.features], schema)
    pairs = [pair for pair in zip(table.schema.features, table.columns, strict=True) if pair[0].name in names]
    return Dataset(Schema(tuple(feature for feature, _ in pairs)), tuple(column for _, column in pairs))


def check_has_attributes(names: Collection[str], schema: Schema) -> None:
    """Raise `DataError` if none of a table's column names is the name of an attribute of `schema`."""
    attributes = [feature.name for feature in schema.attributes]
    if not any(name in names for name in attributes):
        message = f"the table has none of the model's attributes: {listed(attributes)}"
        raise DataError([Fault("", "no_attributes", message)])


def dataset_from_file(path: Path | str, *, form: str | None = None, **declared: Any) -> Dataset:
    """Read a data set from a file: CSV, JSON, NDJSON, Parquet, Arrow or ARFF, each also compressed with gzip.

    Args:
        path: The file, such as ``table.csv`` or ``table.csv.gz``.
        form: The format, one of `FORMATS`; if None, the ending of the file's name decides.
        **declared: As in `dataset_from_columns`.

    Raises:
        DataError: No format has this ending, or as in `read_table`.
        SchemaError, TooLarge, MemoryError: As in `read_table`.
        OSError: The file cannot be read.
    """
    form = format_of(path) if form is None else form
    with opened(path, limits=declared.get("limits", UNLIMITED)) as source:
        return read_source(source, form, **declared)


def dataset_from_csv(source: str | bytes | Path, **declared: Any) -> Dataset:
    r"""Read a data set from CSV (RFC 4180: commas, the first line holds the names, UTF-8).

    Args:
        source: A `Path` (also of a file compressed with gzip), the content as bytes, or the content as text.
        **declared: As in `dataset_from_columns`. An empty cell is a missing value.

    Raises:
        DataError: The source is not CSV, has no rows or has rows of different length; or as in `dataset_from_columns`.
        SchemaError: The declaration is wrong.
        TooLarge: A line is longer than 16 MiB, or the table exceeds a limit.
        OSError: The file cannot be read.

    >>> dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play").n_rows
    2
    """
    if isinstance(source, Path):
        return dataset_from_file(source, form="csv", **declared)
    content = io.BytesIO(source.encode(errors="surrogatepass") if isinstance(source, str) else source)
    try:
        return read_source(Source(content, limits=declared.get("limits", UNLIMITED), is_file=True), "csv", **declared)
    except DataError as error:
        first = error.faults[0]
        if isinstance(source, bytes) or first.code != "empty" or len(source.splitlines()) != 1:
            raise
        hint = "; text is read as the content itself: to read a file, give a pathlib.Path"
        raise DataError([Fault(first.path, first.code, first.message + hint)]) from None


def read_source(
    source: Source, form: str, *, limits: Limits = UNLIMITED, bytes_in_memory: int | None = None, **declared: Any
) -> Dataset:
    """Read a data set. Except for JSON, columns are memory-mapped if all cells exceed `bytes_in_memory` bytes."""
    if form not in FORMATS:
        raise DataError([Fault("", "unknown_format", f"the format must be one of {', '.join(FORMATS)}")])
    read = FORMATS[form].read
    if read is None:
        return dataset_from_json(source.rewind().read(), limits=limits, **declared)
    declaration = declare(**declared)
    labelled: frozenset[str] = frozenset()
    while True:
        assembler = TableAssembler(declaration, limits=limits, labelled=labelled, bytes_in_memory=bytes_in_memory)
        with closing(assembler):
            for block in read(source, assembler):
                assembler.add(block)
            if not assembler.misread:
                return assembler.dataset()
        labelled = assembler.misread
        source.rewind()


def format_of(path: Path | str) -> str:
    """Return the format, one of `FORMATS`, that belongs to the ending of a file's name.

    Raises:
        DataError: No format has this ending.

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
