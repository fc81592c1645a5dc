"""Columns of a chunk as bytes: whole numbers as narrow as they can be, decimals as whole numbers, the rest as it is.

    codes     1, 2 or 4 bytes a cell: 0 is missing, else the code and one
    numbers   most tables are typed or printed: 36.6 is 366 tenths. Where every number of the column is exactly so many
              tenths, hundredths, …, that is kept: how many above the least, in 1 to 6 bytes, all ones for missing
    words     what is printed of single precision, or measured to some digits, has its decimal point in other places:
              4 bytes a cell (`espalier.DecimalWords`), and 8 for each of the few numbers that do not fit
    others    8 bytes a cell: float64

The bytes of a cell of 5 or 6 stand in two arrays, | 4 of each cell | 1 or 2 more of each |, so that numpy reads both at
once. All are little-endian. What a column comes back as is what it was, bit by bit; NaN is NaN.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier

__all__ = ["PackedColumn", "pack_column", "packed_size", "unpack_column"]

Floats = npt.NDArray[np.float64]

WIDTHS: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("<u1",),
    2: ("<u2",),
    4: ("<u4",),
    5: ("<u4", "<u1"),
    6: ("<u4", "<u2"),
}
"""Bytes of a cell, and the arrays that they stand in."""
NUMBER_BYTES: Final = 8
WORD_BYTES: Final = 4
MOST_PLACES: Final = 15
"""Behind the decimal point."""
UNITS: Final = np.array([10.0**places for places in range(MOST_PLACES + 1)])
LARGEST: Final = 2.0**52
"""Of whole numbers: their differences are exact, too."""
SAMPLE: Final = 64
TRIES: Final = 3
MINUS_ZERO: Final = np.iinfo(np.int64).min
"""The bits of -0.0, which no whole number can be."""


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """A column as bytes.

    Attributes:
        form: What `unpack_column` must know beside the bytes, as JSON: ``width``, bytes of a cell, and for decimals
            ``places`` behind the point and the ``least``, in units of the last place; for words their ``first`` places
            and how many ``others`` follow them. Codes and float64 have none.
        parts: The bytes, one after the other.
    """

    form: dict[str, Any]
    parts: tuple[npt.NDArray[Any], ...]

    @property
    def content(self) -> bytes:
        """A copy of the bytes."""
        return b"".join(part.data for part in self.parts)


def pack_column(column: npt.NDArray[Any]) -> PackedColumn:
    """Pack int32 codes, -1 for missing, or float64 numbers, NaN for missing; (n_rows,)."""
    if column.dtype == np.int32:
        return _pack_codes(column)
    ways = (_pack_decimals, _pack_words) if _is_short(column) else (_pack_words, _pack_decimals)
    return next((packed for way in ways if (packed := way(column)) is not None), None) or _as_they_are(column)


def packed_size(form: Mapping[str, Any], n_rows: int) -> int:
    """Give how many bytes a column of this form takes."""
    size: int = form["width"] * n_rows + NUMBER_BYTES * form.get("others", 0)
    return size


def unpack_column(form: Mapping[str, Any], content: memoryview, out: npt.NDArray[Any]) -> None:
    """Unpack a column into `out`: (n_rows,) int32 for codes, float64 for numbers."""
    if "first" in form:
        words = np.frombuffer(content, dtype="<u4", count=len(out))
        others = np.frombuffer(content, dtype="<f8", offset=words.nbytes)
        espalier.DecimalWords(form["first"], words, others).write_numbers(out)
        return
    arrays = WIDTHS.get(form["width"])
    if arrays is None:
        out[:] = np.frombuffer(content, dtype="<f8")
        return
    first, *more = _arrays(content, arrays, len(out))
    if "places" not in form:
        np.subtract(first, 1, out=out, dtype=np.int64, casting="unsafe")
        return
    is_missing = first == np.iinfo(first.dtype).max
    np.add(first, form["least"], out=out, dtype=np.float64)
    for high in more:
        out += high * 2.0**32
        is_missing &= high == np.iinfo(high.dtype).max
    if form["places"]:
        out /= 10.0 ** form["places"]
    out[is_missing] = np.nan


def _arrays(content: memoryview, types: tuple[str, ...], n_rows: int) -> list[npt.NDArray[Any]]:
    starts = np.cumsum([0, *(n_rows * np.dtype(each).itemsize for each in types)]).tolist()
    return [
        np.frombuffer(content, dtype=each, count=n_rows, offset=start)
        for each, start in zip(types, starts, strict=False)
    ]


def _pack_codes(codes: npt.NDArray[np.int32]) -> PackedColumn:
    above = codes.astype(np.int64) + 1
    most = int(above.max(initial=0))
    width = next(width for width in WIDTHS if most < 256**width)
    return PackedColumn({"width": width}, (above.astype(WIDTHS[width][0]),))


def _as_they_are(numbers: Floats) -> PackedColumn:
    return PackedColumn({"width": NUMBER_BYTES}, (numbers.astype("<f8", copy=False),))


def _is_short(numbers: Floats) -> bool:
    """Say whether whole numbers of one unit, as some cells need it, would take no more than a word."""
    looked_at = numbers[:: max(1, len(numbers) // SAMPLE)]
    looked_at = looked_at[~np.isnan(looked_at)]
    if not len(looked_at):
        return True
    places = _places_of(looked_at, 0)
    if places is None:
        return False
    most = 256.0**WORD_BYTES / 10.0**places
    with np.errstate(over="ignore", invalid="ignore"):  # the few say it mostly; all are looked at where they do not
        return all(float(np.fmax.reduce(each) - np.fmin.reduce(each)) < most for each in (looked_at, numbers))


def _pack_words(numbers: Floats) -> PackedColumn | None:
    """Pack numbers into words; None where too many do not fit, or no compiled code is there to find them."""
    found = espalier.decimal_words(numbers)
    if found is None or NUMBER_BYTES * len(found.others) > len(numbers):
        return None
    form = {"width": WORD_BYTES, "first": found.first, "others": len(found.others)}
    return PackedColumn(form, (found.words.astype("<u4", copy=False), found.others.astype("<f8", copy=False)))


def _pack_decimals(numbers: Floats) -> PackedColumn | None:
    """Pack numbers that are whole in some decimal unit; None where they are not, or not within 6 bytes."""
    is_missing = np.isnan(numbers)
    known = numbers[~is_missing] if is_missing.any() else numbers
    if not len(known):
        return PackedColumn({"width": 1, "places": 0, "least": 0}, (np.full(len(numbers), 255, dtype=np.uint8),))
    found = _in_last_places(known)
    if found is None or np.any(known.view(np.int64) == MINUS_ZERO):
        return None
    places, whole = found
    least = float(whole.min())
    span = int(whole.max() - least)
    width = next((width for width in WIDTHS if span < 256**width - 1), None)
    if width is None:
        return None
    whole -= least
    above = np.full(len(numbers), -1, dtype=np.int64)  # all bits one: of any width, what stands for missing
    if len(known) == len(numbers):
        above = whole.astype(np.int64)
    else:
        above[~is_missing] = whole.astype(np.int64)
    parts = []
    for each in WIDTHS[width]:
        parts.append(above.astype(each))
        above >>= 32
    return PackedColumn({"width": width, "places": places, "least": int(least)}, tuple(parts))


def _in_last_places(numbers: Floats) -> tuple[int, Floats] | None:
    """Give how many places behind the point the numbers need, and how many units of the last place they are."""
    least = 0
    looked_at = numbers[:: max(1, len(numbers) // SAMPLE)]
    for _ in range(TRIES):
        places = _places_of(looked_at, least)
        if places is None:
            return None
        unit = 10.0**places
        with np.errstate(over="ignore"):  # what is too large for that is seen below
            whole = numbers * unit
        np.rint(whole, out=whole)
        differ = np.flatnonzero(whole / unit != numbers)
        if not len(differ):
            return (places, whole) if max(-whole.min(), whole.max()) <= LARGEST else None
        looked_at = numbers[differ[:: max(1, len(differ) // SAMPLE)]]
        least = places + 1
    return None


def _places_of(numbers: Floats, least: int) -> int | None:
    """Give with how few places, at least so many, each of the numbers can be written."""
    units = UNITS[least:, None]
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large for that is seen next
        whole = np.rint(numbers * units)
        fits = np.all(whole / units == numbers, axis=1) & (np.abs(whole).max(axis=1) <= LARGEST)
    return least + int(np.argmax(fits)) if fits.any() else None
