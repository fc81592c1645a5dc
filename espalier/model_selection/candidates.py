"""Candidates of a comparison, and the checks of their configurations and of the rows that they need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from espalier.config.compatibility import check_training
from espalier.config.holdout import Holdout
from espalier.config.pruning import needs_held_out
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.schema import Schema
from espalier.errors import ConfigError, Fault, pointer, within
from espalier.model_selection.folds_and_label_noise import tests_of, why_not_divided, why_not_weighed, with_label_noise

OF_DATA: Final = ("/target", "/attributes")
"""Paths of the faults that `check_training` finds in the data, whatever the configuration is."""
PRUNING_SHARE: Final = Holdout(fraction=1 / 3, seed=0)
"""The default holdout of a candidate that stops or prunes by held-out rows: a third of its training rows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A training configuration to compare.

    Attributes:
        name: Its name in the result; unique in a comparison.
        config: How the tree is grown and pruned.
        holdout: The training rows that are held out if the candidate stops or prunes by held-out rows.
    """

    name: str
    config: TrainingConfig
    holdout: Holdout = PRUNING_SHARE


def check_candidate_rows(
    dataset: Dataset,
    candidates: Sequence[Candidate],
    *,
    folds: int | Sequence[int] | None = None,
    holdout: Any = None,
    seed: int = 0,
    label_noise: float = 0.0,
) -> None:
    """Check that each training has rows to train on and rows to test on.

    If a candidate stops or prunes by held-out training rows, these and the other training rows must both have weight.
    The arguments are those of `compare`.

    Raises:
        ConfigError: As in `tests_of`. Or the rows of a test or training have no weight (path ``/folds`` or
            ``/holdout``), or rows cannot be held out (path ``/candidates/{i}/pruning`` or ``…/validation_stop``).
    """
    tests = tests_of(dataset, folds, holdout, seed)
    weightless = why_not_weighed(dataset, tests)
    if weightless is not None:
        raise ConfigError([Fault("/folds" if holdout is None else "/holdout", "no_weight", weightless)])
    dividing = [(place, each) for place, each in enumerate(candidates) if each.config.needs_held_out]
    if not dividing:
        return
    noisy = with_label_noise(dataset, label_noise, seed=seed) if label_noise else dataset
    reasons = {share: why_not_divided(noisy, tests, share) for share in {each.holdout for _, each in dividing}}
    faults = [
        Fault(pointer("candidates", place, field), "no_rows", reason)
        for place, each in dividing
        for field in ["pruning" if needs_held_out(each.config.pruning) else "validation_stop"]
        if (reason := reasons[each.holdout]) is not None
    ]
    ConfigError.raise_for(faults)


def check_candidates(schema: Schema, candidates: Sequence[Candidate]) -> None:
    """Check that each configuration can train on data of this schema.

    Raises:
        ConfigError: Each fault of the data, and each fault of a configuration (path ``/candidates/{i}/…``).
    """
    faults: list[Fault] = []
    for place, candidate in enumerate(candidates):
        try:
            check_training(schema, candidate.config)
        except ConfigError as error:
            of_data = [fault for fault in error.faults if fault.path in OF_DATA]
            own = within(pointer("candidates", place), [fault for fault in error.faults if fault not in of_data])
            faults += [fault for fault in (*of_data, *own) if fault not in faults]
    ConfigError.raise_for(faults)
