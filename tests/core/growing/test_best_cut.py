"""Cuts that cannot win are passed over: the best of all is found none the less, and all are counted."""

import numpy as np
import pytest

from espalier import Dataset, Feature, FeatureKind, Role, Schema, train


def table(n_rows, n_classes, *, seed, weighted, n_values=None, noise=1.0):
    """One attribute on which the class depends a little."""
    rng = np.random.default_rng(seed)
    value = rng.normal(size=n_rows)
    if n_values is not None:
        value = np.round(value * n_values / 6) * 6 / n_values
    score = value + noise * rng.normal(size=n_rows)
    target = np.digitize(score, np.linspace(-0.5, 0.5, n_classes - 1)).astype(np.int32)
    weight = rng.choice([0.25, 0.5, 1.0, 1.7], n_rows) if weighted else np.ones(n_rows)
    features = [
        Feature("x", FeatureKind.NUMERIC),
        Feature("y", FeatureKind.NOMINAL, Role.TARGET, tuple("abcdef"[:n_classes])),
    ]
    columns = [value, target]
    if weighted:
        features.append(Feature("w", FeatureKind.NUMERIC, Role.WEIGHT))
        columns.append(weight)
    return Dataset(Schema(tuple(features)), tuple(columns)), value, target, weight


def entropy(weights):
    whole = weights.sum(axis=1, keepdims=True)
    share = np.divide(weights, whole, out=np.zeros_like(weights), where=whole > 0)
    return -(share * np.log2(share, out=np.zeros_like(share), where=share > 0)).sum(axis=1)


def gini(weights):
    whole = weights.sum(axis=1, keepdims=True)
    share = np.divide(weights, whole, out=np.zeros_like(weights), where=whole > 0)
    return 1 - (share**2).sum(axis=1)


IMPURITIES = {"information_gain": entropy, "gini": gini}


def all_cuts(columns, n_classes, impurity, least):
    """Every cut between two values that leaves `least` weight on both sides: its two neighbours and its gain."""
    value, target, weight = columns
    order = np.argsort(value, kind="stable")
    value, per_class = value[order], np.eye(n_classes)[target[order]] * weight[order, None]
    left = np.cumsum(per_class, axis=0)[:-1]
    right = per_class.sum(axis=0) - left
    whole = weight.sum()
    parts = (left.sum(axis=1) * impurity(left) + right.sum(axis=1) * impurity(right)) / whole
    gain = impurity(per_class.sum(axis=0)[None])[0] - parts
    legal = (value[1:] > value[:-1]) & (left.sum(axis=1) >= least - 1e-9) & (right.sum(axis=1) >= least - 1e-9)
    return value[:-1][legal], value[1:][legal], gain[legal]


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("n_values", [None, 40], ids=["distinct", "ties"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("criterion", sorted(IMPURITIES))
@pytest.mark.parametrize("n_rows", [150, 1_000, 6_000])
def test_the_best_cut_of_all_is_found(n_rows, criterion, n_classes, n_values, weighted):
    for seed, noise in ((1, 0.5), (2, 3.0), (3, 50.0)):
        data, value, target, weight = table(
            n_rows, n_classes, seed=seed, weighted=weighted, n_values=n_values, noise=noise
        )
        tree = train(data, "cart", criterion=criterion, missing="fractional", max_depth=1, min_weight_leaf=5.0).tree
        below, above, gain = all_cuts((value, target, weight), n_classes, IMPURITIES[criterion], 5.0)
        best = int(np.argmax(gain))
        assert tree.gain[0] == pytest.approx(gain[best], abs=1e-9)
        near = np.flatnonzero(gain >= gain[best] - 1e-9)
        assert min(below[near]) <= tree.threshold[0] <= max(above[near])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_cut_counts_in_the_price_of_a_number(n_classes):
    data, value, target, weight = table(4_000, n_classes, seed=4, weighted=False)
    price = {
        corrected: train(
            data, "c45", criterion="information_gain", pruning=None, max_depth=1, mdl_correction=corrected,
            window=None, average_gain_guard=False,
        ).tree.gain[0]
        for corrected in (False, True)
    }  # fmt: skip
    _, _, gain = all_cuts((value, target, weight), n_classes, entropy, 2.0)
    assert price[False] - price[True] == pytest.approx(np.log2(len(gain)) / 4_000, abs=1e-12)
