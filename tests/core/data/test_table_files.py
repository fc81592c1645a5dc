"""Tables in files: one table is one data set, whatever its format; bad files are refused by what and where."""

import gzip
import io
import json

import pyarrow
import pytest
from hypothesis import example, given, settings
from pyarrow import parquet

from espalier import (
    FORMATS,
    DataError,
    FeatureKind,
    InvalidInput,
    Limits,
    Schema,
    TooLarge,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_file,
    format_of,
    predict,
    read_table,
    rows_from_file,
    store_dataset,
    train,
)
from espalier.data.readers import read_source
from espalier.data.readers.source import opened
from tests.written import WRITERS, as_arrow, as_arrow_table, as_csv, as_parquet, declared_tables, inferred_tables


def read(content: bytes, form: str, *, limits: Limits | None = None, **declared):
    return read_table(io.BytesIO(content), form, limits=limits or Limits(), **declared)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".ndjson"])
def test_a_file_may_be_named_by_a_text(tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    content = b'{"a": 1, "y": "p"}' if ending == ".ndjson" else b"a,y\n1,p\n"
    path.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    data = dataset_from_file(str(path), target="y")
    assert data == dataset_from_file(path, target="y")
    assert [row["a"] for row in rows_from_file(data.schema, str(path))] == [1]
    assert store_dataset([str(path)], str(tmp_path), target="y") == data


def faults_of(content: bytes, form: str, **declared):
    with pytest.raises(InvalidInput) as caught:
        read(content, form, **declared)
    return [(fault.path, fault.code, fault.message) for fault in caught.value.faults]


@settings(max_examples=60)
@given(table=inferred_tables())
@example(table=({"a": [None, None], "y": [1, 0]}, {"target": "y"}))
@example(table=({"a": [1, 2.5], "b": ["?", "NA"], "y": [0.5, 1.5]}, {"target": "y"}))
def test_a_table_without_a_declaration_is_the_same_data_set_in_every_format(table):
    columns, declared = table
    found = {name: read(write(columns), form, **declared) for name, (form, _, write) in WRITERS.items()}
    expected = dataset_from_columns(columns, **declared)
    assert {name: data.schema for name, data in found.items()} == dict.fromkeys(WRITERS, expected.schema)
    assert {data.fingerprint for data in found.values()} == {expected.fingerprint}
    assert {data.notices for data in found.values()} == {expected.notices}


@settings(max_examples=60)
@given(table=declared_tables())
def test_a_declared_table_is_the_same_data_set_in_every_format_with_its_labels_as_they_are_spelt(table):
    columns, declared = table
    found = {name: read(write(columns), form, **declared) for name, (form, _, write) in WRITERS.items()}
    expected = dataset_from_columns(columns, **declared)
    assert {name: data.schema for name, data in found.items()} == dict.fromkeys(WRITERS, expected.schema)
    assert {data.fingerprint for data in found.values()} == {expected.fingerprint}
    for column in declared["schema"]["columns"]:
        if column["kind"] in ("nominal", "ordinal", "boolean"):
            shown = [row[column["name"]] for row in expected.rows()]
            assert [(type(cell), cell) for cell in shown] == [(type(cell), cell) for cell in columns[column["name"]]]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_known_by_its_ending_packed_or_not(tmp_path, name):
    form, _, write = WRITERS[name]
    columns = {"x": [1.5, 2.5, None], "y": ["no", "yes", "no"]}
    for ending in FORMATS[form].endings:
        for packed in (False, True):
            path = tmp_path / f"Table{ending.upper()}{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(write(columns)) if packed else write(columns))
            assert format_of(path) == form
            assert dataset_from_file(path, target="y") == dataset_from_columns(columns, target="y")
            model = train(dataset_from_columns(columns, target="y"))
            rows = rows_from_file(model.schema, path)
            assert [answer.label for answer in predict(model, rows[:2])] == ["no", "yes"]


def test_an_ending_that_says_nothing_is_refused_with_those_that_do(tmp_path):
    with pytest.raises(DataError, match=r"\.csv, \.json, \.ndjson, \.jsonl, \.parquet, .*\.gz"):
        dataset_from_file(tmp_path / "table.xlsx")


@pytest.mark.parametrize("name", WRITERS)
def test_a_text_that_stands_for_missing_stands_for_the_number_too_where_it_is_one(name):
    form, _, write = WRITERS[name]
    columns = {"n": [-999, 1.5, -999.0, -99], "c": ["-999", "u", "none", "-999.0"], "y": [1, 0, 1, 0]}
    data = read(write(columns), form, missing_values=["-999", "none"], target="y")
    assert [row["n"] for row in data.rows()] == [None, 1.5, None, -99.0]
    assert [row["c"] for row in data.rows()] == [None, "u", None, "-999.0"]
    model = train(data)
    assert predict(model, [{"n": -999, "c": "none"}])[0].row.missing == ("n", "c")


# NDJSON


def test_a_name_that_turns_up_late_was_missing_before_and_one_that_goes_is_missing_after():
    rows = [{"a": 1}] * 3 + [{"a": 2, "b": "u"}] * 3 + [{"b": "v"}]
    content = "\n\n".join(map(json.dumps, rows)).encode()
    assert read(content, "ndjson").rows() == [{"a": row.get("a"), "b": row.get("b")} for row in rows]


def test_labels_of_ndjson_keep_their_type_when_their_column_looked_like_numbers_for_long():
    cells = [1] * 40_000 + [1.0, True, "1", "007"]
    content = "\n".join(json.dumps({"a": cell, "b": "x" * 40}) for cell in cells).encode()
    data = read(content, "ndjson")
    assert data == dataset_from_columns({"a": cells, "b": ["x" * 40] * len(cells)})
    assert [type(row["a"]) for row in data.rows(39_999)] == [int, float, bool, str, str]


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "empty", "no rows"),
        (b"\n \n", "empty", "no rows"),
        (b'{"a": 1}\n[1]\n', "wrong_type", "line 2"),
        (b'{"a": 1}\n{"a": NaN}\n', "not_json", "line 2, character 7"),
        (b'{"a": 1}\n{"a": 1e400}\n', "not_json", "line 2"),
        (b'{"a": "\\ud800"}\n', "not_json", "line 1"),
        (b'{"a": "\xff"}\n', "not_json", "line 1"),
        (b"[" * 100_000, "not_json", "line 1"),
        (b'{"a": ' * 100_000, "not_json", "line 1"),
        (b'{"a": [1]}\n{"a": "x"}\n', "wrong_type", "row 0"),
        (b'{"a": {}}\n', "wrong_type", "row 0"),
        (b'{"a\\u0000": "x"}\n', "characters", "NUL"),
        (b'{"a": "\\u0000"}\n', "characters", "NUL"),
        (b"\x00\x01", "not_json", "line 1"),
    ],
)
def test_ndjson_that_is_none_is_refused_by_its_line(content, code, words):
    ((_, found, message),) = faults_of(content, "ndjson")
    assert found == code
    assert words in message


