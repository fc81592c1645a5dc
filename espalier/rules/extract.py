"""Extract rules from a tree, and describe a class as a disjunction of conjunctions (Quinlan 1987)."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from espalier.data.labels import Label, label_key, label_text, legal_classes
from espalier.errors import ConfigError, Fault, NotApplicable
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.model.rules import ClassDescription, Condition, Rule, RuleList
from espalier.model.tree import Tree
from espalier.prediction.tree_predictor import tree_predictor
from espalier.rules.unite import simplified

AS_A_TREE: Final = "figures are those of the tree: a row with a missing value may get another answer from the rules"


def extract_rules(model: Model) -> Model:
    """Return the model as a list of rules, one per path of its tree, in the order of the leaves.

    If no value of a row is missing, and training has seen the row's categories at each test, the rules and the tree
    give the same answer. If no rule holds, the answer is that of the root. A leaf whose path has contradictory tests
    yields no rule; a note counts such leaves. A model that is already a list of rules is returned unchanged.

    Raises:
        NotApplicable: The leaves answer with linear models, not with a value.

    >>> from espalier import dataset_from_rows, to_text, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> print(to_text(extract_rules(train(dataset_from_rows(rows, target="play"), "id3"))), end="")
    rule 0: if wind is strong then no (1)
    rule 1: if wind is weak then yes (2)
    otherwise yes
    """
    if isinstance(model.body, RuleList):
        return model
    if model.linear is not None:
        raise NotApplicable("the leaves answer with linear models: only a leaf with a value gives a rule")
    tree, answers = model.tree, tree_predictor(model).value.tolist()
    rules = []
    for leaf, conditions in merged_paths(model):
        rules.append(Rule(conditions, answers[leaf], float(tree.weight[leaf]), leaf_stats(tree, leaf)))
    default = Rule((), answers[0], 0.0, leaf_stats(tree, 0))
    body = RuleList(tuple(rules), default, exclusive=True)
    # With imputed values, the rules answer rows with missing values as the tree does, so this needs no note.
    about = [] if model.preparation.imputed is not None else [AS_A_TREE]
    if left := tree.n_leaves - len(rules):
        which = "1 leaf gives" if left == 1 else f"{left} of {tree.n_leaves} leaves give"
        about.append(f"{which} no rule: only rows with missing values reach {'it' if left == 1 else 'them'}")
    trained = None if model.trained is None else extract_rules(model.trained)
    return dataclasses.replace(model, body=body, notes=(*model.notes, *about), trained=trained)


def class_dnf(model: Model, label: Label) -> ClassDescription:
    """Describe a class as a simplified disjunction of conjunctions.

    If no value of a row is missing, and training has seen the row's categories at each test, the disjunction holds if
    and only if the tree answers with `label`. A second disjunction describes all other classes together. Conjunctions
    that differ in only one attribute are united if possible; tests that become redundant are left out.

    Raises:
        NotApplicable: The model is a regression, or an ordered list of rules.
        ConfigError: There is no such class.
    """
    if model.task != "classification":
        raise NotApplicable("the model answers with numbers: only a class has a disjunction of conjunctions")
    body = extract_rules(model).rules
    if not body.exclusive:
        raise NotApplicable(
            "the rules are an ordered list, in which a rule answers only rows that no earlier rule covers: use the "
            "list, or describe the class by the tree that the list was made from"
        )
    code = _class_code(model.schema.classes, label)
    own, others = (
        simplified([rule.conditions for rule in body.rules if (rule.value == code) is of_class])
        for of_class in (True, False)
    )
    return ClassDescription(model.schema.classes[code], own, others)


def merged_paths(model: Model) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """Yield each leaf with the merged conditions of its path; omit leaves whose path has contradictory tests."""
    # The merged conditions of the paths to the next nodes; no node below a contradictory test.
    paths: dict[int, dict[str, Condition]] = {0: {}}
    for node, test in enumerate(model.tree.test.tolist()):
        if (above := paths.pop(node, None)) is None:
            continue
        if test == LEAF:
            yield node, tuple(above.values())
            continue
        children = model.tree.children(node)
        for child, condition in zip(children, _conditions(model, node, range(len(children))), strict=True):
            if (narrowed := _narrowed(above, condition)) is not None:
                paths[child] = narrowed


def _narrowed(conditions: dict[str, Condition], condition: Condition) -> dict[str, Condition] | None:
    """Return `conditions`, keyed by attribute, with `condition` merged in; None if they exclude each other."""
    name = condition.attribute.name
    both = _conjunction(conditions[name], condition) if name in conditions else condition
    return None if _is_impossible(both) else conditions | {name: both}


def edge_condition(model: Model, node: int, *, with_unseen: bool = True) -> Condition:
    """Return the condition under which a row at the parent of `node` goes to `node`.

    `with_unseen`: whether the fallback branch of a nominal test includes the categories that training has not seen at
    the parent. Without a fallback branch, or if the parent has surrogates, no branch includes them.
    """
    parent, branch = int(model.tree.parent[node]), int(model.tree.branches[node])
    return next(_conditions(model, parent, [branch], with_unseen=with_unseen))


def merged(conditions: Sequence[Condition]) -> tuple[Condition, ...] | None:
    """Merge the conditions on each attribute into one, in the order of first tests; None if they exclude each other.

    >>> from espalier import Feature, FeatureKind
    >>> x = Feature("x", FeatureKind.NUMERIC)
    >>> [condition.to_dict()["text"] for condition in merged([Condition(x, at_most=5.0), Condition(x, above=1.0)])]
    ['1 < x ≤ 5']
    >>> merged([Condition(x, at_most=1.0), Condition(x, above=5.0)]) is None
    True
    """
    by_name: dict[str, Condition] = {}
    for condition in conditions:
        if (narrowed := _narrowed(by_name, condition)) is None:
            return None
        by_name = narrowed
    return tuple(by_name.values())


def leaf_stats(tree: Tree, leaf: int) -> tuple[float, ...]:
    """Return the statistics of a leaf or, if it has no rows, of the nearest ancestor that has rows."""
    while tree.weight[leaf] <= 0 and leaf > 0:
        leaf = int(tree.parent[leaf])
    return tuple(tree.stats[leaf].tolist())


def intersection(first: Condition, second: Condition) -> Condition:
    """Return the condition that holds if both conditions on one attribute hold.

    Its `known` is that of `second`, or that of `first` if `second.known` is None.
    """
    categories = first.categories if second.categories is None else second.categories
    if first.categories is not None and second.categories is not None:
        keys = {label_key(label) for label in second.categories}
        categories = tuple([label for label in first.categories if label_key(label) in keys])
    above, at_most = max(first.above, second.above), min(first.at_most, second.at_most)
    return Condition(first.attribute, above, at_most, categories, first.known if second.known is None else second.known)


def _conjunction(first: Condition, second: Condition) -> Condition:
    both = intersection(first, second)
    if first.known is not None and second.known is not None and first.known != second.known:
        # No value is both missing and known: the condition is impossible, and has no category.
        both = dataclasses.replace(both, categories=())
    says_more = both.categories is not None or both.above > -math.inf or both.at_most < math.inf
    if both.known and says_more:
        # Bounds and categories imply a known value, so `known=True` would only make equal rules differ.
        both = dataclasses.replace(both, known=None)
    return both


def _is_impossible(condition: Condition) -> bool:
    low, high = condition.above, condition.at_most
    if condition.attribute.coded and math.isfinite(low) and math.isfinite(high):
        low, high = math.floor(low), math.floor(high)
    says_something = low > -math.inf or high < math.inf or condition.categories is not None
    return low >= high or condition.categories == () or (condition.known is False and says_something)


def _conditions(model: Model, node: int, branches: Iterable[int], *, with_unseen: bool = True) -> Iterator[Condition]:
    """Yield the condition of each of `branches` of the test at `node`; for `with_unseen`, see `edge_condition`."""
    tree = model.tree
    feature = model.schema.attributes[int(tree.feature[node])]
    if tree.test[node] == NUMERIC:
        threshold = float(tree.threshold[node])
        sides = Condition(feature, at_most=threshold), Condition(feature, above=threshold)
        yield from (sides[branch] for branch in branches)
    elif tree.test[node] == NOMINAL:
        codes, start = tree.codes_by_branch(node)
        # Surrogates decide about a category that was not seen here, so no branch's condition may list it.
        fallback = None if tree.has_surrogates[node] or not with_unseen else int(tree.fallback[node])
        for branch in branches:
            own = codes[start[branch] : start[branch + 1]]
            listed = np.sort(np.append(own, codes[: start[0]])) if branch == fallback else own
            yield Condition(feature, categories=tuple(feature.categories[code] for code in listed.tolist()))
    else:
        yield from (Condition(feature, known=branch == 0) for branch in branches)


def _class_code(classes: tuple[Label, ...], label: Any) -> int:
    if isinstance(label, str | int | float):
        for form in (label_key, label_text):
            forms = [form(known) for known in classes]
            if form(label) in forms:
                return forms.index(form(label))
    raise ConfigError([Fault("/class", "unknown_class", legal_classes(classes))])
