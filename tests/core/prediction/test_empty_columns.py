"""A column in which no cell is filled at training, and rows that weigh nothing."""

from typing import Any

import numpy as np
import pytest

import espalier

Y = [float(i * i % 7) + 0.5 for i in range(30)]
PRESETS = ("id3", "c45", "j48", "cart", "reptree", "m5")


def empty_beside_numbers(task: str, **columns: Any) -> espalier.Dataset:
    target = Y if task == "regression" else ["high" if each > 3 else "low" for each in Y]
    return espalier.dataset_from_columns(
        {"a": [float(i) for i in range(30)], "empty": [None] * 30, **columns, "y": target}, target="y", task=task
    )


@pytest.mark.parametrize("nominal", ["subset", "ordered_binaries", "one_vs_rest"])
@pytest.mark.parametrize("missing", ["fractional", "spread", "direction", "majority", "surrogate", "imputed"])
def test_an_empty_column_is_never_tested_whatever_is_done_with_missing_values(nominal: str, missing: str) -> None:
    model = espalier.train(empty_beside_numbers("regression"), "cart", nominal=nominal, missing=missing)
    assert 1 not in model.tree.feature


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_takes_an_empty_column(name: str) -> None:
    task = "regression" if name == "m5" else "classification"
    fields = {"numeric": "best"} if name == "id3" else {}
    model = espalier.train(empty_beside_numbers(task), name, **fields)
    assert 1 not in model.tree.feature


@pytest.mark.parametrize("cell", ["zz", 3, 2.5, True, None])
def test_a_column_that_was_empty_at_training_takes_any_value_later(cell: object) -> None:
    model = espalier.train(empty_beside_numbers("regression"), "cart")
    asked = {"a": 7.0, "empty": cell}
    assert espalier.predict(model, [asked])[0].value == espalier.predict(model, [{"a": 7.0, "empty": None}])[0].value


def test_rows_without_weight_do_not_change_what_a_paired_test_says() -> None:
    generator = np.random.default_rng(5)
    signal = generator.normal(size=400)
    label = np.where(signal + generator.normal(size=400) > 0, "p", "q").tolist()

    def rows(low: int, high: int, extra: int) -> espalier.Dataset:
        span = [*range(low, high), *range(extra)]
        return espalier.dataset_from_columns(
            {
                "x": [float(signal[i]) for i in span],
                "w": [1.0] * (high - low) + [0.0] * extra,
                "y": [label[i] for i in span],
            },
            target="y",
            weight="w",
        )

    candidates = [
        espalier.Candidate("stump", espalier.training_config("cart", max_depth=1)),
        espalier.Candidate("full", espalier.training_config("cart")),
    ]
    learned = rows(0, 200, 0)
    plain = espalier.compare(learned, candidates, holdout=rows(200, 400, 0))
    padded = espalier.compare(learned, candidates, holdout=rows(200, 400, 150))
    assert plain.differences[0].p_value == padded.differences[0].p_value


def test_a_comparison_on_its_own_training_rows_is_refused() -> None:
    data = empty_beside_numbers("regression")
    candidates = [espalier.Candidate("cart", espalier.training_config("cart"))]
    with pytest.raises(espalier.ConfigError, match="is the training data itself"):
        espalier.compare(data, candidates, holdout=data)


@pytest.mark.parametrize("folds", [3.0, [None] * 30, [0.2, 0.7] * 15, "three", True])
def test_folds_of_another_type_are_refused_by_name(folds: Any) -> None:
    candidates = [espalier.Candidate("cart", espalier.training_config("cart"))]
    with pytest.raises(espalier.ConfigError) as caught:
        espalier.compare(empty_beside_numbers("regression"), candidates, folds=folds)
    assert [fault.path for fault in caught.value.faults] == ["/folds"]
