"""What is kept of the training values' range: rounded, with the step that all of them have."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    DocumentError,
    dataset_from_rows,
    from_document,
    from_json,
    to_document,
    to_json,
    train,
    with_missing_strategy,
)
from espalier.data.instants import parse_instant
from espalier.data.schema import Feature, FeatureKind, Role
from espalier.model.preparation import Scale, scales_of
from tests.factories import ROOT

NUMBER, DATE = Feature("n", FeatureKind.NUMERIC), Feature("d", FeatureKind.DATETIME)
MIXED_ROWS = [
    {"age": age, "height": age / 7, "on": f"2026-01-{age:02}", "kind": "ab"[age % 2], "y": "xy"[age > 9]}
    for age in range(1, 21)
]
DECLARED = {"target": "y", "columns": [{"name": "on", "kind": "datetime"}]}


def scale(feature, values):
    return scales_of([feature], [np.array(values, dtype=np.float64)])[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([18.0, 93.0, np.nan], Scale(75.0, 56.0, 1.0)),
        ([0.0, 0.5, 1234.5], Scale(1200.0, 600.0, 0.0)),
        ([3.0, 3.0], Scale(0.0, 3.0, 1.0)),
        ([-0.001, 0.0013], Scale(0.0023, 0.00015, 0.0)),
        ([2.0**53, 2.0**54], Scale(9e15, 1.35e16, 0.0)),
        ([-1.7e308, 1.7e308], Scale(1e308, 0.0, 0.0)),
    ],
)
def test_a_column_of_numbers_is_measured(values, expected):
    found = scale(NUMBER, values)
    assert (found.span, found.step) == (expected.span, expected.step)
    assert found.middle == pytest.approx(expected.middle, abs=0.05 * expected.span)


def test_a_column_without_a_value_and_one_of_categories_have_no_scale():
    assert scale(NUMBER, [np.nan, np.nan]) is None
    assert scales_of([Feature("c", FeatureKind.NOMINAL, Role.ATTRIBUTE, ("a",))], [np.zeros(3, np.int32)]) == (None,)


def test_dates_go_by_days_or_seconds_where_all_do():
    day = parse_instant("2026-03-01")
    assert scale(DATE, [day, day + 86_400 * 3]).step == 86_400
    assert scale(DATE, [day, day + 7]).step == 1
    assert scale(DATE, [day, day + 7.5]).step == 0


@given(values=st.lists(st.integers(-500, 500), min_size=1), divisor=st.sampled_from([1, 2, 8]))
def test_the_step_is_one_exactly_where_all_are_whole(values, divisor):
    cells = [value / divisor for value in values]
    assert (scale(NUMBER, cells).step == 1) == all(cell.is_integer() for cell in cells)


def test_one_number_among_many_that_is_not_whole_is_seen():
    column = np.arange(100_000, dtype=np.float64)
    column[99_999] = 0.5
    assert scale(NUMBER, column).step == 0


def test_the_model_keeps_its_scales_in_its_document_and_under_any_strategy():
    model = train(dataset_from_rows(MIXED_ROWS, schema=DECLARED), "cart", missing="imputed")
    assert [one is None for one in model.preparation.scales] == [False, False, False, True]
    assert (model.preparation.scales[0].span, model.preparation.scales[2].step) == (19.0, 86_400.0)
    again = from_json(to_json(model))
    assert again.preparation == model.preparation
    assert with_missing_strategy(model, "majority").preparation == dataclasses.replace(model.preparation, imputed=None)


def test_a_document_without_scales_is_read_and_written_as_it_is():
    content = (ROOT / "tests" / "golden" / "drug200_cart.v1.json").read_bytes().rstrip(b"\n")
    model = from_json(content)
    assert model.preparation.scales is None
    assert to_json(model) == content


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda scales: [1], "/preparation/scales"),
        (lambda scales: {**scales, "span": [1.0]}, "/preparation/scales/span"),
        (lambda scales: {**scales, "span": None}, "/preparation/scales/span"),
        (lambda scales: {**scales, "span": [-1.0, *scales["span"][1:]]}, "/preparation/scales"),
        (lambda scales: {**scales, "span": [1.7e308, *scales["span"][1:]]}, "/preparation/scales"),
        (lambda scales: {**scales, "step": [1e-300, *scales["step"][1:]]}, "/preparation/scales"),
        (lambda scales: {**scales, "step": [86_400.0, *scales["step"][1:]]}, "/preparation/scales"),
        (lambda scales: {**scales, "step": [None, *scales["step"][1:]]}, "/preparation/scales"),
        (lambda scales: {**scales, "middle": [*scales["middle"][:2], 1e300, None]}, "/preparation/scales"),
        (lambda scales: {part: [*column[:3], 1.0] for part, column in scales.items()}, "/preparation/scales"),
    ],
)
def test_scales_that_training_cannot_give_are_refused(change, path):
    document = to_document(train(dataset_from_rows(MIXED_ROWS, schema=DECLARED), "cart"))
    preparation = document["preparation"]
    document["preparation"] = {**preparation, "scales": change(preparation["scales"])}
    with pytest.raises(DocumentError) as refused:
        from_document(json.loads(json.dumps(document)))
    assert refused.value.faults[0].path == path


def test_the_sign_of_a_zero_is_that_of_the_least_and_the_greatest_together() -> None:
    zeros = np.array(
        [-0.0, 0.0, -0.0, 0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0, -0.0, 0.0, -0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    )
    together = np.fmin.reduce(zeros, initial=np.inf) + np.fmax.reduce(zeros, initial=-np.inf)
    assert np.signbit(scale(NUMBER, zeros).middle) == np.signbit(together)
