"""Data sets in the database: what comes out is what went in."""

import io
import os
import threading

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError

import espalier
from espalier.csv_compiled import compile_reading
from service import storage
from service.chunks import Chunk, encode_rows, unpack_rows
from service.database.engine import Sessions, reading, transaction
from service.database.sqlite import StoredBytes
from service.database.tables import DataSet, DataSetChunk
from service.errors import NotFound
from service.staging import packed_chunks
from tests.service.kept import keep_data_set, patients

EVERY_KIND = {
    "target": "y",
    "columns": [
        {"name": "size", "kind": "numeric"},
        {"name": "colour", "kind": "nominal", "categories": ["réd", "blue", "a\nb", ""]},
        {"name": "grade", "kind": "ordinal", "categories": ["low", "middle", "high"]},
        {"name": "new", "kind": "boolean"},
        {"name": "when", "kind": "datetime"},
        {"name": "c0", "kind": "numeric", "role": "weight"},
        {"name": "id", "kind": "nominal", "role": "ignore"},
        {"name": "y", "kind": "nominal", "categories": ["no", "yes"]},
    ],
}


def every_kind() -> espalier.Dataset:
    return espalier.dataset_from_rows(
        [
            {"size": 0.1, "colour": "réd", "grade": "high", "new": True, "when": "2026-11-20", "c0": 1, "y": "no"}
            | {"id": "r1"},
            {"size": None, "colour": None, "grade": None, "new": None, "when": None, "c0": 2.5, "y": "yes"},
            {"size": -1e300, "colour": "a\nb", "grade": "low", "new": False, "when": "1969-07-20T20:17:40Z"}
            | {"c0": 0.5, "y": "yes", "id": "r3"},
        ],
        schema=EVERY_KIND,
    )


