"""The process that reads untrusted or large tables, with limits on memory and processor time.

pyarrow trusts the sizes in a Parquet file or an Arrow stream, and a JSON document is many times as large in memory. A
crash affects this process only. It reads one order and writes one answer::

    stdin   {"read": {"form", "limits", "declared"}, "input": 3, "output": 4, "memory_mb", "seconds"}
            {"redeclare": {"schema", "n_rows", "notices", "chunks", "changes"}, …}
    stdout  {"data_set": {…}} | {"error": "DataError", "faults": […]} | {"error": "TooLarge", …} | {"error": "memory"}

`input` and `output` are file descriptors. A file of chunks holds their contents one after the other; its index has the
first row, the number of rows and the number of bytes of each.
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
        if not _ran_out_of_memory(error):
            raise
        answer = {"error": "memory"}
    sys.stdout.buffer.write(orjson.dumps(answer))


def _limit(kind: int, maximum: int) -> None:
    with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
        resource.setrlimit(kind, (maximum, maximum))


def _ran_out_of_memory(error: BaseException | None) -> bool:
    """Return whether memory ran out, also as the cause of another error."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _answer(order: Mapping[str, Any]) -> dict[str, Any]:
    with os.fdopen(order["input"], "rb") as file, os.fdopen(order["output"], "wb") as output:
        try:
            if "redeclare" in order:
                table = _redeclare(file, **order["redeclare"])
            else:
                form, limits, declared = (order["read"][name] for name in ("form", "limits", "declared"))
                table = espalier.read_table(file, form, limits=espalier.Limits(**limits), **declared)
            document = {
                "schema": table.schema.to_dict(),
                "n_rows": table.n_rows,
                "notices": [notice.to_dict() for notice in table.notices],
                "fingerprint": table.fingerprint,
                "chunks": write_chunks(encode_table(table), output),
            }
        except espalier.InvalidInput as error:
            faults = [[fault.path, fault.code, fault.message] for fault in error.faults]
            return {"error": type(error).__name__, "faults": faults}
        except espalier.TooLarge as error:
            return {"error": "TooLarge", "what": error.what, "limit": error.limit}
    return {"data_set": document}


def _redeclare(
    file: IO[bytes],
    *,
    schema: Mapping[str, Any],
    n_rows: int,
    notices: Sequence[Mapping[str, Any]],
    chunks: Sequence[Sequence[int]],
    changes: Mapping[str, Any],
) -> espalier.Dataset:
    before = espalier.Schema.from_dict(schema)
    places = range(len(before.features))
    dataset = decode_rows(read_chunks(file, chunks), before, places=places, start=0, stop=n_rows)
    return redeclared(dataset, changes, map(espalier.Notice.from_dict, notices))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Without the interpreter's shutdown: running threads of pyarrow sometimes abort it.
    os._exit(0)
