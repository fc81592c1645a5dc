"""TreeClassifier and TreeRegressor, estimators of scikit-learn.

Every field of `espalier.TrainingConfig` is a parameter, so that a grid search can vary it. A field that is not set has
the preset's value. Some parameters can also be set by the name that scikit-learn's trees give them.
"""

import dataclasses
import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from espalier.arrays import Array, Floats, Ints
from espalier.config.compatibility import pruning_faults
from espalier.config.parameter_constraints import field_table
from espalier.config.presets import training_config
from espalier.config.pruning import CostComplexity
from espalier.config.training_parameters import TrainingConfig
from espalier.data.column import RawColumn
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import declare
from espalier.data.inference import dataset_with_warnings
from espalier.data.labels import Label, label_text
from espalier.data.number_parsing import is_number
from espalier.data.schema import FeatureKind, Schema
from espalier.errors import ConfigError, EstimatorError, Fault, located, pointer, within
from espalier.estimators.sklearn_names import SKLEARN_NAMES, fault_of_alpha, fault_of_holdout, translate
from espalier.estimators.validation import (
    as_label,
    as_numbers,
    read_columns,
    read_like,
    validate_classes,
    validate_numbers,
    validate_table,
    validate_weight,
    with_target,
)
from espalier.evaluation.importances import attribute_importances
from espalier.explanation.explain import Explanation, explain
from espalier.explanation.explanation_text import render_explanation
from espalier.explanation.row_flow import visited_nodes
from espalier.model.model import Model
from espalier.prediction.batch import BatchPrediction, predict_batch
from espalier.prediction.encode_columns import EncodedMatrix, encode_columns
from espalier.prediction.tree_predictor import tree_predictor
from espalier.pruning.cost_complexity import pruning_path
from espalier.training.train import train

FIELD_NAMES: Final = tuple(info.name for info in field_table(TrainingConfig))
OF_PRESET: Final = "preset"
"""The value of a parameter that is not set: the field has the preset's value."""


