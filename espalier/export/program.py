"""The common form of exports: a model as steps. Most steps jump to another step by the value of one attribute.

Step i of a tree is node i; further steps follow the nodes. In a rule list, each condition is one or more steps. If a
condition holds, its last step jumps to the next condition or, after the last condition, to the rule's answer. If it
fails, one of its steps jumps to the first step of the next rule::

    step    0              1        2
            wind: weak→1   answer   answer
                  strong→2 no       yes
                  absent→2
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from espalier.model.model import Model
from espalier.model.node_tests import LEAF, NUMERIC, UNKNOWN
from espalier.model.rules import Condition, RuleList
from espalier.model.surrogates import Surrogates
from espalier.model.tree import Tree
from espalier.prediction.leaf_values import answer_table, node_values
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.path_smoothing import smoothed_models

ANSWER: Final = 0
"""Kind of a final step: the row gets the answer of a node or of a rule."""
CUT: Final = 1
"""Kind of a step with two targets: for values up to the threshold, and for values above it."""
CATEGORY: Final = 2
"""Kind of a step with a target for each category."""
DIVIDE: Final = 3
"""Kind of a step that divides the row: each target gets a share of it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        kind: ANSWER, CUT, CATEGORY or DIVIDE.
        feature: Index of the attribute in ``schema.attributes``; -1 if the step tests none.
        threshold: Threshold of a CUT; inf if only the presence of a value matters.
        targets: The steps that follow: for a CUT two, for a CATEGORY one per code, for a DIVIDE one per share.
        absent: The step that follows if the value is missing or an unseen category.
        shares: Shares of a DIVIDE, one per target.
        number: The node or rule whose answer an ANSWER gives.
    """

    kind: int
    feature: int = -1
    threshold: float = math.inf
    targets: tuple[int, ...] = ()
    absent: int = -1
    shares: tuple[float, ...] = ()
    number: int = -1


@dataclass(frozen=True, slots=True)
class LinearLeaf:
    """The equation of a linear leaf: intercept + Σ coefficient · column, added in this order and clipped to ±1e150.

    Attributes:
        terms: (attribute, codes, coefficient). Column: 1 for these codes, else 0; without codes, the clipped value.
    """

    intercept: float
    terms: tuple[tuple[int, frozenset[int] | None, float], ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A model as steps; a row begins at step 0.

    Attributes:
        steps: The steps.
        codes: Class code of each node, or of each rule and then of the default; empty for a regression.
        table: float64, a row for each node, or for each rule and the default. The row has the share of each class; for
            a regression, only the value.
        linear: The equations of linear leaves, by node; empty if leaves are constants.
    """

    steps: tuple[Step, ...]
    codes: tuple[int, ...]
    table: npt.NDArray[np.float64]
    linear: Mapping[int, LinearLeaf]

    @property
    def divides(self) -> bool:
        """Whether some step divides a row."""
        return any(step.kind == DIVIDE for step in self.steps)

    @property
    def answered(self) -> tuple[int, ...]:
        """The numbers of the nodes or rules whose answers the steps give, each once, ascending."""
        return tuple(sorted({step.number for step in self.steps if step.kind == ANSWER}))


@dataclass(frozen=True, slots=True)
class Exported:
    """A model prepared for the writer of an export format.

    Attributes:
        model: The model.
        program: The model as steps.
        notes: The first lines of the file, as comments: ASCII text without names from the data.
        table: SQL only: the table whose rows get predictions.
        rule_text: SQL only: whether the query has a column with the text of the rule.
    """

    model: Model
    program: Program
    notes: tuple[str, ...]
    table: str
    rule_text: bool


def program_of(model: Model) -> Program:
    """Return a model as steps that give the predictions of `espalier.predict`."""
    body, imputed = model.body, model.preparation.imputed
    steps = _rule_steps(model, body) if isinstance(body, RuleList) else _tree_steps(body)
    if imputed is not None:
        steps = [_with_imputed(step, imputed) for step in steps]
    codes = tuple(node_values(model).tolist()) if model.schema.classes else ()
    return Program(tuple(steps), codes, answer_table(model), dict(_linear_leaves(model)))


def has_surrogates(model: Model) -> bool:
    """Return whether a model has surrogate tests for missing values."""
    return isinstance(model.body, Tree) and model.body.surrogates is not None and len(model.body.surrogates.feature) > 0


def _with_imputed(step: Step, imputed: Sequence[float]) -> Step:
    """Return the step with missing values sent to the branch of the imputed value."""
    value = imputed[step.feature] if step.feature >= 0 else math.nan
    if math.isnan(value):
        return step
    branch = int(value) if step.kind == CATEGORY else int(value > step.threshold)
    return replace(step, absent=step.targets[branch])


