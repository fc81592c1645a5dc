"""The trees of ONNX's operator TreeEnsemble: a program as binary tests, and leaves that hold the place of an answer.

A place is an index into ``Program.answered``. A node of many branches becomes a binary search: it tests for the
categories of half of the branches, then of half of these, and so on. A missing value is in no set, so the branch of
missing values has no test: a row takes this branch if no test holds::

    wind: weak→1, strong→2, absent→2          wind ∈ {weak}?  yes → 1
                                                              no  → 2
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from onnx import numpy_helper

from espalier.export.program import ANSWER, CATEGORY, Program, Step

# Modes of a node.
AT_MOST: Final = 0  # BRANCH_LEQ
MEMBER: Final = 6  # BRANCH_MEMBER
# Aggregations of the values of all trees.
SUM: Final = 1
MIN: Final = 2


@dataclass(frozen=True, slots=True)
class Test:
    """A test of one attribute.

    Attributes:
        target: The step that follows if the test holds.
        threshold: The test holds for a value of at most this; None if it holds for `categories`.
        categories: Codes for which the test holds.
        absent: Whether the test holds for a missing value.
    """

    target: int
    threshold: float | None = None
    categories: tuple[int, ...] = ()
    absent: bool = False


class Ensemble:
    """Trees, as the lists that the operator takes as attributes.

    Attributes:
        roots: The first node of each tree.
        modes: `AT_MOST` or `MEMBER` of each node.
        features: Index of the attribute that each node tests.
        thresholds: Threshold of each node; 0 if it tests categories.
        absent_holds: For each node, 1 if its test holds for a missing value, else 0.
        children: For each node, two numbers of nodes or leaves: the one that follows if the test holds, and the other.
        are_leaves: For each node, one number per child: 1 if the child is a leaf, else 0.
        members: The category codes of all MEMBER nodes, with a NaN after those of each node.
        places: For each leaf, the place of its answer.
    """

    def __init__(self) -> None:
        self.roots = list[int]()
        self.modes, self.features, self.absent_holds = list[int](), list[int](), list[int]()
        self.thresholds = list[float]()
        self.children, self.are_leaves = list[list[int]](), list[list[int]]()
        self.members, self.places = list[float](), list[float]()

    @classmethod
    def of_tree(cls, program: Program) -> "Ensemble":
        """Return an ensemble of one tree, whose leaves hold the places of the answers."""
        places, steps = _places(program), program.steps
        ensemble = cls()
        ensemble._add_tree(steps, 0, lambda at: places[steps[at].number] if steps[at].kind == ANSWER else None)
        return ensemble

    @classmethod
    def of_rules(cls, program: Program) -> "Ensemble":
        """Return an ensemble: a tree per rule, with the rule's place if the rule holds, else the default's."""
        places, steps = _places(program), program.steps
        ensemble, default = cls(), len(places) - 1
        ends = [at for at, step in enumerate(steps) if step.kind == ANSWER]
        for first, end in zip([0, *(at + 1 for at in ends)], ends, strict=False):
            answers = {end: places[steps[end].number], end + 1: default}
            ensemble._add_tree(steps, first, answers.get)
        return ensemble

    def attributes(self, *, aggregate: int) -> dict[str, Any]:
        """Return the attributes of the operator for one output; `aggregate`: how the trees' values are combined."""
        held, failed = zip(*self.children, strict=True)
        held_leaves, failed_leaves = zip(*self.are_leaves, strict=True)
        members = {"membership_values": _tensor(self.members, np.float64)} if self.members else {}
        return {
            "aggregate_function": aggregate,
            "n_targets": 1,
            "tree_roots": self.roots,
            "nodes_modes": _tensor(self.modes, np.uint8),
            "nodes_featureids": self.features,
            "nodes_splits": _tensor(self.thresholds, np.float64),
            "nodes_missing_value_tracks_true": self.absent_holds,
            "nodes_truenodeids": held,
            "nodes_trueleafs": held_leaves,
            "nodes_falsenodeids": failed,
            "nodes_falseleafs": failed_leaves,
            "leaf_targetids": [0] * len(self.places),
            "leaf_weights": _tensor(self.places, np.float64),
            **members,
        }

    def _add_tree(self, steps: Sequence[Step], start: int, place_of: Callable[[int], int | None]) -> None:
        """Append the tree below a step. `place_of` returns the place of a step's answer; None if other steps follow."""
        self.roots.append(len(self.thresholds))
        tests, otherwise = list[Test](), start
        while not tests and place_of(otherwise) is None:
            start = otherwise
            tests, otherwise = _tests_of(steps[start])
        # A tree needs at least one test.
        tests = tests or [Test(otherwise, math.inf, absent=True)]
        pending = [(steps[start].feature, tests, otherwise, -1, 0)]
        while pending:  # attribute, its tests, the step if none holds, the node and the branch that lead to the tests
            feature, tests, otherwise, node, branch = pending.pop()
            if tests:
                first, rest = tests[: (len(tests) + 1) // 2], tests[(len(tests) + 1) // 2 :]
                added = self._add_test(feature, first)
                self._link(node, branch, added, is_leaf=False)
                # Nodes are in preorder, since some runtimes read the sets of categories in this order.
                pending.append((feature, rest, otherwise, added, 1))
                pending.append((feature, first[:-1], first[-1].target, added, 0))
            elif (place := place_of(otherwise)) is not None:
                self._link(node, branch, len(self.places), is_leaf=True)
                self.places.append(float(place))
            else:
                pending.append((steps[otherwise].feature, *_tests_of(steps[otherwise]), node, branch))

    def _add_test(self, feature: int, tests: Sequence[Test]) -> int:
        """Append one node for one threshold test, or for one or more tests of categories. Return its number."""
        threshold = tests[0].threshold
        self.features.append(max(feature, 0))
        self.modes.append(MEMBER if threshold is None else AT_MOST)
        self.thresholds.append(0.0 if threshold is None else threshold)
        self.absent_holds.append(int(tests[0].absent))
        self.children.append([-1, -1])
        self.are_leaves.append([0, 0])
        if threshold is None:
            self.members += [*(float(code) for test in tests for code in test.categories), math.nan]
        return len(self.thresholds) - 1

    def _link(self, node: int, branch: int, to: int, *, is_leaf: bool) -> None:
        if node >= 0:
            self.children[node][branch] = to
            self.are_leaves[node][branch] = int(is_leaf)


def _places(program: Program) -> dict[int, int]:
    return {number: place for place, number in enumerate(program.answered)}


def _tests_of(step: Step) -> tuple[list[Test], int]:
    """Return a step's tests in order (the first one that holds is used), and the step that follows if none holds.

    No two tests have the same target, so the result is a tree.
    """
    if step.kind == CATEGORY:
        codes: dict[int, list[int]] = {}
        for code, target in enumerate(step.targets):
            codes.setdefault(target, []).append(code)
        return [Test(to, categories=tuple(codes[to])) for to in codes if to != step.absent], step.absent
    below, above = step.targets
    if below == above:
        return ([] if step.absent == below else [Test(below, math.inf)]), step.absent
    cut = Test(below, step.threshold, absent=step.absent == below)
    if step.absent in step.targets:
        return [cut], above
    return [cut, Test(above, math.inf)], step.absent


def _tensor(values: Sequence[float], dtype: npt.DTypeLike) -> Any:
    return numpy_helper.from_array(np.array(values, dtype), "")
