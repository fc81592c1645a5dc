"""A tree as an immutable struct of arrays, with its nodes in preorder.

Node 0 is the root; the subtree of node ``i`` is the slice ``i : i + size[i]``. A bottom-up computation is a loop from
the last node to the first, a top-down computation is a loop from the first to the last. So a tree may have any depth::

    node     0        1     2     3     4     5
    tests    outlook  leaf  leaf  wind  leaf  leaf
    size     6        1     1     3     1     1
    parent   -1       0     0     0     3     3

The children of node ``i``, in branch order, are ``child[child_start[i] : child_start[i + 1]]``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array, Floats, Ints, Mask, Places
from espalier.errors import DocumentError, Fault
from espalier.model.linear import LinearModels
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC, UNKNOWN
from espalier.model.surrogates import (
    Surrogates,
    arranged_surrogates,
    conditions_of_starts,
    is_within,
    ragged,
    surrogate_conditions,
)

MAX_NODES: Final = 20_000_000
"""Maximum number of nodes of a tree that is grown or read; with ten classes, its arrays take about 3 GB."""
MAX_AMOUNT: Final = 1e300
"""Maximum absolute value of a weight or statistic, so that a sum over `MAX_NODES` nodes is finite."""
NOT_DERIVED: Final = "does not follow from parent"
SHARE_SLACK: Final = 1e-6

Condition = tuple[str, bool, str]
"""Name of an array, whether a condition on it holds, and the condition as text."""
Owner = TypeVar("Owner")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def cached_on_owner(
    compute: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Cache the results of a function in the ``__dict__`` of its first argument, the owner: a tree or model.

    The other arguments, all positional, are the key. A result lives as long as its owner, as with
    `functools.cached_property`. But here the function may be in a package that the owner's package does not import.
    """
    name = f"{compute.__module__}.{compute.__qualname__}"

    @wraps(compute)
    def cached(owner: Owner, /, *words: Arguments.args, **none: Arguments.kwargs) -> Result:
        results, key = vars(owner), f"{name}{words}" if words else name
        if key not in results:
            results[key] = compute(owner, *words, **none)
        result: Result = results[key]
        return result

    return cached


def field_state(owner: Any) -> dict[str, Any]:
    """Return the state to pickle: the fields of a dataclass, without its cached properties."""
    return {field.name: getattr(owner, field.name) for field in fields(owner)}


