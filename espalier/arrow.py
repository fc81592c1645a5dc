"""Data sets from tables of other libraries, whole columns at a time.

The rules of `espalier.reading` hold: what is declared is held to, what is not is inferred. Where a column must be
looked at by value (classes, declared categories, texts of numbers), only its distinct values are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import fault_of_rows, faults_of_target, faults_of_weights
from espalier.cell_reading import read_column
from espalier.dataset import Column, Dataset
from espalier.declaring import Declared
from espalier.errors import DataError, Fault, pointer, within
from espalier.frame_column import FrameColumn
from espalier.frames import frame_columns
from espalier.marks import Marks
from espalier.schema import (
    EARLIEST_INSTANT,
    LARGEST_WHOLE,
    LATEST_INSTANT,
    ColumnDeclaration,
    Feature,
    FeatureKind,
    Label,
    Role,
    Schema,
    instant_text,
)

__all__ = ["dataset_from_arrow", "dataset_of_columns", "distinct_values"]

CELLS_LOOKED_AT: Final = 1_000
"""A fraction among so many first cells says that a target's values are no classes."""
WIDEST_TABLE: Final = 65_536


def dataset_from_arrow(table: Any, **declared: Any) -> Dataset:
    """Read a data set from a pandas, polars or pyarrow table, or anything with ``__arrow_c_stream__``.

    Texts, dictionaries and categoricals become categories (in the declared order where the type has one), true and
    false a boolean, dates and timestamps seconds since 1970-01-01 UTC, other numbers float64. pandas and polars tables
    are read without pyarrow; any other Arrow stream needs it.

    Args:
        table: The table.
        **declared: As in `espalier.reading.dataset_from_columns`; what is declared stands over the column's type.

    Raises:
        DataError: It is no table, a library is missing that is needed to read it, no rows, and all that
            `dataset_from_columns` raises.
        SchemaError: The declaration itself is wrong.

    >>> import pandas
    >>> frame = pandas.DataFrame({"wind": ["weak", "strong"], "hours": [3.5, None], "play": ["yes", "no"]})
    >>> [str(feature.kind) for feature in dataset_from_arrow(frame, target="play").schema.features]
    ['nominal', 'numeric', 'nominal']
    """
    return dataset_of_columns(frame_columns(table), Declared(**declared))


def dataset_of_columns(columns: Sequence[FrameColumn], said: Declared) -> Dataset:
    """Make a data set of columns that were read already; errors as in `dataset_from_columns`."""
    if not columns or not len(columns[0].values):
        message = f"there are {len(columns)} columns and no rows" if columns else "there are no columns"
        raise DataError([Fault("", "empty", message)])
    names = {column.name: None for column in columns}
    declaration = said.declaration(names)
    by_name = said.columns(names, declaration)
    marks = Marks.of(declaration.missing_values)
    faults: list[Fault] = []
    features: list[Feature] = []
    arrays: list[Column] = []
    for column in columns:
        feature, array, found = _resolved(column, by_name[column.name], marks=marks, task=declaration.task)
        features.append(feature)
        arrays.append(array)
        faults += within(pointer(column.name), found)
    if faults:
        raise DataError(faults)
    return Dataset(Schema(tuple(features), declaration.missing_values), tuple(arrays))


@dataclass(frozen=True, slots=True)
class Distinct:
    """A column as its distinct cells and, for each row, the place of its own (-1 = missing)."""

    cells: list[Label]
    places: npt.NDArray[np.int64]

    def all_cells(self) -> list[Label | None]:
        """Give the cell of every row."""
        cells: list[Label | None] = [*self.cells, None]
        return [cells[place] for place in self.places.tolist()]


