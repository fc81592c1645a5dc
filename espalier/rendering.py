"""Trees for people: indented text and Mermaid."""

from collections.abc import Iterator
from typing import Final

from espalier.linear_explanation import equation_text
from espalier.model import Model
from espalier.prediction import router
from espalier.rule_rendering import rules_to_mermaid, rules_to_text
from espalier.rules import Condition, RuleList, bound_text, condition_text, label_line, number_text, one_line
from espalier.tree import LEAF, NOMINAL, NUMERIC

__all__ = ["to_mermaid", "to_text"]

PLAIN: Final = frozenset(" .,-_/()±≤:")
"""Characters besides letters and digits that mean nothing to Mermaid inside quotes."""
MAX_INDENT: Final = 60
"""Deeper nodes say how deep they are: a chain of n nodes must not take n² characters."""


def to_text(model: Model) -> str:
    """Give the tree as indented lines, a branch a line, leaves with the weight and the errors of their training rows.

    ``Outlook is Overcast: Yes (4)`` is a leaf of weight 4 without errors; ``: No (9/2)`` has errors of weight 2 in it.
    A regression leaf shows its weight and standard deviation: ``: 12.5 (30 ± 2.1)``; linear leaves are numbered, LM1,
    LM2, …, and their equations, as smoothed, stand below the tree. A list of rules is given as sentences, one a line.
    Below 60 levels the indentation stands still, and the level is a number at its end.
    """
    if isinstance(model.body, RuleList):
        return rules_to_text(model)
    depths = model.tree.depths.tolist()
    lines = [_leaf_text(model, 0)] if model.tree.n_nodes == 1 else []
    for node in range(1, model.tree.n_nodes):
        indent = _indent(depths[node] - 1)
        leaf = f": {_leaf_text(model, node)}" if model.tree.test[node] == LEAF else ""
        lines.append(f"{indent}{branch_text(model, node)}{leaf}")
    return "\n".join([*lines, *_equation_lines(model)]) + "\n"


def to_mermaid(model: Model) -> str:
    """Give the tree as a Mermaid flowchart: tests as boxes, leaves round, branches as labelled arrows.

    A list of rules is a chain: a box a rule, which answers where it holds and else asks the next one.
    """
    lines = _mermaid_chain(model) if isinstance(model.body, RuleList) else _mermaid_lines(model)
    return "\n".join(["flowchart TD", *(f"    {line}" for line in lines)]) + "\n"


def branch_text(model: Model, node: int) -> str:
    """Say what must hold of a row at the parent of `node` for it to go to `node`."""
    tree = model.tree
    parent, branch = int(tree.parent[node]), int(tree.branches[node])
    feature = model.schema.attributes[int(tree.feature[parent])]
    if tree.test[parent] == NUMERIC:
        bound = bound_text(feature, float(tree.threshold[parent]))
        return f"{one_line(feature.name)} {'≤' if branch == 0 else '>'} {bound}"
    if tree.test[parent] == NOMINAL:
        codes = tree.codes(parent).tolist()
        taken = tuple(label for label, code in zip(feature.categories, codes, strict=True) if code == branch)
        return condition_text(Condition(feature, categories=taken))
    return f"{one_line(feature.name)} is {'known' if branch == 0 else 'missing'}"


def _indent(level: int) -> str:
    if level <= MAX_INDENT:
        return "|   " * level
    return "|   " * MAX_INDENT + f"({level} levels) "


def _leaf_text(model: Model, node: int) -> str:
    way, weight = router(model), float(model.tree.weight[node])
    answer = way.answers[node]
    if way.linear is not None:
        return f"LM{way.linear.numbers[node]} ({_weight_text(weight)} ± {answer.std:.4g})"
    if answer.value is not None:
        return f"{number_text(answer.value)} ({_weight_text(weight)} ± {answer.std:.4g})"
    errors = weight - float(model.tree.stats[node, int(model.tree.value[node])])
    shown = f"{_weight_text(weight)}/{_weight_text(errors)}" if round(errors, 4) > 0 else _weight_text(weight)
    return f"{label_line(answer.label) if answer.label is not None else ''} ({shown})"


def _equation_lines(model: Model) -> Iterator[str]:
    linear = router(model).linear
    if linear is not None:
        yield ""
        for node, leaf in linear.leaf_models():
            yield f"LM{linear.numbers[node]}: {equation_text(model, linear, leaf)}"


def _weight_text(weight: float) -> str:
    return f"{weight:.4f}".rstrip("0").rstrip(".")


def _mermaid_lines(model: Model) -> Iterator[str]:
    tree, linear = model.tree, router(model).linear
    leaves = (
        [] if linear is None else [(node, equation_text(model, linear, leaf)) for node, leaf in linear.leaf_models()]
    )
    equations = {node: f" {text}" for node, text in leaves}
    for node in range(tree.n_nodes):
        if tree.test[node] == LEAF:
            yield f'n{node}(["{_quoted(_leaf_text(model, node) + equations.get(node, ""))}"])'
        else:
            yield f'n{node}["{_quoted(one_line(model.schema.attributes[int(tree.feature[node])].name))}"]'
        if node:
            parent = int(tree.parent[node])
            name = one_line(model.schema.attributes[int(tree.feature[parent])].name)
            # The box names the attribute already: the arrow says the rest.
            label = branch_text(model, node).removeprefix(name).strip().removeprefix("is ")
            yield f'n{parent} -->|"{_quoted(label)}"| n{node}'


def _mermaid_chain(model: Model) -> Iterator[str]:
    *pairs, last = rules_to_mermaid(model)
    n_rules = len(pairs) // 2
    for number in range(n_rules):
        following = f"r{number + 1}"
        yield f'r{number}["{_quoted(pairs[2 * number])}"]'
        yield f'a{number}(["{_quoted(pairs[2 * number + 1])}"])'
        yield f'r{number} -->|"yes"| a{number}'
        yield f'r{number} -->|"no"| {following}'
    yield f'r{n_rules}(["{_quoted(last)}"])'


def _quoted(text: str) -> str:
    """Write text as Mermaid's entities where a character would end or style the label."""
    return "".join(
        character if character.isalnum() or character in PLAIN else f"#{ord(character)};" for character in text
    )
