"""Training and pruning: rows set aside, a tree grown, what remains measured, in that order."""

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.ahead import compiling_ahead
from espalier.config import (
    Holdout,
    TrainingConfig,
    changed_config,
    config_from_dict,
    holdout_from_dict,
    holdout_to_dict,
    resolved,
    training_config,
)
from espalier.dataset import Dataset
from espalier.errors import ConfigError, DataError, Fault, NotApplicable, within
from espalier.evaluation import evaluate
from espalier.growing import Grown, grow
from espalier.linear_fitting import fit_linear_models
from espalier.model import Model, TrainingRecord
from espalier.progress import Progress
from espalier.pruners import PRUNERS, ModelTree, Pruner, changed_pruner, needs_held_out, pruning_method
from espalier.pruning import PRUNING_FUNCTIONS, Pruned, PruningRows
from espalier.rules import RuleList
from espalier.schema import Role, Schema
from espalier.training_checks import check_training
from espalier.tree import LEAF, Tree

__all__ = ["held_out_rows", "needed_holdout", "prune", "row_order", "summary", "train", "train_traced"]

UNPRUNED: Final = "unpruned: the tree is as it was grown"
LARGEST_EXACT: Final = 2.0**53
"""Sums of whole numbers below this are exact."""
PRESET_HOLDOUTS: Final[Mapping[str, float]] = MappingProxyType({"reptree": 1 / 3})
"""The share of the rows that a preset sets aside for its pruning where nothing else is said."""


