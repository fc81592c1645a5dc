"""Training and pruning: split, grow, prune, evaluate, in this order."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from espalier.config.compatibility import check_training
from espalier.config.holdout import Holdout
from espalier.config.presets import changed_config, config_from_dict, resolved, training_config
from espalier.config.pruning import PRUNERS, Pruner, backfits, changed_pruner, needs_held_out, pruning_method
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.labels import MAX_INTEGER
from espalier.data.readers import as_dataset
from espalier.data.schema import FeatureKind, Role, Schema
from espalier.errors import ConfigError, DataError, Fault, NotApplicable
from espalier.evaluation.metrics import evaluate
from espalier.growing.grow import Grown, grow
from espalier.growing.linear_models import fit_linear_models
from espalier.model.model import Model, TrainingRecord
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree
from espalier.progress import Progress
from espalier.pruning import PRUNING_FUNCTIONS
from espalier.pruning.applicable import check_pruning
from espalier.pruning.result import Pruned, PruningRows, notes_on_classes
from espalier.training.cluster import CONNECT_SECONDS, Cluster
from espalier.training.holdout_rows import as_declared_by, needed_holdout, read_holdout, split_holdout, validation_rows
from espalier.training.out_of_core import check_out_of_core, grow_in_folder, stored_source, work_folder

DIVIDING: Final = ("fractional", "spread")
"""Strategies for missing values that divide a row among several branches."""
SIZES: Final = ("n_leaves", "n_nodes", "depth", "n_rules", "n_conditions")
UNPRUNED: Final = "unpruned: the tree is as it was grown"
USES: Final = ("holdout", "validation")
"""Use of held-out rows, indexed by whether they were used to stop or prune the model."""
OF_HELD_OUT: Final = "held-out rows: "
"""Prefix of a model's notes on its held-out rows."""


def train(
    dataset: Any,
    config: TrainingConfig | Mapping[str, Any] | str = "cart",
    *,
    target: str | None = None,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    memory_limit: int | None = None,
    work: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
    declared: Mapping[str, Any] | None = None,
    on_read: Callable[[Dataset], None] | None = None,
    **fields: Any,
) -> Model:
    """Grow a model, and prune it if so configured.

    Args:
        dataset: A `Dataset` with a target, or a table of pandas, polars or pyarrow. With `memory_limit`: the path of a
            file or of a folder of files, a list of such paths, or an iterator of data sets with the same schema. The
            rows of all files or data sets are joined.
        config: A preset's name, a configuration, or the JSON form of a configuration.
        target: The column to predict. It must not be given with data sets, which declare it themselves.
        holdout: Rows to hold out of training (a `Holdout` or its JSON form), or another data set. The model is
            evaluated on these rows and, if so configured, stopped or pruned by them. ``reptree`` holds out a third.
        progress: Another thread may read and stop it.
        memory_limit: Maximum bytes of memory for the table, which then stays on disk. The model is the same. `work`,
            `cluster`, `declared` and `on_read` need a limit. A holdout and some configurations are refused with it.
        work: The folder for columns and levels, several times as large as the table; by default a temporary folder. A
            training that was killed continues after its last level if it is started again with the same folder.
        cluster: Address of a Dask scheduler (extra ``dask``), such as ``tcp://127.0.0.1:8786``. Its workers search the
            columns, and need the folder `work` at the same path.
        declared: Keyword arguments of `dataset_from_columns`, by name, which declare how files are read.
        on_read: Called with the data set once it is on disk, for example to show its notices.
        **fields: Fields of `TrainingConfig` that differ from `config`.

    Raises:
        ConfigError: A field is not legal, or the configuration does not fit the data.
        DataError: The rows cannot be learned from, the table cannot be read, or the disk is full.
        SchemaError: The declaration of files is not legal.
        OSError: A file cannot be opened.
        ClusterError: The cluster cannot be reached, does not answer or fails; or Dask is not installed.
        Cancelled: `progress` was stopped.

    >>> from espalier import dataset_from_rows, to_text
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> print(to_text(train(dataset_from_rows(rows, target="play"), "id3")), end="")
    wind is strong: no (1)
    wind is weak: yes (2)
    """
    return train_traced(
        dataset, config, target=target, holdout=holdout, progress=progress, memory_limit=memory_limit, work=work,
        cluster=cluster, declared=declared, on_read=on_read, **fields,
    )[0]  # fmt: skip


