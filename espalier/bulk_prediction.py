"""Answers to many rows at once, as arrays: the same answers as `espalier.prediction` gives one by one.

Rows that reach one leaf are looked up in a table of the leaves' answers. A row that a missing value sends down several
branches is taken apart level by level, all such rows together::

    open pieces   (row 7, node 0, 1.0)
    next level    (row 7, node 1, 0.4)  (row 7, node 5, 0.6)      a piece at a leaf is settled, the others go on
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.model import Model
from espalier.prediction import answerer, answers_at, leaves_of
from espalier.rules import RuleList
from espalier.tree import LEAF, NOMINAL, UNKNOWN, Tree

__all__ = ["class_answers", "class_codes", "class_shares", "numbers"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def class_answers(model: Model, values: Floats) -> tuple[npt.NDArray[np.int32], Floats]:
    """Give the class of each row by its place among the schema's classes, (rows,), and the shares, (rows, classes)."""
    leaves, table = leaves_of(model, values), _leaf_table(model)
    codes, shares = _leaf_values(model)[leaves], table[leaves]
    several = np.flatnonzero(leaves < 0)
    if len(several):
        shares[several] = _mixed(model, values, several, table)
        codes[several] = shares[several].argmax(axis=1)
    return codes, shares


def class_shares(model: Model, values: Floats) -> Floats:
    """Give the share of each class, float64 (rows, classes), for encoded attributes (attributes, rows)."""
    return class_answers(model, values)[1]


def class_codes(model: Model, values: Floats) -> npt.NDArray[np.intp]:
    """Give the class of each row by its place among the schema's classes, (rows,)."""
    leaves = leaves_of(model, values)
    codes = _leaf_values(model)[leaves].astype(np.intp)
    several = np.flatnonzero(leaves < 0)
    if len(several):
        codes[several] = _mixed(model, values, several, _leaf_table(model)).argmax(axis=1)
    return codes


def numbers(model: Model, values: Floats) -> Floats:
    """Give the number that answers each row of a regression, float64 (rows,)."""
    leaves = leaves_of(model, values)
    if model.linear is not None:
        return np.asarray(answers_at(answerer(model), leaves, values), dtype=np.float64)
    table = _leaf_table(model)
    answers: Floats = table[leaves, 0]
    several = np.flatnonzero(leaves < 0)
    if len(several):
        answers[several] = _mixed(model, values, several, table)[:, 0]
    return answers


@dataclass(frozen=True, slots=True)
class Pieces:
    """Parts of rows on their way down: the row (its place among those taken apart), where it is, its share."""

    row: Places
    node: Places
    share: Floats


_TABLES: WeakKeyDictionary[Model, Floats] = WeakKeyDictionary()


def _leaf_table(model: Model) -> Floats:
    """Give what each node answers: class shares (nodes, classes), or the number (nodes, 1)."""
    found = _TABLES.get(model)
    if found is None:
        if not model.schema.classes:
            found = np.asarray(_leaf_values(model), dtype=np.float64)[:, None]
        elif isinstance(model.body, RuleList):
            answers = answerer(model).answers
            found = np.array([[share for _, share in answer.distribution] for answer in answers])
        else:
            found = _node_shares(model)
        _TABLES[model] = found
    return found


def _leaf_values(model: Model) -> npt.NDArray[Any]:
    """Give what each node, or rule, answers as codes or numbers; smoothed where the model is."""
    if isinstance(model.body, Tree) and (model.schema.classes or model.config.smoothing is None):
        return model.body.value
    return answerer(model).value


def _node_shares(model: Model) -> Floats:
    """Give the class shares of every node at once: the figures of `espalier.answers.answer_from`."""
    tree = model.tree
    seen = list(range(tree.n_nodes))
    for node in np.flatnonzero(tree.weight <= 0).tolist():
        # A branch that no training row took answers with the distribution of the nearest node above that has rows.
        seen[node] = seen[tree.parent[node]] if node else 0
    stats = tree.stats[seen]
    totals = np.array([math.fsum(of_node) for of_node in stats.tolist()])
    extra = 1.0 if model.config.leaf_probability == "laplace" else 0.0
    shares: Floats = (stats + extra) / (totals + extra * stats.shape[1])[:, None]
    return shares


