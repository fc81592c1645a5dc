"""Answers to many rows at once, as arrays: the same answers as `espalier.prediction` gives one by one.

Rows that reach one leaf are looked up in a table of the leaves' answers. A row that a missing value sends down several
branches is taken apart level by level, all such rows together::

    open pieces   (row 7, node 0, 1.0)
    next level    (row 7, node 1, 0.4)  (row 7, node 5, 0.6)      a piece at a leaf is settled, the others go on
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.model import Model
from espalier.prediction import answerer, answers_at, leaves_of, router
from espalier.rows import EncodedRow
from espalier.tree import LEAF, NOMINAL, UNKNOWN

__all__ = ["class_codes", "class_shares", "numbers"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

TIE: Final = 1e-9
"""Shares closer than this are added up again one row at a time, where the rounding is defined."""


def class_shares(model: Model, values: Floats) -> Floats:
    """Give the share of each class, float64 (rows, classes), for encoded attributes (attributes, rows)."""
    leaves = leaves_of(model, values)
    table = _leaf_table(model)
    shares = table[np.maximum(leaves, 0)]
    several = np.flatnonzero(leaves < 0)
    if len(several):
        shares[several] = _mixed(model, values, several, table)
    return shares


def class_codes(model: Model, values: Floats) -> npt.NDArray[np.intp]:
    """Give the class of each row by its place among the schema's classes, (rows,)."""
    leaves = leaves_of(model, values)
    codes = np.asarray(answerer(model).value[np.maximum(leaves, 0)], dtype=np.intp)
    several = np.flatnonzero(leaves < 0)
    if len(several):
        shares = _mixed(model, values, several, _leaf_table(model))
        codes[several] = shares.argmax(axis=1)
        ranked = np.sort(shares, axis=1)
        for row in several[ranked[:, -1] - ranked[:, -2] < TIE].tolist():
            codes[row] = router(model).answer(EncodedRow(tuple(values[:, row].tolist()), (), ())).code
    return codes


def numbers(model: Model, values: Floats) -> Floats:
    """Give the number that answers each row of a regression, float64 (rows,)."""
    leaves = leaves_of(model, values)
    answers = np.asarray(answers_at(answerer(model), np.maximum(leaves, 0), values), dtype=np.float64)
    several = np.flatnonzero(leaves < 0)
    if len(several):
        answers[several] = _mixed(model, values, several, _leaf_table(model))[:, 0]
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
        answers = answerer(model).answers
        if model.schema.classes:
            found = np.array([[share for _, share in answer.distribution] for answer in answers])
        else:
            found = np.array([[answer.value or 0.0] for answer in answers])
        _TABLES[model] = found
    return found


def _mixed(model: Model, values: Floats, rows: Places, table: Floats) -> Floats:
    """Add up what the leaves answer, each by the share of the row that reached it (Quinlan 1993, chapter 3)."""
    answers = np.zeros((len(rows), table.shape[1]))
    for settled in _settled(model, values[:, rows]):
        np.add.at(answers, settled.row, settled.share[:, None] * table[settled.node])
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
