"""Data sets: feature-major columns with their schema.

A column of numbers or instants is float64 with NaN for missing, or float32 where it was given so: the same numbers
in half the memory. A column of categories is int32 codes with -1 for missing. Ignored columns are kept as they came, so
that a row can be shown with its id.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from espalier.data.labels import LARGEST_WHOLE, Label, instant_text
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.threads import parallel_map

Column = npt.NDArray[np.float64] | npt.NDArray[np.float32] | npt.NDArray[np.int32]

CELLS_HASHED_AT_ONCE: Final = 65_536
NO_BLEMISHES: Final = (frozenset[str](), frozenset[str]())


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its schema.

    Attributes:
        schema: Kind, role and categories of each column.
        columns: One array a schema feature, each of n_rows: float64 (NaN = missing) for numeric and datetime, float32
            for numeric attributes that were given as float32, int32 codes (-1 = missing) for the coded kinds.
            Read-only.

    >>> from espalier import dataset_from_rows
    >>> data = dataset_from_rows([{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}], target="play")
    >>> data.n_rows, data.schema.task, data.rows()[0]
    (2, 'classification', {'wind': 'weak', 'play': 'yes'})
    """

    schema: Schema
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        frozen = []
        for feature, column in zip(self.schema.features, self.columns, strict=True):
            array = np.ascontiguousarray(column, dtype=_stored_type(feature, column)).view()
            array.flags.writeable = False
            frozen.append(array)
        object.__setattr__(self, "columns", tuple(frozen))

    def __repr__(self) -> str:
        target = self.schema.target
        of = "no target" if target is None else f"target {target.name!r} ({self.schema.task})"
        return f"<Dataset: {self.n_rows} rows, {len(self.schema.attributes)} attributes, {of}>"

    def __eq__(self, other: object) -> bool:
        """Compare schema and cells; missing cells are equal."""
        return isinstance(other, Dataset) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    @cached_property
    def attributes(self) -> tuple[Column, ...]:
        """The columns of ``schema.attributes``, in that order."""
        return tuple(self._columns_of(Role.ATTRIBUTE))

    @cached_property
    def target(self) -> Column | None:
        """Class codes (int32) or numbers (float64), (n_rows,); None where no target is declared."""
        return next(self._columns_of(Role.TARGET), None)

    @cached_property
    def weight(self) -> npt.NDArray[np.float64]:
        """Row weights, float64 (n_rows,): the weight column, or ones."""
        declared = next(self._columns_of(Role.WEIGHT), None)
        return np.ones(self.n_rows) if declared is None else np.asarray(declared, dtype=np.float64)

    @property
    def has_missing(self) -> frozenset[str]:
        """Names of the attributes of which some row has no value."""
        return self._blemished[0]

    @property
    def has_infinite(self) -> frozenset[str]:
        """Names of the attributes of which some row has an infinite number."""
        return self._blemished[1]

    @cached_property
    def _blemished(self) -> tuple[frozenset[str], frozenset[str]]:
        attributes = self.attributes
        found = parallel_map(_blemishes, attributes, n_cells=self.n_rows * len(attributes))
        names = [feature.name for feature in self.schema.attributes]
        of_each = zip(*found, strict=True) if found else ((), ())
        lacking, has_infinite = (frozenset(compress(names, flags)) for flags in of_each)
        return lacking, has_infinite

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the schema and every cell: one table has one fingerprint, whatever it was read from."""
        return kept_fingerprint(self, lambda: ((column,) for column in self.columns))

    def with_fingerprint(self, fingerprint: str) -> "Dataset":
        """Give the same with the fingerprint that was kept with it: it is not sought again, and nothing is checked."""
        known = Dataset(self.schema, self.columns)
        known.__dict__["_fingerprint"] = fingerprint
        return known

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of the data: attributes that can never be tested, or whose numbers are rounded."""
        return notices_of(
            Seen(feature.name, _is_constant(column), _present(column), _is_rounded(feature, column))
            for feature, column in zip(self.schema.attributes, self.attributes, strict=True)
        )

    def take(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> "Dataset":
        """Give the data set of the given rows, in that order, with the same schema."""
        places = np.asarray(rows, dtype=np.intp)
        n_cells = len(places) * len(self.columns)
        columns = parallel_map(lambda column: column.take(places), self.columns, n_cells=n_cells)
        taken = Dataset(self.schema, tuple(columns))
        blemished = self.__dict__.get("_blemished")
        if blemished == NO_BLEMISHES:
            taken.__dict__["_blemished"] = blemished
        return taken

    def slice(self, start: int, stop: int) -> Iterator[Column]:
        """Give the cells of rows ``start:stop``, an array a column."""
        return (column[start:stop] for column in self.columns)

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Label | None]]:
        """Give rows ``start:stop`` with their labels, numbers and dates; None where missing."""
        shown = [
            _shown_cells(feature, column[start:stop])
            for feature, column in zip(self.schema.features, self.columns, strict=True)
        ]
        names = [feature.name for feature in self.schema.features]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*shown, strict=True)]

    def _columns_of(self, role: Role) -> Iterator[Column]:
        return (
            column for feature, column in zip(self.schema.features, self.columns, strict=True) if feature.role is role
        )


