"""Estimators with scikit-learn's interface; scikit-learn itself is needed only by what scikit-learn asks of them.

Every field of `espalier.TrainingConfig` is a parameter, so that a grid search can vary it; a field that is left alone
has the preset's own value.
"""

import dataclasses
import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from espalier.arrow import dataset_of_columns, distinct_values
from espalier.bulk_prediction import class_codes, class_shares, leaves_of, numbers
from espalier.cells import Cells, MatrixCells, cells_of
from espalier.config import TrainingConfig, training_config
from espalier.dataset import Dataset
from espalier.declaring import Declared
from espalier.errors import Fault, pointer
from espalier.estimator_input import (
    EstimatorError,
    InputTable,
    label_of,
    lent_dataset,
    names_message,
    not_fitted,
    read_table,
    read_target,
    read_weight,
    refusals_as_values,
    target_name,
    with_target,
)
from espalier.explanation import Explanation, explain, render_explanation
from espalier.fields import field_table
from espalier.importances import attribute_importances
from espalier.model import Model
from espalier.schema import Feature, FeatureKind, Role, label_text
from espalier.training import train

__all__ = ["EstimatorError", "TreeClassifier", "TreeRegressor"]

FIELD_NAMES: Final = tuple(info.name for info in field_table(TrainingConfig))
OF_PRESET: Final = "preset"
"""Value of a field that is left to the preset."""
OWN_PARAMETERS: Final[Mapping[str, Any]] = {"preset": "cart", "nominal_columns": None, "min_weight_fraction_leaf": 0.0}
"""Parameters besides the fields, with their defaults."""


