"""The process that reads untrusted or large tables: its memory and its processor time are limited by the system.

pyarrow believes what a Parquet file or an Arrow stream says of its sizes, and a JSON document becomes many times as
large in memory. What goes wrong here, a crash too, goes wrong here only. It reads one order and writes one answer::

    stdin   {"read": {"form", "limits", "declared"}, "input": 3, "output": 4, "memory_mb", "seconds"}
            {"redeclare": {"schema", "n_rows", "chunks", "changes"}, …}
    stdout  {"data_set": {…}} | {"error": "DataError", "faults": […]} | {"error": "TooLarge", …} | {"error": "memory"}

`input` and `output` are numbers of open files. A file of chunks holds their contents one after the other; its index
gives the first row, the number of rows and the number of bytes of each.
"""

import os
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import orjson

import espalier
from service.serialization.dataset_chunks import Chunk, decode_rows, encode_table
from service.usecases.schema_changes import redeclared


def write_chunks(chunks: Iterable[Chunk], file: IO[bytes]) -> list[tuple[int, int, int]]:
    """Append chunks to a file and return their index."""
    return [(chunk.first_row, chunk.n_rows, file.write(chunk.content)) for chunk in chunks]


def read_chunks(file: IO[bytes], index: Iterable[Sequence[int]]) -> Iterator[Chunk]:
    """Yield the chunks of a file, read one at a time from its beginning."""
    file.seek(0)
    for first_row, n_rows, length in index:
        yield Chunk(first_row, n_rows, file.read(length))


def main() -> None:
    """Carry out the order on stdin within its limits."""
    order = orjson.loads(sys.stdin.buffer.read())
    _limit(resource.RLIMIT_DATA, order["memory_mb"] * 2**20)  # columns mapped from a file do not count
    _limit(resource.RLIMIT_CPU, order["seconds"])
    _limit(resource.RLIMIT_CORE, 0)
    try:
        answer = _answer(order)
    except Exception as error:
        if not _is_of_memory(error):
            raise
        answer = {"error": "memory"}
    sys.stdout.buffer.write(orjson.dumps(answer))


def _limit(what: int, most: int) -> None:
    with suppress(ValueError, OSError):  # a system that does not know this limit, or has a lower one
        resource.setrlimit(what, (most, most))


def _is_of_memory(error: BaseException | None) -> bool:
    """Return whether memory ran out: libraries raise other errors because of it."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _answer(order: Mapping[str, Any]) -> dict[str, Any]:
    with os.fdopen(order["input"], "rb") as file, os.fdopen(order["output"], "wb") as output:
        try:
            table = _redeclare(file, **order["redeclare"]) if "redeclare" in order else _read(file, **order["read"])
            document = {
                "schema": table.schema.to_dict(),
                "n_rows": table.n_rows,
                "notices": table.notices,
                "fingerprint": table.fingerprint,
                "chunks": write_chunks(encode_table(table), output),
            }
        except espalier.InvalidInput as error:
            faults = [[fault.path, fault.code, fault.message] for fault in error.faults]
            return {"error": type(error).__name__, "faults": faults}
        except espalier.TooLarge as error:
            return {"error": "TooLarge", "what": error.what, "limit": error.limit}
    return {"data_set": document}


def _read(file: IO[bytes], *, form: str, limits: Mapping[str, Any], declared: Mapping[str, Any]) -> espalier.Dataset:
    return espalier.read_table(file, form, limits=espalier.Limits(**limits), **declared)


def _redeclare(
    file: IO[bytes],
    *,
    schema: Mapping[str, Any],
    n_rows: int,
    chunks: Sequence[Sequence[int]],
    changes: Mapping[str, Any],
) -> espalier.Dataset:
    before = espalier.Schema.from_dict(schema)
    places = range(len(before.features))
    return redeclared(decode_rows(read_chunks(file, chunks), before, places=places, start=0, stop=n_rows), changes)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Not by the interpreter's end: threads of pyarrow that are still at work on what was refused abort it now and then.
    os._exit(0)
