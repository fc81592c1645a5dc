"""Data sets in the database: what comes out is what went in."""

import numpy as np
import pytest

import espalier
from service.database.engine import Sessions, read_session, transaction
from service.database.tables import DataSet
from service.errors import NotFound
from service.repositories import datasets
from service.serialization.dataset_chunks import chunk_rows, decode_chunks, encode_table
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

    with read_session(source) as session:
        loaded = datasets.load_data_set(session, keep_data_set(source, dataset))

    assert loaded.schema == dataset.schema
    assert espalier.Dataset(loaded.schema, loaded.columns).fingerprint == dataset.fingerprint
    assert loaded.rows() == dataset.rows()
    for before, after in zip(dataset.columns, loaded.columns, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_a_sample_of_fewer_rows_than_blocks_has_each_row_once(source: Sessions) -> None:
    rows = espalier.dataset_from_rows([{"a": float(row), "b": 1.0} for row in range(40)])
    with read_session(source) as session:
        sample = datasets.load_sample(session, keep_data_set(source, rows), max_cells=20)
    assert sample.n_rows == 10
    assert len(set(sample.columns[0].tolist())) == 10


def test_the_fingerprint_of_the_whole_is_the_one_that_was_stored_with_it(source: Sessions) -> None:
    data_set_id = keep_data_set(source)
    with transaction(source) as session:
        session.get_one(DataSet, data_set_id).fingerprint = "0" * 64  # the digest of nothing

    with read_session(source) as session:
        whole = datasets.load_data_set(session, data_set_id)
        part = datasets.load_data_set(session, data_set_id, roles={espalier.Role.TARGET})

    assert whole.fingerprint == "0" * 64
    assert part.fingerprint == espalier.Dataset(part.schema, part.columns).fingerprint


def test_a_model_trained_on_the_loaded_data_set_is_the_same_document(source: Sessions) -> None:
    with read_session(source) as session:
        loaded = datasets.load_data_set(session, keep_data_set(source))

    assert espalier.to_json(espalier.train(loaded, "cart")) == espalier.to_json(espalier.train(patients(), "cart"))


def test_chunks_hold_the_rows_in_order_and_none_twice() -> None:
    chunks = list(encode_table(patients(), rows_per_chunk=5))

    assert [(chunk.first_row, chunk.n_rows) for chunk in chunks] == [(0, 5), (5, 5), (10, 2)]


@pytest.mark.parametrize(("start", "stop"), [(0, 12), (0, 5), (4, 6), (5, 10), (9, 12), (11, 99), (3, None)])
def test_any_range_of_rows_is_read_across_chunks(start: int, stop: int | None, source: Sessions) -> None:
    data_set_id = keep_data_set(source, chunk_rows=5)

    with read_session(source) as session:
        assert datasets.load_rows(session, data_set_id, start=start, stop=stop) == patients().rows()[start:stop]


def test_a_range_beyond_the_end_is_empty(source: Sessions) -> None:
    data_set_id = keep_data_set(source)

    with read_session(source) as session:
        assert datasets.load_rows(session, data_set_id, start=12) == []
        assert datasets.load_rows(session, data_set_id, start=5, stop=5) == []


def test_every_bit_of_a_number_comes_back() -> None:
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 1, 1 << 63, 0x7FF0000000000000, 0x3FB999999999999A], "u8")
    numbers = bits.view(np.float64)
    features = tuple(espalier.Feature(name, espalier.FeatureKind.NUMERIC) for name in "ab")
    table = espalier.Dataset(espalier.Schema(features), (numbers, numbers[::-1].copy()))

    [(_, whole)] = decode_chunks(encode_table(table), table.schema, places=[0, 1], start=0, stop=6)
    [(_, part)] = decode_chunks(encode_table(table), table.schema, places=[1], start=2, stop=5)
    (first, second), [only] = whole.columns, part.columns

    assert (first.view("u8") == bits).all()
    assert (second.view("u8") == bits[::-1]).all()
    assert (only.view("u8") == bits[::-1][2:5]).all()


def test_a_chunk_of_a_wide_table_is_bounded() -> None:
    assert chunk_rows(20) == 65_536
    assert 1_000 < chunk_rows(2_000) < 2**26 / (2_000 * 8)
    assert chunk_rows(10**9) == 1


@pytest.mark.parametrize(("max_rows", "firsts"), [(5, [0, 5, 10]), (12, [0]), (4, [0, 4, 8])])
def test_a_data_set_is_read_part_by_part(source: Sessions, max_rows: int, firsts: list[int]) -> None:
    data_set_id = keep_data_set(source, chunk_rows=5)

    parts = list(datasets.iterate_parts(source, data_set_id, max_rows=max_rows))
    late = list(datasets.iterate_parts(source, data_set_id, max_rows=max_rows, start=7))

    assert [first for first, _ in parts] == firsts
    assert [row for _, part in parts for row in part.rows()] == patients().rows()
    assert [row for _, part in late for row in part.rows()] == patients().rows()[7:]


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

    with read_session(source) as session:
        found = datasets.load_data_set(session, data_set_id, roles={espalier.Role.IGNORE, espalier.Role.TARGET})

    assert found.schema.features == (dataset.schema.features[1], dataset.schema.features[3])
    assert [row["b"] for row in found.rows()] == words
    assert [row["y"] for row in found.rows()] == table["y"]


def test_a_data_set_that_does_not_exist_is_not_found(source: Sessions) -> None:
    with pytest.raises(NotFound, match="there is no data set 'none'"), read_session(source) as session:
        datasets.load_data_set(session, "none")
    with pytest.raises(NotFound), read_session(source) as session:
        datasets.load_rows(session, "none")
