"""Check, before any row is read, whether a method can prune a model."""

from typing import Final

import numpy as np

from espalier.config.compatibility import pruning_faults
from espalier.config.pruning import CostComplexity, Pessimistic, Pruner, ReducedError, RulePostPruning, needs_held_out
from espalier.errors import ConfigError, Fault
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.rules import RuleList

NO_STATISTICS: Final = (
    "needs the statistics of training rows at every node: in this imported tree, those of the branches do not add up "
    "to those of their node. Prune it by held-out rows (reduced_error)"
)
SLACK: Final = 1e-3
ROUNDING: Final = 1e-14
"""Squared deviations may differ by this share of the squared mean: scikit-learn subtracts it from the mean square."""


def check_pruning(
    model: Model, method: Pruner, *, has_training_rows: bool = True, validation_data: str | None = None
) -> None:
    """Check whether `method` can prune `model`.

    This function does not check whether held-out rows are given; `needs_held_out` returns whether a method needs them.

    Args:
        model: The model to prune.
        method: A pruning method's parameters.
        has_training_rows: Whether the data set that the model was trained on is available.
        validation_data: Fingerprint of the data set that contains the held-out rows; None for the training data set.

    Raises:
        ConfigError: `method` cannot prune `model`. Paths: ``/method``, ``/holdout``, or a parameter such as ``/folds``.

    >>> from espalier import dataset_from_rows, pruning_method, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> try:
    ...     check_pruning(train(dataset_from_rows(rows, target="play"), "id3"), pruning_method("model_tree"))
    ... except ConfigError as error:
    ...     print(error.faults[0].path, error.faults[0].code)
    /method task
    """
    if isinstance(model.body, RuleList):
        message = "the model is a list of rules, and all methods prune trees: name the version that it was made from"
        raise ConfigError([Fault("/method", "not_a_tree", message)])
    faults = pruning_faults(method, model.config, model.task)
    if not (faults or isinstance(method, ReducedError | RulePostPruning) or statistics_add_up(model)):
        faults.append(Fault("/method", "no_statistics", NO_STATISTICS))
    own, n_rows = [] if has_training_rows else _faults_without_rows(model, method), model.training.n_training_rows
    if has_training_rows and isinstance(method, CostComplexity) and method.select == "cv" and method.folds > n_rows:
        own.append(Fault("/folds", "out_of_range", f"must be at most {n_rows}, the number of training rows"))
    reported = {fault.path for fault in own}
    faults += own + [each for each in _faults_of_backfit(model, method, validation_data) if each.path not in reported]
    ConfigError.raise_for(faults)


def statistics_add_up(model: Model) -> bool:
    """Return whether the statistics of each test of a tree are about the sums of those of its branches.

    In an imported tree, a leaf may repeat its node for missing values, or squared deviations may be unknown.
    """
    if model.training.fingerprint:  # the tree was grown here
        return True
    tree, parent = model.tree, model.tree.parent[1:]
    own, below = tree.stats, tree.stats[1:]
    if not model.schema.classes:
        squares = below[:, 2] + below[:, 0] * (below[:, 1] - own[parent, 1]) ** 2
        own, below = own[:, ::2], np.stack([below[:, 0], squares], axis=1)
    sums = np.stack([np.bincount(parent, column, tree.n_nodes) for column in below.T], axis=1)
    slack = SLACK * (tree.weight[:, None] if model.schema.classes else np.maximum(own, SLACK * own[0]))
    slack[:, -1] += ROUNDING * tree.weight * (0 if model.schema.classes else tree.stats[:, 1] ** 2)
    return bool(np.all((np.abs(sums - own) <= slack)[tree.test != LEAF]))


def _faults_of_backfit(model: Model, method: Pruner, validation_data: str | None) -> list[Fault]:
    """Return the faults that arise because an earlier pruning with `backfit` added held-out rows to the leaves."""
    record = model.training
    if isinstance(method, Pessimistic) and method.raising and record.backfitted:
        message = (
            f"must be false: it counts the {record.n_training_rows} training rows again, and an earlier pruning has "
            "added others to the leaves (backfit)"
        )
        return [Fault("/raising", "combination", message)]
    if not needs_held_out(method) or (validation_data or record.fingerprint) not in record.backfitted:
        return []
    message = (
        "must be rows of another data set: an earlier pruning has added held-out rows of this one to the leaves "
        "(backfit), so they are training rows now; or prune the model from before that pruning"
    )
    return [Fault("/holdout", "learned_from", message)]


def _faults_without_rows(model: Model, method: Pruner) -> list[Fault]:
    gone = "the data set that the model was trained on is not given, or no longer stored"
    if isinstance(method, Pessimistic) and method.raising:
        return [Fault("/raising", "no_training_rows", f"must be false: it counts the training rows again, and {gone}")]
    if isinstance(method, ReducedError) and method.backfit and model.config.class_weight == "balanced":
        message = f"must be false: balanced class weights are computed from the training rows, and {gone}"
        return [Fault("/backfit", "no_training_rows", message)]
    if isinstance(method, CostComplexity) and method.select == "cv":
        message = f"must not be cv, which grows trees on parts of the training rows: {gone}"
        return [Fault("/select", "no_training_rows", message)]
    if isinstance(method, RulePostPruning):
        message = f"must not be rules, which counts the training rows that each rule answers: {gone}"
        return [Fault("/method", "no_training_rows", message)]
    return []
