"""Every type of Arrow: its column is the data set that a CSV of its values is, or it is refused by name."""

import csv
import io
import struct
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import parquet

from espalier import (
    DataError,
    Dataset,
    EspalierError,
    TreeClassifier,
    dataset_from_arrow,
    dataset_from_csv,
    read_table,
)

WORDS = ["b", None, "a", "b"]
INDICES = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
MOMENT = datetime(2024, 2, 29, 12, 30, 15, 250000)
LARGEST = {"date": date(9999, 12, 31), "first": date(1, 1, 1)}


def coded(values: pa.Array, *, indices: pa.DataType = pa.int8(), ordered: bool = False) -> pa.Array:  # noqa: B008
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1], indices), values, ordered=ordered)


def runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays([2, 3, 6], values)


READ: dict[str, tuple[pa.Array, str]] = {
    **{
        str(kind): (pa.array([1, None, 3, int(np.iinfo(kind.to_pandas_dtype()).max)], kind), "numeric")
        for kind in INDICES
    },
    "half": (pa.array([np.float16(1.5), None, np.float16(-0.25), np.float16(65504)], pa.float16()), "numeric"),
    "float": (pa.array([1.5, None, -0.25, 2.0**-100], pa.float32()), "numeric"),
    "double": (pa.array([0.1, None, -1e300, 5e-324]), "numeric"),
    **{
        f"decimal of {width} bits": (
            pa.array([Decimal("0.35"), None, Decimal("1.50"), Decimal("-9.99")], kind),
            "numeric",
        )
        for width, kind in (
            (32, pa.decimal32(5, 2)),
            (64, pa.decimal64(10, 2)),
            (128, pa.decimal128(10, 2)),
            (256, pa.decimal256(50, 2)),
        )
    },
    "decimal of hundreds": (pa.array([Decimal("1.2E+4"), None, Decimal("-3E+2")], pa.decimal128(5, -2)), "numeric"),
    "text": (pa.array(WORDS), "nominal"),
    "large text": (pa.array(WORDS, pa.large_string()), "nominal"),
    "view of text": (pa.array(WORDS, pa.string_view()), "nominal"),
    **{f"dictionary by {kind}": (coded(pa.array(["b", "a"]), indices=kind), "nominal") for kind in INDICES},
    "dictionary of large texts": (coded(pa.array(["b", "a"], pa.large_string())), "nominal"),
    "dictionary of views": (coded(pa.array(["b", "a"], pa.string_view())), "nominal"),
    "dictionary of whole numbers": (coded(pa.array([10, 9])), "nominal"),
    "dictionary of decimals": (coded(pa.array([Decimal("1.50"), Decimal("0.35")])), "nominal"),
    "dictionary of booleans": (coded(pa.array([True, False])), "boolean"),
    "dictionary of dates": (coded(pa.array([date(2020, 1, 1), date(1960, 2, 29)])), "datetime"),
    "dictionary with a missing entry": (coded(pa.array(["b", None])), "nominal"),
    "dictionary with an entry twice": (coded(pa.array(["b", "b"])), "nominal"),
    "dictionary of numbers with NaN": (coded(pa.array([2.5, float("nan")])), "nominal"),
    "days": (pa.array([date(2020, 1, 1), None, *LARGEST.values()], pa.date32()), "datetime"),
    "days in milliseconds": (pa.array([date(2020, 1, 1), None, *LARGEST.values()], pa.date64()), "datetime"),
    **{
        f"instants in {unit}, {zone}": (
            pa.array(
                [MOMENT.replace(microsecond=0), None, datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp(unit, zone)
            ),
            "datetime",
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin", "+02:00")
    },
    "instants of microseconds": (pa.array([MOMENT, None, datetime.max, datetime.min], pa.timestamp("us")), "datetime"),
    "booleans": (pa.array([True, None, False]), "boolean"),
    "nothing": (pa.nulls(3), "nominal"),
    "runs of numbers": (pc.run_end_encode(pa.array([1, 1, None, 3])), "numeric"),
    "runs of texts": (pc.run_end_encode(pa.array(WORDS)), "nominal"),
    "runs of a dictionary": (runs(pa.array(["b", None, "a"]).dictionary_encode()), "nominal"),
    "some rows of runs of a dictionary": (runs(pa.array(["b", None, "a"]).dictionary_encode()).slice(1, 4), "nominal"),
    "runs of views": (runs(pa.array(["b", None, "a"], pa.string_view())), "nominal"),
    "runs of bytes of booleans": (
        runs(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))),
        "boolean",
    ),
    "runs of booleans": (pc.run_end_encode(pa.array([True, None, False])), "boolean"),
    "JSON": (pa.array(['{"a": 1}', None, "[]"], pa.json_()), "nominal"),
    "bytes of booleans": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8())), "boolean"),
}
"""Columns, and the kind that their type means."""

