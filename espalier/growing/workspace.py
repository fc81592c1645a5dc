"""The work arrays of the general grower, created once a tree: what its kernels write while they look for a split.

They always have the same types, so that the grower is compiled once. Arrays that a configuration does not need have one
entry.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from espalier.config.training import TrainingConfig
from espalier.growing.training_data import TrainingData
from espalier.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Validation = tuple[Floats, Floats, Floats]


class Sums(NamedTuple):
    """Statistics of the node and of the branches of a split; width: number of classes, or 4.

    Attributes:
        weight: float64 (n), weight of each row in the node.
        by_class: float64 (n, 2), that weight in the first and in the second class; n = 0 unless there are two classes.
        node, known, unknown: float64 (width), of all rows, of those whose value is known, of the others.
        left, right: Of the split that is looked at; best_left, best_right: of the best one so far.
        ahead_left, ahead_right: After the next block of rows; corner_left, corner_right: at a corner of the block.
        trial: Scratch.
    """

    weight: Floats
    by_class: Floats
    node: Floats
    known: Floats
    unknown: Floats
    left: Floats
    right: Floats
    trial: Floats
    best_left: Floats
    best_right: Floats
    ahead_left: Floats
    ahead_right: Floats
    corner_left: Floats
    corner_right: Floats


class Categories(NamedTuple):
    """The categories of a nominal attribute; P = most categories that can occur in a node.

    Attributes:
        group: float64 (P, width), statistics of each category present.
        n_rows_of: int32 (P), its rows.
        present: int32 (P), its code.
        slot: int32 (most categories), code -> index in `present`, -1 between uses.
        branch: int32 (P), branch of each category present, in the order of `ascending`.
        ascending: int32 (P), indexes in `present`, ascending by code.
        scratch: int32 (P). key: float64 (P), what is sorted by.
        order: int32 (P), an order of the categories that is split in two.
        direction: float64 (3, classes), scratch of the principal component.
    """

    group: Floats
    n_rows_of: Ints
    present: Ints
    slot: Ints
    branch: Ints
    ascending: Ints
    scratch: Ints
    key: Floats
    order: Ints
    direction: Floats


class Medians(NamedTuple):
    """Work arrays of ``absolute_error``.

    Attributes:
        target_rank: int32 (n), dense rank of the target; target_value: float64, distinct targets, ascending.
        bucket: int32 (n), rows by category; bucket_start: int32 (P + 1).
        sequence: int32 (n), rows along an order of categories.
        forward: float64 (n + 1), and the next three: deviations of prefixes.
        weight_tree, sum_tree: float64 (distinct targets + 1).
        progress: float64 (2), the flag that stops a long scan of one attribute.
    """

    target_rank: Ints
    target_value: Floats
    bucket: Ints
    bucket_start: Ints
    sequence: Ints
    forward: Floats
    backward: Floats
    forward_all: Floats
    backward_all: Floats
    weight_tree: Floats
    sum_tree: Floats
    progress: Floats


class CutPoints(NamedTuple):
    """The only thresholds that may be tried, where the caller gives some.

    Attributes:
        start: int64 (F + 1), where an attribute's begin.
        rank: int32, of the largest training value at or below a threshold, -1 below all.
        value: float64.
    """

    start: npt.NDArray[np.int64]
    rank: Ints
    value: Floats


class ValidationRows(NamedTuple):
    """Rows of ``validation_stop``: codes: float64 (F, v), values or codes, NaN missing; target, weight: float64 (v)."""

    codes: Floats
    target: Floats
    weight: Floats


class Workspace(NamedTuple):
    """The work arrays of one growing, in parts."""

    sums: Sums
    categories: Categories
    medians: Medians
    cut_points: CutPoints
    validation: ValidationRows


def workspace(
    data: TrainingData, config: TrainingConfig, columns: Any, validation: Validation | None, progress: Progress
) -> Workspace:
    """Return the work arrays of one tree.

    Args:
        data: The training rows.
        config: The training configuration.
        columns: The kernels' EncodedColumns of the same rows.
        validation: Values or codes, float64 (F, v); target and weight, float64 (v).
        progress: Its stop flag ends a long scan.
    """
    width = data.n_classes or 4
    n_categories = max([1, *(len(feature.categories) for feature in data.attributes if feature.unordered)])
    n_present = min(n_categories, data.n_rows) + 1
    sums = {name: np.zeros(width) for name in Sums._fields}
    sums["weight"] = np.zeros(data.n_rows)
    sums["by_class"] = np.zeros((data.n_rows if data.n_classes == 2 else 0, 2))
    categories = Categories(
        group=np.zeros((n_present, width)),
        slot=np.full(n_categories, -1, np.int32),
        key=np.zeros(n_present),
        direction=np.zeros((3, max(1, data.n_classes))),
        **{
            name: np.zeros(n_present, np.int32)
            for name in ("n_rows_of", "present", "branch", "ascending", "scratch", "order")
        },
    )
    if validation is None:
        validation = np.zeros((len(data.columns), 0)), np.zeros(0), np.zeros(0)
    return Workspace(
        sums=Sums(**sums),
        categories=categories,
        medians=_medians(data, config, progress, n_present),
        cut_points=_cut_points(data, config, columns),
        validation=ValidationRows(*(np.ascontiguousarray(each, dtype=np.float64) for each in validation)),
    )


def looks_beyond_node(config: TrainingConfig, validation: Validation | None) -> bool:
    """Return whether growing a node reads more than its rows: then one call grows all of the tree.

    Other pending nodes, what the path has paid for, validation rows, ranks of the whole table's targets.
    """
    return (
        validation is not None
        or config.criterion == "absolute_error"
        or config.cost_function is not None
        or config.missing == "surrogate"
        or config.max_leaf_nodes is not None
    )


def _medians(data: TrainingData, config: TrainingConfig, progress: Progress, n_present: int) -> Medians:
    rank, value, n_rows = np.zeros(1, np.int32), np.zeros(1), 1
    if config.criterion == "absolute_error":
        value, inverse = np.unique(data.target, return_inverse=True)
        rank, n_rows = inverse.astype(np.int32), data.n_rows + 1
    return Medians(
        target_rank=rank,
        target_value=value,
        bucket=np.zeros(n_rows, np.int32),
        bucket_start=np.zeros(n_present + 1, np.int32),
        sequence=np.zeros(n_rows, np.int32),
        **{name: np.zeros(n_rows) for name in ("forward", "backward", "forward_all", "backward_all")},
        weight_tree=np.zeros(len(value) + 1),
        sum_tree=np.zeros(len(value) + 1),
        progress=progress.state,
    )


def _cut_points(data: TrainingData, config: TrainingConfig, columns: Any) -> CutPoints:
    given: Mapping[str, tuple[float, ...]] = dict(config.cut_points or ())
    start, ranks, cuts = [0], [np.zeros(0, np.int32)], [np.zeros(0)]
    for place, feature in enumerate(data.attributes):
        values = columns.value[columns.value_start[place] : columns.value_start[place + 1]]
        own = np.array(sorted(given.get(feature.name, ())), dtype=np.float64)
        ranks.append((np.searchsorted(values, own, side="right") - 1).astype(np.int32))
        cuts.append(own)
        start.append(start[-1] + len(own))
    return CutPoints(np.array(start, np.int64), np.concatenate(ranks), np.concatenate(cuts))
