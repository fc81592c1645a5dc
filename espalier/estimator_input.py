"""What estimators are given: tables, targets and weights, read and checked with scikit-learn's words."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import faults_of_target, faults_of_weights
from espalier.dataset import Dataset
from espalier.errors import Fault, InvalidInput, pointer, within
from espalier.frame_column import FrameColumn
from espalier.frames import column_from_array, columns_from_matrix, frame_columns, is_frame
from espalier.lent import LentColumns, LentDataset, can_be_lent
from espalier.schema import LARGEST_WHOLE, Feature, FeatureKind, Label, Role, Schema

__all__ = [
    "EstimatorError",
    "InputTable",
    "label_of",
    "lent_dataset",
    "names_message",
    "not_fitted",
    "read_table",
    "read_target",
    "read_weight",
    "refusals_as_values",
    "target_name",
    "with_target",
]

READABLE_DTYPES: Final = "fiubOUM"
SHOWN_NAMES: Final = 5
LABEL_SORTS: Final = {str: "text", bool: "boolean", int: "number", float: "number"}


class EstimatorError(InvalidInput, ValueError):
    """What an estimator was given is wrong; a ValueError besides, as scikit-learn's callers expect."""


@dataclass(frozen=True, slots=True)
class InputTable:
    """A table of attributes.

    Attributes:
        columns: One an attribute; called x0, x1, … where the table has no names.
        names: The names that the table itself has, all of them text; None for an array.
        matrix: The array of numbers that the columns are those of, not copied yet; None for any other table.
    """

    columns: tuple[FrameColumn, ...]
    names: tuple[str, ...] | None
    matrix: npt.NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values)

    def named(self, names: Sequence[str]) -> "InputTable":
        """Give the table with its columns called `names`."""
        columns = (replace(column, name=name) for column, name in zip(self.columns, names, strict=True))
        return replace(self, columns=tuple(columns))

    def copied(self) -> "InputTable":
        """Give the table with columns of its own."""
        if self.matrix is None:
            return self
        columns = zip(columns_from_matrix(self.matrix), self.columns, strict=True)
        return InputTable(tuple(replace(copied, name=column.name) for copied, column in columns), self.names)


def read_table(X: Any) -> InputTable:  # noqa: N803 - scikit-learn's name
    """Read an array (rows, columns), a list of rows, or a pandas, polars or pyarrow table.

    Raises:
        EstimatorError: A table with columns that cannot be read.
        ValueError: Not two-dimensional, complex, without rows or without columns.
        TypeError: Sparse, or an object that is neither text, a number, a date nor missing.
    """
    if hasattr(X, "tocsr") or (hasattr(X, "toarray") and hasattr(X, "nnz")):
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray() to convert it.")
    matrix = None
    if is_frame(X) and getattr(X, "ndim", 2) == 2:
        with refusals_as_values():
            columns = frame_columns(X)
        given: list[Any] = list(getattr(X, "columns", ())) if hasattr(X, "iloc") else [each.name for each in columns]
        names = _text_names(given)
    else:
        array = _array_of(X)
        if array.dtype.kind in "fiub":
            matrix = array
        columns = [column_from_array(f"x{place}", array[:, place]) for place in range(array.shape[1])]
        names = None
    shape = (len(columns[0].values) if columns else len(X), len(columns))
    for n, what in ((shape[0], "sample(s)"), (shape[1], "feature(s)")):
        if n == 0:
            raise ValueError(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")
    if names is None:
        columns = [replace(column, name=f"x{place}") for place, column in enumerate(columns)]
    return InputTable(tuple(columns), names, matrix)


def read_target(y: Any, n_rows: int, estimator: str, *, classes: bool) -> npt.NDArray[Any]:
    """Read labels (`classes`) or finite numbers as float64, (rows,).

    Raises:
        ValueError: None, another length, not one column, missing or infinite, or not of the estimator's task.
    """
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None")
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.ndim == 2 and values.shape[1] == 1:
        message = "A column-vector y was passed when a 1d array was expected. Change the shape of y to (n_samples, )."
        warnings.warn(message, _optional("sklearn.exceptions", "DataConversionWarning", UserWarning), stacklevel=4)
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {values.shape} instead.")
    if len(values) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(values)}]")
    return _labels_of(values) if classes else _numbers_of(values)


