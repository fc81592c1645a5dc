"""Cost-complexity pruning (Breiman et al. 1984): each leaf has a price; the weakest subtrees are pruned first."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats, Ints, Longs, Mask, Places
from espalier.config.pruning import CostComplexity
from espalier.data.dataset import Dataset
from espalier.data.stratified_folds import fold_of_rows
from espalier.errors import NotApplicable
from espalier.growing.grow import grow
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.prediction.encode_columns import target_of
from espalier.progress import Progress
from espalier.pruning.applicable import NO_STATISTICS, statistics_add_up
from espalier.pruning.distribute import losses, node_sums, squared_errors, weighted_rows
from espalier.pruning.kernels import cost_complexity as kernel
from espalier.pruning.result import Pruned, PruningRows, collapsed, counts, notes_on_rows, pruned_model, step_lines

SAME_ALPHA: Final = 1e-11
"""Two prices count as equal if their difference, due to rounding, is at most this fraction of the root's risk."""
ROUNDING: Final = 1e-12
NEVER: Final = np.iinfo(np.int64).max

RISK_WORDS: Final[Mapping[str, str]] = {
    "impurity": "sum of the leaves' training impurities, each times its leaf's share of the weight",
    "error": "training errors",
    "leaf_impurity": "sum of the leaves' training impurities",
}


@dataclass(frozen=True, slots=True)
class PruningPath:
    """The p nested trees that are best for some price of a leaf, from the largest to the root alone.

    The unpruned tree has n nodes; s of them become leaves on the path.

    Attributes:
        alpha: float64 (p); the lowest price at which each tree is the best one, ascending from 0.
        leaves: int64 (p); the number of leaves of each tree, descending.
        risk: float64 (p); the sum of the risks of each tree's leaves, in the measure that `pruning_path` was given.
        step: int64 (n); for each node the index of the tree whose price makes it a leaf; 0 for leaves as grown, `NEVER`
            for nodes that never become leaves.
        gone: int32 (s); the nodes in the order in which they become leaves.
        before: float64 (s); the risk of the subtree of each node in `gone`, just before the node becomes a leaf.
    """

    alpha: Floats
    leaves: Longs
    risk: Floats
    step: Longs
    gone: Ints
    before: Floats

    def place(self, alpha: float) -> int:
        """Return the index of the tree that is best at the price `alpha`."""
        return int(np.searchsorted(self.alpha, alpha + _slack(self.risk[-1:]), side="right")) - 1

    def collapsed(self, place: int) -> Places:
        """Return the nodes that become leaves up to the tree with index `place`; some may lie below others."""
        return self.gone[self.step[self.gone] <= place].astype(np.intp)


def pruning_path(model: Model, risk: str = "impurity") -> PruningPath:
    """Return the whole pruning path of a tree.

    `risk` has the same values as in `CostComplexity`. The impurity is that of the criterion; entropy is in bits.

    Raises:
        NotApplicable: The statistics of an imported tree do not add up, or do not give the impurity of the criterion.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> pruning_path(train(dataset_from_rows(rows, target="play"), "id3"), "error").alpha.tolist()
    [0.0, 1.0]
    """
    if not statistics_add_up(model):
        raise NotApplicable(f"the path {NO_STATISTICS}")
    tree, risks = model.tree, node_risks(model, risk)
    is_leaf = tree.test == LEAF
    slack = _slack(risks)
    gone, price, before = kernel.weakest_links(tree.parent, tree.size, is_leaf, risks, slack)
    alpha, group = _merged(price, slack)
    step = np.full(tree.n_nodes, NEVER)
    step[is_leaf] = 0
    step[gone] = group
    until = kernel.earliest_above(tree.parent, step)
    leaves = np.rint(_over_path(step, until, len(alpha), np.ones(tree.n_nodes))).astype(np.int64)
    return PruningPath(alpha, leaves, _over_path(step, until, len(alpha), risks), step, gone, before)


def node_risks(model: Model, risk: str) -> Floats:
    """Return the risk of each node as a leaf, float64 (n_nodes).

    Raises:
        NotApplicable: See `pruning_path`.
    """
    tree = model.tree
    if risk == "error" and model.schema.classes:
        return np.where(tree.weight > 0, losses(model, tree.stats)[0], 0.0)
    if risk == "error":
        return squared_errors(tree)
    impurity = model.config.how_split.impurity
    if impurity is None:
        raise NotApplicable(
            f"a tree grown by {model.config.criterion} does not store what the impurity needs: set risk to error"
        )
    impurities = MEASURES[impurity](tree.stats)
    return impurities * (tree.weight / tree.weight[0]) if risk == "impurity" else impurities


