"""The texts of numbers: made again from the numbers they were read as, or noted, or kept; the table is the same."""

import csv
import io
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier import DataError, Dataset
from espalier.csv_blocks import csv_blocks
from espalier.csv_compiled import MOST_SPELT, Lines, read_plain
from espalier.declaring import Declared
from espalier.gathering import Gatherer
from espalier.limits import Limits
from espalier.sources import Source
from espalier.spelling import LONGEST_NOTED, MOST_NOTED, number_text, texts_of
from tests.core.test_csv_blocks import WAYS, in_pieces, plainly

PIECE = 2_000

digits = st.text("0123456789", max_size=20)
spelt = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.sampled_from(["", "."]),
    digits,
    st.sampled_from(["", "", "e5", "E-7", "e+300"]),
).filter(lambda text: any(sign.isdigit() for sign in text.lower().partition("e")[0]))
usual = st.from_regex(r"-?(0|[1-9][0-9]{0,6})(\.[0-9]{0,6}[1-9])?", fullmatch=True).filter(lambda text: text != "-0")


@given(st.lists(spelt | usual | st.floats(allow_nan=False, allow_infinity=False).map(repr), min_size=1, max_size=50))
def test_every_text_of_a_number_is_noted_or_made_again_from_it(texts: list[str]) -> None:
    content = "".join(f"{text}\n" for text in texts).encode()

    piece = read_plain(Lines.of(content), ["x"], numbers=["x"], texts=[], missing=[])

    assert piece is not None
    values = piece.columns["x"]
    if isinstance(values, np.ndarray):  # else one is beyond all doubles
        assert piece.noted is not None
        noted = piece.noted["x"]
        assert [noted.get(row) or number_text(value) for row, value in enumerate(values.tolist())] == texts


@given(st.lists(usual, min_size=1, max_size=50))
def test_the_usual_spelling_is_not_noted(texts: list[str]) -> None:
    content = "".join(f"{text}\n" for text in texts).encode()

    piece = read_plain(Lines.of(content), ["x"], numbers=["x"], texts=[], missing=[])

    assert piece is not None
    assert piece.noted == {"x": {}}


@pytest.mark.parametrize(("n_unusual", "are_noted"), [(MOST_SPELT, True), (MOST_SPELT + 1, False)])
def test_of_a_piece_so_many_are_noted(n_unusual: int, *, are_noted: bool) -> None:
    content = b"1.50\n" * n_unusual + b"1.5\n"

    piece = read_plain(Lines.of(content), ["x"], numbers=["x"], texts=[], missing=[])

    assert piece is not None
    assert (piece.noted is not None) == are_noted


def test_a_number_of_very_many_noughts_is_not_noted() -> None:
    short, long = ("1." + "0" * n_noughts for n_noughts in (LONGEST_NOTED - 2, LONGEST_NOTED - 1))

    pieces = [
        read_plain(Lines.of(f"{text}\n".encode()), ["x"], numbers=["x"], texts=[], missing=[]) for text in (short, long)
    ]

    assert [piece and piece.noted for piece in pieces] == [{"x": {0: short}}, None]


@given(st.lists(st.sampled_from(["1", "2.5", "-7", "2.50", "1e0", None]), max_size=30))
def test_texts_stand_in_the_order_of_their_first_rows(cells: list[str | None]) -> None:
    values = np.array([np.nan if cell is None else float(cell) for cell in cells])
    others = {"2.50", "1e0"}
    noted = {row: cell for row, cell in enumerate(cells) if cell in others}

    texts, places = texts_of(values, noted)

    assert [None if place < 0 else texts[place] for place in places.tolist()] == cells
    in_order = list(dict.fromkeys(cell for cell in cells if cell is not None))
    assert [text for text in texts if text in cells] == in_order


def lines_with(cell: str, n_rows: int, at: int, every: int) -> list[str]:
    """Rows of plain numbers; in the first column each so many-th is spelt otherwise, and one cell is no number."""
    odd = (f"{row}.50" if row % every == every - 1 else f"{row / 4:.12g}" for row in range(n_rows))
    return [f"{cell if row == at else x},{row % 3}" for row, x in enumerate(odd)]


class Counted(Source):
    """A source that counts what it is told to keep."""

    n_kept = 0

    def keep(self, part: bytes | memoryview) -> None:
        self.n_kept += len(part)
        super().keep(part)