NESTED = pa.array([[1], None])
REFUSED: dict[str, pa.Array] = {
    "binary": pa.array([b"a", None]),
    "large_binary": pa.array([b"a", None], pa.large_binary()),
    "binary_view": pa.array([b"a", None], pa.binary_view()),
    "fixed_size_binary[1]": pa.array([b"a", None], pa.binary(1)),
    "time32[s]": pa.array([time(1), None], pa.time32("s")),
    "time32[ms]": pa.array([time(1), None], pa.time32("ms")),
    "time64[us]": pa.array([time(1), None], pa.time64("us")),
    "time64[ns]": pa.array([time(1), None], pa.time64("ns")),
    **{f"duration[{unit}]": pa.array([timedelta(1), None], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "month_day_nano_interval": pa.array([pa.MonthDayNano([1, 2, 3]), None]),
    "list<item: int64>": NESTED,
    "large_list<item: int64>": NESTED.cast(pa.large_list(pa.int64())),
    "list_view<item: int64>": pa.array([[1], None], pa.list_view(pa.int64())),
    "large_list_view<item: int64>": pa.array([[1], None], pa.large_list_view(pa.int64())),
    "fixed_size_list<item: int64>[1]": pa.array([[1], None], pa.list_(pa.int64(), 1)),
    "list<item: null>": pa.array([[], None]),
    "struct<x: int64>": pa.array([{"x": 1}, None]),
    "struct<>": pa.array([{}, None], pa.struct([])),
    "map<string, int64>": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "sparse_union<0: int64=0, 1: string=1>": pa.UnionArray.from_sparse(
        pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    "dense_union<0: int64=0>": pa.UnionArray.from_dense(
        pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]
    ),
    "extension<arrow.opaque[storage_type=int8, type_name=runs, vendor_name=b]>": runs(
        pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "runs", "b"), pa.array([1, 2, 3], pa.int8()))
    ),
    "dictionary<values=binary, indices=int8, ordered=0>": coded(pa.array([b"a", b"b"])),
    "dictionary<values=time64[us], indices=int8, ordered=0>": coded(pa.array([time(1), time(2)])),
    "dictionary<values=list<item: int64>, indices=int8, ordered=0>": coded(pa.array([[1], [2]])),
    "extension<arrow.uuid>": pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
    "extension<arrow.opaque[storage_type=int8, type_name=a, vendor_name=b]>": pa.ExtensionArray.from_storage(
        pa.opaque(pa.int8(), "a", "b"), pa.array([1, 2], pa.int8())
    ),
    "extension<arrow.fixed_shape_tensor[value_type=int8, shape=[1]]>": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [1]), pa.array([[1], [2]], pa.list_(pa.int8(), 1))
    ),
}
"""Columns of types without a meaning, by the name of the type."""


def written(cell: Any) -> str:
    """Return a cell as CSV shows it."""
    if cell is None or (isinstance(cell, float) and cell != cell):  # noqa: PLR0124
        return ""
    if isinstance(cell, datetime):
        return (cell.astimezone(UTC) if cell.tzinfo else cell).isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    return format(cell, "f") if isinstance(cell, Decimal) else str(cell)


