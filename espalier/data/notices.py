"""Notices: remarks on columns to check before training."""

import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Longs, Places
from espalier.data.instants import parse_instant
from espalier.data.labels import MAX_INTEGER, Label, category_codes, label_key, label_text, meaning
from espalier.data.missing_values import DEFAULT_MISSING_VALUES
from espalier.data.number_parsing import plain_number
from espalier.data.schema import ColumnDeclaration, Feature, FeatureKind, Role

MAX_CELLS_SHOWN: Final = 5
MAX_CHARACTERS_SHOWN: Final = 40
MIN_ROWS_OF_AN_IDENTIFIER: Final = 10
IDENTIFIER_SHARE: Final = 0.95
"""A nominal attribute looks like an identifier if it has at least this number of categories per cell with a value."""
MAX_CATEGORIES_OF_NUMBERS: Final = 100
"""A target read as numbers may be classes if it has at most this number of distinct values, all of them whole."""
SAMPLE: Final = 1_000
MISSING_WORDS: Final = frozenset({"", "-", "--", ".", "nan", "<na>", "na", "n/a", "#n/a", "null", "nil", "nat"})
"""Texts that other programs write for a missing value. Cells are stripped and lowercased before the comparison."""
OTHER_NOTATION: Final = re.compile(
    r"[+\-\u2212]?\s?[€$£¥]?\s?[+\-\u2212]?[0-9]{1,3}([.,'\u2019\s]?[0-9]{3})*([.,][0-9]+)?\s?[€$£¥%‰]?"
)
"""Numbers with a decimal comma, separated thousands, a currency or a percent sign, or a typographic minus.

At most one blank is allowed between two parts: with more, a long cell could take hours to match.
"""
OTHER_DATE: Final = re.compile(
    r"\s*([0-9]{1,2}([./-])[0-9]{1,2}\2[0-9]{4}|[0-9]{4}([./-])[0-9]{1,2}\3[0-9]{1,2})([ T,].*)?"
)
"""Dates such as 31.12.2024, 12/31/2024 and 2024/12/31, perhaps with a time."""
LEADING_ZEROS: Final = "^[+-]?0[0-9]+$"
"""Whole numbers with leading zeros, which may be codes: if 007 is read as a number, it becomes 7."""

TICKS_PER_MICROSECOND: Final = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""For each unit of numpy that is finer than a microsecond, the number of its ticks per microsecond."""
FINER_TEXT: Final = re.compile("[.,][0-9]{6}[0-9]*[1-9]")
"""Matches in the text of an instant if a digit after the sixth decimal of the seconds is not 0."""
CHANGES: Final = frozenset({"rounded", "finer_than_microseconds"})
"""Codes of the notices that values were changed when they were read."""

Column = Array


@dataclass(frozen=True, slots=True)
class NoticedCell:
    """A row, counted from 0, and the label in its cell; a long text is shortened."""

    row: int
    value: Label


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark on a table.

    Attributes:
        code: A stable word for programs, such as ``kind_against_majority``.
        attribute: The name of the column.
        message: The remark for people, often with advice on the declaration.
        cells: The first cells that caused the notice; empty if none is shown.
    """

    code: str
    attribute: str
    message: str
    cells: tuple[NoticedCell, ...] = ()

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "cells": [asdict(cell) for cell in self.cells]}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Notice":
        """Read the JSON form."""
        return cls(**{**document, "cells": tuple(NoticedCell(**cell) for cell in document["cells"])})


def warn_of_changes(notices: Iterable[Notice]) -> None:
    """Give a Python warning for each notice whose code is in `CHANGES`."""
    for notice in notices:
        if notice.code in CHANGES:
            warn_caller(notice.message)


