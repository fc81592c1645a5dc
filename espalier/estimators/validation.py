"""Validate X, y and sample_weight with scikit-learn's checks, and read them as a data set."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from espalier.arrays import Array, Floats, Ints
from espalier.data.column import RawColumn, column_from_array, columns_from_matrix, distinct_values, is_missing
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import declare
from espalier.data.inference import dataset_with_warnings
from espalier.data.labels import MAX_INTEGER, Label
from espalier.data.notices import rounding_notices, warn_caller, warn_of_changes
from espalier.data.readers.arrow import index_of_pandas
from espalier.data.readers.frames import columns_of_frame, is_frame
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.data.targets_and_weights import faults_of_target, faults_of_weights
from espalier.errors import EstimatorError, Fault, located, pointer, within


def validate_table(estimator: Any, X: Any, *, reset: bool) -> Any:  # noqa: N803 - scikit-learn's name
    """Validate X and its feature names.

    Args:
        estimator: The estimator. If `reset`, its `model_` is deleted, and its `n_features_in_` and `feature_names_in_`
            are set. Otherwise, they are compared with X.
        X: A two-dimensional array or list, or a pandas, polars or pyarrow table.
        reset: Whether the estimator is being fitted.

    Returns:
        If X is a table, the table: a lazy table of polars is collected, a table of pyarrow loses pandas' index columns.
        Otherwise, an array (n_rows, n_columns) of any type, which may hold NaN and infinity.

    Raises:
        ValueError: X is not two-dimensional, has no rows, or has other columns than `estimator` was fitted with.
        TypeError: X is sparse, or only some of its names are texts.
    """
    if reset:
        vars(estimator).pop("model_", None)  # an estimator whose fit fails is not fitted
    if _is_table(X):
        table = X.collect() if hasattr(X, "collect") else X  # a lazy table of polars
        if hasattr(table, "drop_columns") and (index := sorted(index_of_pandas(table.schema))):  # of pyarrow
            warn_caller(f"index columns of pandas are left out: {', '.join(index)}")
            table = table.drop_columns(index)
        validate_data(estimator, table, reset=reset, skip_check_array=True)
        if not len(table):
            raise ValueError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
        return table
    return validate_data(estimator, _plain_array(X), reset=reset, dtype=None, ensure_all_finite=False)


def read_columns(table: Any, names: Sequence[str] | None) -> list[RawColumn]:
    """Return the columns of a validated table or array. Their names are `names` or, if it is None, x0, x1, …."""
    names = [f"x{place}" for place in range(table.shape[1])] if names is None else names
    if _is_table(table):
        with located("", EstimatorError):
            columns = columns_of_frame(table)
    elif table.dtype.kind in "fiu":
        columns = columns_from_matrix(table)
    else:
        columns = list(map(column_from_array, names, table.T))
    # scikit-learn counts a column that holds an index of pandas, so it must not be left out.
    return [replace(column, name=name, is_index=False) for column, name in zip(columns, names, strict=True)]


def read_like(table: Any, schema: Schema) -> Dataset:
    """Return the rows of a validated table or array as a data set with the attributes of `schema`."""
    columns = read_columns(table, [feature.name for feature in schema.attributes])
    for place, (column, feature) in enumerate(zip(columns, schema.attributes, strict=True)):
        if column.kind is FeatureKind.BOOLEAN and not any(isinstance(each, str | bool) for each in feature.categories):
            columns[place] = as_numbers(column)
    with located("", EstimatorError):
        return dataset_with_warnings(columns, declare(like=schema))


def as_numbers(column: RawColumn) -> RawColumn:
    """Return a column of booleans as the numbers 0 and 1, as numpy converts them."""
    numbers = np.array([*map(float, column.labels or ()), np.nan])[column.values]
    return replace(column, kind=FeatureKind.NUMERIC, values=numbers, labels=None)


def validate_classes(y: Any, n_rows: int, *, least: int = 2) -> tuple[Array, tuple[Label, ...], Ints]:
    """Validate y, which must have at least `least` classes: 1 or 2.

    Returns:
        The distinct classes, sorted, in y's type; these classes as labels; the class code of each row, int32 (n_rows,).

    Raises:
        ValueError: y has another shape or length, missing values, too few classes, or values that are not classes.
    """
    values = _column(y, n_rows)
    if values.dtype.kind not in "iub":  # integers and booleans are legal: skip the check, which sorts
        check_classification_targets(values)
    classes, codes = distinct_values(values)
    if len(classes) < least:
        raise ValueError("y holds one class only: there is nothing to learn")
    labels = classes.astype(str) if classes.dtype.kind in "mM" else classes
    return classes, tuple(map(as_label, labels.tolist())), codes.astype(np.int32)


def validate_numbers(y: Any, n_rows: int) -> Floats:
    """Return y as float64 (n_rows,), and warn if whole numbers are rounded.

    Raises:
        EstimatorError, ValueError: y is not `n_rows` numbers of legal size.
    """
    values = _column(y, n_rows, dtype=np.float64)
    if np.asarray(y).dtype.kind in "iuO":
        warn_of_changes(rounding_notices(Feature("y", FeatureKind.NUMERIC, Role.TARGET), values))
    EstimatorError.raise_for(within("/y", faults_of_target(values)))
    return values


def validate_weight(sample_weight: Any, n_rows: int) -> Floats | None:
    """Return row weights as float64 (n_rows,); None if none are given.

    Raises:
        ValueError: The weights have another shape or are all zero.
        EstimatorError: A weight is missing, negative, or too small or too large to be added up and squared.
    """
    if sample_weight is None:
        return None
    _refuse_masked("sample_weight", sample_weight)
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must be a 1d array of {n_rows} numbers, got the shape {weight.shape}")
    if not np.any(weight):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    EstimatorError.raise_for(within("/sample_weight", faults_of_weights(weight)))
    return weight


def as_label(value: Any) -> Label:
    """Return a class as a label of a schema; equal classes have equal labels.

    >>> as_label(1.0), as_label("a"), as_label(np.True_)
    (1, 'a', True)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str | bool):
        return plain
    if isinstance(plain, int | float) and plain == plain // 1 and abs(plain) <= MAX_INTEGER:
        return int(plain)
    return plain if isinstance(plain, float) else str(plain)


