"""Read bodies into data sets: in this process where that is safe, in the upload sandbox where it is not."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO, Any

import orjson

import espalier
from service.errors import ServiceError, Unavailable
from service.repositories.datasets import NewDataSet, new_data_set
from service.settings import Settings
from service.usecases.upload_sandbox import read_chunks

LINE_BYTES = 32 * 2**20  # of a row in a format of lines
BLOCK = 2**20
SMALL_JSON = 2 * 2**20  # bytes up to which JSON is read in this process
SANDBOX_SECONDS = 120  # of processor time; twice as long by the clock
MAX_SANDBOXES = 2  # of a web process
WAIT_SECONDS = 60.0  # for one of them
BOUNDED = frozenset({"csv", "ndjson", "arff"})  # read line by line, in memory that the limits bound
NOT_READABLE = "it cannot be read: it is damaged, or was made to do harm"
INVALID: Mapping[str, type[espalier.InvalidInput]] = {
    "DataError": espalier.DataError,
    "SchemaError": espalier.SchemaError,
}

_sandboxes = threading.BoundedSemaphore(MAX_SANDBOXES)


@contextmanager
def read_upload(
    stream: espalier.ByteStream, form: str, *, settings: Settings, declared: Mapping[str, Any]
) -> Iterator[NewDataSet]:
    """Read a body into a data set to be stored, in bounded memory.

    Args:
        stream: The body, unpacked.
        form: One of `espalier.FORMATS`.
        settings: The limits.
        declared: As for `espalier.read_table`.

    Raises:
        espalier.DataError: It is not in this format, or no table.
        espalier.SchemaError: The declaration is wrong.
        espalier.TooLarge: A limit is passed; it was not read further.
        Unavailable: Other uploads are being read for too long.
    """
    limits = _limits(form, settings)
    if form in BOUNDED:
        yield new_data_set(espalier.read_table(stream, form, limits=limits, **declared))
        return
    with tempfile.TemporaryFile() as body:
        size = _copy(stream, body, limits)
        if form == "json" and size <= SMALL_JSON:
            yield new_data_set(espalier.read_table(body, form, limits=limits, **declared))
            return
        order = {"read": {"form": form, "limits": asdict(limits), "declared": declared}}
        with in_sandbox(order, body, settings=settings) as new:
            yield new


@contextmanager
def in_sandbox(order: Mapping[str, Any], file: IO[bytes], *, settings: Settings) -> Iterator[NewDataSet]:
    """Make a data set in a process of its own with limited memory and time.

    Args:
        order: What to do with the file, as `service.usecases.upload_sandbox` says.
        file: A file on disk.
        settings: The memory limit.

    Raises:
        espalier.DataError: The table is not valid, or crashed the process.
        espalier.SchemaError: The declaration is wrong.
        espalier.TooLarge: A limit is passed, or the memory was not enough.
        Unavailable: Other sandboxes are running for too long.
    """
    with tempfile.TemporaryFile() as chunks:
        files = {"input": file.fileno(), "output": chunks.fileno()}
        limits = {"memory_mb": settings.reader_memory_mb, "seconds": SANDBOX_SECONDS}
        answer = _run({**order, **files, **limits}, pass_fds=tuple(files.values()))
        if "data_set" not in answer:
            raise _refusal(answer, settings)
        made = answer["data_set"]
        yield NewDataSet(
            schema=espalier.Schema.from_dict(made["schema"]),
            n_rows=made["n_rows"],
            notices=tuple(made["notices"]),
            fingerprint=made["fingerprint"],
            chunks=read_chunks(chunks, made["chunks"]),
        )


def _limits(form: str, settings: Settings) -> espalier.Limits:
    return espalier.Limits(
        rows=settings.max_rows,
        columns=settings.max_columns,
        cells=settings.max_cells,
        cell_chars=settings.max_cell_chars,
        categories=settings.max_rows,
        content=(settings.max_body_mb if form == "json" else settings.max_upload_mb) * 2**20,
        line=LINE_BYTES,
    )


def _copy(stream: espalier.ByteStream, file: IO[bytes], limits: espalier.Limits) -> int:
    """Copy a body to a file and return its length."""
    size = 0
    while block := stream.read(BLOCK):
        size += len(block)
        limits.check("content", size)
        file.write(block)
    file.seek(0)
    return size


def _run(order: Mapping[str, Any], *, pass_fds: tuple[int, ...]) -> dict[str, Any]:
    if not _sandboxes.acquire(timeout=WAIT_SECONDS):
        raise Unavailable("other uploads are being read; try again in a moment")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "service.usecases.upload_sandbox"],
            input=orjson.dumps(order),
            capture_output=True,
            timeout=2 * SANDBOX_SECONDS,
            pass_fds=pass_fds,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")},
                "OPENBLAS_NUM_THREADS": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",  # others take address space that they do not use
            },
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": "crash"}
    finally:
        _sandboxes.release()
    if done.returncode > 0:  # an exception that nobody expected; a crash has a negative code
        raise ServiceError(f"reading a table failed: {done.stderr.decode(errors='replace')}")
    answer: dict[str, Any] = orjson.loads(done.stdout) if done.returncode == 0 else {"error": "crash"}
    return answer


def _refusal(answer: Mapping[str, Any], settings: Settings) -> espalier.EspalierError:
    if answer["error"] in INVALID:
        return INVALID[answer["error"]](espalier.Fault(*fault) for fault in answer["faults"])
    if answer["error"] == "TooLarge":
        return espalier.TooLarge(answer["what"], answer["limit"])
    if answer["error"] == "memory":
        return espalier.TooLarge("MiB of memory to read it in", settings.reader_memory_mb)
    return espalier.DataError([espalier.Fault("", "not_readable", NOT_READABLE)])