def cells_of(array: pa.Array) -> list[Any]:
    cells: list[Any] = array.to_pylist()
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        cells = [None if cell is None else cell.to_pydatetime() for cell in cells]
    if pa.types.is_decimal(array.type) or (
        pa.types.is_dictionary(array.type) and pa.types.is_decimal(array.type.value_type)
    ):
        return [None if cell is None else Decimal(cell) for cell in cells]
    return cells


def as_csv(cells: Sequence[Any], kind: str) -> Dataset:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["n", "a"], *enumerate(map(written, cells))])
    return dataset_from_csv(text.getvalue(), schema={"columns": [{"name": "a", "kind": kind}]})


def tables(array: pa.Array) -> dict[str, Dataset]:
    table = pa.table({"n": pa.array(range(len(array))), "a": array})
    halves = pa.concat_tables([table.slice(0, 1), table.slice(1, 1), table.slice(2)])
    stream, file = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    found = {"table": dataset_from_arrow(table), "chunks": dataset_from_arrow(halves)}
    for name, content in (("stream", stream), ("file", file)):
        content.seek(0)
        found[name] = read_table(content, "arrow")
    return found


@pytest.mark.parametrize("value", [True, date(2024, 2, 29), MOMENT, Decimal("1.5")])
def test_a_dictionary_whose_first_block_has_no_values_has_the_kind_of_the_whole(value: Any) -> None:
    type_ = pa.dictionary(pa.int8(), pa.scalar(value).type)
    nothing = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], type_.value_type))
    whole = pa.table({"n": [0, 1], "a": pa.chunked_array([nothing, pa.array([value]).dictionary_encode().cast(type_)])})
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, whole.schema) as writer:
        writer.write_table(whole)
    stream.seek(0)
    assert read_table(stream, "arrow").schema == dataset_from_arrow(whole).schema


def test_a_dictionary_of_dictionaries_is_that_of_their_values() -> None:
    nested = coded(coded(pa.array(["b", "a"])).slice(2))  # pyarrow itself cannot read it back from a stream
    assert dataset_from_arrow(pa.table({"n": range(4), "a": nested})) == as_csv(["a", None, "b", "a"], "nominal")


@pytest.mark.parametrize("name", READ)
def test_a_column_of_each_type_is_the_data_set_that_a_csv_of_its_values_is(name: str) -> None:
    array, kind = READ[name]
    expected = as_csv(cells_of(array), kind)
    for form, found in tables(array).items():
        assert (str(found.schema.features[1].kind), form) == (kind, form)
        assert found.fingerprint == expected.fingerprint, (form, found.schema, found.columns, expected.columns)


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_of_a_type_without_a_meaning_is_refused_by_its_name_and_type(name: str) -> None:
    table = pa.table({"n": [1] * len(REFUSED[name]), "a": REFUSED[name]})
    content = io.BytesIO()
    with pa.ipc.new_stream(content, table.schema) as writer:
        writer.write_table(table)
    content.seek(0)
    for read in (lambda: dataset_from_arrow(table), lambda: read_table(content, "arrow")):
        with pytest.raises(DataError) as refused:
            read()
        (fault,) = refused.value.faults
        assert (fault.path, fault.code) == ("/a", "wrong_type")
        assert fault.message.startswith(f"columns of the type {name} cannot be read: give numbers, texts, dates")


def nearest(value: Decimal) -> float:
    """Return the double nearest to a decimal, the even one of two, by exact arithmetic."""
    exact = Fraction(value)
    guess = float(exact)
    bits = struct.unpack("<q", struct.pack("<d", guess))[0]
    neighbours = [guess, np.nextafter(guess, np.inf), np.nextafter(guess, -np.inf)]
    best = min(neighbours, key=lambda each: abs(Fraction(float(each)) - exact))
    ties = [each for each in neighbours if abs(Fraction(float(each)) - exact) == abs(Fraction(float(best)) - exact)]
    return float(best) if len(ties) == 1 or bits % 2 == 0 else float(next(each for each in ties if each != guess))


