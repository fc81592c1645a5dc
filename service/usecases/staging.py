"""Data sets to be stored: what is said of them, and their chunks, packed as they are taken or by another process."""

import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import espalier
from service.serialization.dataset_chunks import Chunk, chunk_rows, encode_rows

THREADS = 1  # it packs as fast as a database takes the chunks, and two would need twice the memory
AHEAD = 1  # chunks that wait, packed, while the next is packed


class ScratchFile:
    """A file that is closed, and so gone, when nobody has this object any more.

    Attributes:
        file: The file; a temporary one if none is given.
    """

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile() if file is None else file  # noqa: SIM115 - see the next line
        weakref.finalize(self, self.file.close)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a chunk is in the file."""

    first_row: int
    n_rows: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class StagedDataSet:
    """A data set without its cells in memory.

    Attributes:
        schema: As of `espalier.Dataset`; so are `n_rows`, `notices` and `fingerprint`.
        places: Of the chunks, in the order of their rows.
        scratch: Holds the chunks.
    """

    schema: espalier.Schema
    n_rows: int
    notices: tuple[str, ...]
    fingerprint: str
    places: tuple[Place, ...]
    scratch: ScratchFile

    def chunks(self) -> Iterator[Chunk]:
        """Read the chunks, one at a time."""
        for place in self.places:
            self.scratch.file.seek(place.start)
            yield Chunk(place.first_row, place.n_rows, self.scratch.file.read(place.length))

    def to_dict(self) -> dict[str, Any]:
        """Give all but the file as JSON."""
        return {
            "schema": self.schema.to_dict(),
            "n_rows": self.n_rows,
            "notices": list(self.notices),
            "fingerprint": self.fingerprint,
            "places": [[place.first_row, place.n_rows, place.start, place.length] for place in self.places],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], scratch: ScratchFile) -> "StagedDataSet":
        """Read what `to_dict` gave."""
        return cls(
            espalier.Schema.from_dict(document["schema"]),
            document["n_rows"],
            tuple(document["notices"]),
            document["fingerprint"],
            tuple(Place(*place) for place in document["places"]),
            scratch,
        )


@dataclass(frozen=True, slots=True)
class TableInChunks:
    """A data set whose chunks are packed as they are taken, by a thread, a little ahead; another finds the fingerprint.

    Attributes:
        table: The cells.
        hashed: The fingerprint, when it is found.
    """

    table: espalier.Dataset
    hashed: Future[str]

    @classmethod
    def of(cls, table: espalier.Dataset) -> "TableInChunks":
        """Begin to find the fingerprint."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="fingerprint")
        hashed = pool.submit(getattr, table, "fingerprint")
        pool.shutdown(wait=False)
        return cls(table, hashed)

    @property
    def fingerprint(self) -> str:
        """As of `espalier.Dataset`; waited for, so asked for when all else is done."""
        return self.hashed.result()

    @property
    def schema(self) -> espalier.Schema:
        """As of `espalier.Dataset`; so are `n_rows` and `notices`."""
        return self.table.schema

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the data."""
        return self.table.notices

    def chunks(self) -> Iterator[Chunk]:
        """Pack the chunks, in the order of their rows."""
        return encoded_chunks(self.table)


def encoded_chunks(table: espalier.Dataset, *, n_rows: int | None = None) -> Iterator[Chunk]:
    """Encode a data set as chunks in a thread, with a few of them in memory at a time.

    Args:
        table: The data set.
        n_rows: Rows of a chunk; None: `chunk_rows`.
    """
    at_once = chunk_rows(len(table.schema.features)) if n_rows is None else n_rows
    with ThreadPoolExecutor(THREADS, thread_name_prefix="pack") as pool:
        ahead: deque[Future[Chunk]] = deque()
        for first_row in range(0, table.n_rows, at_once):
            ahead.append(pool.submit(encode_rows, table, first_row, min(first_row + at_once, table.n_rows)))
            if len(ahead) > AHEAD:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def stage(table: espalier.Dataset, scratch: ScratchFile) -> StagedDataSet:
    """Pack a data set into a file, for another process."""
    places = tuple(_write(chunk, scratch.file) for chunk in encoded_chunks(table))
    return StagedDataSet(table.schema, table.n_rows, table.notices, table.fingerprint, places, scratch)


def _write(chunk: Chunk, file: IO[bytes]) -> Place:
    start = file.tell()
    file.write(chunk.content)
    return Place(chunk.first_row, chunk.n_rows, start, len(chunk.content))
