"""Data sets whose columns are files of a folder. Each access to a column memory-maps its file."""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import orjson

from espalier.data.assembly import Block, TableAssembler
from espalier.data.dataset import Column, Dataset, flags_of
from espalier.data.declaration import declare
from espalier.data.notices import Notice
from espalier.data.readers import FORMATS, format_of
from espalier.data.readers.source import TableFile, opened
from espalier.data.schema import Feature, Role, Schema
from espalier.errors import DataError, Fault, pointer

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
CELLS_OF_A_PART: Final = 1_000_000
BYTES_IN_MEMORY: Final = 2**23
NO_TYPE: Final = "null"
"""Type of a column that has no values in one file; in the other files, it may have any type."""


@dataclass(frozen=True, slots=True)
class LazyColumns(Sequence[Any]):
    """Columns that are computed when they are read.

    Attributes:
        read: Function that returns the column with a given index.
    """

    n_columns: int
    read: Callable[[int], Column]

    def __len__(self) -> int:
        return self.n_columns

    def __getitem__(self, place: Any) -> Any:
        if not -self.n_columns <= place < self.n_columns:
            raise IndexError(place)
        return self.read(place % self.n_columns)


def each_column(work: Callable[..., Column], columns: Sequence[Column], *others: Sequence[Any]) -> Sequence[Column]:
    """Return ``work(column, …)`` for each column. If the columns are lazy, a result is computed when it is read."""
    if not isinstance(columns, LazyColumns):
        return tuple(map(work, columns, *others))
    return LazyColumns(len(columns), lambda place: work(columns[place], *(other[place] for other in others)))


