"""CSV of any length as rows to be answered: cut anywhere, the same rows as those of the whole text."""

import csv
import io
import math

import pytest
from hypothesis import given, settings, strategies as st

import espalier
from espalier import DataError, Feature, FeatureKind, Role, RowError, Schema, batches_from_csv, rows_from_csv
from espalier.data.readers import csv_blocks

SCHEMA = Schema(
    (
        Feature("length", FeatureKind.NUMERIC),
        Feature("colour", FeatureKind.NOMINAL, categories=("red", "007", "a,b", 'say "x"', "two\nlines")),
        Feature("size", FeatureKind.ORDINAL, categories=("small", "large")),
        Feature("sold", FeatureKind.BOOLEAN, categories=(False, True)),
        Feature("count", FeatureKind.NOMINAL, categories=(1, 2.5, 3)),
        Feature("day", FeatureKind.DATETIME),
        Feature("note", FeatureKind.NOMINAL, Role.IGNORE),
        Feature("kind", FeatureKind.NOMINAL, Role.TARGET, ("a", "b")),
    )
)
NAMES = [feature.name for feature in SCHEMA.features]
GOOD = {
    "length": st.sampled_from(["", "?", "NA", "1", "-2.5", "1e3", "0.1", "1e300", " 7 ", ".5", "3."]),
    "colour": st.sampled_from(
        ["", "?", "red", "007", "7", "a,b", 'say "x"', "two\nlines", "two\r\nlines", "mauve", "🌳"]
    ),
    "size": st.sampled_from(["", "small", "large", "huge"]),
    "sold": st.sampled_from(["", "NA", "true", "false"]),
    "count": st.sampled_from(["", "1", "2.5", "3"]),
    "day": st.sampled_from(["", "2020-01-01", "2020-01-01T10:00:00+02:00"]),
    "note": st.sampled_from(["", "=1", "x" * 30]),
    "kind": st.sampled_from(["", "a", "c"]),
}
ODD = {
    "length": st.sampled_from(["x", "nan", "inf", "1_000", "1e400", "١", "+5", "0x10", "1,5", "--1"]),
    "colour": st.sampled_from(['5" pipe', 'x"y']),
    "size": st.sampled_from(["small "]),
    "sold": st.sampled_from(["yes", "True", "1"]),
    "count": st.sampled_from(["2.50", "4", "many", "1.0"]),
    "day": st.sampled_from(["yesterday", "2020-13-01"]),
    "note": GOOD["note"],
    "kind": GOOD["kind"],
}


def lines(cells):
    return st.lists(st.tuples(*(cells[name] for name in NAMES)), min_size=1, max_size=12)


def written(names, rows, *, end="\n", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=end, quoting=quoting)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


def plain(row):
    """A row with its missing cells left out, and without what is no attribute; instants by their value."""
    attributes = {feature.name: feature for feature in SCHEMA.attributes}
    found = {}
    for name, cell in row.items():
        if name in attributes and cell is not None and cell not in SCHEMA.missing_values:
            is_instant = attributes[name].kind is FeatureKind.DATETIME
            found[name] = ("instant", cell[:10]) if is_instant else (type(cell).__name__, cell)
    return found


def read(content, size):
    """All rows of all batches; the instants of a column come back in UTC."""
    batches = list(batches_from_csv(SCHEMA, io.BytesIO(content), size=size))
    starts = [batch.first_row for batch in batches]
    assert starts == [sum(batch.n_rows for batch in batches[:place]) for place in range(len(batches))]
    return [
        row for batch in batches for row in (batch.rows if batch.dataset is None else batch.dataset.rows())
    ], batches


@settings(max_examples=50)
@given(rows=lines(GOOD), size=st.integers(1, 300), end=st.sampled_from(["\n", "\r\n"]), all_quoted=st.booleans())
def test_cut_anywhere_the_rows_are_those_of_the_whole_text(rows, size, end, all_quoted):
    content = written(NAMES, rows, end=end, quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL)
    found, batches = read(content, size)
    assert list(map(plain, found)) == list(map(plain, rows_from_csv(SCHEMA, content)))
    assert all(batch.dataset is not None for batch in batches)


