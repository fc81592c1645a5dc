"""The data sets whose held-out rows a model has used; older training records do not name them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from espalier.config.pruning import Pruner, ReducedError, needs_held_out, pruning_method
from espalier.errors import ConfigError
from espalier.model.model import Model, TrainingRecord
from espalier.model.rules import RuleList

DIVIDING: Final = ("fractional", "spread")
"""Strategies for missing values that divide a row among several branches."""
UNNAMED: Final = "*"
"""An entry for the data sets that an old record does not name."""
HALF_A_ROW: Final = 0.5
"""A larger difference between the root's weight and the number of rows is not a rounding error."""


def training_record(model: Model) -> TrainingRecord:
    """Return the training record of a model. Fields that an old record lacks get cautious values.

    An old record does not name the data sets whose held-out rows the model used or added to its statistics. So any data
    set may be one of them (`UNNAMED`). If the strategy for missing values can divide rows, `divided` is true.
    """
    record, trained_by = model.training, model.config.pruning
    pruned_by = _pruner_of(model.pruning)
    used = record.held_out_use == "validation" or model.config.needs_held_out or needs_held_out(pruned_by)
    backfitted: tuple[str, ...] = ()
    if backfits(trained_by):
        backfitted = (UNNAMED if record.holdout is None else record.fingerprint,)
    if (backfits(pruned_by) and pruned_by != trained_by) or _counts_more_rows(model):
        backfitted = (UNNAMED,)
    return dataclasses.replace(
        record,
        asked=record.asked or ((UNNAMED,) if used or backfitted else ()),
        backfitted=record.backfitted or backfitted,
        divided=True if record.divided is None and model.config.missing in DIVIDING else record.divided,
    )


def was_used(fingerprint: str, named: tuple[str, ...]) -> bool:
    """Return whether the data set with this fingerprint is, or may be, one of the data sets named in a record.

    >>> was_used("a", ("a", "b")), was_used("c", ("a", "b")), was_used("c", ("a", UNNAMED))
    (True, False, True)
    """
    return fingerprint in named or UNNAMED in named


def backfits(pruner: Pruner | None) -> bool:
    """Return whether a method adds the held-out rows to the statistics of the tree."""
    return isinstance(pruner, ReducedError) and pruner.backfit


def _counts_more_rows(model: Model) -> bool:
    """Return whether the root's weight is not the number of training rows, although each row has the weight 1."""
    if model.schema.weight is not None or model.config.class_weight is not None or isinstance(model.body, RuleList):
        return False
    return abs(float(model.body.weight[0]) - model.training.n_training_rows) > HALF_A_ROW


def _pruner_of(pruning: Mapping[str, Any] | None) -> Pruner | None:
    """Return the method and parameters by which a model was pruned; None if it was not, or if they are not legal."""
    if pruning is None:
        return None
    try:
        return pruning_method(**{"method": "", **pruning})
    except ConfigError:
        return None
