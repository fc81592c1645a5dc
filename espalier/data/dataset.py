"""Data sets: one array for each column, and a schema."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from espalier.arrays import Array, Floats, Ints, Mask, Places
from espalier.data.instants import instant_text
from espalier.data.labels import Label, meaning
from espalier.data.notices import Notice, cell_notices, copy_notices
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.errors import DataError, Fault, pointer
from espalier.threads import parallel_map

Column = Floats | npt.NDArray[np.float32] | Ints

CELLS_HASHED_AT_ONCE: Final = 65_536


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with its schema.

    Attributes:
        schema: Kind, role and categories of each column.
        columns: One read-only array (n_rows,) per feature of the schema; ignored columns are stored, too. Numeric and
            datetime columns are float64 (NaN = missing), but a numeric attribute given as float32 stays float32.
            Nominal, ordinal and boolean columns are int32 codes (-1 = missing).
        reading_notices: Notices that were found when the table was read and that the stored cells do not show.

    >>> from espalier import dataset_from_rows
    >>> data = dataset_from_rows([{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}], target="play")
    >>> data.n_rows, data.schema.task, data.rows()[0]
    (2, 'classification', {'wind': 'weak', 'play': 'yes'})
    """

    schema: Schema
    columns: tuple[Column, ...]
    reading_notices: tuple[Notice, ...] = ()

    def __post_init__(self) -> None:
        frozen = []
        for feature, column in zip(self.schema.features, self.columns, strict=True):
            _check_cells(feature, np.asarray(column))
            array = np.ascontiguousarray(column, dtype=_stored_type(feature, column)).view()
            array.flags.writeable = False
            frozen.append(array)
        if len(lengths := set(map(len, frozen))) > 1:
            raise DataError([Fault("", "ragged", f"all columns must be of one length, not {sorted(lengths)}")])
        object.__setattr__(self, "columns", tuple(frozen))

    def __repr__(self) -> str:
        target = self.schema.target
        of = "no target" if target is None else f"target {target.name!r} ({self.schema.task})"
        return f"<Dataset: {self.n_rows} rows, {len(self.schema.attributes)} attributes, {of}>"

    def __eq__(self, other: object) -> bool:
        """Compare schema and cells. Missing cells are equal, and so are categories with the same `meaning`."""
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
        """Class codes (int32) or numbers (float64) of the target, (n_rows,); None if the schema has no target."""
        return next(self._columns_of(Role.TARGET), None)

    @cached_property
    def weight(self) -> Floats:
        """Row weights, float64 (n_rows,): the weight column, or ones."""
        declared = next(self._columns_of(Role.WEIGHT), None)
        return np.ones(self.n_rows) if declared is None else np.asarray(declared, dtype=np.float64)

    @property
    def has_missing(self) -> frozenset[str]:
        """Names of the attributes with a missing value in some row."""
        return self._flagged_attributes[0]

    @property
    def has_infinite(self) -> frozenset[str]:
        """Names of the attributes with an infinite number in some row."""
        return self._flagged_attributes[1]

    @cached_property
    def _flagged_attributes(self) -> tuple[frozenset[str], frozenset[str]]:
        attributes = self.attributes
        flags = parallel_map(flags_of, attributes, n_cells=self.n_rows * len(attributes))
        names = [feature.name for feature in self.schema.attributes]
        by_flag = zip(*flags, strict=True) if flags else ((), ())
        missing, infinite = (frozenset(compress(names, each)) for each in by_flag)
        return missing, infinite

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the schema and every cell. It does not depend on the format of the table's file."""
        # No `cached_property`: on Python 3.11, all data sets would share its lock during hashing, which takes seconds.
        if "_fingerprint" not in self.__dict__:
            self.__dict__["_fingerprint"] = _sha256_of(self)
        return str(self.__dict__["_fingerprint"])

    def with_fingerprint(self, fingerprint: str) -> "Dataset":
        """Return the same data set with a fingerprint that was computed before and is not checked."""
        known = Dataset(self.schema, self.columns, self.reading_notices)
        known.__dict__["_fingerprint"] = fingerprint
        return known

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """Remarks to check before training, such as an attribute that looks like an id."""
        pairs = zip(self.schema.features, self.columns, strict=True)
        named = {notice.attribute for notice in self.reading_notices}
        shown = (
            notice
            for feature, column in pairs
            for notice in cell_notices(feature, column)
            if notice.code != "identifier" or feature.name not in named
        )
        copies = copy_notices(self.schema.features, self.columns)
        return tuple(dict.fromkeys((*self.reading_notices, *shown, *copies)))

    def take(self, rows: Sequence[int] | Places | Mask) -> "Dataset":
        """Return a data set of some rows, with the same schema and no `reading_notices`.

        Args:
            rows: Numbers of the rows, from 0, in the order of the result; or a mask, bool (n_rows,).
        """
        places = np.arange(self.n_rows)[np.asarray(rows) if len(rows) else []]
        columns = parallel_map(lambda each: each.take(places), self.columns, n_cells=len(places) * len(self.columns))
        return Dataset(self.schema, tuple(columns))

    def slice(self, start: int, stop: int) -> Iterator[Column]:
        """Return an iterator over the columns, which yields the rows ``start:stop`` of each column as an array."""
        return (column[start:stop] for column in self.columns)

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Label | None]]:
        """Return the rows ``start:stop``, each as a dictionary from column names to cells.

        A cell is a label, a number, the ISO 8601 text of a date, or None where it is missing.
        """
        pairs = zip(self.schema.features, self.columns, strict=True)
        shown = [_shown_cells(feature, column[start:stop]) for feature, column in pairs]
        names = [feature.name for feature in self.schema.features]
        return [dict(zip(names, cells, strict=True)) for cells in zip(*shown, strict=True)]

    def _columns_of(self, role: Role) -> Iterator[Column]:
        pairs = zip(self.schema.features, self.columns, strict=True)
        return (column for feature, column in pairs if feature.role is role)


