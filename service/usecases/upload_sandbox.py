"""Read untrusted or large tables in a separate process, the sandbox, with limits on its memory and processor time.

pyarrow trusts the sizes in a Parquet file or an Arrow stream, and a JSON document is many times as large in memory. A
crash ends only the sandbox process. That process reads one order and writes one answer or error::

    stdin   {"read": {"form", "limits", "declared"}, "input": 3, "output": 4, "memory_mb", "seconds"}
            {"redeclare": {"schema", "n_rows", "notices", "chunks", "changes"}, …}
            {"register": {"store", "files", "folder", "declared"}, "memory_mb", "seconds"}
    stdout  {"data_set": {…}} | {"error": "DataError" | "SchemaError", "faults": […]}
            {"error": "TooLarge", "what", "limit"} | {"error": "StoreChanged" | "StoreUnavailable", "message", "reason"}
            {"error": "ServiceError", "message"} (without the message of the exception, which may quote a cell)

`input` and `output` are file descriptors. A file of chunks has the contents of all chunks, one after the other. Its
index has the first row, the number of rows and the number of bytes of each chunk.
"""

import os
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

import orjson

import espalier
from service import errors
from service.serialization.dataset_chunks import Chunk, decode_chunks, encode_table, join_rows
from service.serialization.parquet_store import Readable, StoreFile, store_at
from service.settings import Settings
from service.usecases.schema_changes import redeclared

SANDBOX_SECONDS = 120  # limit of processor time; the limit of elapsed time is twice as long
REGISTER_SECONDS = 1800  # the same limit for files below the store
MAX_SANDBOXES = 2  # at the same time, in one web process
WAIT_SECONDS = 60.0  # for a free sandbox
NOT_READABLE = "the table cannot be read: it is damaged or malicious"

_sandboxes = threading.BoundedSemaphore(MAX_SANDBOXES)


def write_chunks(chunks: Iterable[Chunk], file: IO[bytes]) -> list[tuple[int, int, int]]:
    """Append chunks to a file and return their index."""
    return [(chunk.first_row, chunk.n_rows, file.write(chunk.content)) for chunk in chunks]


def read_chunks(file: IO[bytes], index: Iterable[Sequence[int]]) -> Iterator[Chunk]:
    """Yield the chunks of a file, read one at a time from its beginning."""
    file.seek(0)
    for first_row, n_rows, length in index:
        yield Chunk(first_row, n_rows, file.read(length))


def run_order(
    order: Mapping[str, Any], *, settings: Settings, seconds: int = SANDBOX_SECONDS, pass_fds: tuple[int, ...] = ()
) -> Mapping[str, Any]:
    """Run an order in the sandbox, and return the document of its data set; raise the error that the sandbox reports.

    Also raises `DataError` if the sandbox crashes, `TooLarge` above the limits, `Unavailable` if no sandbox is free.
    """
    too_slow = espalier.TooLarge("seconds of processor time to read it in", seconds)
    try:
        content = orjson.dumps({**order, "memory_mb": settings.reader_memory_mb, "seconds": seconds})
    except orjson.JSONEncodeError:  # the body was parsed, but orjson reads more levels than it writes
        raise espalier.SchemaError([espalier.Fault("", "out_of_range", "must have at most 250 levels")]) from None
    if not _sandboxes.acquire(timeout=WAIT_SECONDS):
        raise errors.Unavailable("other uploads are being read; try again in a moment")
    try:
        process = subprocess.run(
            [sys.executable, "-m", "service.usecases.upload_sandbox"],
            input=content,
            capture_output=True,
            timeout=2 * seconds,
            pass_fds=pass_fds,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")},
                "OPENBLAS_NUM_THREADS": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # other pools reserve address space that they do not use
            },
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise too_slow from None
    finally:
        _sandboxes.release()
    if process.returncode == -signal.SIGXCPU:
        raise too_slow
    if process.returncode > 0:  # a crash has a negative code
        raise errors.ServiceError(f"the process that reads a table failed with exit code {process.returncode}")
    match orjson.loads(process.stdout) if process.returncode == 0 else None:
        case {"data_set": document}:
            return document  # type: ignore[no-any-return]
        case {"error": "DataError" | "SchemaError" as kind, "faults": faults}:
            raise getattr(espalier, kind)(espalier.Fault(*fault) for fault in faults)
        case {"error": "TooLarge", "what": what, "limit": limit}:
            raise espalier.TooLarge(what, limit)
        case {"error": "ServiceError" | "StoreChanged" as kind, "message": message}:
            raise getattr(errors, kind)(message)
        case {"error": "StoreUnavailable", "message": message, "reason": reason}:
            raise errors.StoreUnavailable(message, reason=reason)
    raise espalier.DataError([espalier.Fault("", "not_readable", NOT_READABLE)])