def prune_cost_complexity(model: Model, parameters: CostComplexity, rows: PruningRows, progress: Progress) -> Pruned:
    """Prune a tree to the one on its pruning path that is best at a given or selected price of a leaf.

    ``select="validation"`` measures every tree of the path on held-out rows. ``"cv"`` divides the training rows into
    folds. For each fold, a tree is grown on the other folds, pruned at the geometric means of neighbouring prices of
    the path, and measured on the fold (Breiman et al. 1984, section 3.4.2). ``rule="min"`` selects the tree with the
    least error, and the smallest of several such trees. ``"one_se"`` selects the smallest tree whose error is at most
    one standard error above the least error.

    Raises:
        NotApplicable: The rows that `select` needs have no weight or are too few; or as in `pruning_path`.
        DataError: The rows do not have the model's columns.
        Cancelled: `progress` was stopped during ``"cv"``.
    """
    tree, path = model.tree, pruning_path(model, parameters.risk)
    judged = {"validation": rows.held_out, "cv": rows.training}.get(parameters.select or "")
    measured = None if judged is None else _measured(model, parameters, path, judged, progress)
    place = path.place(parameters.alpha or 0.0) if measured is None else _selected(*measured, parameters.rule)
    gone = path.collapsed(place)
    pruned, _ = collapsed(tree, gone)

    def trace() -> dict[str, Any]:
        risks = node_risks(model, parameters.risk)
        alpha = path.alpha[path.step[gone]]
        rule = "at this price, the subtree's leaves cost at least as much as the risk that they save"
        return {
            "estimate": RISK_WORDS[parameters.risk],
            "held_out_rows": judged.n_rows if judged is not None and parameters.select == "validation" else None,
            **(notes_on_rows(model, judged) if judged is not None else {}),
            "before": counts(tree, float(risks[tree.test == LEAF].sum())),
            "after": counts(pruned, float(path.risk[place])),
            "alpha": float(path.alpha[place]),
            "table": _table(path, measured, place),
            "steps": step_lines(model, gone, rule, path.before[: len(gone)], risks[gone], alpha=alpha.tolist()),
        }

    return Pruned(pruned_model(model, pruned, parameters), parameters, trace)


def _slack(risk: Floats) -> float:
    return SAME_ALPHA * max(abs(float(risk[0])), math.ulp(0.0))


def _merged(price: Floats, slack: float) -> tuple[Floats, Longs]:
    """Return the distinct prices, ascending from 0, and the index of each pruned node's price among them."""
    alphas, group = [0.0], []
    for each in price.tolist():
        # Pruning a node may lower another node's price below the current one, which then counts for both nodes.
        if each > alphas[-1] + slack:
            alphas.append(each)
        group.append(len(alphas) - 1)
    return np.array(alphas), np.array(group, dtype=np.int64)


def _over_path(step: Longs, until: Longs, n_steps: int, of_node: Floats) -> Floats:
    """Sum `of_node`, a figure of each node, over the leaves of each tree of a path; return float64 (n_steps).

    Node i is a leaf of the trees ``step[i]`` to ``until[i] - 1``.
    """
    counted = np.flatnonzero((step < until) & (step < n_steps))
    change = np.zeros(n_steps + 1)
    np.add.at(change, step[counted], of_node[counted])
    np.subtract.at(change, np.minimum(until[counted], n_steps), of_node[counted])
    return np.cumsum(change[:-1])


def _shares(stats: Floats) -> Floats:
    total = stats.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(stats, total, out=np.zeros_like(stats), where=total > 0)
    return shares


def _entropy(stats: Floats) -> Floats:
    shares = _shares(stats)
    logarithms: Floats = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logarithms).sum(axis=1))


def _variance(stats: Floats) -> Floats:
    return np.divide(stats[:, 2], stats[:, 0], out=np.zeros(len(stats)), where=stats[:, 0] > 0)


MEASURES: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "entropy": _entropy,
    "gini": lambda stats: (_shares(stats) * (1 - _shares(stats))).sum(axis=1),
    "misclassification": lambda stats: np.where(stats.sum(axis=1) > 0, 1 - _shares(stats).max(axis=1), 0.0),
    "variance": _variance,
    "deviation": lambda stats: np.sqrt(_variance(stats)),
}