def test_every_kind_of_column_comes_back_cell_by_cell(source: Sessions) -> None:
    dataset = every_kind()

    with reading(source) as session:
        loaded = storage.load(session, keep_data_set(source, dataset))

    assert loaded.schema == dataset.schema
    assert espalier.Dataset(loaded.schema, loaded.columns).fingerprint == dataset.fingerprint
    assert loaded.rows() == dataset.rows()
    for before, after in zip(dataset.columns, loaded.columns, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_the_fingerprint_of_the_whole_is_the_one_that_was_stored_with_it(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    with transaction(source) as session:
        session.get_one(DataSet, data_set_id).fingerprint = "0" * 64  # the digest of nothing

    with reading(source) as session:
        whole = storage.load(session, data_set_id)
        part = storage.load(session, data_set_id, roles={espalier.Role.TARGET})

    assert whole.fingerprint == "0" * 64
    assert part.fingerprint == espalier.Dataset(part.schema, part.columns).fingerprint


def test_a_model_trained_on_the_loaded_data_set_is_the_same_document(source: Sessions) -> None:
    with reading(source) as session:
        loaded = storage.load(session, keep_data_set(source))

    assert espalier.to_json(espalier.train(loaded, "cart")) == espalier.to_json(espalier.train(patients(), "cart"))


def test_chunks_hold_the_rows_in_order_and_none_twice() -> None:
    chunks = list(packed_chunks(patients(), chunk_rows=5))

    assert [(chunk.first_row, chunk.n_rows) for chunk in chunks] == [(0, 5), (5, 5), (10, 2)]


@pytest.mark.parametrize(("start", "stop"), [(0, 12), (0, 5), (4, 6), (5, 10), (9, 12), (11, 99), (3, None)])
def test_any_range_of_rows_is_read_across_chunks(start: int, stop: int | None, source: Sessions) -> None:
    data_set_id = keep_data_set(source, chunk_rows=5)

    with reading(source) as session:
        assert storage.rows(session, data_set_id, start=start, stop=stop) == patients().rows()[start:stop]


def test_a_range_beyond_the_end_is_empty(source: Sessions) -> None:
    data_set_id = keep_data_set(source)

    with reading(source) as session:
        assert storage.rows(session, data_set_id, start=12) == []
        assert storage.rows(session, data_set_id, start=5, stop=5) == []


def test_chunks_from_before_there_were_words_are_read() -> None:
    forms = b'{"n_rows":3,"columns":[{"width":1,"places":1,"least":366},{"width":1}]}'
    content = b"ESPC" + len(forms).to_bytes(4, "little") + forms + bytes([0, 4, 255]) + bytes([2, 0, 1])
    numbers, codes = np.empty(3), np.empty(3, np.int32)

    unpack_rows(io.BytesIO(content), [0, 1], start=0, stop=3, out=[numbers, codes])

    assert numbers[:2].tolist() == [36.6, 37.0]
    assert np.isnan(numbers[2])
    assert codes.tolist() == [1, -1, 0]


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")  # of kernels that stay Python
def test_a_chunk_of_several_forms_is_read_column_by_column() -> None:
    compile_reading()
    printed = np.array([float(str(np.float32(number))) for number in np.linspace(-3, 3, 1_001)])
    printed[500] = 1 / 3
    columns = (np.arange(1_001.0), printed, np.arange(1_001, dtype=np.int32))
    features = (
        espalier.Feature("a", espalier.FeatureKind.NUMERIC),
        espalier.Feature("b", espalier.FeatureKind.NUMERIC),
        espalier.Feature("c", espalier.FeatureKind.NOMINAL, categories=tuple(map(str, range(1_001)))),
    )
    chunk = encode_rows(espalier.Dataset(espalier.Schema(features), columns), 0, 1_001)

    for start, stop in ((0, 1_001), (499, 502)):
        out = [np.empty(stop - start), np.empty(stop - start, np.int32)]
        unpack_rows(io.BytesIO(chunk.content), [1, 2], start=start, stop=stop, out=out)

        assert out[0].tolist() == printed[start:stop].tolist()
        assert out[1].tolist() == list(range(start, stop))


def test_columns_of_some_roles_are_read_from_many_chunks(source: Sessions) -> None:
    words = [f"word {row % 7}" for row in range(1_000)]
    table = {
        "a": range(1_000),
        "b": words,
        "c": [row / 8 for row in range(1_000)],
        "y": [row % 2 for row in range(1_000)],
    }
    dataset = espalier.dataset_from_columns(table, target="y", ignore=["b"])
    data_set_id = keep_data_set(source, dataset, chunk_rows=37)

    with reading(source) as session:
        found = storage.load(session, data_set_id, roles={espalier.Role.IGNORE, espalier.Role.TARGET})

    assert found.schema.features == (dataset.schema.features[1], dataset.schema.features[3])
    assert [row["b"] for row in found.rows()] == words
    assert [row["y"] for row in found.rows()] == table["y"]


def test_a_chunk_that_goes_while_it_is_read_is_an_error_of_the_database(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    with reading(source) as session:
        if session.connection().dialect.name != "sqlite":
            pytest.skip("a chunk of another database is read at once")
        content = session.scalars(select(DataSetChunk.content)).one()
        lock = threading.Lock()
        stored = StoredBytes(session.connection(), "data_set_chunks", "content", 1, lock)
        assert stored.read(4) == content[:4]
        stored.seek(3, os.SEEK_CUR)
        assert stored.read() == content[7:]
        session.execute(delete(DataSetChunk).where(DataSetChunk.data_set_id == data_set_id))

        stored.seek(0, os.SEEK_SET)
        with pytest.raises(DBAPIError):
            stored.read()

        assert not lock.locked()


def test_rows_are_streamed_chunk_by_chunk(source: Sessions) -> None:
    n_rows = 2 * storage.CHUNK_ROWS + 3
    dataset = espalier.Dataset(
        espalier.Schema.from_dict({"columns": [{"name": "x", "kind": "numeric"}]}), (np.arange(n_rows, dtype=float),)
    )
    data_set_id = keep_data_set(source, dataset)

    pieces = list(storage.stream(source, data_set_id, start=storage.CHUNK_ROWS - 1))

    assert [len(piece) for piece in pieces] == [1, storage.CHUNK_ROWS, 3]
    assert [row["x"] for piece in pieces for row in piece] == list(range(storage.CHUNK_ROWS - 1, n_rows))


def test_chunks_that_were_stored_as_parquet_files_are_still_read(source: Sessions) -> None:
    dataset = every_kind()
    data_set_id = keep_data_set(source, dataset)
    table = pyarrow.table({f"c{place}": pyarrow.array(column) for place, column in enumerate(dataset.columns)})
    content = io.BytesIO()
    parquet.write_table(table, content, compression="zstd", use_dictionary=False, write_statistics=False)
    with transaction(source) as session:
        storage.replace(session, data_set_id, [Chunk(0, dataset.n_rows, content.getvalue())])

    with reading(source) as session:
        loaded, last = storage.load(session, data_set_id), storage.rows(session, data_set_id, start=2)

    assert loaded.fingerprint == dataset.fingerprint
    assert last == dataset.rows()[2:]


def test_a_data_set_that_does_not_exist_is_not_found(source: Sessions) -> None:
    with pytest.raises(NotFound, match="there is no data set 'none'"), reading(source) as session:
        storage.load(session, "none")
    with pytest.raises(NotFound), reading(source) as session:
        storage.rows(session, "none")