@settings(max_examples=60)
@given(
    st.integers(0, 38).flatmap(
        lambda scale: st.lists(
            st.integers(-(10**38) + 1, 10**38 - 1).map(lambda whole: Decimal(whole).scaleb(-scale)),
            min_size=1,
            max_size=30,
        )
    )
)
def test_a_decimal_is_the_nearest_double(values: list[Decimal]) -> None:
    scale = max(-int(value.as_tuple().exponent) for value in values)
    found = dataset_from_arrow(pa.table({"a": pa.array(values, pa.decimal256(76, scale))}))
    assert found.columns[0].tolist() == [nearest(value) for value in values]


def test_ten_thousand_prices_are_those_of_their_csv() -> None:
    prices = [Decimal(cents).scaleb(-2) for cents in range(10_000)]
    content = io.BytesIO()
    parquet.write_table(pa.table({"n": range(10_000), "a": pa.array(prices, pa.decimal128(10, 2))}), content)
    content.seek(0)
    found = read_table(content, "parquet")
    assert found == as_csv(prices, "numeric")
    assert found.columns[1].tolist() == [cents / 100 for cents in range(10_000)]


def test_decimals_that_are_classes_or_categories_are_written_as_in_csv() -> None:
    table = pa.table({"a": pa.array([Decimal("1.50"), Decimal("0.35")]), "y": pa.array([Decimal(1), Decimal(0)])})
    schema = {"target": "y", "columns": [{"name": "a", "kind": "nominal"}]}
    found = dataset_from_arrow(table, schema=schema)
    assert found == dataset_from_csv("a,y\n1.50,1\n0.35,0\n", schema=schema)
    assert found.schema.features[0].categories == ("0.35", "1.50")
    assert found.schema.classes == (0, 1)


def test_decimals_of_pandas_are_categories_with_their_own_digits() -> None:
    prices = [Decimal("1.5"), Decimal("1.50"), Decimal("2"), None]
    frame = pandas.DataFrame({"n": range(4), "a": pandas.Series(prices, dtype=object)})
    schema = {"columns": [{"name": "a", "kind": "nominal"}]}
    found = dataset_from_arrow(frame, schema=schema)
    assert found == dataset_from_csv("n,a\n0,1.5\n1,1.50\n2,2\n3,\n", schema=schema)
    assert [row["a"] for row in found.rows()] == ["1.5", "1.50", "2", None]


def test_whole_numbers_beyond_doubles_are_rounded_and_told_and_kept_as_categories() -> None:
    numbers = [2**53 + 1, 2**64 - 1]
    table = pa.table({"n": [0, 1], "a": pa.array(numbers, pa.uint64())})
    found = dataset_from_arrow(table)
    assert found == as_csv(numbers, "numeric")
    assert found.columns[1].tolist() == [2.0**53, 2.0**64]
    assert any("rounded to doubles" in str(notice) for notice in found.notices)
    nominal = dataset_from_arrow(table, schema={"columns": [{"name": "a", "kind": "nominal"}]})
    assert nominal == as_csv(numbers, "nominal")
    assert nominal.schema.features[1].categories == tuple(sorted(map(str, numbers)))


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("ticks", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_instants_outside_the_years_of_dates_are_refused(unit: str, ticks: int) -> None:
    array = pa.array([ticks, 0], pa.int64()).cast(pa.timestamp(unit))
    with pytest.raises(DataError, match=r"/a: must be within the years 1 to 9999, or missing: 1 cell \(row 0"):
        dataset_from_arrow(pa.table({"a": array}))
    with pytest.raises(DataError, match="within the years 1 to 9999"):
        dataset_from_arrow(pa.table({"a": pa.array([2**31 - 1], pa.int32()).cast(pa.date32())}))


@pytest.mark.parametrize("values", [[b"\xff", b"a"], [b"a\xc3", b"a"]])
def test_texts_that_are_not_utf_8_are_refused_by_column(values: list[bytes]) -> None:
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array(values).buffers())
    table = pa.table({"n": [1, 2], "a": broken, "b": coded(broken).slice(2)})
    stream, file = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    stream.seek(0)
    for read in (lambda: dataset_from_arrow(table), lambda: read_table(stream, "arrow")):
        with pytest.raises(DataError) as refused:
            read()
        assert [(fault.path, "UTF-8" in fault.message) for fault in refused.value.faults] == [
            ("/a", True),
            ("/b", True),
        ]
    parquet.write_table(table, file)
    file.seek(0)
    with pytest.raises(DataError, match="not UTF-8"):
        read_table(file, "parquet")


