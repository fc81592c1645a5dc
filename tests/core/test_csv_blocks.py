"""CSV in pieces: by pyarrow or line by line, whatever the size of a piece, the same as reading it whole and plainly."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from espalier import DataError, Dataset, InvalidInput, TooLarge, dataset_from_columns, dataset_from_csv
from espalier.csv_blocks import by_compiled_code, by_pyarrow, csv_blocks
from espalier.csv_compiled import WORTH_COMPILING
from espalier.csv_text import read_csv_text
from espalier.declaring import Declared
from espalier.gathering import Gatherer
from espalier.limits import Limits
from espalier.sources import Source


def by_kernel(names, gatherer, content, first_byte):
    """Compile, if need be: as far behind in a table."""
    return by_compiled_code(names, gatherer, content, first_byte + WORTH_COMPILING)


WAYS = {"compiled": (by_kernel,), "pyarrow": (by_pyarrow,), "both": (by_kernel, by_pyarrow), "lines": ()}


def in_pieces(content: bytes, size: int, *, limits: Limits | None = None, way: str = "both", **declared) -> Dataset:
    """Read CSV in pieces of some bytes, each in one of `WAYS`."""
    limits = limits or Limits()
    source = Source(io.BytesIO(content), limits=limits)
    gatherer = Gatherer(Declared(**declared), limits=limits)
    for block in csv_blocks(source, gatherer, limits=limits, piece=size, ways=WAYS[way]):
        gatherer.add(block)
    if gatherer.missed:
        source.rewind()
        gatherer.read_again()
        for block in csv_blocks(source, gatherer, limits=limits, piece=size, ways=WAYS[way]):
            gatherer.add(block)
    return gatherer.finish().dataset()


def plainly(content: bytes, **declared) -> Dataset:
    """The obvious way: all texts in memory, a list a column."""
    names, lines = read_csv_text(content)
    columns = zip(names, zip(*lines, strict=True), strict=True)
    return dataset_from_columns({name: [cell or None for cell in cells] for name, cells in columns}, **declared)


def outcome(read, *arguments, **declared):
    """The data set, or the codes and places of what is wrong."""
    try:
        return read(*arguments, **declared)
    except InvalidInput as error:
        return {(fault.path, fault.code) for fault in error.faults}


NUMBERS = [
    "1",
    "-1.5",
    "2e3",
    ".5",
    "5.",
    "+7",
    " 8",
    "9\t",
    "007",
    "1e308",
    "-0",
    "1e-400",
    "0.1",
    "12345678901234567890",
]
NO_NUMBERS = ["nan", "NaN", "inf", "-Infinity", "1e400", "1_0", "0x10", "1,5", "١", "", "?", "NA", " NA", "N/A", "null"]
TEXTS = ["true", "a", "A", "ä", "🌳", 'say "x"', "a,b", "two\nlines", "cr\rhere", " ", "#", "é"]
CELLS = st.sampled_from(NUMBERS) | st.sampled_from([*NUMBERS, *NO_NUMBERS, *TEXTS])
DECLARED = st.fixed_dictionaries(
    {},
    optional={
        "target": st.sampled_from(["a", "c"]),
        "task": st.sampled_from(["classification", "regression"]),
        "missing_values": st.sampled_from([[], ["a"], ["?", "7", "-1.5"]]),
        "ignore": st.just(["b"]),
        "schema": st.sampled_from([
            {"columns": [{"name": "a", "kind": "nominal"}]},
            {"columns": [{"name": "a", "kind": "numeric"}]},
            {"columns": [{"name": "a", "kind": "nominal", "categories": [7, 1, "a", True]}]},
        ]),
    },
)  # fmt: skip


def written(rows: list[tuple[str, ...]], quoting: int, end: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerow(["a", "b", "c"])
    writer.writerows(rows)
    return text.getvalue().encode()


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.sampled_from(NUMBERS)), min_size=1, max_size=12),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    size=st.sampled_from([1, 7, 20, 60, 10_000]),
    declared=DECLARED,
    way=st.sampled_from([*WAYS]),
)
@example(rows=[("1", "1", "1"), ("x", "2", "2")], quoting=0, end="\n", size=1, declared={}, way="both")
@example(rows=[("1", "1", "1"), ("nan", "inf", "2")], quoting=0, end="\n", size=1, declared={"target": "a"}, way="both")
def test_any_table_reads_alike_whole_and_in_pieces_of_any_size(rows, quoting, end, size, declared, way):  # noqa: PLR0917 - drawn
    content = written(rows, quoting, end)
    expected = outcome(plainly, content, **declared)
    assert outcome(in_pieces, content, size, way=way, **declared) == expected


@given(
    content=st.text(alphabet='a1,"\n\r;? \0ü', max_size=60).map(str.encode) | st.binary(max_size=60),
    size=st.sampled_from([1, 5, 30]),
)
@example(content=b'a,b\n1,5" pipe\n2,6" pipe\n', size=4)
@example(content=b'a,b\n"1","x"y\n', size=4)
@example(content=b'a,b\n1,2\n"3,4\n5,6\n', size=4)
@example(content=b"a,b\n1,2\n\n3\n", size=4)
@example(content=b"a\n1\n\n2\n", size=1)
def test_any_content_is_read_or_refused_alike_whole_and_in_pieces(content, size):
    found, expected = outcome(in_pieces, content, size), outcome(plainly, content)
    # Of several faults another may come first.
    assert found == expected or (isinstance(found, set) and isinstance(expected, set))


def test_a_column_of_numbers_that_ends_in_text_is_read_again_with_its_spelling():
    lines = [f"{n}.50,{n % 3}" for n in range(5_000)]
    content = "\n".join(["x,y", *lines, "none,1"]).encode()
    data = in_pieces(content, 4_096, target="y")
    assert data == plainly(content, target="y")
    assert data.rows(4_998, 5_001) == [{"x": "4998.50", "y": 0}, {"x": "4999.50", "y": 1}, {"x": "none", "y": 1}]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        pytest.param(lambda n: f"{n / 8}", "numeric", id="very many numbers"),
        pytest.param(lambda n: f"{n / 8}" if n < 4_999 else "x", "nominal", id="very many numbers and a text"),
        pytest.param(lambda n: f"{n % 20}.{'0' * (n // 20)}", "nominal", id="20 whole numbers in very many spellings"),
        pytest.param(lambda n: f"label {n}", "nominal", id="very many texts"),
    ],
)
def test_a_target_of_very_many_labels_is_what_it_would_be_in_one_piece(cell, kind):
    content = "\n".join(["x,y", *(f"{n},{cell(n)}" for n in range(5_000))]).encode()
    data = in_pieces(content, 4_096, target="y")
    assert data == plainly(content, target="y")
    assert data.schema.target.kind == kind


def test_a_fault_far_down_names_its_line_and_its_rows():
    lines = [f"{n},u" for n in range(3_000)]
    content = "\n".join(["n,c", *lines, "1,v", "1,w,x", ""]).encode()
    with pytest.raises(DataError, match="line 3003 has 3 cells, the first line has 2 names"):
        in_pieces(content, 1_024)
    schema = {"columns": [{"name": "c", "kind": "nominal", "categories": ["u"]}, {"name": "n", "kind": "numeric"}]}
    with pytest.raises(DataError) as caught:
        in_pieces("\n".join(["n,c", *lines, "z,v", "1,w", "y,u"]).encode(), 1_024, schema=schema)
    assert [str(fault) for fault in caught.value.faults] == [
        "/n: must be a finite number or missing: 2 cells (row 3000, 3002, counted from 0)",
        "/c: must be one of the declared categories: 2 cells (row 3000, 3001, counted from 0)",
    ]


def test_what_is_not_text_is_named_by_its_line_in_the_file():
    content = b"n,c\n" + b"1,u\n" * 3_000 + b"1,\xff\n"
    with pytest.raises(DataError, match="line 3002 is not UTF-8 text"):
        in_pieces(content, 1_024)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        pytest.param(Limits(rows=99), "too many rows: at most 99", id="rows"),
        pytest.param(Limits(columns=1), "too many columns: at most 1", id="columns"),
        pytest.param(Limits(cells=199), "too many cells: at most 199", id="cells"),
        pytest.param(Limits(cell_chars=3), "characters in one cell: at most 3", id="characters"),
        pytest.param(Limits(categories=1), "too many categories.*: at most 1", id="categories"),
        pytest.param(Limits(content=100), "too many bytes.*: at most 100", id="bytes"),
    ],
)
def test_a_limit_holds_while_reading(limits, words):
    content = b"n,c\n" + b"1,u\n" * 99 + b"1,long\n"
    with pytest.raises(TooLarge, match=words):
        in_pieces(content, 64, limits=limits)
    assert in_pieces(content, 64).n_rows == 100


def test_a_quote_that_is_never_closed_is_given_up_at_the_longest_line():
    content = b'n,c\n"' + b"1,u\n" * 12_000_000
    with pytest.raises(TooLarge, match="bytes in one line: at most 16777216"):
        in_pieces(content, 2**20)


def test_a_large_file_is_read_by_its_path(tmp_path):
    rows = [(f"{n / 7}", f"c{n % 5}", 'q"x' if n % 2 else "") for n in range(60_000)]
    content = written(rows, csv.QUOTE_MINIMAL, "\n")
    (tmp_path / "t.csv").write_bytes(content)
    schema = {"columns": [{"name": "b", "role": "target"}]}
    assert dataset_from_csv(tmp_path / "t.csv", schema=schema) == plainly(content, schema=schema)
