"""What a model's record says of the rows that were asked, also where it was written before that was written down."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from espalier.errors import ConfigError
from espalier.model import Model, TrainingRecord
from espalier.pruners import Pruner, ReducedError, needs_held_out, pruning_method

__all__ = ["DIVIDING", "UNNAMED", "is_among", "recorded"]

DIVIDING: Final = ("fractional", "spread")
"""Strategies for missing values by which a row goes several ways."""
UNNAMED: Final = "*"
"""In the place of fingerprints: data sets that an old record does not name."""


def recorded(model: Model) -> TrainingRecord:
    """Give the record of a model; of an old one, what is known of it without the fields that it lacks.

    That is on the safe side: where rows must have been asked, or added, they may be those of any data set (`UNNAMED`),
    and where the strategy for missing values divides rows, some may be.
    """
    record = model.training
    pruners = (model.config.pruning, _pruner_of(model.pruning))
    asks = record.held_out_use == "validation" or model.config.validation_stop or any(map(needs_held_out, pruners))
    backfits = any(isinstance(each, ReducedError) and each.backfit for each in pruners)
    rows = UNNAMED if record.holdout is None else record.fingerprint
    return dataclasses.replace(
        record,
        asked=record.asked or ((UNNAMED,) if asks else ()),
        backfitted=record.backfitted or ((rows,) if backfits else ()),
        divided=True if record.divided is None and model.config.missing in DIVIDING else record.divided,
    )


def is_among(fingerprint: str, named: tuple[str, ...]) -> bool:
    """Say whether a data set is, or may be, one of those that a record names.

    >>> is_among("a", ("a", "b")), is_among("c", ("a", "b")), is_among("c", ("a", UNNAMED))
    (True, False, True)
    """
    return fingerprint in named or UNNAMED in named


def _pruner_of(pruning: Mapping[str, Any] | None) -> Pruner | None:
    """Give the parameters by which a model was pruned; None of what is none, since a document is not taken on trust."""
    if pruning is None:
        return None
    try:
        return pruning_method(**{"method": "", **pruning})
    except ConfigError:
        return None