def main() -> None:
    """Carry out the order on stdin within its limits, and write the answer to stdout."""
    order = orjson.loads(sys.stdin.buffer.read())
    _limit(resource.RLIMIT_DATA, order["memory_mb"] * 2**20)  # columns mapped from a file do not count
    _limit(resource.RLIMIT_CPU, order["seconds"])
    _limit(resource.RLIMIT_CORE, 0)
    try:
        answer = _answer(order)
    except Exception as error:
        lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        where = f"{type(error).__name__} at {', '.join(lines[-5:])}"
        answer = {"error": "ServiceError", "message": f"reading a table failed: {where}"}
        if _ran_out_of_memory(error):
            answer = {"error": "TooLarge", "what": "MiB of memory to read it in", "limit": order["memory_mb"]}
        elif isinstance(error, OSError) and error.errno in errors.DISK_FULL:
            answer = {"error": "DataError", "faults": [["", "disk_full", os.strerror(error.errno)]]}
    sys.stdout.buffer.write(orjson.dumps(answer))


def _limit(kind: int, maximum: int) -> None:
    with suppress(ValueError, OSError):  # a system without this limit, or with a lower one
        resource.setrlimit(kind, (maximum, maximum))


def _ran_out_of_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def _answer(order: Mapping[str, Any]) -> dict[str, Any]:
    try:
        if "register" in order:
            return {"data_set": _register(**order["register"])}
        with os.fdopen(order["input"], "rb") as file, os.fdopen(order["output"], "wb") as output:
            if "redeclare" in order:
                table = _redeclare(file, order["redeclare"])
            else:
                form, limits, declared = (order["read"][name] for name in ("form", "limits", "declared"))
                table = espalier.read_table(file, form, limits=espalier.Limits(**limits), **declared)
            return {"data_set": {**_document(table), "chunks": write_chunks(encode_table(table), output)}}
    except espalier.InvalidInput as error:
        faults = [[fault.path, fault.code, fault.message] for fault in error.faults]
        return {"error": type(error).__name__, "faults": faults}
    except espalier.TooLarge as error:
        return {"error": "TooLarge", "what": error.what, "limit": error.limit}
    except (errors.StoreChanged, errors.StoreUnavailable) as error:
        return {"error": type(error).__name__, "message": str(error), "reason": getattr(error, "reason", None)}


def _document(table: espalier.Dataset) -> dict[str, Any]:
    return {
        "schema": table.schema.to_dict(),
        "n_rows": table.n_rows,
        "notices": [notice.to_dict() for notice in table.notices],
        "fingerprint": table.fingerprint,
    }


def _register(
    *, store: str, files: Sequence[Mapping[str, Any]], folder: str, declared: Mapping[str, Any]
) -> dict[str, Any]:
    """Read files of the store, group of rows by group of rows, and write each column to a file in `folder`."""
    source = store_at(store)
    given = [StoreFile(**file) for file in files]
    try:
        table = espalier.store_dataset([Readable(source, file) for file in given], Path(folder), **declared)
    except espalier.DataError:
        for file in given:  # raises if a file is gone or changed, or the store does not answer
            source.open(file).close()
        raise
    counted = [asdict(replace(file, n_rows=source.count_rows(file))) for file in given]
    return {**_document(table), "files": counted}


def _redeclare(file: IO[bytes], stored: Mapping[str, Any]) -> espalier.Dataset:
    before = espalier.Schema.from_dict(stored["schema"])
    rows: Mapping[str, Any] = {"start": 0, "stop": stored["n_rows"]}
    chunks, places = read_chunks(file, stored["chunks"]), range(len(before.features))
    dataset = join_rows(decode_chunks(chunks, before, places=places, **rows), before, **rows)
    return redeclared(dataset, stored["changes"], map(espalier.Notice.from_dict, stored["notices"]))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Skip the interpreter's shutdown, which running threads of pyarrow sometimes abort.
    os._exit(0)
