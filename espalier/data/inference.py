"""Infer the kinds of columns, for all formats.

A column has its declared kind. If no kind is declared, the type of the column in the table decides, such as a
type of Arrow. If the column has no type, all of its distinct labels decide; but an ignored column becomes nominal, and
a weight is always numeric. The kind of a target also depends on the declared task and, if no kind is declared, on
whether its numbers are classes (see `are_classes`). Faults give row numbers, never cells.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats, Ints
from espalier.data.column import RawColumn
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import TableDeclaration
from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT, parse_instant
from espalier.data.labels import MAX_INTEGER, Label, category_codes, label_key, meaning, sorted_labels
from espalier.data.missing_values import MissingValues
from espalier.data.notices import Notice, change_notices, reading_notices, target_notices, warn_of_changes
from espalier.data.number_parsing import is_number, plain_number
from espalier.data.schema import ColumnDeclaration, Feature, FeatureKind, Role, Schema
from espalier.data.targets_and_weights import WHOLE_CHECKS, faults_where
from espalier.errors import DataError, Fault, pointer, within

MAX_CLASSES_INFERRED: Final = 20
"""The numbers of a target are classes if they are whole and at most this many of them are distinct."""
NOT_FINITE: Final = frozenset({"nan", "inf", "infinity"})
"""Texts of numbers that are not finite, without sign and in lower case."""
TEXT_OF_NUMBERS: Final = (None, FeatureKind.NUMERIC)
"""Kinds of columns whose texts may be numbers: None, which is not known yet, and numeric."""
PARSERS: Final[Mapping[FeatureKind, tuple[Callable[[Any], float | None], str]]] = {
    FeatureKind.NUMERIC: (plain_number, "must be a finite number or missing"),
    FeatureKind.DATETIME: (parse_instant, "must be an ISO 8601 date or time or missing"),
}
"""For each kind, the function that parses a label, and the legal values in words."""


class Form(Enum):
    """How the cells of a column are read."""

    NUMBERS = auto()
    """As numbers; a cell that is not a number is a fault."""
    OPEN = auto()
    """As numbers if all cells are numbers, else as labels."""
    LABELS = auto()
    """As labels."""
    CLASSES = auto()
    """As labels if a cell is not a number or if the numbers are classes (see `are_classes`), else as numbers."""


def dataset_of_columns(columns: Sequence[RawColumn], declared: TableDeclaration) -> Dataset:
    """Infer the schema of complete columns and return their data set. (`TableAssembler` reads a table in blocks.)

    Raises:
        DataError: There are no columns or no rows, a declared column does not exist, or cells do not fit their kind.
        SchemaError: A column's name or a category is not legal.
    """
    arrays: list[Column] = []
    names, n_rows = [column.name for column in columns], len(columns[0].values) if columns else 0
    schema, notices = resolve_columns(names, columns, n_rows, declared, keep=arrays.append)
    return Dataset(schema, tuple(arrays), notices)


def dataset_with_warnings(columns: Sequence[RawColumn], declared: TableDeclaration) -> Dataset:
    """Return the data set of columns, and warn of changed values: the user does not see this data set's notices."""
    dataset = dataset_of_columns(columns, declared)
    warn_of_changes(dataset.reading_notices)
    return dataset


def resolve_columns(
    names: Sequence[str],
    columns: Iterable[RawColumn],
    n_rows: int,
    declared: TableDeclaration,
    *,
    keep: Callable[[Column], None],
) -> tuple[Schema, tuple[Notice, ...]]:
    """Return the schema and notices of `columns`.

    Each column is read and encoded, and `keep` is called with the encoded array, before the next column is read.
    `names` are the names of all columns. An index of pandas that is not declared is left out, with a notice.

    Raises:
        DataError, SchemaError: As in `dataset_of_columns`.
    """
    if not n_rows or not names:
        message = f"there are {len(names)} columns and no rows" if names else "there are no columns"
        raise DataError([Fault("", "empty", message)])
    declared.check_names(dict.fromkeys(names))
    message = "{!r} is an index of pandas and is left out: declare the column to use it"
    notices: list[Notice] = []
    missing = MissingValues.of(declared.missing_values, are_declared=declared.declares_missing)
    faults: list[Fault] = []
    features: list[Feature] = []
    for column in columns:
        if column.is_index and column.name not in declared.columns:
            notices.append(Notice("index_left_out", column.name, message.format(column.name)))
            continue
        declaration = declared.column(column.name)
        feature, array, column_faults = resolve(column, declaration, missing=missing, task=declared.task)
        features.append(feature)
        if not column_faults:
            is_declared = declaration.kind is not None or feature.coded
            notices += [notice for notice in column.notices if not (is_declared and notice.code == "leading_zeros")]
            notices += change_notices(feature, array, column.values, column.labels)
            notices += target_notices(feature, array, declaration, declared.task)
            if not column.categories_complete:
                labels = column.labels if missing.are_default and not missing.are_declared else None
                notices += reading_notices(feature, array, declaration, labels, column.values)
            keep(array)
        faults += within(pointer(column.name), column_faults)
    DataError.raise_for(faults)
    return Schema(tuple(features), declared.missing_values), tuple(notices)


