"""Work arrays, cut points and validation rows of the general grower.

Arrays with one entry per row are shortened to at most one entry if the configuration does not use them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from espalier.arrays import Floats
from espalier.config.training_parameters import TrainingConfig
from espalier.growing.kernels.arguments import Categories, CutPoints, Medians, Sums, ValidationRows
from espalier.growing.training_data import TrainingData
from espalier.progress import Progress

Validation = tuple[Floats, Floats, Floats]
"""Validation rows: values or category codes (attributes, rows) with NaN for missing ones, targets, and weights."""


def work_arrays(
    data: TrainingData, config: TrainingConfig, columns: Any, validation: Validation | None, progress: Progress
) -> dict[str, Any]:
    """Return the work arrays, as keyword arguments of `Workspace`."""
    n_categories = max([1, *(len(feature.categories) for feature in data.attributes if feature.unordered)])
    n_present = min(n_categories, data.n_rows) + 1
    if validation is None:
        validation = np.zeros((len(data.columns), 0)), np.zeros(0), np.zeros(0)
    codes, target, weight = (np.ascontiguousarray(each, dtype=np.float64) for each in validation)
    return {
        "sums": new_sums(data.n_rows, data.n_classes),
        "categories": new_categories(n_present, n_categories, data.n_classes),
        "medians": _medians(data, config, progress, n_present),
        "cut_points": _cut_points(data, config, columns),
        "validation": ValidationRows(codes=codes, target=target, weight=weight),
    }


def workspace_for_rows(work: Any, columns: Any, targets: Any, categories: Any) -> Any:
    """Return a workspace for other rows. It shares with `work` all parts that do not depend on the rows."""
    n_rows = len(targets.weight)
    # Ranks of the target are not copied: under absolute_error, which reads them, one call grows the whole tree.
    medians = work.medians if len(work.medians.forward) == 1 else work.medians.replaced(**_prefixes(n_rows + 1))
    sums = new_sums(n_rows, work.parameters.n_classes)
    return work.replaced(columns=columns, targets=targets, sums=sums, categories=categories, medians=medians)


def new_sums(n_rows: int, n_classes: int) -> Any:
    """Return `Sums` for `n_rows` rows, all zero."""
    width = n_classes or 4
    names = ("node", "known", "unknown", "left", "right", "trial", "best_left", "best_right")
    return Sums(weight=np.zeros(n_rows), **{name: np.zeros(width) for name in names})


def new_categories(n_present: int, n_categories: int, n_classes: int) -> Any:
    """Return `Categories` with room for `n_present` categories in a node, and for codes below `n_categories`."""
    names = ("n_rows_of", "present", "branch", "ascending", "scratch", "order")
    return Categories(
        group=np.zeros((n_present, n_classes or 4)),
        slot=np.full(n_categories, -1, np.int32),
        key=np.zeros(n_present),
        direction=np.zeros((3, max(1, n_classes))),
        **{name: np.zeros(n_present, np.int32) for name in names},
    )


def looks_beyond_node(config: TrainingConfig, validation: Validation | None) -> bool:
    """Return whether one call must grow the whole tree.

    It must if splits depend on validation rows, on the ranks of all targets, on other pending nodes or (with costs) on
    attributes that are tested above the node. Surrogates need one call, too: all surrogates are in one table.
    """
    return (
        validation is not None
        or config.how_split.of_medians
        or config.cost_function is not None
        or config.missing == "surrogate"
        or config.max_leaf_nodes is not None
    )


def _medians(data: TrainingData, config: TrainingConfig, progress: Progress, n_present: int) -> Any:
    rank, value = np.zeros(1, np.int32), np.zeros(1)
    n_rows = n_prefixes = 1
    if config.how_split.sums_each_cut:
        n_prefixes = data.n_rows + 1
    if config.how_split.of_medians:
        value, inverse = np.unique(data.target, return_inverse=True)
        rank, n_rows = inverse.astype(np.int32), data.n_rows + 1
    return Medians(
        target_rank=rank,
        target_value=value,
        bucket=np.zeros(n_rows, np.int32),
        bucket_start=np.zeros(n_present + 1, np.int32),
        sequence=np.zeros(n_rows, np.int32),
        **_prefixes(n_prefixes),
        weight_tree=np.zeros(len(value) + 1),
        sum_tree=np.zeros(len(value) + 1),
        progress=progress.state,
    )


def _prefixes(count: int) -> dict[str, Floats]:
    return {name: np.zeros(count) for name in ("forward", "backward", "forward_all", "backward_all")}


def _cut_points(data: TrainingData, config: TrainingConfig, columns: Any) -> Any:
    given: Mapping[str, tuple[float, ...]] = dict(config.cut_points or ())
    start, ranks, cuts = [0], [np.zeros(0, np.int32)], [np.zeros(0)]
    for place, feature in enumerate(data.attributes):
        values = np.asarray(columns.value[columns.value_start[place] : columns.value_start[place + 1]])
        own = np.array(sorted(given.get(feature.name, ())), dtype=np.float64)
        ranks.append((np.searchsorted(values, own, side="right") - 1).astype(np.int32))
        cuts.append(own)
        start.append(start[-1] + len(own))
    return CutPoints(start=np.array(start, np.int64), rank=np.concatenate(ranks), value=np.concatenate(cuts))
