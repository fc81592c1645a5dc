"""Make data sets from request bodies and from files below the store; profile, redeclare and delete stored data sets.

A table is read in this process if that is safe, else in the upload sandbox. Both processes use bounded memory.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import IO, Any

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

import espalier
from service import errors
from service.database.engine import Sessions, read_session
from service.database.tables import DataSet, Job, Version
from service.locked_folders import locked_folder
from service.repositories import datasets
from service.repositories.datasets import NewDataSet, new_data_set
from service.repositories.job_queue import find_unfinished
from service.serialization.parquet_store import StoreFile, store_at
from service.settings import Settings
from service.usecases.schema_changes import read_redeclared, redeclared
from service.usecases.upload_sandbox import REGISTER_SECONDS, read_chunks, run_order, write_chunks

LINE_BYTES = 32 * 2**20  # maximum size of a line of NDJSON or ARFF; the core limits the lines of CSV
BLOCK = 2**20  # bytes of a body that are read at once
SMALL_JSON = 2 * 2**20  # bytes; larger JSON is read in the sandbox
REGISTER_PREFIX = "espalier-register-"
BOUNDED = frozenset({"csv", "ndjson", "arff"})  # formats that are read line by line, in bounded memory
MAX_CELLS = 1_000_000  # in memory for a profile, or for a redeclaration in this process


@contextmanager
def read_upload(
    stream: espalier.ByteStream, form: str, *, settings: Settings, declared: Mapping[str, Any]
) -> Iterator[NewDataSet]:
    """Yield the data set in a decompressed body, ready to be stored; the body is read in bounded memory.

    `form` is one of `espalier.FORMATS`; `declared` has further keyword arguments of `espalier.read_table`.
    """
    most: dict[str, Any] = {
        name: getattr(settings, f"max_{name}") for name in ("rows", "columns", "cells", "cell_chars")
    }
    content = (settings.max_body_mb if form == "json" else settings.max_upload_mb) * 2**20
    limits = espalier.Limits(**most, categories=settings.max_rows, content=content, line=LINE_BYTES)
    if form in BOUNDED:
        yield new_data_set(espalier.read_table(stream, form, limits=limits, **declared))
        return
    with tempfile.TemporaryFile() as body:
        size = 0
        while block := stream.read(BLOCK):
            size += body.write(block)
            limits.check("content", size)
        body.seek(0)
        if form == "json" and size <= SMALL_JSON:
            yield new_data_set(espalier.read_table(body, form, limits=limits, **declared))
            return
        order = {"read": {"form": form, "limits": asdict(limits), "declared": declared}}
        with in_sandbox(order, body, settings=settings) as new:
            yield new


@contextmanager
def in_sandbox(order: Mapping[str, Any], file: IO[bytes], *, settings: Settings) -> Iterator[NewDataSet]:
    """Yield the data set that the upload sandbox makes from a file on disk, with limited memory and time.

    The only key of `order` is the action of the sandbox, "read" or "redeclare"; its value has the arguments (see
    `service.usecases.upload_sandbox`). Raises the errors of `run_order`.
    """
    with tempfile.TemporaryFile() as chunks:
        files = {"input": file.fileno(), "output": chunks.fileno()}
        document = run_order({**order, **files}, settings=settings, pass_fds=tuple(files.values()))
        yield replace(_new_of(document), chunks=read_chunks(chunks, document["chunks"]))


def registered_data_set(
    reference: Any, *, settings: Settings, files: Sequence[StoreFile] | None = None, **declared: Any
) -> NewDataSet:
    """Return a data set whose rows stay in Parquet files below the store.

    Args:
        reference: The path of a file, or of a folder of files, below the store.
        settings: The settings, which name the store.
        files: The files as they were registered before; if None, the files that the reference names now.
        declared: Further keyword arguments of `espalier.store_dataset`.

    Raises:
        ValidationFailed: No store is set.
    """
    if settings.store == "none":
        message = "no store is set: the operator of the service sets ESPALIER_STORE to a folder or a bucket"
        raise errors.ValidationFailed.of("/reference", "not_legal", message)
    files = store_at(settings.store).files(reference) if files is None else files
    with locked_folder(REGISTER_PREFIX, settings.work_folder) as folder:
        order = {
            "store": settings.store, "files": list(map(asdict, files)), "folder": str(folder), "declared": declared
        }  # fmt: skip
        document = run_order({"register": order}, settings=settings, seconds=REGISTER_SECONDS)
    new = replace(_new_of(document), reference=reference, files=[StoreFile(**file) for file in document["files"]])
    check_columns(new.schema, settings)
    return new


def redeclare_data_set(session: Session, data_set_id: str, *, new: NewDataSet, was: str) -> DataSet:
    """Replace a data set by `new`; raise `Conflict` if the old one is in use, or if its fingerprint is not `was`."""
    row = _lock_unused(session, data_set_id)
    if row.fingerprint != was:
        raise errors.Conflict(f"data set {data_set_id} was redeclared by another request; read it and try again")
    datasets.replace_data_set(session, row, new)
    return row


def delete_data_set(session: Session, data_set_id: str) -> None:
    """Delete a data set; raise `Conflict` if an unfinished job uses it, or if a version was made with it."""
    _lock_unused(session, data_set_id)
    session.execute(delete(DataSet).where(DataSet.id == data_set_id))


def _new_of(document: Mapping[str, Any]) -> NewDataSet:
    return NewDataSet(
        schema=espalier.Schema.from_dict(document["schema"]),
        n_rows=document["n_rows"],
        notices=tuple(map(espalier.Notice.from_dict, document["notices"])),
        fingerprint=document["fingerprint"],
    )


def profile_data_set(session: Session, data_set_id: str, *, log_base: str) -> dict[str, Any]:
    """Return the profile of a data set; raise `Conflict` if it has no target."""
    row = datasets.find_data_set(session, data_set_id)
    if row.task is None:
        raise errors.Conflict("the data set declares no target, which a profile needs: declare one")
    table = datasets.load_sample(session, data_set_id, max_cells=MAX_CELLS)
    profile = espalier.profile(table, log_base=log_base).to_dict()
    return {**profile, "sample": None if table.n_rows == row.n_rows else table.n_rows}


@contextmanager
def redeclared_data_set(
    source: Sessions, data_set_id: str, changes: Mapping[str, Any], *, settings: Settings
) -> Iterator[tuple[NewDataSet, str]]:
    """Yield the data set after `changes` (see `redeclared`), and the fingerprint of the stored data set."""
    with tempfile.TemporaryFile() as file, ExitStack() as stack:
        with read_session(source) as session:
            row = datasets.find_data_set(session, data_set_id)
            is_small = row.n_rows * len(row.declared["columns"]) <= MAX_CELLS
            if row.reference is None and is_small:
                table = datasets.load_data_set(session, data_set_id)
            elif row.reference is None:
                index = write_chunks(datasets.stored_chunks(session, data_set_id, start=0, stop=row.n_rows), file)
                file.flush()
        notices = list(map(espalier.Notice.from_dict, row.notices))
        if row.reference is not None:
            files = datasets.stored_files(row)
            read = partial(registered_data_set, row.reference, settings=settings, files=files)
            new = read_redeclared(espalier.Schema.from_dict(row.declared), changes, notices, read=read)
        elif is_small:
            new = new_data_set(redeclared(table, changes, notices))
        else:
            stored = {"schema": row.declared, "n_rows": row.n_rows, "notices": row.notices, "chunks": index}
            order = {"redeclare": {**stored, "changes": changes}}
            new = stack.enter_context(in_sandbox(order, file, settings=settings))
        yield new, row.fingerprint


def check_columns(schema: espalier.Schema, settings: Settings) -> None:
    """Raise `TooLarge` if there are more columns, or longer categories, than the settings allow."""
    errors.check_size("columns", given=len(schema.features), limit=settings.max_columns)
    texts = (text for feature in schema.features for text in feature.categories if isinstance(text, str))
    errors.check_size(errors.CELL, given=max(map(len, texts), default=0), limit=settings.max_cell_chars)


def _lock_unused(session: Session, data_set_id: str) -> DataSet:
    row = datasets.find_data_set(session, data_set_id, lock=True)  # new jobs that use it have to wait
    users = or_(Job.data_set_id == data_set_id, Job.holdout_data_set_id == data_set_id)
    job = find_unfinished(session, users)
    if job is not None:
        raise errors.Conflict(f"data set {data_set_id} is used by job {job.id}, which {job.deletion_blocker}")
    trained = or_(Version.data_set_id == data_set_id, Version.holdout_data_set_id == data_set_id)
    version = session.scalars(select(Version).where(trained).limit(1)).first()
    if version is not None:
        use = "was trained on" if version.data_set_id == data_set_id else "was evaluated or pruned on"
        raise errors.Conflict(f"version {version.number} of model {version.model.name!r} {use} data set {data_set_id}")
    return row
