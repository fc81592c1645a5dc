"""Data sets from Python values: rows as mappings, columns as lists or numpy arrays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import RawColumn, column_from_array, column_from_json, column_from_objects
from espalier.data.dataset import Dataset
from espalier.data.declaration import declare
from espalier.data.limits import UNLIMITED, Limits
from espalier.data.readers.arrow import read_columns
from espalier.data.schema import Schema
from espalier.errors import DataError, Fault, pointer


def dataset_from_rows(rows: Any, *, limits: Limits = UNLIMITED, **declared: Any) -> Dataset:
    """Read a data set from rows of JSON values; None or an absent key is a missing value.

    Keywords and errors are those of `dataset_from_columns`.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise DataError([Fault("", "wrong_type", "rows must be a list of objects")])
    limits.check("rows", len(rows))
    faults = [
        Fault(pointer(place), "wrong_type", "a row must be an object of column names and values")
        for place, row in enumerate(rows)
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row)
    ]
    DataError.raise_for(faults)
    names = names_of_rows(rows, limits)
    limits.check("cells", len(rows) * len(names))
    columns = {name: [row.get(name) for row in rows] for name in names}
    return dataset_from_columns(columns, limits=limits, **declared)


def names_of_rows(rows: Sequence[Mapping[str, Any]], limits: Limits) -> list[str]:
    """Return the names of the columns that occur in the rows, in the order of their first occurrence."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
        limits.check("columns", len(names))
    return list(names)


def dataset_from_columns(
    columns: Mapping[str, Any],
    *,
    target: str | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    task: str | None = None,
    missing_values: Sequence[str] | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    like: Schema | None = None,
    limits: Limits = UNLIMITED,
) -> Dataset:
    """Read a data set from columns of JSON values, all of the same length.

    Args:
        columns: The columns by name. A column is a list of numbers, texts, true, false, date objects and None, or a
            one-dimensional numpy array of numbers (NaN is missing), booleans, dates, texts or Python objects.
        target: Name of the column to learn. It overrides the target of the schema.
        schema: A declaration (see `espalier.data.schema.parse_declaration`). The kind of an undeclared column is
            inferred: numbers are numeric, booleans boolean, date objects datetime, all others nominal. If no column is
            an array, texts of numbers count as numbers, and texts of booleans as booleans. If a target has at most 20
            distinct numbers and all are whole, they are read as classes.
        task: ``classification`` or ``regression``. It overrides the task of the schema. It also overrides the kind of
            the target if that kind does not fit the task.
        missing_values: Texts that mean a missing value, by default those that the schema lists, else ``?`` and ``NA``.
            If one is the text of a number, this number means a missing value, too.
        weight: Name of the column of row weights.
        ignore: Names of columns that are stored but not used.
        like: A schema that replaces `target`, `schema`, `task` and `missing_values`. The table may lack columns of
            this schema. Categories that this schema does not list are added after those that it lists.
        limits: Limits on the size of the table.

    Raises:
        DataError: There are no rows, a declared column does not exist or has two roles, or cells do not fit their kind.
        SchemaError: The declaration, a column's name or a category is not legal.
        TooLarge: The table exceeds a limit.
    """
    n_rows = _check_shape(columns)
    limits.check_table(n_rows=n_rows, n_columns=len(columns))
    declared = declare(
        target=target, schema=schema, task=task, missing_values=missing_values, weight=weight, ignore=ignore, like=like
    )
    assembler = TableAssembler(declared, limits=limits)
    raw: Iterable[RawColumn] = (
        column_from_json(name, cells, as_labels=assembler.wants_labels(name)) for name, cells in columns.items()
    )
    if any(isinstance(cells, np.ndarray) for cells in columns.values()):
        raw = read_columns(columns.items(), _column_from_python)
    assembler.add(Block(n_rows, tuple(raw)))
    return assembler.dataset()


def _column_from_python(name: str, cells: Any) -> RawColumn:
    return column_from_array(name, cells) if isinstance(cells, np.ndarray) else column_from_objects(name, cells)


def _check_shape(columns: Mapping[str, Any]) -> int:
    if not isinstance(columns, Mapping) or not columns:
        raise DataError([Fault("", "empty", "there are no columns")])
    for name, cells in columns.items():
        is_list = isinstance(cells, Sequence) and not isinstance(cells, str | bytes)
        if not isinstance(name, str) or not (cells.ndim == 1 if isinstance(cells, np.ndarray) else is_list):
            message = "columns must be names with lists of cells or one-dimensional arrays"
            raise DataError([Fault(pointer(str(name)), "wrong_type", message)])
    lengths = {len(cells): name for name, cells in columns.items()}
    shortest, longest = min(lengths), max(lengths)
    if shortest < longest:
        message = f"{lengths[shortest]!r} has {shortest} cells, {lengths[longest]!r} has {longest}"
        raise DataError([Fault("", "ragged", f"columns must be of one length: {message}")])
    return longest
