"""Encode a data set's columns as a model reads them: numbers, instants and the model's own codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from espalier.arrays import Array, Floats, Mask
from espalier.data.dataset import Dataset
from espalier.data.missing_values import MissingValues
from espalier.data.schema import Feature, FeatureKind, Schema
from espalier.data.targets_and_weights import faults_where
from espalier.errors import DataError, Fault, pointer, within
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.prediction.encode_rows import MISSING, UNSEEN, cell_reader

NOTHING: Final[Floats] = np.array([np.nan])
"""Maps the only code of a column without categories, -1, to a missing number."""


class EncodedColumns(Protocol):
    """Encoded attributes of rows, column by column. NaN and negative codes are unknown values; see `EncodedRow`."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def write(self, attribute: int, low: int, high: int, cells: Floats) -> None:
        """Write rows ``low:high`` of an attribute into `cells`, float64 (high - low)."""


@dataclass(frozen=True, slots=True)
class EncodedMatrix:
    """Attributes that are encoded already: float64 or float32 (attributes, rows)."""

    values: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[1])

    def write(self, attribute: int, low: int, high: int, cells: Floats) -> None:
        """Write rows of an attribute; see `EncodedColumns`."""
        cells[:] = self.values[attribute, low:high]


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A column of a data set, and how the model reads it.

    Attributes:
        column: The column.
        coded: Whether the model reads it as codes (else as numbers).
        recode: The model's code for each code of the column; the last entry is for -1. None if the codes are the same.
        imputed: The value that replaces a missing or unseen one; None without imputation.
    """

    column: Array
    coded: bool
    recode: Floats | None
    imputed: float | None

    def missing(self) -> Mask:
        """Return which rows have no value: bool (rows)."""
        if self.coded and self.recode is not None:
            return np.asarray(self.recode == MISSING)[self.column]
        absent: Mask = self.column < 0 if self.column.dtype == np.int32 else np.isnan(self.column)
        return absent

    def unseen(self) -> Mask:
        """Return which rows have a category that the model does not know: bool (rows)."""
        if self.recode is None:
            return np.zeros(len(self.column), np.bool_)
        unseen: Mask = (self.recode == UNSEEN)[self.column]
        return unseen


@dataclass(frozen=True, slots=True)
class ColumnEncoder:
    """Encodes the columns of a data set, some rows at a time."""

    columns: tuple[EncodedColumn, ...]
    n_rows: int

    def write(self, attribute: int, low: int, high: int, cells: Floats) -> None:
        """Write rows of an attribute; see `EncodedColumns`."""
        source = self.columns[attribute]
        part = source.column[low:high]
        cells[:] = part if source.recode is None else source.recode[part]
        if source.imputed is not None:
            cells[cells < 0 if source.coded else np.isnan(cells)] = source.imputed


def encode_columns(
    schema: Schema, dataset: Dataset, imputed: Sequence[float] | None = None, *, may_lack: bool = False
) -> ColumnEncoder:
    """Return a model's attributes, read from `dataset` and encoded; columns match by name, categories by label.

    `schema` and `imputed` (see `Preparation`) are those of the model. With `may_lack`, `dataset` may lack attributes.

    Raises:
        DataError: An attribute is missing or not compatible, or no known category has the type of an unseen category.
    """
    faults: list[Fault] = []
    columns = []
    listed = MissingValues.of(schema.missing_values)
    places = {feature.name: place for place, feature in enumerate(dataset.schema.features)}
    for number, feature in enumerate(schema.attributes):
        place = places.get(feature.name)
        if place is None and not may_lack:
            faults.append(Fault("", "missing_column", f"the attribute {feature.name!r} of the model is missing"))
            continue
        given = Feature(feature.name, FeatureKind.NOMINAL) if place is None else dataset.schema.features[place]
        if not is_compatible(given, feature):
            faults.append(Fault("", "kind", f"{feature.name!r} must be {feature.kind}, here it is {given.kind}"))
            continue
        column = np.full(dataset.n_rows, -1, np.int32) if place is None else np.asarray(dataset.columns[place])
        missing = listed.besides(feature.categories)
        if feature.kind is FeatureKind.NUMERIC and not given.coded:
            column = missing.mask(column.astype(np.float64, copy=False)) if missing.numbers else column
        recode, column_faults = _recode(given, feature, column, missing)
        faults += within(pointer(feature.name), column_faults)
        value = None if imputed is None else imputed[number]
        columns.append(EncodedColumn(column, feature.coded, recode, value))
    DataError.raise_for(faults)
    return ColumnEncoder(tuple(columns), dataset.n_rows)


def is_compatible(given: Feature, wanted: Feature) -> bool:
    """Return whether `given` fits `wanted`: both have codes or the same kind, or `given` has codes but no category.

    >>> from espalier import FeatureKind
    >>> is_compatible(Feature("x", FeatureKind.NOMINAL), Feature("x", FeatureKind.NUMERIC))
    True
    """
    if given.coded and not given.categories:
        return True
    return given.coded == wanted.coded and (wanted.coded or given.kind is wanted.kind)


def tested_places(model: Model) -> list[int]:
    """Return the indexes of the attributes that a model's tests (not surrogates) or rules use, ascending."""
    if isinstance(model.body, RuleList):
        names = {condition.attribute.name for rule in model.body.rules for condition in rule.conditions}
        return [place for place, feature in enumerate(model.schema.attributes) if feature.name in names]
    return model.tree.tested()