def train_traced(
    dataset: Any,
    config: TrainingConfig | Mapping[str, Any] | str = "cart",
    *,
    target: str | None = None,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    memory_limit: int | None = None,
    work: str | os.PathLike[str] | None = None,
    cluster: str | None = None,
    declared: Mapping[str, Any] | None = None,
    on_read: Callable[[Dataset], None] | None = None,
    **fields: Any,
) -> tuple[Model, Mapping[str, Any] | None]:
    """Return the model that `train` returns, and the trace of the pruning, which is None without pruning."""
    if memory_limit is None:
        for name, given in {"work": work, "cluster": cluster, "declared": declared, "on_read": on_read}.items():
            if given is not None:
                raise ConfigError([Fault(f"/{name}", "combination", "is only read together with memory_limit")])
        return _trained(_as_dataset(dataset, target), _chosen_config(config, fields), holdout, progress=progress)
    chosen = _chosen_config(config, fields)
    check_out_of_core(chosen, holdout, memory_limit)
    if cluster is not None and work is None:
        raise ConfigError([Fault("/cluster", "combination", "needs the folder `work`, which its workers share")])
    if cluster is not None:  # checked before the table is read
        Cluster.at(cluster).client.close(timeout=CONNECT_SECONDS)
    progress = progress or Progress()
    with work_folder(None if work is None else Path(work).absolute()) as folder:
        progress.begin("loading")
        stored = stored_source(dataset, target, declared or {}, folder, progress)
        if on_read is not None:
            on_read(stored)
        grower = partial(
            grow_in_folder, folder=folder, memory_limit=memory_limit, is_kept=work is not None, cluster=cluster
        )
        return _trained(stored, chosen, None, progress=progress, grower=grower)


def prune(
    model: Model,
    method: Pruner | str,
    *,
    dataset: Any = None,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **params: Any,
) -> Pruned:
    """Prune a model; the model itself is unchanged.

    Args:
        model: The model to prune.
        method: The parameters of a pruning method, or its name.
        dataset: The data set or table that the model was trained on. It has the training rows, and rows held out of it.
        holdout: Rows to prune by and to evaluate on, instead of the rows that were held out of training.
        progress: Another thread may read and stop it.
        **params: Parameters of the method that differ from `method`.

    Raises:
        ConfigError: A parameter or the holdout is not legal.
        NotApplicable: The method does not fit the model. Rows that it needs are missing. Held-out rows are training
            rows. Or the model has an operating point, or another strategy for missing values than in training.
        DataError: The rows do not have the model's columns, or `dataset` is not the one the model was trained on.
        Cancelled: `progress` was stopped.
    """
    progress = progress or Progress()
    holdout = read_holdout(holdout)
    chosen = _chosen_method(method, params)
    if model.trained is not None:
        reason = "the model has an operating point, or another strategy for missing values than in training"
        raise NotApplicable(f"{reason}: prune its attribute `trained`")
    validation_data = holdout.fingerprint if isinstance(holdout, Dataset) else model.training.fingerprint
    try:
        check_pruning(model, chosen, has_training_rows=dataset is not None, validation_data=validation_data)
    except ConfigError as error:
        raise NotApplicable("; ".join(f"{fault.path[1:]}: {fault.message}" for fault in error.faults)) from None
    progress.begin("pruning")
    dataset = None if dataset is None else as_dataset(dataset, like=model.schema)
    if dataset is not None and dataset.fingerprint != model.training.fingerprint:
        raise DataError([Fault("/dataset", "other_data", "is not the data set that the model was trained on")])
    remembered = model.training.holdout
    needs_rows = needs_held_out(chosen) or holdout is not None or (dataset is not None and remembered is not None)
    training, held_aside = (None, None) if dataset is None else split_holdout(dataset, remembered)
    held_out = validation_rows(model, dataset, holdout, held_aside) if needs_rows else None
    progress.check()
    rows = PruningRows(training, held_out)
    pruned = PRUNING_FUNCTIONS[type(chosen)](model, chosen, rows, progress)
    progress.begin("measuring")
    record = _record_of(pruned.model, rows, progress, by=chosen, validation_data=validation_data)
    notes = [note for note in pruned.model.notes if not note.startswith(OF_HELD_OUT)]
    about = _held_out_notes(model, held_out)
    progress.begin("done")
    return replace(pruned, model=replace(pruned.model, training=record, notes=(*notes, *about)))


