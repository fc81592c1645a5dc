"""Select the rows that are held out of training, and the rows to prune by."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from espalier.arrays import Places
from espalier.config.holdout import Holdout, holdout_from_dict, holdout_to_dict
from espalier.config.presets import PRESET_HOLDOUTS
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.errors import ConfigError, Fault, NotApplicable, located
from espalier.model.model import Model
from espalier.prediction.encode_columns import encode_columns, target_of


def held_out_rows(holdout: Holdout, dataset: Dataset) -> Places:
    """Return the rows that `holdout` selects, intp (n,), ascending.

    A fraction selects this share of the rows at random; if stratified, this share of each class. The number of rows is
    rounded. The same seed and data set always give the same rows.

    Raises:
        ConfigError: `holdout` is not legal, a row does not exist, or no row or every row is held out.
    """
    holdout = holdout_from_dict(holdout_to_dict(holdout))
    if holdout.rows is not None:
        beyond = [row for row in holdout.rows if row >= dataset.n_rows]
        if beyond:
            message = f"there are {dataset.n_rows} rows, counted from 0; {len(beyond)} of the numbers are too large"
            raise ConfigError([Fault("/rows", "not_legal", message)])
        chosen = np.array(sorted(holdout.rows), dtype=np.intp)
    else:
        numbers, share = np.random.PCG64(holdout.seed).random_raw(dataset.n_rows), float(holdout.fraction or 0.0)
        groups = _strata(dataset) if holdout.stratified else [np.arange(dataset.n_rows)]
        drawn = [group[np.argsort(numbers[group], kind="stable")][: round(share * len(group))] for group in groups]
        chosen = np.sort(np.concatenate(drawn))
    if not 0 < len(chosen) < dataset.n_rows:
        message = f"sets aside {len(chosen)} of {dataset.n_rows} rows: some must be set aside and some must remain"
        raise ConfigError([Fault("", "not_legal", message)])
    return chosen


def needed_holdout(config: TrainingConfig, holdout: Holdout | Dataset | None) -> Holdout | Dataset | None:
    """Return `holdout` or, if it is None and the configuration needs held-out rows, the default of the preset.

    Raises:
        ConfigError: The configuration needs held-out rows, but `holdout` is None and the preset has no default.
    """
    if holdout is not None or not config.needs_held_out:
        return holdout
    fraction = PRESET_HOLDOUTS.get(config.preset)
    if fraction is None:
        message = "rows must be set aside: the configuration stops or prunes by held-out rows"
        raise ConfigError([Fault("/holdout", "required", message)])
    return Holdout(fraction=fraction, seed=config.seed)


def read_holdout(holdout: Any, dataset: Dataset | None = None) -> Holdout | Dataset | None:
    """Return `holdout`, or read it from its JSON form; row numbers become Python integers.

    Raises:
        ConfigError: A field is not legal, or `holdout` is a data set that equals `dataset` or has no weight.
    """
    if isinstance(holdout, Dataset) and dataset is not None and holdout.n_rows == dataset.n_rows and holdout == dataset:
        raise ConfigError([Fault("/holdout", "not_legal", "is the training data itself: give other rows")])
    if isinstance(holdout, Dataset) and not np.any(holdout.weight > 0):
        raise ConfigError([Fault("/holdout", "no_weight", "the held-out rows have no weight")])
    if holdout is None or isinstance(holdout, Dataset):
        return holdout
    with located("/holdout"):
        return holdout_from_dict(holdout_to_dict(holdout) if isinstance(holdout, Holdout) else holdout)


def split_holdout(dataset: Dataset, holdout: Holdout | Dataset | None) -> tuple[Dataset, Dataset | None]:
    """Return the training rows, and the held-out rows or None if there are none.

    Raises:
        ConfigError: As in `held_out_rows`, or no training row or no held-out row has weight.
    """
    if not isinstance(holdout, Holdout):
        return dataset, holdout
    with located("/holdout"):
        rows = held_out_rows(holdout, dataset)
    training_rows, held_out = dataset.take(np.delete(np.arange(dataset.n_rows), rows)), dataset.take(rows)
    for part, which in ((training_rows, "rows that remain to learn from"), (held_out, "held-out rows")):
        if not np.any(part.weight > 0):
            raise ConfigError([Fault("/holdout", "no_weight", f"the {which} have no weight")])
    return training_rows, held_out


def as_declared_by(schema: Schema, rows: Dataset) -> Dataset:
    """Return `rows` with the attributes, target, order and codes of `schema`; an unknown or missing category is -1.

    Raises:
        DataError: An attribute or the target is missing or of another kind.
    """
    cells, columns = encode_columns(schema, rows), []
    for place, feature in enumerate(schema.attributes):
        column = np.empty(rows.n_rows)
        cells.write(place, 0, rows.n_rows, column)
        columns.append(np.maximum(column, -1).astype(np.int32) if feature.coded else column)
    target = target_of(schema, rows)
    columns.append(np.maximum(target, -1).astype(np.int32) if schema.classes else target)
    taken = {feature.name for feature in schema.features}  # one may be that of the weight column
    name = next(name for name in map("weight {}".format, range(len(taken) + 1)) if name not in taken)
    weight = Feature(name, FeatureKind.NUMERIC, Role.WEIGHT)
    return Dataset(Schema((*schema.attributes, *filter(None, [schema.target]), weight)), (*columns, rows.weight))


def validation_rows(
    model: Model, dataset: Dataset | None, holdout: Holdout | Dataset | None, remembered: Dataset | None
) -> Dataset:
    """Return the rows to prune by: the rows of `holdout` or, if it is None, the rows that were held out of training.

    `dataset` is the data set that the model was trained on, or None; `remembered` has the held-out rows of `dataset`.

    Raises:
        ConfigError: As in `held_out_rows`.
        NotApplicable: There are no rows to prune by, a training row is among them, or `dataset` is needed, but None.
    """
    if isinstance(holdout, Dataset):
        if holdout.fingerprint == model.training.fingerprint:
            raise NotApplicable("the holdout is the data set that the model was trained on: give other rows")
        return holdout
    if holdout is None and model.training.holdout is None:
        raise NotApplicable(
            "the model was trained on all rows: pruning needs rows that it has not learned from. Give a holdout, or "
            "train with one"
        )
    if dataset is None:
        raise NotApplicable(
            "the held-out rows are rows of the data set that the model was trained on: give that data set, too"
        )
    if holdout is None or holdout == model.training.holdout:
        return remembered or dataset
    with located("/holdout"):
        rows = held_out_rows(holdout, dataset)
    # On training rows, no leaf looks better than the subtree that it would replace.
    aside = held_out_rows(model.training.holdout, dataset) if model.training.holdout is not None else rows[:0]
    learned = int(np.count_nonzero(~np.isin(rows, aside)))
    if learned:
        raise NotApplicable(
            f"{learned} of the {len(rows)} rows were learned from: pruning needs rows that were set aside at training"
        )
    return dataset.take(rows)


def _strata(dataset: Dataset) -> Sequence[Places]:
    if dataset.schema.task != "classification" or dataset.target is None:
        return [np.arange(dataset.n_rows)]
    order = np.argsort(dataset.target, kind="stable")
    bounds = np.searchsorted(dataset.target[order], np.arange(len(dataset.schema.classes) + 1))
    return [order[low:high] for low, high in itertools.pairwise(bounds.tolist())]
