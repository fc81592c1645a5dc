"""Many rows at once: the same answers as one by one."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import predict
from espalier.prediction.batch import predict_batch
from espalier.prediction.tree_predictor import tree_predictor
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Leaf, mixed_rows, plant, roots


def encoded(model, rows):
    return np.array([tree_predictor(model).encode(row).values for row in rows]).T.reshape(
        len(model.schema.attributes), -1
    )


@given(root=roots(MIXED), rows=st.lists(mixed_rows(), min_size=1, max_size=12))
def test_class_shares_of_many_rows_are_those_of_single_rows(root, rows):
    model = plant(MIXED, root)
    singles = predict(model, rows)
    shares = predict_batch(model, encoded(model, rows), shares=True).shares
    assert shares == pytest.approx(np.array([[share for _, share in one.distribution] for one in singles]), abs=1e-12)
    assert predict_batch(model, encoded(model, rows)).answers.tolist() == [one.code for one in singles]


@given(root=roots(NUMBERS), rows=st.lists(mixed_rows(), min_size=1, max_size=12))
def test_numbers_of_many_rows_are_those_of_single_rows(root, rows):
    model = plant(NUMBERS, root)
    singles = [one.value for one in predict(model, rows)]
    assert predict_batch(model, encoded(model, rows)).answers == pytest.approx(np.array(singles), rel=1e-9, abs=1e-9)


def test_equal_shares_of_several_leaves_answer_the_class_that_stands_first():
    model = plant(MIXED, Ask(1, (0, 1, -1), (Leaf((0.0, 0.0, 2.0)), Leaf((0.0, 2.0, 0.0)))))
    assert predict_batch(model, encoded(model, [{}, {"colour": "red"}])).answers.tolist() == [1, 2]


def test_a_row_without_any_value_reaches_every_leaf_of_a_deep_tree():
    root = Leaf((1.0, 0.0, 0.0))
    for depth in range(200):
        root = Cut(0, float(depth), (Leaf((0.0, 1.0, 0.0)), root))
    model = plant(MIXED, root)
    assert predict_batch(model, encoded(model, [{}]), shares=True).shares[0] == pytest.approx([1 / 201, 200 / 201, 0.0])
