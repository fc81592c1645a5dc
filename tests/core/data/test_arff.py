"""ARFF as Weka's format page describes it: what is read, and what is refused by its line."""

import csv
import io

import pytest
from hypothesis import given, strategies as st
from scipy.io import arff as scipy_arff

from espalier import DataError, FeatureKind, InvalidInput, Limits, TooLarge, read_table
from espalier.data.assembly import TableAssembler
from espalier.data.declaration import declare
from espalier.data.readers.arff import read_arff
from espalier.data.readers.source import Source

WEATHER = r"""% A comment, and the next line is blank

@RELATION 'the weather'
@Attribute outlook {sunny, overcast, 'rather rainy'}  % its order counts
@attribute "temp %" REAL
@ATTRIBUTE Humidity Integer
@attribute remark string
@attribute noted date
@attribute short DATE "dd.MM.yyyy HH:mm"
@attribute play { no , yes }
@DATA
sunny, 85.5,85,'it\'s 100 % \"dry\"',"2001-04-03T12:12:12","03.04.2001 12:12",no
% another comment
'rather rainy',?,  80  ,?,?,?,yes
	overcast,-1e-2,+75 , "a,b {c}\n\u00e9",'1970-01-01T00:00:00',"01.01.1970 00:01",yes % good
"""


def read(text: str | bytes, **declared):
    content = text.encode() if isinstance(text, str) else text
    return read_table(io.BytesIO(content), "arff", **declared)


def header(*types: str) -> str:
    return "@relation r\n" + "".join(f"@attribute a{n} {kind}\n" for n, kind in enumerate(types)) + "@data\n"


def test_every_type_is_read_with_quotes_comments_and_missing_values():
    data = read(WEATHER, target="play")
    assert [(feature.name, str(feature.kind)) for feature in data.schema.features] == [
        ("outlook", "nominal"), ("temp %", "numeric"), ("Humidity", "numeric"), ("remark", "nominal"),
        ("noted", "datetime"), ("short", "datetime"), ("play", "nominal"),
    ]  # fmt: skip
    assert data.schema.features[0].categories == ("sunny", "overcast", "rather rainy")
    assert data.schema.classes == ("no", "yes")
    assert data.rows() == [
        {"outlook": "sunny", "temp %": 85.5, "Humidity": 85.0, "remark": "it's 100 % \"dry\"",
         "noted": "2001-04-03T12:12:12+00:00", "short": "2001-04-03T12:12:00+00:00", "play": "no"},
        {"outlook": "rather rainy", "temp %": None, "Humidity": 80.0, "remark": None, "noted": None, "short": None,
         "play": "yes"},
        {"outlook": "overcast", "temp %": -0.01, "Humidity": 75.0, "remark": "a,b {c}\né", "noted": "1970-01-01",
         "short": "1970-01-01T00:01:00+00:00", "play": "yes"},
    ]  # fmt: skip


def test_the_order_of_the_categories_is_the_files_and_those_without_rows_stay():
    data = read(header("{z, b, a}", "numeric") + "b,1\na,2\n")
    assert data.schema.features[0].categories == ("z", "b", "a")
    assert data.columns[0].tolist() == [1, 2]


def test_the_categories_0_and_1_are_texts_and_numbers_are_classes_where_they_are_few():
    text = header("{0,1}", "numeric") + "0,0\n1,1\n"
    assert read(text, target="a0").schema.classes == ("0", "1")
    assert read(text, target="a1").schema.classes == (0, 1)
    assert read(text, target="a1", task="regression").schema.task == "regression"


def test_a_quoted_question_mark_is_a_text_where_it_does_not_stand_for_missing():
    text = header("{'?', NA, x}") + "'?'\n?\nx\n'NA'\nNA\n"
    for default in ({}, {"missing_values": []}):
        assert [row["a0"] for row in read(text, **default).rows()] == ["?", None, "x", "NA", "NA"]
    # What the caller lists counts more than the header.
    for texts in (["?", "NA", "-"], ["?", "NA"]):
        listed = read(text, missing_values=texts)
        assert [row["a0"] for row in listed.rows()] == [None, None, "x", None, None]
        assert listed.schema.features[0].categories == ("x",)


def test_a_sparse_row_means_zero_and_the_first_category_where_it_says_nothing():
    # Rows of the format's own example: {1 X, 3 Y, 4 "class A"} is 0, X, 0, Y, "class A".
    kinds = ("numeric", "{W, X}", "numeric", "{V, Y}", '{"class A", "class B"}')
    text = header(*kinds) + '{1 X, 3 Y, 4 "class A"}\n{2 7 , 4 "class B"}\n{ }\n{0 ?}\n'
    assert [list(row.values()) for row in read(text).rows()] == [
        [0.0, "X", 0.0, "Y", "class A"],
        [0.0, "W", 7.0, "V", "class B"],
        [0.0, "W", 0.0, "V", "class A"],
        [None, "W", 0.0, "V", "class A"],
    ]