# JSON


@pytest.mark.parametrize(
    ("content", "path", "code"),
    [
        (b"", "", "not_json"),
        (b"[" * 100_000, "", "not_json"),
        (b'{"rows": [{"a": 1e400}]}', "", "not_json"),
        (b"[]", "", "wrong_type"),
        (b"{}", "", "wrong_type"),
        (b'{"rows": [], "columns": {}}', "", "wrong_type"),
        (b'{"rows": []}', "/rows", "empty"),
        (b'{"rows": {}}', "/rows", "wrong_type"),
        (b'{"rows": [{"a": 1}, 2]}', "/rows/1", "wrong_type"),
        (b'{"columns": {"a/b": [[]]}}', "/columns/a~1b", "wrong_type"),
        (b'{"rows": [{"a": 1}], "shema": {}}', "/shema", "unknown_field"),
        (b'{"rows": [{"a": 1}], "schema": {"columns": [{"name": "a", "kind": "u"}]}}', "/schema/columns/0/kind",
         "unknown_value"),
    ],
)  # fmt: skip
def test_json_that_is_no_table_is_refused_by_its_place(content, path, code):
    assert [(found, name) for found, name, _ in faults_of(content, "json")] == [(path, code)]


def test_a_row_of_very_many_names_before_very_many_rows_is_refused_before_there_are_cells():
    rows = [{f"x{n}": n for n in range(2_000)}, *([{}] * 100_000)]
    for form, content in (
        ("json", json.dumps({"rows": rows}).encode()),
        ("ndjson", "\n".join(map(json.dumps, rows)).encode()),
    ):
        with pytest.raises(TooLarge, match="too many cells: at most 1000000"):
            read(content, form, limits=Limits(cells=1_000_000))


