"""The training rows, test rows and label noise of a comparison. The same seed draws the same rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from espalier.arrays import Ints, Places
from espalier.config.holdout import NATURAL, Holdout
from espalier.data.dataset import Column, Dataset
from espalier.data.schema import Role, Schema
from espalier.data.stratified_folds import fold_of_rows
from espalier.errors import ConfigError, Fault, located
from espalier.training.holdout_rows import held_out_rows, read_holdout

MAX_FOLDS: Final = 1_000
DEFAULT_FOLDS: Final = 10

Test = Places | Dataset
"""The test rows of one training: row numbers of the data set, or another data set."""


def check_comparison(
    schema: Schema,
    names: Sequence[str],
    *,
    n_rows: int,
    folds: int | Sequence[int] | None = None,
    on_one_split: bool = False,
    seed: int = 0,
    label_noise: float = 0.0,
) -> None:
    """Check the arguments of a comparison before anything is trained.

    Args:
        schema: Schema of the data set.
        names: Names of the candidates.
        n_rows: Number of rows of the data set.
        folds: As in `compare`.
        on_one_split: Whether there is a holdout instead of folds.
        seed: As in `compare`.
        label_noise: As in `compare`.

    Raises:
        ConfigError: Arguments are not legal. Every fault is reported with its path.
    """
    faults = []
    twice = [name for name, count in Counter(names).items() if count > 1]
    if not names or twice:
        which = f"; {', '.join(map(repr, twice))} is given more than once" if twice else ""
        message = f"must be at least one candidate, each with its own name{which}"
        faults.append(Fault("/candidates", "not_legal", message))
    if not NATURAL.test(seed):
        faults.append(Fault("/seed", "not_legal", f"must be {NATURAL.text}"))
    is_share = isinstance(label_noise, int | float | np.floating) and 0 <= label_noise < 1
    if not is_share or (label_noise > 0 and schema.task != "classification"):
        message = "must be a share of at least 0 and below 1, and 0 if the target has numbers"
        faults.append(Fault("/label_noise", "not_legal", message))
    if on_one_split and folds is not None:
        faults.append(Fault("/folds", "not_legal", "give either folds or a holdout"))
    elif not on_one_split:
        faults += _faults_of_folds(DEFAULT_FOLDS if folds is None else folds, n_rows)
    ConfigError.raise_for(faults)


def with_label_noise(dataset: Dataset, share: float, *, seed: int = 0) -> Dataset:
    """Return the data set with a random `share` of its rows changed to other classes.

    Each of the other classes is equally likely. The first n_rows random numbers are skipped, because folds and a
    holdout with the same seed use them. So the noise does not depend on which rows are held out.
    """
    place = next(place for place, feature in enumerate(dataset.schema.features) if feature.role is Role.TARGET)
    numbers = np.random.PCG64(seed).random_raw(3 * dataset.n_rows)[dataset.n_rows :]
    rows = np.argsort(numbers[: dataset.n_rows], kind="stable")[: round(share * dataset.n_rows)]
    classes: Ints = np.array(dataset.columns[place], dtype=np.int32)
    n_classes = len(dataset.schema.classes)
    steps = 1 + (numbers[dataset.n_rows :][rows] % np.uint64(n_classes - 1)).astype(np.int32)
    classes[rows] = (classes[rows] + steps) % n_classes
    columns: list[Column] = [classes if each == place else column for each, column in enumerate(dataset.columns)]
    return Dataset(dataset.schema, tuple(columns))


def tests_of(dataset: Dataset, folds: int | Sequence[int] | None, holdout: Any, seed: int) -> list[Test]:
    """Return the test rows of each training: the rows of each fold, or the holdout.

    Raises:
        ConfigError: As in `read_holdout` or `held_out_rows`. Paths begin with /holdout.
    """
    holdout = read_holdout(holdout, dataset)
    if isinstance(holdout, Dataset):
        return [holdout]
    if holdout is not None:
        with located("/holdout"):
            return [held_out_rows(holdout, dataset)]
    if folds is None or isinstance(folds, int | np.integer):
        fold = fold_of_rows(dataset, DEFAULT_FOLDS if folds is None else int(folds), seed=seed)
    else:
        fold = np.unique(folds, return_inverse=True)[1]
    return [np.flatnonzero(fold == each) for each in np.unique(fold).tolist()]


def parts_of(dataset: Dataset, noisy: Dataset, test: Test) -> tuple[Dataset, Dataset]:
    """Return the training rows, taken from `noisy`, and the test rows, which have no label noise."""
    if isinstance(test, Dataset):
        return noisy, test
    return noisy.take(np.delete(np.arange(dataset.n_rows), test)), dataset.take(test)


def why_not_divided(dataset: Dataset, tests: Iterable[Test], holdout: Holdout) -> str | None:
    """Return why `holdout` cannot be drawn from the training rows of one of `tests`; None if it always can."""
    tests = list(tests)
    if _surely_divided(dataset, tests, holdout):
        return None
    for test in tests:
        training_rows, _ = parts_of(dataset, dataset, test)
        reason = f"needs rows held out of the {training_rows.n_rows} training rows"
        try:
            aside = held_out_rows(holdout, training_rows)
        except ConfigError as error:
            return f"{reason}: {error.faults[0].message}"
        if not 0 < np.count_nonzero(training_rows.weight[aside]) < np.count_nonzero(training_rows.weight):
            return f"{reason}: both those set aside and those that remain must have some weight"
    return None


def why_not_weighed(dataset: Dataset, tests: Sequence[Test]) -> str | None:
    """Return why a test is impossible: its test or training rows have no weight. None if all tests are possible."""
    n_weighed = np.count_nonzero(dataset.weight)
    for number, test in enumerate(tests):
        n_tested = np.count_nonzero(test.weight if isinstance(test, Dataset) else dataset.weight[test])
        which = f"fold {number + 1} of {len(tests)}" if len(tests) > 1 else "the holdout"
        if n_tested == 0:
            return f"the rows of {which} have no weight: nothing can be tested on them"
        if n_weighed == (0 if isinstance(test, Dataset) else n_tested):
            return f"the rows outside {which} have no weight: nothing can be learned from them"
    return None


def _surely_divided(dataset: Dataset, tests: Sequence[Test], holdout: Holdout) -> bool:
    """Return whether counts prove that every training has rows to hold out and other rows to learn from.

    Only the largest class is counted (all rows if `holdout` is not stratified), which is faster than drawing rows.
    """
    if holdout.fraction is None or not bool(np.all(dataset.weight > 0)):
        return False
    classes = np.zeros(dataset.n_rows, dtype=np.intp)
    if holdout.stratified and dataset.schema.task == "classification" and dataset.target is not None:
        classes = np.asarray(dataset.target, dtype=np.intp)
    inside = classes == np.bincount(classes).argmax()
    most_tested = max(0 if isinstance(test, Dataset) else int(np.count_nonzero(inside[test])) for test in tests)
    left = int(np.count_nonzero(inside)) - most_tested
    return 0 < round(holdout.fraction * left) < left


def _faults_of_folds(folds: int | Sequence[int], n_rows: int) -> list[Fault]:
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer | Sequence | np.ndarray):
        return [Fault("/folds", "wrong_type", "must be a whole number, or the number of a fold for each row")]
    if isinstance(folds, int | np.integer):
        if n_rows < 2:
            return [Fault("/folds", "not_legal", f"folds need two rows or more, and there is {n_rows}: give a holdout")]
        limit = min(n_rows, MAX_FOLDS)
        if 2 <= folds <= limit:
            return []
        return [Fault("/folds", "not_legal", f"must be from 2 to {limit} (the number of rows, at most {MAX_FOLDS})")]
    whole = all(isinstance(fold, int | np.integer) for fold in folds)
    if whole and len(folds) == n_rows and len(set(folds)) > 1:
        return []
    return [Fault("/folds", "not_legal", "must be the fold of each row, with at least two different folds")]