def test_a_declaration_stands_over_the_header():
    schema = {"columns": [{"name": "a0", "kind": "ordinal", "categories": ["low", "mid", "high"]},
                          {"name": "a1", "kind": "nominal"}, {"name": "a2", "kind": "numeric"}]}  # fmt: skip
    data = read(header("{high, mid, low}", "numeric", "string") + "low,7,1.5\nhigh,7,2\n", schema=schema)
    assert data.columns[0].tolist() == [0, 2]
    assert data.schema.features[1].categories == (7,)
    assert data.columns[2].tolist() == [1.5, 2.0]
    assert data.schema.features[0].kind is FeatureKind.ORDINAL


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no @data line"),
        ("@relation r\n@attribute a numeric\n", "there is no @data line"),
        ("a,b\n1,2\n", "line 1: before @data"),
        ("@relation r\n@data\n1\n", "line 2: there are no @attribute lines"),
        (header("numeric"), "1 attributes and no rows"),
        (header("relational") + "1\n", "line 2: this type of attribute is not read; legal: numeric, real"),
        (header("") + "1\n", "line 2: an attribute has a name and a type; legal: numeric, real"),
        (header("{a, a}") + "a\n", "line 2: a category is listed twice"),
        (header("{a, b") + "a\n", "line 2: categories must be in braces"),
        (header("{a,,b}") + "a\n", "line 2: a cell is empty"),
        (header("numeric {2}") + "1\n", "line 2: unexpected text after the type; weights"),
        (header("date 'yyyy-MM-dd EEE'") + "?\n", "line 2: this date format is not read; legal, each once: yyyy"),
        (header("date yyyyyyyy") + "?\n", "line 2: this date format"),
        (header("numeric") + "1,2\n", "line 4: the line has 2 cells, but the header lists 1 attributes"),
        (header("numeric", "numeric") + "1,2\n\n% x\n3\n", "line 8: the line has 1 cells"),
        (header("numeric", "numeric") + "1,,2\n", "line 5: a cell is empty: a missing one is written ?"),
        (header("numeric", "string") + "1,'a\n", "line 5: a quote is not closed"),
        (header("string") + "'a' b\n", "line 4: text follows the last cell"),
        (header("numeric") + "1, {5}\n", "line 4: text follows the last cell; weights of rows are not read"),
        (header("numeric", "{u, v}") + "1,'u',{5}\n", "line 5: text follows the last cell; weights"),
        (header("numeric") + "{1 2}\n", "line 4: a sparse cell begins with the number of its attribute"),
        (header("numeric") + "{-1 2}\n", "line 4: a sparse cell begins"),
        (header("numeric") + "{0 2, 0 3}\n", "line 4: attribute number 0 is given twice"),
        (header("numeric") + "{0 2\n", "line 4: a sparse row ends with }"),
        (header("numeric") + "{0}\n", "line 4: a cell is empty"),
        (header("numeric", "string") + "{0 2}\n", "line 5: a sparse row must give every text and date; number 1"),
        (header("{u, v}") + "u\nw\n", "line 5: must be one of the categories"),
        (header("numeric") + "1\nx\n", "must be a finite number or missing: 1 cell (row 1"),
        (header("numeric") + "1e400\n", "must be a finite number or missing"),
        (header("date") + "2001-02-29T00:00:00\n", "must be an ISO 8601 date or time or missing"),
        (header("numeric") + "\0\n", "line 4: the line has NUL characters"),
        ("@attribute a numeric\n@attribute a numeric\n@data\n1,2\n", "two attributes are called 'a' (line 2)"),
    ],
)
def test_what_is_no_arff_is_refused_by_its_line(text, words):
    with pytest.raises(DataError) as caught:
        read(text)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_is_not_utf_8_is_refused_by_its_line():
    with pytest.raises(DataError, match="line 4: the line is not UTF-8 text"):
        read(header("string").encode() + b"\xe9\n")


def test_no_message_repeats_a_cell():
    for row in ("secret", "1, secret", "{0 secret, secret}", "'secret", "{secret}"):
        with pytest.raises(DataError) as caught:
            read(header("numeric") + row + "\n")
        assert "secret" not in str(caught.value)


def test_very_many_sparse_rows_of_very_many_attributes_are_refused_before_there_are_cells():
    text = header(*["numeric"] * 2_000) + "{}\n" * 100_000
    with pytest.raises(TooLarge, match="cells"):
        read(text, limits=Limits(cells=10_000_000))
    with pytest.raises(TooLarge, match="columns"):
        read(text, limits=Limits(columns=1_999))
    with pytest.raises(TooLarge, match="bytes in one line"):
        read(header("string") + "x" * 3_000_000, limits=Limits(line=100_000))


def test_long_lines_are_not_all_in_memory_at_once():
    lines = io.BytesIO((header("string") + ("u" * 1_000_000 + "\n") * 6).encode())
    assembler, n_rows = TableAssembler(declare()), []
    for block in read_arff(Source(lines, is_file=True), assembler):
        assembler.add(block)
        n_rows.append(block.n_rows)
    assert sum(n_rows) == 6
    assert max(n_rows) <= 2


@given(
    rows=st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["a", "b c", "d"])), min_size=1
    )
)
def test_numbers_and_categories_are_those_that_scipy_reads(rows):
    lines = ["@relation r", "@attribute x numeric", "@attribute y {a, 'b c', d}", "@data"]
    text = "\n".join([*lines, *(f"{number!r},'{word}'" for number, word in rows)])
    longest = csv.field_size_limit()
    theirs, _ = scipy_arff.loadarff(io.StringIO(text))
    csv.field_size_limit(longest)  # which scipy sets, for the whole process
    ours = read(text).rows()
    assert [row["x"] for row in ours] == theirs["x"].tolist()
    assert [row["y"] for row in ours] == [word.decode() for word in theirs["y"].tolist()]


@given(text=st.text(alphabet="@ad1,{}'\"\\%?\n\t atributenmcsg", max_size=80) | st.binary(max_size=40),
       is_data=st.booleans())  # fmt: skip
def test_any_content_is_a_data_set_or_refused(text, is_data):
    content = text.encode() if isinstance(text, str) else text
    try:
        data = read(header("numeric", "{a, d}", "string", "date").encode() + content if is_data else content)
    except InvalidInput:
        return
    assert data.n_rows > 0
