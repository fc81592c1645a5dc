"""Divide the rows of a data set into random folds."""

import numpy as np

from espalier.arrays import Places
from espalier.data.dataset import Dataset


def fold_of_rows(dataset: Dataset, n_folds: int, *, seed: int = 0) -> Places:
    """Return the fold of each row, intp (n_rows,), from 0.

    The rows are spread evenly over the folds; in a classification, the rows of each class are, too. The rows
    are ordered by raw random numbers of PCG64, which are the same in every version of numpy.
    """
    order = np.argsort(np.random.PCG64(seed).random_raw(dataset.n_rows), kind="stable")
    if dataset.schema.task == "classification" and dataset.target is not None:
        order = order[np.argsort(np.asarray(dataset.target)[order], kind="stable")]
    folds = np.empty(dataset.n_rows, dtype=np.intp)
    folds[order] = np.arange(dataset.n_rows) % n_folds
    return folds