def _resolved(
    column: FrameColumn, declared: ColumnDeclaration, *, marks: Marks, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    kind = declared.kind or (FeatureKind.NUMERIC if declared.role is Role.WEIGHT else column.kind)
    if column.labels is None and kind is column.kind:
        if declared.role is not Role.TARGET:
            return _plain_numbers(column, declared, marks)
        if _is_number_to_learn(column, declared, task):
            feature, array, faults = _plain_numbers(column, declared, marks)
            return feature, array, faults or faults_of_target(array)
    told = _told(column, declared)
    if column.labels is not None:
        distinct = _distinct_labels(column, marks)
    else:
        distinct = _distinct_numbers(column, declared, marks)
    feature, array, faults = read_column(told, distinct.cells, task=task)
    if declared.role is Role.WEIGHT:
        faults = [fault for fault in faults if fault.code == "wrong_type"]
    if faults:  # again with every row, so that the message can say which
        return feature, array, read_column(told, distinct.all_cells(), task=task)[2]
    whole = _spread(array, distinct.places)
    if declared.role is Role.TARGET:
        faults = faults_of_target(whole)
    if declared.role is Role.WEIGHT:
        faults = faults_of_weights(np.asarray(whole, dtype=np.float64))
    return feature, whole, faults


def _is_number_to_learn(column: FrameColumn, declared: ColumnDeclaration, task: str | None) -> bool:
    """Say whether a numeric target needs no look at its distinct values, which might be classes."""
    if column.kind is not FeatureKind.NUMERIC or column.values.dtype.kind not in "fiu":
        return False
    if task is not None or declared.kind is not None:
        return task == "regression" or (task is None and declared.kind is FeatureKind.NUMERIC)
    first = column.values[:CELLS_LOOKED_AT]
    return bool(np.any(first != np.floor(first))) and not bool(np.any(np.isnan(first)))


def _spread(array: Column, places: npt.NDArray[np.int64]) -> Column:
    if array.dtype == np.int32:
        return np.append(array, -1)[places].astype(np.int32)
    return np.append(array, np.nan)[places].astype(np.float64)


def _told(column: FrameColumn, declared: ColumnDeclaration) -> ColumnDeclaration:
    """Say to the reader of cells what the column's type says already, where the declaration is silent."""
    if declared.kind is not None or declared.role is Role.WEIGHT:
        return declared
    if column.kind is FeatureKind.NUMERIC:
        return declared  # a target of few whole numbers is a class
    told = replace(declared, kind=column.kind)
    if column.kind is FeatureKind.ORDINAL:
        told = replace(told, categories=declared.categories or column.labels)
        return replace(told, kind=FeatureKind.NOMINAL) if declared.role is Role.TARGET else told
    return told


def _plain_numbers(
    column: FrameColumn, declared: ColumnDeclaration, marks: Marks
) -> tuple[Feature, Column, list[Fault]]:
    values = _floats(column)
    if column.kind is FeatureKind.NUMERIC:
        values = marks.taken_out(values)
    feature = Feature(column.name, column.kind or FeatureKind.NUMERIC, declared.role or Role.ATTRIBUTE)
    bad = np.flatnonzero(np.isinf(values)).tolist()
    if bad:
        return feature, values, [fault_of_rows(bad, "wrong_type", "must be a finite number or missing")]
    if column.kind is FeatureKind.DATETIME:
        bad = np.flatnonzero((values < EARLIEST_INSTANT) | (values > LATEST_INSTANT)).tolist()
        if bad:
            message = "must be within the years 1 to 9999, or missing"
            return feature, values, [fault_of_rows(bad, "wrong_type", message)]
    return feature, values, faults_of_weights(values) if declared.role is Role.WEIGHT else []


def _floats(column: FrameColumn) -> npt.NDArray[np.float64]:
    values = column.values if column.owned else np.array(column.values, dtype=np.float64)
    if column.absent is not None:
        values[column.absent] = np.nan
    return values


def _distinct_labels(column: FrameColumn, marks: Marks) -> Distinct:
    """Keep the categories that occur, texts that stand for missing left out."""
    labels = column.labels or ()
    codes = np.where(column.values < 0, -1, column.values).astype(np.int64)
    present = np.zeros(len(labels) + 1, dtype=np.bool_)
    present[codes] = True
    kept = [code for code, label in enumerate(labels) if present[code] and not marks.have(label)]
    table = np.full(len(labels) + 1, -1, dtype=np.int64)
    table[kept] = np.arange(len(kept))
    return Distinct([labels[code] for code in kept], table[codes])


def distinct_values(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Give the distinct values, ascending, and the place of each value among them, int64 (rows).

    >>> [part.tolist() for part in distinct_values(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < WIDEST_TABLE:
            wide = values.astype(np.int64) if values.dtype.kind == "i" else values
            offset = (wide - wide.dtype.type(low)).astype(np.int64)
            present = np.zeros(high - low + 1, dtype=np.bool_)
            present[offset] = True
            table = np.cumsum(present) - 1
            return np.flatnonzero(present).astype(values.dtype) + values.dtype.type(low), table[offset]
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places.astype(np.int64)


def _distinct_numbers(column: FrameColumn, declared: ColumnDeclaration, marks: Marks) -> Distinct:
    absent = column.absent if column.absent is not None else np.zeros(len(column.values), dtype=np.bool_)
    if column.values.dtype.kind == "f":
        absent = absent | np.isnan(column.values)
    if marks.numbers and column.kind is FeatureKind.NUMERIC:
        absent = absent | np.isin(column.values, list(marks.numbers))
    places = np.full(len(column.values), -1, dtype=np.int64)
    distinct, places[~absent] = distinct_values(column.values[~absent])
    if column.kind is FeatureKind.DATETIME:
        return Distinct([instant_text(value) for value in distinct.tolist()], places)
    cells: list[Label] = distinct.tolist()
    if distinct.dtype.kind == "f" and np.all((distinct == np.floor(distinct)) & (np.abs(distinct) <= LARGEST_WHOLE)):
        cells = [int(value) for value in cells]
    # A declared category is the same number however it is spelt: 1 or 1.0.
    spelt = {label: label for label in declared.categories or () if not isinstance(label, str | bool)}
    return Distinct([spelt.get(cell, cell) if not isinstance(cell, str) else cell for cell in cells], places)
