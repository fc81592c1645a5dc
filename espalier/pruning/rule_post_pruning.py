"""Rule post-pruning: turn the paths of a tree into rules, shorten each rule, then order them (Quinlan 1987, 1993).

If a test is dropped, the rule also holds for the rows that fail only this test. Here, test 1 of three is dropped::

    row            0  1  2  3
    test 0 fails   ·  ·  ·  x
    test 1 fails   ·  x  ·  x       before, the rule holds for rows 0 and 2; without test 1, it also
    test 2 fails   ·  ·  ·  ·       holds for row 1, but not for row 3, which fails test 0, too
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats, Ints, Mask
from espalier.config.pruning import RulePostPruning
from espalier.data.dataset import Dataset
from espalier.evaluation.metrics import evaluate
from espalier.explanation.rule_path import rule_sentence
from espalier.model.majority import majority
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.rules import Condition, Rule, RuleList
from espalier.model.texts import condition_text, number_text
from espalier.prediction.encode_columns import encode_matrix, target_of
from espalier.prediction.rule_predictor import condition_mask, firing_rules
from espalier.prediction.tree_predictor import tree_predictor
from espalier.progress import Progress
from espalier.pruning.distribute import training_weight
from espalier.pruning.kernels import rules as kernel
from espalier.pruning.pessimistic import add_errs
from espalier.pruning.result import Pruned, PruningRows, notes_on_rows, pruned_model
from espalier.pruning.rule_lists import rules_by_class, theory_bits
from espalier.rules.extract import edge_condition, leaf_stats, merged

TIE: Final = 1e-9
"""Losses closer than this many units (see `Evidence`) count as equal."""
DIGITS: Final = 12
"""Decimals that count when losses and answers are compared, so that rounding errors of sums do not decide."""
SHORTENING_SHARE: Final = 0.8
"""Share of the progress for shortening rules; the rest is for choosing rules and counting their rows."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows that decide which conditions are dropped.

    Attributes:
        values: Encoded attributes, float64 (attributes, rows).
        target: Class codes or numbers (rows).
        weight: float64 (rows).
        classes: Whether the target is a class.
        unit: The unit of losses: 1 for classes; for numbers, the variance of the training targets (1 if it is 0).
        pessimistic: Parameters of the pessimistic estimate; None to use the losses of the rows unchanged.
    """

    values: Floats
    target: Array
    weight: Floats
    classes: bool
    unit: float
    pessimistic: RulePostPruning | None

    def misses(self, value: float) -> Floats:
        """Return each row's loss for the answer `value`: for a class 0 or 1, for a number the squared difference."""
        losses = self.target != value if self.classes else (self.target - value) ** 2
        return np.asarray(losses, dtype=np.float64)


@dataclass(slots=True)
class Shortened:
    """A rule while it is shortened, with the steps so far."""

    leaf: int
    value: int | float
    stats: tuple[float, ...]
    conditions: tuple[Condition, ...]
    loss: float
    covered: float
    steps: list[dict[str, Any]]


