"""What trees of linear leaves are grown from in tests, and the equations of their leaves."""

import functools
import json

import numpy as np

from espalier import (
    dataset_from_csv,
    dataset_from_rows,
)
from espalier.prediction.tree_predictor import tree_predictor
from tests.factories import REFERENCE


@functools.cache
def reference_data(name):
    schema = json.loads((REFERENCE / "data" / f"{name}.schema.json").read_text())
    return dataset_from_csv(REFERENCE / "data" / schema["file"], schema=schema)


def line():
    """Rows with y = 2x + 1 below 10, and 100 − x from there on."""
    rows = [{"x": float(x), "noise": float(x * 7 % 5), "y": 2.0 * x + 1 if x < 10 else 100.0 - x} for x in range(40)]
    return dataset_from_rows(rows, target="y", task="regression")


def leaf_equations(model):
    predictor = tree_predictor(model)
    leaves = [predictor.linear.leaf_model(leaf) for leaf in np.flatnonzero(model.tree.test == 0)]
    return [{None: leaf.intercept, **named(model.tree.linear, leaf.terms)} for leaf in leaves]


def named(models, terms):
    found = {}
    for feature, cut, coefficient in terms:
        ranks = models.ranks(feature).tolist()
        upper = frozenset(code for code, rank in enumerate(ranks) if rank >= cut) if cut else None
        found[feature, upper] = coefficient
    return found
