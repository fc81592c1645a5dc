"""The training rows as the grower takes them: those that count, checked, with missing values imputed if asked."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import faults_of_weights
from espalier.class_weights import class_factors
from espalier.config import TrainingConfig
from espalier.dataset import Column, Dataset, lacks_values
from espalier.errors import ConfigError, DataError, Fault, pointer, within
from espalier.processors import in_threads_if_many
from espalier.schema import Feature

__all__ = ["Table", "filled", "imputed_values", "many_valued", "ranks_by_mean", "training_table", "with_imputed"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

MANY_VALUED_SHARE: Final = 0.3


@dataclass(frozen=True, slots=True)
class Table:
    """The training rows of weight above 0.

    Attributes:
        attributes: The schema's, F of them.
        columns: One an attribute: float64 or float32 (NaN missing) or int32 codes (-1 missing), missing values imputed
            if asked.
        target: int32 class codes or float64 numbers.
        weight: float64, class weights applied.
        n_classes: 0 for a regression.
        source: The data set whose attributes these are, row by row and cell by cell; None where they differ.
    """

    attributes: tuple[Feature, ...]
    columns: Sequence[Column]
    target: npt.NDArray[Any]
    weight: Floats
    n_classes: int
    source: Dataset | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    def is_complete(self) -> bool:
        """Say whether no value is missing."""
        if self.source is not None:
            return not self.source.incomplete
        return not any(in_threads_if_many(self.n_rows * len(self.columns), lacks_values, self.columns))


def training_table(dataset: Dataset, config: TrainingConfig) -> Table:
    """Take the rows that count, and check what no schema can.

    Raises:
        ConfigError: Class weights with which nothing weighs anything, or more than can be added up.
        DataError: With every fault found.
    """
    target, weight = np.asarray(dataset.target), dataset.weight
    n_classes = len(dataset.schema.classes)
    faults = _faults_of_rows(dataset, config)
    if faults:
        raise DataError(faults)
    if n_classes and config.class_weight is not None:
        weight = weight * class_factors(dataset, config)[target]
        faults = within("/class_weight", faults_of_weights(weight))
        if faults:
            raise ConfigError(faults)
    kept = np.flatnonzero(weight > 0)
    attributes = dataset.schema.attributes
    if len(kept) == len(weight):
        return Table(attributes, dataset.attributes, target, weight, n_classes, source=dataset)
    columns = tuple(column[kept] for column in dataset.attributes)
    return Table(attributes, columns, target[kept], weight[kept], n_classes)


def _faults_of_rows(dataset: Dataset, config: TrainingConfig) -> list[Fault]:
    target, weight, schema = np.asarray(dataset.target), dataset.weight, dataset.schema
    name = schema.target.name if schema.target is not None else ""
    of_target = pointer(name)
    faults = []
    if schema.weight is not None and not bool(np.all(np.isfinite(weight) & (weight >= 0))):
        faults.append(Fault(pointer(schema.weight.name), "weight", "weights must be finite numbers of at least 0"))
    elif not bool(np.any(weight > 0)):
        faults.append(Fault("", "empty", "there is no row with a weight above 0"))
    known = target >= 0 if target.dtype == np.int32 else np.isfinite(target)
    if not bool(np.all(known)):
        first = int(np.flatnonzero(~known)[0])
        faults.append(
            Fault(of_target, "target", f"the target is missing or infinite in row {first} and perhaps others")
        )
    elif config.criterion == "poisson" and bool(np.any(target < 0)):
        faults.append(Fault(of_target, "target", "must be at least 0 for the criterion poisson"))
    for feature in schema.attributes:
        if feature.name in dataset.infinite:
            faults.append(Fault(pointer(feature.name), "infinite", "infinite numbers cannot be learned from"))
    return faults


def imputed_values(table: Table) -> tuple[float, ...]:
    """Give the mean or the most frequent code of each attribute; NaN where nothing is known."""
    answers = []
    for feature, column in zip(table.attributes, table.columns, strict=True):
        known = column >= 0 if feature.coded else ~np.isnan(column)
        weight = table.weight[known]
        if not len(weight):
            answers.append(math.nan)
        elif feature.coded:
            sizes = np.bincount(column[known], weights=weight, minlength=len(feature.categories))
            answers.append(float(np.argmax(sizes)))
        else:
            answers.append(weighted_mean(column[known], weight))
    return tuple(answers)


def weighted_mean(values: npt.NDArray[Any], weight: npt.NDArray[np.float64]) -> float:
    """Give the mean of finite values, float64 (n), by weights above 0, float64 (n).

    Their sum may lie beyond the largest float, as their mean cannot.
    """
    whole = math.fsum(weight)
    largest = float(np.max(np.abs(values)))
    if largest <= sys.float_info.max / max(whole, 1.0) / 2:
        return math.fsum(values * weight) / whole
    halvings = max(math.frexp(whole)[1], 0) + 1
    smaller = np.ldexp(values, -halvings)
    mean = math.fsum(smaller * weight) / whole
    # A mean that is rounded up must not be above all values: the largest float may be among them.
    return math.ldexp(min(max(mean, float(smaller.min())), float(smaller.max())), halvings)


def with_imputed(table: Table, imputed: tuple[float, ...]) -> Table:
    """Give the table with nothing missing that `imputed` (one an attribute) has a value for."""
    columns = filled(table.attributes, table.columns, imputed)
    return Table(table.attributes, columns, table.target, table.weight, table.n_classes)


def filled(
    attributes: tuple[Feature, ...], columns: Sequence[npt.NDArray[Any]], imputed: tuple[float, ...]
) -> tuple[npt.NDArray[Any], ...]:
    """Give the columns with the imputed value in place of a missing one; NaN imputes nothing."""
    return tuple(
        _filled(feature, column, value) for feature, column, value in zip(attributes, columns, imputed, strict=True)
    )


def _filled(feature: Feature, column: npt.NDArray[Any], value: float) -> npt.NDArray[Any]:
    if math.isnan(value):
        return column
    if feature.coded:
        return np.where(column < 0, np.int32(value), column).astype(np.int32)
    return np.where(np.isnan(column), np.float64(value), column)


def many_valued(table: Table, config: TrainingConfig) -> Ints:
    """Mark the nominal attributes whose gain says too little (Quinlan's guard leaves them out of the average)."""
    least = MANY_VALUED_SHARE * table.n_rows
    binaries = config.nominal == "ordered_binaries"
    return np.array(
        [int(feature.unordered and not binaries and len(feature.categories) >= least) for feature in table.attributes],
        dtype=np.int32,
    )


def ranks_by_mean(table: Table, column: npt.NDArray[Any], n_categories: int) -> Ints:
    """Rank categories by their mean target over all rows; one without rows stands at the mean of all."""
    known = column >= 0
    weights = np.bincount(column[known], weights=table.weight[known], minlength=n_categories)
    sums = np.bincount(column[known], weights=(table.weight * table.target)[known], minlength=n_categories)
    everywhere = math.fsum(table.weight * table.target) / math.fsum(table.weight)
    with np.errstate(invalid="ignore"):
        means = np.where(weights > 0, sums / weights, everywhere)
    ranks = np.empty(n_categories, dtype=np.int32)
    ranks[np.argsort(means, kind="stable")] = np.arange(n_categories)
    return ranks