def _sha256_of(dataset: Dataset) -> str:
    schema = dataset.schema.to_dict()
    for column in schema["columns"]:  # formats differ in the types of labels
        if "categories" in column:
            column["categories"] = list(map(meaning, column["categories"]))
    digest = hashlib.sha256(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))
    for column in dataset.columns:
        for first in range(0, len(column), CELLS_HASHED_AT_ONCE):
            cells = _canonical(column[first : first + CELLS_HASHED_AT_ONCE])
            digest.update(cells.astype(cells.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()


def _canonical(cells: Column) -> Column:
    """Convert floats to float64 with a single NaN and a single zero, so that equal cells have equal bytes."""
    if cells.dtype == np.int32:
        return cells
    canonical = np.add(cells, 0.0, dtype=np.float64)
    canonical[np.isnan(canonical)] = np.nan
    return canonical


def _check_cells(feature: Feature, cells: Array) -> None:
    """Raise `DataError` if cells have not one axis or, as compiled code does not check it, a code has no category."""
    last = len(feature.categories) - 1
    is_legal = cells.ndim == 1 and cells.dtype.kind in ("biu" if feature.coded else "biuf")
    if not is_legal or (feature.coded and len(cells) and not -1 <= cells.min() <= cells.max() <= last):
        content = f"codes from -1 (missing) to {last}" if feature.coded else "numbers"
        raise DataError([Fault(pointer(feature.name), "not_legal", f"must be an array, with one axis, of {content}")])


def _stored_type(feature: Feature, column: Array) -> npt.DTypeLike:
    if feature.coded:
        return np.int32
    single = feature.role is Role.ATTRIBUTE and feature.kind is FeatureKind.NUMERIC and column.dtype == np.float32
    return np.float32 if single else np.float64


def flags_of(column: Column) -> tuple[bool, bool]:
    """Return whether any value of a column is missing, and whether any is infinite."""
    if not len(column):
        return False, False
    least = column.min()
    if column.dtype == np.int32:
        return bool(least < 0), False
    if np.isnan(least):
        return True, bool(np.isinf(column).any())
    return False, bool(np.isinf(least) or np.isinf(column.max()))


def _shown_cells(feature: Feature, column: Column) -> list[Label | None]:
    if feature.coded:
        return [None if code < 0 else feature.categories[code] for code in column.tolist()]
    shown = instant_text if feature.kind is FeatureKind.DATETIME else float
    return [None if math.isnan(value) else shown(value) for value in column.tolist()]
