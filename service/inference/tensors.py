"""Tensors of the Open Inference Protocol, whose cells are sent row by row, as JSON or as little-endian bytes.

    BYTES as bytes:   length (4) | text | length (4) | text | …        any other type: cell | cell | …

A cell is missing if the schema's `missing_values` list it, or if it is null, NaN, or an empty text (and no category).
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

import espalier
from espalier import Fault

Cells = list[Any]
LENGTH = struct.Struct("<I")
MAX_FAULTS = 100  # of one tensor


@dataclass(frozen=True, slots=True)
class Datatype:
    """A datatype of the protocol."""

    name: str
    dtype: np.dtype[Any] | None  # little-endian type of a cell in the binary form; None if cells differ in length
    legal: str  # the legal cells in JSON, for messages
    is_legal: Callable[[Any], bool]  # tests a cell in JSON that is not null


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor with its cells in row-major order, as JSON values; None is missing."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    cells: Cells
    is_nested: bool = False  # whether the JSON lists the cells row by row

    def pointer(self, cell: int) -> str:
        """Return the end of the JSON pointer to a cell: its index, or the indexes of its row and column."""
        return "/".join(map(str, divmod(cell, self.shape[1]))) if self.is_nested else str(cell)


def _is_boolean(cell: Any) -> bool:
    return type(cell) is bool or (type(cell) is int and cell in (0, 1))


def _whole(name: str, code: str) -> Datatype:
    dtype = np.dtype(f"<{code}")
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    legal = f"a whole number from {low} to {high}, or null for missing"
    return Datatype(name, dtype, legal, lambda cell: type(cell) is int and low <= cell <= high)


def _number(name: str, code: str) -> Datatype:
    dtype = np.dtype(f"<{code}")
    largest = float(np.finfo(dtype).max)
    legal = f"a number between ±{largest:.17g}, or null or NaN for missing"
    return Datatype(name, dtype, legal, lambda cell: type(cell) in (int, float) and -largest <= cell <= largest)


DATATYPES: Mapping[str, Datatype] = {
    one.name: one
    for one in (
        Datatype("BOOL", np.dtype("?"), "true, false, 1 or 0, or null for missing", _is_boolean),
        *(_whole(f"UINT{8 * width}", f"u{width}") for width in (1, 2, 4, 8)),
        *(_whole(f"INT{8 * width}", f"i{width}") for width in (1, 2, 4, 8)),
        *(_number(f"FP{8 * width}", f"f{width}") for width in (2, 4, 8)),
        Datatype("BYTES", None, "text, or null for missing", lambda cell: type(cell) is str),
    )
}


def cells_from_json(
    data: object, datatype: Datatype, shape: Sequence[int], *, pointer: str
) -> tuple[Cells, list[Fault]]:
    """Return the cells in a tensor's ``data`` (a list, or a list of rows), and the faults; with faults, no cells."""
    flat, at = data, [pointer]
    if isinstance(data, list) and len(shape) == 2 and data and all(isinstance(row, list) for row in data):
        if len(data) != shape[0] or any(len(row) != shape[1] for row in data):
            return [], [Fault(pointer, "length", f"must be {shape[0]} lists of {shape[1]}, as the shape says")]
        flat = [cell for row in data for cell in row]
        at = [f"{pointer}/{place}" for place in range(shape[0])]
    count = math.prod(shape)
    if not isinstance(flat, list) or len(flat) != count:
        return [], [Fault(pointer, "length", f"must be a list of {count} cells, as the shape says")]
    width = count // len(at) or 1
    wrong = (place for place, cell in enumerate(flat) if cell is not None and not datatype.is_legal(cell))
    faults = [
        Fault(f"{at[place // width]}/{place % width}", "wrong_type", f"must be {datatype.legal} ({datatype.name})")
        for place in islice(wrong, MAX_FAULTS)
    ]
    return ([] if faults else _rounded(flat, datatype)), faults


def cells_from_bytes(data: memoryview, datatype: Datatype, count: int, *, pointer: str) -> tuple[Cells, list[Fault]]:
    """Return the `count` cells that the bytes of a tensor contain, and the faults; with faults, no cells."""
    if datatype.dtype is None:
        return _texts(data, count, pointer=pointer)
    wanted = count * datatype.dtype.itemsize
    if len(data) != wanted:
        return [], [Fault(pointer, "length", f"must be {wanted} bytes, for {count} cells of {datatype.name}")]
    if datatype.dtype.kind == "b":
        return [byte != 0 for byte in data], []
    array: npt.NDArray[Any] = np.frombuffer(data, datatype.dtype)
    return (_without_nan(array) if datatype.dtype.kind == "f" else array.tolist()), []


def datatype_of(labels: Sequence[espalier.Label]) -> str:
    """Return the datatype that holds all these classes or categories; if there is none, BYTES for their texts."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    # 7 and 7.0 are different labels, but equal numbers.
    return "FP64" if kinds <= {int, float} and len(set(labels)) == len(labels) > 0 else "BYTES"


def tensor_bytes(tensor: Tensor) -> bytes:
    """Return the cells as bytes; no cell may be missing."""
    dtype = DATATYPES[tensor.datatype].dtype
    if dtype is not None:
        return np.array(tensor.cells, dtype).tobytes()
    texts = [cell.encode() for cell in tensor.cells]
    return b"".join(part for text in texts for part in (LENGTH.pack(len(text)), text))


def _rounded(cells: Cells, datatype: Datatype) -> Cells:
    """Convert JSON cells to the precision of the datatype, so that JSON and bytes give the same rows."""
    kind = None if datatype.dtype is None else datatype.dtype.kind
    if kind == "b":  # some clients write numpy's booleans as 0 and 1
        return [None if cell is None else bool(cell) for cell in cells]
    if kind != "f":
        return cells
    numbers = np.array([math.nan if cell is None else cell for cell in cells], np.float64)
    return _without_nan(numbers.astype(datatype.dtype))


def _without_nan(array: npt.NDArray[Any]) -> Cells:
    return [None if cell != cell else cell for cell in array.astype(np.float64).tolist()]  # noqa: PLR0124


def _texts(data: memoryview, count: int, *, pointer: str) -> tuple[Cells, list[Fault]]:
    cells: Cells = []
    start = 0
    for place in range(count):
        end = start + LENGTH.size
        if end > len(data):
            return [], [Fault(pointer, "length", f"ends after {place} of {count} cells")]
        start, end = end, end + LENGTH.unpack_from(data, start)[0]
        if end > len(data):
            return [], [Fault(pointer, "length", f"cell {place} is longer than the bytes that remain")]
        try:
            cells.append(str(data[start:end], "utf-8"))
        except UnicodeDecodeError:
            return [], [Fault(pointer, "not_text", f"cell {place} is not text in UTF-8")]
        start = end
    if start != len(data):
        return [], [Fault(pointer, "length", f"has bytes after its {count} cells")]
    return cells, []