def read_weight(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """Read row weights, float64 (rows,); None where none are given.

    Raises:
        ValueError: Another shape, not finite, negative, all zero, or of a size that cannot be added up and squared.
    """
    if sample_weight is None:
        return None
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.ndim != 1 or len(weight) != n_rows:
        raise ValueError(f"sample_weight must be a 1d array of {n_rows} numbers, got the shape {weight.shape}")
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise ValueError("sample_weight must be finite numbers of at least 0")
    if not np.any(weight > 0):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    _check(faults_of_weights(weight), "sample_weight")
    return weight


def label_of(value: Any, categories: Sequence[Label]) -> Label:
    """Give a class as a schema spells it: one of `categories` that equals it, else text, a number, true or false.

    >>> label_of(1.0, ()), label_of("a", ()), label_of(2.0, (1, 2))
    (1, 'a', 2)
    """
    plain = value.item() if isinstance(value, np.generic) else value
    for label in categories:
        if label == plain and isinstance(label, bool) == isinstance(plain, bool):
            return label
    if isinstance(plain, str | bool):
        return plain
    if isinstance(plain, int | float) and plain == plain // 1 and abs(plain) <= LARGEST_WHOLE:
        return int(plain)
    return plain if isinstance(plain, float) else str(plain)


def target_name(table: InputTable) -> str:
    """Give a name for the target that no column has."""
    return _free_name("y", [column.name for column in table.columns])


def lent_dataset(
    table: InputTable, target: tuple[Feature, npt.NDArray[Any]], weight: npt.NDArray[np.float64] | None
) -> Dataset | None:
    """Give the data set of an array, which stays where it is; None where it is none, or has what cannot be learned."""
    if table.matrix is None or not can_be_lent(table.matrix):
        return None
    attributes = [Feature(column.name, FeatureKind.NUMERIC) for column in table.columns]
    features, others = _and_others(attributes, target, weight)
    dataset = LentDataset(Schema(tuple(features), ()), LentColumns(table.matrix), tuple(others))
    return None if dataset.infinite else dataset


def with_target(
    dataset: Dataset, target: tuple[Feature, npt.NDArray[Any]], weight: npt.NDArray[np.float64] | None
) -> Dataset:
    """Give the data set of attributes with their target and, if there are any, the weights of its rows."""
    features, others = _and_others(dataset.schema.features, target, weight)
    return Dataset(Schema(tuple(features), dataset.schema.missing_values), (*dataset.columns, *others))


def names_message(fitted: Sequence[str], given: Sequence[str]) -> str:
    """Say how the column names differ from those at fitting."""
    unexpected, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    message = "The feature names should match those that were passed during fit.\n"
    for title, names in (
        ("Feature names unseen at fit time:\n", unexpected),
        ("Feature names seen at fit time, yet now missing:\n", missing),
    ):
        if names:
            more = ["- ...\n"] if len(names) > SHOWN_NAMES else []
            message += title + "".join([*(f"- {name}\n" for name in names[:SHOWN_NAMES]), *more])
    if not unexpected and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def not_fitted(estimator: str) -> Exception:
    """Give the error for an estimator that is asked before it was fitted: scikit-learn's own where it is there."""
    error: type[Exception] = _optional("sklearn.exceptions", "NotFittedError", EstimatorNotFitted)
    message = f"This {estimator} instance is not fitted yet. Call 'fit' before using this estimator."
    return error(message)


class EstimatorNotFitted(ValueError, AttributeError):  # noqa: N818 - a state, not a defect
    """An estimator was asked before it was fitted; stands in for scikit-learn's error where that is not installed."""


@contextmanager
def refusals_as_values() -> Iterator[None]:
    """Raise what the core refuses as an `EstimatorError`, which is a ValueError."""
    try:
        yield
    except EstimatorError:
        raise
    except InvalidInput as error:
        raise EstimatorError(error.faults) from error


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _and_others(
    attributes: Sequence[Feature], target: tuple[Feature, npt.NDArray[Any]], weight: npt.NDArray[np.float64] | None
) -> tuple[list[Feature], list[npt.NDArray[Any]]]:
    """Give the features with those of target and weight, and the columns of these."""
    features, columns = [*attributes, target[0]], [target[1]]
    if weight is not None:
        name = _free_name("sample_weight", [feature.name for feature in features])
        features.append(Feature(name, FeatureKind.NUMERIC, Role.WEIGHT))
        columns.append(weight)
    return features, columns


def _text_names(given: Sequence[Any]) -> tuple[str, ...] | None:
    n_texts = sum(isinstance(name, str) for name in given)
    if 0 < n_texts < len(given):
        raise TypeError("Feature names are only supported if all input features have string names.")
    return tuple(given) if n_texts else None


def _array_of(X: Any) -> npt.NDArray[Any]:  # noqa: N803
    array = _unmasked(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.dtype.kind == "U" and not hasattr(X, "__array__"):
        array = np.array(X, dtype=object)  # a list of rows with texts in it: numbers stay numbers
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: give numbers, texts or dates.")
    if array.ndim != 2:
        advice = "Reshape your data using array.reshape(-1, 1) or array.reshape(1, -1)."
        raise ValueError(f"Expected 2D array, got an array of shape {array.shape} instead. {advice}")
    if array.dtype.kind not in READABLE_DTYPES:
        raise ValueError(f"X must be of numbers, texts, dates or objects, not of the type {array.dtype}")
    return array


def _unmasked(X: "np.ma.MaskedArray[Any, Any]") -> npt.NDArray[Any]:  # noqa: N803
    """Give an array in which what is masked is missing: NaN among numbers, None among others."""
    masked = np.ma.getmaskarray(X)
    if not np.any(masked):
        return X.data
    kind = X.dtype.kind
    array = np.array(X.data, dtype=np.float64 if kind in "iu" else X.dtype if kind in "fcM" else np.object_)
    array[masked] = np.datetime64("NaT") if kind == "M" else np.nan if array.dtype.kind in "fc" else None
    return array


def _labels_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind == "f":
        if np.any(np.isnan(values)):
            raise ValueError("Input y contains NaN.")
        if np.any(values != np.floor(values)) or np.any(np.isinf(values)):
            raise ValueError("Unknown label type: continuous. Give classes, or use TreeRegressor for numbers.")
    if values.dtype.kind == "O":
        if any(value is None or value != value for value in values.tolist()):  # noqa: PLR0124 - NaN
            raise ValueError("Input y contains NaN.")
        cells = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
        sorts = {LABEL_SORTS.get(type(cell)) for cell in cells}
        if None in sorts or len(sorts) > 1:
            raise ValueError("Unknown label type: classes must be all texts, all numbers, or all true or false.")
    if values.dtype.kind not in "fiubOU":
        raise ValueError(f"Unknown label type: {values.dtype}. Give texts, whole numbers, true or false.")
    return values


def _numbers_of(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must be numbers.")
    numbers = values.astype(np.float64)
    if np.any(np.isnan(numbers)):
        raise ValueError("Input y contains NaN.")
    if np.any(np.isinf(numbers)):
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    _check(faults_of_target(numbers), "y")
    return numbers


def _check(faults: Sequence[Fault], name: str) -> None:
    """Refuse what a table of a file is refused for, too."""
    if faults:
        raise EstimatorError(within(pointer(name), faults))


def _optional(module: str, name: str, otherwise: type[Any]) -> type[Any]:
    try:
        found: type[Any] = getattr(import_module(module), name)
    except ImportError:
        return otherwise
    return found
