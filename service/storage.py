"""The cells of data sets: Parquet chunks in the database. The seam where an object store would go.

    rows      0 ........ 65 535 | 65 536 ........ 131 071 | ...
    chunk     first_row = 0     | first_row = 65 536      |
    columns   c0, c1, …: one a feature of the schema, in its order; float64, or int32 codes with -1 for missing

pyarrow is loaded by the first call that needs it: a process that only predicts never does.
"""

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

import espalier
from service.db import Sessions, reading
from service.errors import NotFound
from service.tables import DataSet, DataSetChunk

CHUNK_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of a data set as the bytes of one Parquet file."""

    first_row: int
    n_rows: int
    content: bytes


def encode(dataset: espalier.Dataset, *, chunk_rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Pack a data set into chunks; do it before the transaction, since it takes the longest."""
    import pyarrow  # noqa: PLC0415 - see the top of this module
    from pyarrow import parquet  # noqa: PLC0415 - as above

    names = [f"c{position}" for position in range(len(dataset.columns))]
    for first_row in range(0, dataset.n_rows, chunk_rows):
        rows = slice(first_row, min(first_row + chunk_rows, dataset.n_rows))
        table = pyarrow.table([pyarrow.array(column[rows]) for column in dataset.columns], names=names)
        content = io.BytesIO()
        parquet.write_table(table, content, compression="zstd")
        yield Chunk(first_row=first_row, n_rows=rows.stop - rows.start, content=content.getvalue())


def save(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Keep the chunks of a data set whose row was added in the same transaction."""
    for chunk in chunks:
        session.execute(
            insert(DataSetChunk).values(
                data_set_id=data_set_id, first_row=chunk.first_row, n_rows=chunk.n_rows, content=chunk.content
            )
        )


def replace(session: Session, data_set_id: str, chunks: Iterable[Chunk]) -> None:
    """Keep these chunks instead of those that there are."""
    session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == data_set_id))
    save(session, data_set_id, chunks)


def load(
    session: Session, data_set_id: str, *, roles: Collection[espalier.Role] = frozenset(espalier.Role)
) -> espalier.Dataset:
    """The whole data set, equal to the one that was uploaded, cell by cell; or its columns of some roles only.

    Raises:
        NotFound: no data set has this id.
    """
    schema, n_rows = _declaration(session, data_set_id)
    places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
    return _assembled(session, data_set_id, schema=schema, places=places, start=0, stop=n_rows)


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
    chunks = session.execute(
        select(DataSetChunk.first_row, DataSetChunk.content)
        .where(
            DataSetChunk.data_set_id == data_set_id,
            DataSetChunk.first_row < stop,
            DataSetChunk.first_row + DataSetChunk.n_rows > start,
        )
        .order_by(DataSetChunk.first_row)
    )
    names = [f"c{place}" for place in places]
    pieces = [
        _cells(chunk.content, names, start=start - chunk.first_row, stop=stop - chunk.first_row) for chunk in chunks
    ]
    shown = espalier.Schema(tuple(schema.features[place] for place in places), schema.missing_values)
    if not pieces:
        return espalier.Dataset(shown, tuple(np.empty(0) for _ in places))
    columns = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return espalier.Dataset(shown, tuple(columns))


def _cells(content: bytes, names: list[str], *, start: int, stop: int) -> list[np.ndarray]:
    from pyarrow import parquet  # noqa: PLC0415 - see the top of this module

    table = parquet.read_table(io.BytesIO(content), columns=names, use_threads=False)
    return [column.to_numpy()[max(start, 0) : stop] for column in table.columns]
