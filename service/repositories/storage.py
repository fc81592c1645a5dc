"""Cells of data sets: chunks in the database. An object store would go here."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

import espalier
from service.database.engine import Sessions, read_session
from service.database.tables import DataSet, DataSetChunk
from service.errors import NotFound
from service.serialization.dataset_chunks import Chunk, chunk_rows, decode_columns


def save(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Store the chunks of a data set; its row was added in the same transaction."""
    for chunk in chunks:
        row = {"first_row": chunk.first_row, "n_rows": chunk.n_rows, "content": chunk.content}
        session.execute(insert(DataSetChunk).values(data_set_id=data_set_id, **row))
        del chunk, row  # it is large, and the next one is waited for


def replace(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Store these chunks and delete those that there are."""
    session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == data_set_id))
    save(session, data_set_id, chunks)


def load(
    session: Session, data_set_id: str, *, roles: Collection[espalier.Role] = frozenset(espalier.Role)
) -> espalier.Dataset:
    """Return the data set, equal to the one that was uploaded, cell by cell; or its columns of some roles only.

    The fingerprint of the whole is the one that was stored with the cells: computing it takes longer than reading.

    Raises:
        NotFound: No data set has this id.
    """
    schema, n_rows = _declaration(session, data_set_id)
    places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
    dataset = _assembled(session, data_set_id, schema=schema, places=places, start=0, stop=n_rows)
    if len(places) < len(schema.features):
        return dataset
    return dataset.with_fingerprint(session.scalars(select(DataSet.fingerprint).where(DataSet.id == data_set_id)).one())


def rows(
    session: Session, data_set_id: str, *, start: int = 0, stop: int | None = None
) -> list[dict[str, espalier.Label | None]]:
    """Return the rows start … stop - 1 with their labels; only the chunks that hold them are read.

    Raises:
        NotFound: No data set has this id.
    """
    schema, n_rows = _declaration(session, data_set_id)
    stop = n_rows if stop is None else min(stop, n_rows)
    if start >= stop:
        return []
    places = range(len(schema.features))
    return _assembled(session, data_set_id, schema=schema, places=places, start=start, stop=stop).rows()


def datasets(
    source: Sessions, data_set_id: str, *, roles: Collection[espalier.Role], max_rows: int, start: int = 0
) -> Iterator[tuple[int, espalier.Dataset]]:
    """Yield the columns of some roles part by part, each with the number of its first row; a transaction a chunk.

    A part lies within one chunk, and has at most `max_rows` rows.

    Raises:
        NotFound: No data set has this id.
    """
    while True:
        with read_session(source) as session:
            schema, n_rows = _declaration(session, data_set_id)
            if start >= n_rows:
                return
            at_once = chunk_rows(len(schema.features))
            stop = min(n_rows, (start // at_once + 1) * at_once)
            places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
            chunk = _assembled(session, data_set_id, schema=schema, places=places, start=start, stop=stop)
        for first in range(0, stop - start, max_rows):
            columns: tuple[Any, ...] = tuple(np.asarray(column)[first : first + max_rows] for column in chunk.columns)
            yield start + first, espalier.Dataset(chunk.schema, columns)
        start = stop


def _declaration(session: Session, data_set_id: str) -> tuple[espalier.Schema, int]:
    row = session.execute(select(DataSet.declared, DataSet.n_rows).where(DataSet.id == data_set_id)).first()
    if row is None:
        raise NotFound("data set", data_set_id)
    return espalier.Schema.from_dict(row.declared), row.n_rows


def _assembled(
    session: Session, data_set_id: str, *, schema: espalier.Schema, places: Sequence[int], start: int, stop: int
) -> espalier.Dataset:
    features = [schema.features[place] for place in places]
    columns: tuple[Any, ...] = tuple(
        np.empty(stop - start, dtype=np.int32 if each.coded else np.float64) for each in features
    )
    chunks = session.execute(
        select(DataSetChunk.first_row, DataSetChunk.n_rows, DataSetChunk.content)
        .where(
            DataSetChunk.data_set_id == data_set_id,
            DataSetChunk.first_row < stop,
            DataSetChunk.first_row + DataSetChunk.n_rows > start,
        )
        .order_by(DataSetChunk.first_row)
        .execution_options(yield_per=1)
    )
    for chunk in chunks:
        first, last = max(start, chunk.first_row), min(stop, chunk.first_row + chunk.n_rows)
        cells = decode_columns(chunk.content, places)
        for column, part in zip(columns, cells, strict=True):
            column[first - start : last - start] = part[first - chunk.first_row : last - chunk.first_row]
    return espalier.Dataset(espalier.Schema(tuple(features), schema.missing_values), columns)
