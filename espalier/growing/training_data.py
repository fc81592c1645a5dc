"""Training data: the rows of weight above 0, checked once, with missing values imputed if configured."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from espalier.arrays import Array, Floats, Ints
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Column, Dataset, flags_of
from espalier.data.schema import Feature
from espalier.data.stored_dataset import each_column
from espalier.data.targets_and_weights import faults_of_target, faults_of_weights
from espalier.errors import ConfigError, DataError, Fault, pointer, within
from espalier.growing.class_weights import class_factors
from espalier.model.majority import majority
from espalier.model.preparation import Preparation, scales_of

MANY_VALUED_SHARE: Final = 0.3
STEPS_OF_MEANS: Final = 40


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The training rows of weight above 0.

    Attributes:
        attributes: The F attributes of the schema.
        columns: One per attribute: float64 or float32 numbers (NaN if missing), or int32 codes (-1 if missing). If
            configured, missing values are imputed, except in attributes without any value.
        target: int32 class codes or float64 numbers, one per row.
        weight: float64 (rows), already multiplied by the class weights.
        class_scale: float64 (classes); 1 / class weight, or 0 where the class weight is 0. A row's `weight` times the
            scale of its class is its weight in the data set.
        n_classes: 0 for a regression.
        is_complete: Whether no value is missing in `columns`.
        preparation: The values that replace missing ones, if configured, and the attributes' scales before imputation.
    """

    attributes: tuple[Feature, ...]
    columns: Sequence[Column]
    target: Array
    weight: Floats
    class_scale: Floats
    n_classes: int
    is_complete: bool
    preparation: Preparation

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)


def training_data(dataset: Dataset, config: TrainingConfig) -> TrainingData:
    """Check the rows, and return those of weight above 0, with class weights and imputed values applied.

    Raises:
        ConfigError: Class weights make a weight too small or too large, or leave no row with a weight above 0.
        DataError: The rows cannot be learned from; each faulty column is reported once.
    """
    target, weight = np.asarray(dataset.target), dataset.weight
    n_classes = len(dataset.schema.classes)
    DataError.raise_for(_row_faults(dataset, config))
    class_scale = np.ones(n_classes)
    if n_classes and config.class_weight is not None:
        factors = class_factors(dataset.schema.classes, config, dataset)
        # Only a class without rows can have a factor whose inverse overflows; its scale is not read.
        class_scale = np.divide(1.0, factors, out=np.zeros(n_classes), where=factors >= sys.float_info.min)
        weight = weight * factors[target]
        ConfigError.raise_for(within("/class_weight", faults_of_weights(weight)))
    columns: Sequence[Column] = dataset.attributes
    has_missing = bool(dataset.has_missing)
    weighted = np.flatnonzero(weight > 0)
    if len(weighted) < len(weight):
        columns = each_column(lambda column: column[weighted], columns)
        target, weight = target[weighted], weight[weighted]
        has_missing = has_missing and any(flags_of(column)[0] for column in columns)
    attributes, imputed = dataset.schema.attributes, None
    scales = scales_of(attributes, columns)
    if config.missing == "imputed":
        imputed = _imputed_values(attributes, columns, weight)
        columns = with_imputed(attributes, columns, imputed)
        has_missing = any(map(math.isnan, imputed))
    preparation = Preparation(imputed, scales)
    return TrainingData(attributes, columns, target, weight, class_scale, n_classes, not has_missing, preparation)


def with_imputed(
    attributes: tuple[Feature, ...], columns: Sequence[Column], imputed: tuple[float, ...]
) -> Sequence[Column]:
    """Return the columns with missing values replaced by the attribute's imputed value, unless that value is NaN."""
    return each_column(_with_imputed, columns, attributes, imputed)


def many_valued(data: TrainingData, config: TrainingConfig) -> Ints:
    """Return int32 (attributes): 1 for a nominal or boolean attribute with ≥ 0.3 · (total weight) categories, else 0.

    The limit is that of C4.5; class weights do not count. Under ``ordered_binaries``, all attributes get 0.
    """
    sizes = data.weight * data.class_scale[data.target] if data.n_classes else data.weight
    least = MANY_VALUED_SHARE * float(sizes.sum()) * (1 - 1e-9)
    binaries = config.nominal == "ordered_binaries"
    return np.array(
        [int(feature.unordered and not binaries and len(feature.categories) >= least) for feature in data.attributes],
        dtype=np.int32,
    )