def post_prune_rules(model: Model, parameters: RulePostPruning, rows: PruningRows, progress: Progress) -> Pruned:
    """Turn a tree into an ordered list of short rules.

    Each path without contradictory tests becomes a rule. Conditions are dropped from each rule one at a time: always
    the condition without which the rule's loss is least, and the first of several such conditions.

    With ``estimate="validation"``, conditions are dropped as long as the loss falls. The loss is the share of
    misclassified rows, or the mean squared error, among the held-out rows that the rule holds for. A rule that holds
    for no row has the greatest loss. Equal rules become one. The rules are sorted by loss, rules of equal loss by leaf
    number. Rules after a rule without conditions stay in the list, but never apply. The default is the majority, or the
    mean, of the training rows for which no rule holds; if there are none, of all training rows.

    With ``estimate="pessimistic"``, conditions are dropped as long as the loss does not rise. The loss is the upper
    confidence limit of the share of misclassified rows among the training rows that the rule holds for. Then
    `rule_lists` chooses some rules of each class, puts the classes in order and finds the default class (C4.5RULES).
    Rules without conditions are left out, since the default takes their place.

    No single rule gets worse, but the list may be worse than the tree: a shortened rule covers more rows, and may
    precede rules that predict some of these rows better. If the list is worse, the model has a note.

    Raises:
        DataError: The rows do not have the model's columns.
        Cancelled: `progress` was stopped.
    """
    judges = rows.training if parameters.estimate == "pessimistic" else rows.held_out
    assert rows.training is not None and judges is not None  # noqa: S101, PT018 - see `PruningRows`
    evidence = _evidence(model, parameters, judges)
    shortened = _shortened(model, evidence, progress)
    ordered = _in_order(shortened, evidence)
    default = None
    if evidence.pessimistic is not None:
        ordered, default = _by_class(model, ordered, evidence, progress)
    body = _rule_list(model, [alike[0] for alike in ordered], rows.training, evidence, default)
    notes = [f"{body.n_rules} rules from {model.tree.n_leaves} leaves, with {body.n_conditions} conditions"]
    notes += _notes_on_order(body)
    which = "training" if judges is rows.training else "validation"
    measure = f"{which} {'errors' if model.task == 'classification' else 'mean squared error'}"
    before, after = _measured(model, judges), _measured(dataclasses.replace(model, body=body), judges)
    if after > before + TIE * evidence.unit:
        notes.append(
            f"the list does worse than the tree: {measure} {number_text(after)} instead of {number_text(before)}; "
            "shortened rules overlap, and the first rule that holds for a row answers it"
        )
    pruned = pruned_model(model, body, parameters, notes)

    def trace() -> dict[str, Any]:
        return {
            "estimate": measure,
            "held_out_rows": judges.n_rows if parameters.estimate == "validation" else None,
            **notes_on_rows(model, judges, in_parts=False),
            "before": {"leaves": model.tree.n_leaves, "nodes": model.tree.n_nodes, "estimate": before},
            "after": {"rules": body.n_rules, "conditions": body.n_conditions, "estimate": after},
            **_steps(pruned, shortened, ordered),
        }

    return Pruned(pruned, parameters, trace)


def loss_of(evidence: Evidence, covered: float, missed: float) -> float:
    """Return the loss of a rule: `covered` is the weight of its rows, `missed` the sum of their weighted losses."""
    if covered <= 0:
        return 1.0 if evidence.classes else math.inf
    if evidence.pessimistic is None:
        return missed / covered
    extra = add_errs(covered, missed, evidence.pessimistic.confidence, quantile=evidence.pessimistic.quantile)
    return (missed + extra) / covered


def _evidence(model: Model, parameters: RulePostPruning, rows: Dataset) -> Evidence:
    is_pessimistic = parameters.estimate == "pessimistic"
    variance = 0.0 if model.schema.classes else float(model.tree.stats[0, 2] / model.tree.weight[0])
    return Evidence(
        encode_matrix(model, rows),
        target_of(model.schema, rows),
        training_weight(model, rows) if is_pessimistic else rows.weight,
        bool(model.schema.classes),
        variance or 1.0,
        parameters if is_pessimistic else None,
    )


def _shortened(model: Model, evidence: Evidence, progress: Progress) -> list[Shortened]:
    tree, answers = model.tree, tree_predictor(model).value.tolist()
    place = {feature.name: number for number, feature in enumerate(model.schema.attributes)}
    depths, is_leaf = tree.depths.tolist(), (tree.test == LEAF).tolist()
    path: list[Condition] = []
    failing: list[Mask] = []
    counts = np.zeros((2, evidence.values.shape[1]), dtype=np.int32)
    n_failing, failing_sum = counts
    shortened = []
    for node in range(tree.n_nodes):
        if node:
            # All tests of the path but the last are also on the path of the previous node.
            while len(path) >= depths[node]:
                path.pop()
                kernel.change_condition(failing.pop(), len(path), -1, n_failing, failing_sum)
            path.append(edge_condition(model, node))
            failing.append(~condition_mask(path[-1], evidence.values[place[path[-1].attribute.name]]))
            kernel.change_condition(failing[-1], len(path) - 1, 1, n_failing, failing_sum)
        if is_leaf[node] and merged(path) is not None:
            progress.check()
            rule = Shortened(node, answers[node], leaf_stats(tree, node), tuple(path), math.nan, 0.0, [])
            _shorten(rule, failing, counts.copy(), evidence)
            shortened.append(rule)
            progress.state[0] = SHORTENING_SHARE * node / tree.n_nodes
    return shortened