def _mixed(model: Model, values: Floats, rows: Places, table: Floats) -> Floats:
    """Add up what the leaves answer, each by the share of the row that reached it (Quinlan 1993, chapter 3).

    The sums are rounded once, so that they are those of a row answered alone, whatever the order of its leaves.
    """
    settled = list(_settled(model, values[:, rows]))
    row = np.concatenate([pieces.row for pieces in settled])
    order = np.argsort(row, kind="stable")
    starts = np.searchsorted(row[order], np.arange(len(rows) + 1)).tolist()
    node = np.concatenate([pieces.node for pieces in settled])[order]
    share = np.concatenate([pieces.share for pieces in settled])[order]
    answers = np.empty((len(rows), table.shape[1]))
    for place, column in enumerate(table.T):
        parts = (share * column[node]).tolist()
        answers[:, place] = [math.fsum(parts[low:high]) for low, high in pairwise(starts)]
    return answers


def _settled(model: Model, values: Floats) -> Iterator[Pieces]:
    """Give the pieces that reach leaves, level by level."""
    tree = model.tree
    rows = np.arange(values.shape[1])
    moving = Pieces(rows, np.zeros(len(rows), dtype=np.intp), np.ones(len(rows)))
    while len(moving.row):
        at_leaf = tree.test[moving.node] == LEAF
        yield Pieces(moving.row[at_leaf], moving.node[at_leaf], moving.share[at_leaf])
        row, node, share = moving.row[~at_leaf], moving.node[~at_leaf], moving.share[~at_leaf]
        branch = _branches(model, node, values[tree.feature[node], row])
        known = branch >= 0
        child = tree.child[tree.child_start[node[known]] + branch[known]]
        one = Pieces(row[known], child.astype(np.intp), share[known])
        many = _split(model, Pieces(row[~known], node[~known], share[~known]))
        moving = Pieces(*(np.concatenate([getattr(one, name), getattr(many, name)]) for name in Pieces.__slots__))


def _branches(model: Model, node: Places, value: Floats) -> Places:
    """Give the branch that each value takes at its node; -1 where it goes down all of them."""
    tree = model.tree
    coded = np.array([feature.coded for feature in model.schema.attributes], dtype=np.bool_)
    absent = np.isnan(value) | (coded[tree.feature[node]] & (value < 0))
    branch = np.where(value <= tree.threshold[node], 0, 1)
    nominal = np.flatnonzero((tree.test[node] == NOMINAL) & ~absent)
    start, code = tree.code_start[node[nominal]], value[nominal].astype(np.int64)
    listed = code < tree.code_start[node[nominal] + 1] - start
    if len(nominal):
        branch[nominal] = np.where(listed, tree.code_branch[np.where(listed, start + code, 0)], -1)
    fallback = tree.fallback[node]
    branch = np.where(absent | (branch < 0), fallback, branch)
    return np.asarray(np.where(tree.test[node] == UNKNOWN, absent, branch), dtype=np.intp)


def _split(model: Model, pieces: Pieces) -> Pieces:
    """Send each piece down every branch of its node with the branch's share of the training weight."""
    tree = model.tree
    first = tree.child_start[pieces.node].astype(np.intp)
    width = tree.child_start[pieces.node + 1] - first
    parent = np.repeat(np.arange(len(pieces.node)), width)
    within = np.arange(len(parent)) - np.repeat(np.cumsum(width) - width, width)
    place = first[parent] + within
    share = pieces.share[parent] * tree.branch_weight[place]
    taken = share > 0
    return Pieces(pieces.row[parent[taken]], tree.child[place[taken]].astype(np.intp), share[taken])
