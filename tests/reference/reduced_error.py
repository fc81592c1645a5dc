"""Reduced-error pruning once more, in plain Python on nested nodes: nothing is added up, every tree is asked anew.

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
    """What all leaves together miss, each row by its weight and its shares."""
    return sum(
        weight * share * miss(answer, truth) for values, truth, weight in rows for share, answer in ways(tree, values)
    )


def reaching(tree: Tree, rows: Sequence[Row], branch: int) -> list[Row]:
    """The rows, with what is left of their weight, that go to a child."""
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
    """Quinlan (1987), one pass from the leaves: children first, then the node itself against what is left of them."""
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
