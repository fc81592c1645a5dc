"""Empty lines of CSV: they are passed over wherever they stand between lines of the table, and kept within quotes."""

import csv
import io

import pytest
from hypothesis import given, strategies as st

import espalier
from espalier.data.readers.csv_blocks import csv_blocks, names_of, rows_of
from tests.core.counted_calls import n_calls

STRAY = '5" pipe,x\n'
"""A quote where none belongs: the csv module reads its block."""
PARTS = ("\n", "\n\n\n", "\r\n", "\r\n\r\n", "a,b\n", STRAY, '"c\n\n\nd",e\n', '"f\r\n\r\n""",\n', "g,h\r\n")


def cells(text: str, size: int = 64) -> list[list[str]]:
    blocks = csv_blocks(io.BytesIO(text.encode()), size=size)
    names = names_of(blocks)
    return [names, *(row for block in blocks for row in rows_of(block, names))]


@given(
    parts=st.lists(st.sampled_from(PARTS)),
    size=st.integers(1, 64),
)
def test_lines_are_those_that_the_reader_of_the_standard_library_finds(parts, size):
    text = "n,m\n" + STRAY + "".join(parts)
    assert cells(text, size) == [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\r\n", "\r\r\n"])
def test_many_empty_lines_after_a_stray_quote_are_not_read_one_by_one(ends: str):
    text = f"a,b\n{STRAY}" + "\n" * 50_000 + '"c\n\nd",y\n' + ends * 50_000
    found: list[list[str]] = []

    assert n_calls(lambda: found.extend(cells(text, 2**16))) < 5_000
    assert found == [["a", "b"], ['5" pipe', "x"], ["c\n\nd", "y"]]


def test_a_fault_after_them_is_told_by_its_line():
    text = f"a,b\n{STRAY}" + "\n" * 10 + "c,d\n\n" + '"e"f,g\n'
    with pytest.raises(espalier.DataError, match="line 15"):
        cells(text)


def test_rows_to_be_answered_are_none_where_all_lines_are_empty():
    data = espalier.dataset_from_columns({"x": [1, 2, 3, 4], "y": list("ppqq")}, target="y")
    empty = b"\n" * 100_000
    for text, n_rows in ((b"x\n1\n" + empty + b"2\n" + empty, 2), (b"x\n" + empty + b"3\n", 1)):
        batches = list(espalier.batches_from_csv(data.schema, io.BytesIO(text), size=4_096))
        assert [batch.first_row for batch in batches] == list(range(n_rows))
    with pytest.raises(espalier.DataError, match="no rows"):
        list(espalier.batches_from_csv(data.schema, io.BytesIO(b"x\n" + empty), size=4_096))