def _tree_steps(tree: Tree) -> list[Step]:
    steps, further = list[Step](), list[Step]()  # the nodes, and the steps that are not nodes
    tests, features, thresholds = tree.test.tolist(), tree.feature.tolist(), tree.threshold.tolist()
    for node, test in enumerate(tests):
        children = tree.children(node)
        if test == LEAF:
            steps.append(Step(ANSWER, number=node))
        elif test == UNKNOWN:
            steps.append(Step(CUT, features[node], targets=(children[0], children[0]), absent=children[1]))
        else:
            absent = _absent_target(tree, node, children, further)
            if test == NUMERIC:
                steps.append(Step(CUT, features[node], thresholds[node], tuple(children), absent))
            else:
                targets = _targets(tree.codes(node).tolist(), children, absent)
                steps.append(Step(CATEGORY, features[node], targets=targets, absent=absent))
    return steps + further


def _absent_target(tree: Tree, node: int, children: Sequence[int], further: list[Step]) -> int:
    """Return the step after a missing value at `node`; steps that are not nodes are appended to `further`."""
    fallback = int(tree.fallback[node])
    if fallback >= 0:
        target = children[fallback]
    elif fallback == STOP:
        target = _appended(tree, further, Step(ANSWER, number=node))
    else:
        start = int(tree.child_start[node])
        shares = tree.branch_weight[start : start + len(children)].tolist()
        taken = [(child, share) for child, share in zip(children, shares, strict=True) if share > 0]
        divided = Step(DIVIDE, targets=tuple(child for child, _ in taken), shares=tuple(share for _, share in taken))
        target = _appended(tree, further, divided)
    surrogates = tree.surrogates
    if surrogates is not None:
        for place in reversed(range(int(surrogates.start[node]), int(surrogates.start[node + 1]))):
            target = _appended(tree, further, _surrogate_step(surrogates, place, children, target))
    return target


def _appended(tree: Tree, further: list[Step], step: Step) -> int:
    further.append(step)
    return tree.n_nodes + len(further) - 1


def _surrogate_step(surrogates: Surrogates, place: int, children: Sequence[int], absent: int) -> Step:
    feature = int(surrogates.feature[place])
    if surrogates.test[place] == NUMERIC:
        below = int(surrogates.below[place])
        targets = (children[below], children[1 - below])
        return Step(CUT, feature, float(surrogates.threshold[place]), targets, absent)
    codes = surrogates.code_branch[surrogates.code_start[place] : surrogates.code_start[place + 1]].tolist()
    return Step(CATEGORY, feature, targets=_targets(codes, children, absent), absent=absent)


def _targets(codes: Sequence[int], children: Sequence[int], absent: int) -> tuple[int, ...]:
    return tuple(children[branch] if branch >= 0 else absent for branch in codes)


def _rule_steps(model: Model, rules: RuleList) -> list[Step]:
    places = {feature.name: place for place, feature in enumerate(model.schema.attributes)}
    steps: list[Step] = []
    for number, rule in enumerate(rules.rules):
        tests = [test for condition in rule.conditions for test in _tests_of(condition)]
        first, end = len(steps), len(steps) + len(tests) + 1  # the next rule begins at `end`
        for at, (condition, kind, threshold, holds, absent) in enumerate(tests, start=first + 1):
            targets = tuple(at if held else end for held in holds)
            step = Step(kind, places[condition.attribute.name], threshold, targets, at if absent else end)
            steps.append(step)
        steps.append(Step(ANSWER, number=number))
    return [*steps, Step(ANSWER, number=rules.n_rules)]


Test = tuple[Condition, int, float, tuple[bool, ...], bool]
"""(condition, kind of step, threshold, for each target whether the test holds, whether it holds for missing values)."""


def _tests_of(condition: Condition) -> Iterator[Test]:
    """Yield the tests of a condition. Each fails for a missing value, unless it is the test for missing values."""
    if condition.known is False:
        yield condition, CUT, math.inf, (False, False), True
        return
    if condition.at_most < math.inf:
        yield condition, CUT, condition.at_most, (True, False), False
    if condition.above > -math.inf:
        yield condition, CUT, condition.above, (False, True), False
    if condition.categories is not None:
        listed = set(condition.codes)
        holds = tuple(code in listed for code in range(len(condition.attribute.categories)))
        yield condition, CATEGORY, math.inf, holds, False
    elif condition.at_most == math.inf and condition.above == -math.inf:
        yield condition, CUT, math.inf, (True, True), False


def _linear_leaves(model: Model) -> Iterator[tuple[int, LinearLeaf]]:
    if model.linear is None:
        return
    tree, models = model.tree, model.linear
    smoothed = smoothed_models(tree, models, model.config.smoothing, range(tree.n_nodes))
    for node, leaf in enumerate(smoothed):
        if tree.test[node] != LEAF:
            continue
        terms = []
        for feature, cut, coefficient in leaf.terms:
            upper = frozenset((models.ranks(feature) >= cut).nonzero()[0].tolist()) if cut else None
            terms.append((feature, upper, coefficient))
        yield node, LinearLeaf(leaf.intercept, tuple(terms))
