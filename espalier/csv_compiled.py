"""A piece of CSV read by compiled code: numbers as float64, texts as places among the distinct ones.

It takes less processor time than pyarrow, and less memory, but reads plain CSV only (`espalier.kernels.csv_cells`).
What it does not read, its callers read by pyarrow or line by line; the cells are the same.
"""

import csv
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.marks import number_from_text
from espalier.small_work import waits_for_compiler
from espalier.spelling import LONGEST_NOTED

__all__ = [
    "LINE_FEED",
    "PADDING",
    "Labelled",
    "Lines",
    "PlainPiece",
    "WholeLines",
    "compile_reading",
    "is_compiled",
    "read_plain",
    "whole_lines",
]

WORTH_COMPILING: Final = 64 * 2**20
"""Bytes of one table after which compiling, some seconds once a machine, is worth it."""
MOST_TEXTS: Final = 2**14
"""Distinct texts of a column of a piece."""
MOST_ODD: Final = 2**12
"""Numbers of a piece that compiled code leaves to Python."""
MOST_SPELT: Final = 2**10
"""Numbers of a piece that are spelt otherwise than most."""

WORTH_LOADING: Final = 65_536
"""Bytes to be looked at from which on compiled code is loaded."""
LINE_FEED: Final = ord("\n")
PADDING: Final = 16
"""Bytes behind lines that compiled code may look at; `espalier.kernels.csv_cells` says the same."""

_first_use = threading.Lock()


@dataclass(frozen=True, slots=True)
class Labelled:
    """A column of texts: the distinct ones, and of each row the place of its own, int32 (n_rows,), -1 where missing."""

    texts: tuple[str, ...]
    places: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PlainPiece:
    """Some rows, and the columns that were asked for; numbers are float64 (n_rows,), NaN where missing.

    Attributes:
        noted: Of each column of numbers the texts that `espalier.spelling.number_text` does not give, by row; None
            where there are too many, or one is too long.
    """

    n_rows: int
    columns: Mapping[str, npt.NDArray[np.float64] | Labelled]
    noted: Mapping[str, Mapping[int, str]] | None


