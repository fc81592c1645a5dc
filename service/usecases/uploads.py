"""Bodies read into data sets: in this process where that is safe, in one of its own where it is not."""

import logging
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
from service.settings import Settings
from service.usecases.staging import ScratchFile, StagedDataSet, TableInChunks

log = logging.getLogger("service")

LINE_BYTES = 32 * 2**20  # of a row in a format of lines
BLOCK = 2**20
SMALL_JSON = 2 * 2**20  # bytes up to which JSON is read in this process
READER_SECONDS = 120  # of processor time; twice as long by the clock
READERS_AT_A_TIME = 2  # of a web process
PATIENCE = 60.0  # seconds to wait for one of them
BOUNDED = frozenset({"csv", "ndjson", "arff"})  # read line by line, in memory that the limits bound
NOT_READABLE = "it cannot be read: it is damaged, or was made to do harm"
KINDS: Mapping[str, type[espalier.InvalidInput]] = {
    "DataError": espalier.DataError,
    "SchemaError": espalier.SchemaError,
}

_turns = threading.BoundedSemaphore(READERS_AT_A_TIME)


def read_upload(
    stream: espalier.ByteStream, form: str, *, settings: Settings, declared: Mapping[str, Any]
) -> StagedDataSet | TableInChunks:
    """Read a body into a data set to be stored, in memory that does not grow with it.

    Args:
        stream: The body, unpacked.
        form: One of `espalier.FORMATS`.
        settings: Say how large it may be.
        declared: As for `espalier.read_table`.

    Raises:
        espalier.DataError: It is not in this format, or no table.
        espalier.SchemaError: The declaration is wrong.
        espalier.TooLarge: A limit is passed; it was not read further.
        Unavailable: Others are being read for too long.
    """
    limits = _limits(form, settings)
    if form in BOUNDED:
        return TableInChunks.of(espalier.read_table(stream, form, limits=limits, **declared))
    with tempfile.TemporaryFile() as body:
        size = _copied(stream, body, limits)
        if form == "json" and size <= SMALL_JSON:
            return TableInChunks.of(espalier.read_table(body, form, limits=limits, **declared))
        with _turn():
            return _read_apart(body, form, limits=limits, settings=settings, declared=declared)


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


def _copied(stream: espalier.ByteStream, file: IO[bytes], limits: espalier.Limits) -> int:
    size = 0
    while block := stream.read(BLOCK):
        size += len(block)
        limits.check("content", size)
        file.write(block)
    file.seek(0)
    return size


@contextmanager
def _turn() -> Iterator[None]:
    if not _turns.acquire(timeout=PATIENCE):
        raise Unavailable("other uploads are being read; try again in a moment")
    try:
        yield
    finally:
        _turns.release()


def _read_apart(
    body: IO[bytes], form: str, *, limits: espalier.Limits, settings: Settings, declared: Mapping[str, Any]
) -> StagedDataSet:
    chunks = ScratchFile()
    order = {
        "form": form,
        "limits": asdict(limits),
        "declared": dict(declared),
        "body": body.fileno(),
        "chunks": chunks.file.fileno(),
        "memory_mb": settings.reader_memory_mb,
        "seconds": READER_SECONDS,
    }
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "service.usecases.upload_sandbox"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(body.fileno(), chunks.file.fileno()),
        env=ours | {"OPENBLAS_NUM_THREADS": "1"},
    )
    with process:
        try:
            said, complaint = process.communicate(orjson.dumps(order), timeout=2 * READER_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            said, complaint = b"", b""
    if process.returncode > 0:  # an exception that nobody expected; a crash has a negative code
        raise ServiceError(f"reading a body as {form} failed: {complaint.decode(errors='replace')}")
    answer: dict[str, Any] = orjson.loads(said) if process.returncode == 0 else {"error": "crash"}
    if "staged" in answer:
        return StagedDataSet.from_dict(answer["staged"], chunks)
    raise _refusal(answer, settings)


def _refusal(answer: Mapping[str, Any], settings: Settings) -> espalier.EspalierError:
    if answer["error"] in KINDS:
        return KINDS[answer["error"]](espalier.Fault(*fault) for fault in answer["faults"])
    if answer["error"] == "TooLarge":
        return espalier.TooLarge(answer["what"], answer["limit"])
    if answer["error"] == "memory":
        return espalier.TooLarge("MiB of memory to read it in", settings.reader_memory_mb)
    return espalier.DataError([espalier.Fault("", "not_readable", NOT_READABLE)])
