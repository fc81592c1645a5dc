"""The scratch arrays of one tree, made for what its configuration asks for and no more."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.config import TrainingConfig
from espalier.progress import Progress
from espalier.training_table import Table

__all__ = ["scratch_arrays"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

RARE_CUTS = frozenset({"boundary", "median", "near_median"})


def scratch_arrays(
    table: Table, config: TrainingConfig, columns: Any, valid: tuple[Floats, Floats, Floats] | None, watch: Progress
) -> tuple[Any, Any, Any, Any]:
    """Give the kernels' (Work, Groups, Subsets, Rare), None for those that are not asked for.

    Each combination is compiled apart, so there are four and no more: none, Groups, Groups and Subsets, all.

    Args:
        table: The training rows.
        config: Of the training.
        columns: The kernels' Columns of the same rows.
        valid: Validation rows: values or codes, float64 (F, v); target and weight, float64 (v).
        watch: Its state stops what takes long.
    """
    from espalier.kernels import codes, scratch  # noqa: PLC0415 - numba is loaded when a tree is grown, not before

    width = table.n_classes or 4
    nominal = bool(np.any(columns.kind == codes.NOMINAL_KIND))
    is_rare = valid is not None or _is_rare(config, nominal=nominal)
    parts = {name: np.zeros(width) for name in scratch.Work._fields}
    parts["weight"] = np.zeros(table.n_rows)
    parts["by_class"] = np.zeros((table.n_rows if table.n_classes == 2 else 0, 2))
    most = max([1, *(len(feature.categories) for feature in table.attributes if feature.unordered)])
    meeting = min(most, table.n_rows) + 1
    groups = _groups(most, meeting, width) if nominal or is_rare else None
    subsets = None
    if is_rare or (nominal and config.nominal != "multiway"):
        subsets = scratch.Subsets(np.zeros(meeting, np.int32), np.zeros((3, max(1, table.n_classes))))
    rare = _rare(table, config, columns, valid, meeting)._replace(progress=watch.state) if is_rare else None
    return scratch.Work(**parts), groups, subsets, rare


def _is_rare(config: TrainingConfig, *, nominal: bool) -> bool:
    """Whether a configuration asks for anything that no preset does by itself."""
    return (
        config.criterion == "absolute_error"
        or config.numeric in RARE_CUTS
        or bool(config.cut_points)
        or config.cost_function is not None
        or config.chi_square_alpha is not None
        or config.missing == "surrogate"
        or config.max_leaf_nodes is not None
        or (nominal and config.nominal == "one_vs_rest")
        or (nominal and config.nominal == "multiway" and config.missing == "direction")
    )


def _groups(most: int, meeting: int, width: int) -> Any:
    from espalier.kernels import scratch  # noqa: PLC0415

    ints = {name: np.zeros(meeting, np.int32) for name in ("group_rows", "present", "branch", "place", "scratch")}
    slot = np.full(most, -1, dtype=np.int32)
    return scratch.Groups(group=np.zeros((meeting, width)), slot=slot, key=np.zeros(meeting), **ints)


def _rare(
    table: Table, config: TrainingConfig, columns: Any, valid: tuple[Floats, Floats, Floats] | None, meeting: int
) -> Any:
    from espalier.kernels import scratch  # noqa: PLC0415

    rank, value, n_rows = np.zeros(1, dtype=np.int32), np.zeros(1), 1
    if config.criterion == "absolute_error":
        value, inverse = np.unique(table.target, return_inverse=True)
        rank, n_rows = inverse.astype(np.int32), table.n_rows + 1
    if valid is None:
        valid = np.zeros((len(table.columns), 0)), np.zeros(0), np.zeros(0)
    start, ranks, cuts = _experts(table, config, columns)
    tables = ("forward", "backward", "forward_all", "backward_all")
    return scratch.Rare(
        target_rank=rank,
        target_value=value,
        bucket=np.zeros(n_rows, np.int32),
        bucket_start=np.zeros(meeting + 1, np.int32),
        sequence=np.zeros(n_rows, np.int32),
        **{name: np.zeros(n_rows) for name in tables},
        weight_tree=np.zeros(len(value) + 1),
        sum_tree=np.zeros(len(value) + 1),
        expert_start=start,
        expert_rank=ranks,
        expert_value=cuts,
        valid_codes=np.ascontiguousarray(valid[0]),
        valid_target=np.ascontiguousarray(valid[1], dtype=np.float64),
        valid_weight=np.ascontiguousarray(valid[2], dtype=np.float64),
        progress=None,
    )


def _experts(table: Table, config: TrainingConfig, columns: Any) -> tuple[npt.NDArray[np.int64], Ints, Floats]:
    """Give the thresholds that alone may be tried, and the place of each among the training values."""
    given: Mapping[str, tuple[float, ...]] = dict(config.cut_points or ())
    start, ranks, cuts = [0], [np.zeros(0, np.int32)], [np.zeros(0)]
    for place, feature in enumerate(table.attributes):
        values = columns.value[columns.value_start[place] : columns.value_start[place + 1]]
        own = np.array(sorted(given.get(feature.name, ())), dtype=np.float64)
        ranks.append((np.searchsorted(values, own, side="right") - 1).astype(np.int32))
        cuts.append(own)
        start.append(start[-1] + len(own))
    return np.array(start, np.int64), np.concatenate(ranks), np.concatenate(cuts)
