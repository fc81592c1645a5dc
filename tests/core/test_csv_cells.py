"""Numbers read by compiled code are those that Python reads, bit by bit."""

import struct

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier import csv_compiled
from espalier.csv_compiled import Labelled, Lines, compile_reading, is_compiled, read_plain
from espalier.kernels import csv_cells

# Sums and products of 64 bits are to wrap around; of numbers that stay Python numpy says so.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")
DRAWS = hypothesis.settings(max_examples=300, deadline=None)
floats = st.floats(allow_nan=False, allow_infinity=False).map(repr)
signs = st.sampled_from(["", "-", "+"])
points = st.builds(
    lambda sign, whole, behind: f"{sign}{whole}.{behind}",
    signs,
    st.text("0123456789", max_size=20),
    st.text("0123456789", min_size=1, max_size=20),
)
powers = st.builds("{}{}{}{}".format, signs, st.integers(0, 10**19), st.sampled_from("eE"), st.integers(-330, 300))
# Half-way between two neighbouring doubles, and one beside it: what rounding to even is for.
halves = st.builds(lambda odd, by: str(2**53 + 2 * odd + 1 + by), st.integers(0, 2**51), st.integers(-1, 1))


def read_numbers(texts: list[str]) -> np.ndarray:
    content = "".join(f"{text}\n" for text in texts).encode()
    piece = read_plain(Lines.of(content), ["x"], numbers=["x"], texts=[], missing=["?"])
    assert piece is not None
    column = piece.columns["x"]
    assert isinstance(column, np.ndarray)
    return column


@DRAWS
@given(st.lists(floats | points | powers | halves, min_size=1))
def test_a_number_is_the_nearest_double(texts: list[str]) -> None:
    texts = [text for text in texts if np.isfinite(float(text))] or ["0"]

    found = [struct.pack("<d", number) for number in read_numbers(texts).tolist()]

    assert found == [struct.pack("<d", float(text)) for text in texts]


def test_numbers_as_programs_write_them_are_not_left_to_python() -> None:
    texts = ["1", "-1.5", "0.1", "36.6", "1e-7", "6.02214076e23", "3.141592653589793", "1.7976931348623157e308", ".5"]
    odd = np.full((9, 4), -1)
    content = np.frombuffer("".join(f"{text}\n" for text in texts).encode() + b"\n" * csv_cells.PADDING, dtype=np.uint8)
    values = np.empty((1, 20))

    found = csv_cells.read_cells(
        content, np.array([csv_cells.NUMBER], np.int8), np.zeros(1, np.int32), csv_cells.POWERS_OF_FIVE,
        np.empty(0, np.uint8), np.empty(0, np.int32), values, np.empty((0, 0), np.int32), np.empty((0, 0, 2), np.int64),
        np.empty(0, np.int32), np.empty((0, 0), np.int32), odd, np.empty((0, 4), np.int64),
    )  # fmt: skip

    assert found[:3] == (csv_cells.READ, len(texts), 0)
    assert values[0, : len(texts)].tolist() == [float(text) for text in texts]


def test_texts_come_as_places_among_the_distinct_ones() -> None:
    content = b'yes,1\n"no",2\n,"?"\n"yes",\n?,3\r\n'

    piece = read_plain(Lines.of(content), ["a", "b"], numbers=["b"], texts=["a"], missing=["?"])

    assert piece is not None
    assert piece.n_rows == 5
    labels = piece.columns["a"]
    assert isinstance(labels, Labelled)
    assert labels.texts == ("yes", "no")
    assert labels.places.tolist() == [0, 1, -1, 0, -1]
    np.testing.assert_array_equal(piece.columns["b"], [1, 2, np.nan, np.nan, 3])


def test_a_column_with_a_cell_that_is_no_number_comes_as_texts() -> None:
    piece = read_plain(Lines.of(b"1,2\n007,x\n"), ["a", "b"], numbers=["a", "b"], texts=[], missing=[])

    assert piece is not None
    labels = piece.columns["b"]
    assert isinstance(labels, Labelled)
    assert labels.texts == ("2", "x")
    np.testing.assert_array_equal(piece.columns["a"], [1, 7])


