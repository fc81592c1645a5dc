"""The store: a folder or bucket of Parquet files, set by ESPALIER_STORE. Data sets refer to its files; rows stay there.

Requests name files by paths below the store; other files are refused. A registered file is read only if it has not
changed. Its size must be the same, and its ETag (in a bucket) or its time of modification (in a folder).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import espalier
from service.errors import StoreChanged, StoreUnavailable, ValidationFailed
from service.serialization import load_pyarrow
from service.serialization.dataset_chunks import chunk_rows

NO_STORE: Final = "none"
SETTING: Final = "ESPALIER_STORE"
ENDING: Final = ".parquet"
MAX_FILES: Final = 1_000
MAX_REFERENCE_CHARS: Final = 1_000
PART: Final = re.compile(r"[^._\x00-\x1f\x7f/\\:*?][^\x00-\x1f\x7f/\\:*?]*")
"""One name in a reference; files and folders whose names begin with a dot or an underscore are hidden."""
LEGAL: Final = (
    f"must be a path below the store, such as sales/2026 or sales/2026.parquet: a Parquet file or a folder of such, "
    f"at most {MAX_REFERENCE_CHARS} characters; no part begins with a dot or an underscore, or has one of / \\ : * ?"
)


@dataclass(frozen=True, slots=True)
class StoreFile:
    """The state of a Parquet file when it was registered.

    Attributes:
        path: The path below the store.
        size: Bytes.
        version: The ETag of an object, or the time of a file's last modification, in nanoseconds.
        n_rows: Number of rows; None before it is read.
    """

    path: str
    size: int
    version: str
    n_rows: int | None = None


@cache
def store_at(url: str) -> "Store":
    """Return the store at a URL ``file:///…`` or ``s3://…`` (see `pyarrow.fs.FileSystem.from_uri`).

    Raises:
        StoreUnavailable: The URL is ``none``, or names no store that can be used.
    """
    if url == NO_STORE:
        raise StoreUnavailable(f"the rows are below a store, and {SETTING} is not set: set it as before")
    with _failures():
        system, root = _file_systems().FileSystem.from_uri(url)
        return Store(system, root)


class Store:
    """A folder or a bucket of Parquet files; nothing is written to it."""

    def __init__(self, system: Any, root: str) -> None:
        self._system, self._root = system, root.rstrip("/")
        self._is_local = isinstance(system, _file_systems().LocalFileSystem)

    def check(self) -> None:
        """Raise `StoreUnavailable` if the root does not answer, does not exist, or is a file."""
        with _failures():
            info = self._system.get_file_info(self._root)
        if info.type.name == "NotFound":
            raise StoreUnavailable(f"the folder or bucket that {SETTING} names does not exist: restore it")
        if info.is_file:
            raise StoreUnavailable(f"{SETTING} names a file, not a folder or bucket of files")

    def files(self, reference: object) -> list[StoreFile]:
        """Return the file that `reference` names, or the visible files of a folder, sorted by name.

        Raises:
            ValidationFailed: The reference is not legal, or names anything but 1 to `MAX_FILES` Parquet files.
            StoreUnavailable: The store does not answer.
        """
        if not is_reference(reference):
            raise _refused("not_legal", LEGAL)
        path = str(reference)
        with _failures():
            info = self._system.get_file_info(self._below(path))
            if info.type.name == "NotFound":
                self.check()
                raise _refused("not_found", f"there is no file or folder {path!r} below the store")
            names = [path] if info.is_file else self._names(path)
            for name in names:
                if not name.endswith(ENDING):
                    raise _refused("not_legal", f"{name!r} does not end in {ENDING}: only such files are read")
            return [self._file(name) for name in names]

    def open(self, file: StoreFile) -> Any:
        """Open a registered file for reading bytes.

        Raises:
            StoreChanged: The file is gone, or is not the file that was registered.
            StoreUnavailable: The store does not answer.
        """
        with _failures():
            try:
                stream, current = self._opened(file.path)
            except FileNotFoundError:
                self.check()
                raise StoreChanged(_changed(file.path, "is gone")) from None
            except ValidationFailed:
                raise StoreChanged(_changed(file.path, "has become a symbolic link out of it")) from None
            if (current.size, current.version) != (file.size, file.version):
                stream.close()
                raise StoreChanged(_changed(file.path, "has changed since it was registered"))
            return stream

    def count_rows(self, file: StoreFile) -> int:
        """Return the number of rows of a registered file."""
        with self._parquet(file) as content:
            return int(content.metadata.num_rows)

    def rows(
        self, files: Sequence[StoreFile], schema: espalier.Schema, places: Sequence[int], *, start: int, stop: int
    ) -> Iterator[tuple[int, espalier.Dataset]]:
        """Yield the rows ``start:stop`` in parts, each with the number of its first row.

        `places` has the indices in `schema` of the features to read.
        """
        chosen = [schema.features[place] for place in places]
        first = 0
        for file in files:
            last = first + (file.n_rows or 0)
            if first < stop and last > start:
                with self._parquet(file) as content:
                    part = max(start - first, 0), min(stop, last) - first
                    for at, batch in _batches(content, [feature.name for feature in chosen], *part):
                        yield first + at, _encoded(batch, chosen, schema.missing_values)
            first = last

    def _names(self, folder: str) -> list[str]:
        infos = self._system.get_file_info(_file_systems().FileSelector(self._below(folder)))
        is_file = {
            f"{folder}/{one.base_name}": one.is_file for one in infos if not one.base_name.startswith((".", "_"))
        }
        names = sorted(is_file)
        if not 1 <= len(names) <= MAX_FILES:
            raise _refused("out_of_range", f"{folder!r} has {len(names)} files, 1 to {MAX_FILES} are legal")
        for name in names:
            if not is_file[name]:
                raise _refused("not_legal", f"{name!r} is a folder: only files are read")
        return names

    def _file(self, path: str) -> StoreFile:
        stream, file = self._opened(path)
        stream.close()
        return file

    def _opened(self, path: str) -> tuple[Any, StoreFile]:
        place = self._below(path)
        stream = self._system.open_input_file(place)
        tag = stream.metadata().get("ETag")
        version = str(self._system.get_file_info(place).mtime_ns) if tag is None else tag.decode()
        return stream, StoreFile(path, stream.size(), version)

    def _below(self, path: str) -> str:
        place = f"{self._root}/{path}"
        if self._is_local and not Path(place).resolve().is_relative_to(Path(self._root).resolve()):
            raise _refused("not_legal", f"{path!r} leads out of the store, by a symbolic link")
        return place

    @contextmanager
    def _parquet(self, file: StoreFile) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - see load_pyarrow

        with self.open(file) as stream, _failures(file.path):
            yield ParquetFile(stream, pre_buffer=False)


@dataclass(frozen=True, slots=True)
class Readable:
    """A registered file that `espalier.store_dataset` can read."""

    store: Store
    file: StoreFile

    @property
    def name(self) -> str:
        """The path below the store."""
        return self.file.path

    def open(self, _: Any, /) -> Any:
        """Open the file for reading bytes; the mode is ignored."""
        return self.store.open(self.file)


def is_reference(reference: object) -> bool:
    """Return whether a reference is a legal path below the store.

    >>> [is_reference(text) for text in ("a/b.parquet", "/a", "../a", "a//b", "a/.b", "s3://a", "")]
    [True, False, False, False, False, False, False]
    """
    is_short = isinstance(reference, str) and len(reference) <= MAX_REFERENCE_CHARS
    return is_short and all(PART.fullmatch(part) for part in str(reference).split("/"))


def _file_systems() -> Any:
    import pyarrow.fs  # noqa: PLC0415 - see load_pyarrow

    return pyarrow.fs


def _batches(content: Any, names: Sequence[str], start: int, stop: int) -> Iterator[tuple[int, Any]]:
    """Yield rows ``start:stop`` of a Parquet file as tables, each with the number of its first row in the file."""
    first, groups = 0, []
    for group in range(content.metadata.num_row_groups):
        n_rows = content.metadata.row_group(group).num_rows
        if first < stop and first + n_rows > start:
            groups.append((first, group))
        first += n_rows
    at = groups[0][0]
    size = chunk_rows(len(content.schema_arrow.names))
    batches = content.iter_batches(size, row_groups=[group for _, group in groups], columns=names, use_threads=False)
    for batch in batches:
        low, high = max(start - at, 0), min(stop - at, len(batch))
        if low < high:
            yield at + low, load_pyarrow().Table.from_batches([batch.slice(low, high - low)]).select(names)
        at += len(batch)
        if at >= stop:
            return


def _encoded(table: Any, features: Sequence[espalier.Feature], missing_values: Sequence[str]) -> espalier.Dataset:
    # Target and weights are read as attributes, too: the checks of their roles need all rows; `table` has only some.
    columns: list[Mapping[str, Any]] = [{**feature.to_dict(), "role": "attribute"} for feature in features]
    declared = {"columns": columns, "missing_values": list(missing_values)}
    read = espalier.dataset_from_arrow(table, schema=declared)
    return espalier.Dataset(espalier.Schema(tuple(features), tuple(missing_values)), read.columns)


def _refused(code: str, message: str) -> ValidationFailed:
    return ValidationFailed.of("/reference", code, message)


def _changed(path: str, what: str) -> str:
    return f"the file {path!r} below the store {what}: restore it as it was, or register its data anew"


@contextmanager
def _failures(path: str = "") -> Iterator[None]:
    """Translate errors of the store, except `FileNotFoundError`; `path` is a registered file whose content is read."""
    pyarrow = load_pyarrow()
    try:
        yield
    except pyarrow.ArrowMemoryError:
        raise MemoryError from None
    except FileNotFoundError:
        raise
    except OSError as error:
        message = f"the store of {SETTING} cannot be read now; try again when its folder or bucket answers"
        raise StoreUnavailable(message, reason=str(error)) from error
    except (pyarrow.ArrowException, espalier.DataError, LookupError) as error:
        if not path:
            raise StoreUnavailable(f"{SETTING} names no store that can be used", reason=str(error)) from error
        raise StoreChanged(_changed(path, "is damaged, or is not the file that was registered")) from error
