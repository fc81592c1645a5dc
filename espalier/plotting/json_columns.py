"""A tree, or a part of it, as JSON columns: for pages that draw it themselves."""

from typing import Any

import numpy as np

from espalier.documents.tree import tree_document
from espalier.errors import NotApplicable
from espalier.model.model import Model
from espalier.plotting.selection import select_nodes


def to_columns(
    model: Model, *, node: int = 0, depth: int | None = None, most_nodes: int | None = None
) -> dict[str, Any]:
    """Return the arrays of `Tree` as JSON lists by name; NaN is null.

    The arrays of surrogates and of linear models are in the objects ``surrogates`` and ``linear``.

    Args:
        model: The model.
        node: The first node: the columns hold its subtree.
        depth: Maximum number of tests on a path; a test whose branches are left out becomes a leaf.
        most_nodes: Maximum number of nodes; a larger result is refused.

    Returns:
        The columns. If a `depth`, or a `node` other than 0, is given, there are two more: ``node`` is the number of
        each node in the whole tree, and ``folded`` is the number of leaves that are left out below each node.

    Raises:
        ConfigError: There is no such node or depth.
        NotApplicable: The result would have more than `most_nodes` nodes, or the model is a list of rules.

    >>> from espalier import dataset_from_rows, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> columns = to_columns(train(dataset_from_rows(rows, target="play"), "id3"), depth=0)
    >>> columns["node"], columns["folded"]
    ([0], [2])
    """
    tree = model.tree
    if depth is None and most_nodes is not None and 0 <= node < tree.n_nodes and tree.size[node] > most_nodes:
        raise NotApplicable(
            f"the tree has {int(tree.size[node]):,} nodes here, and at most {most_nodes:,} are returned: give a depth, "
            "a node to begin at, or use the whole document"
        )
    if node == 0 and depth is None:
        return tree_document(tree)
    boxes = select_nodes(model, node=node, depth=depth, max_boxes=most_nodes).boxes
    nodes = np.array([box.node for box in boxes])
    part = tree.arranged(nodes, np.where([box.form == "test" for box in boxes], nodes, -1))
    folded = [box.n_leaves if box.form == "folded" else 0 for box in boxes]
    return {**tree_document(part), "node": nodes.tolist(), "folded": folded}
