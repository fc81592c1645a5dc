"""Convert the drafted nodes of a TreeModel of PMML to the arrays of a tree."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from espalier.importing.pmml_answers import Answer
from espalier.importing.pmml_fields import Field
from espalier.importing.pmml_tree import HEAVIEST, Draft
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.model.surrogates import Surrogates
from espalier.model.tree import Tree, children_of, sizes_of

Floats = npt.NDArray[np.float64]


def tree_of(drafts: Sequence[Draft], answers: Mapping[int, Answer], places: Mapping[str, int], n_classes: int) -> Tree:
    """Return the tree of drafted nodes.

    Args:
        drafts: The nodes, in preorder.
        answers: Answers of elements, keyed by ``id(element)``; every leaf has one.
        places: Place of each attribute in the schema, keyed by its name.
        n_classes: Number of classes; 0 for a regression.
    """
    parent = np.full(len(drafts), -1, np.int32)
    for place, draft in enumerate(drafts):
        parent[draft.children] = place
    weight, stats = _figures(drafts, answers, n_classes)
    child_start, child = children_of(parent)
    whole = np.bincount(parent[1:], weights=weight[1:], minlength=len(drafts))[parent[child]]
    even = 1 / np.diff(child_start)[parent[child]]
    shares = np.divide(weight[child], whole, out=even, where=whole > 0)
    tests = [draft.kind for draft in drafts]
    codes = [_branches(draft.field, draft.branches) if draft.kind == NOMINAL else [] for draft in drafts]
    return Tree(
        parent=parent,
        size=sizes_of(parent),
        child_start=child_start,
        child=child,
        feature=np.array([_place(draft.field, places) for draft in drafts], np.int32),
        test=np.array(tests, np.int8),
        threshold=np.array([draft.threshold for draft in drafts]),
        code_start=np.cumsum([0, *map(len, codes)]).astype(np.int32),
        code_branch=np.array([branch for each in codes for branch in each], np.int32),
        fallback=np.array([_fallback(draft, weight) for draft in drafts], np.int32),
        branch_weight=shares,
        weight=weight,
        gain=_gains(parent, child, shares, stats, n_classes),
        stats=stats,
        value=_values(drafts, answers, stats, n_classes),
        surrogates=_surrogates(drafts, places) if any(draft.surrogates for draft in drafts) else None,
    )


def _figures(drafts: Sequence[Draft], answers: Mapping[int, Answer], n_classes: int) -> tuple[Floats, Floats]:
    """Return the weights and the statistics of the nodes: as their elements give them, or pooled from the children.

    If the root has no rows, its weight becomes 1.
    """
    stats = np.zeros((len(drafts), n_classes or 3))
    weight = np.zeros(len(drafts))
    for place in range(len(drafts) - 1, -1, -1):
        draft = drafts[place]
        answer = answers.get(id(draft.source)) if draft.own else None
        if answer is not None and (draft.kind == LEAF or answer.has_shares):
            weight[place], stats[place] = answer.weight, answer.stats(n_classes)
            continue
        # A leaf that repeats this element's answer, as for a missing value, adds no rows.
        below = [at for at in draft.children if drafts[at].kind != LEAF or drafts[at].source is not draft.source]
        below = below or draft.children
        weight[place] = weight[below].sum()
        if n_classes:
            stats[place] = stats[below].sum(axis=0)
        else:  # if no child has rows, all children count alike
            shares = weight[below] / weight[place] if weight[place] > 0 else None
            stats[place] = (weight[place], np.average(stats[below, 1], weights=shares), 0.0)
    if weight[0] == 0:  # a tree without any counts of rows
        weight[0] = 1.0
        stats[0, 0] = 1.0
    return weight, stats


def _values(
    drafts: Sequence[Draft], answers: Mapping[int, Answer], stats: Floats, n_classes: int
) -> npt.NDArray[np.int32] | Floats:
    values = stats.argmax(axis=1).astype(np.float64) if n_classes else stats[:, 1].copy()
    for place, draft in enumerate(drafts):
        answer = answers.get(id(draft.source)) if draft.own else None
        if answer is not None:
            values[place] = answer.value
    return values.astype(np.int32) if n_classes else values


def _gains(
    parent: npt.NDArray[np.int32], child: npt.NDArray[np.int32], shares: Floats, stats: Floats, n_classes: int
) -> Floats:
    """Return by how much each test decreases the Gini index or the variance, at least 0; NaN at a leaf."""
    if n_classes:
        totals = np.maximum(stats.sum(axis=1), 1e-300)
        impurity = 1 - np.square(stats / totals[:, None]).sum(axis=1)
    else:
        impurity = -np.square(stats[:, 1])  # the variance, up to a term that cancels in the difference
    below = np.zeros(len(parent))
    np.add.at(below, parent[child], shares * impurity[child])
    gains: Floats = np.where(np.isin(np.arange(len(parent)), parent), np.maximum(impurity - below, 0.0), math.nan)
    return gains


def _fallback(draft: Draft, weight: Floats) -> int:
    if draft.kind == LEAF:
        return -1
    return int(weight[draft.children].argmax()) if draft.fallback == HEAVIEST else draft.fallback


def _branches(field: Field | None, branches: Mapping[int, int]) -> list[int]:
    return [branches.get(code, -1) for code in range(len(field.labels))] if field is not None else []


def _place(field: Field | None, places: Mapping[str, int]) -> int:
    return -1 if field is None else places[field.feature.name]


def _surrogates(drafts: Sequence[Draft], places: Mapping[str, int]) -> Surrogates:
    listed = [surrogate for draft in drafts for surrogate in draft.surrogates]
    codes = [_branches(each.field, each.branches) if each.field.is_category else [] for each in listed]
    return Surrogates(
        start=np.cumsum([0, *(len(draft.surrogates) for draft in drafts)]).astype(np.int32),
        feature=np.array([places[each.field.feature.name] for each in listed], np.int32),
        test=np.array([NOMINAL if each.field.is_category else NUMERIC for each in listed], np.int8),
        threshold=np.array([each.threshold for each in listed]),
        below=np.array([each.below for each in listed], np.int32),
        code_start=np.cumsum([0, *map(len, codes)]).astype(np.int32),
        code_branch=np.array([branch for each in codes for branch in each], np.int32),
        agreement=np.ones(len(listed)),  # a document does not give the agreement
    )
