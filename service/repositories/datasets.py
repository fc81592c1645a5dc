"""Data sets: what is declared of them, and their cells in chunks. An object store for the cells would go here."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, delete, insert, or_, select, true
from sqlalchemy.orm import Session

import espalier
from espalier import Fault
from service.database.clock import new_id, utc_now
from service.database.engine import Sessions, read_session
from service.database.tables import UNFINISHED, DataSet, DataSetChunk, Job, Version
from service.errors import Conflict, NotFound, ValidationFailed
from service.repositories.pages import Page, page
from service.serialization.dataset_chunks import Chunk, chunk_rows, decode_rows, encode_table

SAMPLE_BLOCKS = 16  # of consecutive rows; each is read from one or two chunks


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set that is not stored yet: schema, notices and fingerprint as of `espalier.Dataset`, and its chunks.

    Attributes:
        chunks: In the order of their rows; read once, one at a time.
    """

    schema: espalier.Schema
    n_rows: int
    notices: tuple[str, ...]
    fingerprint: str
    chunks: Iterable[Chunk]


def new_data_set(table: espalier.Dataset, *, rows_per_chunk: int | None = None) -> NewDataSet:
    """Return a data set to be stored; its chunks are encoded as they are read."""
    chunks = encode_table(table, rows_per_chunk=rows_per_chunk)
    return NewDataSet(table.schema, table.n_rows, table.notices, table.fingerprint, chunks)


def check_data_set_name(name: str) -> None:
    """Raise `ValidationFailed` if the name is empty, longer than 200 characters or holds a control character."""
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise ValidationFailed([Fault("/name", "invalid", "the name of a data set has 1 to 200 printable characters")])


def add_data_set(session: Session, *, name: str, new: NewDataSet) -> DataSet:
    """Store a data set.

    Raises:
        ValidationFailed: The name is not legal.
    """
    check_data_set_name(name)
    row = DataSet(id=new_id(), name=name, n_rows=new.n_rows, created=utc_now())
    _store(session, row, new)
    return row


def redeclare_data_set(session: Session, data_set_id: str, *, new: NewDataSet, was: str) -> DataSet:
    """Replace the declaration and the cells of a data set by those of the same rows under another schema.

    Args:
        session: Of a transaction for writing.
        data_set_id: The data set.
        new: The same rows.
        was: The fingerprint of the data set that `new` was made from.

    Raises:
        NotFound: There is no such data set.
        Conflict: It is used, as for `delete_data_set`, or its fingerprint is no longer `was`.
    """
    row = _lock_unused(session, data_set_id)
    if row.fingerprint != was:
        raise Conflict(f"data set {data_set_id} was declared anew by another request; look at it and try again")
    session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == data_set_id))
    _store(session, row, new)
    return row


def find_data_set(session: Session, data_set_id: str) -> DataSet:
    """Return a data set without its cells.

    Raises:
        NotFound: There is none.
    """
    found = None if "\0" in data_set_id else session.get(DataSet, data_set_id)  # PostgreSQL refuses NUL in a text
    if found is None:
        raise NotFound("data set", data_set_id)
    return found


def lock_data_set(session: Session, data_set_id: str) -> DataSet:
    """Return a data set as it is now, and lock its row until the transaction ends.

    Raises:
        NotFound: There is none, or it was deleted while another transaction held the lock.
    """
    found = session.get(DataSet, data_set_id, with_for_update=True, populate_existing=True)
    if found is None:
        raise NotFound("data set", data_set_id)
    return found


def list_data_sets(session: Session, *, limit: int = 50, cursor: str | None = None) -> Page[DataSet]:
    """Return a page of data sets, newest first.

    Raises:
        ValidationFailed: The limit or the cursor is not legal.
    """
    return page(session, DataSet, limit=limit, cursor=cursor)


def delete_data_set(session: Session, data_set_id: str) -> None:
    """Delete a data set with its cells.

    Raises:
        NotFound: There is no such data set.
        Conflict: An unfinished job uses it, or a version was made with it; the message names which.
    """
    _lock_unused(session, data_set_id)
    session.execute(delete(DataSet).where(DataSet.id == data_set_id))


def load_data_set(
    session: Session, data_set_id: str, *, roles: Collection[espalier.Role] = frozenset(espalier.Role)
) -> espalier.Dataset:
    """Return a data set, equal to the one that was stored cell by cell, or its columns of some roles.

    The fingerprint of the whole is the stored one: to compute it takes longer than to read the cells.

    Raises:
        NotFound: There is no such data set.
    """
    row = find_data_set(session, data_set_id)
    schema = espalier.Schema.from_dict(row.declared)
    places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
    dataset = _load_rows(session, row.id, schema=schema, places=places, start=0, stop=row.n_rows)
    return dataset.with_fingerprint(row.fingerprint) if len(places) == len(schema.features) else dataset


def load_rows(
    session: Session, data_set_id: str, *, start: int = 0, stop: int | None = None
) -> list[dict[str, espalier.Label | None]]:
    """Return the rows ``start:stop`` with their labels; only the chunks that hold them are read.

    Raises:
        NotFound: There is no such data set.
    """
    row = find_data_set(session, data_set_id)
    stop = row.n_rows if stop is None else min(stop, row.n_rows)
    if start >= stop:
        return []
    schema = espalier.Schema.from_dict(row.declared)
    places = range(len(schema.features))
    return _load_rows(session, row.id, schema=schema, places=places, start=start, stop=stop).rows()