# Parquet and Arrow


def test_types_say_what_a_column_is_and_a_declaration_stands_over_them():
    ordered = pyarrow.dictionary(pyarrow.int8(), pyarrow.string(), ordered=True)
    table = pyarrow.table({
        "b": pyarrow.array([True, None, False, True]),
        "d": pyarrow.array([0, 1, 2, None], pyarrow.timestamp("ms", "UTC")),
        "o": pyarrow.array(["mid", "low", None, "mid"]).cast(ordered),
        "i": pyarrow.array([1, 2, 2**60, 4]),
        "s": pyarrow.array(["1", "2", "NA", "x"], pyarrow.large_string()),
        "y": pyarrow.array([0, 1, 0, 1], pyarrow.uint8()),
    })  # fmt: skip
    content = io.BytesIO()
    parquet.write_table(table, content, row_group_size=2)
    data = read(content.getvalue(), "parquet", target="y")
    assert [(str(feature.kind), feature.categories) for feature in data.schema.features] == [
        ("boolean", (False, True)),
        ("datetime", ()),
        ("ordinal", ("mid", "low")),
        ("numeric", ()),
        ("nominal", ("1", "2", "x")),
        ("nominal", (0, 1)),
    ]
    assert data.columns[1].tolist()[:3] == [0.0, 0.001, 0.002]
    schema = {"columns": [{"name": "i", "kind": "nominal", "categories": [4, 1, 2, float(2**60)]}]}
    assert read(content.getvalue(), "parquet", schema=schema).columns[3].tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_file_of_no_rows_and_one_of_a_type_without_a_meaning_are_refused(form):
    write = {"parquet": as_parquet, "arrow": as_arrow}[form]
    ((path, code, message),) = faults_of(write({"a": [], "b": []}), form)
    assert (path, code) == ("", "empty")
    assert "2 columns and no rows" in message
    assert faults_of(write({"a": [1], "b/c": [[1]]}), form)[0][:2] == ("/b~1c", "wrong_type")


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_bytes_that_are_cut_short_or_changed_anywhere_are_a_table_or_refused(form):
    whole = {"parquet": as_parquet, "arrow": as_arrow}[form]({"a": [1.5, None, 3.0, 4.0], "b": ["x", "y", None, "x"]})
    damaged = [whole[:end] for end in range(0, len(whole), 7)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(0, len(whole), 5)]
    refused = 0
    for content in damaged:
        try:
            read(content, form)
        except (InvalidInput, MemoryError):
            refused += 1
    assert refused > len(damaged) / 3


def test_an_arrow_file_is_read_like_an_arrow_stream():
    table = as_arrow_table({"a": [1, 2], "b": ["x", "y"]})
    content = io.BytesIO()
    with pyarrow.ipc.new_file(content, table.schema) as file:
        file.write_table(table)
    assert read(content.getvalue(), "arrow") == read(as_csv({"a": [1, 2], "b": ["x", "y"]}), "csv")


def test_a_parquet_file_of_more_rows_than_allowed_is_refused_by_what_it_says_or_has():
    content = as_parquet({"a": list(range(100))})
    with pytest.raises(TooLarge, match="rows"):
        read(content, "parquet", limits=Limits(rows=99))
    with pytest.raises(TooLarge, match="rows"):
        read(as_arrow({"a": list(range(100))}), "arrow", limits=Limits(rows=99))


def test_a_named_file_has_the_limits_of_a_stream(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b"column\n1\n")
    lines = tmp_path / "table.ndjson"
    lines.write_bytes(b'{"column": 1}\n')
    for limits, source in ((Limits(content=3), file), (Limits(content=3), lines), (Limits(line=3), lines)):
        with pytest.raises(TooLarge):
            dataset_from_file(source, limits=limits)
    with pytest.raises(TooLarge):
        dataset_from_csv(file.read_bytes(), limits=Limits(content=3))


