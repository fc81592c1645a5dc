"""Growing a tree: the obvious way, one node after the other.

Every candidate split of every attribute is a value, "no split" too; the best one of a node is taken, its rows are
shared out, and the children are grown in turn. Definitions: docs of `espalier.config`, and Quinlan (1986, 1993, 1996), Breiman
et al. (1984).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.config import TrainingConfig
from espalier.dataset import Dataset
from espalier.errors import ConfigError, DataError, Fault
from espalier.preparation import Preparation
from espalier.progress import Progress
from espalier.tree import LEAF, NOMINAL, NUMERIC, Tree, tree_from_parents

__all__ = ["Grown", "grow"]

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

C45_TIE: Final = 1e-6
C45_NEIGHBOURS: Final = 1e-5
MANY_VALUED_SHARE: Final = 0.3
GUARD_SLACK: Final = 1e-3
COLLAPSE_SLACK: Final = 1e-3
MAX_EXHAUSTIVE: Final = 10


@dataclass(frozen=True, slots=True)
class Grown:
    """What growing gives: the tree, what a row needs before it, and what a person should know."""

    tree: Tree
    preparation: Preparation
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Split:
    """A candidate: what it tests, how good it is, and the branch of each row of the node."""

    feature: int
    score: float
    gain: float
    branch: npt.NDArray[np.int32]
    n_branches: int
    threshold: float = math.nan
    codes: tuple[int, ...] = ()


@dataclass(slots=True)
class Nodes:
    """The columns of the tree while it grows, in preorder."""

    parent: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    test: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    codes: list[tuple[int, ...]] = field(default_factory=list)
    fallback: list[int] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    stats: list[Floats] = field(default_factory=list)
    value: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """The training rows as the grower reads them; ``target`` is class codes or numbers."""

    columns: tuple[npt.NDArray[Any], ...]
    n_categories: tuple[int, ...]
    nominal: tuple[bool, ...]
    sorted_values: tuple[Floats | None, ...]
    target: npt.NDArray[Any]
    weight: Floats
    n_classes: int


def grow(
    dataset: Dataset,
    config: TrainingConfig,
    *,
    progress: Progress | None = None,
    validation: Dataset | None = None,
) -> Grown:
    """Grow a tree from all rows of `dataset`.

    Raises:
        ConfigError: The configuration asks for what this grower cannot do.
        DataError: An attribute has missing values and the configuration does not impute them.
        Cancelled: `progress` was stopped.
    """
    watch = progress if progress is not None else Progress()
    watch.begin("growing")
    _check(dataset, config)
    table = _table(dataset)
    nodes = Nodes()
    total = float(table.weight.sum())
    everything = np.flatnonzero(table.weight > 0)
    open_attributes = frozenset(range(len(table.columns)))
    stack: list[tuple[int, float, int, Rows, frozenset[int]]] = [(-1, math.nan, 0, everything, open_attributes)]
    while stack:
        watch.check()
        parent, share, depth, rows, usable = stack.pop()
        node = _append(nodes, table, rows, parent=parent, share=share)
        split = None if _stops(nodes, table, node, depth, config) else _best_split(table, rows, usable, config, total)
        if split is None:
            watch.state[0] += nodes.weight[node] / total
            continue
        stack.extend(reversed(_branches(nodes, table, node, depth, rows, usable, split, config)))
    tree = _frozen(nodes, table)
    if config.collapse:
        tree = _collapsed(tree)
    return Grown(tree, Preparation())


def _check(dataset: Dataset, config: TrainingConfig) -> None:
    missing = [
        feature.name
        for feature, column in zip(dataset.schema.attributes, dataset.attributes, strict=True)
        if (np.any(column < 0) if feature.coded else np.any(np.isnan(column)))
    ]
    if missing:
        raise DataError(
            [Fault(f"/{name}", "missing", "has missing values, which cannot be learned from yet") for name in missing]
        )
    untold = [
        name
        for name, legal in {"nominal": ("multiway", "subset"), "numeric": ("best", "none")}.items()
        if getattr(config, name) not in legal
    ]
    if untold:
        raise ConfigError([Fault(f"/{name}", "not_legal", "is not one that can be grown yet") for name in untold])


def _table(dataset: Dataset) -> Table:
    attributes = dataset.schema.attributes
    columns = tuple(np.asarray(column) for column in dataset.attributes)
    return Table(
        columns=columns,
        n_categories=tuple(len(feature.categories) for feature in attributes),
        nominal=tuple(feature.unordered for feature in attributes),
        sorted_values=tuple(
            None if feature.unordered else np.unique(column).astype(np.float64)
            for feature, column in zip(attributes, columns, strict=True)
        ),
        target=np.asarray(dataset.target),
        weight=dataset.weight,
        n_classes=len(dataset.schema.classes),
    )


def _append(nodes: Nodes, table: Table, rows: Rows, *, parent: int, share: float) -> int:
    stats = _stats(table, rows)
    weight = float(table.weight[rows].sum())
    own = float(np.argmax(stats)) if table.n_classes else float(stats[1])
    nodes.parent.append(parent)
    nodes.feature.append(-1)
    nodes.test.append(LEAF)
    nodes.threshold.append(math.nan)
    nodes.codes.append(())
    nodes.fallback.append(-1)
    nodes.share.append(share)
    nodes.weight.append(weight)
    nodes.gain.append(math.nan)
    nodes.stats.append(stats)
    nodes.value.append(own if weight > 0 else nodes.value[parent])
    return len(nodes.parent) - 1


def _stats(table: Table, rows: Rows) -> Floats:
    target, weight = table.target[rows], table.weight[rows]
    if table.n_classes:
        return np.bincount(target, weights=weight, minlength=table.n_classes).astype(np.float64)
    total = float(weight.sum())
    if total <= 0:
        return np.zeros(3)
    mean = float((weight * target).sum() / total)
    return np.array([total, mean, float((weight * (target - mean) ** 2).sum())])


def _stops(nodes: Nodes, table: Table, node: int, depth: int, config: TrainingConfig) -> bool:
    weight, stats = nodes.weight[node], nodes.stats[node]
    pure = np.count_nonzero(stats) <= 1 if table.n_classes else stats[2] <= 1e-12 * max(1.0, abs(stats[1])) ** 2
    return bool(
        pure
        or weight <= 0
        or weight < 2 * config.min_weight_leaf
        or weight < config.min_weight_split
        or (config.max_depth is not None and depth >= config.max_depth)
    )


def _branches(  # noqa: PLR0917 - the state of one node
    nodes: Nodes,
    table: Table,
    node: int,
    depth: int,
    rows: Rows,
    usable: frozenset[int],
    split: Split,
    config: TrainingConfig,
) -> list[tuple[int, float, int, Rows, frozenset[int]]]:
    nominal = table.nominal[split.feature]
    weights = np.bincount(split.branch, weights=table.weight[rows], minlength=split.n_branches)
    nodes.feature[node] = split.feature
    nodes.test[node] = NOMINAL if nominal else NUMERIC
    nodes.threshold[node] = split.threshold
    nodes.codes[node] = split.codes
    nodes.gain[node] = split.score
    nodes.fallback[node] = -1 if config.missing == "fractional" else int(np.argmax(weights))
    below = usable - {split.feature} if nominal and config.nominal == "multiway" else usable
    shares = weights / weights.sum()
    return [
        (node, float(shares[branch]), depth + 1, rows[split.branch == branch], below)
        for branch in range(split.n_branches)
    ]


def _best_split(table: Table, rows: Rows, usable: frozenset[int], config: TrainingConfig, total: float) -> Split | None:
    candidates = [
        split
        for feature in sorted(usable)
        for split in [_attribute_split(table, rows, feature, config)]
        if split is not None
    ]
    if config.average_gain_guard and candidates:
        candidates = _guarded(table, candidates)
    best: Split | None = None
    tie = C45_TIE if config.criterion == "gain_ratio" else 1e-12
    for split in candidates:
        if split.score > (best.score if best is not None else 0.0) + tie:
            best = split
    share = float(table.weight[rows].sum()) / total
    if best is None or share * best.gain < (config.min_impurity_decrease or 0.0):
        return None
    return best


def _guarded(table: Table, candidates: Sequence[Split]) -> list[Split]:
    """Keep the attributes of at least average gain; many-valued ones do not enter the average (Quinlan 1993)."""
    limit = MANY_VALUED_SHARE * len(table.weight)
    few = [
        split for split in candidates if not table.nominal[split.feature] or table.n_categories[split.feature] < limit
    ]
    averaged = few or list(candidates)
    average = sum(split.gain for split in averaged) / len(averaged)
    return [split for split in candidates if split.gain >= average - GUARD_SLACK]


def _attribute_split(table: Table, rows: Rows, feature: int, config: TrainingConfig) -> Split | None:
    if not table.nominal[feature]:
        return _numeric_split(table, rows, feature, config)
    if config.nominal == "multiway":
        return _multiway_split(table, rows, feature, config)
    return _subset_split(table, rows, feature, config)


def _multiway_split(table: Table, rows: Rows, feature: int, config: TrainingConfig) -> Split | None:
    branch = table.columns[feature][rows]
    n_branches = table.n_categories[feature]
    weights: Floats = np.bincount(branch, weights=table.weight[rows], minlength=n_branches).astype(np.float64)
    if np.count_nonzero(weights) < 2 or np.count_nonzero(weights >= config.min_weight_leaf) < 2:
        return None
    groups = [_stats(table, rows[branch == each]) for each in range(n_branches)]
    gain = _gain(table, groups, config)
    score = _score(gain, weights, config)
    return Split(feature, score, gain, branch.astype(np.int32), n_branches, codes=tuple(range(n_branches)))


def _subset_split(table: Table, rows: Rows, feature: int, config: TrainingConfig) -> Split | None:
    column = table.columns[feature][rows]
    present = np.unique(column)
    groups = {int(code): _stats(table, rows[column == code]) for code in present}
    best: Split | None = None
    for left in _subsets(table, groups):
        halves = [
            _summed(table, [groups[code] for code in left]),
            _summed(table, [stats for code, stats in groups.items() if code not in left]),
        ]
        weights = np.array([_weight_of(table, half) for half in halves])
        if weights.min() < max(config.min_weight_leaf, 1e-300):
            continue
        gain = _gain(table, halves, config)
        score = _score(gain, weights, config)
        if best is None or score > best.score + 1e-12:
            codes = tuple(
                -1 if code not in groups else int(code not in left) for code in range(table.n_categories[feature])
            )
            branch = np.array(codes, dtype=np.int32)[column]
            best = Split(feature, score, gain, branch, 2, codes=codes)
    return best


def _subsets(table: Table, groups: dict[int, Floats]) -> Iterator[frozenset[int]]:
    """Give the left sides to try: an order's cuts where that is exact, every subset while there are few."""
    codes = list(groups)
    if table.n_classes == 2 or not table.n_classes:
        ordered = sorted(codes, key=lambda code: _mean_response(table, groups[code]))
        yield from (frozenset(ordered[:cut]) for cut in range(1, len(ordered)))
        return
    if len(codes) > MAX_EXHAUSTIVE:
        shares = [
            [(groups[code][each] / max(groups[code].sum(), 1e-300), code) for code in codes]
            for each in range(table.n_classes)
        ]
        for ranked in shares:
            ordered = [code for _, code in sorted(ranked)]
            yield from (frozenset(ordered[:cut]) for cut in range(1, len(ordered)))
        return
    first, rest = codes[0], codes[1:]
    for length in range(len(codes) - 1):
        for others in itertools.combinations(rest, length):
            yield frozenset((first, *others))


