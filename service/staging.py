"""Data sets packed for the database: what is said of them, and their chunks in a temporary file."""

import tempfile
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import espalier
from service.chunks import CHUNK_ROWS, Chunk, encode_rows

__all__ = ["ScratchFile", "StagedDataSet", "stage"]

THREADS = 2
AHEAD = 2  # chunks that are packed, or wait to be written, at a time


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


def stage(table: espalier.Table, scratch: ScratchFile | None = None, *, chunk_rows: int = CHUNK_ROWS) -> StagedDataSet:
    """Pack a data set into a file, a stretch of rows in memory at a time."""
    scratch = scratch or ScratchFile()
    file = scratch.file
    places: list[Place] = []
    with ThreadPoolExecutor(THREADS, thread_name_prefix="pack") as pool:
        fingerprint = pool.submit(lambda: table.fingerprint)
        ahead: deque[Future[Chunk]] = deque()
        for first_row in range(0, table.n_rows, chunk_rows):
            ahead.append(pool.submit(encode_rows, table, first_row, min(first_row + chunk_rows, table.n_rows)))
            if len(ahead) > AHEAD:
                places.append(_write(ahead.popleft().result(), file))
        places += [_write(each.result(), file) for each in ahead]
        return StagedDataSet(table.schema, table.n_rows, table.notices, fingerprint.result(), tuple(places), scratch)


def _write(chunk: Chunk, file: IO[bytes]) -> Place:
    start = file.tell()
    file.write(chunk.content)
    return Place(chunk.first_row, chunk.n_rows, start, len(chunk.content))
