"""A data set of somebody else's array: its columns are copied while they are looked at whole, and not kept.

A column of an array of rows is strewn over all of it, so whoever looks at every cell of it wants a copy::

    lent    x0 x1 x2 … | x0 x1 x2 … | …        the caller's array: neither written nor copied as a whole
    near    x0 x0 x0 … | x1 x1 x1 … | …        each until it is let go: the grower has coded it by then

What comes later looks at some cells, or at a few thousand rows at a time, and finds them in the array itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from espalier.dataset import Column, Dataset, kept_fingerprint
from espalier.memory import large_array
from espalier.processors import in_threads
from espalier.schema import Schema

__all__ = ["LentColumns", "LentDataset", "can_be_lent"]

ROWS_AT_ONCE: Final = 2_048
ROWS_OF_A_PART: Final = 32 * ROWS_AT_ONCE
BYTES_OF_A_PIECE: Final = 4 << 20
"""Of memory that holds several columns: some large pages."""
LEAST_PIECES: Final = 4
"""Where all columns do not fit into one."""


def can_be_lent(matrix: npt.NDArray[Any]) -> bool:
    """Say whether an array holds the numbers of a data set as it would keep them itself."""
    return matrix.dtype in (np.float32, np.float64) and matrix.dtype.isnative and matrix.flags.aligned


class LentColumns(Sequence[Column]):
    """The columns of an array of floats (rows, columns), each read-only and in one piece.

    >>> columns = LentColumns(np.array([[1.0, 5.0], [2.0, 6.0]]))
    >>> columns.let_go(1)
    >>> columns[1].tolist(), columns.read(0, [1]).tolist()
    ([5.0, 6.0], [2.0])
    """

    def __init__(self, matrix: npt.NDArray[Any]) -> None:
        self._matrix = matrix.view()
        self._matrix.flags.writeable = False
        self._near: list[Column | None] = list(_in_one_piece(self._matrix))

    def __len__(self) -> int:
        """Give the number of columns."""
        return len(self._near)

    @overload
    def __getitem__(self, place: int) -> Column: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Column]: ...
    def __getitem__(self, place: int | slice) -> Column | Sequence[Column]:
        """Give a column in one piece; where it was let go, it is copied again, and not kept."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        near = self._near[place]
        return _read_only(np.ascontiguousarray(self._matrix[:, place])) if near is None else near

    def __iter__(self) -> Iterator[Column]:
        """Give one column after the other."""
        return (self[place] for place in range(len(self)))

    def let_go(self, place: int) -> None:
        """Say that a column is not looked at as a whole any more."""
        self._near[place] = None

    def read(self, place: int, rows: Any) -> Column:
        """Give some cells of a column, where they stand."""
        near = self._near[place]
        column: Column = (self._matrix[:, place] if near is None else near)[rows]
        return column

    def wherever(self) -> tuple[Column, ...]:
        """Give each column in one piece, or, where it was let go, as it lies in the array."""
        return tuple(self._matrix[:, place] if near is None else near for place, near in enumerate(self._near))


class LentDataset(Dataset):
    """A data set whose attributes are the columns of an array, in their order, and stand before all else.

    Attributes:
        attributes: In one piece each, see `LentColumns`.
        columns: As `Dataset.columns`, but those that were let go lie in the array, not in one piece.
    """

    attributes: LentColumns  # type: ignore[assignment]

    def __init__(self, schema: Schema, attributes: LentColumns, others: tuple[Column, ...]) -> None:
        self.__dict__.update(schema=schema, attributes=attributes, _others=tuple(map(_read_only, others)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Give an array a schema feature."""
        return (*self.attributes.wherever(), *self.__dict__["_others"])

    @property
    def fingerprint(self) -> str:
        """As `Dataset.fingerprint`; no column is held for longer than it is read."""
        return kept_fingerprint(self, lambda: ((column,) for column in self._each()))

    def _each(self) -> Iterator[Column]:
        yield from self.attributes
        yield from self.__dict__["_others"]


def _in_one_piece(matrix: npt.NDArray[Any]) -> list[Column]:
    """Give the columns of an array, copied only where they do not lie in one piece."""
    n_rows, n_columns = matrix.shape
    if matrix.strides[0] == matrix.itemsize:
        return [matrix[:, place] for place in range(n_columns)]
    pieces = _room(n_rows, n_columns, matrix.dtype)

    def write(first: int) -> None:
        # A few rows at a time, which stay in the cache until the last of their columns is written.
        for at in range(first, min(first + ROWS_OF_A_PART, n_rows), ROWS_AT_ONCE):
            rows, place = slice(at, at + ROWS_AT_ONCE), 0
            for piece in pieces:
                piece[:, rows] = matrix[rows, place : place + len(piece)].T
                place += len(piece)

    starts = range(0, n_rows, ROWS_OF_A_PART)
    if len(starts) > 1:
        in_threads(write, starts)
    else:
        write(0)
    return [_read_only(column) for piece in pieces for column in piece]


def _room(n_rows: int, n_columns: int, kind: npt.DTypeLike) -> list[npt.NDArray[Any]]:
    """Give (columns, rows) that nothing was written to, in pieces of memory: each is free when its last column is."""
    at_once = max(1, BYTES_OF_A_PIECE // max(1, n_rows * np.dtype(kind).itemsize))
    if n_columns > at_once:
        at_once = max(1, min(at_once, n_columns // LEAST_PIECES))
    counts = [min(at_once, n_columns - first) for first in range(0, n_columns, at_once)]
    return [large_array(count * n_rows, kind).reshape(count, n_rows) for count in counts]


def _read_only(column: Column) -> Column:
    view = column.view()
    view.flags.writeable = False
    return view