@settings(max_examples=50)
@given(
    rows=st.lists(st.tuples(*((GOOD[name] | ODD[name]) for name in NAMES)), min_size=1, max_size=8),
    size=st.integers(1, 300),
)
def test_odd_cells_are_read_as_they_are_one_by_one(rows, size):
    content = written(NAMES, rows)
    found, _ = read(content, size)
    whole = rows_from_csv(SCHEMA, content)
    assert [plain(row) for row in found] == [plain(row) for row in whole]


def test_a_batch_with_a_cell_of_a_wrong_type_is_given_row_by_row():
    rows = [["1", "red"]] * 5 + [["x", "red"]] + [["2", "red"]] * 5
    content = written(["length", "colour"], rows)
    found, batches = read(content, 24)
    assert [row["length"] for row in found] == [1.0] * 5 + ["x"] + [2.0] * 5
    assert {batch.dataset is None for batch in batches} == {True, False}


def test_a_number_that_is_listed_as_missing_is_missing_however_it_is_spelt():
    data = espalier.dataset_from_rows(
        [{"x": -999.0, "y": "n"}, {"x": 1.0, "y": "p"}, {"x": 2.0, "y": "q"}], target="y", missing_values=["-999"]
    )
    content = b"x\n-999\n-999.0\n-9.99e2\n1\n"
    (batch,) = batches_from_csv(data.schema, io.BytesIO(content))
    assert [row["x"] for row in batch.dataset.rows()] == [None, None, None, 1.0]
    model = espalier.train(data, "c45", min_weight_leaf=1)
    singles = espalier.predict(model, espalier.rows_from_csv(data.schema, content))
    assert [single.row.missing for single in singles] == [("x",)] * 3 + [()]
    answers = espalier.predict_table(model, batch.dataset)
    assert answers.missing.tolist() == [[True, True, True, False]]


def test_a_text_that_is_listed_as_missing_is_missing_though_it_means_a_category():
    labels = ["a", "1.0"]
    rows = [{"v": label, "y": label} for label in labels] * 10
    schema = {"target": "y", "columns": [{"name": "v", "kind": "nominal", "categories": labels}]}
    model = espalier.train(espalier.dataset_from_rows(rows, schema=schema, missing_values=["1"]), "id3")
    content = "v\n1\n1.0\n01\n"
    expected = [["v"], [], []]
    json_rows = [{"v": "1"}, {"v": "1.0"}, {"v": "01"}]
    for read in (json_rows, rows_from_csv(model.schema, content)):
        assert [list(each.row.missing) for each in espalier.predict(model, read)] == expected
    [batch] = batches_from_csv(model.schema, io.BytesIO(content.encode()))
    assert espalier.predict_table(model, batch.dataset).missing.tolist() == [[True, False, False]]


def test_quotes_in_the_middle_of_cells_are_text_and_the_blocks_stay_small():
    text = 'colour,length\n"a,b",1\n5" pipe,2\nred,3\n"two\nlines",4\n' + "red,5\n" * 50
    found, batches = read(text.encode(), 20)
    assert [row["colour"] for row in found[:4]] == ["a,b", '5" pipe', "red", "two\nlines"]
    assert [row["length"] for row in found[4:]] == [5.0] * 50
    assert max(batch.n_rows for batch in batches) <= 10
    assert any(batch.dataset is not None for batch in batches)


def test_columns_may_stand_in_any_order_and_attributes_may_lack():
    (batch,) = batches_from_csv(SCHEMA, io.BytesIO(b"\xef\xbb\xbfkind,length\na,1\nb,\n"))
    assert [feature.name for feature in batch.dataset.schema.features] == ["length"]
    assert batch.dataset.columns[0][0] == 1.0
    assert math.isnan(batch.dataset.columns[0][1])
    (batch,) = batches_from_csv(SCHEMA, io.BytesIO(b"kind\na\nb\n"))
    assert (batch.n_rows, batch.rows) == (2, [{"kind": "a"}, {"kind": "b"}])