def warn_caller(message: str) -> None:
    """Give a Python warning at the line that has called this package, or scikit-learn on top of it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("espalier.", "sklearn.")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


# --- notices from reading a column


def leading_zeros_notice(name: str, text: str) -> Notice:
    """Return the notice of a numeric column with the cell `text`, which has leading zeros."""
    shown = f"such as {_short(text)!r}, which are lost: declare it nominal if these are codes"
    return Notice("leading_zeros", name, f"{name!r} has numbers with leading zeros, {shown}")


def truncation_notice(name: str) -> Notice:
    """Return the notice of a column with instants that are finer than a microsecond."""
    message = f"{name!r} has instants finer than a microsecond, which are truncated to microseconds"
    return Notice("finer_than_microseconds", name, message)


def finer_instants(name: str, cells: Iterable[Any], *, kind: FeatureKind | None = None) -> tuple[Notice, ...]:
    """Return a tuple with a notice if an instant is finer than a microsecond, else an empty tuple.

    If `kind` is datetime, the cells that are texts are checked; otherwise, the cells that are date objects.
    """
    is_finer = _is_finer_text if kind is FeatureKind.DATETIME else _is_finer
    return (truncation_notice(name),) if any(map(is_finer, cells)) else ()


def _is_finer_text(cell: Any) -> bool:
    return isinstance(cell, str) and FINER_TEXT.search(cell) is not None


def _is_finer(cell: Any) -> bool:
    if isinstance(cell, np.datetime64):
        unit, count = np.datetime_data(cell.dtype)
        return not np.isnat(cell) and bool(cell.astype(np.int64) * count % TICKS_PER_MICROSECOND.get(unit, 1))
    return bool(getattr(cell, "nanosecond", 0) > 0)  # NaN for pandas' NaT


def change_notices(feature: Feature, column: Column, given: Array, labels: Sequence[Any] | None) -> Iterator[Notice]:
    """Yield the notices of values that encoding has changed: numbers, and instants given as texts.

    `given` and `labels` are the values and the labels of the `RawColumn` from which `column` was encoded.
    """
    if feature.kind is FeatureKind.DATETIME and labels is not None:
        yield from finer_instants(feature.name, labels, kind=feature.kind)
    if given.dtype.kind in "iu":  # floats are kept exactly
        yield from rounding_notices(feature, column)


def rounding_notices(feature: Feature, column: Column) -> Iterator[Notice]:
    """Yield a notice if a numeric column, unless it holds weights, has numbers of 2^53 or more.

    Smaller whole numbers are doubles. Of larger ones, some are not, and are rounded.
    """
    if feature.kind is not FeatureKind.NUMERIC or feature.role is Role.WEIGHT or column.dtype != np.float64:
        return
    known = column[~np.isnan(column)]
    if len(known) and max(-known.min(), known.max()) >= MAX_INTEGER:
        message = (
            f"{feature.name!r} has numbers of 2^53 ({MAX_INTEGER}) and more, which are rounded to doubles: "
            "declare it nominal, and give them as texts, if they are codes"
        )
        yield Notice("rounded", feature.name, message)


def reading_notices(
    feature: Feature, column: Column, declared: ColumnDeclaration, labels: Sequence[Any] | None, codes: Column
) -> Iterator[Notice]:
    """Yield a column's notices that cannot be derived from its encoded cells alone.

    Args:
        feature: The column as it was read.
        column: Its encoded cells.
        declared: The declaration of the column.
        labels: The labels before encoding; None if there are none, or if missing values are declared or not default.
        codes: The index of each row's label in `labels`, -1 where missing.
    """
    if feature.role is Role.IGNORE:
        return
    if declared.more_categories and feature.coded:
        yield from _of_unknown_categories(feature, column, len(declared.categories or ()))
    if declared.categories is None and feature.kind is FeatureKind.NOMINAL:
        if declared.kind is None:
            yield from _of_inferred_categories(feature, column)
        if labels is not None:
            yield from _of_default_texts(feature, column, labels, codes)


def _of_unknown_categories(feature: Feature, column: Column, n_known: int) -> Iterator[Notice]:
    rows = np.flatnonzero(column >= n_known)
    if n_known and len(rows):
        shown, cells = _shown(feature, column, rows)
        message = f"{len(rows)} of {len(column)} cells have a category that the model does not know: {shown}"
        yield Notice("unknown_category", feature.name, f"{_named(feature)}: {message}", cells)


def _of_inferred_categories(feature: Feature, column: Column) -> Iterator[Notice]:
    counts = np.bincount(column[column >= 0], minlength=len(feature.categories))
    for code, what, is_one, declare in FORMS:
        others = _others(feature.categories, counts, is_one)
        if others is None or (code == "kind_against_majority" and not len(others)):
            continue
        rows = np.flatnonzero(np.isin(column, others))
        shown, cells = _shown(feature, column, rows)
        all_but = f"all of its {counts.sum()} cells" + (f" but {len(rows)}" if len(rows) else "")
        message = f"{_named(feature)} is read as {len(feature.categories)} categories, though {all_but} are {what}"
        yield Notice(code, feature.name, f"{message}{shown and ': '}{shown}; {declare}", cells)
        return
    words = [
        code
        for code, label in enumerate(feature.categories)
        if isinstance(label, str) and label.strip().lower() in MISSING_WORDS
    ]
    if words:
        rows = np.flatnonzero(np.isin(column, words))
        shown, cells = _shown(feature, column, rows)
        message = f"{len(rows)} of {len(column)} cells are categories that often mean a missing value: {shown}"
        yield Notice("missing_as_category", feature.name, f"{_named(feature)}: {message}; {ONE_OR_OTHER}", cells)


LIST_THEM: Final = "if these mean a missing value, list them in the schema's missing_values"
ONE_OR_OTHER: Final = f"{LIST_THEM}; if the categories are meant, declare the column nominal"
FORMS: Final[Sequence[tuple[str, str, Callable[[Any], bool], str]]] = (
    ("kind_against_majority", "numbers", lambda label: plain_number(label) is not None, ONE_OR_OTHER),
    ("kind_against_majority", "true or false", lambda label: isinstance(meaning(label), bool), ONE_OR_OTHER),
    (
        "dates_as_categories",
        "ISO 8601 dates",
        lambda label: parse_instant(label) is not None,
        "declare it datetime to test earlier and later, or nominal if the categories are meant",
    ),
    (
        "dates_as_categories",
        "dates in another notation than ISO 8601",
        lambda label: (
            parse_instant(label) is not None or (isinstance(label, str) and OTHER_DATE.fullmatch(label) is not None)
        ),
        "write dates as 2024-12-31 to test earlier and later, or declare it nominal if the categories are meant",
    ),
    (
        "numbers_as_categories",
        "numbers in another notation, or as texts",
        lambda label: (
            isinstance(label, str)
            and (OTHER_NOTATION.fullmatch(label.strip()) is not None or plain_number(label) is not None)
        ),
        "write numbers as 1234.5 to test less and more, or declare it nominal if the categories are meant",
    ),
)
"""For each form that most cells may have: the notice's code, the form in words, a test of labels, and the advice."""


