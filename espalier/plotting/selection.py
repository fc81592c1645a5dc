"""Select the nodes of a tree to show: all, or those below a node or down to a depth.

A view is a list of boxes in preorder. A folded box hides all nodes below its own node, or stands for several branches
of the node above. Its text says how many leaves it hides. The path of a row is never folded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from espalier.errors import ConfigError, Fault, NotApplicable
from espalier.explanation.explain import Explanation, explain
from espalier.model.model import Model
from espalier.model.node_tests import LEAF
from espalier.model.tree import Tree

Path = Explanation | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Box:
    """One box of a view.

    Attributes:
        node: Number of the node; -1 if the box stands for several branches.
        parent: Index of the box above; -1 at the top.
        level: Number of tests between the top of the view and this box.
        form: ``test``, ``leaf``, ``folded`` (a test without its branches), or ``more`` (several branches in one box).
        nodes: The nodes that the box stands for: its own, or the first node of each branch of ``more``.
        n_leaves: Number of leaves that are folded into the box; 1 for a leaf, 0 for a test.
        share: The share of the row's weight that passes this box; 0 off the path of the row, or if no row is given.
    """

    node: int
    parent: int
    level: int
    form: str
    nodes: tuple[int, ...]
    n_leaves: int
    share: float


@dataclass(frozen=True, slots=True)
class TreeView:
    """The part of a tree that is shown.

    Attributes:
        boxes: The boxes in preorder; the first one is the top.
        n_leaves: Number of leaves below the top, shown or not.
        explanation: Explanation of the row whose path is shown; None if no row is given.
    """

    model: Model
    boxes: tuple[Box, ...]
    n_leaves: int
    explanation: Explanation | None

    @property
    def top(self) -> int:
        """The node at the top of the view."""
        return self.boxes[0].node

    @property
    def n_folded(self) -> int:
        """Number of leaves that are not shown."""
        return sum(box.n_leaves for box in self.boxes if box.form in ("folded", "more"))


def select_nodes(
    model: Model,
    *,
    node: int = 0,
    depth: int | None = None,
    path: Path | None = None,
    default_boxes: int | None = None,
    max_boxes: int | None = None,
    max_branches: int | None = None,
) -> TreeView:
    """Select the nodes that are shown.

    The first four arguments and the errors are those of `espalier.to_text`. Without `depth`, as many levels are shown
    as fit into `default_boxes` (if it is None, into `max_boxes`). A `depth` or `path` that takes more than `max_boxes`
    is refused. If a node has more than `max_branches` branches, the lightest ones share one box. A branch on the path
    of the row always has its own box, even if the node then has more than `max_branches` boxes. None means no limit.
    """
    tree = model.tree
    _check(tree, node=node, depth=depth)
    explanation = explained(model, path)
    shares = {} if explanation is None else _shares(tree, explanation)
    parts = _Parts(tree, shares, max_branches)
    if max_boxes is not None and _n_on_path(parts, node) > max_boxes:
        raise NotApplicable(
            f"the path of this row alone takes more than the {max_boxes:,} boxes that can be shown: begin at a "
            "node further down, or use the explanation as text"
        )
    room = max_boxes if depth is not None or default_boxes is None else default_boxes
    n_levels = _levels_shown(parts, node, depth, room)
    return TreeView(model, tuple(_boxes(parts, node, n_levels)), _n_leaves(tree, node), explanation)


def explained(model: Model, path: Path | None) -> Explanation | None:
    """Return the explanation of a row, or the given explanation; None for None.

    Raises:
        ConfigError: `path` is neither a row nor an explanation.
        RowError: The row has faults.
    """
    if path is None or isinstance(path, Explanation):
        return path
    if not isinstance(path, Mapping):
        raise ConfigError([Fault("/path", "wrong_type", "must be a row, an explanation or None")])
    return explain(model, [path])[0]


class _Parts:
    """The children of each node that are shown separately, and those that share a box."""

    def __init__(self, tree: Tree, shares: Mapping[int, float], max_branches: int | None) -> None:
        self.tree = tree
        self.shares = shares
        self._most = max_branches
        # If a row ends at a test because a value is missing, nothing below it is on its path.
        self.on_path = {int(tree.parent[node]) for node in shares if node > 0}

    def of(self, node: int) -> tuple[list[int], list[int]]:
        """Return the children that get a box each, in branch order, and the others."""
        children, most = self.tree.children(node), self._most
        if most is None or len(children) <= most:
            return children, []
        order = sorted(children, key=lambda child: (child not in self.shares, -self.tree.weight[child], child))
        n_shown = max(most - 1, sum(child in self.shares for child in children))
        shown_children = set(order[:n_shown])
        return [child for child in children if child in shown_children], [
            child for child in children if child not in shown_children
        ]

    def count(self, node: int) -> int:
        shown, others = self.of(node)
        return len(shown) + bool(others)

    def is_leaf(self, node: int) -> bool:
        return bool(self.tree.size[node] == 1)


def _check(tree: Tree, *, node: object, depth: object) -> None:
    faults = []
    if type(node) is not int or not 0 <= node < tree.n_nodes:
        legal = f"must be the number of a node: a whole number from 0 to {tree.n_nodes - 1}"
        faults.append(Fault("/node", "not_legal", legal))
    if depth is not None and (type(depth) is not int or depth < 0):
        faults.append(
            Fault("/depth", "not_legal", "must be a whole number of at least 0, or None for as many as can be shown")
        )
    ConfigError.raise_for(faults)


def _shares(tree: Tree, explanation: Explanation) -> dict[int, float]:
    shares: dict[int, float] = {}
    for visit in explanation.prediction.visits:
        if not (
            visit.nodes[0] == 0
            and max(visit.nodes) < tree.n_nodes
            and all(tree.parent[below] == above for above, below in pairwise(visit.nodes))
        ):
            message = "must be a path through this tree: the explained prediction is of another model"
            raise ConfigError([Fault("/path", "not_legal", message)])
        for node in visit.nodes:
            shares[node] = shares.get(node, 0.0) + visit.weight
    return {node: min(share, 1.0) for node, share in shares.items()}


def _n_on_path(parts: _Parts, top: int) -> int:
    stop = top + int(parts.tree.size[top])
    return 1 + sum(parts.count(node) for node in parts.on_path if top <= node < stop)


def _levels_shown(parts: _Parts, top: int, depth: int | None, room: int | None) -> int:
    if room is None:
        return parts.tree.depth if depth is None else depth
    count, level, frontier = _n_on_path(parts, top), 0, [top]
    while frontier and (depth is None or level < depth):
        below = []
        for node in frontier:
            if parts.is_leaf(node):
                continue
            count += 0 if node in parts.on_path else parts.count(node)
            if count > room and depth is None:
                return level
            if count > room:
                raise NotApplicable(
                    f"to this depth the tree takes more than the {room:,} boxes that can be shown: give a smaller "
                    "depth, or a node to begin at"
                )
            below += parts.of(node)[0]
        frontier, level = below, level + 1
    return level


def _boxes(parts: _Parts, top: int, n_levels: int) -> Iterator[Box]:
    # An entry has the node or -1, the nodes of the box, the index of the box above, and the level.
    stack: list[tuple[int, tuple[int, ...], int, int]] = [(top, (top,), -1, 0)]
    place = -1
    while stack:
        node, nodes, parent, level = stack.pop()
        place += 1
        if node < 0:
            n_leaves = sum(_n_leaves(parts.tree, other) for other in nodes)
            yield Box(node, parent, level, "more", nodes, n_leaves, 0.0)
            continue
        share = parts.shares.get(node, 0.0)
        if parts.is_leaf(node):
            yield Box(node, parent, level, "leaf", nodes, 1, share)
        elif level >= n_levels and node not in parts.on_path:
            yield Box(node, parent, level, "folded", nodes, _n_leaves(parts.tree, node), share)
        else:
            yield Box(node, parent, level, "test", nodes, 0, share)
            shown, others = parts.of(node)
            if others:
                stack.append((-1, tuple(others), place, level + 1))
            stack += [(child, (child,), place, level + 1) for child in reversed(shown)]


def _n_leaves(tree: Tree, node: int) -> int:
    return int(np.count_nonzero(tree.test[node : node + int(tree.size[node])] == LEAF))