def _shorten(rule: Shortened, failing: list[Mask], counts: Ints, evidence: Evidence) -> None:
    """Drop conditions of a rule.

    `failing`: the rows for which each condition does not hold. `counts`: int32 (2, rows), how many conditions each
    row fails, and the sum of their indexes.
    """
    n_failing, failing_sum = counts
    weight, missed = evidence.weight, evidence.weight * evidence.misses(rule.value)
    more_weight, more_missed = np.zeros((2, len(failing)))
    rows = n_failing, failing_sum, weight, missed, more_weight, more_missed
    remaining = list(range(len(rule.conditions)))
    rule.covered, lost = kernel.sum_gains(np.ones(len(weight), np.bool_), *rows)
    rule.loss = loss_of(evidence, rule.covered, lost)
    while True:
        losses = {at: loss_of(evidence, rule.covered + more_weight[at], lost + more_missed[at]) for at in remaining}
        dropped = _dropped(rule, losses, evidence)
        if dropped < 0:
            break
        kernel.change_condition(failing[dropped], dropped, -1, n_failing, failing_sum)
        gained, gained_loss = kernel.sum_gains(failing[dropped], *rows)
        rule.covered, lost = rule.covered + gained, lost + gained_loss
        before, rule.loss = rule.loss, loss_of(evidence, rule.covered, lost)
        rule.steps.append(_step(rule, rule.conditions[dropped], before, evidence))
        remaining.remove(dropped)
    rule.conditions = tuple(rule.conditions[at] for at in remaining)


def _dropped(rule: Shortened, losses: dict[int, float], evidence: Evidence) -> int:
    """Return the index of the condition to drop, the first of equally good ones; -1 if none is to be dropped.

    `losses`: for the index of each remaining condition, the loss of the rule without it.
    """
    if not losses:
        return -1
    least, slack = min(losses.values()), TIE * evidence.unit
    limit = rule.loss + TIE if evidence.pessimistic is not None else rule.loss - slack
    return next(at for at, loss in losses.items() if loss <= least + slack) if least < limit else -1


def _step(rule: Shortened, dropped: Condition, before: float, evidence: Evidence) -> dict[str, Any]:
    return {
        "node": rule.leaf,
        "dropped": condition_text(dropped),
        "rule": "without this condition the estimate is better"
        if evidence.pessimistic is None
        else "without this condition the pessimistic estimate is not worse",
        "before": _shown(before, evidence),
        "after": _shown(rule.loss, evidence),
        "covered": rule.covered,
    }


def _shown(loss: float, evidence: Evidence) -> float | None:
    """Return the figure that is shown for a loss: 1 - loss for classes; else the loss, or None if it is infinite."""
    if evidence.classes:
        return 1.0 - loss
    return loss if math.isfinite(loss) else None


def _in_order(rules: list[Shortened], evidence: Evidence) -> list[list[Shortened]]:
    """Return groups of equal rules, sorted by loss; the first rule of a group represents it."""
    # Each answer is replaced by the first one that differs from it by rounding errors only.
    first_equal, first = {}, math.nan
    for value in sorted({rule.value for rule in rules}):
        if not math.isclose(value, first, rel_tol=1e-15, abs_tol=10**-DIGITS * math.sqrt(evidence.unit)):
            first = value
        first_equal[value] = first
    by_rank = sorted(rules, key=lambda rule: (round(rule.loss / evidence.unit, DIGITS), rule.leaf))
    equal_rules: dict[Any, list[Shortened]] = {}
    for rule in by_rank:
        rule.conditions = merged(rule.conditions) or ()
        meaning = [(each.attribute.name, *_bounds(each), each.categories, each.known) for each in rule.conditions]
        equal_rules.setdefault((frozenset(meaning), first_equal[rule.value]), []).append(rule)
    return list(equal_rules.values())


def _bounds(condition: Condition) -> tuple[float, ...]:
    """Return `above` and `at_most`. Bounds on codes are rounded down, since 1 and 1.5 divide the codes alike."""
    bounds = condition.above, condition.at_most
    return tuple(np.floor(bounds).tolist()) if condition.attribute.coded else bounds