@dataclass(frozen=True, slots=True)
class WholeLines:
    """The lines of a text that have ended: where the last one does, and the line feeds up to there.

    Attributes:
        is_plain: Whether the text is seen to be ASCII without NUL.
    """

    end: int
    n_feeds: int
    is_plain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Whole lines of CSV where they were received, UTF-8 not yet looked at.

    Attributes:
        signs: uint8 (bytes of the lines + PADDING); what stands behind the lines is anything, but a line feed where
            the last of them does not end in one.
        n_feeds: How many line feeds there are; None where they were not counted.
        is_plain: Whether they are seen to be ASCII without NUL.
    """

    signs: npt.NDArray[np.uint8]
    n_feeds: int | None = None
    is_plain: bool = False

    @classmethod
    def of(cls, content: bytes) -> "Lines":
        """Copy bytes."""
        return cls(np.frombuffer(content + b"\n" * PADDING, dtype=np.uint8))

    def __len__(self) -> int:
        return len(self.signs) - PADDING

    @property
    def view(self) -> memoryview:
        """The bytes."""
        return self.signs.data[: len(self)]

    @property
    def content(self) -> bytes:
        """A copy of the bytes."""
        return bytes(self.view)

    def is_text(self) -> bool:
        r"""Say whether they are UTF-8 without NUL; of what is not, only the way line by line says where.

        >>> Lines.of("größe,1".encode()).is_text(), Lines.of("größe".encode("latin-1")).is_text()
        (True, False)
        >>> Lines.of(b"a,\0").is_text()
        False
        """
        if self.is_plain:
            return True
        content = self.content
        if b"\0" in content:
            return False
        if not content.isascii():
            try:
                content.decode()
            except UnicodeDecodeError:
                return False
        return True

    def text(self, begin: int, end: int) -> str:
        """Give the text of some of the bytes."""
        return str(self.view[begin:end], "utf-8")


def is_compiled(n_bytes: int) -> bool:
    """Say whether compiled code is there for a table of so many bytes, or is to be made for it."""
    from espalier.kernels import csv_cells as kernel  # noqa: PLC0415 - numba is loaded for long tables only
    from espalier.kernels.jit import must_compile  # noqa: PLC0415 - as above

    kernels: tuple[Any, ...] = (kernel.read_cells, kernel.last_line)
    if not all(hasattr(each, "overloads") for each in kernels):
        return False  # stays Python, which pyarrow outdoes
    is_there = all(each.overloads or not must_compile(each) for each in kernels)
    return is_there or waits_for_compiler() or n_bytes >= WORTH_COMPILING


def compile_reading() -> None:
    """Have the code compiled, or loaded."""
    read_plain(Lines.of(b"1,a\n"), ("x", "y"), numbers=("x",), texts=("y",), missing=())
    whole_lines(np.frombuffer(b"1,a\n" * WORTH_LOADING, dtype=np.uint8), first_byte=WORTH_COMPILING)


def whole_lines(content: npt.NDArray[np.uint8], *, first_byte: int) -> WholeLines | None:
    """Find the lines of the table that end in a line feed within the content, which begins with a line.

    Args:
        content: Of the table, from this byte on; uint8.
        first_byte: Where it begins.

    Returns:
        None where there is no such line, a quote stands elsewhere than RFC 4180 has it, or there is no compiled code.
    """
    if len(content) < WORTH_LOADING or not is_compiled(first_byte):
        return None
    from espalier.kernels import csv_cells as kernel  # noqa: PLC0415 - as above

    with _turn(kernel.last_line):
        end, n_feeds, is_plain = kernel.last_line(_read_only(content))
    return WholeLines(end, n_feeds, is_plain=bool(is_plain)) if end > 0 else None


def read_plain(
    lines: Lines, names: Sequence[str], *, numbers: Collection[str], texts: Collection[str], missing: Sequence[str]
) -> PlainPiece | None:
    """Read whole lines; a column of `numbers` in which one is none comes as texts.

    Args:
        lines: UTF-8 without NUL.
        names: Of all columns.
        numbers: Names of those that are to be numbers.
        texts: Names of those that are to be texts; what is in neither is left out.
        missing: Texts that stand for missing, besides the empty one.

    Returns:
        The columns; None where something stands there that is not plain.
    """
    if any(number_from_text(text) is not None for text in missing):
        return None
    asked = _Asked(names, list(numbers), list(texts), missing)
    while True:
        piece, others = _read(lines, asked)
        if not others:
            return piece
        numbers = [name for name in asked.numbers if name not in others]
        asked = replace(asked, numbers=numbers, texts=[*asked.texts, *sorted(others)])


@dataclass(frozen=True, slots=True)
class _Asked:
    """What `read_plain` is asked for."""

    names: Sequence[str]
    numbers: Sequence[str]
    texts: Sequence[str]
    missing: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class _Buffers:
    """What `espalier.kernels.csv_cells.read_cells` writes; see there."""

    values: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    spans: npt.NDArray[np.int64]
    n_texts: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    odd: npt.NDArray[np.int64]
    spelt: npt.NDArray[np.int64]

    @classmethod
    def of(cls, n_numbers: int, n_texts: int, *, most_rows: int) -> "_Buffers":
        most_texts = min(MOST_TEXTS, 1 << most_rows.bit_length())
        return cls(
            np.empty((n_numbers, most_rows)),
            np.empty((n_texts, most_rows), dtype=np.int32),
            np.empty((n_texts, most_texts, 2), dtype=np.int64),
            np.zeros(n_texts, dtype=np.int32),
            np.full((n_texts, 2 * most_texts), -1, dtype=np.int32),
            np.empty((MOST_ODD, 4), dtype=np.int64),
            np.empty((MOST_SPELT, 4), dtype=np.int64),
        )


def _read(lines: Lines, asked: _Asked) -> tuple[PlainPiece | None, frozenset[str]]:
    """Read columns; give the names of those that are no numbers instead, if there are some."""
    n_feeds = lines.n_feeds
    if n_feeds is None:  # counted much before `bytes.count` has
        n_feeds = int(np.count_nonzero(lines.signs[: len(lines)] == LINE_FEED))
    # A line has at least a sign a column: a comma or its end.
    most_rows = min(n_feeds, len(lines) // len(asked.names)) + 1
    buffers = _Buffers.of(len(asked.numbers), len(asked.texts), most_rows=most_rows)
    read = _called(lines, asked, buffers)
    if read is None:
        return None, frozenset()
    n_rows, n_odd, n_spelt = read
    odd, spelt = buffers.odd[:n_odd].tolist(), buffers.spelt[: min(n_spelt, MOST_SPELT)].tolist()
    spans = [buffers.spans[place, :n].tolist() for place, n in enumerate(buffers.n_texts.tolist())]
    if _longest(odd, *spans) > csv.field_size_limit():
        return None, frozenset()
    others = set()
    noted: dict[str, dict[int, str]] = {name: {} for name in asked.numbers}
    for place, row, begin, end in odd:
        text = lines.text(begin, end)
        number = number_from_text(text)
        if number is None:
            others.add(asked.numbers[place])
        else:
            buffers.values[place, row] = number
            noted[asked.numbers[place]][row] = text
    if others:
        return None, frozenset(others)
    for place, row, begin, end in spelt:
        noted[asked.numbers[place]][row] = lines.text(begin, end)
    columns: dict[str, Any] = {name: buffers.values[place, :n_rows] for place, name in enumerate(asked.numbers)}
    for place, name in enumerate(asked.texts):
        labels = [lines.text(begin, end) for begin, end in spans[place]]
        columns[name] = _labelled(labels, buffers.codes[place, :n_rows], asked.missing)
    is_noted = n_spelt <= MOST_SPELT and _longest(odd, spelt) <= LONGEST_NOTED
    return PlainPiece(n_rows, columns, noted if is_noted else None), frozenset()


def _longest(*spans: Sequence[Sequence[int]]) -> int:
    """Give the length of the longest text; the last two of each entry are where it begins and ends."""
    return max((end - begin for *_, begin, end in chain(*spans)), default=0)


def _called(lines: Lines, asked: _Asked, buffers: _Buffers) -> tuple[int, int, int] | None:
    """Call the kernel; give the numbers of rows, of odd cells and of spelt ones; None where something is not plain."""
    from espalier.kernels import csv_cells as kernel  # noqa: PLC0415 - as above

    kinds = np.full(len(asked.names), kernel.LEFT_OUT, dtype=np.int8)
    rows_of = np.zeros(len(asked.names), dtype=np.int32)
    at = {name: place for place, name in enumerate(asked.names)}
    for kind, group in ((kernel.NUMBER, asked.numbers), (kernel.TEXT, asked.texts)):
        places = [at[name] for name in group]
        kinds[places] = kind
        rows_of[places] = np.arange(len(group))
    marks = [text.encode() for text in asked.missing]
    arguments = (
        _read_only(lines.signs),
        kinds,
        rows_of,
        kernel.POWERS_OF_FIVE,
        np.frombuffer(b"".join(marks), dtype=np.uint8),
        np.cumsum([len(mark) for mark in marks], dtype=np.int32),
        *(getattr(buffers, field.name) for field in fields(buffers)),
    )
    with _turn(kernel.read_cells):
        state, n_rows, n_odd, n_spelt = kernel.read_cells(*arguments)
    return (n_rows, n_odd, n_spelt) if state == kernel.READ else None


def _read_only(signs: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Give a view: machine code is made for one kind of array."""
    view = signs.view()
    view.flags.writeable = False
    return view


def _turn(kernel: Any) -> AbstractContextManager[Any]:
    """Have the first thread load or compile the code while the others wait."""
    return nullcontext() if getattr(kernel, "overloads", True) else _first_use


def _labelled(labels: list[str], places: npt.NDArray[np.int32], missing: Sequence[str]) -> Labelled:
    """Take out the texts that stand for missing."""
    kept = [label for label in labels if label not in missing]
    if len(kept) == len(labels):
        return Labelled(tuple(labels), places)
    table = np.full(len(labels) + 1, -1, dtype=np.int32)
    table[[place for place, label in enumerate(labels) if label not in missing]] = np.arange(len(kept))
    return Labelled(tuple(kept), table[places])
