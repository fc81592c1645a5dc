"""Reduced-error pruning once more, in plain Python on nested nodes. Each tree that is compared predicts all rows anew.

A tree is a nested dict: `answer` (a class or a number) at every node; at an inner node also `children` and `test`, a
function from a row's values to the weighted branches `[(branch, share), …]` that it takes. Rows are triples (values,
truth, weight).
"""

from collections.abc import Callable, Sequence
from typing import Any

Tree = dict[str, Any]
Row = tuple[Any, Any, float]

SLACK = 1e-9


def leaf(answer: Any) -> Tree:
    """A node without children."""
    return {"answer": answer}


def ways(tree: Tree, values: Any, share: float = 1.0) -> list[tuple[float, Any]]:
    """(share, answer) of each leaf that a row reaches."""
    if "children" not in tree:
        return [(share, tree["answer"])]
    return [
        way for branch, part in tree["test"](values) for way in ways(tree["children"][branch], values, share * part)
    ]


def loss(tree: Tree, rows: Sequence[Row], miss: Callable[[Any, Any], float]) -> float:
    """The sum of `miss(answer, truth)` over the rows and the leaves that they reach, times weight and share."""
    return sum(
        weight * share * miss(answer, truth) for values, truth, weight in rows for share, answer in ways(tree, values)
    )


def reaching(tree: Tree, rows: Sequence[Row], branch: int) -> list[Row]:
    """The rows that go to a child. The weight of a divided row is multiplied by the child's share."""
    return [
        (values, truth, weight * share)
        for values, truth, weight in rows
        for taken, share in tree["test"](values)
        if taken == branch
    ]


def pruned(
    tree: Tree,
    rows: Sequence[Row],
    *,
    miss: Callable[[Any, Any], float],
    ties: str = "prune",
    prune_root: bool = True,
    is_root: bool = True,
) -> Tree:
    """Quinlan (1987), one bottom-up pass: the children are pruned first, then compared with the node as a leaf."""
    if "children" not in tree:
        return tree
    children = [
        pruned(child, reaching(tree, rows, branch), miss=miss, ties=ties, is_root=False)
        for branch, child in enumerate(tree["children"])
    ]
    kept = {**tree, "children": children}
    if is_root and not prune_root:
        return kept
    change = loss(leaf(tree["answer"]), rows, miss) - loss(kept, rows, miss)
    goes = change <= SLACK if ties == "prune" else change < -SLACK
    return leaf(tree["answer"]) if goes else kept


def n_leaves(tree: Tree) -> int:
    return sum(map(n_leaves, tree["children"])) if "children" in tree else 1


def with_one_leaf_more(tree: Tree) -> list[Tree]:
    """Every tree that comes of this one by making one of its inner nodes a leaf."""
    if "children" not in tree:
        return []
    made = [leaf(tree["answer"])]
    for branch, child in enumerate(tree["children"]):
        for changed in with_one_leaf_more(child):
            children = [*tree["children"][:branch], changed, *tree["children"][branch + 1 :]]
            made.append({**tree, "children": children})
    return made


def pruned_in_order(
    tree: Tree, rows: Sequence[Row], *, miss: Callable[[Any, Any], float], ties: str, prune_root: bool
) -> Tree:
    """The order of seed 004: each node, from the last of the preorder to the first, becomes a leaf if the tree is then
    no worse than the unpruned one.
    """
    first = loss(tree, rows, miss)
    for place in range(n_nodes(tree) - 1, -1 if prune_root else 0, -1):
        if "children" not in node_at(tree, place):
            continue
        changed = with_leaf_at(tree, place)
        change = loss(changed, rows, miss) - first
        if change <= SLACK if ties == "prune" else change < -SLACK:
            # The places before this one stay what they are: a subtree comes after its node.
            tree = changed
    return tree


def pruned_greedily(
    tree: Tree, rows: Sequence[Row], *, miss: Callable[[Any, Any], float], ties: str, prune_root: bool, initial: bool
) -> Tree:
    """The order of seed 000: again and again the node becomes a leaf that lowers the loss most.

    Among equals it is the one that saves most leaves, then the first in preorder.
    """
    first = loss(tree, rows, miss)
    while True:
        now = loss(tree, rows, miss)
        offers = []
        for place in range(0 if prune_root else 1, n_nodes(tree)):
            if "children" in node_at(tree, place):
                changed = with_leaf_at(tree, place)
                offers.append((loss(changed, rows, miss), n_leaves(changed), place, changed))
        if not offers:
            return tree
        least = min(offer[0] for offer in offers)
        best = min((offer for offer in offers if offer[0] <= least + SLACK), key=lambda offer: offer[1:3])
        change = best[0] - (first if initial else now)
        if not (change <= SLACK if ties == "prune" else change < -SLACK):
            return tree
        tree = best[3]


def n_nodes(tree: Tree) -> int:
    return 1 + sum(map(n_nodes, tree.get("children", ())))


def node_at(tree: Tree, place: int) -> Tree:
    """The node at a place of the preorder."""
    if place == 0:
        return tree
    place -= 1
    for child in tree["children"]:
        if place < n_nodes(child):
            return node_at(child, place)
        place -= n_nodes(child)
    raise IndexError(place)


def with_leaf_at(tree: Tree, place: int) -> Tree:
    """The tree with a leaf at a place of the preorder."""
    if place == 0:
        return leaf(tree["answer"])
    place -= 1
    children = list(tree["children"])
    for branch, child in enumerate(children):
        if place < n_nodes(child):
            children[branch] = with_leaf_at(child, place)
            return {**tree, "children": children}
        place -= n_nodes(child)
    raise IndexError(place)
