"""Missing values at prediction time: derive a model whose strategy is not that of its training.

The new model has its own fallback branches (for ``fractional``, also branch shares), and no surrogates or imputed
values. It shares all other arrays. Only rows without a known value of a tested attribute may get another prediction.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from espalier.arrays import Floats, Longs
from espalier.errors import ConfigError, Fault
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.preparation import Preparation
from espalier.model.rules import RuleList
from espalier.model.tree import Tree, cached_on_owner
from espalier.prediction.leaf_values import with_operating_point

STOP: Final = -2
"""Fallback of a node at which a row without a known value ends. (A fallback of -1 means all branches.)"""

PREDICTION_STRATEGIES: Final[Mapping[str, str]] = {
    "fractional": "down every branch with its share of the training weight; the leaves' predictions are averaged",
    "spread": "the same as fractional",
    "direction": "down the branch learned in training; if there is none, down the heaviest branch",
    "majority": "down the heaviest branch",
    "surrogate": "where another attribute sends the row; only for models trained with surrogate",
    "imputed": "the value is replaced by one learned in training; only for models trained with imputed",
    "last_prediction": "the node that tests the missing value predicts, as if it were a leaf",
}
"""The effect of each strategy on a row at a node that tests a missing value."""


LEARNED: Final[Mapping[str, str]] = {"surrogate": "surrogates", "imputed": "replacements of missing values"}
"""The part of a model that a strategy needs; only training with this strategy provides it."""


def with_missing_strategy(model: Model, missing: str | None) -> Model:
    """Return a model that handles missing values by another strategy.

    Args:
        model: The model.
        missing: One of `PREDICTION_STRATEGIES`; None: the strategy of `model`.

    Returns:
        `model` itself if it has the strategy; otherwise a cached model with the same operating point.

    Raises:
        ConfigError: There is no such strategy, or the model cannot use it.
    """
    if missing is None or missing == model.missing_strategy:
        return model
    other = model.trained or model
    if missing != other.config.missing:
        _check(other, missing)
        other = _with_strategy(other, missing)
    return with_operating_point(other, model.operating_point)


def _check(model: Model, missing: object) -> None:
    if not isinstance(missing, str) or missing not in PREDICTION_STRATEGIES:
        legal = f"must be one of {', '.join(PREDICTION_STRATEGIES)}, or null for the model's own"
        raise ConfigError([Fault("/missing", "unknown_value", legal)])
    own = f"this model handles missing values by {model.config.missing} only"
    if isinstance(model.body, RuleList):
        filled = model.preparation.imputed is not None
        how = (
            "its rules test the value that replaces a missing one"
            if filled
            else "a condition on the value of an attribute does not hold if the value is missing"
        )
        message = f"{own}: {how}"
    elif model.linear is not None:
        message = f"{own}: its linear models need every value"
    elif missing in LEARNED:
        message = f"this model was trained with missing={model.config.missing}, and has learned no {LEARNED[missing]}"
    else:
        return
    raise ConfigError([Fault("/missing", "not_legal", message)])


@cached_on_owner
def _with_strategy(model: Model, missing: str) -> Model:
    tree = model.tree
    fallback = np.where(tree.test == LEAF, -1, FALLBACKS[missing](tree)).astype(np.int32)
    shares = whole_shares(tree) if missing in ("fractional", "spread") else tree.branch_weight
    other = replace(tree, fallback=fallback, branch_weight=shares, surrogates=None)
    preparation = Preparation(scales=model.preparation.scales)
    # A copy of the model, which shares its arrays: a reference to the owner of this cache would delay its release.
    return replace(model, body=other, preparation=preparation, missing=missing, trained=replace(model))


def _heaviest(tree: Tree) -> Longs:
    """Return each node's heaviest branch, the first of equals; 0 at a leaf: int64 (n)."""
    parent = tree.parent[tree.child]
    # Sorted by parent, weight and descending branch, so the last assignment to a parent is the heaviest branch.
    order = np.lexsort((-np.arange(len(parent)), tree.branch_weight, parent))
    heaviest = np.zeros(tree.n_nodes, dtype=np.int64)
    heaviest[parent[order]] = tree.branches[tree.child[order]]
    return heaviest


def whole_shares(tree: Tree) -> Floats:
    """Return `branch_weight`, scaled to add up to 1 at each node; equal shares where all weights are 0."""
    parent = tree.parent[tree.child]
    whole = np.bincount(parent, weights=tree.branch_weight, minlength=tree.n_nodes)[parent]
    even = 1.0 / np.diff(tree.child_start)[parent]
    shares: Floats = np.where(whole > 0, tree.branch_weight / np.where(whole > 0, whole, 1.0), even)
    return np.where(np.isclose(whole, 1.0, rtol=0, atol=1e-12), tree.branch_weight, shares)


FALLBACKS: Final[Mapping[str, Callable[[Tree], Longs | int]]] = {
    "fractional": lambda tree: -1,
    "spread": lambda tree: -1,
    "direction": _heaviest,
    "majority": _heaviest,
    "last_prediction": lambda tree: STOP,
}
