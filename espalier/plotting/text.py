"""Trees and lists of rules as indented text; whole, in part, or with the path of a row."""

from collections.abc import Iterator
from typing import Final

from espalier.explanation.branch_and_leaf_text import BranchText, cut, folded_text, leaf_equations, leaf_text, top_line
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.model.texts import share_text
from espalier.plotting.escape import legal_text
from espalier.plotting.rules import check_whole_list, rules_to_text
from espalier.plotting.selection import Path, TreeView, explained, select_nodes

MAX_INDENT: Final = 60
"""Deeper nodes show their level as a number, so that a chain of n nodes does not take n² characters."""


def to_text(
    model: Model, *, node: int = 0, depth: int | None = None, path: Path | None = None, most_nodes: int | None = None
) -> str:
    """Return the tree as indented lines, one per branch; leaves show the weight and the errors of their training rows.

    ``Outlook is Overcast: Yes (4)`` is a leaf of weight 4 without errors; ``: No (9/2)`` has errors of weight 2. A
    regression leaf shows its weight and standard deviation: ``: 12.5 (30 ± 2.1)``; linear leaves are numbered, LM1,
    LM2, …, and their equations (after any smoothing) follow the tree. A list of rules is written as sentences, one per
    line. After 60 levels the indentation is constant, and ends with the number of the level.

    Args:
        model: The model.
        node: The node at the top. If it is not the root, the first line has the conditions that lead to the node.
        depth: Maximum number of tests on a path; each deeper part is one line with the number of its leaves.
        path: A row, or an `Explanation` of one: the lines on its path begin with an arrow, and are never left out.
        most_nodes: Maximum number of nodes. A larger `depth` is refused; without `depth`, all that fits is shown.

    Raises:
        ConfigError: There is no such node or depth, or `path` is neither a row nor an explanation by this model.
        NotApplicable: `depth` or `path` takes more than `most_nodes` nodes, or a list of rules has a node or depth.
        RowError: The row has faults.
    """
    if isinstance(model.body, RuleList):
        return _rule_lines(model, node, depth, path)
    view = select_nodes(model, node=node, depth=depth, path=path, max_boxes=most_nodes)
    return "\n".join([*_tree_lines(view), *_equation_lines(view)]) + "\n"


def _rule_lines(model: Model, node: int, depth: int | None, path: Path | None) -> str:
    check_whole_list(node, depth)
    explanation = explained(model, path)
    if explanation is None:
        return rules_to_text(model)
    lines = rules_to_text(model).splitlines()
    return "".join(
        f"{'→ ' if number == explanation.prediction.leaf else '  '}{line}\n" for number, line in enumerate(lines)
    )


def _tree_lines(view: TreeView) -> Iterator[str]:
    text_of = BranchText(view.model)
    if view.top:
        yield f"{top_line(view.model, view.top)}:"
    for box in view.boxes:
        if box.level == 0 and box.form == "test":
            continue
        branch = text_of.text(box.node) if box.level else ""
        above = box.level - 1
        indent = "|   " * min(above, MAX_INDENT) + (f"({above} levels) " if above > MAX_INDENT else "")
        end = ""
        if box.form != "test":
            is_leaf = box.form == "leaf"
            end = leaf_text(view.model, box.node) if is_leaf else folded_text(view.model, box.nodes, box.n_leaves)
        line = f"{indent}{cut(branch)}{': ' if branch and end else ''}{end}"
        if view.explanation is not None:
            part = f"  ({share_text(box.share)} of the row)" if 0 < box.share < 1 else ""
            line = f"{'→ ' if box.share else '  '}{line}{part}"
        yield legal_text(line)


def _equation_lines(view: TreeView) -> Iterator[str]:
    equations = list(leaf_equations(view.model, [box.node for box in view.boxes if box.form == "leaf"]))
    if equations:
        yield ""
        yield from equations
