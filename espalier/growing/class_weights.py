"""Convert ``class_weight`` to one factor per class."""

import numpy as np

from espalier.arrays import Floats
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.labels import label_text


def class_factors(dataset: Dataset, config: TrainingConfig) -> Floats:
    """Return one weight factor per class, float64 (classes). ``balanced`` gives a class without weight the factor 0."""
    classes, given = dataset.schema.classes, config.class_weight
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, tuple):
        by_name = dict(given)
        return np.array([by_name.get(label_text(label), 1.0) for label in classes])
    sizes = np.bincount(np.asarray(dataset.target), weights=dataset.weight, minlength=len(classes))
    present = np.count_nonzero(sizes)
    with np.errstate(divide="ignore"):
        return np.where(sizes > 0, sizes.sum() / (present * sizes), 0.0)
