"""Two groups of categories, if the limit on the weight of a branch refuses the best split of their order."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import pvariance
from typing import Any

import numpy as np
import pytest

import espalier


def gini(classes: Sequence[Any]) -> float:
    return 1.0 - math.fsum((classes.count(label) / len(classes)) ** 2 for label in {*classes})


def entropy(classes: Sequence[Any]) -> float:
    shares = [classes.count(label) / len(classes) for label in {*classes}]
    return -math.fsum(share * math.log2(share) for share in shares)


IMPURITY: dict[str, Callable[[Sequence[Any]], float]] = {
    "gini": gini,
    "information_gain": entropy,
    "squared_error": pvariance,
}


def best_legal_gain(rows: Sequence[tuple[str, Any]], criterion: str, least: int) -> float:
    """The largest gain of any two groups of categories with at least `least` rows each; 0 if there are none."""
    of_category = defaultdict(list)
    for category, target in rows:
        of_category[category].append(target)
    impurity, gains = IMPURITY[criterion], [0.0]
    for size in range(1, len(of_category)):
        for chosen in itertools.combinations(of_category, size):
            sides = [
                [target for category, targets in of_category.items() if (category in chosen) is inside
                 for target in targets]
                for inside in (True, False)
            ]  # fmt: skip
            if min(map(len, sides)) >= least:
                after = math.fsum(len(side) / len(rows) * impurity(side) for side in sides)
                gains.append(impurity([target for _, target in rows]) - after)
    return max(gains)


def trained(rows: Sequence[tuple[str, Any]], **fields: Any) -> espalier.Model:
    data = espalier.dataset_from_rows([{"a": a, "y": y} for a, y in rows], target="y")
    return espalier.train(data, "cart", pruning=None, nominal="subset", max_depth=1, **fields)


def test_a_node_with_a_legal_grouping_is_split_if_all_splits_of_the_order_are_too_light() -> None:
    # In the order of the share of q: v2 and v3 (0 of 1), v0 (4 of 6), v1 (3 of 3). Every split of this order leaves
    # fewer than 4 rows on a side. v0 with v2 or v3, against the other two, leaves 7 and 4 rows, with 3 and 1 of p.
    rows = [("v0", "p")] * 2 + [("v0", "q")] * 4 + [("v1", "q")] * 3 + [("v2", "p"), ("v3", "p")]
    tree = trained(rows, min_weight_leaf=4).tree
    assert tree.codes(0).tolist() in ([0, 1, 0, 1], [0, 1, 1, 0])
    # The root has 4 of p and 7 of q.
    assert tree.gain[0] == pytest.approx(2 * 4 * 7 / 11**2 - (7 / 11 * 2 * 3 * 4 / 7**2 + 4 / 11 * 2 * 1 * 3 / 4**2))


@pytest.mark.parametrize("criterion", IMPURITY)
@pytest.mark.parametrize("seed", range(12))
def test_the_best_legal_grouping_is_found(criterion: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    categories = [f"v{code}" for code in random.choice(7, 26, p=np.array([1, 1, 2, 3, 4, 6, 8]) / 25)]
    targets = (
        random.normal(0, 3, 26).round(2).tolist() if criterion == "squared_error"
        else random.choice(["p", "q"], 26).tolist()
    )  # fmt: skip
    rows = list(zip(categories, targets, strict=True))
    gain = trained(rows, criterion=criterion, min_weight_leaf=12).tree.gain[0]
    assert np.nan_to_num(gain) == pytest.approx(best_legal_gain(rows, criterion, 12), abs=1e-9)


@pytest.mark.parametrize("n_categories", [10, 11])
def test_of_more_than_ten_categories_a_note_says_that_a_better_grouping_may_exist(n_categories: int) -> None:
    # One row of p in the first category: it alone against the rest is the best split, and too light.
    rows = [("v00", "p")] + [(f"v{code:02}", "q") for code in range(1, n_categories) for _ in range(3)]
    notes = trained(rows, min_weight_leaf=3).notes
    assert any("a better grouping may exist" in note for note in notes) is (n_categories > 10)
    assert not any("a better grouping may exist" in note for note in trained(rows, min_weight_leaf=1).notes)
