"""Growing a tree from its definition: one function a decision, every score computed anew from the rows."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.reference import missing, predictor, scores
from tests.reference.candidates import Attribute
from tests.reference.missing import Surrogate
from tests.reference.scores import Config, Sample
from tests.reference.splits import (
    WEIGHT_TOLERANCE,
    Place,
    Split,
    best_split,
    nothing,
    sizes_with_unknown,
    tie_of_scores,
)
from tests.reference.table import Cell, Column, Table, Target
from tests.reference.tree import Node, collapsed

GUARD_SLACK = 1e-3
MANY_VALUED = 0.3


@dataclass(slots=True)
class Growing:
    """A node that may still get children."""

    sample: Sample
    depth: int
    paid: frozenset[int]
    node: Node
    validation: Sample = field(default_factory=list)
    split: Split | None = None
    children: list["Growing"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """The data and the configuration, which are the same at all nodes."""

    columns: tuple[Column, ...]
    attributes: tuple[Attribute, ...]
    target: Target
    config: Config
    root_weight: float
    root_size: float
    root_variance: float
    validation: Table | None


def grow_table(table: Table, config: Config, validation: Table | None = None) -> Node:
    """The tree of a table."""
    return grow_columns(table.columns, table.target, table.weights, config, validation)


def grow(
    columns: Sequence[tuple[str, Sequence[Cell], int]],
    target: tuple[str, Sequence[float], int],
    weights: Sequence[float],
    config: Config,
) -> Node:
    """The tree of columns (kind, values, k) and a target ("class" or "number", values, k)."""
    kept = tuple(Column(kind, tuple(values), k) for kind, values, k in columns)
    return grow_columns(kept, Target(target[0], tuple(target[1]), target[2]), tuple(weights), config)


def grow_columns(
    columns: Sequence[Column],
    target: Target,
    weights: Sequence[float],
    config: Config,
    validation: Table | None = None,
) -> Node:
    """The tree of prepared columns: apply class weights, impute, grow, and collapse if so configured."""
    if config["numeric"] == "none" and any(column.kind != "nominal" for column in columns):
        raise ValueError("numeric='none' takes no numeric attribute: c45 does, and so does numeric='best'")
    factors = class_factors(target, weights, config)
    weights = [w * factors[int(c)] for w, c in zip(weights, target.values, strict=True)]
    config = {**config, "class_factors": factors}
    kept = [row for row, weight in enumerate(weights) if weight > 0]
    table = Table(tuple(columns), target, tuple(weights)).only(kept)
    columns, target, weights = table.columns, table.target, table.weights
    sample = list(enumerate(weights))
    if config["missing"] == "imputed":
        answers = missing.imputed_values(columns, weights)
        columns = impute(columns, answers)
        if validation is not None:
            validation = replace(validation, columns=impute(validation.columns, answers))
    attributes = [as_attribute(source, column, sample, target, config) for source, column in enumerate(columns)]
    spread = scores.variance(sample, target) if target.kind == "number" else 0.0
    if config["validation_stop"] != (validation is not None):
        raise ValueError("validation_stop needs a validation table, and only validation_stop looks at one")
    root_weight, root_size = scores.total(sample), scores.size(sample, target, config)
    task = Task(tuple(columns), tuple(attributes), target, config, root_weight, root_size, spread, validation)
    root = Growing(sample, 0, frozenset(), leaf(sample, None, task))
    if validation is not None:
        root.validation = list(enumerate(validation.weights))
    tree = frozen(grow_all(root, task))
    return collapsed(tree) if config["collapse"] else tree


def class_factors(target: Target, weights: Sequence[float], config: Config) -> Mapping[int, float]:
    """The factor of each class, which multiplies the weights of its rows; "balanced" gives classes equal totals."""
    chosen = config["class_weight"]
    if target.kind == "number" or chosen is None:
        return defaultdict(lambda: 1.0)
    if chosen == "balanced":
        sizes = scores.class_weights(list(enumerate(weights)), target)
        present = sum(1 for size in sizes if size > 0)
        return {c: math.fsum(weights) / (present * size) if size > 0 else 0.0 for c, size in enumerate(sizes)}
    return {c: chosen.get(c, 1.0) for c in range(target.k)}


def impute(columns: Sequence[Column], answers: Sequence[Cell]) -> tuple[Column, ...]:
    """The columns with their missing cells filled."""
    return tuple(
        replace(column, values=tuple(answer if value is None else value for value in column.values))
        for column, answer in zip(columns, answers, strict=True)
    )


def as_attribute(source: int, column: Column, sample: Sample, target: Target, config: Config) -> Attribute:
    """A column in the form in which it is split. Ordinal codes are split by thresholds, like numbers.

    For `ordered_binaries`, categories are ordered by their mean target over all training rows (Quinlan, 1992; Wang and
    Witten, 1997). A category without rows has the mean of all rows.
    """
    if column.kind != "nominal":
        return Attribute(source, "numeric", column.values, column.k)
    if config["nominal"] != "ordered_binaries":
        return Attribute(source, "nominal", column.values, column.k)
    everywhere = scores.moments(sample, target)[1]
    means = []
    for category in range(column.k):
        rows = [entry for entry in sample if column.values[entry[0]] == category]
        means.append(scores.moments(rows, target)[1] if rows else everywhere)
    order = sorted(range(column.k), key=lambda category: (means[category], category))
    return Attribute(source, "binaries", column.values, column.k, tuple(order))


def grow_all(root: Growing, task: Task) -> Growing:
    """Depth-first, or best-first where the number of leaves is limited."""
    most = task.config["max_leaf_nodes"]
    root.split = chosen_split(root, task)
    waiting = [root]
    n_leaves = 1
    while waiting:
        if most is None:
            growing = waiting.pop()
        else:
            growing = max(waiting, key=worth)  # the first of equals was made first
            waiting.remove(growing)
        if growing.split is None or (most is not None and n_leaves + len(growing.split.branches) - 1 > most):
            continue
        expand(growing, task)
        n_leaves += max(len(growing.children) - 1, 0)
        waiting += growing.children
    return root


def worth(growing: Growing) -> float:
    """The priority of a node in best-first growth: weight times gain, rounded to 30 bits so that equal ones tie."""
    if growing.split is None:
        return -math.inf
    fraction, exponent = math.frexp(growing.node.weight * growing.split.gain)
    return math.ldexp(math.floor(fraction * 2**30 + 0.5), exponent - 30)


def expand(growing: Growing, task: Task) -> None:
    """Split a node, unless its children do worse on the validation rows, and choose the splits of the children."""
    split = growing.split
    assert split is not None
    surrogates: tuple[Surrogate, ...] = ()
    if task.config["missing"] == "surrogate":
        surrogates = missing.find_surrogates(split, task.attributes, task.target, task.config)
    whole = math.fsum(map(scores.total, split.branches))
    growing.node = replace(
        growing.node,
        attribute=split.attribute.source,
        test=split.test,
        threshold=split.threshold,
        branch_of_category=split.branch_of_category,
        gain=split.gain,
        score=split.score,
        fallback=missing.fallback(split),
        branch_weight=tuple(scores.total(branch) / whole for branch in split.branches),
        surrogates=surrogates,
    )
    samples = missing.children(split, task.config["missing"], surrogates, task.columns)
    if task.config["missing"] == "surrogate":
        growing.node = replace(growing.node, fallback=missing.heaviest_child(samples))
    paid = growing.paid | {split.attribute.source}
    for sample in samples:
        child = Growing(sample, growing.depth + 1, paid, leaf(sample, growing.node, task))
        growing.children.append(child)
    if task.validation is not None:
        route_validation(growing, task)
        if worse_on_validation(growing, task):
            growing.children = []
            growing.node = Node(growing.node.weight, growing.node.stats, growing.node.value)
            return
    for child in growing.children:
        child.split = chosen_split(child, task)


def route_validation(growing: Growing, task: Task) -> None:
    """Send the node's validation rows on to its children."""
    assert task.validation is not None
    for row, weight in growing.validation:
        for branch, share in predictor.next_branches(growing.node, task.validation.row(row), task.config["missing"]):
            growing.children[branch].validation.append((row, weight * share))