def _numeric_split(table: Table, rows: Rows, feature: int, config: TrainingConfig) -> Split | None:
    values = table.columns[feature][rows].astype(np.float64)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    cuts = np.flatnonzero(np.diff(ordered) > (C45_NEIGHBOURS if config.window else 0.0)) + 1
    below, above = _running(table, rows[order], cuts)
    weights = np.stack([_weights_of(table, below), _weights_of(table, above)], axis=1)
    least = _least_weight(table, rows, config)
    if config.window and weights.size and weights[0].sum() < 2 * least:
        return None
    inside = np.flatnonzero(weights.min(axis=1) >= least) if len(cuts) else np.zeros(0, dtype=np.intp)
    if len(inside) == 0:
        return None
    gains = np.array([_gain(table, [below[cut], above[cut]], config) for cut in inside])
    scores = (
        gains
        if config.criterion == "gain_ratio"
        else np.array([_score(gain, weights[cut], config) for cut, gain in zip(inside, gains, strict=True)])
    )
    best = int(np.flatnonzero(scores >= scores.max() - 1e-12)[0])
    gain = float(gains[best])
    if config.mdl_correction:
        gain -= math.log2(len(inside)) / float(table.weight[rows].sum())
        if gain <= 0:
            return None
    cut = inside[best]
    low, high = float(ordered[cuts[cut] - 1]), float(ordered[cuts[cut]])
    threshold = (low + high) / 2 if low + (high - low) / 2 < high else low
    if config.threshold == "observed":
        known = table.sorted_values[feature]
        assert known is not None  # noqa: S101 - ordered attributes have their sorted values
        threshold = float(known[np.searchsorted(known, threshold, side="right") - 1])
    branch = (values > threshold).astype(np.int32)
    return Split(feature, _score(gain, weights[cut], config), gain, branch, 2, threshold=threshold)


