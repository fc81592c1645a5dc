"""Class weights beside limits on the size of leaves: the trees of scikit-learn, whose limits count rows."""

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from espalier import TreeClassifier

N_TABLES = 40


def table(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of an uneven mixture of classes; no two values of an attribute are equal."""
    random = np.random.default_rng(seed)
    inputs = random.standard_normal((160, 3)).astype(np.float32)
    signal = inputs[:, 0] + 0.7 * inputs[:, 1] * inputs[:, 2] + random.standard_normal(160)
    return inputs, np.digitize(signal, [0.9, 1.9][: n_classes - 1])


def gain(tree: Any, node: int) -> float:
    """What scikit-learn's test of a node lowers the impurity by."""
    children = [tree.children_left[node], tree.children_right[node]]
    after = sum(tree.weighted_n_node_samples[child] * tree.impurity[child] for child in children)
    return float(tree.impurity[node] - after / tree.weighted_n_node_samples[node])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.2, 1: 3.0}], ids=str)
@pytest.mark.parametrize(
    "limits", [{"min_samples_leaf": 4}, {"min_samples_leaf": 11}, {"min_samples_split": 30}], ids=str
)
def test_trees_of_weighted_classes_are_scikit_learn_s_down_to_equal_scores(
    n_classes: int, class_weight: Any, limits: dict[str, int]
) -> None:
    compared = ties = 0
    for seed in range(N_TABLES):
        inputs, classes = table(seed, n_classes)
        ours = TreeClassifier(class_weight=class_weight, **limits).fit(inputs, classes).model_.tree
        theirs = DecisionTreeClassifier(class_weight=class_weight, random_state=0, **limits).fit(inputs, classes).tree_
        pending = [(0, 0)]
        while pending:
            mine, its = pending.pop()
            if theirs.impurity[its] < 1e-12:  # one class: they split on, if rounding leaves an impurity
                assert ours.test[mine] == 0
                continue
            assert (ours.test[mine] == 0) == (theirs.children_left[its] < 0)
            if ours.test[mine] == 0:
                continue
            compared += 1
            assert ours.gain[mine] == pytest.approx(gain(theirs, its), rel=1e-9)
            if (ours.feature[mine], ours.threshold[mine]) != (
                theirs.feature[its], pytest.approx(theirs.threshold[its], rel=1e-6)
            ):  # fmt: skip
                ties += 1  # another test of the same gain: what lies below it is another tree
                continue
            pending += zip(ours.children(mine), (theirs.children_left[its], theirs.children_right[its]), strict=True)
    assert compared > 8 * ties