@pytest.mark.parametrize(
    "content",
    [b"1\n", b"1,2,3\n", b'a"b,1\n', b'"a""b",1\n', b'"a"b,1\n', b'"a,1\n', b"a\rb,1\n", b"1,2\n1\n", b'1,"2'],
)
def test_what_is_not_plain_is_left_to_others(content: bytes) -> None:
    assert read_plain(Lines.of(content), ["a", "b"], numbers=["b"], texts=["a"], missing=[]) is None


def test_texts_that_were_chosen_to_collide_are_left_to_others() -> None:
    digits, zero = np.arange(10**7, dtype=np.uint64), np.uint64(ord("0"))
    code = np.full(10**7, csv_cells.HASH_START)
    for at in range(7):  # FNV-1a (Fowler, Noll and Vo), of all texts of seven digits
        code = (code ^ (digits // np.uint64(10 ** (6 - at)) % np.uint64(10) + zero)) * csv_cells.HASH_FACTOR
    slot = (code ^ (code >> csv_cells.HALF)) & np.uint64(2**15 - 1)
    alike = np.flatnonzero(slot < 4)[: 2 * csv_cells.MOST_PROBES].tolist()
    others = list(range(len(alike)))

    pieces = [
        read_plain(
            Lines.of("".join(f"{number:07d}\n" for number in numbers).encode()),
            ["a"],
            numbers=[],
            texts=["a"],
            missing=[],
        )
        for numbers in (alike, others)
    ]

    assert len(alike) == 2 * csv_cells.MOST_PROBES
    assert pieces[0] is None
    assert pieces[1] is not None


texts_with_marks = st.text(st.sampled_from('ab7é,\n\r"'), max_size=60).map(str.encode)


def last_line_sign_by_sign(content: bytes) -> tuple[int, int]:
    inside, last, n_feeds, n_before = False, 0, 0, 0
    for at, sign in enumerate(content):
        if sign == ord("\n"):
            n_feeds += 1
            if not inside:
                last, n_before = at + 1, n_feeds
        elif sign == ord('"'):
            beside = content[at + 1 : at + 2] if inside else content[max(at - 1, 0) : at]
            if beside not in (b"", b",", b"\n", b"\r", b'"'):
                return -1, 0
            inside = not inside
    return last, n_before


@DRAWS
@given(
    texts_with_marks
    | st.lists(st.sampled_from(['"a\nb"', "1.25", '"x"', ",", "\n", "\r\n"])).map("".join).map(str.encode)
    | st.lists(st.sampled_from(["1.25," * 9, "7" * 63, '"a\nb",', '"x"\n', "\n", '"', "\0", "é"]))
    .map("".join)
    .map(str.encode)
)
def test_the_last_line_is_found_many_signs_at_a_time_as_sign_by_sign(content: bytes) -> None:
    found = csv_cells.last_line(np.frombuffer(content, dtype=np.uint8))

    assert tuple(found)[:2] == last_line_sign_by_sign(content)
    if found[0] >= 0:
        assert found[2] == (content.isascii() and b"\0" not in content)


def test_what_is_looked_at_behind_lines_is_there() -> None:
    assert csv_compiled.PADDING == csv_cells.PADDING


@pytest.mark.parametrize("name", ["read_cells", "last_line"])
def test_what_reads_a_large_table_is_compiled_beforehand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = getattr(csv_cells, name)
    if not hasattr(kernel, "overloads"):
        pytest.skip("kernels stay Python")
    calls = []

    def called(*arguments: object) -> object:
        calls.append(name)
        return kernel(*arguments)

    called.overloads = kernel.overloads or {"none": None}  # type: ignore[attr-defined]
    monkeypatch.setattr(csv_cells, name, called)
    compile_reading()

    assert calls


def test_large_tables_wait_for_the_compiler() -> None:
    assert is_compiled(2**30) == hasattr(csv_cells.read_cells, "overloads")
