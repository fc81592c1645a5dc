"""Measure the importance of attributes by the gains of a tree's tests, or by permutation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats
from espalier.config.holdout import NATURAL
from espalier.config.parameter_constraints import Integer
from espalier.data.dataset import Dataset
from espalier.data.readers import as_dataset
from espalier.errors import ConfigError, DataError, Fault, NotApplicable
from espalier.evaluation.metrics import evaluate
from espalier.model.model import Model
from espalier.model.tree import Tree
from espalier.prediction.encode_columns import tested_places
from espalier.progress import Progress

MAX_REPEATS: Final = 1000
LOSS_MEASURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"classification": ("accuracy", "balanced_accuracy", "macro_f1", "log_loss"), "regression": ("rmse", "mae", "r2")}
)
"""For each task, the measures by which a loss can be computed. The first is the default."""
LESS_IS_BETTER: Final = frozenset({"log_loss", "rmse", "mae"})


@dataclass(frozen=True, slots=True)
class PermutationImportance:
    """How much worse a model predicts when the values of one attribute are shuffled among the rows.

    Attributes:
        mean: Mean loss over the shuffles, in the unit of the measure. A loss above 0 means worse predictions.
        deviation: Standard deviation of the losses (with n − 1 in the denominator); 0 for one shuffle.
    """

    mean: float
    deviation: float


def attribute_importances(model: Model) -> Mapping[str, float]:
    """Return each attribute's share of the total gain of a tree's tests, in the order of the schema.

    A test counts with its gain (the decrease of the criterion's impurity in the growth of the tree) times the weight of
    its rows. For the criterion chi_square, the gain alone counts. The shares add up to 1; all are 0 if no test has a
    gain. They favour attributes with many values, which have more thresholds; see also `permutation_importances`.
    Sources: Breiman et al. 1984, section 5.3.4, without surrogates; scikit-learn's ``feature_importances_``.

    Raises:
        NotApplicable: The model is a list of rules, or its document does not give the gain of every test.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"x": x, "z": z, "y": y} for x, z, y in [(1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (3, 2, "c")]]
    >>> attribute_importances(train(dataset_from_rows(rows, target="y"), "cart"))
    mappingproxy({'x': 1.0, 'z': 0.0})
    """
    tree, tests = model.tree, model.tree.feature >= 0
    unknown = np.flatnonzero(tests & np.isnan(tree.gain))
    if len(unknown):
        raise NotApplicable(f"the model's document does not give the gain of node {unknown[0]} (tree.gain)")
    gains = _below_one(np.maximum(tree.gain[tests], 0.0))
    if not model.config.how_split.grows_with_weight:
        gains = gains * _below_one(tree.weight[tests])
    attributes = model.schema.attributes
    sums = np.bincount(tree.feature[tests], gains, minlength=len(attributes))
    total = float(sums.sum())
    shares = sums / total if total > 0 else np.zeros(len(attributes))
    return MappingProxyType(dict(zip((feature.name for feature in attributes), shares.tolist(), strict=True)))


def permutation_importances(
    model: Model,
    dataset: Any,
    *,
    measure: str | None = None,
    repeats: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Mapping[str, PermutationImportance]:
    """Return, for each attribute, how much worse a model predicts when the values of this attribute are shuffled.

    If two attributes carry the same information, a tree may test only one; the other shows no loss. On training rows,
    the loss includes what was learned by chance (Breiman 2001, section 10), so use other rows.

    Args:
        model: A tree or a list of rules.
        dataset: Rows with the model's columns and target: a `Dataset`, or a table as in `train`.
        measure: One of `LOSS_MEASURES` for the task; None: accuracy for classes, rmse for numbers.
        repeats: How often each column is shuffled, from 1 to 1 000.
        seed: Seed of the shuffles, at least 0.
        progress: A `Progress` that another thread may read and stop.

    Raises:
        ConfigError: An argument is not legal.
        DataError: As in `evaluate`, or fewer than two rows have a weight above 0.
        Cancelled: `progress` was stopped.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"x": x, "z": x % 2, "y": "a" if x < 5 else "b"} for x in range(10)]
    >>> dataset = dataset_from_rows(rows, target="y")
    >>> lost = permutation_importances(train(dataset, "cart"), dataset)
    >>> lost["x"].mean > 0, lost["z"].mean
    (True, 0.0)
    """
    legal = LOSS_MEASURES[model.task]
    chosen = legal[0] if measure is None else measure
    if chosen not in legal:
        raise ConfigError([Fault("/measure", "unknown_value", f"must be one of {', '.join(legal)} for {model.task}")])
    counts = {"repeats": (repeats, Integer(1, MAX_REPEATS)), "seed": (seed, NATURAL)}
    illegal = {name: legal for name, (value, legal) in counts.items() if not legal.test(value)}
    ConfigError.raise_for(Fault(f"/{name}", "not_legal", f"must be {legal.text}") for name, legal in illegal.items())
    dataset = as_dataset(dataset, like=model.schema)
    if not np.all(dataset.weight > 0):
        dataset = dataset.take(np.flatnonzero(dataset.weight > 0))
    if dataset.n_rows < 2:
        raise DataError([Fault("", "too_few_rows", "at least two rows are needed to shuffle a column")])
    progress = progress or Progress()
    progress.begin("shuffling")
    whole = _score(model, dataset, chosen, progress)
    parts = (model.tree.surrogates, model.tree.linear) if isinstance(model.body, Tree) else ()
    used = set(tested_places(model)).union(*(part.feature.tolist() for part in parts if part is not None))
    importances = {}
    for place, feature in enumerate(progress.each(model.schema.attributes)):
        lost = np.zeros(repeats)
        if place in used:
            shuffles = _shuffled(dataset, feature.name, np.random.PCG64([seed, place]))
            lost = np.array([whole - _score(model, next(shuffles), chosen, progress) for _ in range(repeats)])
        deviation = float(lost.std(ddof=1)) if repeats > 1 else 0.0
        importances[feature.name] = PermutationImportance(float(lost.mean()), deviation)
    return MappingProxyType(importances)


def _below_one(values: Floats) -> Floats:
    """Divide all values by the same power of two, which is exact. All are then below 1; products cannot overflow."""
    below: Floats = np.ldexp(values, -np.frexp(values.max(initial=0.0))[1])
    return below


def _score(model: Model, dataset: Dataset, measure: str, progress: Progress) -> float:
    """Return the measure, negated if less is better."""
    value: float = getattr(evaluate(model, dataset, progress=progress), measure)
    return -value if measure in LESS_IS_BETTER else value


def _shuffled(dataset: Dataset, name: str, source: "np.random.PCG64") -> Iterator[Dataset]:
    """Yield the data set endlessly, each time with the column `name` in a new random order."""
    place = [feature.name for feature in dataset.schema.features].index(name)
    columns = tuple(dataset.columns)  # memory maps, if the data set is stored
    while True:
        order = np.argsort(source.random_raw(dataset.n_rows), kind="stable")
        yield Dataset(dataset.schema, (*columns[:place], columns[place][order], *columns[place + 1 :]))
