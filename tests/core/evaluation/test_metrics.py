"""Figures on rows with known answers, each against arithmetic by hand."""

import math

import pytest
from hypothesis import given, strategies as st

from espalier import (
    Cancelled,
    DataError,
    Progress,
    dataset_from_columns,
    dataset_from_csv,
    dataset_from_rows,
    evaluate,
    predict,
    train,
)
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Leaf, mixed_rows, plant, roots

A, B = Leaf((4.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0))
NAMES = [feature.name for feature in MIXED.features]


def rows(*cells):
    """Rows of `MIXED` from (length, kind)."""
    return [{**dict.fromkeys(NAMES), "length": length, "kind": kind} for length, kind in cells]


def test_errors_are_counted_and_accuracy_is_the_rest():
    model = plant(MIXED, Cut(0, 0.0, (A, B)))
    data = dataset_from_rows(rows((-1, "a"), (-1, "b"), (1, "b"), (1, "c")), schema=MIXED)
    assert evaluate(model, data).figures() == {"n_rows": 4, "errors": 2.0, "accuracy": 0.5}


def test_the_confusion_matrix_has_true_classes_in_rows_and_answers_in_columns():
    model = plant(MIXED, Cut(0, 0.0, (A, B)))
    data = dataset_from_rows(rows((-1, "a"), (-1, "a"), (1, "a"), (-1, "b"), (1, "b"), (1, "c")), schema=MIXED)
    figures = evaluate(model, data)
    assert figures.confusion == ((2.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 0.0))
    assert figures.balanced_accuracy == pytest.approx((2 / 3 + 1 / 2 + 0 / 1) / 3)
    f1 = [2 * (2 / 3) * (2 / 3) / (2 / 3 + 2 / 3), 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2), 0.0]
    assert figures.macro_f1 == pytest.approx(sum(f1) / 3)
    assert figures.to_dict()["confusion"] == [[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


def test_above_a_thousand_classes_there_is_no_confusion_matrix():
    for n_classes, is_given in ((1_000, True), (1_001, False)):
        labels = [f"class {place}" for place in range(n_classes)]
        data = dataset_from_columns({"x": [0.0] * n_classes, "y": labels}, target="y")
        figures = evaluate(train(data, "cart"), data)
        assert (figures.confusion is not None, "confusion" in figures.to_dict()) == (is_given, is_given)
        # The only leaf answers the first class for every row, so one recall is 1 and all others are 0.
        assert (figures.errors, figures.balanced_accuracy) == (n_classes - 1, pytest.approx(1 / n_classes))
        assert figures.macro_f1 == pytest.approx(2 / (1 + n_classes) / n_classes)


def test_a_class_that_neither_occurs_nor_is_answered_counts_in_no_mean():
    figures = evaluate(plant(MIXED, A), dataset_from_rows(rows((1, "a"), (2, "a")), schema=MIXED))
    assert (figures.balanced_accuracy, figures.macro_f1) == (1.0, 1.0)


def test_log_loss_is_the_mean_of_minus_the_logarithm_of_the_true_classes_share():
    model = plant(MIXED, Leaf((3.0, 1.0, 0.0)))
    weighted = zip(rows((1, "a"), (1, "b"), (1, "c")), (2, 1, 1), strict=True)
    data = dataset_from_rows([{**row, "w": weight} for row, weight in weighted], schema=MIXED, weight="w")
    by_hand = -(2 * math.log(0.75) + math.log(0.25) + math.log(1e-15)) / 4
    assert evaluate(model, data).log_loss == pytest.approx(by_hand)


def test_each_row_counts_with_its_weight_and_not_at_all_with_none():
    model = plant(MIXED, Cut(0, 0.0, (A, B)))
    given_rows = [
        {**row, "w": weight} for row, weight in zip(rows((-1, "a"), (-1, "b"), (1, "c")), (3, 0.5, 0), strict=True)
    ]
    data = dataset_from_rows(given_rows, schema=MIXED, weight="w")
    assert evaluate(model, data).figures() == {"n_rows": 3, "errors": 0.5, "accuracy": pytest.approx(3 / 3.5)}


def test_a_regression_has_the_root_of_the_mean_square_and_the_mean_of_the_misses():
    model = plant(NUMBERS, Cut(0, 0.0, (Leaf((4.0, 10.0, 36.0)), Leaf((1.0, 20.0, 0.0)))))
    names = [feature.name for feature in NUMBERS.features]
    cells = [(-1, 12.0), (1, 17.0), (None, 13.0)]
    data = dataset_from_rows([{**dict.fromkeys(names), "length": x, "price": y} for x, y in cells], schema=NUMBERS)
    misses = [2.0, 3.0, 0.8 * 10 + 0.2 * 20 - 13]
    figures = evaluate(model, data)
    assert figures.rmse == pytest.approx(math.sqrt(sum(miss**2 for miss in misses) / 3))
    assert figures.mae == pytest.approx(sum(abs(miss) for miss in misses) / 3)
    mean = (12 + 17 + 13) / 3
    spread = sum((value - mean) ** 2 for value in (12, 17, 13))
    assert figures.r2 == pytest.approx(1 - sum(miss**2 for miss in misses) / spread)
    assert (figures.errors, figures.accuracy, figures.confusion) == (None, None, None)


def test_columns_are_matched_by_name_and_categories_by_label():
    model = plant(MIXED, Ask(1, (0, 1, 1), (A, B)))
    text = "kind,size,sold,colour,length\nb,small,true,green,1\na,large,false,red,1\n"
    schema = {"columns": [{"name": "sold", "kind": "boolean", "categories": [False, True]}], "target": "kind"}
    data = dataset_from_csv(text, schema=schema)
    assert evaluate(model, data).errors == 0


def test_a_class_that_the_model_does_not_know_is_an_error():
    schema = MIXED.to_dict()
    schema["columns"][-1]["categories"] = ["z", "a", "b"]
    data = dataset_from_rows(rows((-1, "a"), (-1, "z")), schema=schema)
    assert evaluate(plant(MIXED, A), data).errors == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("length,size,sold,kind", "the attribute 'colour' of the model is missing"),
        ("length,colour,size,sold", "the target 'kind' is missing"),
    ],
)
def test_a_column_that_is_not_there_is_named(columns, message):
    cells = {"length": "1", "colour": "red", "size": "small", "sold": "true", "kind": "a"}
    line = ",".join(cells[name] for name in columns.split(","))
    with pytest.raises(DataError, match=message):
        evaluate(plant(MIXED, A), dataset_from_csv(f"{columns}\n{line}\n"))