def load_sample(session: Session, data_set_id: str, *, max_cells: int) -> espalier.Dataset:
    """Return the attributes, target and weight of a data set: all rows, or evenly spaced blocks of rows of a large one.

    Args:
        session: For reading.
        data_set_id: The data set.
        max_cells: Most cells that are returned.

    Raises:
        NotFound: There is no such data set.
    """
    row = find_data_set(session, data_set_id)
    schema = espalier.Schema.from_dict(row.declared)
    places = [place for place, feature in enumerate(schema.features) if feature.role is not espalier.Role.IGNORE]
    max_rows = max(1, max_cells // max(1, len(places)))
    if row.n_rows <= max_rows:
        return _load_rows(session, row.id, schema=schema, places=places, start=0, stop=row.n_rows)
    size = max(1, max_rows // SAMPLE_BLOCKS)
    blocks = [
        _load_rows(session, row.id, schema=schema, places=places, start=start, stop=start + size)
        for start in np.linspace(0, row.n_rows - size, SAMPLE_BLOCKS).astype(int).tolist()
    ]
    columns: tuple[Any, ...] = tuple(map(np.concatenate, zip(*(block.columns for block in blocks), strict=True)))
    return espalier.Dataset(blocks[0].schema, columns)


def stored_chunks(session: Session, data_set_id: str) -> Iterator[Chunk]:
    """Yield the chunks of a data set in order, one in memory at a time."""
    return _chunks(session, data_set_id, true())


def iterate_parts(
    source: Sessions, data_set_id: str, *, roles: Collection[espalier.Role], max_rows: int, start: int = 0
) -> Iterator[tuple[int, espalier.Dataset]]:
    """Yield the columns of some roles in parts of at most `max_rows` rows, each with the number of its first row.

    A part lies within one chunk; each chunk is read in a transaction of its own.

    Raises:
        NotFound: There is no such data set.
    """
    while True:
        with read_session(source) as session:
            row = find_data_set(session, data_set_id)
            if start >= row.n_rows:
                return
            schema = espalier.Schema.from_dict(row.declared)
            at_once = chunk_rows(len(schema.features))
            stop = min(row.n_rows, (start // at_once + 1) * at_once)
            places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
            chunk = _load_rows(session, row.id, schema=schema, places=places, start=start, stop=stop)
        for first in range(0, stop - start, max_rows):
            columns: tuple[Any, ...] = tuple(np.asarray(column)[first : first + max_rows] for column in chunk.columns)
            yield start + first, espalier.Dataset(chunk.schema, columns)
        start = stop


def _store(session: Session, row: DataSet, new: NewDataSet) -> None:
    row.n_attributes = len(new.schema.attributes)
    row.declared = new.schema.to_dict()
    row.task = new.schema.task
    row.notices = list(new.notices)
    row.fingerprint = new.fingerprint
    session.add(row)
    session.flush()
    for chunk in new.chunks:
        values = {"first_row": chunk.first_row, "n_rows": chunk.n_rows, "content": chunk.content}
        session.execute(insert(DataSetChunk).values(data_set_id=row.id, **values))
        del chunk, values  # it is large, and the next one is encoded now


def _lock_unused(session: Session, data_set_id: str) -> DataSet:
    row = lock_data_set(session, data_set_id)  # a job that starts to use it now has to wait
    users = or_(Job.data_set_id == data_set_id, Job.holdout_data_set_id == data_set_id)
    job = session.scalar(select(Job).where(users, Job.state.in_(UNFINISHED)).limit(1))
    if job is not None:
        raise Conflict(f"data set {data_set_id} is used by job {job.id}, which {job.deletion_blocker}")
    trained = or_(Version.data_set_id == data_set_id, Version.holdout_data_set_id == data_set_id)
    version = session.scalars(select(Version).where(trained).limit(1)).first()
    if version is not None:
        use = "was trained on" if version.data_set_id == data_set_id else "was measured or pruned by the rows of"
        raise Conflict(f"version {version.number} of model {version.model.name!r} {use} data set {data_set_id}")
    return row


def _load_rows(
    session: Session, data_set_id: str, *, schema: espalier.Schema, places: Sequence[int], start: int, stop: int
) -> espalier.Dataset:
    """Return the rows ``start:stop`` of the features at `places`."""
    in_range = (DataSetChunk.first_row < stop) & (DataSetChunk.first_row + DataSetChunk.n_rows > start)
    chunks = _chunks(session, data_set_id, in_range)
    return decode_rows(chunks, schema, places=places, start=start, stop=stop)


def _chunks(session: Session, data_set_id: str, condition: ColumnElement[bool]) -> Iterator[Chunk]:
    """Yield the chunks that meet a condition, in order, one in memory at a time."""
    query = select(DataSetChunk.first_row, DataSetChunk.n_rows, DataSetChunk.content)
    query = query.where(DataSetChunk.data_set_id == data_set_id, condition).order_by(DataSetChunk.first_row)
    return (Chunk(*row) for row in session.execute(query, execution_options={"yield_per": 1}))
