"""Rules of the twin that no published figure decides, on tables small enough to check by hand."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tests.reference import candidates, missing, predictor, replay, scores, splits, tree
from tests.reference.grower import grow, grow_table
from tests.reference.presets import preset
from tests.reference.table import Cell, Column, Table, Target

MITCHELL = [40.0, 48.0, 60.0, 72.0, 80.0, 90.0]
MITCHELL_CLASSES = [0, 0, 1, 1, 1, 0]


def numeric(values: Sequence[float | None], classes: list[int], **fields: Any) -> tree.Node:
    target = ("class", classes, max(classes) + 1)
    return grow([("numeric", values, 0)], target, [1.0] * len(values), preset("cart", **fields))


def nominal(codes: Sequence[int | None], k: int, classes: list[int], **fields: Any) -> tree.Node:
    target = ("class", classes, max(classes) + 1)
    return grow([("nominal", codes, k)], target, [1.0] * len(codes), preset("cart", **fields))


def cuts(values: Sequence[float], answers: Sequence[float], kind: str = "class", **fields: Any) -> list[float]:
    config = preset("cart", kind, **fields)
    attribute = candidates.Attribute(0, "numeric", tuple(values), 0)
    sample = [(row, 1.0) for row in range(len(values))]
    target = Target(kind, tuple(answers), 2)
    return [c.threshold for c in candidates.candidates(attribute, sample, target, config)]


def test_boundary_tries_only_the_two_cuts_where_the_class_changes() -> None:
    assert cuts(MITCHELL, MITCHELL_CLASSES, numeric="boundary") == [54.0, 85.0]


def test_boundary_tries_both_sides_of_a_value_with_two_classes() -> None:
    assert cuts([1.0, 2.0, 2.0, 3.0], [0, 0, 1, 1], numeric="boundary") == [1.5, 2.5]


def test_near_median_looks_from_the_middle_outwards_for_a_change_of_value_and_class() -> None:
    rows = [(row, 1.0) for row in range(8)]
    assert candidates.from_the_middle(rows, range(1, 8)) == [4, 5, 6, 3, 7, 2, 1]
    assert cuts(MITCHELL, MITCHELL_CLASSES, numeric="near_median") == [85.0]
    assert cuts([5.0, 8.0, 10.0, 12.0], [0, 0, 0, 1], numeric="near_median") == [11.0]


def test_near_median_offers_nothing_where_value_and_class_never_change_together() -> None:
    assert cuts([1.0, 1.0, 2.0, 2.0], [0, 1, 1, 0], numeric="near_median") == []


def test_median_cuts_a_column_in_half_or_at_the_nearest_change() -> None:
    assert cuts([1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4], "number", numeric="median") == [2.5]
    assert cuts([1.0, 2.0, 2.0, 2.0], [1, 2, 3, 4], "number", numeric="median") == [1.5]


def test_an_expert_s_cut_points_are_the_only_ones_and_stay_as_they_are() -> None:
    root = numeric(MITCHELL, MITCHELL_CLASSES, cut_points={0: [50.0, 75.0]}, threshold="observed")
    assert root.threshold == 50.0


def test_a_midpoint_that_rounds_up_to_the_upper_value_becomes_the_lower_one() -> None:
    below = 1.0 + 2**-52
    above = math.nextafter(below, 2.0)
    assert (below + above) / 2 == above
    assert candidates.midpoint(below, above) == below


def test_an_observed_threshold_is_a_value_of_the_training_set_outside_the_node_too() -> None:
    others: list[Cell] = [0, 0, 0, 0, 1, 1, 1, 1]
    numbers: list[Cell] = [1.0, 2.0, 5.0, 6.0, 3.0, 0.5, 1.5, 7.0]
    columns = [("nominal", others, 2), ("numeric", numbers, 0)]
    target = ("class", [0, 0, 1, 1, 2, 2, 2, 2], 3)
    root = grow(columns, target, [1.0] * 8, preset("id3", numeric="best", threshold="observed"))
    inner = [child for child in root.children if child.children]
    assert [child.threshold for child in inner] == [3.0]


def test_a_category_without_rows_gets_a_leaf_that_answers_as_its_parent() -> None:
    root = nominal([0, 0, 0, 2, 2], 3, [0, 0, 0, 1, 1], nominal="multiway")
    empty = root.children[1]
    assert (empty.weight, empty.stats, empty.value) == (0.0, (0.0, 0.0), root.value)
    assert predictor.distribution(root, [1], missing="majority") == [0.6, 0.4]


def test_one_vs_rest_sends_a_category_not_seen_here_to_the_rest_and_subset_marks_it() -> None:
    codes, classes = [0, 0, 1, 1], [0, 0, 1, 1]
    assert nominal(codes, 3, classes, nominal="one_vs_rest").branch_of_category == (0, 1, 1)
    assert nominal(codes, 3, classes, nominal="subset").branch_of_category == (0, 1, -1)


def test_two_groups_of_many_categories_and_classes_are_found_without_trying_all() -> None:
    codes = [code for code in range(14) for _ in range(2)]
    root = nominal(codes, 14, [code % 3 for code in codes], nominal="subset", max_depth=1)
    groups = [{code % 3 for code in range(14) if root.branch_of_category[code] == branch} for branch in (0, 1)]
    assert groups[0].isdisjoint(groups[1])


def test_unknown_rows_are_tried_on_each_side_and_against_the_known_ones() -> None:
    left = numeric([1.0, 2.0, None, 4.0], [0, 0, 0, 1])
    assert (left.threshold, left.fallback) == (3.0, 0)
    apart = numeric([1.0, 2.0, None, None], [0, 0, 1, 1])
    assert (apart.test, apart.branch_weight) == ("unknown", (0.5, 0.5))
    assert predictor.predicted_class(apart, [None], missing="direction") == 1
    assert predictor.predicted_class(apart, [9.0], missing="direction") == 0


def test_majority_sends_unknown_rows_with_the_heaviest_branch() -> None:
    root = numeric([1.0, 2.0, 3.0, 9.0, None], [0, 0, 0, 1, 1], missing="majority", max_depth=1)
    assert [child.weight for child in root.children] == [4.0, 1.0]


def test_a_fractional_row_goes_down_every_branch_with_the_branch_s_share() -> None:
    root = numeric([1.0, 2.0, 3.0, 9.0, None], [0, 0, 0, 1, 1], missing="fractional", max_depth=1)
    assert [child.weight for child in root.children] == [3.75, 1.25]
    assert [child.stats for child in root.children] == [(3.0, 0.75), (0.0, 1.25)]


def test_a_surrogate_sends_a_row_where_the_tested_value_is_missing() -> None:
    first: list[Cell] = [1.0, 2.0, 3.0, 7.0, 8.0, 9.0, None]
    second: list[Cell] = [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0]
    columns = [("numeric", first, 0), ("numeric", second, 0)]
    config = preset("cart", missing="surrogate", cut_points={1: []})
    root = grow(columns, ("class", [0, 0, 0, 1, 1, 1, 1], 2), [1.0] * 7, config)
    assert (root.attribute, root.threshold) == (0, 5.0)
    assert [(s.attribute, s.threshold, s.adjusted) for s in root.surrogates] == [(1, 3.0, 1.0)]
    assert [child.weight for child in root.children] == [3.0, 4.0]
    assert predictor.predicted_class(root, [None, 1.0], missing="surrogate") == 0


def test_imputed_values_are_the_weighted_mean_and_the_first_most_frequent_category() -> None:
    columns = [Column("numeric", (1.0, None, 4.0)), Column("nominal", (1, 0, None), 2)]
    assert missing.imputed_values(columns, [2.0, 1.0, 1.0]) == (2.0, 1)
    assert missing.imputed_values(columns, [1.0, 1.0, 1.0]) == (2.5, 0)


def test_last_prediction_answers_from_the_node_that_asks_for_a_missing_value() -> None:
    root = numeric([1.0, 2.0, 3.0, 9.0], [0, 0, 0, 1])
    assert predictor.distribution(root, [None], missing="last_prediction") == [0.75, 0.25]


def test_an_attribute_that_the_path_has_paid_for_costs_nothing_more() -> None:
    config = preset("id3", cost_function="nunez", attribute_costs={0: 3.0}, cost_weight=1.0)
    assert scores.with_cost(1.0, 0, paid=frozenset(), config=config) == 0.25
    assert scores.with_cost(1.0, 0, paid=frozenset({0}), config=config) == 1.0


def test_children_are_added_only_if_the_validation_rows_are_not_answered_worse() -> None:
    training = Table((Column("numeric", (1.0, 2.0, 3.0)),), Target("class", (0, 0, 1), 2), (1.0,) * 3)
    config = preset("cart", validation_stop=True)
    agreeing = Table((Column("numeric", (1.0, 3.0)),), Target("class", (0, 1), 2), (1.0,) * 2)
    assert len(grow_table(training, config, agreeing).children) == 2
    contradicting = Table((Column("numeric", (1.0, 3.0)),), Target("class", (0, 0), 2), (1.0,) * 2)
    assert grow_table(training, config, contradicting).children == ()


def test_best_first_growth_keeps_the_split_that_gains_most() -> None:
    groups: list[Cell] = [0, 0, 0, 0, 1, 1, 1, 1]
    numbers: list[Cell] = [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
    columns = [("nominal", groups, 2), ("numeric", numbers, 0)]
    target = ("number", [0.0, 0.0, 1.0, 1.0, 50.0, 50.0, 90.0, 90.0], 0)
    root = grow(columns, target, [1.0] * 8, preset("cart", "number", max_leaf_nodes=3))
    assert [tree.n_leaves(child) for child in root.children] == [1, 2]


def test_a_split_that_gains_nothing_is_taken_only_if_the_least_decrease_is_zero() -> None:
    columns = [("nominal", [0, 0, 1, 1], 2), ("nominal", [0, 1, 0, 1], 2)]
    target = ("class", [0, 1, 1, 0], 2)
    assert tree.n_leaves(grow(columns, target, [1.0] * 4, preset("cart"))) == 4
    assert tree.n_leaves(grow(columns, target, [1.0] * 4, preset("cart", min_impurity_decrease=None))) == 1
    assert tree.n_leaves(grow(columns, target, [1.0] * 4, preset("id3"))) == 1


def test_equal_scores_go_to_the_earlier_attribute_and_the_lower_threshold() -> None:
    columns = [("numeric", [1.0, 2.0, 3.0], 0), ("numeric", [1.0, 2.0, 3.0], 0)]
    root = grow(columns, ("class", [0, 1, 0], 2), [1.0] * 3, preset("cart"))
    assert (root.attribute, root.threshold) == (0, 1.5)


def test_rows_of_weight_zero_are_left_out_and_weights_count_like_copies() -> None:
    config = preset("cart")
    weighted = grow([("numeric", [1.0, 2.0, 3.0], 0)], ("class", [0, 1, 0], 2), [2.0, 1.0, 0.0], config)
    copied = grow([("numeric", [1.0, 1.0, 2.0], 0)], ("class", [0, 0, 1], 2), [1.0] * 3, config)
    assert repr(weighted) == repr(copied)  # since Python 3.13, nodes with NaN differ from themselves


def test_laplace_counts_one_more_row_of_each_class() -> None:
    root = numeric([1.0, 2.0, 3.0, 4.0], [0, 0, 0, 1], max_depth=0)
    assert predictor.distribution(root, [1.0], missing="direction", leaf_probability="laplace") == [4 / 6, 2 / 6]


def test_id3_refuses_a_numeric_attribute_and_names_c45() -> None:
    with pytest.raises(ValueError, match="c45"):
        grow([("numeric", [1.0, 2.0], 0)], ("class", [0, 1], 2), [1.0] * 2, preset("id3"))


def test_chi_square_tails_are_those_of_the_normal_and_the_exponential_distribution() -> None:
    assert scores.chi_square_tail(1.959963984540054**2, 1) == pytest.approx(0.05, rel=1e-12)
    assert scores.chi_square_tail(7.0, 2) == pytest.approx(math.exp(-3.5), rel=1e-15)
    assert scores.chi_square_tail(11.070497693516351, 5) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("strategy", ["fractional", "spread", "direction", "majority", "surrogate"])
def test_children_share_out_their_parent_s_weight_and_classes(strategy: str) -> None:
    values: list[Cell] = [1.0, 2.0, None, 4.0, 5.0, 6.0, None, 8.0]
    others: list[Cell] = [0, 1, 1, 0, None, 1, 0, 1]
    classes = [0, 1, 0, 1, 1, 0, 1, 0]
    columns = [("numeric", values, 0), ("nominal", others, 2)]
    root = grow(
        columns, ("class", classes, 2), [0.5, 1.0, 2.0, 0.25, 1.0, 1.0, 4.0, 1.0], preset("cart", missing=strategy)
    )
    waiting = [root]
    assert root.children
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.children:
            assert math.fsum(child.weight for child in node.children) == pytest.approx(node.weight, rel=1e-12)
            sums = [math.fsum(child.stats[c] for child in node.children) for c in (0, 1)]
            assert sums == pytest.approx(list(node.stats), rel=1e-12)
            assert math.fsum(node.branch_weight) == pytest.approx(1.0)


def test_spread_scores_an_attribute_after_sharing_out_its_unknown_rows() -> None:
    attribute = candidates.Attribute(0, "nominal", (0, 0, 1, 1, None), 2)
    target = Target("class", (0, 0, 1, 1, 0), 2)
    sample = [(row, 1.0) for row in range(5)]
    place = splits.Place(sample, scores.impurity("information_gain", sample, target), frozenset())
    split = splits.best_split(attribute, place, target, preset("reptree"))
    assert split is not None
    after = 0.5 * scores.entropy([2.5, 0.0]) + 0.5 * scores.entropy([0.5, 2.0])
    assert split.score == pytest.approx(scores.entropy([3.0, 2.0]) - after, rel=1e-12)


def test_a_model_fills_missing_values_before_it_asks_its_tree() -> None:
    table = Table((Column("numeric", (0.0, 1.0, 9.0, None)),), Target("class", (0, 0, 1, 0), 2), (1.0,) * 4)
    model = replay.train(table, preset("cart", missing="imputed"))
    assert model.imputed == (10 / 3,)
    assert model.answer([None], "class") == 0