def _measured(
    model: Model, parameters: CostComplexity, path: PruningPath, dataset: Dataset, progress: Progress
) -> tuple[Floats, Floats]:
    """Return the misclassification rate or mean squared error of each tree of a path, and its standard error."""
    unit = 1.0
    if not model.schema.classes:
        # In this power of two above all targets, the fourth powers of errors neither overflow nor vanish.
        largest = np.abs(np.concatenate((model.tree.value, target_of(model.schema, dataset)))).max()
        unit = float(np.ldexp(1.0, np.frexp(largest)[1]))
    if parameters.select == "validation":
        loss, squares, weight = _losses_over_path(model, path, dataset, unit)
    else:
        loss, squares, weight = _cross_validated(model, parameters, path, dataset, progress, unit=unit)
    if weight <= 0:
        raise NotApplicable("selection measures errors on rows, and the given rows have no weight")
    mean, n_rows = loss / weight, int(np.count_nonzero(dataset.weight > 0))
    deviation = np.sqrt(np.maximum(squares / weight - mean * mean, 0.0) / n_rows)
    return mean * unit * unit, deviation * unit * unit


def _losses_over_path(model: Model, path: PruningPath, dataset: Dataset, unit: float) -> tuple[Floats, Floats, float]:
    """Return Σ w·l and Σ w·l² for each tree of a path, and Σ w. A row has the weight w, and the loss l in the tree."""
    given = weighted_rows(model, dataset)
    until = kernel.earliest_above(model.tree.parent, path.step)
    figures = losses(model, node_sums(model, given, unit=unit))
    n_steps = len(path.alpha)
    over = [np.maximum(_over_path(path.step, until, n_steps, of_node), 0.0) for of_node in figures]
    return over[0], over[1], float(given.weights.sum())


def _cross_validated(
    model: Model, parameters: CostComplexity, path: PruningPath, training: Dataset, progress: Progress, *, unit: float
) -> tuple[Floats, Floats, float]:
    if training.n_rows < parameters.folds:
        raise NotApplicable(f"{training.n_rows} training rows cannot be divided into {parameters.folds} parts")
    # A tree of the path is measured at a price at which it is best: the geometric mean of its alpha and the next one's.
    prices = np.append(np.sqrt(path.alpha[:-1]) * np.sqrt(path.alpha[1:]), np.inf)
    fold_of_row = fold_of_rows(training, parameters.folds, seed=parameters.seed)
    loss, squares, weight = np.zeros(len(prices)), np.zeros(len(prices)), 0.0
    for fold in progress.each(range(parameters.folds)):
        other, scale = _grown_without(model, training, fold_of_row != fold, parameters.risk)
        own = pruning_path(other, parameters.risk)
        places = np.searchsorted(own.alpha, prices * scale * (1 + ROUNDING), side="right") - 1
        fold_loss, fold_squares, fold_weight = _losses_over_path(other, own, training.take(fold_of_row == fold), unit)
        loss += fold_loss[places]
        squares += fold_squares[places]
        weight += fold_weight
    return loss, squares, weight


def _grown_without(model: Model, training: Dataset, is_kept: Mask, risk: str) -> tuple[Model, float]:
    rows = training.take(is_kept)
    if not np.any(rows.weight > 0):
        raise NotApplicable("without one of the folds, no training row has weight: take fewer folds")
    grown = grow(rows, dataclasses.replace(model.config, pruning=None))
    other = dataclasses.replace(model, body=grown.tree, preparation=grown.preparation, pruning=None, notes=())
    return other, float(grown.tree.weight[0] / model.tree.weight[0]) if risk == "error" else 1.0


def _selected(error: Floats, deviation: Floats, rule: str) -> int:
    # The slack is a share of the largest error, so that ties do not depend on the unit of the target.
    slack = ROUNDING * float(error.max())
    best = int(np.flatnonzero(error <= float(error.min()) + slack)[-1])
    if rule == "min":
        return best
    return int(np.flatnonzero(error <= error[best] + deviation[best] + slack)[-1])


def _table(path: PruningPath, measured: tuple[Floats, Floats] | None, place: int) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {name: getattr(path, name).tolist() for name in ("alpha", "leaves", "risk")}
    if measured is not None:
        columns |= {"error": measured[0].tolist(), "standard_error": measured[1].tolist()}
    columns["selected"] = [each == place for each in range(len(path.alpha))]
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
