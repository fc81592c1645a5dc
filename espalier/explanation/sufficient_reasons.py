"""Sufficient reasons (abductive explanations): attributes whose values alone force an answer, whatever the others are.

A leaf with another answer can be reached if every attribute that leads the row away from the leaf may change. These
attributes are a *contrastive set*: at least one of them must keep its value. A sufficient reason has a member of every
such set, and is minimal if none of its attributes can be left out. A search leaves out attributes one by one to find a
reason (Izza, Ignatiev and Marques-Silva 2022, *On tackling explanation redundancy in decision trees*). A tree can have
exponentially many minimal reasons, and finding a smallest one is NP-hard; at most `MAX_REASONS` are returned.

If several leaves answer together, or a surrogate decides, even checking whether one set is sufficient is coNP-hard, as
for a sum of trees. Then an attribute is left out only if `MarginBounds` proves that the others still force the answer.
If the bounds cannot be used, all attributes that were read stay. Both results force the answer; fewer may be enough.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from espalier.arrays import Mask
from espalier.data.labels import Label
from espalier.data.schema import Feature
from espalier.explanation.counterfactuals.value_domains import EVERYTHING, Box, bits_of, branch_boxes, unseen_codes
from espalier.explanation.margins import MarginBounds, top_class
from espalier.explanation.row_flow import ALL, RowFlow
from espalier.explanation.steps import shown_value
from espalier.explanation.tree_levels import tree_levels
from espalier.model.model import Model
from espalier.model.node_tests import LEAF, UNKNOWN
from espalier.model.rules import Condition
from espalier.model.texts import condition_text, name_text, number_text
from espalier.model.tree import cached_on_owner
from espalier.prediction.answers import Prediction, format_answer
from espalier.prediction.linear_leaves import LinearAnswers
from espalier.prediction.missing_strategies import STOP
from espalier.prediction.tree_predictor import TreePredictor

MAX_REASONS: Final = 5
MAX_CELLS: Final = 200_000_000
"""Margin bounds are used only if nodes × classes × attributes is at most this; at the limit, they take seconds."""


@dataclass(frozen=True, slots=True)
class SufficientReason:
    """Attributes whose values force the answer, whatever the values of the others are, even missing ones.

    Attributes:
        attributes: First those on the path in the order of their tests, then the others in the schema's order.
        values: The row's value of each attribute; None if it is missing or unseen.
        minimal: Whether every attribute is known to be needed; if not, fewer may be enough.
        text: The values as a sentence.
    """

    attributes: tuple[Feature, ...]
    values: tuple[Label | None, ...]
    minimal: bool
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        names = (feature.name for feature in self.attributes)
        return {"attributes": dict(zip(names, self.values, strict=True)), "minimal": self.minimal, "text": self.text}


def sufficient_reasons(
    model: Model, predictor: TreePredictor, flow: RowFlow, prediction: Prediction, *, tested: Sequence[int]
) -> tuple[SufficientReason, ...]:
    """Return up to `MAX_REASONS` reasons. The first prefers attributes in `tested`; the others are sorted by size.

    `tested` has the indexes of the attributes that tests and surrogates on the path read, from the root on. In a
    regression, a reason forces exactly the predicted number.
    """
    if prediction.n_visits > 1 or flow.surrogates_used:
        forcing = _forced_by_margin(model, predictor, flow, prediction, tested)
        return (_reason(model, prediction, forcing, is_minimal=False),)
    sets = _contrastive_sets(model, predictor, flow, prediction)
    terms = model.tree.linear.feature.tolist() if model.tree.linear is not None else []
    reasons = _meeting_all(sets, [*tested, *sorted({*model.tree.tested(), *terms})])
    if not reasons:
        return (_reason(model, prediction, tested, is_minimal=False),)
    return tuple(_reason(model, prediction, each, is_minimal=_needs_all(sets, each)) for each in reasons)


class _ContrastiveSet(NamedTuple):
    """The contrastive set of a leaf. Bit p of an integer stands for the attribute of index p in the schema.

    Attributes:
        away: Attributes whose values lead the row away from the leaf.
        shared: Attributes whose values let only a share of the row reach the leaf.
        is_proof: Whether some row can reach the leaf as a whole and get another answer there.
    """

    away: int
    shared: int
    is_proof: bool


def _contrastive_sets(
    model: Model, predictor: TreePredictor, flow: RowFlow, prediction: Prediction
) -> list[_ContrastiveSet]:
    tree, reachable = model.tree, reachable_nodes(model)
    leaf_terms = {} if predictor.linear is None else _terms_of_equal_leaves(model, predictor.linear, prediction)
    proves = reachable.as_whole & (predictor.value != prediction.code if predictor.classes else True)
    counts = _answers_otherwise(model, predictor, prediction, leaf_terms) & reachable.in_part
    counts = (counts & ((tree.test == LEAF) | reachable.as_end)).tolist()
    feature, is_away = tree.feature.tolist(), (flow.share == 0).tolist()
    is_shared, stops = (flow.branch == ALL).tolist(), (flow.branch == STOP).tolist()
    sets: set[_ContrastiveSet] = set()
    away, shared = [0] * tree.n_nodes, [0] * tree.n_nodes
    for node, (parent, proof) in enumerate(zip(tree.parent.tolist(), proves.tolist(), strict=True)):
        if node:
            away[node] = away[parent] | (1 << feature[parent] if is_away[node] else 0)
            shared[node] = shared[parent] | (1 << feature[parent] if is_shared[parent] else 0)
        if counts[node]:
            # Some rows end at this test. If the explained row does not, its value of the tested attribute leads it on.
            leads_on = feature[node] >= 0 and not stops[node]
            sets.add(_ContrastiveSet(away[node] | (1 << feature[node] if leads_on else 0), shared[node], proof))
        # Another value of a term's attribute gives another number, so a reason must contain the attribute.
        for term in leaf_terms.get(node, ()):
            sets.add(_ContrastiveSet(away[node] | 1 << term, shared[node], is_proof=True))
    return sorted(sets, key=lambda each: each.away.bit_count())


def _answers_otherwise(
    model: Model, predictor: TreePredictor, prediction: Prediction, leaf_terms: dict[int, list[int]]
) -> Mask:
    tree = model.tree
    if predictor.linear is not None:
        unlike = np.ones(tree.n_nodes, np.bool_)
        unlike[list(leaf_terms)] = False
        return unlike
    otherwise: Mask = predictor.value != (prediction.value if prediction.value is not None else prediction.code)
    if predictor.classes and bool(np.any((tree.fallback == ALL) & (tree.test != LEAF) & (tree.test != UNKNOWN))):
        # Leaves that answer together are averaged, so a leaf differs unless its own shares favour the label, too.
        otherwise |= top_class(model) != predictor.value
    return otherwise


def _terms_of_equal_leaves(model: Model, linear: LinearAnswers, prediction: Prediction) -> dict[int, list[int]]:
    """Return, by leaf, the attributes of each linear model that predicts the same number for the row."""
    leaves = np.flatnonzero(model.tree.test == LEAF).astype(np.int32)
    row = np.array(prediction.row.values)[:, None]
    equal = leaves[linear.many(leaves, row) == prediction.value]
    table, terms = linear.table, {}
    for leaf in sorted({prediction.leaf, *equal.tolist()}):
        part = slice(table.start[leaf], table.start[leaf + 1])
        terms[leaf] = np.unique(table.feature[part][table.coefficient[part] != 0]).tolist()
    return terms


def _meeting_all(sets: Sequence[_ContrastiveSet], order: Iterable[int]) -> list[tuple[int, ...]]:
    """Return sets of attributes, each with a member of every `away`; the first prefers attributes early in `order`.

    Every further set omits a member of the first. The result is empty if an `away` is empty. This happens if
    the shares of the answering leaf favour another class.
    """
    order = list(dict.fromkeys(order))
    distinct = list(dict.fromkeys(each.away for each in sets))
    first = _least(distinct, order)
    if first is None:
        return []
    others = (_least(distinct, [place for place in order if place != member]) for member in first)
    distinct_others = dict.fromkeys(each for each in others if each is not None)
    return [first, *sorted(distinct_others, key=len)[: MAX_REASONS - 1]]


def _least(sets: Sequence[int], order: Sequence[int]) -> tuple[int, ...] | None:
    """Remove attributes from `order`, the last one first, unless a set would lose its last member. Return the rest.

    Each set is an integer with one bit per attribute. The result is None if a set has no member in `order`.
    """
    reason = bits_of(order)
    if not all(each & reason for each in sets):
        return None
    for place in reversed(order):
        rest = reason & ~(1 << place)
        if all(each & rest for each in sets):
            reason = rest
    return tuple(place for place in order if reason >> place & 1)


def _needs_all(sets: Sequence[_ContrastiveSet], reason: Sequence[int]) -> bool:
    proofs = [each.away | each.shared for each in sets if each.is_proof]
    rests = [bits_of(reason) & ~(1 << place) for place in reason]
    return all(any(not proof & rest for proof in proofs) for rest in rests)


class ReachableNodes(NamedTuple):
    """The nodes that rows can reach, of n nodes.

    Attributes:
        as_whole: bool (n); some row reaches the node as a whole.
        in_part: bool (n); some row reaches the node as a whole or with a share.
        as_end: bool (n); some row ends at this test because its value is missing or unseen (`STOP`).
        divides_known: bool (n); some row reaches this test as a whole with a known category that was not seen there, so
            that all branches take a share of the row, or a surrogate decides.
    """

    as_whole: Mask
    in_part: Mask
    as_end: Mask
    divides_known: Mask


class _Narrowed(NamedTuple):
    """The values that an attribute may have on a path, and whether it may be missing, for whole rows and for shares."""

    whole: Box
    part: Box
    missing_whole: bool
    missing_part: bool


@cached_on_owner
def reachable_nodes(model: Model) -> ReachableNodes:
    """Return the nodes of a tree that rows can reach; the result is cached with the model.

    Subtree raising, manual edits, and tests of whether a value is known may produce leaves that no row reaches, or that
    only a share of a row with a missing value reaches. Other trees have no such leaves.
    """
    tree, levels, attributes = model.tree, tree_levels(model.tree), model.schema.attributes
    imputed, has_surrogates = model.preparation.imputed or (np.nan,) * len(attributes), tree.has_surrogates.tolist()
    pairs = zip(attributes, imputed, strict=True)
    may_miss = [bool(np.isnan(value)) or (feature.coded and value < 0) for feature, value in pairs]
    previous, fallbacks, test = levels.previous.tolist(), tree.fallback.tolist(), tree.test.tolist()
    features, shares = tree.feature.tolist(), levels.share.tolist()
    whole, part = [True] * tree.n_nodes, [True] * tree.n_nodes
    ends, divides = [False] * tree.n_nodes, [False] * tree.n_nodes
    narrowed: dict[int, _Narrowed] = {}
    for node in np.flatnonzero(tree.test != LEAF).tolist():
        place, feature = features[node], attributes[features[node]]
        before = narrowed.get(previous[node]) or _Narrowed(EVERYTHING, EVERYTHING, may_miss[place], may_miss[place])
        unseen = unseen_codes(tree, node)
        is_unseen = whole[node] and unseen & before.whole.codes != 0
        divides[node] = is_unseen and (has_surrogates[node] or fallbacks[node] == ALL)
        if fallbacks[node] == STOP and test[node] != UNKNOWN:
            ends[node] = is_unseen or (whole[node] and before.missing_whole)
        children = tree.children(node)
        boxes = branch_boxes(tree, feature, node, range(len(children)))
        for branch, (child, box) in enumerate(zip(children, boxes, strict=True)):
            as_whole = branch == 1 if test[node] == UNKNOWN else has_surrogates[node] or fallbacks[node] == branch
            in_part = as_whole or (test[node] != UNKNOWN and fallbacks[node] == ALL and shares[child] > 0)
            after = _Narrowed(
                whole=before.whole.within(box.plus(unseen) if as_whole else box),
                part=before.part.within(box.plus(unseen) if in_part else box),
                missing_whole=before.missing_whole and as_whole,
                missing_part=before.missing_part and in_part,
            )
            whole[child] = whole[node] and (after.whole.has_values(feature) or after.missing_whole)
            part[child] = part[node] and (after.part.has_values(feature) or after.missing_part)
            if test[child] != LEAF:
                narrowed[child] = after
    return ReachableNodes(np.array(whole), np.array(part), np.array(ends), np.array(divides))


def _reason(model: Model, prediction: Prediction, places: Sequence[int], *, is_minimal: bool) -> SufficientReason:
    features = tuple(model.schema.attributes[place] for place in places)
    absent = {*prediction.row.missing, *prediction.row.unseen}
    values = tuple(
        None if feature.name in absent else shown_value(feature, prediction.row.values[place])
        for feature, place in zip(features, places, strict=True)
    )
    conditions = [_equal_text(feature, value) for feature, value in zip(features, values, strict=True)]
    word = format_answer(prediction)
    text = f"if {' and '.join(conditions)} then {word}" if conditions else f"always {word}"
    return SufficientReason(features, values, is_minimal, text)


def _equal_text(feature: Feature, value: Label | None) -> str:
    if value is None:
        return condition_text(Condition(feature, known=False))
    if feature.coded:
        return condition_text(Condition(feature, categories=(value,)))
    return f"{name_text(feature)} = {number_text(value) if isinstance(value, float) else value}"


def _forced_by_margin(
    model: Model, predictor: TreePredictor, flow: RowFlow, prediction: Prediction, tested: Sequence[int]
) -> tuple[int, ...]:
    """Return `tested` without the attributes that the margin bound proves to be unnecessary; try the last one first."""
    answer = float(prediction.code) if prediction.value is None else prediction.value
    bounds = MarginBounds(model, predictor, flow, answer=answer)
    reason = list(tested)
    n_cells = model.tree.n_nodes * max(2, len(predictor.classes)) * len(reason)
    # With an operating point, the largest share does not decide, so all attributes that were read stay.
    if model.operating_point is not None or n_cells > MAX_CELLS or not bounds.is_forced(reason):
        return tuple(reason)
    for place in reversed(tested):
        rest = [other for other in reason if other != place]
        if bounds.is_forced(rest):
            reason = rest
    return tuple(reason)
