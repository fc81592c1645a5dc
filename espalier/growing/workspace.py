"""The work arrays of the general grower, made once a tree: what its kernels write while they look for a split.

They have one form, so that the grower is compiled once. Arrays that a configuration has no use for are of one entry.
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


class Work(NamedTuple):
    """Statistics of the node and of the sides of a split; width: classes, or 4.

    Attributes:
        weight: float64 (n), of each row in the node.
        by_class: float64 (n, 2), that weight in the first class, and in the second; n = 0 unless there are just two.
        node: float64 (width), and so on down to corner_right; ahead: after the next block of rows.
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


class Groups(NamedTuple):
    """The categories of a nominal attribute; P = most categories that can meet in a node.

    Attributes:
        group: float64 (P, width), statistics of each category present.
        group_rows: int32 (P).
        present: int32 (P), its code.
        slot: int32 (most categories), code -> place in `present`, -1 between uses.
        branch: int32 (P), branch of each category present, in the order of `place`.
        place: int32 (P), places in `present`, ascending by code.
        scratch: int32 (P). key: float64 (P).
    """

    group: Floats
    group_rows: Ints
    present: Ints
    slot: Ints
    branch: Ints
    place: Ints
    scratch: Ints
    key: Floats


class Subsets(NamedTuple):
    """Categories divided in two: order int32 (P), direction float64 (3, classes)."""

    order: Ints
    direction: Floats


class Rare(NamedTuple):
    """What few configurations ask for: medians (`absolute_error`), an expert's cut points, validation rows.

    Attributes:
        target_rank: int32 (n), dense rank of the target; target_value: float64, distinct targets, ascending.
        bucket: int32 (n), rows by category; bucket_start: int32 (P + 1).
        sequence: int32 (n), rows along an order of categories.
        forward: float64 (n + 1), and the next three: deviations of prefixes.
        weight_tree, sum_tree: float64 (distinct targets + 1).
        expert_start: int64 (F + 1); expert_rank: int32, of the largest training value at or below an expert's
            threshold, -1 below all; expert_value: float64.
        valid_codes: float64 (F, v), values or codes, NaN missing; valid_target, valid_weight: float64 (v).
        progress: float64 (2), the flag that stops what takes long within one attribute.
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
    expert_start: npt.NDArray[np.int64]
    expert_rank: Ints
    expert_value: Floats
    valid_codes: Floats
    valid_target: Floats
    valid_weight: Floats
    progress: Floats


def workspace(
    data: TrainingData, config: TrainingConfig, columns: Any, validation: Validation | None, watch: Progress
) -> tuple[Work, Groups, Subsets, Rare]:
    """Return the work arrays of one tree.

    Args:
        data: The training rows.
        config: Of the training.
        columns: The kernels' Columns of the same rows.
        validation: Values or codes, float64 (F, v); target and weight, float64 (v).
        watch: Its state stops what takes long.
    """
    width = data.n_classes or 4
    n_categories = max([1, *(len(feature.categories) for feature in data.attributes if feature.unordered)])
    n_present = min(n_categories, data.n_rows) + 1
    statistics = {name: np.zeros(width) for name in Work._fields}
    statistics["weight"] = np.zeros(data.n_rows)
    statistics["by_class"] = np.zeros((data.n_rows if data.n_classes == 2 else 0, 2))
    groups = Groups(
        group=np.zeros((n_present, width)),
        slot=np.full(n_categories, -1, np.int32),
        key=np.zeros(n_present),
        **{name: np.zeros(n_present, np.int32) for name in ("group_rows", "present", "branch", "place", "scratch")},
    )
    subsets = Subsets(np.zeros(n_present, np.int32), np.zeros((3, max(1, data.n_classes))))
    return Work(**statistics), groups, subsets, _rare(data, config, columns, validation, watch, n_present=n_present)


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


def _rare(
    data: TrainingData,
    config: TrainingConfig,
    columns: Any,
    validation: Validation | None,
    watch: Progress,
    *,
    n_present: int,
) -> Rare:
    rank, value, n_rows = np.zeros(1, np.int32), np.zeros(1), 1
    if config.criterion == "absolute_error":
        value, inverse = np.unique(data.target, return_inverse=True)
        rank, n_rows = inverse.astype(np.int32), data.n_rows + 1
    if validation is None:
        validation = np.zeros((len(data.columns), 0)), np.zeros(0), np.zeros(0)
    start, ranks, cuts = _cut_points(data, config, columns)
    deviations = {name: np.zeros(n_rows) for name in ("forward", "backward", "forward_all", "backward_all")}
    return Rare(
        target_rank=rank,
        target_value=value,
        bucket=np.zeros(n_rows, np.int32),
        bucket_start=np.zeros(n_present + 1, np.int32),
        sequence=np.zeros(n_rows, np.int32),
        **deviations,
        weight_tree=np.zeros(len(value) + 1),
        sum_tree=np.zeros(len(value) + 1),
        expert_start=start,
        expert_rank=ranks,
        expert_value=cuts,
        valid_codes=np.ascontiguousarray(validation[0]),
        valid_target=np.ascontiguousarray(validation[1], dtype=np.float64),
        valid_weight=np.ascontiguousarray(validation[2], dtype=np.float64),
        progress=watch.state,
    )


def _cut_points(data: TrainingData, config: TrainingConfig, columns: Any) -> tuple[npt.NDArray[np.int64], Ints, Floats]:
    """Return the thresholds that alone may be tried, and the place of each among the training values."""
    given: Mapping[str, tuple[float, ...]] = dict(config.cut_points or ())
    start, ranks, cuts = [0], [np.zeros(0, np.int32)], [np.zeros(0)]
    for place, feature in enumerate(data.attributes):
        values = columns.value[columns.value_start[place] : columns.value_start[place + 1]]
        own = np.array(sorted(given.get(feature.name, ())), dtype=np.float64)
        ranks.append((np.searchsorted(values, own, side="right") - 1).astype(np.int32))
        cuts.append(own)
        start.append(start[-1] + len(own))
    return np.array(start, np.int64), np.concatenate(ranks), np.concatenate(cuts)
