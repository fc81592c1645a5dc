"""CSV in blocks: whatever the size of a block, the same as reading it whole and plainly."""

import csv
import io
from contextlib import closing

import pytest
from hypothesis import example, given, strategies as st

from espalier import DataError, Dataset, InvalidInput, TooLarge, dataset_from_columns, dataset_from_csv
from espalier.data.assembly import TableAssembler
from espalier.data.declaration import declare
from espalier.data.limits import Limits
from espalier.data.readers.csv import read_csv
from espalier.data.readers.source import Source


def in_blocks(
    content: bytes,
    size: int,
    *,
    limits: Limits | None = None,
    bytes_in_memory: int | None = None,
    **declared,
) -> Dataset:
    """Read CSV in blocks of some bytes."""
    limits = limits or Limits()
    options = {"limits": limits, "bytes_in_memory": bytes_in_memory}
    labelled: frozenset[str] = frozenset()
    with closing(Source(io.BytesIO(content), limits=limits)) as source:
        while True:
            assembler = TableAssembler(declare(**declared), labelled=labelled, **options)
            with closing(assembler):
                for block in read_csv(source, assembler, size=size):
                    assembler.add(block)
                if not assembler.misread:
                    return assembler.dataset()
            labelled = assembler.misread
            source.rewind()


NO_TABLE = {"not_csv", "ragged", "empty", "empty_name", "duplicate", "long_cell"}


def check(condition: object) -> None:
    if not condition:
        raise ValueError("no CSV")


def plainly(content: bytes, **declared) -> Dataset:
    """The obvious way: all texts in memory, a list a column; errors that are not of cells are ValueErrors."""
    text = content.decode("utf-8-sig")
    check("\0" not in text)
    lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    # Empty lines before the names are passed over, too.
    names, *lines = [line for line in lines if line] or [[]]
    check(lines and "" not in names and len(set(names)) == len(names))
    check(all(len(line) == len(names) for line in lines))
    columns = zip(names, zip(*lines, strict=True), strict=True)
    return dataset_from_columns({name: [cell or None for cell in cells] for name, cells in columns}, **declared)


def outcome(read, *arguments, **declared):
    """The data set, or the codes and places of what is wrong."""
    try:
        return read(*arguments, **declared)
    except InvalidInput as error:
        return {(fault.path, "no_table" if fault.code in NO_TABLE else fault.code) for fault in error.faults}
    except (ValueError, csv.Error):
        return {("", "no_table")}


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
    in_memory=st.booleans(),
)
@example(rows=[("1", "1", "1"), ("x", "2", "2")], quoting=0, end="\n", size=1, declared={}, in_memory=True)
@example(
    rows=[("1", "1", "1"), ("nan", "inf", "2")], quoting=0, end="\n", size=1, declared={"target": "a"}, in_memory=True
)
def test_any_table_reads_alike_whole_and_in_blocks_of_any_size(rows, quoting, end, size, declared, in_memory):  # noqa: PLR0917 - drawn
    content = written(rows, quoting, end)
    expected = outcome(plainly, content, **declared)
    assert outcome(in_blocks, content, size, bytes_in_memory=None if in_memory else 1_000, **declared) == expected


@given(
    content=st.text(alphabet='a1,"\n\r;? \0ü', max_size=60).map(str.encode) | st.binary(max_size=60),
    size=st.sampled_from([1, 5, 30]),
)
@example(content=b'a,b\n1,5" pipe\n2,6" pipe\n', size=4)
@example(content=b'a,b\r1,5" pipe\r2,6" pipe\r', size=4)
@example(content=b'a,b\n"1","x"y\n', size=4)
@example(content=b'a,b\n1,2\n"3,4\n5,6\n', size=4)
@example(content=b"a,b\n1,2\n\n3\n", size=4)
@example(content=b"a\n1\n\n2\n", size=1)
def test_any_content_is_read_or_refused_alike_whole_and_in_blocks(content, size):
    found, expected = outcome(in_blocks, content, size), outcome(plainly, content)
    # Of several faults another may come first.
    assert found == expected or (isinstance(found, set) and isinstance(expected, set))


def test_a_column_of_numbers_that_ends_in_text_is_read_again_with_its_spelling():
    lines = [f"{n}.50,{n % 3}" for n in range(5_000)]
    content = "\n".join(["x,y", *lines, "none,1"]).encode()
    data = in_blocks(content, 4_096, target="y")
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
def test_a_target_of_very_many_labels_is_what_it_would_be_in_one_block(cell, kind):
    content = "\n".join(["x,y", *(f"{n},{cell(n)}" for n in range(5_000))]).encode()
    data = in_blocks(content, 4_096, target="y")
    assert data == plainly(content, target="y")
    assert data.schema.target.kind == kind