@pytest.mark.parametrize("name", ["length", "colour", "size"])
def test_a_column_of_another_kind_is_named(name):
    schema = MIXED.to_dict()
    for column in schema["columns"]:
        if column["name"] == name:
            column.update(kind="datetime" if name == "length" else "numeric")
            column.pop("categories", None)
    data = dataset_from_rows(rows(("1970-01-01" if name == "length" else 1, "a")), schema=schema)
    with pytest.raises(DataError, match=f"'{name}' must be"):
        evaluate(plant(MIXED, A), data)


def test_a_target_of_another_kind_is_refused():
    schema = {"columns": [*MIXED.to_dict()["columns"][:-1], {"name": "kind", "kind": "numeric", "role": "target"}]}
    data = dataset_from_rows([{**rows((1, "a"))[0], "kind": n / 2} for n in range(3)], schema=schema)
    with pytest.raises(DataError, match="the target must be nominal, here it is numeric"):
        evaluate(plant(MIXED, A), data)


def test_rows_without_weight_cannot_be_evaluated_on():
    given_rows = [{**row, "w": weight} for row, weight in zip(rows((-1, "a"), (-1, "b")), (0, 1), strict=True)]
    data = dataset_from_rows(given_rows, schema=MIXED, weight="w").take([0])
    with pytest.raises(DataError, match="no rows to evaluate on"):
        evaluate(plant(MIXED, A), data)


@pytest.mark.parametrize("n_rows", [3, 5_000])
def test_measuring_ends_where_it_is_stopped(n_rows):
    model = plant(MIXED, Cut(0, 0.0, (A, B)))
    data = dataset_from_rows(rows(*[(None, "a")] * n_rows), schema=MIXED)
    progress = Progress()
    progress.stop()
    with pytest.raises(Cancelled):
        evaluate(model, data, progress=progress)


def test_training_figures_are_those_of_an_evaluation_on_the_training_rows():
    data = dataset_from_rows([{"x": n % 3, "y": "ab"[n % 4 > 1]} for n in range(12)], target="y")
    model = train(data, "cart")
    assert dict(model.training.train) == evaluate(model, data).figures()
    assert model.training.train["errors"] == 12 - sum(
        answer.label == row["y"] for answer, row in zip(predict(model, data.rows()), data.rows(), strict=True)
    )


@given(root=roots(MIXED), table=st.lists(st.tuples(mixed_rows(), st.sampled_from("abc")), min_size=1, max_size=6))
def test_accuracy_is_the_share_of_rows_that_are_answered_rightly(root, table):
    model = plant(MIXED, root)
    full = [
        {name: None if row.get(name) in ("mauve", "giant") else row.get(name) for name in NAMES} for row, _ in table
    ]
    truths = [truth for _, truth in table]
    data = dataset_from_rows([{**row, "kind": truth} for row, truth in zip(full, truths, strict=True)], schema=MIXED)
    right = sum(answer.label == truth for answer, truth in zip(predict(model, full), truths, strict=True))
    assert evaluate(model, data).accuracy == pytest.approx(right / len(table))