def sizes(*orders: Sequence[str]) -> pa.Table:
    """Return a table of ordered dictionaries, one a chunk, whose cells are all of their entries."""
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(len(order)), pa.int8()), pa.array(order), ordered=True)
        for order in orders
    ]
    return pa.table({"a": pa.chunked_array(chunks)})


@pytest.mark.parametrize(
    ("orders", "legal"),
    [
        ((["S", "M", "L"], ["S", "L"], ["M"]), ("S", "M", "L")),
        ((["S", "M"], ["S", "M", "L"]), ("S", "M", "L")),
        ((["S", "L"], ["S", "M", "L"]), None),
        ((["M", "L"], ["S"]), None),
        ((["S", "M"], ["M", "S"]), None),
    ],
)
def test_ordered_dictionaries_of_several_chunks_are_of_one_order_or_refused(
    orders: tuple[Sequence[str], ...], legal: tuple[str, ...] | None
) -> None:
    table = sizes(*orders)
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    stream.seek(0)
    for read in (lambda: dataset_from_arrow(table), lambda: read_table(stream, "arrow")):
        if legal is None:
            with pytest.raises(DataError, match="/a: its dictionaries list the ordered categories differently"):
                read()
        else:
            (feature,) = read().schema.features
            assert (str(feature.kind), feature.categories) == ("ordinal", legal)


@pytest.mark.parametrize("make", [lambda frame: frame, lambda frame: frame.lazy()])
def test_integers_of_128_bits_are_refused_by_name(make: Callable[[Any], Any]) -> None:
    frame = polars.DataFrame({"n": [1], "a": polars.Series([1], dtype=polars.Int128)})
    with pytest.raises(DataError, match="/a: columns of the type Int128 cannot be read"):
        dataset_from_arrow(make(frame))
    content = io.BytesIO()
    frame.write_ipc(content)
    content.seek(0)
    with pytest.raises(DataError, match="with a column of a type that cannot be read: give numbers"):
        read_table(content, "arrow")


@pytest.mark.parametrize("kind", [polars.Categorical, polars.Enum(["b", "a"])])
def test_categories_of_polars_are_those_of_their_files(kind: Any) -> None:
    frame = polars.DataFrame({"a": polars.Series(WORDS, dtype=kind)})
    parts = [dataset_from_arrow(frame)]
    for form, write in (("parquet", frame.write_parquet), ("arrow", frame.write_ipc)):
        content = io.BytesIO()
        write(content)
        content.seek(0)
        parts.append(read_table(content, form))
    expected = ("b", "a") if kind != polars.Categorical else ("a", "b")
    assert {data.schema.features[0].categories for data in parts} == {expected}
    assert len({data.fingerprint for data in parts}) == 1


def test_categories_of_pandas_are_those_of_their_arrow_table() -> None:
    frame = pandas.DataFrame(
        {
            "word": pandas.Categorical(["b", "a", None]),
            "number": pandas.Categorical([2, 10, None]),
            "sure": pandas.Categorical([True, False, None]),
            "day": pandas.Categorical(pandas.to_datetime(["2020-01-01", "2019-01-01", None])),
            "size": pandas.Categorical(["M", "S", None], ["S", "M", "L"], ordered=True),
        }
    )
    found = dataset_from_arrow(frame)
    assert found == dataset_from_arrow(pa.Table.from_pandas(frame))
    kinds = ["nominal", "nominal", "boolean", "datetime", "ordinal"]
    assert [str(feature.kind) for feature in found.schema.features] == kinds


