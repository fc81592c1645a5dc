"""Trees as Weka prints them: J48, REPTree and M5's model trees without their linear models."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

from tests.reference.table import Table
from tests.reference.tree import Node, own_errors

LeafText = Callable[[Node], str]


def weka_number(value: float, n_digits: int) -> str:
    """A number rounded to so many digits, without trailing zeros; what is halfway, in binary, away from zero."""
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-n_digits), ROUND_HALF_UP)
    text = f"{rounded:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def java_double(value: float) -> str:
    """A number with at most two digits that keeps one digit behind the point, as Java prints a rounded double."""
    return str(math.floor(value * 100 + 0.5) / 100)


def j48_text(tree: Node, table: Table) -> str:
    """The lines that J48 prints between its heading and its counts."""

    def leaf(node: Node) -> str:
        wrong = f"/{java_double(own_errors(node))}" if own_errors(node) > 1e-6 else ""
        return f": {table.target.categories[int(node.value)]} ({java_double(node.weight)}{wrong})"

    if not tree.children:
        return leaf(tree)
    return "\n".join(branch_lines(tree, table, leaf, "", signs=("<=", ">"), n_digits=6))


def reptree_text(tree: Node, table: Table) -> str:
    """The lines that REPTree prints between its heading and its size, where no rows were held back."""

    def leaf(node: Node) -> str:
        if table.target.kind == "class":
            answer = table.target.categories[int(node.value)]
            counts = f"{weka_number(node.weight, 2)}/{weka_number(own_errors(node), 2)}"
        else:
            answer = weka_number(node.value, 2)
            spread = node.stats[2] / node.weight if node.weight > 0 else 0.0
            counts = f"{weka_number(node.weight, 2)}/{weka_number(spread, 2)}"
        return f" : {answer} ({counts}) [0/0]"

    if not tree.children:
        return leaf(tree)
    return "\n".join(branch_lines(tree, table, leaf, "", signs=("<", ">="), n_digits=2))


def branch_lines(
    node: Node, table: Table, leaf: LeafText, indent: str, *, signs: tuple[str, str], n_digits: int
) -> list[str]:
    """A line a branch, the subtree's lines below it."""
    lines = []
    column = table.columns[node.attribute]
    for branch, child in enumerate(node.children):
        if node.test == "numeric":
            condition = f"{column.name} {signs[branch]} {weka_number(node.threshold, n_digits)}"
        else:
            category = column.categories[node.branch_of_category.index(branch)]
            condition = f"{column.name} = {category}"
        lines.append(indent + condition + ("" if child.children else leaf(child)))
        if child.children:
            lines += branch_lines(child, table, leaf, indent + "|   ", signs=signs, n_digits=n_digits)
    return lines


def printed_body(text: str) -> str:
    """The tree's own lines of a printed tree: without heading and counts."""
    lines = text.strip("\n").splitlines()
    start = next(i for i, line in enumerate(lines) if set(line.strip()) in ({"-"}, {"="})) + 1
    ends = [i for i, line in enumerate(lines) if line.startswith(("Number of", "Size of"))]
    return "\n".join(lines[start : min(ends, default=len(lines))]).strip("\n")


def m5_text(tree: Node, table: Table, *, root_deviation: float) -> str:
    """The lines of an unpruned M5 tree; a leaf shows its number, its rows and its error in per cent of the root's."""
    leaves: list[Node] = []

    def leaf(node: Node) -> str:
        leaves.append(node)
        error = math.sqrt(node.stats[2] / node.weight) / root_deviation * 100
        return f" : LM{len(leaves)} ({weka_number(node.weight, 0)}/{weka_number(error, 3)}%)"

    if not tree.children:
        return leaf(tree).removeprefix(" : ")
    return "\n".join(m5_lines(tree, table, leaf, ""))


def m5_lines(node: Node, table: Table, leaf: LeafText, indent: str) -> list[str]:
    lines = []
    for branch, child in enumerate(node.children):
        name, cut = m5_test(node, table)
        condition = f"{indent}{name} {('<=', '> ')[branch]} {cut}"
        lines.append(condition + (" : " if child.children else leaf(child)))
        if child.children:
            lines += m5_lines(child, table, leaf, indent + "|   ")
    return lines


def m5_test(node: Node, table: Table) -> tuple[str, str]:
    """The name and cut of a test; a binary column is named after the categories that are 1, in ascending mean."""
    column = table.columns[node.attribute]
    if node.test == "numeric":
        return column.name, weka_number(node.threshold, 3)
    upper = [column.categories[c] for c in range(column.k) if node.branch_of_category[c] == 1]
    return f"{column.name}={','.join(upper)}", "0.5"