class _TreeEstimator:
    """What both estimators share: parameters, reading of tables, explanations."""

    estimator_type: ClassVar[str]

    def __init__(
        self,
        preset: str = "cart",
        *,
        nominal_columns: Sequence[str | int] | None = None,
        min_weight_fraction_leaf: float = 0.0,
        **fields: Any,
    ) -> None:
        unknown = sorted(set(fields) - set(FIELD_NAMES))
        if unknown:
            legal = ", ".join(_parameter_names())
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}; it has: {legal}")
        self.preset = preset
        self.nominal_columns = nominal_columns
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        for name in FIELD_NAMES:
            setattr(self, name, fields.get(name, OF_PRESET))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - scikit-learn's signature
        """Give every parameter; a field that is left to the preset has the value ``"preset"``."""
        del deep  # no parameter is an estimator
        return {name: getattr(self, name) for name in _parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters; ``"preset"`` leaves a field to the preset again."""
        legal = _parameter_names()
        unknown = [name for name in params if name not in legal]
        if unknown:
            message = f"Invalid parameter {unknown[0]!r} for estimator {self!r}. Valid parameters are: {legal!r}."
            raise ValueError(message)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def explain(self, X: Any, *, detail: str = "path") -> list[Explanation]:  # noqa: N803 - scikit-learn's name
        """Answer each row of `X` and say what led to the answer; see `espalier.explain`."""
        dataset = self._rows_to_answer(X)
        with refusals_as_values():
            return explain(self.model_, dataset.rows(), detail=detail)

    def path_text(self, X: Any) -> list[str]:  # noqa: N803
        """Give the explanation of each row of `X` as text, a line a test."""
        return [render_explanation(explanation) for explanation in self.explain(X)]

    def apply(self, X: Any) -> npt.NDArray[np.int32]:  # noqa: N803
        """Give the node of ``model_.tree`` at which each row ends, (rows,); -1 where several leaves answer."""
        cells = self._cells(X)
        return leaves_of(self.model_, cells)

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """Each column's share of what the tests gain, (columns,); see `espalier.attribute_importances`."""
        self._check_is_fitted()
        return np.array(list(attribute_importances(self.model_).values()))

    def get_depth(self) -> int:
        """Give how many tests lie at most between the root and a leaf."""
        self._check_is_fitted()
        return self.model_.tree.depth

    def get_n_leaves(self) -> int:
        """Give how many leaves the tree has."""
        self._check_is_fitted()
        return self.model_.tree.n_leaves

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name != "preset" and not _is_default(name, value)
        ]
        return f"{type(self).__name__}({', '.join([f'preset={self.preset!r}', *changed])})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415 - optional

        classifies = self.estimator_type == "classifier"
        return Tags(
            estimator_type=self.estimator_type,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifies else None,
            regressor_tags=None if classifies else RegressorTags(),
            # Texts are read too, but scikit-learn's mark for that promises to take any object.
            input_tags=InputTags(allow_nan=True),
        )

    def _fit(self, table: InputTable, target: tuple[Feature, npt.NDArray[Any]], sample_weight: Any) -> None:
        weight = read_weight(sample_weight, table.n_rows)
        dataset = lent_dataset(table, target, weight) if not self._nominal_places(table) else None
        if dataset is None:
            dataset = with_target(self._attributes(table), target, weight)
        with refusals_as_values():
            self.model_: Model = train(dataset, self._config(dataset))
        self.n_features_in_ = len(table.columns)
        if table.names is not None:
            self.feature_names_in_: npt.NDArray[Any] = np.array(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _config(self, dataset: Dataset) -> TrainingConfig:
        fields = {name: getattr(self, name) for name in FIELD_NAMES}
        chosen = {name: _plain_value(value) for name, value in fields.items() if not _is_default(name, value)}
        if isinstance(chosen.get("nominal"), list | tuple):
            del chosen["nominal"]  # the columns were named there; the split is the preset's
        if isinstance(chosen.get("class_weight"), Mapping):
            chosen["class_weight"] = {
                label_text(label_of(label, dataset.schema.classes)): _plain_value(weight)
                for label, weight in chosen["class_weight"].items()
            }
        config = training_config(self.preset, **chosen)
        share = _plain_value(self.min_weight_fraction_leaf)
        if not isinstance(share, int | float) or not 0 <= share <= 0.5:
            message = "must be a number from 0 to 0.5"
            raise EstimatorError([Fault(pointer("min_weight_fraction_leaf"), "not_legal", message)])
        least = max(config.min_weight_leaf, share * _weight_with_classes(dataset, config))
        return dataclasses.replace(config, min_weight_leaf=least)

    def _attributes(self, table: InputTable) -> Dataset:
        places = self._nominal_places(table)
        declared = [
            {"name": column.name, "kind": str(FeatureKind.NOMINAL)}
            for place, column in enumerate(table.columns)
            if place in places
        ]
        with refusals_as_values():
            return dataset_of_columns(table.copied().columns, Declared(schema={"columns": declared}, missing_values=()))

    def _nominal_places(self, table: InputTable) -> set[int]:
        """Find the columns named by ``nominal_columns`` (or by ``nominal``, where that is a list)."""
        split = getattr(self, "nominal", OF_PRESET)
        listed = [*(self.nominal_columns or ()), *(split if isinstance(split, list | tuple | np.ndarray) else ())]
        by_name = {column.name: place for place, column in enumerate(table.columns)}
        places, faults = set(), []
        for given in listed:
            plain = given.item() if isinstance(given, np.generic) else given
            place = by_name.get(plain) if isinstance(plain, str) else plain
            if not isinstance(place, int) or not -len(table.columns) <= place < len(table.columns):
                legal = f"must be a column's name or its number from 0 to {len(table.columns) - 1}"
                faults.append(Fault(pointer("nominal_columns", str(plain)), "unknown_column", legal))
            else:
                places.add(place % len(table.columns))
        if faults:
            raise EstimatorError(faults)
        return places

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise not_fitted(type(self).__name__)

    def _rows_to_answer(self, X: Any) -> Dataset:  # noqa: N803
        self._check_is_fitted()
        table = read_table(X)
        self._check_columns(len(table.columns), table.names)
        named = table.copied().named([feature.name for feature in self.model_.schema.attributes])
        with refusals_as_values():
            return dataset_of_columns(named.columns, Declared(like=self.model_.schema))

    def _check_columns(self, given: int, names: Sequence[str] | None) -> None:
        name = type(self).__name__
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and names is not None and list(fitted) != list(names):
            raise ValueError(names_message(list(fitted), list(names)))
        if given != self.n_features_in_:
            asked = self.n_features_in_
            raise ValueError(f"X has {given} features, but {name} is expecting {asked} features as input")
        if (fitted is None) != (names is None):
            now, then = ("has", "without") if fitted is None else ("does not have valid", "with")
            warnings.warn(f"X {now} feature names, but {name} was fitted {then} feature names", stacklevel=4)

    def _cells(self, X: Any) -> Cells:  # noqa: N803
        if hasattr(self, "model_") and self._takes_plain_numbers() and _is_plain(X):
            self._check_columns(X.shape[1], None)
            return MatrixCells(X.T)
        dataset = self._rows_to_answer(X)
        with refusals_as_values():
            return cells_of(self.model_, dataset)

    def _takes_plain_numbers(self) -> bool:
        attributes = self.model_.schema.attributes
        numeric = all(feature.kind is FeatureKind.NUMERIC for feature in attributes)
        return numeric and self.model_.preparation.imputed is None and not hasattr(self, "feature_names_in_")


class TreeClassifier(_TreeEstimator):
    """A decision tree that answers with a class, with scikit-learn's interface.

    Args:
        preset: ``cart``, ``c45``, … as in `espalier.PRESETS`.
        nominal_columns: Columns without an order, by name or number; texts, categoricals and true/false of a pandas,
            polars or pyarrow table need not be named.
        min_weight_fraction_leaf: Least share of all weight in a leaf; what ``min_weight_leaf`` asks stands beside it.
        **fields: Fields of `espalier.TrainingConfig`. A list as ``nominal`` names columns, too.

    Attributes:
        model_: The trained `espalier.Model`: save it, show it, prune it.
        classes_: Classes, sorted.
        n_features_in_: Number of columns.
        feature_names_in_: Their names, where the table had any.

    >>> X = [["sunny", 85.0], ["sunny", 70.0], ["rain", 90.0], ["rain", 65.0]]
    >>> model = TreeClassifier("c45", min_weight_leaf=1).fit(X, ["no", "yes", "no", "yes"])
    >>> model.predict([["sunny", 60.0]]).tolist(), model.explain([["rain", 99.0]])[0].rule
    (['yes'], 'if x1 > 70 then no')
    """

    estimator_type = "classifier"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Grow the tree.

        Args:
            X: (rows, columns): an array, a list of rows, or a pandas, polars or pyarrow table; NaN and None = missing.
            y: (rows,): labels.
            sample_weight: (rows,): weights of at least 0; None: all 1.

        Raises:
            EstimatorError: Every fault of data or parameters. Plainly wrong shapes are ValueErrors as scikit-learn's.
        """
        table = read_table(X)
        labels = read_target(y, table.n_rows, type(self).__name__, classes=True)
        classes, codes = distinct_values(labels)
        categories = tuple(label_of(label, ()) for label in classes.tolist())
        if len(categories) < 2:
            raise ValueError("y holds one class only: there is nothing to learn")
        target = Feature(target_name(table), FeatureKind.NOMINAL, Role.TARGET, categories)
        self._fit(table, (target, codes.astype(np.int32)), sample_weight)
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Give the class of each row, (rows,)."""
        cells = self._cells(X)
        return np.asarray(self.classes_[class_codes(self.model_, cells)])

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Give the share of each class among the training rows of the leaf, (rows, classes)."""
        cells = self._cells(X)
        return class_shares(self.model_, cells)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Give the share of rows (of their weight) that is classified rightly."""
        answers = self.predict(X)
        right = answers == read_target(y, len(answers), type(self).__name__, classes=True)
        return float(np.average(right, weights=read_weight(sample_weight, len(answers))))


class TreeRegressor(_TreeEstimator):
    """A decision tree that answers with a number, with scikit-learn's interface.

    Arguments and attributes are those of `TreeClassifier`, without classes.

    >>> TreeRegressor(max_depth=1).fit([[1.0], [2.0], [3.0]], [10.0, 10.0, 40.0]).predict([[2.4], [9.0]]).tolist()
    [10.0, 40.0]
    """

    estimator_type = "regressor"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Grow the tree; `y` are finite numbers, the rest as in `TreeClassifier.fit`."""
        table = read_table(X)
        values = read_target(y, table.n_rows, type(self).__name__, classes=False)
        target = Feature(target_name(table), FeatureKind.NUMERIC, Role.TARGET)
        self._fit(table, (target, values), sample_weight)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Give the number of each row, float64 (rows,)."""
        cells = self._cells(X)
        return numbers(self.model_, cells)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Give R², the share of the variance of `y` that is explained; 0 where `y` does not vary and is missed."""
        answers = self.predict(X)
        known = read_target(y, len(answers), type(self).__name__, classes=False)
        weight = read_weight(sample_weight, len(answers))
        missed = float(np.average((known - answers) ** 2, weights=weight))
        spread = float(np.average((known - np.average(known, weights=weight)) ** 2, weights=weight))
        if spread == 0:
            return 1.0 if missed == 0 else 0.0
        return 1 - missed / spread


def _is_plain(X: Any) -> bool:  # noqa: N803
    """Say whether `X` is an array of finite numbers or NaN that compiled code reads as it is."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype in (np.float32, np.float64)
        and not bool(np.isinf(X).any())
    )