def test_a_fault_far_down_names_its_line_and_its_rows():
    lines = [f"{n},u" for n in range(3_000)]
    content = "\n".join(["n,c", *lines, "1,v", "1,w,x", ""]).encode()
    with pytest.raises(DataError, match="line 3003 has 3 cells, the first line has 2 names"):
        in_blocks(content, 1_024)
    schema = {"columns": [{"name": "c", "kind": "nominal", "categories": ["u"]}, {"name": "n", "kind": "numeric"}]}
    with pytest.raises(DataError) as caught:
        in_blocks("\n".join(["n,c", *lines, "z,v", "1,w", "y,u"]).encode(), 1_024, schema=schema)
    assert [str(fault) for fault in caught.value.faults] == [
        "/n: must be a finite number or missing: 2 cells (row 3000, 3002, counted from 0)",
        "/c: must be one of the declared categories: 2 cells (row 3000, 3001, counted from 0)",
    ]


def test_what_is_not_text_is_named_by_its_line_in_the_file():
    content = b"n,c\n" + b"1,u\n" * 3_000 + b"1,\xff\n"
    with pytest.raises(DataError, match="line 3002 is not UTF-8 text"):
        in_blocks(content, 1_024)


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
        in_blocks(content, 64, limits=limits)
    assert in_blocks(content, 64).n_rows == 100


def test_a_quote_that_is_never_closed_is_given_up_at_the_longest_line():
    content = b'n,c\n"' + b"1,u\n" * 9_000_000
    with pytest.raises(TooLarge, match="bytes in one line: at most 16777216"):
        in_blocks(content, 2**20)


def test_a_large_file_is_read_by_its_path(tmp_path):
    rows = [(f"{n / 7}", f"c{n % 5}", 'q"x' if n % 2 else "") for n in range(60_000)]
    content = written(rows, csv.QUOTE_MINIMAL, "\n")
    (tmp_path / "t.csv").write_bytes(content)
    schema = {"columns": [{"name": "b", "role": "target"}]}
    assert dataset_from_csv(tmp_path / "t.csv", schema=schema) == plainly(content, schema=schema)


def lines_with(cell: str, n_rows: int, at: int, every: int) -> list[str]:
    """Rows of plain numbers; in the first column each so many-th is spelled otherwise, and one cell is no number."""
    odd = (f"{row}.50" if row % every == every - 1 else f"{row / 4:.12g}" for row in range(n_rows))
    return [f"{cell if row == at else x},{row % 3}" for row, x in enumerate(odd)]


@pytest.mark.parametrize("every", [1, 7, 10**9])
@pytest.mark.parametrize("at", [0, 1, 140, 500, 1_999, -1])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_text_far_down_reads_as_if_all_were_in_memory(every: int, at: int, *, in_memory: bool) -> None:
    content = "\n".join(["x,y", *lines_with("none", 2_000, at, every)]).encode()
    assert in_blocks(content, 400, target="y", bytes_in_memory=None if in_memory else 2_000) == plainly(
        content, target="y"
    )


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("spell", ["{}", "{}.0", "{}e0"])
def test_a_target_that_was_first_labels_then_numbers_and_then_labels(spell: str, *, in_memory: bool) -> None:
    options = {"bytes_in_memory": None if in_memory else 100}
    cells = [*(spell.format(row % 15) for row in range(600)), *map(spell.format, range(800)), "none"]
    content = "\n".join(["x,y", *(f"{row},{cell}" for row, cell in enumerate(cells))]).encode()
    assert in_blocks(content, 400, target="y", **options) == plainly(content, target="y")
    content = content[: -len("\n1400,none")]
    assert in_blocks(content, 400, target="y", **options) == plainly(content, target="y")


def test_a_quote_out_of_its_place_far_down_is_read_as_it_is_written() -> None:
    lines = [*(f"{row},a" for row in range(3_000)), '1,5" pipe', 'none,"a,b"', "2,c"]
    content = "\n".join(["x,y", *lines]).encode()
    assert in_blocks(content, 2_000, target="y") == plainly(content, target="y")


@pytest.mark.parametrize("name", ["two\rlines", "\ufeffx", "x,y", 'the "x"'])
def test_names_are_kept_whatever_they_are(name: str) -> None:
    text = io.StringIO(newline="")
    rows = [[name, "z"], *([row, "a"] for row in range(1_000)), ["none", "b"]]
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    content = text.getvalue().encode()
    assert in_blocks(content, 2_000, target="z") == plainly(content, target="z")


def test_a_line_of_another_length_is_named_by_its_place_though_every_column_is_read_again() -> None:
    lines = ["a", *["1"] * 400, "none", *["2"] * 2_000, "3,4", "5"]
    content = "\n".join(lines).encode()
    with pytest.raises(DataError, match=f"line {lines.index('3,4') + 1} has 2 cells"):
        in_blocks(content, 100)
