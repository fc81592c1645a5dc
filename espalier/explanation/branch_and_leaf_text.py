"""Texts of the branches and leaves of a tree: ``Outlook is Sunny or Rain``, ``> 2.45``, ``No (9/2)``."""

from collections.abc import Iterator, Sequence
from typing import Final

from espalier.arrays import Floats, Places
from espalier.data.labels import Label
from espalier.explanation.equation_text import equation_text
from espalier.explanation.tree_path import conditions_of
from espalier.model.model import Model
from espalier.model.node_tests import NOMINAL, NUMERIC
from espalier.model.texts import bound_text, category_text, condition_text, name_text, weight_text
from espalier.prediction.answers import LeafValue, format_answer
from espalier.prediction.tree_predictor import tree_predictor

MAX_LINE: Final = 2_000
"""A condition or category is cut after this many characters. A list of categories ends once the list is longer."""


class BranchText:
    """Texts of the branches of a tree; the categories of a test are grouped by branch only once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names = [name_text(feature) for feature in model.schema.attributes]
        self._codes: dict[int, tuple[Places, Places]] = {}

    def attribute(self, node: int) -> str:
        """Return the name of the attribute that `node` tests."""
        return self._names[int(self._model.tree.feature[node])]

    def text(self, node: int) -> str:
        """Return the condition under which a row at the parent of `node` goes to `node`."""
        parent = int(self._model.tree.parent[node])
        joined = "" if self._model.tree.test[parent] == NUMERIC else "is "
        return f"{self.attribute(parent)} {joined}{self.label(node)}"

    def label(self, node: int) -> str:
        """Return the condition without the attribute and ``is``: ``≤ 2.45``, ``Sunny or Rain``, ``missing``."""
        tree = self._model.tree
        parent, branch = int(tree.parent[node]), int(tree.branches[node])
        if tree.test[parent] == NUMERIC:
            feature = self._model.schema.attributes[int(tree.feature[parent])]
            return f"{'≤' if branch == 0 else '>'} {bound_text(feature, float(tree.threshold[parent]))}"
        if tree.test[parent] == NOMINAL:
            return _alternatives(self.categories(node))
        return "known" if branch == 0 else "missing"

    def categories(self, node: int) -> Sequence[Label] | None:
        """Return the categories that lead to `node`, in the schema's order; None if its parent tests no categories."""
        tree = self._model.tree
        parent = int(tree.parent[node])
        if parent < 0 or tree.test[parent] != NOMINAL:
            return None
        if parent not in self._codes:
            self._codes[parent] = tree.codes_by_branch(parent)
        (codes, start), branch = self._codes[parent], tree.branches[node]
        labels = self._model.schema.attributes[int(tree.feature[parent])].categories
        return [labels[code] for code in codes[start[branch] : start[branch + 1]].tolist()]


def leaf_text(model: Model, node: int) -> str:
    """Return `answer_text` of a leaf; for a linear leaf, its model's name replaces the answer: ``LM2 (30 ± 2.1)``."""
    linear = tree_predictor(model).linear
    return answer_text(model, node, None if linear is None else f"LM{linear.numbers[node]}")


def answer_text(model: Model, node: int, name: str | None = None) -> str:
    """Return a node's answer, or `name` in its place, with figures of its rows: ``No (9/2)`` or ``4.5 (30 ± 2.1)``.

    For a class, the figures are the weight of the rows and, if there are errors, the weight of the errors. For a
    number, they are the weight of the rows and the standard deviation.
    """
    predictor = tree_predictor(model)
    answer = predictor.answers[node]
    return f"{name or format_answer(answer)} ({figures_text(answer, predictor.weight[node], model.tree.stats[node])})"


def figures_text(answer: LeafValue, weight: float, stats: Sequence[float] | Floats) -> str:
    """Return the weight of the rows that get an answer, with the weight of the errors or the standard deviation."""
    if answer.value is not None:
        return f"{weight_text(weight)} ± {answer.std:.4g}"
    errors = weight - float(stats[answer.code]) if weight > 0 else 0.0
    return f"{weight_text(weight)}/{weight_text(errors)}" if round(errors, 4) > 0 else weight_text(weight)


def leaf_equations(model: Model, nodes: Sequence[int]) -> Iterator[str]:
    """Yield the equation of each leaf: ``LM2: class = 11.1 - 0.00551 × MYCT``. Yield nothing for constant leaves."""
    linear = tree_predictor(model).linear
    if linear is not None:
        yield from (f"LM{linear.numbers[node]}: {leaf_equation(model, node)}" for node in nodes)


def leaf_equation(model: Model, node: int) -> str:
    """Return the equation of a leaf, ``class = 11.1 - 0.00551 × MYCT``; "" if leaves are constants."""
    linear = tree_predictor(model).linear
    return "" if linear is None else equation_text(model, linear, node)


def folded_text(model: Model, nodes: Sequence[int], n_leaves: int) -> str:
    """Return the text that replaces hidden leaves: ``… 37 leaves folded, mostly No (412/30)``.

    If `nodes` has one node, the text gives the node's answer. If it has several, the text gives their number.
    """
    if len(nodes) > 1:
        return f"… {len(nodes):,} more branches folded, {counted(n_leaves, 'leaf', 'leaves')}"
    mostly = "mostly" if model.schema.classes else "on average"
    return f"… {counted(n_leaves, 'leaf', 'leaves')} folded, {mostly} {answer_text(model, nodes[0])}"


def counted(count: int, singular: str, plural: str) -> str:
    """Return a number with its noun: ``1 leaf``, ``2,000 leaves``."""
    return f"{count:,} {singular if count == 1 else plural}"


def top_line(model: Model, node: int) -> str:
    """Return a node's number and the conditions of its path: ``node 7, where Outlook is Sunny and Wind is Weak``."""
    conditions = conditions_of(model, tree_predictor(model).nodes_to(node))
    return f"node {node}, where {' and '.join(cut(condition_text(condition)) for condition in conditions)}"


def cut(text: str, most: int = MAX_LINE) -> str:
    """Shorten a text of more than `most` characters, and say by how much.

    >>> cut("a long name", 6)
    'a long… (5 characters more)'
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters more)"


def _alternatives(labels: Sequence[Label] | None) -> str:
    texts, n_characters = [], 0
    for label in labels or ():
        texts.append(cut(category_text(label)))
        n_characters += len(texts[-1])
        if n_characters > MAX_LINE:
            break
    left_out = len(labels or ()) - len(texts)
    return " or ".join(texts) + (f" or {left_out} more" if left_out else "")