def summary(model: Model) -> dict[str, Any]:
    """Return size, task and figures of a model as JSON; a figure that does not apply is None."""
    record = model.training
    return {
        "task": model.task,
        "preset": model.config.preset,
        "n_rows": record.n_rows,
        "n_training_rows": record.n_training_rows,
        "n_attributes": len(model.schema.attributes),
        **{name: getattr(model.body, name, None) for name in SIZES},
        "train_errors": record.train.get("errors"),
        "train_accuracy": record.train.get("accuracy"),
        "rmse": record.train.get("rmse"),
        "holdout": {"use": record.held_out_use, **record.held_out} if record.held_out is not None else None,
        "pruning": model.pruning,
        "notes": list(model.notes),
    }


def _as_dataset(table: Any, target: str | None) -> Dataset:
    if isinstance(table, Dataset) and target is not None:
        message = "must not be given with a Dataset, which declares its target itself"
        raise ConfigError([Fault("/target", "not_legal", message)])
    return as_dataset(table, target=target)


def _trained(
    dataset: Dataset,
    chosen: TrainingConfig,
    holdout: Holdout | Dataset | Mapping[str, Any] | None,
    *,
    progress: Progress | None,
    grower: Callable[[Dataset, TrainingConfig, Progress], Grown] | None = None,
) -> tuple[Model, Mapping[str, Any] | None]:
    progress = progress or Progress()
    check_training(dataset.schema, chosen)
    chosen = resolved(chosen, dataset.schema)
    holdout = needed_holdout(chosen, read_holdout(holdout, dataset))
    training_rows, held_out = split_holdout(dataset, holdout)
    with ThreadPoolExecutor(1) as pool:
        # Hashing releases the GIL, so it runs while the tree is grown.
        fingerprint = pool.submit(getattr, dataset, "fingerprint")
        validation = held_out if chosen.validation_stop else None
        if isinstance(holdout, Dataset) and validation is not None:
            validation = as_declared_by(dataset.schema, validation)
        if grower is None:
            grown = grow(training_rows, chosen, progress=progress, validation=validation)
        else:
            grown = grower(training_rows, chosen, progress)
    if chosen.leaf == "linear":
        linear = fit_linear_models(grown.tree, training_rows, grown.preparation.imputed or (), progress=progress)
        grown = replace(grown, tree=replace(grown.tree, linear=linear))
    remembered = holdout if isinstance(holdout, Holdout) else None
    record = TrainingRecord(dataset.n_rows, training_rows.n_rows, fingerprint.result(), remembered, train={})
    notes = (UNPRUNED, *grown.notes)
    model = Model(_without_ids(dataset.schema), chosen, grown.preparation, grown.tree, record, notes=notes)
    about, trace = _held_out_notes(model, held_out), None
    if chosen.pruning is not None:
        progress.begin("pruning")
        rows = PruningRows(training_rows, held_out)
        pruned = PRUNING_FUNCTIONS[type(chosen.pruning)](model, chosen.pruning, rows, progress)
        model, trace = pruned.model, pruned.trace
    progress.begin("measuring")
    figures = _figures_of_training(model, training_rows, progress, counted=not backfits(chosen.pruning))
    divided = _divides(model, grown.tree, training_rows) if chosen.missing in DIVIDING else None
    record = replace(record, train=figures, divided=divided)
    if held_out is not None:
        held = evaluate(model, held_out, progress=progress).figures()
        validation_data = record.fingerprint if remembered is not None else held_out.fingerprint
        is_asked = chosen.needs_held_out
        record = _after_use(record, held, validation_data, asked=is_asked, backfitted=backfits(chosen.pruning))
    progress.begin("done")
    return replace(model, training=record, notes=(*model.notes, *about)), trace


def _held_out_notes(model: Model, held_out: Dataset | None) -> list[str]:
    return [] if held_out is None else [f"{OF_HELD_OUT}{note}" for note in notes_on_classes(model, held_out)]


def _after_use(
    record: TrainingRecord, figures: Mapping[str, float], validation_data: str, *, asked: bool, backfitted: bool
) -> TrainingRecord:
    """Return a record with `figures`. If true, `asked` and `backfitted` add `validation_data` to the field so named."""
    all_asked = tuple(dict.fromkeys((*record.asked, *([validation_data] if asked else ()))))
    all_backfitted = tuple(dict.fromkeys((*record.backfitted, *([validation_data] if backfitted else ()))))
    # Rows used to stop or prune the parent count as used for the pruned model, too.
    use = USES[validation_data in all_asked]
    return replace(record, held_out=figures, held_out_use=use, asked=all_asked, backfitted=all_backfitted)