def with_target(dataset: Dataset, target: Column, classes: tuple[Label, ...], weight: Floats | None) -> Dataset:
    """Add a target and, if `weight` is not None, row weights to a data set of attributes."""
    features, columns = list(dataset.schema.features), list(dataset.columns)
    kind = FeatureKind.NOMINAL if classes else FeatureKind.NUMERIC
    features.append(Feature(_free_name("y", features), kind, Role.TARGET, classes))
    columns.append(target)
    if weight is not None:
        features.append(Feature(_free_name("sample_weight", features), FeatureKind.NUMERIC, Role.WEIGHT))
        columns.append(weight)
    return Dataset(Schema(tuple(features), dataset.schema.missing_values), tuple(columns))


def _is_table(X: Any) -> bool:  # noqa: N803
    return is_frame(X) and getattr(X, "ndim", 2) == 2


def _plain_array(X: Any) -> Any:  # noqa: N803
    """Replace masked cells by missing values, or turn a list with texts into an array in which numbers stay numbers.

    Anything else is returned unchanged.
    """
    if isinstance(X, np.ma.MaskedArray):
        kind = X.dtype.kind
        array = X.data.astype(np.float64 if kind in "iu" else X.dtype if kind in "fcM" else np.object_)
        array[np.ma.getmaskarray(X)] = np.datetime64("NaT") if kind == "M" else np.nan if kind in "iufc" else None
        return array
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind == "U":
        return np.array(X, dtype=object)
    return X


def _column(y: Any, n_rows: int, dtype: Any = None) -> Array:
    if y is None:
        raise ValueError("the estimator requires y to be passed, but the target y is None")
    _refuse_masked("y", y)
    plain = np.asarray(y)  # scikit-learn would read a nullable type of pandas as floats
    if plain.dtype.kind in "OmM" and any(map(is_missing, plain.ravel())):
        raise ValueError("Input y contains NaN.")
    values: Array = column_or_1d(plain, dtype=dtype, warn=True)
    check_consistent_length(np.empty(n_rows), values)
    assert_all_finite(values, input_name="y")
    return values


def _refuse_masked(name: str, values: Any) -> None:
    if np.ma.is_masked(values):
        raise EstimatorError([Fault(pointer(name), "missing", "must not have masked values: leave out their rows")])


def _free_name(name: str, taken: Sequence[Feature]) -> str:
    while any(feature.name == name for feature in taken):
        name += "_"
    return name