@dataclass(frozen=True)
class Tree:
    """A tree of n nodes in preorder. Every array is read-only.

    Attributes:
        parent: int32 (n); the parent of each node, -1 for the root. A parent has a smaller number than its children.
        size: int32 (n); number of nodes in the subtree, this node included; a leaf has 1.
        child_start: int32 (n+1), child: int32 (n-1); the children of each node; see the beginning of this module.
        feature: int32 (n); index of the tested attribute, -1 at a leaf.
        test: int8 (n); LEAF, NUMERIC, NOMINAL or UNKNOWN; see `espalier.model.node_tests`.
        threshold: float64 (n); NaN if the test is not NUMERIC.
        code_start: int32 (n+1), code_branch: int32; at the NOMINAL test of node i, the branch of the category with code
            c is ``code_branch[code_start[i] + c]``, or -1 if not seen there in training. Other nodes have no entries.
        fallback: int32 (n); branch of a missing or unseen value; -1: all branches; -2: the row ends here. Leaves: -1.
        branch_weight: float64 (n-1); for each entry of ``child``, the child's share of its parent's weight. With
            ``missing="direction"``, all rows count; otherwise, only rows with known values do.
        weight: float64 (n); training weight that reached the node.
        gain: float64 (n); gain of the node's split, NaN at a leaf.
        stats: float64 (n, k); weight of each class; in a regression, weight, mean and sum of squared deviations.
        value: int32 (n) or float64 (n); the class code or number that each node predicts as a leaf, without smoothing.
        surrogates: Surrogate tests, only with ``missing="surrogate"``.
        linear: A linear model of every node, with ``leaf="linear"``. Those of inner nodes are used to prune and smooth.
    """

    parent: Ints
    size: Ints
    child_start: Ints
    child: Ints
    feature: Ints
    test: npt.NDArray[np.int8]
    threshold: Floats
    code_start: Ints
    code_branch: Ints
    fallback: Ints
    branch_weight: Floats
    weight: Floats
    gain: Floats
    stats: Floats
    value: Ints | Floats
    surrogates: Surrogates | None = None
    linear: LinearModels | None = None

    def __post_init__(self) -> None:
        for array in _all_arrays(self):
            array.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        """Compare every array; NaN equals NaN."""
        if self is other:  # the usual case, without comparing arrays
            return True
        if not isinstance(other, Tree) or (self.surrogates is None) != (other.surrogates is None):
            return False
        return (self.linear is None) == (other.linear is None) and all(
            mine.dtype == its.dtype and np.array_equal(mine, its, equal_nan=mine.dtype.kind == "f")
            for mine, its in zip(_all_arrays(self), _all_arrays(other), strict=True)
        )

    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: cached results are computed again after unpickling."""
        return field_state(self)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.test == LEAF))

    @cached_property
    def depths(self) -> Ints:
        """Depth of each node, int32 (n); the root has 0."""
        depths = [0]
        for parent in self.parent[1:].tolist():  # a list is much faster than an array, item by item
            depths.append(depths[parent] + 1)
        return np.array(depths, dtype=np.int32)

    @property
    def depth(self) -> int:
        """Number of tests on the longest path."""
        return int(self.depths.max())

    def children(self, node: int) -> list[int]:
        """Return the children of `node` in branch order; an empty list at a leaf."""
        return [int(child) for child in self.child[self.child_start[node] : self.child_start[node + 1]]]

    @cached_property
    def branches(self) -> Ints:
        """For each node, the branch of its parent that leads to it, int32 (n); -1 for the root."""
        branches = np.full(self.n_nodes, -1, dtype=np.int32)
        branches[self.child] = np.arange(self.n_nodes - 1) - self.child_start[self.parent[self.child]]
        return branches

    def codes(self, node: int) -> Ints:
        """Return the branch of each category code at a NOMINAL test: int32 (number of categories)."""
        return self.code_branch[self.code_start[node] : self.code_start[node + 1]]

    def codes_by_branch(self, node: int) -> tuple[Places, Places]:
        """Return the category codes at a NOMINAL test sorted by branch, and where each branch starts in them.

        The codes of branch i are ``codes[start[i] : start[i + 1]]``, ascending; ``codes[: start[0]]`` have no branch.
        """
        n_branches = self.child_start[node + 1] - self.child_start[node]
        # A stable sort of integers of 8 or 16 bits takes linear time.
        branches = self.codes(node).astype(np.min_scalar_type(-int(n_branches)))
        codes = np.argsort(branches, kind="stable")
        return codes, np.searchsorted(branches[codes], np.arange(n_branches + 1))

    @cached_property
    def has_surrogates(self) -> Mask:
        """Whether each node has surrogates, bool (n)."""
        mask: Mask = np.diff(self.surrogates.start) > 0 if self.surrogates is not None else np.zeros(self.n_nodes, bool)
        return mask

    def collapsed(self, mask: Mask) -> "Tree":
        """Return the tree in which every node of `mask`, bool (n), is a leaf. All nodes below these leaves are removed.

        Statistics, weight and value of the nodes that remain are unchanged.
        """
        nodes = self.remaining(mask)
        return self.arranged(nodes, np.where(np.asarray(mask)[nodes] | (self.test[nodes] == LEAF), -1, nodes))

    def remaining(self, mask: Mask) -> Places:
        """Return the nodes that remain when every node of `mask` becomes a leaf, in preorder."""
        # Below a node i of the mask are the nodes i + 1 to i + size[i] - 1.
        chosen = np.flatnonzero(mask)
        return np.flatnonzero(self._uncovered(chosen + 1, chosen + self.size[chosen]))

    def outside(self, nodes: Places) -> Mask:
        """Return a mask, bool (n), of the nodes that are outside the subtrees of `nodes`."""
        return self._uncovered(nodes, nodes + self.size[nodes])

    def _uncovered(self, low: Places, high: Places) -> Mask:
        """Return a mask, bool (n), of the nodes that are in none of the slices ``low[i]:high[i]``."""
        inside = np.zeros(self.n_nodes + 1, dtype=np.int64)
        np.add.at(inside, low, 1)
        np.add.at(inside, high, -1)
        uncovered: Mask = np.cumsum(inside[:-1]) == 0
        return uncovered

    def tested(self) -> list[int]:
        """Return the indexes of the attributes that the tests (not the surrogates) use, ascending."""
        return [int(place) for place in np.unique(self.feature[self.test != LEAF])]

    def arranged(self, nodes: Array, splits: Array) -> "Tree":
        """Return a new tree made of `nodes` of this tree; `nodes` is in the preorder of the new tree.

        New node i has the weight, statistics, value and linear model of node ``nodes[i]`` of this tree, and the test,
        branches and children of node ``splits[i]``. If ``splits[i]`` is -1, the new node is a leaf.
        """
        # New leaves get the entries of the last node, which is a leaf because nodes are in preorder.
        tests = np.where(splits < 0, self.n_nodes - 1, splits).astype(np.intp)
        child_start, branches = ragged(self.child_start, tests)
        code_start, codes = ragged(self.code_start, tests)
        places = np.empty(self.n_nodes, np.int32)
        places[nodes] = np.arange(len(nodes), dtype=np.int32)
        child = places.take(self.child.take(branches))
        parent = np.full(len(nodes), -1, np.int32)
        parent[child] = np.repeat(np.arange(len(nodes), dtype=np.int32), np.diff(child_start))
        # In large trees, `take` is faster than an index: for `stats`, two to four times.
        return Tree(
            parent=parent,
            size=sizes_of(parent),
            child_start=child_start,
            child=child,
            feature=self.feature.take(tests),
            test=self.test.take(tests),
            threshold=self.threshold.take(tests),
            code_start=code_start,
            code_branch=self.code_branch.take(codes),
            fallback=self.fallback.take(tests),
            branch_weight=self.branch_weight.take(branches),
            weight=self.weight.take(nodes),
            gain=self.gain.take(tests),
            stats=self.stats.take(nodes, axis=0),
            value=self.value.take(nodes),
            surrogates=None if self.surrogates is None else arranged_surrogates(self.surrogates, tests),
            linear=None if self.linear is None else self.linear.selected(np.asarray(nodes, np.intp)),
        )

    def validate(self, *, n_attributes: int) -> None:
        """Check that the arrays are a valid tree.

        Raises:
            DocumentError: The arrays are not a valid tree. The error has only the first fault, at ``/tree/{array}``.
        """
        for name, holds, message in _conditions(self, n_attributes):
            if not holds:
                raise DocumentError([Fault(f"/tree/{name}", "not_a_tree", message)])


def children_of(parent: Ints) -> tuple[Ints, Ints]:
    """Return ``child_start`` and ``child`` of a tree in preorder from its ``parent``."""
    counts = np.bincount(parent[1:], minlength=len(parent))
    # A stable sort of the nodes by parent lists each node's children in preorder, which is branch order.
    child = (np.argsort(parent[1:], kind="stable") + 1).astype(np.int32)
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int32), child


def sizes_of(parent: Ints) -> Ints:
    """Return ``size`` of a tree in preorder from its ``parent``."""
    # Use plain lists: a loop over the entries of an array takes several times as long.
    size, parents = [1] * len(parent), parent.tolist()
    for node in range(len(parent) - 1, 0, -1):
        size[parents[node]] += size[node]
    return np.array(size, dtype=np.int32)


def _all_arrays(tree: Tree) -> list[Array]:
    parts = [part for part in (tree, tree.surrogates, tree.linear) if part is not None]
    values = (getattr(part, field.name) for part in parts for field in fields(part))
    return [value for value in values if isinstance(value, np.ndarray)]


def _conditions(tree: Tree, n_attributes: int) -> Iterator[Condition]:
    """Yield the conditions on the arrays. Each assumes that all earlier ones hold."""
    yield from _lengths(tree)
    yield from _order(tree)
    yield from _tests(tree, n_attributes)
    yield from _categories(tree)
    yield from _amounts(tree)
    if tree.surrogates is not None:
        yield from surrogate_conditions(tree.surrogates, np.diff(tree.child_start), n_attributes)
    if tree.linear is not None:
        yield from tree.linear.conditions(n_nodes=tree.n_nodes, n_attributes=n_attributes)


def _lengths(tree: Tree) -> Iterator[Condition]:
    n_nodes = tree.n_nodes
    yield "parent", n_nodes > 0 and tree.parent[0] == -1, "node 0 must be the root, with parent -1"
    of_each = ("size", "feature", "test", "threshold", "fallback", "weight", "gain", "stats", "value")
    for name in of_each:
        yield name, len(getattr(tree, name)) == n_nodes, f"must have one entry per node: {n_nodes}"
    yield from conditions_of_starts("child_start", tree.child_start, n_nodes, n_nodes - 1)
    yield from conditions_of_starts("code_start", tree.code_start, n_nodes, len(tree.code_branch))
    for name in ("child", "branch_weight"):
        yield name, len(getattr(tree, name)) == n_nodes - 1, f"must have {n_nodes - 1} entries"
    inside = bool(np.all((tree.parent[1:] >= 0) & (tree.parent[1:] < np.arange(1, n_nodes))))
    yield "parent", inside, "a parent must come before its children"


def _order(tree: Tree) -> Iterator[Condition]:
    n_nodes = tree.n_nodes
    # A leaf must have the size 1, and every other node 1 more than its children together.
    sizes = 1 + np.bincount(tree.parent[1:], weights=tree.size[1:], minlength=n_nodes)
    yield "size", np.array_equal(tree.size, sizes), NOT_DERIVED
    for name, derived in zip(("child_start", "child"), children_of(tree.parent), strict=True):
        yield name, np.array_equal(getattr(tree, name), derived), NOT_DERIVED
    yield "parent", _is_preorder(tree), "nodes must be in preorder"


def _tests(tree: Tree, n_attributes: int) -> Iterator[Condition]:
    n_children = np.diff(tree.child_start)
    is_leaf = tree.test == LEAF
    yield "test", is_within(tree.test, LEAF, UNKNOWN), "must be 0, 1, 2 or 3"
    yield "test", bool(np.all(is_leaf == (n_children == 0))), "exactly the leaves have test 0"
    yield "feature", bool(np.all((tree.feature == -1) == is_leaf)), "exactly the leaves test no attribute (-1)"
    yield "feature", is_within(tree.feature, -1, n_attributes - 1), f"must be below {n_attributes}"
    binary = (tree.test == NUMERIC) | (tree.test == UNKNOWN)
    yield "test", bool(np.all(n_children[binary] == 2)), "a numeric or known/missing test has two branches"
    yield "test", bool(np.all(n_children[~is_leaf] >= 2)), "a test has at least two branches"
    cuts = tree.test == NUMERIC
    yield "threshold", bool(np.all(np.isfinite(tree.threshold[cuts]))), "a numeric test needs a finite threshold"
    branches = np.maximum(n_children, 1)
    yield "fallback", bool(np.all((tree.fallback >= -1) & (tree.fallback < branches))), "must be -1 or a branch"


def _categories(tree: Tree) -> Iterator[Condition]:
    n_children = np.diff(tree.child_start)
    owner = np.repeat(np.arange(tree.n_nodes), np.diff(tree.code_start))
    legal = (tree.code_branch >= -1) & (tree.code_branch < n_children[owner])
    yield "code_branch", bool(np.all(legal)), "must be -1 or a branch of its node"
    seen = np.unique(np.stack([owner[tree.code_branch >= 0], tree.code_branch[tree.code_branch >= 0]]), axis=1)
    nominal = tree.test == NOMINAL
    reached = np.bincount(seen[0], minlength=tree.n_nodes)
    yield "code_branch", bool(np.all(reached[nominal] == n_children[nominal])), "each branch needs a category"


def _amounts(tree: Tree) -> Iterator[Condition]:
    yield "weight", is_within(tree.weight, 0, MAX_AMOUNT), "must be from 0 to 1e300"
    yield "weight", bool(tree.weight[0] > 0), "some weight must have reached the root"
    yield "stats", tree.stats.ndim == 2 and is_within(tree.stats, -MAX_AMOUNT, MAX_AMOUNT), "must be rows within ±1e300"
    yield "branch_weight", is_within(tree.branch_weight, 0, 1), "must be from 0 to 1"
    # Where the fallback is -1, a row without a value is divided among all branches: their shares must add up to 1.
    shares = np.bincount(tree.parent[tree.child], weights=tree.branch_weight, minlength=tree.n_nodes)
    shared_out = (tree.test != LEAF) & (tree.fallback < 0) & (tree.test != UNKNOWN)
    add_up = bool(np.all(np.abs(shares[shared_out] - 1) <= SHARE_SLACK))
    yield "branch_weight", add_up, "a node's shares must add up to 1"


def _is_preorder(tree: Tree) -> bool:
    """Return whether each child directly follows its parent (first child) or its previous sibling's subtree."""
    begins = np.empty(tree.n_nodes - 1, dtype=np.int64)
    before = tree.child[:-1]
    begins[1:] = before + tree.size[before]
    first = tree.child_start[:-1][np.diff(tree.child_start) > 0]
    begins[first] = tree.parent[tree.child[first]] + 1
    return np.array_equal(tree.child, begins)