def _record_of(
    model: Model, rows: PruningRows, progress: Progress, *, by: Pruner, validation_data: str
) -> TrainingRecord:
    record = replace(model.training, held_out=None, held_out_use=None)
    if rows.held_out is not None:
        held = evaluate(model, rows.held_out, progress=progress).figures()
        record = _after_use(record, held, validation_data, asked=needs_held_out(by), backfitted=backfits(by))
    if rows.training is None:
        return replace(record, train=_figures_of_leaves(replace(model, training=record)))
    figures = _figures_of_training(model, rows.training, progress, counted=not record.backfitted)
    return replace(record, train=figures)


def _chosen_config(config: TrainingConfig | Mapping[str, Any] | str, fields: Mapping[str, Any]) -> TrainingConfig:
    if not isinstance(config, TrainingConfig):
        config = config_from_dict(config) if isinstance(config, Mapping) else training_config(config)
    return changed_config(config, fields)


def _without_ids(schema: Schema) -> Schema:
    """Return the schema without categories of ignored nominal columns, because a model must not contain ids."""
    ids = (Role.IGNORE, FeatureKind.NOMINAL)
    features = [replace(each, categories=()) if (each.role, each.kind) == ids else each for each in schema.features]
    return Schema(tuple(features), schema.missing_values)


def _chosen_method(method: Pruner | str, params: Mapping[str, Any]) -> Pruner:
    if isinstance(method, str):
        return pruning_method(method, **params)
    if type(method) not in PRUNING_FUNCTIONS:
        raise ConfigError([Fault("/method", "unknown_value", f"must be one of {', '.join(PRUNERS)}")])
    return changed_pruner(method, params)


def _figures_of_training(
    model: Model, training_rows: Dataset, progress: Progress, *, counted: bool
) -> Mapping[str, float]:
    """Return the training figures. `counted` is true if the leaves count each training row once and no other rows."""
    weight = training_rows.weight
    total = float(weight.sum())
    is_whole = training_rows.schema.weight is None or (total < MAX_INTEGER and bool(np.all(weight == np.rint(weight))))
    countable = counted and model.task == "classification" and model.config.class_weight is None and is_whole
    if countable and isinstance(model.body, Tree) and not _divides(model, model.tree, training_rows):
        leaves = np.flatnonzero(model.tree.test == LEAF)
        errors = total - float(model.tree.stats[leaves, model.tree.value[leaves]].sum())
        return {"n_rows": training_rows.n_rows, "errors": errors, "accuracy": 1 - errors / total}
    return evaluate(model, training_rows, progress=progress).figures()


def _divides(model: Model, tree: Tree, training_rows: Dataset) -> bool:
    """Return whether a training row may lack a value that `tree` tests; some strategies divide such rows."""
    tested = {training_rows.schema.attributes[place].name for place in tree.tested()}
    # Subtree raising may bring rows to a test that has no branch for their category, which then counts as missing.
    raised = (model.pruning or {}).get("raising", False) and bool(np.any(tree.code_branch < 0))
    return raised or not tested.isdisjoint(training_rows.has_missing)


def _figures_of_leaves(model: Model) -> Mapping[str, float]:
    """Return the training figures, computed from the statistics of the leaves, without the rows.

    If statistics include other rows, class weights or divided rows, if leaves are smoothed or predict medians, or if
    the figures of the unpruned model are unknown (it is imported), only the number of rows is returned.
    """
    tree, record, config = model.tree, model.training, model.config
    figures: dict[str, float] = {"n_rows": record.n_training_rows}
    is_weighed = config.class_weight is not None or config.smoothing is not None
    # If a leaf predicts the median, its statistics are about the mean nevertheless.
    is_divided = config.missing in DIVIDING and record.divided is not False  # an older record does not say it
    if len(record.train) == 1 or record.backfitted or is_divided or is_weighed or config.how_split.of_medians:
        return figures
    leaves = tree.test == LEAF
    weight = float(tree.weight[leaves].sum())
    if model.task == "classification":
        right = float(tree.stats[leaves, tree.value[leaves]].sum())
        return figures | {"errors": weight - right, "accuracy": right / weight}
    squares = tree.stats[leaves, 2] if tree.linear is None else tree.linear.squares[leaves]
    return figures | {"rmse": float(np.sqrt(squares.sum() / weight))}
