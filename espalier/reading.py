"""Reading data sets from rows, columns and CSV: what is declared is held to, what is not is inferred."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import fault_of_rows, faults_of_target, faults_of_weights
from espalier.csv_text import read_csv_text
from espalier.dataset import Column, Dataset
from espalier.errors import DataError, Fault, SchemaError, pointer, within
from espalier.rows import number_from_text, rows_from_text
from espalier.schema import (
    LARGEST_WHOLE,
    ColumnDeclaration,
    Declaration,
    Feature,
    FeatureKind,
    Label,
    Role,
    Schema,
    label_key,
    label_text,
    parse_declaration,
    parse_instant,
    sorted_labels,
)

__all__ = ["dataset_from_columns", "dataset_from_csv", "dataset_from_rows", "rows_from_csv"]

MAX_CLASSES_INFERRED: Final = 20
"""A numeric target with at most so many distinct whole numbers is a class."""

NOT_FINITE: Final = frozenset({"nan", "inf", "infinity"})
"""How programs write what is no finite number."""

NOBODY: Final = ColumnDeclaration("")
TEXT_OF_NUMBERS: Final = (None, FeatureKind.NUMERIC)
"""Declared kinds of a column of classes whose texts may be read as numbers."""

Cell = Any
"""A cell as it came: text from CSV; a JSON value from rows and columns; None where missing."""


def dataset_from_rows(rows: Any, **declared: Any) -> Dataset:
    """Read a data set from rows of JSON values; None or an absent key is a missing value.

    Keywords as in `dataset_from_columns`.
    """
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise DataError([Fault("", "wrong_type", "rows must be a list of objects")])
    faults = [
        Fault(pointer(place), "wrong_type", "a row must be an object of column names and values")
        for place, row in enumerate(rows)
        if not isinstance(row, Mapping) or not all(isinstance(name, str) for name in row)
    ]
    if faults:
        raise DataError(faults)
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    return dataset_from_columns({name: [row.get(name) for row in rows] for name in names}, **declared)


def dataset_from_columns(
    columns: Mapping[str, Sequence[Cell]],
    *,
    target: str | None = None,
    schema: Schema | Mapping[str, Any] | None = None,
    task: str | None = None,
    missing_values: Sequence[str] | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    like: Schema | None = None,
) -> Dataset:
    """Read a data set from columns of JSON values, all of one length.

    Args:
        columns: Name -> cells: numbers, texts, true, false, None.
        target: The column to learn; stands over the schema's.
        schema: A declaration (see `espalier.schema.parse_declaration`); columns it leaves out are inferred: numbers
            are numeric, true and false boolean, everything else nominal. A numeric target of at most 20 distinct whole
            numbers is a class.
        task: ``classification`` or ``regression``; overrides the inference of the target's kind.
        missing_values: Texts that stand for missing; default ``?`` and ``NA``.
        weight: The column of row weights.
        ignore: Columns that are kept but never looked at.
        like: The schema of another table that this one is to be compared with, in place of `schema`: columns it does
            not have may be there or not, and categories it does not know are listed after its own.

    Raises:
        DataError: No rows, no such column, cells that do not fit their kind; every column's first faults.
        SchemaError: The declaration itself is wrong.
    """
    _check_shape(columns)
    if like is not None:
        declaration = _declaration_like(like, columns)
    else:
        declaration = _declaration(schema, target=target, task=task, missing_values=missing_values)
    by_name = _declared_columns(columns, declaration, target=target, weight=weight, ignore=ignore)
    missing = frozenset(declaration.missing_values)
    faults: list[Fault] = []
    features: list[Feature] = []
    arrays: list[Column] = []
    for name, cells in columns.items():
        known = [None if cell is None or (isinstance(cell, str) and cell in missing) else cell for cell in cells]
        feature, array, found = _read_column(by_name[name], known, task=declaration.task)
        features.append(feature)
        arrays.append(array)
        faults += within(pointer(name), found)
    if faults:
        raise DataError(faults)
    return Dataset(Schema(tuple(features), declaration.missing_values), tuple(arrays))


def dataset_from_csv(source: str | bytes | Path, **declared: Any) -> Dataset:
    r"""Read a data set from CSV (RFC 4180, comma, first line the names, UTF-8).

    Args:
        source: A `Path` (``.gz`` is read too), the content as bytes, or the content as text.
        **declared: As in `dataset_from_columns`. An empty cell is a missing value.

    Raises:
        DataError: Not CSV, ragged lines, no rows, and all that `dataset_from_columns` raises.

    >>> dataset_from_csv("wind,play\nweak,yes\nstrong,no\n", target="play").n_rows
    2
    """
    names, lines = read_csv_text(source)
    columns = {
        name: [cell if cell != "" else None for cell in cells]
        for name, cells in zip(names, zip(*lines, strict=True), strict=True)
    }
    return dataset_from_columns(columns, **declared)


def _check_shape(columns: Mapping[str, Sequence[Cell]]) -> None:
    if not isinstance(columns, Mapping) or not columns:
        raise DataError([Fault("", "empty", "there are no columns")])
    lengths = {}
    for name, cells in columns.items():
        if not isinstance(name, str) or not isinstance(cells, Sequence) or isinstance(cells, str | bytes):
            raise DataError([Fault(pointer(str(name)), "wrong_type", "columns must be names with lists of cells")])
        lengths[name] = len(cells)
    if len(set(lengths.values())) > 1:
        shortest, longest = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        message = f"{shortest!r} has {lengths[shortest]} cells, {longest!r} has {lengths[longest]}"
        raise DataError([Fault("", "ragged", f"columns must be of one length: {message}")])
    if not next(iter(lengths.values())):
        raise DataError([Fault("", "empty", f"there are {len(columns)} columns and no rows")])


def _declaration(
    schema: Schema | Mapping[str, Any] | None,
    *,
    target: str | None,
    task: str | None,
    missing_values: Sequence[str] | None,
) -> Declaration:
    given = schema.to_dict() if isinstance(schema, Schema) else schema if schema is not None else {}
    if not isinstance(given, Mapping):
        raise SchemaError([Fault("", "wrong_type", 'a schema must be an object: {"target": …, "columns": […]}')])
    document = dict(given)
    if target is not None:
        columns = document.get("columns", [])
        if isinstance(columns, list | tuple):  # another target than the schema's: that column becomes an attribute
            document["columns"] = [
                {**column, "role": "attribute"}
                if isinstance(column, Mapping) and column.get("role") == "target" and column.get("name") != target
                else column
                for column in columns
            ]
        document["target"] = target
    if task is not None:
        document["task"] = task
    if missing_values is not None:
        document["missing_values"] = missing_values if isinstance(missing_values, str) else list(missing_values)
        document.pop("missing_token", None)
    return parse_declaration(document)


def _declaration_like(schema: Schema, columns: Mapping[str, Sequence[Cell]]) -> Declaration:
    declared = tuple(
        ColumnDeclaration(
            feature.name,
            feature.kind,
            feature.role,
            feature.categories if feature.coded else None,
            more_categories=True,
        )
        for feature in schema.features
        if feature.name in columns
    )
    return Declaration(declared, schema.task, schema.missing_values)


def _declared_columns(
    columns: Mapping[str, Sequence[Cell]],
    declaration: Declaration,
    *,
    target: str | None,
    weight: str | None,
    ignore: Sequence[str],
) -> dict[str, ColumnDeclaration]:
    by_name = {name: ColumnDeclaration(name) for name in columns}
    by_name.update({column.name: column for column in declaration.columns})
    aside = [*([ignore] if isinstance(ignore, str) else ignore), *([weight] if weight is not None else [])]
    twice = sorted({name for name in aside if aside.count(name) > 1 or by_name.get(name, NOBODY).role is Role.TARGET})
    if twice:
        message = "{!r} can have one role only: target, weight or ignored"
        raise DataError([Fault("", "roles", message.format(name)) for name in twice])
    for name in aside:
        role = Role.WEIGHT if name == weight else Role.IGNORE
        given = by_name.get(name, ColumnDeclaration(name))
        by_name[name] = ColumnDeclaration(name, given.kind, role, given.categories)
    legal = ", ".join(list(columns)[:20]) + (", …" if len(columns) > 20 else "")
    faults = [
        Fault(
            "/target" if name == target else "",
            "unknown_column",
            f"there is no column {name!r}; there are: {legal}",
        )
        for name in by_name
        if name not in columns
    ]
    if len(columns) == 1 and any(mark in next(iter(columns)) for mark in ";\t|"):
        faults.append(Fault("", "separator", "the table has one column: cells must be separated by commas"))
    if faults:
        raise DataError(faults)
    return by_name


def _read_column(
    declared: ColumnDeclaration, cells: Sequence[Cell], *, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    role = declared.role or Role.ATTRIBUTE
    kind = declared.kind or (FeatureKind.NOMINAL if role is Role.IGNORE else _inferred_kind(cells))
    if role is Role.TARGET:
        kind = _target_kind(kind, cells, task=task, declared=declared.kind is not None)
    if role is Role.WEIGHT and declared.kind is None:
        kind = FeatureKind.NUMERIC
    categories: tuple[Label, ...] = ()
    faults: list[Fault]
    array: Column
    if kind is FeatureKind.NUMERIC:
        array, faults = _read_numbers(cells, _number, "a finite number")
    elif kind is FeatureKind.DATETIME:
        array, faults = _read_numbers(cells, _instant, "an ISO 8601 date or time")
    else:
        categories, array, faults = _read_codes(
            declared, cells, numeric_text=role is not Role.IGNORE and declared.kind in TEXT_OF_NUMBERS
        )
    if role is Role.TARGET and not faults:
        faults = faults_of_target(array)
    if role is Role.WEIGHT and not faults:
        faults = faults_of_weights(np.asarray(array, dtype=np.float64))
    return Feature(declared.name, kind, role, categories), array, faults


def _inferred_kind(cells: Sequence[Cell]) -> FeatureKind:
    known = [cell for cell in cells if cell is not None]
    if known and all(isinstance(cell, bool) for cell in known):
        return FeatureKind.BOOLEAN
    if known and all(_number(cell) is not None for cell in known):
        return FeatureKind.NUMERIC
    return FeatureKind.NOMINAL


def _target_kind(kind: FeatureKind, cells: Sequence[Cell], *, task: str | None, declared: bool) -> FeatureKind:
    if kind is FeatureKind.NUMERIC and task == "classification":
        return FeatureKind.NOMINAL
    if kind is not FeatureKind.NUMERIC and task == "regression":
        # Read as numbers: cells that are none are reported one by one.
        return FeatureKind.NUMERIC
    if kind is FeatureKind.NOMINAL and task is None and not declared and _are_numbers_but_for_some(cells):
        # Not a class a number: the cells that are no finite numbers are reported.
        return FeatureKind.NUMERIC
    if kind is FeatureKind.NUMERIC and task is None and not declared:
        values = {_number(cell) for cell in cells if cell is not None}
        if len(values) <= MAX_CLASSES_INFERRED and all(value is not None and value.is_integer() for value in values):
            return FeatureKind.NOMINAL
    return kind


def _are_numbers_but_for_some(cells: Sequence[Cell]) -> bool:
    """Whether all known cells are numbers but for some that say NaN or infinity."""
    others = [cell for cell in cells if cell is not None and _number(cell) is None]
    n_known = sum(cell is not None for cell in cells)
    return 0 < len(others) < n_known and all(_is_not_finite(cell) for cell in others)


def _is_not_finite(cell: Cell) -> bool:
    if isinstance(cell, str):
        return cell.strip().lstrip("+-").lower() in NOT_FINITE
    return isinstance(cell, float) and not math.isfinite(cell)


def _number(cell: Cell) -> float | None:
    """Read a number or the text of one; None where it is neither, or not finite."""
    if isinstance(cell, str):
        return number_from_text(cell)
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return None
    try:
        value = float(cell)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _instant(cell: Cell) -> float | None:
    if not isinstance(cell, str):
        return None
    try:
        return parse_instant(cell)
    except (ValueError, OverflowError):
        return None


def _read_numbers(
    cells: Sequence[Cell], read: Callable[[Cell], float | None], legal: str
) -> tuple[npt.NDArray[np.float64], list[Fault]]:
    values = [math.nan if cell is None else read(cell) for cell in cells]
    bad = [row for row, value in enumerate(values) if value is None]
    if bad:
        return np.zeros(len(cells)), [fault_of_rows(bad, "wrong_type", f"must be {legal} or missing")]
    return np.array(values, dtype=np.float64), []


def _read_codes(
    declared: ColumnDeclaration, cells: Sequence[Cell], *, numeric_text: bool
) -> tuple[tuple[Label, ...], npt.NDArray[np.int32], list[Fault]]:
    codes = np.full(len(cells), -1, dtype=np.int32)
    bad = [row for row, cell in enumerate(cells) if cell is not None and not isinstance(cell, str | int | float)]
    bad += [row for row, cell in enumerate(cells) if isinstance(cell, float) and not math.isfinite(cell)]
    if bad:
        return (), codes, [fault_of_rows(bad, "wrong_type", "must be text, a number, true, false or missing")]
    labels = list(cells)
    if numeric_text and declared.categories is None:
        labels = _numbers_from_text(labels)
    # A model's schema lists no categories of ignored columns: there, none stands for any.
    if declared.categories or (declared.categories is not None and declared.role is not Role.IGNORE):
        categories = declared.categories
    else:
        distinct = {label_key(label): label for label in labels if label is not None}
        categories = sorted_labels(distinct.values())
    # Text formats know only text: a cell stands for the category that is written so.
    by_text = {label_text(label): code for code, label in reversed(list(enumerate(categories)))}
    by_key = {label_key(label): code for code, label in enumerate(categories)}
    unknown = []
    for row, label in enumerate(labels):
        if label is None:
            continue
        code = by_key.get(label_key(label))
        if code is None and isinstance(label, str):
            code = by_text.get(label)
        if code is None:
            unknown.append(row)
        else:
            codes[row] = code
    if unknown and declared.more_categories:
        more = sorted_labels({label_key(labels[row]): labels[row] for row in unknown}.values())
        by_key = {label_key(label): len(categories) + place for place, label in enumerate(more)}
        codes[unknown] = [by_key[label_key(labels[row])] for row in unknown]
        return (*categories, *more), codes, []
    faults = [fault_of_rows(unknown, "unknown_category", "must be one of the declared categories")] if unknown else []
    return categories, codes, faults


def _numbers_from_text(labels: Sequence[Cell]) -> list[Cell]:
    """Read the classes 0, 1, 2 of a text format as whole numbers; codes such as 007 and anything else stay text."""
    if not all(label is None or isinstance(label, str) for label in labels):
        return list(labels)
    values = {label: _number(label) for label in set(labels) if label is not None}
    if not values or not all(_is_plain_whole(text, value) for text, value in values.items()):
        return list(labels)
    return [None if label is None else int(values[label] or 0) for label in labels]


def _is_plain_whole(text: str, value: float | None) -> bool:
    padded = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return value is not None and value.is_integer() and abs(value) < LARGEST_WHOLE and not padded


def rows_from_csv(schema: Schema, source: str | bytes | Path) -> list[dict[str, Any]]:
    """Read CSV as rows to be answered: numbers where an attribute is numeric, categories by how they are written.

    Raises:
        DataError: Not CSV; see `espalier.csv_text.read_csv_text`.
    """
    names, lines = read_csv_text(source)
    return rows_from_text(schema, names, lines)