def worse_on_validation(growing: Growing, task: Task) -> bool:
    """Whether the children predict the node's validation rows worse than the node itself (seed 001)."""
    before = loss(growing, task)
    after = math.fsum(loss(child, task) for child in growing.children)
    return after > before + 1e-9 * max(before, after)


def loss(growing: Growing, task: Task) -> float:
    """The weight of the validation rows that the node predicts wrongly, or their weighted sum of squared errors."""
    assert task.validation is not None
    truth, answer = task.validation.target, growing.node.value
    if truth.kind == "class":
        return scores.total([(row, w) for row, w in growing.validation if truth.values[row] != answer])
    return math.fsum(w * (truth.values[row] - answer) ** 2 for row, w in growing.validation)


def leaf(sample: Sample, parent: Node | None, task: Task) -> Node:
    """A leaf with the answer for its rows; without rows, with the answer of its parent."""
    weight = scores.total(sample)
    target = task.target
    if target.kind == "class":
        stats: tuple[float, ...] = scores.class_weights(sample, target)
        value = float(stats.index(max(stats)))
    else:
        stats = scores.moments(sample, target)
        value = scores.median(sample, target) if task.config["criterion"] == "absolute_error" else stats[1]
    if not sample and parent is not None:
        value = parent.value
    return Node(weight, stats, value)