def _least_weight(table: Table, rows: Rows, config: TrainingConfig) -> float:
    if config.window == "c45":
        known = float(table.weight[rows].sum())
        return max(config.min_weight_leaf, min(25.0, 0.1 * known / max(table.n_classes, 1)))
    return max(config.min_weight_leaf, 1e-300)


def _running(table: Table, rows: Rows, cuts: npt.NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Give the statistics below and above each cut of the sorted rows, (cuts, k) each."""
    weight = table.weight[rows]
    if table.n_classes:
        counts = np.zeros((len(rows), table.n_classes))
        counts[np.arange(len(rows)), table.target[rows]] = weight
        running = counts.cumsum(axis=0)
        below = running[cuts - 1]
        return below, running[-1] - below
    target = table.target[rows] - float(np.average(table.target[rows], weights=weight))
    sums = np.stack([weight, weight * target, weight * target**2], axis=1).cumsum(axis=0)
    below, above = sums[cuts - 1], sums[-1] - sums[cuts - 1]
    return _moments(below), _moments(above)


def _moments(sums: Floats) -> Floats:
    weight = np.maximum(sums[:, 0], 1e-300)
    mean = sums[:, 1] / weight
    return np.stack([sums[:, 0], mean, np.maximum(sums[:, 2] - mean * sums[:, 1], 0.0)], axis=1)


def _summed(table: Table, groups: Sequence[Floats]) -> Floats:
    if table.n_classes:
        return np.asarray(np.sum(groups, axis=0))
    weight = sum(group[0] for group in groups)
    mean = sum(group[0] * group[1] for group in groups) / weight
    return np.array([weight, mean, sum(group[2] + group[0] * (group[1] - mean) ** 2 for group in groups)])


def _weight_of(table: Table, stats: Floats) -> float:
    return float(stats.sum() if table.n_classes else stats[0])


def _weights_of(table: Table, stats: Floats) -> Floats:
    return np.asarray(stats.sum(axis=1) if table.n_classes else stats[:, 0])


def _mean_response(table: Table, stats: Floats) -> float:
    return float(stats[1] / stats.sum() if table.n_classes else stats[1])


def _gain(table: Table, groups: Sequence[Floats], config: TrainingConfig) -> float:
    """Decrease of impurity: of the node less that of its branches, each by its share of the weight."""
    whole = _summed(table, [group for group in groups if _weight_of(table, group) > 0])
    total = _weight_of(table, whole)
    inside = sum(_weight_of(table, group) * _impurity(table, group, config) for group in groups)
    return _impurity(table, whole, config) - inside / total


def _impurity(table: Table, stats: Floats, config: TrainingConfig) -> float:
    total = _weight_of(table, stats)
    if total <= 0:
        return 0.0
    if not table.n_classes:
        return float(stats[2] / total)
    shares = stats[stats > 0] / total
    if config.criterion == "gini":
        return float((shares * (1 - shares)).sum())
    if config.criterion == "misclassification":
        return float(1 - shares.max())
    return float(-(shares * np.log2(shares)).sum())


def _score(gain: float, weights: Floats, config: TrainingConfig) -> float:
    if config.criterion != "gain_ratio":
        return gain
    shares = weights[weights > 0] / weights.sum()
    split_information = float(-(shares * np.log2(shares)).sum())
    return gain / split_information if split_information > 0 else 0.0


def _frozen(nodes: Nodes, table: Table) -> Tree:
    children = np.argsort(np.asarray(nodes.parent[1:], dtype=np.int64), kind="stable") + 1
    return tree_from_parents(
        {
            "parent": nodes.parent,
            "feature": np.array(nodes.feature, dtype=np.int32),
            "test": np.array(nodes.test, dtype=np.int8),
            "threshold": np.array(nodes.threshold),
            "code_start": np.concatenate(([0], np.cumsum([len(codes) for codes in nodes.codes]))).astype(np.int32),
            "code_branch": np.array([code for codes in nodes.codes for code in codes], dtype=np.int32),
            "fallback": np.array(nodes.fallback, dtype=np.int32),
            "branch_weight": np.array(nodes.share)[children],
            "weight": np.array(nodes.weight),
            "gain": np.array(nodes.gain),
            "stats": np.array(nodes.stats),
            "value": np.array(nodes.value, dtype=np.int32 if table.n_classes else np.float64),
        }
    )


def _collapsed(tree: Tree) -> Tree:
    """Make a leaf of each subtree that errs no less on the training rows than a leaf would (Quinlan 1993)."""
    errors = tree.weight - tree.stats.max(axis=1) if tree.stats.shape[1] else tree.weight
    below = np.where(tree.test == LEAF, errors, 0.0)
    mask = np.zeros(tree.n_nodes, dtype=np.bool_)
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.test[node] != LEAF and below[node] >= errors[node] - COLLAPSE_SLACK:
            mask[node] = True
            below[node] = errors[node]
        if node:
            below[tree.parent[node]] += below[node]
    return tree.collapsed(mask)
