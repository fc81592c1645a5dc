"""Forms of CSV, rows to be answered, and any content at all."""

import csv
import gzip

import pytest
from hypothesis import given, strategies as st

from espalier import (
    DataError,
    FeatureKind,
    InvalidInput,
    Role,
    RowError,
    Schema,
    dataset_from_csv,
    dataset_from_json,
    dataset_from_rows,
    predict,
    rows_from_csv,
    train,
)
from tests.core.planted import MIXED


def test_a_byte_order_mark_crlf_quotes_and_blank_lines_are_read():
    content = '\ufeffa,b\r\n"x, ""y""\n",1\r\n\r\nz,2\r\n'
    for source in (content, content.encode()):
        assert dataset_from_csv(source).rows() == [{"a": 'x, "y"\n', "b": 1.0}, {"a": "z", "b": 2.0}]


def test_a_byte_order_mark_before_json_is_read():
    assert dataset_from_json(b'\xef\xbb\xbf{"rows": [{"a": "x"}]}').rows() == [{"a": "x"}]


def test_a_last_line_without_end_is_read():
    assert dataset_from_csv("a,b\n1,2").n_rows == 1


def test_a_path_is_read_packed_or_not(tmp_path):
    text = b"a,y\n1,u\n2,v\n"
    (tmp_path / "plain.csv").write_bytes(text)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text))
    plain, packed = dataset_from_csv(tmp_path / "plain.csv"), dataset_from_csv(tmp_path / "packed.csv.gz")
    assert plain == packed == dataset_from_csv(text)


@pytest.mark.parametrize("damage", [lambda packed: packed[:-9], lambda packed: packed[:12] + b"\xff" * 9 + packed[21:]])
def test_a_damaged_gzip_file_is_refused(tmp_path, damage):
    (tmp_path / "packed.csv.gz").write_bytes(damage(gzip.compress(b"a,y\n1,u\n2,v\n" * 9)))
    with pytest.raises(DataError, match="gzip file is damaged"):
        dataset_from_csv(tmp_path / "packed.csv.gz")


# Rows to be answered


def test_rows_of_csv_are_read_by_the_schemas_kinds():
    rows = rows_from_csv(MIXED, b"length,colour,size,sold,extra\n1.5,red,small,true,9\n,?,NA,false,\nnan,mauve,x,?,u\n")
    assert rows == [
        {"length": 1.5, "colour": "red", "size": "small", "sold": True, "extra": "9"},
        {"length": None, "colour": "?", "size": "NA", "sold": False, "extra": None},
        {"length": "nan", "colour": "mauve", "size": "x", "sold": "?", "extra": "u"},
    ]


def test_text_that_is_no_number_is_refused_when_the_row_is_answered():
    data = dataset_from_csv("x,y\n1,a\n2,b\n", target="y")
    model = train(data)
    for text in ("nan", "inf", "1_0", "abc", "1e999"):
        with pytest.raises(RowError, match="/0/x"):
            predict(model, rows_from_csv(model.schema, f"x\n{text}\n"))


def test_another_number_is_an_unseen_category_of_a_column_of_numbers():
    data = dataset_from_rows([{"g": g, "y": "ab"[g % 2]} for g in range(4)], target="y",
                             schema={"columns": [{"name": "g", "kind": "nominal"}]})  # fmt: skip
    model = train(data)
    (seen, unseen) = predict(model, rows_from_csv(model.schema, "g\n3\n17\n"))
    assert (seen.label, seen.row.unseen) == ("b", ())
    assert unseen.row.unseen == ("g",)


@given(
    table=st.lists(
        st.tuples(
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_as_csv_reads_back_cell_by_cell(tmp_path_factory, table):
    schema = {
        "columns": [{"name": "n", "kind": "numeric"}, {"name": "c", "kind": "nominal"}],
        "missing_values": [],
    }
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["n", "c"])
        writer.writerows(table)
    rows = [{"n": number, "c": text} for number, text in table]
    assert dataset_from_csv(path, schema=schema).rows() == rows
    assert dataset_from_rows(rows, schema=schema) == dataset_from_csv(path, schema=schema)


@given(content=st.binary(max_size=60) | st.text(alphabet='a1,"\n\r;?\t \0ü\ud800', max_size=40))
def test_any_content_is_a_data_set_or_refused(content):
    try:
        data = dataset_from_csv(content)
    except InvalidInput:
        return
    assert data.n_rows > 0
    assert len(data.fingerprint) == 64
    assert dataset_from_rows(data.rows(), schema=data.schema, missing_values=[]).n_rows == data.n_rows


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(schema=JSON | st.fixed_dictionaries({}, optional={
    "columns": st.lists(st.fixed_dictionaries({}, optional={
        "name": st.sampled_from(["a", "b"]) | JSON,
        "kind": st.sampled_from(list(FeatureKind)) | JSON,
        "role": st.sampled_from(list(Role)) | JSON,
        "categories": st.lists(st.sampled_from(["u", "v", 1, True])) | JSON,
    }), max_size=3),
    "target": st.sampled_from(["a", "b"]) | JSON,
    "task": st.sampled_from(["classification", "regression"]) | JSON,
    "missing_values": st.lists(st.text(max_size=2)) | JSON,
}))  # fmt: skip
def test_any_schema_is_a_schema_or_refused(schema):
    try:
        data = dataset_from_csv("a,b\nu,1\nv,2\nu,3\n", schema=schema)
    except InvalidInput:
        return
    assert Schema.from_dict(data.schema.to_dict()) == data.schema