def read(content: bytes, source: Source, *, way: str = "compiled", target: str = "y") -> Dataset:
    """Read in pieces of 2 000 bytes, a second time where that is asked for."""
    gatherer = Gatherer(Declared(target=target))
    for block in csv_blocks(source, gatherer, limits=Limits(), piece=PIECE, ways=WAYS[way]):
        gatherer.add(block)
    if gatherer.missed:
        source.rewind()
        gatherer.read_again()
        for block in csv_blocks(source, gatherer, limits=Limits(), piece=PIECE, ways=WAYS[way]):
            gatherer.add(block)
    return gatherer.finish().dataset()


@pytest.mark.parametrize("way", ["compiled", "both", "lines"])
@pytest.mark.parametrize("every", [1, 2, 7, 100, 10**9])
@pytest.mark.parametrize("at", [0, 1, 700, 2_500, 9_999, -1])
def test_a_text_far_down_reads_as_if_all_were_in_memory(way: str, every: int, at: int) -> None:
    content = "\n".join(["x,y", *lines_with("none", 10_000, at, every)]).encode()

    assert read(content, Source(io.BytesIO(content)), way=way) == plainly(content, target="y")


@pytest.mark.parametrize(
    ("n_rows", "every", "at", "kept_from"),
    [
        pytest.param(10_000, 10**9, -1, 10_000, id="numbers as most programs spell them"),
        pytest.param(10_000, 7, -1, 10_000, id="some spelt otherwise"),
        pytest.param(2 * MOST_NOTED + 1_000, 2, -1, 2 * MOST_NOTED + 1, id="too many spelt otherwise"),
        pytest.param(10_000, 10**9, 7_000, 7_000, id="a text"),
        pytest.param(10_000, 7, 7_000, 7_000, id="some spelt otherwise, and a text"),
        pytest.param(10_000, 10**9, 0, 10_000, id="a column of texts from the start"),
    ],
)
def test_what_can_be_made_again_is_not_kept(n_rows: int, every: int, at: int, kept_from: int) -> None:
    lines = lines_with("none", n_rows, at, every)
    content = "\n".join(["x,y", *lines]).encode()
    source, gatherer = Counted(io.BytesIO(content)), Gatherer(Declared(target="y"))

    for block in csv_blocks(source, gatherer, limits=Limits(), piece=PIECE, ways=WAYS["compiled"]):
        gatherer.add(block)

    needed = len("\n".join(lines[kept_from:]))
    assert needed <= source.n_kept <= (needed and needed + PIECE + len("x,y\n"))


def test_what_was_made_again_and_what_was_kept_are_one_column() -> None:
    n_rows = 2 * MOST_NOTED + 3_000
    content = "\n".join(["x,y", *lines_with("none", n_rows, n_rows - 100, 2)]).encode()

    assert read(content, Source(io.BytesIO(content))) == plainly(content, target="y")


@pytest.mark.parametrize("spell", ["{}", "{}.0", "{}e0"])
def test_a_target_that_was_first_labels_then_numbers_and_then_labels(spell: str) -> None:
    cells = itertools.chain(map(spell.format, range(4_000)), ["none"])
    content = "\n".join(["x,y", *(f"{row},{cell}" for row, cell in enumerate(cells))]).encode()

    assert read(content, Source(io.BytesIO(content))) == plainly(content, target="y")


def test_a_quote_out_of_its_place_far_down_is_kept_as_it_was_read() -> None:
    lines = [*(f"{row},a" for row in range(3_000)), '1,5" pipe', 'none,"a,b"', "2,c"]
    content = "\n".join(["x,y", *lines]).encode()

    assert read(content, Source(io.BytesIO(content))) == plainly(content, target="y")


@pytest.mark.parametrize("name", ["two\rlines", "\ufeffx", "x,y", 'the "x"'])
def test_names_are_kept_whatever_they_are(name: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(
        [[name, "z"], *([row, "a"] for row in range(1_000)), ["none", "b"]]
    )
    content = text.getvalue().encode()

    assert read(content, Source(io.BytesIO(content)), target="z") == plainly(content, target="z")


def test_a_line_of_another_length_is_named_by_its_place_though_every_column_is_read_again() -> None:
    lines = ["a", *["1"] * 400, "none", *["2"] * 2_000, "3,4", "5"]
    content = "\n".join(lines).encode()

    with pytest.raises(DataError, match=f"line {lines.index('3,4') + 1} has 2 cells"):
        in_pieces(content, 100, way="both")