def test_a_table_of_each_type_without_rows_is_refused() -> None:
    for array, _ in READ.values():
        with pytest.raises(DataError, match="no rows"):
            dataset_from_arrow(pa.table({"a": array.slice(0, 0)}))


def files_of(table: pa.Table, **options: Any) -> dict[str, io.BytesIO]:
    """Return a table as a Parquet file and as an Arrow stream."""
    file, stream = io.BytesIO(), io.BytesIO()
    parquet.write_table(table, file, **options)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    file.seek(0)
    stream.seek(0)
    return {"parquet": file, "arrow": stream}


@pytest.mark.parametrize("index", [["u", "v", "w"], pandas.Index([7, 8, 9], name="id"), [[1, 2, 3], ["u", "v", "w"]]])
def test_an_index_of_pandas_is_left_out_and_told_unless_it_is_declared(index: Any) -> None:
    frame = pandas.DataFrame({"x": [1.5, 2.5, 3.5], "y": ["p", "q", "p"]}, index=index)
    names = [name for name in pa.Table.from_pandas(frame).column_names if name not in ("x", "y")]
    assert names
    expected = dataset_from_arrow(frame, target="y")
    table = pa.Table.from_pandas(frame)
    found = [dataset_from_arrow(table, target="y")]
    found += [read_table(content, form, target="y") for form, content in files_of(table).items()]
    for data in found:
        assert data == expected
        assert [feature.name for feature in data.schema.features] == ["x", "y"]
        for name in names:
            assert any(repr(name) in str(notice) and "index" in str(notice) for notice in data.notices)
    declared = dataset_from_arrow(table, target="y", ignore=names)
    assert [feature.name for feature in declared.schema.features] == ["x", "y", *names]


@pytest.mark.parametrize(
    "metadata",
    [b'{"index_columns": 5}', b'{"index_columns": null}', b'{"index_columns": "x"}', b"[" * 100_000],
    ids=["number", "null", "text", "nested"],
)
def test_metadata_of_pandas_without_a_list_of_index_columns_are_ignored(metadata: bytes) -> None:
    table = pa.table({"x": [1.5, 2.5], "y": ["p", "q"]}).replace_schema_metadata({b"pandas": metadata})
    for data in (dataset_from_arrow(table, target="y"), read_table(files_of(table)["arrow"], "arrow", target="y")):
        assert data == dataset_from_csv("x,y\n1.5,p\n2.5,q\n", target="y")


def test_an_estimator_does_not_learn_from_an_index_of_pandas() -> None:
    frame = pandas.DataFrame({"x": [1.5, 2.5, 3.5, 4.5]}, index=["p", "q", "r", "s"])
    with pytest.warns(UserWarning, match="index columns of pandas are left out: __index_level_0__"):
        fitted = TreeClassifier(preset="cart").fit(pa.Table.from_pandas(frame), [0, 1, 0, 1])
    assert list(fitted.feature_names_in_) == ["x"]
    assert fitted.predict(frame).tolist() == [0, 1, 0, 1]


def test_an_order_that_a_parquet_file_does_not_hold_is_refused() -> None:
    size = pandas.Categorical(["L", "S", "M", "S"], ["S", "M", "L", "XL"], ordered=True)
    table = pa.Table.from_pandas(pandas.DataFrame({"n": range(4), "a": size}))
    (_, feature) = read_table(files_of(table, row_group_size=2)["parquet"], "parquet").schema.features
    assert feature.categories == ("S", "M", "L", "XL")
    with pytest.raises(DataError, match="/a: its categories are ordered, but the file does not hold their order"):
        read_table(files_of(table, row_group_size=2, use_dictionary=False)["parquet"], "parquet")


def test_a_column_of_pandas_without_a_name_is_refused() -> None:
    with pytest.raises(EspalierError, match="a name has 1 to 1000 characters"):
        dataset_from_arrow(pandas.DataFrame([[1, 2]], columns=[None, "b"]))