@dataclass(frozen=True, eq=False, repr=False)
class StoredDataset(Dataset):
    """A data set whose columns are files.

    Attributes:
        flags: Names of the attributes with a missing value, and names of the attributes with an infinite number.
        stored_rows: Number of rows.
    """

    flags: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    stored_rows: int = 0

    def __post_init__(self) -> None:
        self.__dict__["_flagged_attributes"] = self.flags

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stored_rows

    @cached_property
    def attributes(self) -> Any:
        """The columns of ``schema.attributes``, in that order."""
        places = [place for place, feature in enumerate(self.schema.features) if feature.role is Role.ATTRIBUTE]
        return LazyColumns(len(places), lambda place: self.columns[places[place]])

    @cached_property
    def weight(self) -> npt.NDArray[np.float64]:
        """Row weights, float64 (n_rows,): the weight column or, without it, a view of a single 1."""
        declared = next(self._columns_of(Role.WEIGHT), None)
        equal_weights = np.broadcast_to(np.float64(1.0), self.n_rows)
        return equal_weights if declared is None else np.asarray(declared, dtype=np.float64)

    def parts(self) -> Iterator[Dataset]:
        """Yield consecutive blocks of the rows, each as a data set in memory."""
        n_rows = max(1, CELLS_OF_A_PART // len(self.columns))
        for first in range(0, self.n_rows, n_rows):
            cells: Iterator[Any] = (np.array(column[first : first + n_rows]) for column in self.columns)
            yield Dataset(self.schema, tuple(cells))


def store_dataset(
    paths: Sequence[TableFile | str], folder: Path | str, *, check: Callable[[], None] = lambda: None, **declared: Any
) -> StoredDataset:
    """Join files into one table, and write each column of the table to a file.

    Args:
        paths: Files in CSV, NDJSON, Parquet, Arrow or ARFF. All must have the same columns, except NDJSON files.
        folder: Folder for the columns' files and for a temporary file.
        check: Called between blocks of rows. It may raise an exception to end the reading.
        **declared: As in `dataset_from_columns`, without `limits`.

    Raises:
        DataError: A file cannot be parsed, a file (except NDJSON) has other columns or types than the first file that
            has rows, or the disk is full; or as in `dataset_from_columns`.
        SchemaError, TooLarge, MemoryError: As in `read_table`.
    """
    declaration, labelled = declare(**declared), frozenset[str]()
    files, folder = [Path(path) if isinstance(path, str) else path for path in paths], Path(folder)
    forms = [_form_of(file, len(files)) for file in files]  # checked before the first file is read
    with full_disk_refused():
        while True:
            assembler = TableAssembler(declaration, labelled=labelled, folder=folder, bytes_in_memory=BYTES_IN_MEMORY)
            with closing(assembler):
                for block in _blocks(files, forms, assembler):
                    check()
                    assembler.add(block)
                if not assembler.misread:
                    return _stored(assembler, folder)
            labelled = assembler.misread


def store_parts(parts: Iterable[Dataset], folder: Path, *, check: Callable[[], None] = lambda: None) -> StoredDataset:
    """Join data sets with the same schema into one table, and write each column of the table to a file.

    Args:
        parts: Data sets with the same schema.
        folder: Folder for the columns' files. It must not contain such files, because cells would be appended to them.
        check: Called between parts. It may raise an exception to end the writing.

    Raises:
        DataError: There are no rows, a part is no data set or has another schema than the first, or the disk is full.
    """
    schema, declared, flagged, n_rows = None, b"", [], 0
    with full_disk_refused():
        for part in parts:
            check()
            if not isinstance(part, Dataset):
                raise DataError([Fault("", "wrong_type", f"must be data sets, not a {type(part).__name__}")])
            if schema is None:
                schema, flagged = part.schema, [(False, False)] * len(part.columns)
                declared = orjson.dumps(schema.to_dict())
            if orjson.dumps(part.schema.to_dict()) != declared:  # unlike ==, it tells 1 from true and from 1.0
                raise DataError([Fault("", "other_columns", f"the schema changes after row {n_rows}")])
            for place, column in enumerate(part.columns if part.n_rows else ()):
                cells: Any = np.ascontiguousarray(column, _stored_kind(schema.features[place]))
                with (folder / f"column-{place}").open("ab") as file:
                    file.write(cells.data.cast("B"))
                lacks, is_infinite = flags_of(cells)
                flagged[place] = flagged[place][0] or lacks, flagged[place][1] or is_infinite
            n_rows += part.n_rows
    if schema is None or not n_rows:
        raise DataError([Fault("", "empty", "there are no rows")])
    return _dataset(schema, flagged, (), n_rows, folder)


@contextmanager
def full_disk_refused() -> Iterator[None]:
    """Turn the error of a full disk into a `DataError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        message = f"the work folder cannot be written to: {error.strerror}"
        raise DataError([Fault("/work", "disk_full", message)]) from error


def _form_of(path: TableFile, n_files: int) -> str:
    """Return the format of a file. Raise DataError if it is unknown or not read in blocks of rows."""
    try:
        form = format_of(path.name)
    except DataError as error:
        raise _of_file(error, path, n_files) from None
    if FORMATS[form].read is None:
        message = f"{path.name}: {form} is read as a whole; give ndjson, one row per line"
        raise DataError([Fault("", "unknown_format", message)])
    return form


def _blocks(paths: Sequence[TableFile], forms: Sequence[str], assembler: TableAssembler) -> Iterator[Block]:
    first: dict[str, Any] | None = None
    for path, form in zip(paths, forms, strict=True):
        read: Any = FORMATS[form].read
        with opened(path) as source:
            try:
                for block in read(source, assembler):
                    if block.n_rows or (path is paths[-1] and not assembler.n_rows):
                        first = first if form == "ndjson" else _checked(block, first)
                        yield block
            except DataError as error:
                # A reader refuses a file without rows if there are no rows yet; a later file may have some.
                if error.faults[0].code != "empty" or (path is paths[-1] and not assembler.n_rows):
                    raise _of_file(error, path, len(paths)) from None


def _of_file(error: DataError, path: TableFile, n_files: int) -> DataError:
    """Return an error whose messages name the file if there are several files."""
    if n_files == 1:
        return error
    return DataError(Fault(each.path, each.code, f"{path.name}: {each.message}") for each in error.faults)


def _checked(block: Block, first: dict[str, Any] | None) -> dict[str, Any]:
    """Return the type of each column by name. `first` holds the types in earlier files; None for the first file.

    Raises:
        DataError: The columns or types of `block` differ from those of earlier files.
    """
    columns = {column.name: NO_TYPE if column.is_null else column.kind for column in block.columns}
    if first is None or first == columns:
        return columns
    faults = [Fault(pointer(name), "other_columns", "is not in this file") for name in first if name not in columns]
    for name, kind in columns.items():
        if name not in first:
            faults.append(Fault(pointer(name), "other_columns", "is not in the first file"))
        elif kind != first[name] and NO_TYPE not in (kind, first[name]):
            message = f"is {kind} in this file and {first[name]} in the first"
            if None in (kind, first[name]):  # a column of CSV
                message = "has a type in some files and none in the CSV files: give files of one format"
            faults.append(Fault(pointer(name), "other_columns", message))
    DataError.raise_for(faults)
    return {name: columns[name] if kind is NO_TYPE else kind for name, kind in first.items()}


def _stored(assembler: TableAssembler, folder: Path) -> StoredDataset:
    flagged: list[tuple[bool, bool]] = []

    def keep(array: Column) -> None:
        contiguous: Any = np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.float64)
        (folder / f"column-{len(flagged)}").write_bytes(contiguous.data.cast("B"))
        flagged.append(flags_of(contiguous))

    schema, notices = assembler.store(keep)
    return _dataset(schema, flagged, notices, assembler.n_rows, folder)


def _dataset(
    schema: Schema, flagged: Sequence[tuple[bool, bool]], notices: tuple[Notice, ...], n_rows: int, folder: Path
) -> StoredDataset:
    """Return the data set of a folder; `flagged` holds the result of `flags_of` for each column."""
    kinds = [_stored_kind(feature) for feature in schema.features]
    lazy = LazyColumns(len(kinds), lambda place: _mapped(folder / f"column-{place}", kinds[place]))
    columns = cast("tuple[Column, ...]", lazy)
    pairs = [pair for pair in zip(schema.features, flagged, strict=True) if pair[0].role is Role.ATTRIBUTE]
    missing, infinite = (frozenset(feature.name for feature, flag in pairs if flag[at]) for at in range(2))
    return StoredDataset(schema, columns, notices, (missing, infinite), n_rows)


def _stored_kind(feature: Feature) -> Any:
    return np.int32 if feature.coded else np.float64


def _mapped(path: Path, kind: Any) -> Column:
    return cast("Column", np.memmap(path, kind, mode="r").view(np.ndarray))