def kept_fingerprint(table: Any, columns: Callable[[], Iterable[Iterable[Column]]]) -> str:
    """Give the fingerprint of a table with a schema, found the first time; `columns` as `fingerprint_of` has them.

    No `cached_property`: on Python 3.11 all tables would share its lock, and hashing a large one takes seconds.
    """
    kept: dict[str, str] = table.__dict__
    if "_fingerprint" not in kept:
        kept["_fingerprint"] = fingerprint_of(table.schema, columns())
    return kept["_fingerprint"]


def fingerprint_of(schema: Schema, columns: Iterable[Iterable[Column]]) -> str:
    """Give the SHA-256 (hex) of a table: its schema, then every cell, column by column; each column comes in parts."""
    digest = hashlib.sha256(orjson.dumps(schema.to_dict(), option=orjson.OPT_SORT_KEYS))
    for parts in columns:
        for part in parts:
            for first in range(0, len(part), CELLS_HASHED_AT_ONCE):
                cells = _spelt_one_way(part[first : first + CELLS_HASHED_AT_ONCE])
                digest.update(cells.astype(cells.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()


def lacks_values(column: Column) -> bool:
    """Say whether a value of a column is missing.

    >>> lacks_values(np.array([1.0, np.nan])), lacks_values(np.array([0, 2], np.int32))
    (True, False)
    """
    return _blemishes(column)[0]


class Seen(NamedTuple):
    """What was seen of an attribute: whether it varies, has values, and numbers that are kept rounded."""

    name: str
    is_constant: bool
    has_value: bool
    is_rounded: bool


def notices_of(attributes: Iterable[Seen]) -> tuple[str, ...]:
    """Say which attributes can never be tested, and which have numbers that are not kept to the last digit."""
    return tuple(notice for seen in attributes for notice in _notices(seen))


def _notices(seen: Seen) -> Iterator[str]:
    if seen.is_constant:
        yield f"attribute {seen.name!r} has {'one value' if seen.has_value else 'no values'} and can never be tested"
    if seen.is_rounded:
        yield (
            f"attribute {seen.name!r} has numbers of 2^53 ({LARGEST_WHOLE}) and more, which are kept rounded: "
            "declare it nominal, and give them as texts, if they are codes"
        )


def is_beyond_whole(values: npt.NDArray[Any]) -> bool:
    """Say whether a number is so large that the whole numbers next to it are kept as the same one.

    >>> is_beyond_whole(np.array([1.0, np.nan, 2.0**53])), is_beyond_whole(np.array([np.nan, 2.0**53 - 1]))
    (True, False)
    """
    if not len(values):
        return False
    low, high = values.min(), values.max()
    if np.isnan(low):  # slower, but it passes over what is missing
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    return bool(high >= LARGEST_WHOLE or low <= -LARGEST_WHOLE)


def _stored_type(feature: Feature, column: npt.NDArray[Any]) -> npt.DTypeLike:
    if feature.coded:
        return np.int32
    single = feature.role is Role.ATTRIBUTE and feature.kind is FeatureKind.NUMERIC and column.dtype == np.float32
    return np.float32 if single else np.float64


def _spelt_one_way(cells: Column) -> Column:
    """Give one spelling to NaN and to zero, so that equal cells have equal bytes."""
    if cells.dtype == np.int32:
        return cells
    spelt = np.add(cells, 0.0, dtype=np.float64)
    absent = np.isnan(spelt)
    if absent.any():
        spelt[absent] = np.nan
    return spelt


def _blemishes(column: Column) -> tuple[bool, bool]:
    """Say whether a value of a column is missing, and whether one is infinite."""
    if not len(column):
        return False, False
    least = column.min()
    if column.dtype == np.int32:
        return bool(least < 0), False
    if np.isnan(least):  # as it is where one of the numbers is
        return True, bool(np.isinf(column).any())
    return False, bool(np.isinf(least) or np.isinf(column.max()))


def _present(column: Column) -> bool:
    return bool(np.any(column >= 0) if column.dtype == np.int32 else not np.all(np.isnan(column)))


def _is_rounded(feature: Feature, column: Column) -> bool:
    return feature.kind is FeatureKind.NUMERIC and column.dtype == np.float64 and is_beyond_whole(column)


def _is_constant(column: Column) -> bool:
    known = column[column >= 0] if column.dtype == np.int32 else column[~np.isnan(column)]
    return len(known) == 0 or bool(np.all(known == known[0]))


def _shown_cells(feature: Feature, column: Column) -> list[Label | None]:
    if feature.coded:
        return [None if code < 0 else feature.categories[code] for code in column.tolist()]
    values = column.tolist()
    if feature.kind is FeatureKind.DATETIME:
        return [None if math.isnan(value) else instant_text(value) for value in values]
    return [None if math.isnan(value) else value for value in values]
