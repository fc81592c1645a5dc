"""Grow a tree: check the data, choose the grower, run it, build the `Tree`.

Sources: Quinlan (1986, 1992, 1993, 1996), Breiman and others (1984), Wang and Witten (1997).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from espalier.arrays import Mask
from espalier.config.criteria import CRITERIA
from espalier.config.training_parameters import (
    COST_FUNCTIONS,
    MISSING_STRATEGIES,
    NOMINAL_SPLITS,
    NUMERIC_SPLITS,
    TrainingConfig,
)
from espalier.data.dataset import Column, Dataset
from espalier.errors import ConfigError, Fault
from espalier.growing import binary_data, binary_grower, finalize, general_grower
from espalier.growing.encode import encoded_columns
from espalier.growing.kernels import constants as c
from espalier.growing.kernels.arguments import GrowParameters, Targets, Workspace
from espalier.growing.training_data import TrainingData, many_valued, training_data, with_imputed
from espalier.growing.workspace import Validation, looks_beyond_node, work_arrays
from espalier.model.preparation import Preparation
from espalier.model.tree import MAX_NODES, Tree
from espalier.progress import Progress
from espalier.threads import n_threads, thread_pool


@dataclass(frozen=True, slots=True)
class Grown:
    """The result of growing: the tree, the preparation of rows (imputed values, scales), and notes for the user."""

    tree: Tree
    preparation: Preparation
    notes: tuple[str, ...] = ()


def grow(
    dataset: Dataset, config: TrainingConfig, *, progress: Progress | None = None, validation: Dataset | None = None
) -> Grown:
    """Grow a tree from the rows of weight above 0. `config.criterion` must be set.

    `validation`, the held-out rows, is read only if ``validation_stop`` is set.

    Raises:
        ConfigError: ``validation_stop`` is set, but `validation` is None.
    """
    progress = progress if progress is not None else Progress()
    if config.validation_stop and validation is None:
        raise ConfigError([Fault("/validation_stop", "required", "needs held-out rows: give a holdout")])
    data = training_data(dataset, config)
    progress.check()
    rows = _validation_rows(validation, data) if config.validation_stop and validation is not None else None
    parameters, threads, is_heuristic = grow_parameters(data, config), n_threads(), None
    with thread_pool(threads) as pool:
        if rows is None and not config.cut_points and binary_data.is_for_binary_grower(parameters, data):
            nodes = binary_grower.grow_binary(parameters, data, progress, pool, threads)
        else:
            columns, orders = encoded_columns(data, config, progress)
            arrays = work_arrays(data, config, columns, rows, progress)
            work = Workspace(parameters=parameters, columns=columns, targets=_targets(data), **arrays)
            task = general_grower.Task(work, orders, looks_beyond_node(config, rows))
            nodes, is_heuristic = general_grower.grow_general(task, data.attributes, progress, pool, threads)
        return finished_tree(nodes, is_heuristic, data, config)


def _validation_rows(validation: Dataset, data: TrainingData) -> Validation:
    columns: Sequence[Column] = validation.attributes
    if data.preparation.imputed is not None:
        columns = with_imputed(data.attributes, columns, data.preparation.imputed)
    values = [
        np.where(column < 0, np.nan, column) if feature.coded else column
        for feature, column in zip(data.attributes, columns, strict=True)
    ]
    table = np.array(values, np.float64).reshape(-1, validation.n_rows)
    return table, np.asarray(validation.target), validation.weight


def finished_tree(
    nodes: finalize.Nodes, is_heuristic: Mask | None, data: TrainingData, config: TrainingConfig
) -> Grown:
    """Return the tree of `nodes`, with the preparation of rows and notes for the user.

    `is_heuristic` is a mask of the nodes whose subset of categories may not be the best, or None if there are none.
    """
    general_grower.raise_for(c.TOO_MANY_NODES if len(nodes.test) > MAX_NODES else c.DONE, data.attributes)
    n_categories = [len(feature.categories) for feature in data.attributes]
    tree, order = finalize.finalize(nodes, n_categories, n_classes=data.n_classes, collapse=config.collapse)
    searched = set() if is_heuristic is None else set(tree.feature[is_heuristic[order]].tolist()) - {-1}
    notes = tuple(
        f"attribute {data.attributes[place].name!r}: at some nodes, its categories were sorted and only split between "
        "neighbours (see nominal=subset): a better grouping may exist"
        for place in sorted(searched)
    )
    return Grown(tree, data.preparation, notes)


def grow_parameters(data: TrainingData, config: TrainingConfig) -> Any:
    """Return the configuration, and the figures of the data that kernels need, as `GrowParameters`."""
    root_sd, root_weight = 0.0, float(data.n_rows)
    if not np.all(data.weight == 1.0):
        root_weight = math.fsum(data.weight)
    if not data.n_classes and (config.min_sd_fraction or config.min_variance_fraction):
        # A root must not vary less than itself because of rounding errors.
        root_sd = _standard_deviation(data, root_weight) * (1 - 1e-9)
    return GrowParameters(
        criterion=list(CRITERIA).index(str(config.criterion)),
        n_classes=data.n_classes,
        nominal=NOMINAL_SPLITS.index(config.nominal),
        numeric=NUMERIC_SPLITS.index(config.numeric),
        observed=int(config.threshold == "observed"),
        window=int(config.window == "c45"),
        mdl_correction=int(config.mdl_correction),
        average_gain_guard=int(config.average_gain_guard),
        missing=MISSING_STRATEGIES.index(config.missing),
        max_surrogates=config.max_surrogates,
        max_depth=-1 if config.max_depth is None else config.max_depth,
        max_leaf_nodes=-1 if config.max_leaf_nodes is None else config.max_leaf_nodes,
        leaf_weight_of_winner=int(config.leaf_weight_rule == "winner"),
        cost_function=(None, *COST_FUNCTIONS).index(config.cost_function),
        all_many_valued=int(bool(np.all(many_valued(data, config) == 1))),
        min_weight_split=config.min_weight_split,
        min_weight_leaf=config.min_weight_leaf,
        min_impurity_decrease=math.nan if config.min_impurity_decrease is None else config.min_impurity_decrease,
        chi_square_alpha=math.nan if config.chi_square_alpha is None else config.chi_square_alpha,
        min_sd=config.min_sd_fraction * root_sd,
        min_variance=config.min_variance_fraction * root_sd**2,
        cost_weight=config.cost_weight,
        cheapest=min([1.0, *dict(config.attribute_costs or ()).values()]),
        root_weight=root_weight,
        has_class_weights=bool(np.any(data.class_scale != 1.0)),
        class_scale=data.class_scale,
    )


def _standard_deviation(data: TrainingData, root_weight: float) -> float:
    """Return the weighted population standard deviation of the target. The mean is corrected for its rounding error."""
    apart = data.target - math.fsum(data.weight * data.target) / root_weight
    rest = math.fsum(data.weight * apart) / root_weight
    return math.sqrt(math.fsum(data.weight * (apart - rest) ** 2) / root_weight)


def _targets(data: TrainingData) -> Any:
    none = np.zeros(data.n_rows)
    return Targets(
        target_class=np.array(data.target if data.n_classes else none, dtype=np.int32),
        target=np.array(none if data.n_classes else data.target, dtype=np.float64),
        weight=np.array(data.weight, dtype=np.float64),
    )
