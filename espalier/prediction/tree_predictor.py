"""Predict single rows with a tree, in plain Python. The tree's arrays become lists, which are faster to index."""

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from espalier.data.labels import Label
from espalier.model.model import Model
from espalier.model.node_tests import NUMERIC, UNKNOWN
from espalier.model.surrogates import Surrogates
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import LeafVisit, Prediction, prediction_of_leaf, wilson_lower_bound
from espalier.prediction.encode_rows import EncodedRow, RowEncoder
from espalier.prediction.leaf_values import LeafValues, node_values
from espalier.prediction.linear_leaves import LinearAnswers
from espalier.prediction.missing_strategies import STOP

MAX_VISITS: Final = 100
"""Maximum number of paths that a prediction lists; a row without values may take every path of a tree."""


@cached_on_owner
def tree_predictor(model: Model) -> "TreePredictor":
    """Return the predictor of a tree, for single rows."""
    return TreePredictor(model)


class TreePredictor:
    """Predict single rows with a tree. Node 0 is the root; the first child of a node is the next node.

    A field with the name of an array of `Tree` holds the numbers of that array, usually as a list, except `value` (see
    below). ``share`` holds the numbers of ``branch_weight``.

    Attributes:
        answers: The answer of each node as a leaf.
        value: These answers as codes or numbers, int32 or float64 (nodes).
        linear: The same object as `smoothing` if leaves are linear; None if they are constants.
        smoothing: The models of linear or smoothed leaves; None if leaves are unsmoothed constants.
        cut: The threshold of a test of a number or date; NaN at all other nodes.
        second: The second child of a node; meaningless at a leaf.
    """

    def __init__(self, model: Model) -> None:
        tree, constant = model.tree, model.config.smoothing
        is_smoothed = constant is not None and not model.schema.classes
        self.value = node_values(model)
        self.smoothing = LinearAnswers(tree, tree.linear, constant) if is_smoothed or tree.linear is not None else None
        self.linear = self.smoothing if tree.linear is not None else None
        self.classes = model.schema.classes
        self.point = model.operating_point
        self.encode = RowEncoder(model.schema, model.preparation.imputed)
        self.is_number = self.encode.is_number
        self.test: list[int] = tree.test.tolist()
        self.feature: list[int] = tree.feature.tolist()
        self.threshold: list[float] = tree.threshold.tolist()
        self.fallback: list[int] = tree.fallback.tolist()
        self.weight: list[float] = tree.weight.tolist()
        self.child_start: list[int] = tree.child_start.tolist()
        self.child: list[int] = tree.child.tolist()
        self.share: list[float] = tree.branch_weight.tolist()
        self.code_start: list[int] = tree.code_start.tolist()
        self.code_branch: list[int] = tree.code_branch.tolist()
        is_number = np.array([*self.is_number, False], dtype=np.bool_)
        is_cut = (tree.test == NUMERIC) & is_number[tree.feature]
        self.cut: list[float] = np.where(is_cut, tree.threshold, math.nan).tolist()
        self.second: list[int] = np.append(tree.child, 0)[
            np.minimum(tree.child_start[:-1] + 1, len(tree.child))
        ].tolist()
        self.surrogates = SurrogateTests(tree.surrogates, self.is_number) if tree.surrogates is not None else None
        self.parent = tree.parent
        self.answers = LeafValues(model)

    def answer(self, row: EncodedRow) -> Prediction:
        """Predict one encoded row."""
        path = [0]
        if not self.follow(path, row.values):
            return self._mixed_prediction(row)
        leaf, nodes = path[-1], tuple(path)
        answer = self.answers[leaf]
        value = answer.value if self.linear is None else self.linear.value(leaf, row.values)
        return prediction_of_leaf(answer, value, self.weight[leaf], nodes, row)

    def branch(self, node: int, values: Sequence[float]) -> int:
        """Return the branch that an encoded row takes at `node`; -1 for all branches, `STOP` if the row ends there."""
        test, feature = self.test[node], self.feature[node]
        value = values[feature]
        # NaN is the only number that differs from itself; a negative code is no category.
        absent = value != value or (value < 0 and not self.is_number[feature])  # noqa: PLR0124
        if test == UNKNOWN:
            return 1 if absent else 0
        branch = -1
        if not absent:
            if test == NUMERIC:
                return 0 if value <= self.threshold[node] else 1
            place = self.code_start[node] + int(value)
            branch = self.code_branch[place] if place < self.code_start[node + 1] else -1
        if branch < 0 and self.surrogates is not None:
            branch = self.surrogates.branch(node, values)
        return branch if branch >= 0 else self.fallback[node]

    def branch_is_known(self, node: int, value: float) -> bool:
        """Return whether training rows with the category `value` reached `node`; True if the test is not NOMINAL."""
        first, stop = self.code_start[node], self.code_start[node + 1]
        return first == stop or (0 <= value < stop - first and self.code_branch[first + int(value)] >= 0)

    def edges(self, values: Sequence[float]) -> Iterator[tuple[int, int, float]]:
        """Yield (node, child, share of the row) for every edge that a share of the row takes, in no special order."""
        stack = [(0, 1.0)]
        while stack:
            node, weight = stack.pop()
            while self.feature[node] >= 0:
                first, branch = self.child_start[node], self.branch(node, values)
                if branch == STOP:
                    break
                if branch < 0:
                    for place in range(first, self.child_start[node + 1]):
                        if self.share[place] > 0:
                            child, part = self.child[place], weight * self.share[place]
                            stack.append((child, part))
                            yield node, child, part
                    break
                yield node, self.child[first + branch], weight
                node = self.child[first + branch]

    def follow(self, path: list[int], values: Sequence[float]) -> bool:
        """Extend `path` until the row ends (return True) or a node divides it among several branches (return False)."""
        feature, cut, second = self.feature, self.cut, self.second
        node = path[-1]
        while (tested := feature[node]) >= 0:
            value = values[tested]
            if value <= cut[node]:
                node += 1
            elif value > cut[node]:
                node = second[node]
            else:  # the value is missing, or the test is not of a number or date
                branch = self.branch(node, values)
                if branch < 0:
                    return branch == STOP
                node = self.child[self.child_start[node] + branch]
            path.append(node)
        return True

    def _mixed_prediction(self, row: EncodedRow) -> Prediction:
        """Return the average of the leaves, weighted by the share of the row at each (Quinlan 1993, chapter 3)."""
        leaves, weights = self._reached(row.values)
        support = math.fsum(weight * self.weight[leaf] for weight, leaf in zip(weights, leaves, strict=True))
        label = value = confidence = std = None
        best = -1
        distribution: tuple[tuple[Label, float], ...] = ()
        if self.classes:
            shares = self._mixed_shares(leaves, weights, laplace=self.answers.laplace)
            best = self._decide(shares, leaves)
            counted = self._mixed_shares(leaves, weights, laplace=False) if self.answers.laplace else shares
            label, confidence = self.classes[best], wilson_lower_bound(counted[best], support)
            distribution = tuple(zip(self.classes, shares, strict=True))
        else:
            value, std = self._mixed_number(leaves, weights)
        visits = self._heaviest(leaves, weights)
        return Prediction(
            label=label,
            code=best,
            value=value,
            distribution=distribution,
            confidence=confidence,
            std=std,
            support=support,
            leaf=visits[0].leaf,
            nodes=visits[0].nodes,
            visits=visits,
            n_visits=len(leaves),
            row=row,
        )

    def _reached(self, values: Sequence[float]) -> tuple["array[int]", "array[float]"]:
        # Arrays: a row without values may reach every leaf of the tree.
        leaves, weights = array("i"), array("d")
        for _, child, weight in self.edges(values):
            if self.feature[child] < 0:
                leaves.append(child)
                weights.append(weight)
        return leaves, weights

    def _mixed_shares(self, leaves: Sequence[int], weights: Sequence[float], *, laplace: bool) -> list[float]:
        table = self.answers.shares(np.array(leaves), laplace=laplace) * np.array(weights)[:, None]
        return [math.fsum(column) for column in table.T.tolist()]

    def _decide(self, shares: Sequence[float], leaves: Sequence[int]) -> int:
        if self.point is None:
            return shares.index(max(shares))
        # Without rounding, no mean is beyond the shares of all leaves, so it passes a probability only if one of them
        # does: a consultation relies on this.
        table = self.answers.shares(np.array(leaves), laplace=self.answers.laplace)
        return self.point.decide(np.clip(shares, table.min(axis=0), table.max(axis=0)).tolist())

    def _mixed_number(self, leaves: Sequence[int], weights: Sequence[float]) -> tuple[float, float]:
        numbers, stds = self.answers.numbers(np.array(leaves))
        mean = math.fsum(weight * number for weight, number in zip(weights, numbers, strict=True))
        squares = (
            weight * (std**2 + (number - mean) ** 2) for weight, number, std in zip(weights, numbers, stds, strict=True)
        )
        return mean, math.sqrt(math.fsum(squares))

    def _heaviest(self, leaves: Sequence[int], weights: Sequence[float]) -> tuple[LeafVisit, ...]:
        """Return the `MAX_VISITS` heaviest paths, heaviest first (ties: the earlier leaf)."""
        first = np.lexsort((np.array(leaves), -np.array(weights)))[:MAX_VISITS].tolist()
        return tuple(LeafVisit(weights[place], self.nodes_to(leaves[place])) for place in first)

    def nodes_to(self, leaf: int) -> tuple[int, ...]:
        """Return the nodes from the root to a leaf."""
        nodes = [leaf]
        while nodes[-1] > 0:
            nodes.append(int(self.parent[nodes[-1]]))
        return tuple(reversed(nodes))