def test_categories_that_the_schema_does_not_list_stand_after_its_own():
    (batch,) = batches_from_csv(SCHEMA, io.BytesIO(b"colour,size\nmauve,small\nred,giant\n"))
    colour, size = batch.dataset.schema.features
    assert (colour.categories[5:], size.categories[2:]) == (("mauve",), ("giant",))
    assert batch.dataset.schema.features[0].categories[:5] == SCHEMA.features[1].categories


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"length,colour\n", "no rows"),
        (b"length,colour\n\n\n", "no rows"),
        (b"length,colour\n1,red\n2\n", "line 3 has 1 cells"),
        (b'length,colour\n1,"a\nb"\n\n2,red,\n', "line 5 has 3 cells"),
        (b"length,length\n1,2\n", "two columns"),
        (b"length\n\xff\n", "line 2 is not UTF-8"),
        (b"length\n1\n\0\n", "line 3 has NUL characters"),
        (b"length,colour\n1,red\n" + b"x" * 150_000 + b",red\n", "line 3 has a cell of more than 131072 characters"),
        (b'length,colour\n1,"red\n', "not CSV"),
        (b'length,colour\n1,"red"x\n', "not CSV"),
        (b'length,colour\n1,5" pipe\n2\n', "has 1 cells"),
        (b'length,colour\n1,5" pipe\n\xff,1\n', "not UTF-8"),
        (b'length,colour\n1,5" pipe\n\0,1\n', "line 3 has NUL characters"),
    ],
)
@pytest.mark.parametrize("size", [3, 1000])
def test_what_is_no_table_is_refused_with_its_line(content, words, size):
    with pytest.raises(DataError, match=words):
        list(batches_from_csv(SCHEMA, io.BytesIO(content), size=size))


def test_rows_before_a_fault_are_given():
    content = b"length\n" + b"1\n" * 1000 + b"1,2\n"
    batches = batches_from_csv(SCHEMA, io.BytesIO(content), size=100)
    found = [next(batches).n_rows for _ in range(19)]
    assert 900 < sum(found) <= 1000
    with pytest.raises(DataError, match="line 1002 has 2 cells"):
        list(batches)


def test_names_that_the_schema_does_not_have_are_refused_by_name():
    with pytest.raises(RowError) as caught:
        list(batches_from_csv(SCHEMA, io.BytesIO(b"length,a/b,weight\n1,2,3\n")))
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [
        ("/a~1b", "unknown_attribute"),
        ("/weight", "unknown_attribute"),
    ]


@pytest.mark.parametrize("start", [b"length\n", b"", b'colour\n5" pipe\n', b'colour\n"'])
def test_a_line_without_end_is_refused_before_it_fills_the_memory(start, monkeypatch):
    monkeypatch.setattr(csv_blocks, "MAX_LINE_BYTES", 10_000)
    source = Endless(start)
    with pytest.raises(DataError, match="longer than"):
        list(batches_from_csv(SCHEMA, source, size=1000))
    assert source.n_read < 30_000


class Endless:
    """A stream that never ends a line."""

    def __init__(self, start):
        self.start = start
        self.n_read = 0

    def read(self, size):
        self.n_read += size
        part, self.start = self.start[:size], self.start[size:]
        return part + b"x" * (size - len(part))


def test_a_stream_with_a_way_of_its_own_to_read_is_read_in_that_way():
    class Lower(io.BytesIO):
        def read(self, size=-1):
            return super().read(size).lower()

    (batch,) = batches_from_csv(SCHEMA, Lower(b"LENGTH,COLOUR\n1,red\n"))
    assert batch.n_rows == 1


def test_a_stream_that_gives_less_than_was_asked_for_is_read_to_its_end():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 3))

    (batch,) = batches_from_csv(SCHEMA, Slow(b"length,colour\n1,red\n2,red\n"))
    assert batch.n_rows == 2


def test_a_name_that_is_there_twice_is_found_among_very_many():
    names = [f"n{number}" for number in range(300_000)]
    content = ",".join([*names, "n7", "n299999"]) + "\n"

    with pytest.raises(DataError) as refused:
        next(batches_from_csv(SCHEMA, io.BytesIO(content.encode())))

    assert [(fault.path, fault.code) for fault in refused.value.faults] == [
        ("/n299999", "duplicate"),
        ("/n7", "duplicate"),
    ]
