"""The cells of data sets: chunks in the database. The seam where an object store would go."""

import io
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, Final

import numpy as np
from sqlalchemy import Connection, Integer, delete, insert, literal_column, null, select
from sqlalchemy.orm import Session

import espalier
from service.chunks import CHUNK_ROWS, Chunk, unpack_rows
from service.database.engine import Sessions, reading
from service.database.sqlite import StoredBytes
from service.database.tables import DataSet, DataSetChunk
from service.errors import NotFound
from service.log_growth import has_grown, make_room

__all__ = ["CHUNK_ROWS", "Chunk", "datasets", "load", "replace", "rows", "save", "stream"]

THREADS = 2
ROWID: Final = literal_column("rowid", Integer)
"""Where SQLite keeps a row."""


def save(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Keep the chunks of a data set whose row was added in the same transaction, and is changed once more in it."""
    row = select(DataSet.fingerprint).where(DataSet.id == data_set_id)
    for chunk in chunks:
        make_room(session, len(chunk.content))
        session.execute(
            insert(DataSetChunk).values(
                data_set_id=data_set_id, first_row=chunk.first_row, n_rows=chunk.n_rows, content=chunk.content
            )
        )
        del chunk  # it is large, and the next one is waited for
        has_grown(session, row)


def replace(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Keep these chunks instead of those that there are."""
    session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == data_set_id))
    save(session, data_set_id, chunks)


def load(
    session: Session, data_set_id: str, *, roles: Collection[espalier.Role] = frozenset(espalier.Role)
) -> espalier.Dataset:
    """The whole data set, equal to the one that was uploaded, cell by cell; or its columns of some roles only.

    The fingerprint of the whole is the one that was stored with the cells: to find it again takes longer than to read.

    Raises:
        NotFound: no data set has this id.
    """
    schema, n_rows = _declaration(session, data_set_id)
    places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
    found = _assembled(session, data_set_id, schema=schema, places=places, start=0, stop=n_rows)
    if len(places) < len(schema.features):
        return found
    return found.known_as(session.scalars(select(DataSet.fingerprint).where(DataSet.id == data_set_id)).one())


def rows(
    session: Session, data_set_id: str, *, start: int = 0, stop: int | None = None
) -> list[dict[str, espalier.Label | None]]:
    """The rows start … stop - 1 with their original labels; only the chunks that hold them are read.

    Raises:
        NotFound: no data set has this id.
    """
    schema, n_rows = _declaration(session, data_set_id)
    stop = n_rows if stop is None else min(stop, n_rows)
    if start >= stop:
        return []
    places = range(len(schema.features))
    return _assembled(session, data_set_id, schema=schema, places=places, start=start, stop=stop).rows()


def datasets(
    source: Sessions, data_set_id: str, *, roles: Collection[espalier.Role], start: int = 0
) -> Iterator[tuple[int, espalier.Dataset]]:
    """The columns of some roles, chunk by chunk, each with the place of its first row; a transaction a chunk.

    Raises:
        NotFound: no data set has this id.
    """
    while True:
        with reading(source) as session:
            schema, n_rows = _declaration(session, data_set_id)
            if start >= n_rows:
                return
            stop = min(n_rows, (start // CHUNK_ROWS + 1) * CHUNK_ROWS)
            places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
            part = _assembled(session, data_set_id, schema=schema, places=places, start=start, stop=stop)
        yield start, part
        start = stop


def stream(
    source: Sessions, data_set_id: str, *, start: int = 0, stop: int | None = None
) -> Iterator[list[dict[str, espalier.Label | None]]]:
    """The same rows chunk by chunk, in memory that does not grow with the data set.

    Raises:
        NotFound: no data set has this id.
    """
    with reading(source) as session:
        _, n_rows = _declaration(session, data_set_id)
        stop = n_rows if stop is None else min(stop, n_rows)
        while start < stop:
            end = min(stop, (start // CHUNK_ROWS + 1) * CHUNK_ROWS)
            yield rows(session, data_set_id, start=start, stop=end)
            start = end


def _declaration(session: Session, data_set_id: str) -> tuple[espalier.Schema, int]:
    found = session.execute(select(DataSet.declared, DataSet.n_rows).where(DataSet.id == data_set_id)).first()
    if found is None:
        raise NotFound("data set", data_set_id)
    return espalier.Schema.from_dict(found.declared), found.n_rows


def _assembled(
    session: Session, data_set_id: str, *, schema: espalier.Schema, places: Sequence[int], start: int, stop: int
) -> espalier.Dataset:
    connection = session.connection()
    rowid = ROWID if connection.dialect.name == "sqlite" else null().label("rowid")
    chunks = connection.execute(
        select(DataSetChunk.data_set_id, DataSetChunk.first_row, DataSetChunk.n_rows, rowid)
        .where(
            DataSetChunk.data_set_id == data_set_id,
            DataSetChunk.first_row < stop,
            DataSetChunk.first_row + DataSetChunk.n_rows > start,
        )
        .order_by(DataSetChunk.first_row)
    ).all()
    features = [schema.features[place] for place in places]
    shown = espalier.Schema(tuple(features), schema.missing_values)
    columns: tuple[Any, ...] = tuple(
        np.empty(stop - start, dtype=np.int32 if each.coded else np.float64) for each in features
    )
    turns = threading.Lock()  # of the threads, which share the connection

    def unpack(chunk: Any) -> None:
        first, last = max(start, chunk.first_row), min(stop, chunk.first_row + chunk.n_rows)
        parts = [column[first - start : last - start] for column in columns]
        with closing(_opened(connection, chunk, turns)) as content:
            unpack_rows(content, places, start=first - chunk.first_row, stop=last - chunk.first_row, out=parts)

    with ThreadPoolExecutor(THREADS, thread_name_prefix="unpack") as pool:
        for _ in pool.map(unpack, chunks):  # raises what they raise
            pass
    return espalier.Dataset(shown, columns)


def _opened(connection: Connection, chunk: Any, turns: threading.Lock) -> io.BytesIO | StoredBytes:
    """Open the content of a chunk. Where SQLite has it, a column is read when it is asked for: half the copies."""
    if chunk.rowid is not None:
        return StoredBytes(connection, DataSetChunk.__tablename__, "content", chunk.rowid, turns)
    chosen = DataSetChunk.data_set_id == chunk.data_set_id, DataSetChunk.first_row == chunk.first_row
    with turns:
        return io.BytesIO(connection.scalars(select(DataSetChunk.content).where(*chosen)).one())
