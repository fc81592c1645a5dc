"""Data sets: their declarations, and their rows, which are chunks in the database or files below the store."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, takewhile
from typing import Any

import numpy as np
from sqlalchemy import Text, cast, delete, func, insert, select
from sqlalchemy.orm import Session, defer

import espalier
from service.database.engine import Sessions, read_session
from service.database.tables import DataSet, DataSetChunk
from service.errors import NotFound, ValidationFailed
from service.repositories.pagination import Page, page
from service.serialization.dataset_chunks import Chunk, chunk_rows, decode_chunks, encode_table, join_rows
from service.serialization.parquet_store import StoreFile, store_at

ALL_ROLES = frozenset(espalier.Role)
SAMPLE_BLOCKS = 16  # number of blocks of consecutive rows
WITHOUT_DECLARATION = (defer(DataSet.declared),)  # for `page`: a declaration may have millions of categories
MAX_LISTED_CHARS = 16 * 2**20  # of the declarations in one page of the list, without the last one


@dataclass(frozen=True, slots=True)
class NewDataSet:
    """A data set that is not stored yet; the first four fields are as in `espalier.Dataset`.

    Attributes:
        chunks: The rows, unless they are in `files`; the iterable is read once, one chunk at a time.
        reference: The path of `files` below the store; None if the rows are in `chunks`.
    """

    schema: espalier.Schema
    n_rows: int
    notices: tuple[espalier.Notice, ...]
    fingerprint: str
    chunks: Iterable[Chunk] = ()
    reference: str | None = None
    files: Sequence[StoreFile] = ()


def new_data_set(table: espalier.Dataset, *, rows_per_chunk: int | None = None) -> NewDataSet:
    """Return a data set to be stored; each chunk is encoded when it is read."""
    chunks = encode_table(table, rows_per_chunk=rows_per_chunk)
    return NewDataSet(table.schema, table.n_rows, table.notices, table.fingerprint, chunks)


def check_data_set_name(name: str) -> None:
    """Raise `ValidationFailed` if the name is empty, has over 200 characters, or has an unprintable character."""
    if not 1 <= len(name) <= 200 or not name.isprintable():
        raise ValidationFailed.of("/name", "invalid", "the name of a data set has 1 to 200 printable characters")


def add_data_set(session: Session, *, name: str, new: NewDataSet) -> DataSet:
    """Store a data set; raise `ValidationFailed` if its name is not legal."""
    check_data_set_name(name)
    row = DataSet(name=name, n_rows=new.n_rows)
    _store(session, row, new)
    return row


def replace_data_set(session: Session, row: DataSet, new: NewDataSet) -> None:
    """Replace the declaration and the cells of a data set."""
    session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == row.id))
    _store(session, row, new)


def find_data_set(session: Session, data_set_id: str, *, lock: bool = False) -> DataSet:
    """Return a data set without its cells; with `lock`, read the newest state and lock it for the transaction."""
    options: dict[str, Any] = {"with_for_update": True, "populate_existing": True} if lock else {}
    # PostgreSQL refuses NUL in a text.
    row = None if "\0" in data_set_id else session.get(DataSet, data_set_id, **options)
    if row is None:
        raise NotFound("data set", data_set_id)
    return row


def list_data_sets(session: Session, **query: Any) -> Page[DataSet]:
    """Return a page of data sets, newest first; it ends early if their declarations exceed `MAX_LISTED_CHARS`."""
    found = page(session, DataSet, options=WITHOUT_DECLARATION, **query)
    ids = [row.id for row in found.items]
    size = select(func.length(cast(DataSet.declared, Text))).where(DataSet.id.in_(ids)).order_by(DataSet.id.desc())
    n_items = sum(1 for _ in takewhile(MAX_LISTED_CHARS.__ge__, accumulate(session.scalars(size)))) + 1
    session.scalars(select(DataSet).where(DataSet.id.in_(ids[:n_items]))).all()  # adds the declarations to the items
    return found if n_items >= len(ids) else Page(found.items[:n_items], next=ids[n_items - 1])


def load_data_set(
    session: Session, data_set_id: str, *, roles: Collection[espalier.Role] = ALL_ROLES
) -> espalier.Dataset:
    """Return a data set with the columns of these roles.

    A data set with all columns gets its stored fingerprint: computing it would take longer than reading the cells.
    """
    row = find_data_set(session, data_set_id)
    dataset = _load_rows(session, row, roles=roles, start=0, stop=row.n_rows)
    is_whole = len(dataset.columns) == len(row.declared["columns"])
    return dataset.with_fingerprint(row.fingerprint) if is_whole else dataset


def load_rows(
    session: Session, data_set_id: str, *, start: int = 0, stop: int | None = None
) -> list[dict[str, espalier.Label | None]]:
    """Return the rows ``start:stop``, each as a dict of column names and values; chunks of other rows are not read."""
    row = find_data_set(session, data_set_id)
    stop = row.n_rows if stop is None else min(stop, row.n_rows)
    return _load_rows(session, row, start=start, stop=stop).rows() if start < stop else []


def load_sample(session: Session, data_set_id: str, *, max_cells: int) -> espalier.Dataset:
    """Return attributes, target and weight of all rows or, above `max_cells` cells, of evenly spaced blocks of rows."""
    row = find_data_set(session, data_set_id)
    roles = ALL_ROLES - {espalier.Role.IGNORE}
    n_columns = sum(feature.role in roles for feature in espalier.Schema.from_dict(row.declared).features)
    max_rows = max(1, max_cells // max(1, n_columns))
    if row.n_rows <= max_rows:
        return _load_rows(session, row, roles=roles, start=0, stop=row.n_rows)
    size = max(1, max_rows // SAMPLE_BLOCKS)
    blocks = [
        _load_rows(session, row, roles=roles, start=start, stop=start + size)
        for start in np.linspace(0, row.n_rows - size, min(SAMPLE_BLOCKS, max_rows)).astype(int).tolist()
    ]
    columns: tuple[Any, ...] = tuple(map(np.concatenate, zip(*(block.columns for block in blocks), strict=True)))
    return espalier.Dataset(blocks[0].schema, columns)


def stored_chunks(session: Session, data_set_id: str, *, start: int, stop: int) -> Iterator[Chunk]:
    """Yield the chunks from the database that have some of the rows ``start:stop``, in order, one at a time."""
    query = select(DataSetChunk.first_row, DataSetChunk.n_rows, DataSetChunk.content)
    in_range = DataSetChunk.first_row < stop, DataSetChunk.first_row + DataSetChunk.n_rows > start
    query = query.where(DataSetChunk.data_set_id == data_set_id, *in_range).order_by(DataSetChunk.first_row)
    return (Chunk(*row) for row in session.execute(query, execution_options={"yield_per": 1}))


def stored_files(row: DataSet) -> list[StoreFile]:
    """Return the files below the store that have the rows of a data set; none if the rows are in the database."""
    return [StoreFile(**file) for file in row.files or ()]


def stored_rows(
    session: Session, row: DataSet, *, roles: Collection[espalier.Role] = ALL_ROLES, start: int, stop: int
) -> Iterator[tuple[int, espalier.Dataset]]:
    """Yield the rows ``start:stop`` in parts, each as (number of its first row, its columns with these `roles`).

    The rows are read from the database or from the files below the store; files are read without the session.
    """
    schema = espalier.Schema.from_dict(row.declared)
    places = [place for place, feature in enumerate(schema.features) if feature.role in roles]
    if row.reference is None:
        chunks = stored_chunks(session, row.id, start=start, stop=stop)
        return decode_chunks(chunks, schema, places=places, start=start, stop=stop)
    store = store_at(session.get_bind().get_execution_options()["store"])
    return store.rows(stored_files(row), schema, places, start=start, stop=stop)


def iterate_parts(
    source: Sessions, data_set_id: str, *, max_rows: int, start: int = 0
) -> Iterator[tuple[int, espalier.Dataset]]:
    """Yield the rows from `start` on in parts of at most `max_rows` rows, each with the number of its first row.

    Each chunk in the database is read in a separate transaction; files are read in order, outside of transactions.
    """
    while True:
        with read_session(source) as session:
            row = find_data_set(session, data_set_id)
            if start >= row.n_rows:
                return
            n_rows = chunk_rows(len(row.declared["columns"]))
            stop = row.n_rows if row.reference else min(row.n_rows, (start // n_rows + 1) * n_rows)
            if row.reference is None:
                parts = iter([(start, _load_rows(session, row, start=start, stop=stop))])
            else:
                parts = stored_rows(session, row, start=start, stop=stop)
        for first, part in parts:
            for at in range(0, part.n_rows, max_rows):
                yield first + at, espalier.Dataset(part.schema, tuple(part.slice(at, at + max_rows)))
        start = stop


def _store(session: Session, row: DataSet, new: NewDataSet) -> None:
    row.n_attributes = len(new.schema.attributes)
    row.declared = new.schema.to_dict()
    row.task = new.schema.task
    row.notices = [notice.to_dict() for notice in new.notices]
    row.fingerprint = new.fingerprint
    row.reference, row.files = new.reference, [asdict(file) for file in new.files] or None
    session.add(row)
    session.flush()
    for chunk in new.chunks:
        values = {"first_row": chunk.first_row, "n_rows": chunk.n_rows, "content": chunk.content}
        session.execute(insert(DataSetChunk).values(data_set_id=row.id, **values))
        del chunk, values  # frees the memory before the next chunk is encoded


def _load_rows(
    session: Session, row: DataSet, *, roles: Collection[espalier.Role] = ALL_ROLES, start: int, stop: int
) -> espalier.Dataset:
    schema = espalier.Schema.from_dict(row.declared)
    chosen = tuple(feature for feature in schema.features if feature.role in roles)
    parts = stored_rows(session, row, roles=roles, start=start, stop=stop)
    return join_rows(parts, espalier.Schema(chosen, schema.missing_values), start=start, stop=stop)