class _TreeEstimator(BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """The parameters, the fitting and the explanations of both estimators."""

    def __init__(
        self,
        preset: str = "cart",
        *,
        nominal_columns: Sequence[str | int] | None = None,
        min_weight_fraction_leaf: float = 0.0,
        min_samples_leaf: int | float | None = None,
        min_samples_split: int | float | None = None,
        ccp_alpha: float = 0.0,
        random_state: Any = None,
        **fields: Any,
    ) -> None:
        unknown = sorted(set(fields) - set(FIELD_NAMES))
        if unknown:
            legal = ", ".join(inspect.signature(type(self)).parameters)
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}; it has: {legal}")
        self.preset, self.nominal_columns, self.random_state = preset, nominal_columns, random_state
        self.min_weight_fraction_leaf, self.ccp_alpha = min_weight_fraction_leaf, ccp_alpha
        self.min_samples_leaf, self.min_samples_split = min_samples_leaf, min_samples_split
        for name in FIELD_NAMES:
            setattr(self, name, fields.get(name, OF_PRESET))

    def explain(self, X: Any, *, detail: str = "path") -> list[Explanation]:  # noqa: N803 - scikit-learn's name
        """Predict each row of `X` and explain the prediction; see `espalier.explain`."""
        dataset = read_like(self._validated(X), self.model_.schema)
        with located("", EstimatorError):
            return explain(self.model_, dataset.rows(), detail=detail)

    def path_text(self, X: Any) -> list[str]:  # noqa: N803
        """Return the explanation of each row of `X` as text, one line per test."""
        return [render_explanation(explanation) for explanation in self.explain(X)]

    def apply(self, X: Any) -> Ints:  # noqa: N803
        """Return the node number of each row's leaf, int32 (n_rows,); -1 for a row in several leaves.

        If the model is a list of rules, return the number, from 0, of the rule that answers. The default rule is last.
        """
        return self._predicted(X).leaves

    def decision_path(self, X: Any) -> Any:  # noqa: N803
        """Return the nodes that each row visits.

        Returns:
            scipy.sparse.csr_matrix, bool (n_rows, n_nodes): whether a row visits a node of ``model_.tree``. A row with
            a missing value may visit several branches.

        Raises:
            NotApplicable: The model is a list of rules.
        """
        leaves, nodes_to = self.apply(X), tree_predictor(self.model_).nodes_to
        paths = {leaf: nodes_to(leaf) for leaf in np.unique(leaves).tolist() if leaf >= 0}
        divided = np.flatnonzero(leaves < 0)
        rows = iter(read_like(self._validated(X), self.model_.schema).take(divided).rows() if len(divided) else [])
        nodes = [paths[leaf] if leaf >= 0 else visited_nodes(self.model_, next(rows)) for leaf in leaves.tolist()]
        start = np.cumsum([0, *map(len, nodes)])
        columns = np.concatenate(nodes) if nodes else np.zeros(0, dtype=np.int64)
        visits = np.ones(len(columns), dtype=np.bool_)
        return csr_matrix((visits, columns, start), shape=(len(nodes), self.model_.tree.n_nodes))

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:  # noqa: N803
        """Grow the tree without pruning and return its pruning path, as scikit-learn's trees do.

        Returns:
            ``ccp_alphas``: float64 (n_trees,), ascending from 0: the smallest cost of a leaf that yields each tree. The
            first tree is the full tree without subtrees that do not lower the impurity, the last is the root alone.
            ``impurities``: float64 (n_trees,), the mean impurity of each tree's leaves, weighted by their row weights.

        Raises:
            EstimatorError: The impurity cannot be computed from the nodes, or the leaves have linear models.
        """
        model = clone(self).set_params(pruning=None, ccp_alpha=0.0).fit(X, y, sample_weight).model_
        faults = within("/pruning", pruning_faults(CostComplexity(), model.config, model.task))
        EstimatorError.raise_for(map(fault_of_alpha, faults))
        path = pruning_path(model)
        return Bunch(ccp_alphas=path.alpha, impurities=path.risk)

    @property
    def feature_importances_(self) -> Floats:
        """Each column's share of the total gain, float64 (n_columns,); see `espalier.attribute_importances`."""
        check_is_fitted(self, "model_")
        return np.array(list(attribute_importances(self.model_).values()))

    def get_depth(self) -> int:
        """Return the largest number of tests between the root and a leaf."""
        check_is_fitted(self, "model_")
        return self.model_.tree.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self, "model_")
        return self.model_.tree.n_leaves

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Texts are legal, too, but scikit-learn's tag for texts would promise that any object is legal.
        tags.input_tags.allow_nan = True
        return tags

    def _fit(self, table: Any, target: Column, classes: tuple[Label, ...], sample_weight: Any, validation: Any) -> Self:
        weight = validate_weight(sample_weight, len(target))
        columns = read_columns(table, getattr(self, "feature_names_in_", None))
        if isinstance(table, np.ndarray) and table.dtype.kind == "b":
            columns = list(map(as_numbers, columns))
        nominal = [{"name": name, "kind": str(FeatureKind.NOMINAL)} for name in self._nominal_names(columns)]
        with located("", EstimatorError):
            attributes = dataset_with_warnings(columns, declare(schema={"columns": nominal}, missing_values=()))
            dataset = with_target(attributes, target, classes, weight)
            holdout = None if validation is None else self._validation_data(validation, attributes.schema, classes)
            config = self._config(dataset)
            try:
                self.model_: Model = train(dataset, config, holdout=holdout)
            except ConfigError as error:
                faults = [fault_of_holdout(each, dataset.n_rows, holdout) for each in error.faults]
                raise EstimatorError(map(fault_of_alpha, faults) if self.ccp_alpha else faults) from None
        return self

    def _validation_data(self, validation: Any, schema: Schema, classes: tuple[Label, ...]) -> Dataset:
        """Return `validation` as a data set with the columns of the training rows."""
        if not (isinstance(validation, tuple) and len(validation) == 2):
            raise ValueError("validation must be a tuple (X, y)")
        attributes = read_like(validate_table(self, validation[0], reset=False), schema)
        if not classes:
            return with_target(attributes, validate_numbers(validation[1], attributes.n_rows), (), None)
        _, labels, codes = validate_classes(validation[1], attributes.n_rows, least=1)
        known = {label: code for code, label in enumerate(classes)}
        if unknown := [label for label in labels if label not in known]:
            raise ValueError(f"validation has the class {unknown[0]!r}, which is not in y")
        code_of = np.array([known[label] for label in labels], dtype=np.int32)
        return with_target(attributes, code_of[codes], classes, None)

    def _config(self, dataset: Dataset) -> TrainingConfig:
        fields = {name: _plain_value(getattr(self, name)) for name in FIELD_NAMES}
        chosen = {name: value for name, value in fields.items() if not (isinstance(value, str) and value == OF_PRESET)}
        if isinstance(chosen.get("nominal"), list | tuple | np.ndarray):
            del chosen["nominal"]  # the list names columns; how to split them is set by the preset
        if isinstance(chosen.get("class_weight"), Mapping):
            names = [label_text(as_label(label)) for label in chosen["class_weight"]]
            twice, message = [name for name, n in Counter(names).items() if n > 1], "two keys name this class"
            EstimatorError.raise_for(Fault(pointer("class_weight", name), "duplicate", message) for name in twice)
            chosen["class_weight"] = dict(zip(names, map(_plain_value, chosen["class_weight"].values()), strict=True))
        given = {name: _plain_value(getattr(self, name)) for name in SKLEARN_NAMES}
        chosen |= translate(given, chosen, n_rows=dataset.n_rows, has_weights=dataset.schema.weight is not None)
        config = training_config(self.preset, **chosen)
        share = _plain_value(self.min_weight_fraction_leaf)
        if not isinstance(share, int | float) or not 0 <= share <= 0.5:
            message = "must be a number from 0 to 0.5"
            raise EstimatorError([Fault(pointer("min_weight_fraction_leaf"), "not_legal", message)])
        least = max(config.min_weight_leaf, share * float(dataset.weight.sum()))
        return dataclasses.replace(config, min_weight_leaf=least)

    def _nominal_names(self, columns: Sequence[RawColumn]) -> list[str]:
        """Return the names of the columns in ``nominal_columns`` and, if ``nominal`` is a list, in ``nominal``."""
        listed = () if self.nominal_columns is None else self.nominal_columns
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise EstimatorError([Fault("/nominal_columns", "wrong_type", "must be a list of column names or numbers")])
        of_nominal = self.nominal if isinstance(self.nominal, list | tuple | np.ndarray) else ()
        given, names = list(map(_plain_value, [*listed, *of_nominal])), [raw.name for raw in columns]
        name_of = dict(zip([*range(-len(names), len(names)), *names], names * 3, strict=True))
        unknown = [each for each in given if not (isinstance(each, str) or is_number(each)) or each not in name_of]
        legal = f"must be a column's name or its number from {-len(names)} to {len(names) - 1}"
        EstimatorError.raise_for(
            Fault(pointer("nominal_columns", str(each)), "unknown_column", legal) for each in unknown
        )
        return sorted({name_of[each] for each in given})

    def _validated(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self, "model_")
        return validate_table(self, X, reset=False)

    def _predicted(self, X: Any, *, shares: bool = False) -> BatchPrediction:  # noqa: N803
        table, model = self._validated(X), self.model_
        if (
            isinstance(table, np.ndarray)
            and table.dtype in (np.float32, np.float64)
            and model.preparation.imputed is None
            and all(feature.kind is FeatureKind.NUMERIC for feature in model.schema.attributes)
            and not np.isinf(table).any()
        ):
            return predict_batch(model, EncodedMatrix(table.T), shares=shares)  # compiled code reads the array itself
        dataset = read_like(table, model.schema)
        with located("", EstimatorError):
            cells = encode_columns(model.schema, dataset, model.preparation.imputed)
        return predict_batch(model, cells, shares=shares)