def chosen_split(growing: Growing, task: Task) -> Split | None:
    """The split of a node, None if it stays a leaf."""
    config, target = task.config, task.target
    if must_stop(growing, task):
        return None
    place = Place(growing.sample, scores.impurity(config["criterion"], growing.sample, target), growing.paid)
    found = (best_split(attribute, place, target, config) for attribute in task.attributes)
    offers = [split for split in found if split is not None]
    offered = [split for split in offers if gains_enough(split, place, task)]
    if config["average_gain_guard"]:
        offered = guarded(offered, offers, place, task)
    best: Split | None = None
    for split in offered:
        if best is None or split.score > best.score + tie_of_scores(best.score, place, config):
            best = split
    if best is not None and config["leaf_weight_rule"] == "winner" and not heavy_enough(best, task):
        return None
    return best


def must_stop(growing: Growing, task: Task) -> bool:
    """Whether a node stays a leaf whatever its attributes: it is pure, too light, too deep or varies too little."""
    config, size = task.config, scores.size(growing.sample, task.target, task.config)
    least = max(config["min_weight_split"] or 0.0, 2 * (config["min_weight_leaf"] or 0.0))
    if len({task.target.values[row] for row, _ in growing.sample}) < 2:
        return True
    if size < least * (1 - WEIGHT_TOLERANCE):
        return True
    if config["max_depth"] is not None and growing.depth >= config["max_depth"]:
        return True
    if task.target.kind == "class":
        return False
    variance = scores.variance(growing.sample, task.target)
    if variance < (config["min_variance_fraction"] or 0.0) * task.root_variance:
        return True
    return math.sqrt(variance) < (config["min_sd_fraction"] or 0.0) * math.sqrt(task.root_variance)


def gains_enough(split: Split, place: Place, task: Task) -> bool:
    """Whether a split's gain is larger than rounding errors, or is at least `min_impurity_decrease` if that is set."""
    least = task.config["min_impurity_decrease"]
    if least is None:
        return split.gain > nothing(place, task.config)
    decrease = scores.total(place.sample) / task.root_weight * split.gain
    return decrease >= float(least) - nothing(place, task.config)


def heavy_enough(split: Split, task: Task) -> bool:
    """REPTree's rule: at least two branches of the best split have `min_weight_leaf`.

    With `spread`, their shares of the unknown rows count, too, and there is no tolerance for rounding.
    """
    least = task.config["min_weight_leaf"] or 0.0
    if task.config["missing"] == "spread":
        weights = zip(split.branches, sizes_with_unknown(split, task.target, task.config), strict=True)
        return sum(1 for branch, weight in weights if branch and weight >= least) >= 2
    sizes = [scores.size(branch, task.target, task.config) for branch in split.branches if branch]
    return sum(1 for size in sizes if size >= least * (1 - WEIGHT_TOLERANCE)) >= 2


def guarded(offered: list[Split], admissible: list[Split], place: Place, task: Task) -> list[Split]:
    """The splits of `offered` whose gain is at least the average gain of admissible splits, as in C4.5.

    Nominal attributes with many categories do not count in the average, unless all attributes have many.
    """
    bound = MANY_VALUED * task.root_size * (1 - 1e-9)

    def many_valued(attribute: Attribute) -> bool:
        return attribute.kind == "nominal" and attribute.k >= bound

    all_many = all(many_valued(attribute) for attribute in task.attributes)
    counted = [
        split.gain
        for split in admissible
        if (not is_cut(split) or split.gain > nothing(place, task.config))
        and (all_many or not many_valued(split.attribute))
    ]
    if not counted:
        return []
    average = math.fsum(counted) / len(counted)
    return [split for split in offered if split.gain >= average - GUARD_SLACK]


def is_cut(split: Split) -> bool:
    """Whether a split divides an order, of numbers or of categories, at one point."""
    return split.test == "numeric" or (split.test == "nominal" and split.attribute.kind == "binaries")


def frozen(growing: Growing) -> Node:
    """The finished node with its finished children."""
    return replace(growing.node, children=tuple(map(frozen, growing.children)))
