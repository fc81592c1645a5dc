"""Pictures of trees for pages: deep levels are folded, boxes can be links, and some boxes can be marked."""

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from markupsafe import Markup

import espalier

DEPTH = 3  # tests on a path before a picture is folded
MAX_BOXES = 120
MAX_TRAIL = 12  # nodes in the links from the root to the top of a picture
_BOX = re.compile(r'<g role="graphics-symbol img" data-node="(\d+)"([^>]*)>(.*?</svg>)</g>', re.DOTALL)


def is_tree(model: espalier.Model) -> bool:
    """Return whether the model is a tree, and not a list of rules."""
    return not isinstance(model.body, espalier.RuleList)


def picture(
    model: espalier.Model,
    *,
    root: int = 0,
    path: Any = None,
    link: Callable[[int], str] | None = None,
    selected: int | None = None,
    marked: Collection[int] = (),
) -> Markup:
    """Return the tree below `root` as SVG; the core escapes all texts.

    Args:
        model: The model.
        root: The node at the top.
        path: A row, or its explanation, whose path is highlighted.
        link: Function that returns the escaped HTML attributes of a node's link; None: the boxes are no links.
        selected: The node whose box is drawn thicker.
        marked: The nodes whose boxes are marked as different.
    """
    svg = espalier.to_svg(model, node=root, depth=depth_shown(model.tree, root), path=path)

    def anchor(match: re.Match[str]) -> str:
        node = int(match[1])
        classes = " ".join(
            name for name, holds in (("selected", node == selected), ("differs", node in marked)) if holds
        )
        of_class = f' class="{classes}"' if classes else ""
        if link is None:
            return f"<g{of_class}{match[2]}>{match[0]}</g>"
        return f'<a{of_class} data-node="{node}" {link(node)}{match[2]}>{match[3]}</a>'

    return Markup(_BOX.sub(anchor, svg))  # noqa: S704 - see above


def depth_shown(tree: espalier.Tree, root: int) -> int | None:
    """Return the depth of a picture: 3, or 2 if 3 makes too many boxes; None (the core's default) if both do."""
    levels = tree.depths[root : root + int(tree.size[root])] - tree.depths[root]
    counts = np.cumsum(np.bincount(levels)[: DEPTH + 1])
    return next((depth for depth in range(DEPTH, 1, -1) if counts[min(depth, len(counts) - 1)] <= MAX_BOXES), None)


def trail(tree: espalier.Tree, node: int) -> list[int]:
    """Return the nodes from the root to a node; if they are more than `MAX_TRAIL`, the first and the last ones."""
    nodes = [node]
    while nodes[-1] > 0:
        nodes.append(int(tree.parent[nodes[-1]]))
    nodes.reverse()
    return nodes if len(nodes) <= MAX_TRAIL else [*nodes[:2], *nodes[2 - MAX_TRAIL :]]
