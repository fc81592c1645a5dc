"""The kind of a column: the only place that infers kinds, for every format.

What is not declared is inferred from all cells. Only the distinct labels of a column are read;
faults are reported by row numbers and never by the cells themselves.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.data.checks import WHOLE_CHECKS, fault_of_rows
from espalier.data.column import RawColumn
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import TableDeclaration
from espalier.data.labels import (
    EARLIEST_INSTANT,
    LATEST_INSTANT,
    MAX_INTEGER,
    Label,
    is_number,
    label_key,
    label_text,
    plain_instant,
    plain_number,
    sorted_labels,
)
from espalier.data.missing import MissingValues
from espalier.data.schema import ColumnDeclaration, Feature, FeatureKind, Role, Schema
from espalier.errors import DataError, Fault, pointer, within

MAX_CLASSES_INFERRED: Final = 20
"""A numeric target with at most so many distinct values, all of them whole, is a class."""
N_CELLS_SAMPLED: Final = 1_000
"""First cells of a numeric target that usually show that it is no class."""
NOT_FINITE: Final = frozenset({"nan", "inf", "infinity"})
"""How programs write numbers that are not finite."""
TEXT_OF_NUMBERS: Final = (None, FeatureKind.NUMERIC)
"""Declared kinds of a target of classes whose texts may be read as numbers."""


def dataset_of_columns(
    columns: Sequence[RawColumn],
    declared: TableDeclaration,
    *,
    store: Callable[[Column, RawColumn], Column] | None = None,
) -> Dataset:
    """Return the data set of whole columns.

    Args:
        columns: All columns of the table, of one length.
        declared: What the caller declares.
        store: Writes the encoded array of a column over the column's cells, if these are not in memory.

    Raises:
        DataError: No rows, no such column, cells that do not fit their kind; the first faults of every column.
        SchemaError: The declaration is wrong, or the schema: a name that is too long, a category with NUL.
    """
    if not columns or not len(columns[0].values):
        message = f"there are {len(columns)} columns and no rows" if columns else "there are no columns"
        raise DataError([Fault("", "empty", message)])
    names = {column.name: None for column in columns}
    declaration = declared.declaration(names)
    by_name = declared.columns(names, declaration)
    missing = MissingValues.of(declaration.missing_values)
    faults: list[Fault] = []
    features: list[Feature] = []
    arrays: list[Column] = []
    for column in columns:
        feature, array, found = resolve(column, by_name[column.name], missing=missing, task=declaration.task)
        features.append(feature)
        arrays.append(array if store is None or found else store(array, column))
        faults += within(pointer(column.name), found)
    if faults:
        raise DataError(faults)
    return Dataset(Schema(tuple(features), declaration.missing_values), tuple(arrays))


def resolve(
    raw: RawColumn, declared: ColumnDeclaration, *, missing: MissingValues, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    """Return what a column is, its encoded array, and what is wrong with its cells.

    Args:
        raw: The column as it was read.
        declared: What is declared of it; the rest is inferred.
        missing: Cells that mean a missing value.
        task: ``classification`` or ``regression`` if declared.
    """
    if raw.labels is None and _stays_numbers(raw, declared, task):
        feature, array, faults = _from_numbers(raw, declared, missing)
    else:
        feature, array, faults = _from_labels(raw, declared, missing, task)
    if feature.role in WHOLE_CHECKS and not faults:
        faults = WHOLE_CHECKS[feature.role](array)
    return feature, array, faults


def are_classes(values: Collection[float | None]) -> bool:
    """Return whether the distinct values of a numeric target are classes: few, and whole numbers."""
    few = len(values) <= MAX_CLASSES_INFERRED
    return few and all(value is not None and value.is_integer() for value in values)


Parse = Callable[[Any], float | None]
PARSERS: Final[Mapping[FeatureKind, tuple[Parse, str]]] = {
    FeatureKind.NUMERIC: (plain_number, "must be a finite number or missing"),
    FeatureKind.DATETIME: (plain_instant, "must be an ISO 8601 date or time or missing"),
}
"""How a label becomes a number, and what is legal."""


# Columns of numbers


def _stays_numbers(raw: RawColumn, declared: ColumnDeclaration, task: str | None) -> bool:
    """Return whether a column of numbers can be encoded without looking at its distinct values."""
    kind = raw.kind or FeatureKind.NUMERIC
    kind_known = declared.kind or (FeatureKind.NUMERIC if declared.role is Role.WEIGHT else kind)
    if kind_known is not kind:
        return False
    if declared.role is not Role.TARGET:
        return True
    if kind is not FeatureKind.NUMERIC or raw.values.dtype.kind not in "fiu":
        return False
    if task is not None or declared.kind is not None:
        return task == "regression" or (task is None and declared.kind is FeatureKind.NUMERIC)
    first = raw.values[:N_CELLS_SAMPLED]
    return not bool(np.any(np.isnan(first))) and not are_classes(set(first.astype(np.float64).tolist()))


def _from_numbers(
    raw: RawColumn, declared: ColumnDeclaration, missing: MissingValues
) -> tuple[Feature, Column, list[Fault]]:
    role, kind = declared.role or Role.ATTRIBUTE, raw.kind or FeatureKind.NUMERIC
    values = raw.numbers()
    if kind is FeatureKind.NUMERIC:
        values = missing.mask(values)
    if raw.kind is None and declared.kind is None and role is Role.ATTRIBUTE and np.all(np.isnan(values)):
        return Feature(raw.name, FeatureKind.NOMINAL, role), np.full(len(values), -1, dtype=np.int32), []
    feature = Feature(raw.name, kind, role)
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        return feature, values, [fault_of_rows(bad, "wrong_type", PARSERS[kind][1])]
    if kind is FeatureKind.DATETIME:
        bad = np.flatnonzero((values < EARLIEST_INSTANT) | (values > LATEST_INSTANT))
        if len(bad):
            message = "must be within the years 1 to 9999, or missing"
            return feature, values, [fault_of_rows(bad, "wrong_type", message)]
    return feature, values, []


# Columns of labels


def _from_labels(
    raw: RawColumn, declared: ColumnDeclaration, missing: MissingValues, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    labels, codes = raw.coded()
    codes = np.where(codes < 0, -1, codes)
    declared = _with_type(raw, declared, [label for label in labels if not missing.contains(label)])
    present = np.zeros(len(labels) + 1, dtype=np.bool_)
    present[codes] = True
    known = [code for code in np.flatnonzero(present[:-1]).tolist() if not missing.contains(labels[code])]
    kind = _kind(declared, [labels[code] for code in known], task)
    if missing.numbers and kind is FeatureKind.NUMERIC:
        known = [code for code in known if not missing.contains_number(labels[code])]
        kind = _kind(declared, [labels[code] for code in known], task)
    found: list[Any] = [labels[code] for code in known]
    if raw.kind is FeatureKind.NUMERIC:
        found = _as_declared(found, declared)
    table = np.full(len(labels) + 1, -1, dtype=np.int32)
    table[known] = np.arange(len(known), dtype=np.int32)
    codes = table[codes]
    role = declared.role or Role.ATTRIBUTE
    if kind in PARSERS:
        parse, legal = PARSERS[kind]
        values, faults = _parse_labels(found, codes, parse, legal)
        return Feature(raw.name, kind, role), values, faults
    categories, encoded, faults = _encode_labels(declared, found, codes)
    return Feature(raw.name, kind, role, categories), encoded, faults


def _with_type(raw: RawColumn, declared: ColumnDeclaration, labels: Sequence[Any]) -> ColumnDeclaration:
    """Return the declaration, completed by the type of the column."""
    if declared.kind is not None or declared.role is Role.WEIGHT or raw.kind in TEXT_OF_NUMBERS:
        return declared  # a numeric target of few whole numbers is a class
    ordered = raw.kind is FeatureKind.ORDINAL
    categories = declared.categories
    if ordered or raw.categories_complete:
        categories = categories or tuple(labels)
    kind = FeatureKind.NOMINAL if ordered and declared.role is Role.TARGET else raw.kind
    return replace(declared, kind=kind, categories=categories)


def _as_declared(labels: Sequence[Any], declared: ColumnDeclaration) -> list[Any]:
    """Return labels of a numeric type: whole numbers as int, and as declared, where 1 and 1.0 are one number."""
    if all(float(label).is_integer() and abs(label) <= MAX_INTEGER for label in labels):
        labels = [int(label) for label in labels]
    spelled: dict[Any, Label] = {label: label for label in declared.categories or () if is_number(label)}
    return [spelled.get(label, label) for label in labels]


def _kind(declared: ColumnDeclaration, labels: Sequence[Any], task: str | None) -> FeatureKind:
    """Return the kind of a column with these distinct labels."""
    kind = declared.kind
    if kind is None and declared.role is Role.WEIGHT:
        kind = FeatureKind.NUMERIC
    if kind is None:
        kind = FeatureKind.NOMINAL if declared.role is Role.IGNORE else _inferred_kind(labels)
    return _target_kind(kind, declared, labels, task) if declared.role is Role.TARGET else kind


def _inferred_kind(labels: Sequence[Any]) -> FeatureKind:
    if labels and all(isinstance(label, bool) for label in labels):
        return FeatureKind.BOOLEAN
    if labels and all(plain_number(label) is not None for label in labels):
        return FeatureKind.NUMERIC
    return FeatureKind.NOMINAL


def _target_kind(
    kind: FeatureKind, declared: ColumnDeclaration, labels: Sequence[Any], task: str | None
) -> FeatureKind:
    if task is not None:
        # The labels of a regression are parsed as numbers: those that are none are reported.
        numeric = kind is FeatureKind.NUMERIC
        if numeric and task == "classification":
            return FeatureKind.NOMINAL
        return FeatureKind.NUMERIC if task == "regression" else kind
    if declared.kind is not None:
        return kind
    if kind is FeatureKind.NOMINAL and _are_numbers_but_for_some(labels):
        return FeatureKind.NUMERIC  # the cells that are no finite numbers are reported
    if kind is FeatureKind.NUMERIC and are_classes({plain_number(label) for label in labels}):
        return FeatureKind.NOMINAL
    return kind


def _are_numbers_but_for_some(labels: Sequence[Any]) -> bool:
    """Return whether all labels are numbers but for some that mean NaN or infinity."""
    others = [label for label in labels if plain_number(label) is None]
    return 0 < len(others) < len(labels) and all(map(_is_not_finite, others))


def _is_not_finite(label: Any) -> bool:
    if isinstance(label, str):
        return label.strip().lstrip("+-").lower() in NOT_FINITE
    return isinstance(label, float) and not math.isfinite(label)


def _parse_labels(
    labels: Sequence[Any], codes: npt.NDArray[np.int32], parse: Parse, legal: str
) -> tuple[npt.NDArray[np.float64], list[Fault]]:
    values = [parse(label) for label in labels]
    bad = [value is None for value in values]
    if any(bad):
        return np.zeros(len(codes)), [_fault_of_labels(bad, codes, "wrong_type", legal)]
    return np.array([*values, math.nan], dtype=np.float64)[codes], []


def _encode_labels(
    declared: ColumnDeclaration, labels: Sequence[Any], codes: npt.NDArray[np.int32]
) -> tuple[tuple[Label, ...], npt.NDArray[np.int32], list[Fault]]:
    bad = [not isinstance(label, str | int | float) or _is_infinite(label) for label in labels]
    if any(bad):
        message = "must be text, a number, true, false or missing"
        return (), codes, [_fault_of_labels(bad, codes, "wrong_type", message)]
    if declared.role is not Role.IGNORE and declared.kind in TEXT_OF_NUMBERS and declared.categories is None:
        labels = _numbers_from_text(labels)
    # A model's schema lists no categories of ignored columns: there, none means any.
    if declared.categories or (declared.categories is not None and declared.role is not Role.IGNORE):
        categories = declared.categories
    else:
        categories = sorted_labels({label_key(label): label for label in labels}.values())
    # Text formats have texts only: a cell means the category that is written the same.
    by_text = {label_text(label): code for code, label in reversed(list(enumerate(categories)))}
    by_key = {label_key(label): code for code, label in enumerate(categories)}
    table = [by_key.get(label_key(label), by_text.get(label, -2) if isinstance(label, str) else -2) for label in labels]
    unknown = [code == -2 for code in table]
    if any(unknown) and not declared.more_categories:
        message = "must be one of the declared categories"
        return categories, codes, [_fault_of_labels(unknown, codes, "unknown_category", message)]
    more = {label_key(label): label for label, is_unknown in zip(labels, unknown, strict=True) if is_unknown}
    categories = (*categories, *sorted_labels(more.values()))
    by_key = {label_key(label): code for code, label in enumerate(categories)}
    table = [by_key[label_key(label)] if code == -2 else code for label, code in zip(labels, table, strict=True)]
    return categories, np.array([*table, -1], dtype=np.int32)[codes], []


def _is_infinite(label: Any) -> bool:
    return isinstance(label, float) and not math.isfinite(label)


def _fault_of_labels(bad: Sequence[bool], codes: npt.NDArray[np.int32], code: str, message: str) -> Fault:
    """Return the fault of all rows whose label is bad."""
    return fault_of_rows(np.flatnonzero(np.array([*bad, False])[codes]), code, message)


def _numbers_from_text(labels: Sequence[Any]) -> list[Any]:
    """Return the classes 0, 1, 2 of a text format as whole numbers; codes such as 007 and anything else stay text."""
    if not labels or not all(isinstance(label, str) for label in labels):
        return list(labels)
    values = [plain_number(label) for label in labels]
    if not all(_is_plain_whole(label, value) for label, value in zip(labels, values, strict=True)):
        return list(labels)
    return [int(value or 0) for value in values]


def _is_plain_whole(text: str, value: float | None) -> bool:
    padded = len(text) > 1 and text[0] == "0" and text[1].isdigit()
    return value is not None and value.is_integer() and abs(value) < MAX_INTEGER and not padded
