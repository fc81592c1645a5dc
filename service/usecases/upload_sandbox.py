"""A process of its own that reads one body into a data set: its memory and its time are limited by the system.

pyarrow believes what a Parquet file or an Arrow stream says of its sizes, and a JSON document becomes many times as
large in memory. What goes wrong here, a crash too, goes wrong here only. Told what to do by a line of JSON::

    stdin   {"form": "parquet", "limits": {…}, "declared": {…}, "body": 3, "chunks": 4, "memory_mb": …, "seconds": …}
    stdout  {"staged": {…}} | {"error": "DataError", "faults": […]} | {"error": "TooLarge", …} | {"error": "memory"}

`body` and `chunks` are open files, by their numbers.
"""

import os
import resource
import sys
from contextlib import suppress
from typing import Any

import orjson

ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"  # pyarrow's own allocators take address space that they do not use


def main() -> None:
    """Read the order, do it, answer."""
    order = orjson.loads(sys.stdin.buffer.read())
    _limit(resource.RLIMIT_DATA, order["memory_mb"] * 2**20)  # columns mapped from a file do not count
    _limit(resource.RLIMIT_CPU, order["seconds"])
    _limit(resource.RLIMIT_CORE, 0)
    os.environ[ARROW_POOL] = "system"
    try:
        answer = _done(order)
    except Exception as error:
        if not _is_of_memory(error):
            raise
        answer = {"error": "memory"}
    sys.stdout.buffer.write(orjson.dumps(answer))


def _limit(what: int, most: int) -> None:
    with suppress(ValueError, OSError):  # a system that does not know this limit, or has a lower one
        resource.setrlimit(what, (most, most))


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out: libraries raise other errors because of it."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _done(order: dict[str, Any]) -> dict[str, Any]:
    import espalier  # noqa: PLC0415 - within the limits
    from service.usecases.staging import ScratchFile, stage  # noqa: PLC0415 - as above

    limits = espalier.Limits(**order["limits"])
    chunks = ScratchFile(os.fdopen(order["chunks"], "wb"))
    with os.fdopen(order["body"], "rb") as body:
        try:
            table = espalier.read_table(body, order["form"], limits=limits, **order["declared"])
            staged = stage(table, chunks)
            chunks.file.flush()
            return {"staged": staged.to_dict()}
        except espalier.InvalidInput as error:
            faults = [[fault.path, fault.code, fault.message] for fault in error.faults]
            return {"error": type(error).__name__, "faults": faults}
        except espalier.TooLarge as error:
            return {"error": "TooLarge", "what": error.what, "limit": error.limit}


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Not by the interpreter's end: threads of pyarrow that are still at work on what was refused abort it now and then.
    os._exit(0)
