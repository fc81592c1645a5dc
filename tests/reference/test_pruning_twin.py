"""The slow twin of reduced-error pruning against cases that are worked out by hand."""

import pytest

from tests.reference.reduced_error import leaf, loss, n_leaves, pruned, ways, with_one_leaf_more


def cut(threshold, low, high, answer, shares=(0.5, 0.5)):
    """A test on a number; None is shared out."""

    def test(value):
        if value is None:
            return list(enumerate(shares))
        return [(0 if value <= threshold else 1, 1.0)]

    return {"answer": answer, "test": test, "children": [low, high]}


def wrong(answer, truth):
    return float(answer != truth)


TREE = cut(0, cut(-5, leaf("a"), leaf("b"), "a"), leaf("b"), "b")


def test_a_row_without_a_value_is_shared_out():
    assert ways(TREE, None) == [(0.25, "a"), (0.25, "b"), (0.5, "b")]
    assert loss(TREE, [(None, "a", 2.0)], wrong) == pytest.approx(1.5)


def test_a_subtree_that_errs_more_than_its_majority_goes():
    rows = [(-3, "a", 1.0), (-6, "a", 1.0), (3, "b", 1.0)]
    assert loss(TREE, rows, wrong) == 1
    kept = pruned(TREE, rows, miss=wrong)
    assert n_leaves(kept) == 2
    assert loss(kept, rows, wrong) == 0


def test_a_tie_goes_with_prune_and_stays_with_keep():
    assert n_leaves(pruned(TREE, [(3, "b", 1.0)], miss=wrong, ties="prune")) == 1
    assert n_leaves(pruned(TREE, [(3, "b", 1.0)], miss=wrong, ties="keep")) == 3


def test_a_branch_that_no_row_reaches_goes_with_prune():
    kept = pruned(TREE, [(3, "b", 1.0), (3, "b", 1.0)], miss=wrong, prune_root=False)
    assert n_leaves(kept) == 2


def test_the_root_stays_where_it_must_not_be_pruned():
    assert n_leaves(pruned(cut(0, leaf("a"), leaf("b"), "a"), [], miss=wrong, prune_root=False)) == 2
    assert n_leaves(pruned(cut(0, leaf("a"), leaf("b"), "a"), [], miss=wrong)) == 1


def test_weights_decide_not_rows():
    rows = [(-3, "a", 0.1), (-3, "a", 0.1), (-3, "b", 1.0), (-6, "a", 1.0), (3, "b", 1.0)]
    assert n_leaves(pruned(TREE, rows, miss=wrong)) == 3


def test_every_tree_with_one_inner_node_less_is_listed():
    assert sorted(map(n_leaves, with_one_leaf_more(TREE))) == [1, 2]