# Packed


@pytest.mark.parametrize("name", WRITERS)
def test_a_little_gzip_that_unpacks_to_very_much_is_refused_while_it_is_unpacked(tmp_path, name):
    form, _, _ = WRITERS[name]
    (tmp_path / "bomb").write_bytes(gzip.compress(b"1,2\n" * 5_000_000))
    with (
        opened(tmp_path / "bomb", limits=Limits(content=1_000_000)) as source,
        pytest.raises(TooLarge, match="after decompression"),
    ):
        read_source(source, form, limits=Limits(content=1_000_000))


def test_several_members_of_gzip_are_read_one_after_the_other(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,") + gzip.compress(b"2\n") + b"\0" * 10)
    assert dataset_from_file(tmp_path / "t.csv.gz").rows() == [{"a": 1.0, "b": 2.0}]


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:12] + b"\xff" * 9 + packed[21:]])
@pytest.mark.parametrize("name", WRITERS)
def test_damaged_gzip_is_refused(tmp_path, name, damage):
    form, _, write = WRITERS[name]
    path = tmp_path / f"t{FORMATS[form].endings[0]}.gz"
    path.write_bytes(damage(gzip.compress(write({"a": [1, 2, 3] * 9, "b": ["u", "v", "w"] * 9}))))
    with pytest.raises(DataError, match="gzip file is damaged"):
        dataset_from_file(path)


def test_a_schema_object_declares_for_every_format():
    columns = {"a": ["u", "v"], "y": [1, 0]}
    schema = Schema.from_dict({
        "target": "y",
        "columns": [{"name": "a", "kind": "nominal", "categories": ["v", "u"]},
                    {"name": "y", "kind": "nominal", "categories": [1, 0]}],
    })  # fmt: skip
    for form, _, write in WRITERS.values():
        assert read(write(columns), form, schema=schema).schema == schema
        assert read(write(columns), form, like=schema).schema.features[0].kind is FeatureKind.NOMINAL


def test_the_name_of_a_file_given_as_text_is_said_to_be_read_as_the_content() -> None:
    with pytest.raises(DataError, match=r"no rows; text is read as the content itself.*pathlib\.Path"):
        dataset_from_csv("tables/tennis.csv", target="play")


@pytest.mark.parametrize("source", [b"wind,play\n", "wind,play\n\n", ""])
def test_content_without_rows_is_not_taken_for_a_name_unless_it_is_one_line_of_text(source: str | bytes) -> None:
    with pytest.raises(DataError) as raised:
        dataset_from_csv(source, target="play")

    assert "pathlib" not in str(raised.value)


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_numbers_that_are_kept_rounded_are_noticed(number):
    expected = tuple(
        f"{name!r} has numbers of 2^53 (9007199254740992) and more, which are rounded to doubles: declare it "
        "nominal, and give them as texts, if they are codes"
        for name in ("a", "y")
    )
    columns = {"a": [None, 5, number], "b": [2**53 - 1, 1 - 2**53, 0], "c": [None, 1.5, 2], "y": [number, 1, 2]}
    assert tuple(map(str, dataset_from_columns(columns, target="y", task="regression").notices)) == expected
    for form, _, write in WRITERS.values():
        table = read_table(io.BytesIO(write(columns)), form, target="y", task="regression")
        assert tuple(map(str, table.notices)) == expected, form


def test_long_cells_of_csv_are_refused_as_too_large_however_long_they_are():
    for n_chars in (11, 131_072, 131_073, 1_000_000):
        for quote in ("", '"'):
            with pytest.raises(TooLarge, match="characters in one cell: at most 10 are"):
                read(f"a,b\n1,{quote}{'w' * n_chars}{quote}\n2,x\n".encode(), "csv", limits=Limits(cell_chars=10))


def test_without_a_limit_a_cell_that_is_too_long_is_told_by_its_line():
    expected = [("", "long_cell", "not CSV: line 3 has a cell of more than 131072 characters")]
    assert faults_of(f"a,b\n1,x\n2,{'w' * 131_073}\n".encode(), "csv") == expected