class TreeClassifier(ClassifierMixin, _TreeEstimator):  # type: ignore[misc]
    """A decision tree that predicts a class.

    Args:
        preset: Name of a preset, a key of `espalier.PRESETS`.
        nominal_columns: Names or numbers of columns whose values are categories. Columns of texts need not be listed,
            nor categoricals and booleans of a pandas, polars or pyarrow table.
        min_weight_fraction_leaf: Minimum share of the total weight in a leaf; ``min_weight_leaf`` applies, too.
        min_samples_leaf: Minimum number or share of rows in a leaf; sets ``min_weight_leaf``. If rows have weights, a
            minimum of more than one row is refused.
        min_samples_split: Minimum number or share of rows in a split node (``min_weight_split``); not with row weights.
        ccp_alpha: Cost of a leaf in cost-complexity pruning, as in scikit-learn. If it is 0, ``pruning`` applies.
        random_state: Accepted, but not used. Only held-out rows and folds are random: ``seed`` sets the held-out rows.
            The seed of ``pruning`` sets the folds.
        **fields: Fields of `espalier.TrainingConfig`. ``nominal`` may also be a list of nominal columns. The criterion
            may be ``entropy`` or ``log_loss``, scikit-learn's names of ``information_gain``.

    Attributes:
        model_: The trained `espalier.Model`: save it, draw it, prune it.
        classes_: Classes, sorted.
        n_classes_: Number of classes.
        n_features_in_: Number of columns.
        feature_names_in_: Names of the columns; absent if the table has none.

    >>> X = [["sunny", 85.0], ["sunny", 70.0], ["rain", 90.0], ["rain", 65.0]]
    >>> model = TreeClassifier("c45", min_weight_leaf=1).fit(X, ["no", "yes", "no", "yes"])
    >>> model.predict([["sunny", 60.0]]).tolist(), model.explain([["rain", 99.0]])[0].rule
    (['yes'], 'if x1 > 70 then no')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:  # noqa: N803
        """Grow the tree.

        Args:
            X: (n_rows, n_columns): an array, a list of rows, or a pandas, polars or pyarrow table; NaN and None are
                missing values.
            y: (n_rows,): classes.
            sample_weight: (n_rows,): weights of at least 0. None: all weights are 1.
            validation: ``(X, y)`` of other rows, on which the tree is evaluated (``model_.training.held_out``). If the
                configuration needs held-out rows to stop the growth or to prune, these rows are used.

        Raises:
            TypeError: `X` is sparse, only some of its column names are texts, or a cell has a type that is not read.
            ValueError: `validation` is not legal, or scikit-learn's checks refuse the data.
            EstimatorError: Another fault of data or parameters.
        """
        table = validate_table(self, X, reset=True)
        self.classes_, labels, codes = validate_classes(y, len(table))
        self.n_classes_ = len(labels)
        return self._fit(table, codes, labels, sample_weight, validation)

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the predicted class of each row, (n_rows,)."""
        codes = self._predicted(X).answers
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return each row's class probabilities, float64 (n_rows, n_classes), in the order of ``classes_``."""
        return np.asarray(self._predicted(X, shares=True).shares)

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the natural logarithm of `predict_proba`; -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class TreeRegressor(RegressorMixin, _TreeEstimator):  # type: ignore[misc]
    """A decision tree that predicts a number.

    Arguments and attributes are those of `TreeClassifier`, without ``classes_`` and ``n_classes_``.

    >>> TreeRegressor(max_depth=1).fit([[1.0], [2.0], [3.0]], [10.0, 10.0, 40.0]).predict([[2.4], [9.0]]).tolist()
    [10.0, 40.0]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: Any = None) -> Self:  # noqa: N803
        """Grow the tree as `TreeClassifier.fit` does; `y` holds finite numbers."""
        table = validate_table(self, X, reset=True)
        return self._fit(table, validate_numbers(y, len(table)), (), sample_weight, validation)

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return the predicted number for each row, float64 (n_rows,)."""
        return self._predicted(X).answers


def _plain_value(value: Any) -> Any:
    """Convert a numpy scalar, which a grid of parameters may hold, to a Python value; return other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


# scikit-learn reads the parameters from the signature of the constructor, so the signature has every field.
_GIVEN = list(inspect.signature(_TreeEstimator.__init__).parameters.values())[:-1]
_FIELDS = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OF_PRESET) for name in FIELD_NAMES]
_TreeEstimator.__init__.__signature__ = inspect.Signature([*_GIVEN, *_FIELDS])  # type: ignore[attr-defined]
