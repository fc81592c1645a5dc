"""The tree as a struct of arrays."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import DocumentError
from espalier.model.node_tests import LEAF, NUMERIC
from espalier.model.surrogates import Surrogates
from espalier.model.tree import Tree
from tests.core.planted import (
    MIXED,
    NUMBERS,
    Ask,
    Cut,
    Known,
    Leaf,
    n_nodes,
    node_numbered,
    planted_tree,
    roots,
    tree_from_parents,
)

A, B, C = Leaf((4.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0)), Leaf((0.0, 1.0, 3.0))
ROOT = Cut(0, 1.5, (Ask(1, (0, 1, -1), (A, B), fallback=0), Known(2, (C, A))), fallback=1)


FIELDS = [
    field
    for field in dataclasses.fields(Tree)
    if field.name not in ("size", "child_start", "child", "surrogates", "linear")
]


def tree():
    return planted_tree(MIXED, ROOT)


def changed(**arrays):
    return dataclasses.replace(tree(), **{name: np.array(array) for name, array in arrays.items()})


def test_nodes_stand_in_preorder_and_a_subtree_is_a_slice():
    assert tree().parent.tolist() == [-1, 0, 1, 1, 0, 4, 4]
    assert tree().size.tolist() == [7, 3, 1, 1, 3, 1, 1]
    assert [tree().children(node) for node in range(7)] == [[1, 4], [2, 3], [], [], [5, 6], [], []]
    assert tree().branches.tolist() == [-1, 0, 0, 1, 1, 0, 1]
    assert tree().depths.tolist() == [0, 1, 2, 2, 1, 2, 2]
    assert (tree().n_nodes, tree().n_leaves, tree().depth) == (7, 4, 2)
    assert tree().codes(1).tolist() == [0, 1, -1]
    tree().validate(n_attributes=4)


def test_no_array_can_be_written():
    with pytest.raises(ValueError, match="read-only"):
        tree().threshold[0] = 2.0


def test_equal_trees_are_equal_with_their_nans_and_any_other_number_differs():
    assert tree() == tree()
    assert tree() != changed(threshold=[1.25, *[math.nan] * 6])
    assert tree() != 3


@pytest.mark.parametrize(
    ("array", "values", "message"),
    [
        ("parent", [0, 0, 1, 1, 0, 4, 4], "root"),
        ("parent", [-1, 0, 1, 1, 0, 5, 4], "a parent must come before its children"),
        ("parent", [-1, 0, 1, 1, 0, -1, 4], "a parent must come before its children"),
        ("size", [7, 3, 1, 1, 3, 1], "one entry per node: 7"),
        ("size", [7, 2, 1, 1, 3, 1, 1], "does not follow from parent"),
        ("child", [4, 1, 2, 3, 5, 6], "does not follow from parent"),
        ("child", [1, 4, 2, 3, 5], "6 entries"),
        ("child_start", [0, 2, 4, 4, 4, 5, 6, 6], "does not follow from parent"),
        ("child_start", [0, 2, 4, 3, 4, 6, 6, 6], "must never decrease"),
        ("child_start", [1, 2, 4, 4, 4, 6, 6, 6], "the first 0"),
        ("feature", [0, 1, -1, -1, 4, -1, -1], "must be below 4"),
        ("feature", [0, 1, -2, -1, 2, -1, -1], "exactly the leaves test no attribute"),
        ("feature", [0, 1, -1, -1, -1, -1, -1], "exactly the leaves test no attribute"),
        ("feature", [0, 1, 2, -1, 2, -1, -1], "exactly the leaves test no attribute"),
        ("test", [1, 2, 0, 0, 4, 0, 0], "must be 0, 1, 2 or 3"),
        ("test", [1, 2, 0, 0, -1, 0, 0], "must be 0, 1, 2 or 3"),
        ("test", [1, 2, 0, 0, 0, 0, 0], "exactly the leaves have test 0"),
        ("test", [1, 2, 1, 0, 3, 0, 0], "exactly the leaves have test 0"),
        ("threshold", [math.nan] * 7, "finite threshold"),
        ("threshold", [math.inf, *[math.nan] * 6], "finite threshold"),
        ("code_start", [0, 0, 3, 3, 3, 3, 3, 4], "must end at the length"),
        ("code_start", [0, 0, 3, 2, 3, 3, 3, 3], "must never decrease"),
        ("code_branch", [0, 2, -1], "must be -1 or a branch"),
        ("code_branch", [0, -2, -1], "must be -1 or a branch"),
        ("code_branch", [0, 0, -1], "each branch needs a category"),
        ("fallback", [2, 0, -1, -1, 0, -1, -1], "must be -1 or a branch"),
        ("fallback", [-2, 0, -1, -1, 0, -1, -1], "must be -1 or a branch"),
        ("branch_weight", [0.5, 0.5, 0.5, 0.5, 0.5], "6 entries"),
        ("branch_weight", [0.5, 1.5, 0.5, 0.5, 0.5, 0.5], "must be from 0 to 1"),
        ("branch_weight", [0.5, math.nan, 0.5, 0.5, 0.5, 0.5], "must be from 0 to 1"),
        ("weight", [14.0, 6.0, 4.0, 2.0, 8.0, 4.0, -4.0], "from 0 to 1e300"),
        ("weight", [14.0, 6.0, 4.0, 2.0, 8.0, 4.0, math.nan], "from 0 to 1e300"),
        ("weight", [14.0, 6.0, 4.0, 2.0, 8.0, 4.0, math.inf], "from 0 to 1e300"),
        ("weight", [0.0] * 7, "root"),
        ("gain", [0.5], "one entry per node"),
        ("value", [0], "one entry per node"),
        ("stats", [[1.0, 1.0, math.nan]] * 7, "rows within ±1e300"),
        ("stats", [1.0] * 7, "must be rows"),
    ],
)
def test_an_array_that_makes_no_tree_is_refused_by_its_name(array, values, message):
    dtype = getattr(tree(), array).dtype
    broken = changed(**{array: np.array(values, dtype=dtype)})
    with pytest.raises(DocumentError, match=message) as caught:
        broken.validate(n_attributes=4)
    (fault,) = caught.value.faults
    assert fault.path == f"/tree/{array}"


def test_nodes_that_do_not_stand_in_preorder_are_refused():
    parent = [-1, 0, 0, 1, 1]
    arrays = {field.name: getattr(planted_tree(MIXED, Leaf((1.0, 0.0, 0.0))), field.name) for field in FIELDS}
    inner = np.array([True, True, False, False, False])
    level_by_level = tree_from_parents(
        {
            **{name: np.repeat(array, 5, axis=0) for name, array in arrays.items()},
            "parent": parent,
            "feature": np.where(inner, 0, -1).astype(np.int32),
            "test": np.where(inner, NUMERIC, LEAF).astype(np.int8),
            "threshold": np.where(inner, 0.5, math.nan),
            "code_start": np.zeros(6, dtype=np.int32),
            "branch_weight": np.full(4, 0.5),
        }
    )
    with pytest.raises(DocumentError, match="nodes must be in preorder"):
        level_by_level.validate(n_attributes=4)


def test_a_fractional_nodes_shares_must_add_up_to_one_so_that_a_prediction_is_never_empty():
    fractional = planted_tree(MIXED, Cut(0, 1.5, (A, B)))
    fractional.validate(n_attributes=4)
    broken = dataclasses.replace(fractional, branch_weight=np.zeros(2))
    with pytest.raises(DocumentError, match="add up to 1"):
        broken.validate(n_attributes=4)


def test_a_test_of_one_branch_is_refused():
    one = Ask(1, (0, 0, 0), (A,))
    with pytest.raises(DocumentError, match="at least two branches"):
        planted_tree(MIXED, one).validate(n_attributes=4)


def test_no_nodes_are_no_tree():
    empty = {field.name: getattr(tree(), field.name)[:0] for field in dataclasses.fields(tree())[:-2]}
    with pytest.raises(DocumentError):
        type(tree())(**empty).validate(n_attributes=4)


def surrogates(**arrays):
    """One numeric and one nominal surrogate at the root of `ROOT`."""
    whole = {
        "start": [0, 2, 2, 2, 2, 2, 2, 2],
        "feature": [2, 1],
        "test": np.array([1, 2], dtype=np.int8),
        "threshold": [0.5, math.nan],
        "below": [1, 0],
        "code_start": [0, 0, 3],
        "code_branch": [0, 1, -1],
        "agreement": [0.75, 0.5],
        **arrays,
    }
    made = {
        name: np.array(values, dtype=np.float64 if name in ("threshold", "agreement") else np.int32)
        for name, values in whole.items()
    }
    return dataclasses.replace(tree(), surrogates=Surrogates(**made))


def test_surrogates_are_kept_with_the_nodes_that_remain():
    surrogates().validate(n_attributes=4)
    pruned = surrogates().collapsed(np.arange(7) == 4)
    pruned.validate(n_attributes=4)
    assert pruned.surrogates.start.tolist() == [0, 2, 2, 2, 2, 2]
    assert pruned.surrogates.code_branch.tolist() == [0, 1, -1]
    leaf = surrogates().collapsed(np.arange(7) == 0)
    leaf.validate(n_attributes=4)
    assert leaf.surrogates.start.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("array", "values"),
    [
        ("start", [0, 2]),
        ("start", [0, 0, 2, 2, 2, 2, 2, 3]),
        ("start", [0, 0, 0, 2, 2, 2, 2, 2]),
        ("start", [0, 2, 1, 2, 2, 2, 2, 2]),
        ("feature", [2, 4]),
        ("feature", [-1, 1]),
        ("feature", [2]),
        ("test", [1, 3]),
        ("test", [0, 2]),
        ("threshold", [math.nan, math.nan]),
        ("threshold", [0.5]),
        ("below", [2, 0]),
        ("code_start", [0, 0]),
        ("code_start", [0, 0, 4]),
        ("code_branch", [0, 2, -1]),
        ("agreement", [0.0, 0.5]),
        ("agreement", [1.5, 0.5]),
        ("agreement", [math.nan, 0.5]),
    ],
)
def test_broken_surrogates_are_refused_by_name(array, values):
    with pytest.raises(DocumentError) as caught:
        surrogates(**{array: values}).validate(n_attributes=4)
    assert caught.value.faults[0].path.startswith("/tree/surrogates/")


def test_a_chain_of_a_hundred_thousand_tests_needs_no_recursion():
    n_inner = 100_000
    parent = np.concatenate(([-1], np.repeat(np.arange(n_inner) * 2, 2)))
    inner = np.zeros(2 * n_inner + 1, dtype=bool)
    inner[0:-1:2] = True
    # Node 2i tests; its first child 2i + 1 is a leaf, its second 2i + 2 tests again.
    weight = np.zeros(2 * n_inner + 1)
    weight[::2] = np.arange(n_inner + 1, 0, -1)
    weight[1::2] = 1.0
    chain = tree_from_parents(
        {
            "parent": parent,
            "feature": np.where(inner, 0, -1).astype(np.int32),
            "test": np.where(inner, NUMERIC, LEAF).astype(np.int8),
            "threshold": np.where(inner, 0.5, math.nan),
            "code_start": np.zeros(2 * n_inner + 2, dtype=np.int32),
            "code_branch": np.zeros(0, dtype=np.int32),
            "fallback": np.where(inner, 0, -1).astype(np.int32),
            "branch_weight": np.full(2 * n_inner, 0.5),
            "weight": weight,
            "gain": np.where(inner, 0.1, math.nan),
            "stats": np.stack([weight, np.zeros_like(weight)], axis=1),
            "value": np.zeros(2 * n_inner + 1, dtype=np.int32),
        }
    )
    chain.validate(n_attributes=1)
    assert (chain.depth, chain.n_leaves) == (n_inner, n_inner + 1)
    assert chain.collapsed(np.arange(chain.n_nodes) == 2).n_nodes == 3


@st.composite
def trees_with_masks(draw, schema=MIXED):
    root = draw(roots(schema))
    n = n_nodes(root)
    return root, np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))


@pytest.mark.parametrize("schema", [MIXED, NUMBERS])
@given(data=st.data())
def test_every_planted_tree_is_a_tree(schema, data):
    planted_tree(schema, data.draw(roots(schema))).validate(n_attributes=4)


@given(drawn=trees_with_masks())
def test_a_collapsed_tree_is_the_tree_cut_where_the_mask_says(drawn):
    root, mask = drawn
    tree = planted_tree(MIXED, root)
    cut = tree.collapsed(mask)
    cut.validate(n_attributes=4)
    assert cut == planted_tree(MIXED, _cut(root, tree, mask))


def _cut(root, tree, mask, number=0):
    if mask[number] or isinstance(root, Leaf):
        return Leaf(tuple(tree.stats[number].tolist()))
    children = tuple(
        _cut(child, tree, mask, at) for child, at in zip(root.children, tree.children(number), strict=True)
    )
    return dataclasses.replace(root, children=children)


@given(drawn=trees_with_masks())
def test_collapsing_twice_is_collapsing_once(drawn):
    root, mask = drawn
    tree = planted_tree(MIXED, root)
    once = tree.collapsed(mask)
    assert once.collapsed(np.zeros(once.n_nodes, dtype=bool)) == once
    assert tree.collapsed(np.ones(tree.n_nodes, dtype=bool)).n_nodes == 1


@given(root=roots(MIXED))
def test_what_follows_from_parent_agrees_with_the_nested_form(root):
    tree = planted_tree(MIXED, root)
    for number in range(tree.n_nodes):
        node = node_numbered(root, number)
        assert tree.size[number] == n_nodes(node)
        assert len(tree.children(number)) == len(getattr(node, "children", ()))
        assert [tree.branches[child] for child in tree.children(number)] == list(
            range(len(getattr(node, "children", ())))
        )