def _parameter_names() -> list[str]:
    return [*OWN_PARAMETERS, *FIELD_NAMES]


def _is_default(name: str, value: Any) -> bool:
    default = OWN_PARAMETERS.get(name, OF_PRESET)
    return type(value) is type(default) and bool(value == default)


def _weight_with_classes(dataset: Dataset, config: TrainingConfig) -> float:
    """Give the weight of all rows, each times its class's factor (``balanced`` keeps the sum)."""
    if not isinstance(config.class_weight, tuple):
        return float(dataset.weight.sum())
    factors = dict(config.class_weight)
    of_class = np.array([factors.get(label_text(label), 1.0) for label in dataset.schema.classes])
    return float((dataset.weight * of_class[np.asarray(dataset.target)]).sum())


def _plain_value(value: Any) -> Any:
    """Give a grid's numpy number as Python's own, which a field asks for."""
    return value.item() if isinstance(value, np.generic) else value


def _signature() -> inspect.Signature:
    """Name every field, so that whoever looks at the constructor sees the parameters."""
    word, named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    fields = [inspect.Parameter(name, named, default=OF_PRESET) for name in FIELD_NAMES]
    return inspect.Signature(
        [
            inspect.Parameter("self", word),
            inspect.Parameter("preset", word, default="cart"),
            *(inspect.Parameter(name, named, default=OWN_PARAMETERS[name]) for name in list(OWN_PARAMETERS)[1:]),
            *fields,
        ]
    )


_TreeEstimator.__init__.__signature__ = _signature()  # type: ignore[attr-defined]