class SurrogateTests:
    """Surrogate tests as lists; see `espalier.model.surrogates.Surrogates`."""

    def __init__(self, surrogates: Surrogates, is_number: Sequence[bool]) -> None:
        self.is_number = is_number
        self.start: list[int] = surrogates.start.tolist()
        self.feature: list[int] = surrogates.feature.tolist()
        self.test: list[int] = surrogates.test.tolist()
        self.threshold: list[float] = surrogates.threshold.tolist()
        self.below: list[int] = surrogates.below.tolist()
        self.code_start: list[int] = surrogates.code_start.tolist()
        self.code_branch: list[int] = surrogates.code_branch.tolist()

    def branch(self, node: int, values: Sequence[float]) -> int:
        """Return the branch that the first `deciding` surrogate of `node` gives the row; -1 if there is none."""
        other = self.deciding(node, values)
        return -1 if other < 0 else self.taken(other, values[self.feature[other]])

    def deciding(self, node: int, values: Sequence[float]) -> int:
        """Return the index of the first surrogate of `node` that has a branch for the row (`taken`); -1 if none has."""
        for other in range(self.start[node], self.start[node + 1]):
            if self.taken(other, values[self.feature[other]]) >= 0:
                return other
        return -1

    def taken(self, other: int, value: float) -> int:
        """Return the branch of surrogate `other` for a value of its attribute; -1 if the value is missing or unseen."""
        if value != value or (value < 0 and not self.is_number[self.feature[other]]):  # noqa: PLR0124
            return -1
        if self.test[other] == NUMERIC:
            return self.below[other] if value <= self.threshold[other] else 1 - self.below[other]
        place = self.code_start[other] + int(value)
        return self.code_branch[place] if place < self.code_start[other + 1] else -1