def unseen_rows(model: Model, dataset: Dataset) -> Mask:
    """Return which rows have an unseen category (unknown to the model) in a tested attribute: bool (n_rows)."""
    columns = encode_columns(model.schema, dataset).columns
    is_unseen = np.zeros(dataset.n_rows, dtype=np.bool_)
    for place in tested_places(model):
        is_unseen |= columns[place].unseen()
    return is_unseen


def encode_matrix(model: Model, dataset: Dataset) -> Floats:
    """Return the model's attributes, read from `dataset` and encoded: float64 (attributes, n_rows)."""
    return matrix_of(model, encode_columns(model.schema, dataset, model.preparation.imputed))


def matrix_of(model: Model, cells: EncodedColumns) -> Floats:
    """Return encoded columns as one array: float64 (attributes, n_rows)."""
    values = np.empty((len(model.schema.attributes), cells.n_rows))
    for attribute, row in enumerate(values):
        cells.write(attribute, 0, cells.n_rows, row)
    return values


def target_of(schema: Schema, dataset: Dataset) -> Array:
    """Return the target of `dataset`: numbers, or int64 codes of the model's classes (-1: missing, -2: not a class).

    Raises:
        DataError: The target is missing; or it has classes and the model's target has numbers, or the reverse.
    """
    target = schema.target
    place = dataset.schema.place(target.name) if target is not None else None
    if target is None or place is None:
        name = target.name if target is not None else ""
        raise DataError([Fault("", "missing_column", f"the target {name!r} is missing")])
    given = dataset.schema.features[place]
    if given.coded != target.coded:
        raise DataError([Fault("", "kind", f"the target must be {target.kind}, here it is {given.kind}")])
    column = np.asarray(dataset.columns[place])
    if not target.coded:
        return column
    recode, _ = _recode(given, target, column, MissingValues.of(()))
    return (column if recode is None else recode[column]).astype(np.int64)


def _recode(
    given: Feature, wanted: Feature, column: Array, missing: MissingValues
) -> tuple[Floats | None, list[Fault]]:
    """Return an array that maps the codes of `given` to codes of `wanted`, to UNSEEN or to MISSING; return faults, too.

    A category keeps its label. The array's last entry is for the code -1 (missing). The array is None if the codes are
    the same, and `NOTHING` if only `given` has codes. A fault counts the cells of `column` that `cell_reader` refuses.
    """
    if not wanted.coded:
        return (NOTHING if given.coded else None), []
    if given.categories is wanted.categories or list(given.codes) == list(wanted.codes):
        return None, []
    read = cell_reader(wanted)
    codes = [MISSING if missing.contains(label) else read(label) for label in given.categories]
    message = next((code for code in codes if isinstance(code, str)), "")
    is_wrong = np.array([*(isinstance(code, str) for code in codes), False])
    faults = faults_where(is_wrong[column], "wrong_type", message) if message else []
    return np.array([*(UNSEEN if isinstance(code, str) else code for code in codes), MISSING]), faults