def resolve(
    raw: RawColumn, declared: ColumnDeclaration, *, missing: MissingValues, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    """Return the feature of a column, its encoded array, and the faults of its cells."""
    form, kind = form_of(declared, raw.kind, task)
    missing = missing.besides(declared.categories or ())
    if form is Form.OPEN and raw.labels is None:
        form = Form.NUMBERS
    elif form is Form.CLASSES and raw.labels is None:
        form = Form.LABELS if are_classes(missing.mask(raw.numbers())) else Form.NUMBERS
    if form is Form.NUMBERS:
        feature, array, faults = _from_numbers(raw, declared, kind, missing)
    else:
        feature, array, faults = _from_labels(raw, declared, missing, task)
    if feature.role in WHOLE_CHECKS and not faults:
        faults = WHOLE_CHECKS[feature.role](array)
    return feature, array, faults


def form_of(declared: ColumnDeclaration, kind: FeatureKind | None, task: str | None) -> tuple[Form, FeatureKind]:
    """Return how to read a column whose type implies `kind`, and the kind of its cells if they are read as numbers."""
    kind_known = declared.kind or (FeatureKind.NUMERIC if declared.role is Role.WEIGHT else kind)
    if declared.role is Role.TARGET:
        if task == "regression":
            return Form.NUMBERS, FeatureKind.NUMERIC
        if kind_known in TEXT_OF_NUMBERS:
            undecided = Form.CLASSES if declared.kind is None else Form.NUMBERS
            return Form.LABELS if task == "classification" else undecided, FeatureKind.NUMERIC
    if kind_known is None:
        return Form.LABELS if declared.role is Role.IGNORE else Form.OPEN, FeatureKind.NUMERIC
    return Form.NUMBERS if kind_known in PARSERS else Form.LABELS, kind_known


def numbers_of(raw: RawColumn, kind: FeatureKind, missing: MissingValues) -> Array:
    """Return the cells as numbers of a kind. A missing cell is NaN, a cell that cannot be parsed is infinite.

    Numbers that mean a missing value, such as -999, may remain; `MissingValues.mask` replaces them.
    """
    if raw.labels is None and (raw.kind or FeatureKind.NUMERIC) is kind:
        return raw.numbers()
    labels, codes = raw.coded()
    numbers: Array = parsed_labels(labels, kind, missing)[codes]
    return numbers


def parsed_labels(labels: Sequence[Any], kind: FeatureKind, missing: MissingValues) -> Floats:
    """Return the number of each label, as in `numbers_of`. One more entry, NaN, stands for the code -1."""
    parse = PARSERS[kind][0]
    numbers = [math.nan if missing.contains(label) else parse(label) for label in labels]
    return np.array([*(math.inf if number is None else number for number in numbers), math.nan])


def are_classes(values: Array) -> bool:
    """Return whether a target's numbers are classes: all are whole, and at most `MAX_CLASSES_INFERRED` are distinct."""
    known = values[~np.isnan(values)]
    whole = np.isfinite(known) & (known == np.floor(known))
    return bool(np.all(whole)) and len(np.unique(known)) <= MAX_CLASSES_INFERRED


def _from_numbers(
    raw: RawColumn, declared: ColumnDeclaration, kind: FeatureKind, missing: MissingValues
) -> tuple[Feature, Column, list[Fault]]:
    role, values = declared.role or Role.ATTRIBUTE, numbers_of(raw, kind, missing)
    if kind is FeatureKind.NUMERIC:
        values = missing.mask(values)
    if raw.kind is None and declared.kind is None and role is Role.ATTRIBUTE and np.all(np.isnan(values)):
        return Feature(raw.name, FeatureKind.NOMINAL, role), np.full(len(values), -1, dtype=np.int32), []
    faults = faults_where(np.isinf(values), "wrong_type", PARSERS[kind][1])
    if kind is FeatureKind.DATETIME and not faults:
        is_far = (values < EARLIEST_INSTANT) | (values > LATEST_INSTANT)
        faults = faults_where(is_far, "wrong_type", "must be within the years 1 to 9999, or missing")
    return Feature(raw.name, kind, role), values, faults


def _from_labels(
    raw: RawColumn, declared: ColumnDeclaration, missing: MissingValues, task: str | None
) -> tuple[Feature, Column, list[Fault]]:
    labels, codes = raw.coded()
    # A category of a categorical type, even NA, is not read as missing, unless the caller has listed it as missing.
    typed = [label for label in labels if not (missing.are_declared and missing.contains(label))]
    declared = _with_type(raw, declared, typed)
    missing = missing.besides(declared.categories or ())
    present = np.zeros(len(labels) + 1, dtype=np.bool_)
    present[codes] = True
    known = [code for code in np.flatnonzero(present[:-1]).tolist() if not missing.contains(labels[code])]
    values: Sequence[Any] = [labels[code] for code in known]
    are_numbers = declared.kind in TEXT_OF_NUMBERS and _inferred_kind(values) is FeatureKind.NUMERIC
    if missing.numbers and are_numbers:
        known = [code for code in known if not missing.contains(plain_number(labels[code]))]
        values = [labels[code] for code in known]
    kind = _kind(declared, values, task)
    if kind is FeatureKind.NUMERIC:
        return _from_numbers(raw, declared, kind, missing)
    table = np.full(len(labels) + 1, -1, dtype=np.int32)
    table[known] = np.arange(len(known), dtype=np.int32)
    are_rounded = [isinstance(label, float) and MAX_INTEGER <= abs(label) < math.inf for label in values]
    if any(are_rounded) and declared.categories is None and declared.role is not Role.IGNORE:
        message = "a number of 2^53 or more may be rounded, so it cannot be a category: give it as text"
        message += ', or choose task="regression"' if declared.role is Role.TARGET else ""
        faults = faults_where(np.array([*are_rounded, False])[table[codes]], "too_large", message)
        return Feature(raw.name, kind), table[codes], faults
    if kind is not FeatureKind.BOOLEAN or not declared.categories:  # declared labels keep their types
        is_target = declared.role is Role.TARGET and are_numbers and all(map(is_number, values))
        values = _converted(values, kind, are_numbers=is_target or raw.kind is FeatureKind.NUMERIC)
    categories, encoded, faults = _encode_labels(declared, values, table[codes])
    if kind is FeatureKind.BOOLEAN and declared.more_categories and len(categories) > 2:
        kind = FeatureKind.NOMINAL  # two categories of a model, and those that it does not know
    return Feature(raw.name, kind, declared.role or Role.ATTRIBUTE, categories), encoded, faults


def _with_type(raw: RawColumn, declared: ColumnDeclaration, labels: Sequence[Any]) -> ColumnDeclaration:
    if declared.kind is not None or raw.kind in TEXT_OF_NUMBERS:
        return declared  # `_kind` decides: a target of few whole numbers is classes
    ordered = raw.kind is FeatureKind.ORDINAL
    categories = declared.categories
    if ordered or raw.categories_complete:
        categories = categories or tuple(labels)
    kind = FeatureKind.NOMINAL if ordered and declared.role is Role.TARGET else raw.kind
    return replace(declared, kind=kind, categories=categories)


def _kind(declared: ColumnDeclaration, labels: Sequence[Any], task: str | None) -> FeatureKind:
    kind = declared.kind
    if kind is None:
        kind = FeatureKind.NOMINAL if declared.role is Role.IGNORE else _inferred_kind(labels)
    if declared.role is not Role.TARGET:
        return kind
    if task is not None:
        return FeatureKind.NOMINAL if kind is FeatureKind.NUMERIC else kind
    if declared.kind is not None:
        return kind
    numbers = [plain_number(label) for label in labels]
    others = [label for label, number in zip(labels, numbers, strict=True) if number is None]
    if kind is FeatureKind.NOMINAL and 0 < len(others) < len(labels) and all(map(_is_not_finite, others)):
        return FeatureKind.NUMERIC  # so that cells such as nan and inf are reported as faults
    if kind is FeatureKind.NUMERIC and are_classes(np.array(numbers, dtype=np.float64)):
        return FeatureKind.NOMINAL
    return kind


def _inferred_kind(labels: Sequence[Any]) -> FeatureKind:
    if labels and all(isinstance(label, Label) and isinstance(meaning(label), bool) for label in labels):
        return FeatureKind.BOOLEAN
    if labels and all(plain_number(label) is not None for label in labels):
        return FeatureKind.NUMERIC
    return FeatureKind.NOMINAL


def _is_not_finite(label: Any) -> bool:
    if isinstance(label, str):
        return label.strip().lstrip("+-").lower() in NOT_FINITE
    return isinstance(label, float) and not math.isfinite(label)


def _encode_labels(
    declared: ColumnDeclaration, labels: Sequence[Any], codes: Ints
) -> tuple[tuple[Label, ...], Ints, list[Fault]]:
    bad = [
        not isinstance(label, str | int | float) or (is_number(label) and plain_number(label) is None)
        for label in labels
    ]
    if any(bad):
        message = "must be text, a finite number, true, false or missing"
        return (), codes, faults_where(np.array([*bad, False])[codes], "wrong_type", message)
    if declared.role is not Role.IGNORE and declared.kind in TEXT_OF_NUMBERS and declared.categories is None:
        # Labels of a text format become whole numbers if all of them are; 007, for example, is a code, not a number.
        whole = [_whole_number(label) for label in labels]
        labels = labels if None in whole else whole
    # A model's schema has an empty list of categories for an ignored nominal column, in which all labels are legal.
    if declared.categories or (declared.categories is not None and declared.role is not Role.IGNORE):
        categories = declared.categories
    else:
        labels = list(map(_exact_label, labels))
        categories = sorted_labels({label_key(label): label for label in labels}.values())
    by_key = category_codes(categories)
    table = [by_key.get(label_key(label)) for label in labels]
    if None in table and not declared.more_categories:
        bad = [code is None for code in table]
        message = "must be one of the declared categories"
        return categories, codes, faults_where(np.array([*bad, False])[codes], "unknown_category", message)
    more = [_exact_label(label) for label, code in zip(labels, table, strict=True) if code is None]
    added = sorted_labels({label_key(label): label for label in more}.values())
    if added:
        by_key = category_codes((*categories, *added))
        table = [by_key.get(label_key(_exact_label(label))) for label in labels]
    return (*categories, *added), np.array([*table, -1], dtype=np.int32)[codes], []


def _converted(labels: Sequence[Any], kind: FeatureKind, *, are_numbers: bool) -> Sequence[Any]:
    """Return labels as booleans (`kind` is boolean) or whole numbers, if all can be; else give 1 and 1.0 one label."""
    if kind is not FeatureKind.BOOLEAN and not are_numbers:
        return labels
    meanings = [meaning(label) if isinstance(label, Label) else None for label in labels]
    exact = bool if kind is FeatureKind.BOOLEAN else int
    if all(type(each) is exact for each in meanings):
        return meanings
    first = {label: label for label in reversed(labels)}  # 1 and 1.0 are equal
    return labels if kind is FeatureKind.BOOLEAN else [first[label] for label in labels]


def _exact_label(label: Any) -> Any:
    """Return the text of a whole number that JSON readers may round; return any other label unchanged."""
    return str(label) if isinstance(label, int) and abs(label) > MAX_INTEGER else label


def _whole_number(text: Any) -> int | None:
    value = plain_number(text) if isinstance(text, str) else None
    padded = len(text) > 1 and text[0] == "0" and text[1].isdigit() if value is not None else True
    return None if value is None or padded or not value.is_integer() or abs(value) >= MAX_INTEGER else int(value)