def _by_class(
    model: Model, ordered: list[list[Shortened]], evidence: Evidence, progress: Progress
) -> tuple[list[list[Shortened]], int]:
    """Return the groups that C4.5RULES chooses, in order, and the default class. Groups without conditions drop out."""
    candidates = [alike for alike in ordered if alike[0].conditions]
    rules = [alike[0] for alike in candidates]
    bounds: dict[str, set[float]] = {feature.name: set() for feature in model.schema.attributes}
    for condition in (condition for rule in rules for condition in rule.conditions):
        bounds[condition.attribute.name] |= {*_bounds(condition)} - {-math.inf, math.inf}
    n_bounds = {name: len(values) for name, values in bounds.items()}
    numbers, default = rules_by_class(
        np.array([rule.value for rule in rules], dtype=np.intp),
        lambda number: _holding(model, rules[number].conditions, evidence.values),
        bits=np.array([theory_bits(rule.conditions, n_bounds) for rule in rules], dtype=np.float64),
        target=evidence.target,
        weight=evidence.weight,
        n_classes=len(model.schema.classes),
        progress=progress,
    )
    return [candidates[number] for number in numbers], default


def _rule_list(
    model: Model, ordered: list[Shortened], training: Dataset, evidence: Evidence, default: int | None
) -> RuleList:
    values, target = encode_matrix(model, training), target_of(model.schema, training)
    weight = training_weight(model, training)
    drafts = [Rule(rule.conditions, rule.value, 0.0, rule.stats, _shown(rule.loss, evidence)) for rule in ordered]
    empty = Rule((), 0, 0.0, ())
    fired = firing_rules(model.schema, RuleList(tuple(drafts), empty, exclusive=False), values)
    rules = []
    for number, draft in enumerate(drafts):
        answered = fired == number
        mass = float(weight[answered].sum())
        rows = answered if mass > 0 else _holding(model, draft.conditions, values)
        stats = _stats(model, target[rows], weight[rows])
        rules.append(dataclasses.replace(draft, weight=mass, stats=stats if stats is not None else draft.stats))
    return RuleList(tuple(rules), _default(model, target, weight, fired == len(drafts), default), exclusive=False)


def _default(model: Model, target: Array, weight: Floats, uncovered: Mask, code: int | None) -> Rule:
    """Return the default rule: class `code` if given, else the majority or mean of the rows that no rule covers.

    If the rules cover all rows, the majority or mean is that of all rows.
    """
    mass = float(weight[uncovered].sum())
    rows = uncovered if mass > 0 else np.ones(len(weight), dtype=np.bool_)
    stats = _stats(model, target[rows], weight[rows]) or leaf_stats(model.tree, 0)
    value: int | float = int(majority(np.array([stats]))[0]) if model.schema.classes else stats[1]
    return Rule((), value if code is None else code, mass, stats)


def _holding(model: Model, conditions: Sequence[Condition], values: Floats) -> Mask:
    place = {feature.name: number for number, feature in enumerate(model.schema.attributes)}
    holds = np.ones(values.shape[1], dtype=np.bool_)
    for condition in conditions:
        holds &= condition_mask(condition, values[place[condition.attribute.name]])
    return holds


def _stats(model: Model, target: Array, weight: Floats) -> tuple[float, ...] | None:
    mass = float(weight.sum())
    if mass <= 0:
        return None
    if model.schema.classes:
        return tuple(np.bincount(target, weights=weight, minlength=len(model.schema.classes)).tolist())
    mean = float((weight * target).sum()) / mass
    return (mass, mean, float((weight * (target - mean) ** 2).sum()))


def _notes_on_order(body: RuleList) -> Iterator[str]:
    """Yield a note if some rules never apply, since a rule before them holds for every row."""
    never = body.n_rules - 1 - next((at for at, rule in enumerate(body.rules) if not rule.conditions), body.n_rules)
    if never > 0:
        stand = "1 rule can never answer: it follows" if never == 1 else f"{never} rules can never answer: they follow"
        yield f"{stand} a rule that holds for every row"


def _steps(pruned: Model, shortened: list[Shortened], ordered: list[list[Shortened]]) -> dict[str, Any]:
    number_of = {rule.leaf: number for number, alike in enumerate(ordered) for rule in alike}
    steps = [step for rule in shortened for step in rule.steps]
    return {
        "steps": [{**step, "to_rule": number_of.get(step["node"])} for step in steps],
        "rules": [
            {"number": number, "text": rule_sentence(pruned, number), "estimate": pruned.rules.rules[number].estimate,
             "covered": alike[0].covered, "from_leaves": sorted(each.leaf for each in alike)}
            for number, alike in enumerate(ordered)
        ],
    }  # fmt: skip


def _measured(model: Model, rows: Dataset) -> float:
    figures = evaluate(model, rows)
    return float(figures.errors) if figures.errors is not None else float(figures.rmse or 0.0) ** 2