def ranks_by_mean(data: TrainingData, column: Column, n_categories: int) -> Ints:
    """Return the rank of each category by ascending mean of the target, int32 (n_categories).

    A category without rows has the mean of all rows. Equal means keep the order of the categories.
    """
    known, whole = column >= 0, math.fsum(data.weight)
    apart = data.target - math.fsum(data.weight * data.target) / whole
    weighted = data.weight * apart
    weights = np.bincount(column[known], weights=data.weight[known], minlength=n_categories)
    sums = np.bincount(column[known], weights=weighted[known], minlength=n_categories)
    with np.errstate(invalid="ignore"):
        means = np.where(weights > 0, sums / weights, math.fsum(weighted) / whole)
    # Means are rounded to about 2⁻⁴⁰ standard deviations, so that rounding errors do not separate equal means.
    unit = math.ldexp(1.0, math.frexp(math.sqrt(math.fsum(weighted * apart) / whole))[1] - STEPS_OF_MEANS)
    ranks = np.empty(n_categories, dtype=np.int32)
    ranks[np.argsort(np.rint(means / unit), kind="stable")] = np.arange(n_categories)
    return ranks


def _row_faults(dataset: Dataset, config: TrainingConfig) -> list[Fault]:
    target, weight, schema = np.asarray(dataset.target), dataset.weight, dataset.schema
    of_target = pointer(schema.target.name if schema.target is not None else "")
    faults = within(of_target, faults_of_target(target))
    if not faults and config.how_split.of_counts and bool(np.any(target[weight > 0] < 0)):
        faults.append(Fault(of_target, "target", f"must be at least 0 for the criterion {config.criterion}"))
    if schema.weight is not None:
        faults += within(pointer(schema.weight.name), faults_of_weights(weight))
    elif not len(weight):
        faults.append(Fault("", "empty", "there are no rows"))
    for feature, column in zip(schema.attributes, dataset.attributes, strict=True):
        if feature.name in dataset.has_infinite and bool(np.isinf(column[weight > 0]).any()):
            faults.append(Fault(pointer(feature.name), "infinite", "must not contain infinite numbers"))
    return faults


def _imputed_values(attributes: tuple[Feature, ...], columns: Sequence[Column], weight: Floats) -> tuple[float, ...]:
    values = []
    for feature, column in zip(attributes, columns, strict=True):
        known = column >= 0 if feature.coded else ~np.isnan(column)
        known_weight = weight[known]
        if not len(known_weight):
            values.append(math.nan)
        elif feature.coded:
            sizes = np.bincount(column[known], weights=known_weight, minlength=len(feature.categories))
            values.append(float(majority(sizes[None, :])[0]))
        else:
            values.append(_weighted_mean(column[known], known_weight))
    return tuple(values)


def _weighted_mean(values: Array, weight: Floats) -> float:
    """Return the weighted mean of finite values, even if their sum overflows; weights must be above 0."""
    whole = math.fsum(weight)
    largest = float(np.max(np.abs(values)))
    if largest <= sys.float_info.max / max(whole, 1.0) / 2:
        return math.fsum(values * weight) / whole
    halvings = max(math.frexp(whole)[1], 0) + 1
    smaller = np.ldexp(values, -halvings)
    mean = math.fsum(smaller * weight) / whole
    # The mean is clipped to the range of the values, because a mean rounded up beyond the largest float overflows.
    return math.ldexp(min(max(mean, float(smaller.min())), float(smaller.max())), halvings)


def _with_imputed(column: Column, feature: Feature, value: float) -> Column:
    if math.isnan(value):
        return column
    if feature.coded:
        return np.where(column < 0, np.int32(value), column).astype(np.int32)
    return np.where(np.isnan(column), np.float64(value), column)
