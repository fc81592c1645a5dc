"""Trees as rpart prints them, read into plain nodes and compared with ours without regard to left and right."""

import math
import re
from dataclasses import dataclass, replace

from tests.reference.table import Table
from tests.reference.tree import Node, own_errors, training_errors

LINE = re.compile(r"\s*(\d+)\) (.+)$")
NUMERIC = re.compile(r"^(?P<name>.+?)(?P<sign>< |>=|<)\s*(?P<cut>-?[\d.e+-]+)$")


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed node: what its branch asks for, its rows, its risk, its answer."""

    condition: tuple[str, ...]
    n_rows: float
    risk: float
    answer: str
    children: tuple["Printed", ...]


def parse(text: str) -> Printed:
    """The tree of rpart's print; the numbers of a node's children are 2k and 2k+1."""
    records = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found and "split, n" not in line:
            records[int(found[1])] = fields(found[2])

    def build(number: int) -> Printed:
        condition, n_rows, risk, answer = records[number]
        children = tuple(build(child) for child in (2 * number, 2 * number + 1) if child in records)
        return Printed(condition, n_rows, risk, answer, children)

    return build(1)


def fields(text: str) -> tuple[tuple[str, ...], float, float, str]:
    """Condition, rows, risk and answer of one printed line."""
    words = text.replace("*", "").split("(")[0].split()
    answer, risk, n_rows = words[-1], float(words[-2]), float(words[-3])
    return read_condition(" ".join(words[:-3])), n_rows, risk, answer


def read_condition(text: str) -> tuple[str, ...]:
    """(name, side, cut) of a numeric branch, (name, category, …) of a nominal one."""
    found = NUMERIC.match(text)
    if found:
        return found["name"], found["sign"].strip(), found["cut"]
    name, _, categories = text.partition("=")
    return name, *sorted(categories.split(","))


def name_in_r(name: str) -> str:
    """A column's name as R writes it."""
    return re.sub(r"[^A-Za-z0-9._]", ".", name)


def differences(printed: Printed, node: Node, table: Table, path: str = "root") -> list[str]:
    """Where our tree is not the printed one; numbers as far as they are printed."""
    found = []
    risk = own_errors(node) if table.target.kind == "class" else node.stats[2]
    answer = node.value
    if table.target.kind == "class":
        if table.target.categories[int(answer)] != printed.answer:
            found.append(f"{path}: answers {table.target.categories[int(answer)]}, printed {printed.answer}")
    elif not near(answer, float(printed.answer)):
        found.append(f"{path}: answers {answer}, printed {printed.answer}")
    if not math.isclose(node.weight, printed.n_rows, rel_tol=1e-9):
        found.append(f"{path}: weight {node.weight}, printed {printed.n_rows}")
    if not near(risk, printed.risk):
        found.append(f"{path}: risk {risk}, printed {printed.risk}")
    if len(node.children) != len(printed.children):
        return [*found, f"{path}: {len(node.children)} children, printed {len(printed.children)}"]
    if not node.children:
        return found
    for branch, child in enumerate(node.children):
        twin = next((other for other in printed.children if same_condition(node, branch, other, table)), None)
        if twin is None:
            twin = next((other for other in printed.children if same_rows(child, other, table)), None)
        if twin is None:
            conditions = [other.condition for other in printed.children]
            return [*found, f"{path}: tests {test_text(node, table)}, printed {conditions}"]
        found += differences(twin, child, table, f"{path}/{' '.join(twin.condition)}")
    return found


def same_rows(node: Node, printed: Printed, table: Table) -> bool:
    """Whether a printed branch holds as many rows with the same risk and answer.

    Where two attributes divide a node's rows alike, rounding noise decides for rpart which of them is printed.
    """
    risk = own_errors(node) if table.target.kind == "class" else node.stats[2]
    answer = table.target.categories[int(node.value)] if table.target.kind == "class" else node.value
    same_answer = answer == printed.answer if isinstance(answer, str) else near(answer, float(printed.answer))
    return math.isclose(node.weight, printed.n_rows, rel_tol=1e-9) and near(risk, printed.risk) and same_answer


def near(ours: float, printed: float) -> bool:
    """Equal as far as rpart prints."""
    return math.isclose(ours, printed, rel_tol=1e-6, abs_tol=1e-3)


def same_condition(node: Node, branch: int, printed: Printed, table: Table) -> bool:
    """Whether a printed branch is ours; a cut is the same if it is as far as it is printed."""
    column = table.columns[node.attribute]
    if name_in_r(column.name) != printed.condition[0]:
        return False
    if node.test == "numeric":
        sign, cut = printed.condition[1], float(printed.condition[2])
        return sign == ("<", ">=")[branch] and math.isclose(node.threshold, cut, rel_tol=1e-6)
    ours = sorted(column.categories[c] for c in range(column.k) if node.branch_of_category[c] == branch)
    return ours == list(printed.condition[1:])


def test_text(node: Node, table: Table) -> str:
    column = table.columns[node.attribute]
    if node.test == "numeric":
        return f"{column.name} < {node.threshold}"
    left = [column.categories[c] for c in range(column.k) if node.branch_of_category[c] == 0]
    return f"{column.name} in {left}"


def without_useless_splits(node: Node) -> Node:
    """The class tree as rpart leaves it with cp = 0: without subtrees that make no fewer errors than a leaf."""
    if not node.children:
        return node
    if training_errors(node) >= own_errors(node):
        return Node(node.weight, node.stats, node.value)
    return replace(node, children=tuple(map(without_useless_splits, node.children)))


def importances(node: Node, table: Table, unit: float) -> dict[str, float]:
    """Each attribute's gains where it is tested, and gains times adjusted agreement where it is a surrogate.

    rpart leaves out a surrogate of categories that sends fewer than two rows astray (see NOTES.md).
    """
    found = dict.fromkeys((name_in_r(column.name) for column in table.columns), 0.0)
    waiting = [node]
    while waiting:
        here = waiting.pop()
        if here.children:
            worth = here.gain * here.weight * unit
            found[name_in_r(table.columns[here.attribute].name)] += worth
            for surrogate in here.surrogates:
                if surrogate.test == "numeric" or surrogate.disagreeing >= 2:
                    found[name_in_r(table.columns[surrogate.attribute].name)] += worth * surrogate.adjusted
        waiting += here.children
    return found
