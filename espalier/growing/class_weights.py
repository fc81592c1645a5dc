"""Convert ``class_weight`` to one factor per class."""

from collections.abc import Sequence

import numpy as np

from espalier.arrays import Floats
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.labels import Label, label_text


def class_factors(classes: Sequence[Label], config: TrainingConfig, training: Dataset | None) -> Floats:
    """Return one weight factor per class, float64 (classes). ``balanced`` gives a class without weight the factor 0.

    Only ``balanced`` reads the training rows, `training`. If they are None, ``balanced`` gives each class the factor 1.
    """
    given = config.class_weight
    if training is None or not isinstance(given, str):
        by_name = dict(given) if isinstance(given, tuple) else {}
        return np.array([by_name.get(label_text(label), 1.0) for label in classes])
    sizes = np.bincount(np.asarray(training.target), weights=training.weight, minlength=len(classes))
    present = np.count_nonzero(sizes)
    with np.errstate(divide="ignore"):
        return np.where(sizes > 0, sizes.sum() / (present * sizes), 0.0)