def _others(categories: Sequence[Label], counts: Longs, is_one: Callable[[Any], bool]) -> Places | None:
    """Return the codes of labels that fail `is_one`; None if at least half of the cells or most sampled labels fail."""
    sample = categories[:: max(1, len(categories) // SAMPLE)]
    if len(categories) > SAMPLE and 2 * sum(map(is_one, sample)) < len(sample):
        return None  # most labels of the sample fail, so the others of the long list are not tested
    others = np.flatnonzero([not is_one(label) for label in categories])
    return others if 2 * int(counts[others].sum()) < int(counts.sum()) else None


def _of_default_texts(feature: Feature, column: Column, labels: Sequence[Any], codes: Column) -> Iterator[Notice]:
    """Yield a notice if words such as NA were read as missing values by default."""
    words = [text for text in DEFAULT_MISSING_VALUES if any(map(str.isalnum, text))]
    lost = [code for code, label in enumerate(labels) if isinstance(label, str) and label in words]
    if lost and feature.categories:
        rows = np.flatnonzero(np.isin(codes, lost) & (column < 0))
        cells = tuple(NoticedCell(int(row), labels[codes[row]]) for row in rows[:MAX_CELLS_SHOWN])
        message = (
            f"{_named(feature)}: {len(rows)} of {len(column)} cells are read as missing, because missing_values lists "
            f"them by default: {_listed(cells, len(rows))}; if one is a category, declare the categories"
        )
        yield Notice("text_as_missing", feature.name, message, cells)


# --- notices from the stored cells


def cell_notices(feature: Feature, column: Column) -> Iterator[Notice]:
    """Yield the notices that the encoded cells of a column show."""
    if feature.role is Role.WEIGHT:
        if n_rows := int(np.count_nonzero(column == 0)):
            message = f"{n_rows} of {len(column)} rows have the weight 0 and are not used"
            yield Notice("weight_zero", feature.name, f"{_named(feature)}: {message}")
        return
    known = column[column >= 0] if feature.coded else column[~np.isnan(column)]
    yield from rounding_notices(feature, column)
    if feature.role is Role.IGNORE:
        return
    is_attribute = feature.role is Role.ATTRIBUTE
    if not len(known) or np.all(known == known[0]):
        what = "one value" if len(known) else "no values"
        so = "and can never be tested" if is_attribute else "and nothing can be learned from it"
        if is_attribute and 0 < len(known) < len(column):
            what, so = "one known value:", "a tree can only test whether its value is known"
        yield Notice("constant", feature.name, f"{_named(feature)} has {what} {so}")
        return
    if not is_attribute:
        return
    if resembles := _identifies(feature, column, known):
        so = "as identifiers do: ignore it if it does not help to predict other rows"
        yield Notice("identifier", feature.name, f"{_named(feature)} {resembles}, {so}")


def _identifies(feature: Feature, column: Column, known: Column) -> str | None:
    n_rows = len(known)
    if n_rows < MIN_ROWS_OF_AN_IDENTIFIER:
        return None
    if feature.kind is FeatureKind.NOMINAL:
        n_present = int(np.count_nonzero(np.bincount(known)))
        is_like = n_present >= IDENTIFIER_SHARE * n_rows
        return f"has {n_present} categories in {n_rows} rows" if is_like else None
    if feature.kind is not FeatureKind.NUMERIC or n_rows < len(column) or np.any(known[:SAMPLE] % 1):
        return None
    low, high = float(known.min()), float(known.max())
    if not high - low >= n_rows - 1 or high >= MAX_INTEGER or low <= -MAX_INTEGER or np.any(known % 1):
        return None
    if high - low == n_rows - 1:
        seen = np.zeros(n_rows, dtype=np.bool_)
        seen[(known - low).astype(np.intp)] = True
        return f"holds each whole number from {low:.0f} to {high:.0f} once" if np.all(seen) else None
    return "holds whole numbers that rise from row to row" if np.all(known[1:] > known[:-1]) else None


def copy_notices(features: Sequence[Feature], columns: Sequence[Column]) -> Iterator[Notice]:
    """Yield a notice of each attribute that equals the target in every row.

    No notice is given if the table has fewer than ten rows or the target is constant.
    """
    place = next((place for place, feature in enumerate(features) if feature.role is Role.TARGET), None)
    if place is None:
        return
    target, values = features[place], columns[place]
    if len(values) < MIN_ROWS_OF_AN_IDENTIFIER or np.all(values == values[0]):
        return
    for feature, column in zip(features, columns, strict=True):
        if feature.role is Role.ATTRIBUTE and _is_copy(feature, column, target, values):
            message = "equals the target in every row: ignore it unless it is known before the target"
            yield Notice("copy_of_target", feature.name, f"{_named(feature)} {message}")


def _is_copy(feature: Feature, column: Column, target: Feature, values: Column) -> bool:
    """Return whether two columns have equal numbers or classes in every row."""
    classes = cells = None
    if target.coded and feature.coded:
        by_key = category_codes(target.categories)
        cells = np.array([*(by_key.get(label_key(label), -1) for label in feature.categories), -1])
    elif target.coded and feature.kind is FeatureKind.NUMERIC:
        numbers = map(plain_number, target.categories)
        classes = np.array([np.nan if number is None else number for number in numbers])
    elif feature.kind is not target.kind:
        return False
    for end in (SAMPLE, len(values)):
        one, other = column[:end], values[:end]
        if not np.array_equal(one if cells is None else cells[one], other if classes is None else classes[other]):
            return False
    return True


def target_notices(feature: Feature, column: Column, declared: ColumnDeclaration, task: str | None) -> Iterator[Notice]:
    """Yield a notice if a target of whole numbers has no declared kind, categories or task.

    There is no notice for fewer than 3 distinct numbers or, if read as numbers, more than `MAX_CATEGORIES_OF_NUMBERS`.
    """
    if feature.role is not Role.TARGET or declared.kind is not None or declared.categories is not None or task:
        return
    if feature.coded:
        n_distinct = len(feature.categories)
        is_whole = all(isinstance(label, int) and not isinstance(label, bool) for label in feature.categories)
        is_read, other = "classes", "regression"
    else:
        n_distinct = MAX_CATEGORIES_OF_NUMBERS + 1 if np.any(column[:SAMPLE] % 1) else len(np.unique(column))
        is_whole = n_distinct <= MAX_CATEGORIES_OF_NUMBERS and not np.any(column % 1)
        is_read, other = "numbers", "classification"
    if is_whole and n_distinct > 2:
        message = (
            f"target {feature.name!r}: its {n_distinct} whole numbers are read as {is_read}; give the task {other}"
        )
        yield Notice("target_kind", feature.name, f"{message} if they are not")


# --- texts


def _named(feature: Feature) -> str:
    return f"{'attribute' if feature.role is Role.ATTRIBUTE else feature.role} {feature.name!r}"


def _shown(feature: Feature, column: Column, rows: Places) -> tuple[str, tuple[NoticedCell, ...]]:
    cells = tuple(NoticedCell(int(row), _short(feature.categories[column[row]])) for row in rows[:MAX_CELLS_SHOWN])
    return _listed(cells, len(rows)), cells


def _listed(cells: Sequence[NoticedCell], n_cells: int) -> str:
    values = [repr(cell.value) if isinstance(cell.value, str) else label_text(cell.value) for cell in cells]
    each = [f"{value} in row {cell.row}" for value, cell in zip(values, cells, strict=True)]
    return ", ".join([*each, *(["…"] if n_cells > len(cells) else [])]) + (" (counted from 0)" if each else "")


def _short(label: Label) -> Label:
    is_long = isinstance(label, str) and len(label) > MAX_CHARACTERS_SHOWN
    return f"{str(label)[:MAX_CHARACTERS_SHOWN]}…" if is_long else label