def train(
    dataset: Dataset,
    config: TrainingConfig | Mapping[str, Any] | str = "cart",
    *,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Model:
    """Grow a model, and prune it if the configuration says so.

    Args:
        dataset: With a target.
        config: A preset's name, a configuration, or the JSON form of one.
        holdout: Rows to set aside before anything is learned (or the JSON form of that), or a data set of its own: to
            measure on, or to stop or prune by. The preset ``reptree`` sets aside a third of the rows if nothing is
            said.
        progress: Watched from, and stopped by, another thread.
        **fields: Fields of `TrainingConfig` that differ from `config`.

    Raises:
        ConfigError: A field, or a configuration that cannot take this data.
        DataError: Rows that cannot be learned from.
        Cancelled: `progress` was stopped.

    >>> from espalier import dataset_from_rows, to_text
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> print(to_text(train(dataset_from_rows(rows, target="play"), "id3")), end="")
    wind is strong: no (1)
    wind is weak: yes (2)
    """
    return _trained(dataset, config, holdout, fields, progress=progress)[0]


def train_traced(
    dataset: Dataset,
    config: TrainingConfig | Mapping[str, Any] | str = "cart",
    *,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> tuple[Model, Mapping[str, Any] | None]:
    """Do what `train` does, and give besides the trace of the pruning; None where the tree is as it was grown.

    Raises:
        ConfigError: A field, or a configuration that cannot take this data.
        DataError: Rows that cannot be learned from.
        Cancelled: `progress` was stopped.
    """
    model, pruned = _trained(dataset, config, holdout, fields, progress=progress)
    return model, None if pruned is None else pruned.trace


def prune(
    model: Model,
    method: Pruner | str,
    *,
    dataset: Dataset | None = None,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **params: Any,
) -> Pruned:
    """Prune a model; the model itself is unchanged.

    Args:
        model: The parent.
        method: A pruning method's parameters, or its name.
        dataset: The data set that the model was trained on: for methods that look at the training rows, and for the
            held-out rows that the model remembers.
        holdout: Rows to prune by or to measure on, instead of those that were set aside at training.
        progress: Watched from, and stopped by, another thread.
        **params: Parameters of the method that differ from `method`.

    Raises:
        ConfigError: A parameter.
        NotApplicable: The method cannot take this model, or the rows that it needs are not there.
        DataError: The rows do not have the model's columns, or `dataset` is another one than the model's.
    """
    watch = progress if progress is not None else Progress()
    holdout = _read_holdout(holdout)
    chosen = _chosen_method(method, params)
    if model.linear is not None and not isinstance(chosen, ModelTree):
        raise NotApplicable("the leaves are linear models, which only model_tree weighs: train with leaf=constant")
    watch.begin("pruning")
    if dataset is not None and dataset.fingerprint != model.training.fingerprint:
        raise DataError([Fault("/dataset", "other_data", "is not the data set that the model was trained on")])
    remembered = model.training.holdout
    asks = needs_held_out(chosen) or holdout is not None or (dataset is not None and remembered is not None)
    held_out = _voting_rows(model, dataset, holdout) if asks else None
    training = None if dataset is None else _set_aside(dataset, remembered)[0]
    watch.check()
    pruned = PRUNING_FUNCTIONS[type(chosen)](model, chosen, PruningRows(training, held_out), watch)
    # What had a part in making the parent had a part in making the child.
    use = "validation" if needs_held_out(chosen) or model.training.held_out_use == "validation" else "holdout"
    record = dataclasses.replace(
        model.training,
        train=_training_figures(pruned.model, dataset, watch),
        held_out=None if held_out is None else _measured(pruned.model, held_out, watch),
        held_out_use=None if held_out is None else use,
    )
    watch.begin("done")
    return dataclasses.replace(pruned, model=dataclasses.replace(pruned.model, training=record))


def held_out_rows(holdout: Holdout, dataset: Dataset) -> npt.NDArray[np.intp]:
    """Give the rows that `holdout` sets aside, ascending; the same for the same data set, everywhere.

    A fraction is the first share of `row_order`; stratified, each class gives its own rounded share.

    Raises:
        ConfigError: A row that is not there, none or all of the rows, or none that has weight.
    """
    holdout = holdout_from_dict(holdout_to_dict(holdout))
    if holdout.rows is not None:
        beyond = [row for row in holdout.rows if row >= dataset.n_rows]
        if beyond:
            message = f"there are {dataset.n_rows} rows, counted from 0; {len(beyond)} numbers are beyond them"
            raise ConfigError([Fault("/rows", "not_legal", message)])
        chosen = np.array(sorted(holdout.rows), dtype=np.intp)
    else:
        order = row_order(dataset.n_rows, holdout.seed)
        share = float(holdout.fraction or 0.0)
        groups = _strata(dataset, order) if holdout.stratified else [order]
        chosen = np.sort(np.concatenate([group[: round(share * len(group))] for group in groups]))
    if not 0 < len(chosen) < dataset.n_rows:
        message = f"sets aside {len(chosen)} of {dataset.n_rows} rows: some must be set aside and some must remain"
        raise ConfigError([Fault("", "not_legal", message)])
    return chosen


def needed_holdout(config: TrainingConfig, holdout: Holdout | Dataset | None) -> Holdout | Dataset | None:
    """Give what a training sets aside: `holdout`, or what the preset sets aside by itself; None for nothing.

    Raises:
        ConfigError: The configuration stops or prunes by held-out rows, and there are none.
    """
    if holdout is not None or not (config.validation_stop or needs_held_out(config.pruning)):
        return holdout
    fraction = PRESET_HOLDOUTS.get(config.preset)
    if fraction is None:
        message = "rows must be set aside: the configuration stops or prunes by rows that are not learned from"
        raise ConfigError([Fault("/holdout", "required", message)])
    return Holdout(fraction=fraction, seed=config.seed)


def row_order(n_rows: int, seed: int) -> npt.NDArray[np.intp]:
    """Give the rows in an order drawn for `seed`: by PCG64's raw numbers, a stream that never changes."""
    return np.argsort(np.random.PCG64(seed).random_raw(n_rows), kind="stable")


def summary(model: Model) -> dict[str, Any]:
    """Give what a person asks first, as JSON: size, task, and figures; what does not apply is None."""
    record = model.training
    return {
        "task": model.task,
        "preset": model.config.preset,
        "n_rows": record.n_rows,
        "n_training_rows": record.n_training_rows,
        "n_attributes": len(model.schema.attributes),
        **_sizes(model.body),
        "train_errors": record.train.get("errors"),
        "train_accuracy": record.train.get("accuracy"),
        "rmse": record.train.get("rmse"),
        "holdout": {"use": record.held_out_use, **record.held_out} if record.held_out is not None else None,
        "pruning": model.pruning,
        "notes": list(model.notes),
    }


def _trained(
    dataset: Dataset,
    config: TrainingConfig | Mapping[str, Any] | str,
    holdout: Holdout | Dataset | Mapping[str, Any] | None,
    fields: Mapping[str, Any],
    *,
    progress: Progress | None,
) -> tuple[Model, Pruned | None]:
    """Train; what was pruned writes its trace only where it is asked for."""
    watch = progress if progress is not None else Progress()
    chosen = config if isinstance(config, TrainingConfig) else _read_config(config)
    chosen = changed_config(chosen, fields)
    check_training(dataset.schema, chosen)
    chosen = resolved(chosen, dataset.schema)
    holdout = needed_holdout(chosen, _read_holdout(holdout))
    kept, held_out = _set_aside(dataset, holdout)
    with ThreadPoolExecutor(1) as pool, compiling_ahead(chosen, watch):
        # Hashing needs no interpreter, so it goes on beside the growing.
        fingerprint = pool.submit(getattr, dataset, "fingerprint")
        grown = grow(kept, chosen, progress=watch, validation=held_out if chosen.validation_stop else None)
    grown = _with_linear_models(grown, kept, chosen, watch)
    record = TrainingRecord(
        n_rows=dataset.n_rows,
        n_training_rows=kept.n_rows,
        fingerprint=fingerprint.result(),
        holdout=holdout if isinstance(holdout, Holdout) else None,
        train={},
    )
    notes = (UNPRUNED, *grown.notes)
    model = Model(_looked_at(dataset.schema), chosen, grown.preparation, grown.tree, record, notes=notes)
    pruned = None
    if chosen.pruning is not None:
        watch.begin("pruning")
        pruned = PRUNING_FUNCTIONS[type(chosen.pruning)](model, chosen.pruning, PruningRows(kept, held_out), watch)
        model = pruned.model
    watch.begin("measuring")
    figures = _figures_of_growing(model, kept, watch) if pruned is None else _measured(model, kept, watch)
    held = _measured(model, held_out, watch) if held_out is not None else None
    use = "validation" if chosen.validation_stop or needs_held_out(chosen.pruning) else "holdout"
    record = dataclasses.replace(record, train=figures, held_out=held, held_out_use=use if held else None)
    watch.begin("done")
    return dataclasses.replace(model, training=record), pruned


def _with_linear_models(grown: Grown, kept: Dataset, config: TrainingConfig, watch: Progress) -> Grown:
    if config.leaf != "linear":
        return grown
    linear = fit_linear_models(grown.tree, kept, grown.preparation.imputed or (), progress=watch)
    return dataclasses.replace(grown, tree=dataclasses.replace(grown.tree, linear=linear))


def _sizes(body: Tree | RuleList) -> dict[str, int | None]:
    tree = body if isinstance(body, Tree) else None
    rules = body if isinstance(body, RuleList) else None
    return {
        "n_leaves": tree.n_leaves if tree else None,
        "n_nodes": tree.n_nodes if tree else None,
        "depth": tree.depth if tree else None,
        "n_rules": rules.n_rules if rules else None,
        "n_conditions": rules.n_conditions if rules else None,
    }


def _read_config(config: Mapping[str, Any] | str) -> TrainingConfig:
    return config_from_dict(config) if isinstance(config, Mapping) else training_config(config)


def _read_holdout(holdout: Any) -> Holdout | Dataset | None:
    if holdout is None or isinstance(holdout, Holdout | Dataset):
        return holdout
    try:
        return holdout_from_dict(holdout)
    except ConfigError as error:
        raise ConfigError(within("/holdout", error.faults)) from None


def _looked_at(schema: Schema) -> Schema:
    """Leave out the categories of ignored columns: a model must not carry the ids of the rows it was trained on."""
    return Schema(
        tuple(
            dataclasses.replace(feature, categories=()) if feature.role is Role.IGNORE else feature
            for feature in schema.features
        ),
        schema.missing_values,
    )


def _set_aside(dataset: Dataset, holdout: Holdout | Dataset | None) -> tuple[Dataset, Dataset | None]:
    if not isinstance(holdout, Holdout):
        return dataset, holdout
    try:
        rows = held_out_rows(holdout, dataset)
    except ConfigError as error:
        raise ConfigError(within("/holdout", error.faults)) from None
    kept = dataset.take(np.setdiff1d(np.arange(dataset.n_rows), rows))
    if not np.any(kept.weight > 0):
        raise ConfigError([Fault("/holdout", "no_weight", "the rows that remain to learn from have no weight")])
    return kept, dataset.take(rows)


def _chosen_method(method: Pruner | str, params: Mapping[str, Any]) -> Pruner:
    if isinstance(method, str):
        return pruning_method(method, **params)
    if type(method) not in PRUNING_FUNCTIONS:
        raise ConfigError([Fault("/method", "unknown_value", f"must be one of {', '.join(PRUNERS)}")])
    return changed_pruner(method, params)


def _voting_rows(model: Model, dataset: Dataset | None, holdout: Holdout | Dataset | None) -> Dataset:
    if isinstance(holdout, Dataset):
        if holdout.fingerprint == model.training.fingerprint:
            raise NotApplicable("the holdout is the data set that the model was trained on: give other rows")
        return holdout
    chosen = holdout if holdout is not None else model.training.holdout
    if chosen is None:
        raise NotApplicable(
            "the model was trained on all rows: pruning needs rows that it has not learned from. Give a holdout, or "
            "train with one"
        )
    if dataset is None:
        raise NotApplicable("the held-out rows are rows of the data set that the model was trained on: give that too")
    if holdout is not None and model.training.holdout != holdout:
        _refuse_training_rows(model, dataset, holdout)
    return _set_aside(dataset, chosen)[1] or dataset


def _refuse_training_rows(model: Model, dataset: Dataset, holdout: Holdout) -> None:
    """A model is never pruned on rows that it was grown from: they would vote for every subtree."""
    asked = held_out_rows(holdout, dataset)
    aside = held_out_rows(model.training.holdout, dataset) if model.training.holdout is not None else asked[:0]
    learned = int(np.count_nonzero(~np.isin(asked, aside)))
    if learned:
        raise NotApplicable(
            f"{learned} of the {len(asked)} rows were learned from: pruning needs rows that were set aside at training"
        )


def _training_figures(model: Model, dataset: Dataset | None, watch: Progress) -> Mapping[str, float]:
    if dataset is None:
        # The training rows are not at hand; their counts are in the leaves.
        return _figures_of_leaves(model)
    kept, _ = _set_aside(dataset, model.training.holdout)
    return _measured(model, kept, watch)


def _measured(model: Model, rows: Dataset, watch: Progress) -> Mapping[str, float]:
    return evaluate(model, rows, progress=watch).figures()


def _figures_of_growing(model: Model, kept: Dataset, watch: Progress) -> Mapping[str, float]:
    """Give the training figures of a tree as it was grown; without routing a row, where its leaves counted them all."""
    tested = {model.schema.attributes[place].name for place in np.unique(model.tree.feature).tolist() if place >= 0}
    whole = float(kept.weight.sum()) < LARGEST_EXACT and bool(np.all(kept.weight == np.rint(kept.weight)))
    counted = model.task == "classification" and model.config.class_weight is None and whole
    if not counted or any(
        bool(np.any(column < 0 if feature.coded else np.isnan(column)))
        for feature, column in zip(kept.schema.features, kept.columns, strict=True)
        if feature.name in tested
    ):
        return _measured(model, kept, watch)
    leaves = model.tree.test == LEAF
    total = float(kept.weight.sum())
    errors = total - float(model.tree.stats[leaves, model.tree.value[leaves]].sum())
    return {"n_rows": kept.n_rows, "errors": errors, "accuracy": 1 - errors / total}


def _figures_of_leaves(model: Model) -> Mapping[str, float]:
    tree = model.tree
    leaves = tree.test == 0
    weight = float(tree.weight[leaves].sum())
    n_rows = model.training.n_training_rows
    if model.task == "classification":
        right = float(tree.stats[leaves, tree.value[leaves]].sum())
        return {"n_rows": n_rows, "errors": weight - right, "accuracy": right / weight}
    if model.config.smoothing is not None:
        # What the nodes above mix in is known only with the rows themselves.
        return {"n_rows": n_rows}
    squares = tree.stats[leaves, 2] if tree.linear is None else tree.linear.squares[leaves]
    return {"n_rows": n_rows, "rmse": float(np.sqrt(squares.sum() / weight))}


def _strata(dataset: Dataset, order: npt.NDArray[np.intp]) -> Sequence[npt.NDArray[np.intp]]:
    if dataset.schema.task != "classification" or dataset.target is None:
        return [order]
    target = np.asarray(dataset.target)[order]
    return [order[target == code] for code in range(len(dataset.schema.classes))]
