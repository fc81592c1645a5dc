"""Operating points: the label is decided by arithmetic on the same shares, by every way of answering."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import espalier
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import encode_columns
from tests.core.planted import MIXED, Ask, Leaf, plant

LABELS = ("a", "b", "c")
POINTS = [espalier.OperatingPoint(code, share) for code in range(3) for share in (0.0, 0.2, 0.34, 0.5, 0.75, 1.0)]


def table(n_rows: int = 300, *, seed: int = 1) -> espalier.Dataset:
    """Three classes that two attributes tell apart badly, with missing values."""
    random = np.random.default_rng(seed)
    size = random.integers(0, 12, n_rows).astype(float)
    colour = random.choice(["red", "green", "blue", "grey"], n_rows)
    noise = random.random(n_rows)
    label = np.where(noise < 0.45, random.choice(LABELS, n_rows), np.where(size > 6, "a", np.where(size > 3, "b", "c")))
    rows = [
        {
            "size": None if random.random() < 0.1 else float(size[row]),
            "colour": None if random.random() < 0.1 else str(colour[row]),
            "kind": str(label[row]),
        }
        for row in range(n_rows)
    ]
    return espalier.dataset_from_rows(rows, target="kind")


def expected(point: espalier.OperatingPoint, distribution: Any) -> str:
    """What the point says of shares: the label where its share reaches the probability, else the best other one."""
    shares = [share for _, share in distribution]
    names = [label for label, _ in distribution]
    if shares[point.code] >= point.probability:
        return str(names[point.code])
    best = max(share for code, share in enumerate(shares) if code != point.code)
    return str(next(names[code] for code, share in enumerate(shares) if code != point.code and share == best))


ROWS: list[dict[str, Any]] = [
    dict(zip(("size", "colour"), cells, strict=True))
    for cells in itertools.product((None, 0.0, 4.0, 6.5, 11.0), (None, "red", "green", "blue", "violet"))
]


@pytest.mark.parametrize("preset", ["cart", "c45", "j48"])
def test_the_label_follows_from_the_shares_and_all_else_is_the_same(preset: str) -> None:
    model = espalier.train(table(), preset, max_depth=3)
    plain = espalier.predict(model, ROWS)
    changed = 0
    for point in POINTS:
        at = espalier.with_operating_point(model, point)
        for one, found in zip(plain, espalier.predict(at, ROWS), strict=True):
            assert found.label == expected(point, one.distribution)
            assert model.schema.classes[found.code] == found.label
            same = ("distribution", "support", "leaf", "nodes", "visits", "n_visits", "row")
            assert [getattr(found, name) for name in same] == [getattr(one, name) for name in same]
            changed += found.label != one.label
    assert changed > 0


def test_the_confidence_is_that_of_the_label_that_is_given() -> None:
    model = espalier.train(table(), "cart", max_depth=2)
    row = {"size": 11.0, "colour": "red"}
    for point in POINTS:
        [found] = espalier.predict(espalier.with_operating_point(model, point), [row])
        share, weight, z = dict(found.distribution)[found.label], found.support, 1.96
        square = z * z / weight
        root = z * math.sqrt(share * (1 - share) / weight + square / (4 * weight))
        assert found.confidence == pytest.approx(max(0.0, (share + square / 2 - root) / (1 + square)), abs=1e-12)


@pytest.mark.parametrize("missing", [None, "fractional", "majority", "last_prediction"])
def test_tables_are_answered_as_rows_are(missing: str | None) -> None:
    data = table(seed=2)
    model = espalier.train(table(), "c45", max_depth=3)
    rows = [{name: row[name] for name in ("size", "colour")} for row in data.rows()]
    for point in POINTS:
        at = espalier.with_missing_strategy(espalier.with_operating_point(model, point), missing)
        answers = espalier.predict_table(at, data)
        single = espalier.predict(at, rows)
        for place, one in enumerate(single):
            several = answers.several.get(place)
            found = several or espalier.leaf_prediction(at, int(answers.leaves[place]))
            assert (found.label, found.leaf) == (one.label, one.leaf)
        many = predict_batch(at, encode_columns(at.schema, data, at.preparation.imputed)).answers
        assert [model.schema.classes[int(code)] for code in many] == [one.label for one in single]


def test_a_list_of_rules_has_operating_points_too() -> None:
    grown = espalier.train(table(), "c45", max_depth=4)
    model = espalier.prune(grown, espalier.pruning_method("rules"), dataset=table(), holdout=table(seed=3)).model
    plain = espalier.predict(model, ROWS)
    for point in POINTS:
        at = espalier.with_operating_point(model, point)
        for one, found in zip(plain, espalier.explain(at, ROWS), strict=True):
            assert found.prediction.label == expected(point, one.distribution)
            assert found.rule.endswith(f"then {found.prediction.label}") or found.rule.endswith(
                f" {found.prediction.label}"
            )


def test_the_rules_of_a_tree_with_a_point_have_the_answers_of_its_leaves() -> None:
    model = espalier.train(table(), "cart", max_depth=3)
    known = [row for row in ROWS if None not in row.values() and row["colour"] != "violet"]
    for point in POINTS:
        at = espalier.with_operating_point(model, point)
        rules = espalier.extract_rules(at)
        assert rules.operating_point == point
        assert [one.label for one in espalier.predict(rules, known)] == [
            one.label for one in espalier.predict(at, known)
        ]
        assert rules.trained is not None
        assert espalier.to_json(rules.trained) == espalier.to_json(espalier.extract_rules(model))


def test_an_explanation_speaks_of_the_label_that_is_given() -> None:
    model = espalier.train(table(), "cart", max_depth=3)
    for point in POINTS:
        at = espalier.with_operating_point(model, point)
        for found in espalier.explain(at, ROWS[6:], detail="full"):
            label = found.prediction.label
            assert found.rule.endswith(f"then {label}")
            share = dict(found.prediction.distribution)[label]
            assert found.contributions is not None
            assert found.baseline is not None
            assert found.baseline + math.fsum(found.contributions.values()) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("preset", ["cart", "c45"])
def test_a_reason_forces_the_label_whatever_the_other_attributes_are(preset: str) -> None:
    model = espalier.train(table(), preset, max_depth=3)
    anything = {"size": [None, 0.0, 3.5, 4.0, 6.5, 9.0, 11.0], "colour": [None, "red", "green", "blue", "grey"]}
    for point in POINTS[1::2]:
        at = espalier.with_operating_point(model, point)
        for row, found in zip(ROWS, espalier.explain(at, ROWS, detail="full"), strict=True):
            for reason in found.reasons or ():
                kept = {feature.name for feature in reason.attributes}
                others = [
                    {name: row[name] if name in kept else value for name, value in zip(anything, cells, strict=True)}
                    for cells in itertools.product(*anything.values())
                ]
                assert {one.label for one in espalier.predict(at, others)} == {found.prediction.label}


def test_a_model_is_made_once_for_a_point_and_the_plain_one_stays_as_it_is() -> None:
    model = espalier.train(table(), "cart", max_depth=2)
    before = espalier.to_json(model)
    point = espalier.OperatingPoint(0, 0.3)
    assert espalier.with_operating_point(model, None) is model
    assert espalier.with_operating_point(model, point) is espalier.with_operating_point(
        model, espalier.OperatingPoint(0, 0.3)
    )
    for share in range(20):
        espalier.with_operating_point(model, espalier.OperatingPoint(1, share / 20))
    assert espalier.to_json(model) == before


@pytest.mark.parametrize("point", [("a", 0.3), (True, 0.3), (1.0, 0.3), (3, 0.3), (0, "0.3"), (0, 1.5), (0, True)])
def test_a_point_that_is_made_by_hand_is_checked(point: tuple[Any, Any]) -> None:
    model = espalier.train(table(), "cart", max_depth=2)
    with pytest.raises(espalier.ConfigError):
        espalier.with_operating_point(model, espalier.OperatingPoint(*point))


def test_an_export_names_the_point() -> None:
    model = espalier.train(table(), "cart", max_depth=2, missing="majority")
    at = espalier.with_operating_point(model, espalier.OperatingPoint(2, 0.25))
    line = "Class number 2 (from 0) is the answer if its probability reaches 0.25"
    for form in ("python", "c", "pmml"):
        assert line in str(espalier.export_model(at, form))
        assert line not in str(espalier.export_model(model, form))


def test_a_point_is_read_from_its_json_form_by_the_very_label() -> None:
    classes = (1, "1", True, "yes")
    for code, label in enumerate(classes):
        found = espalier.operating_point_from_dict({"label": label, "probability": 1}, classes)
        assert found == espalier.OperatingPoint(code, 1.0)


def test_a_point_may_name_a_number_of_another_type_and_a_refusal_lists_the_classes() -> None:
    assert espalier.operating_point_from_dict({"label": 1.0, "probability": 1}, (0, 1)).code == 1
    with pytest.raises(espalier.ConfigError, match="0, 1"):
        espalier.operating_point_from_dict({"label": "1", "probability": 1}, (0, 1))


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ([], [""]),
        (None, [""]),
        ({}, ["/label", "/probability"]),
        ({"label": "no such", "probability": 0.5}, ["/label"]),
        ({"label": None, "probability": 0.5}, ["/label"]),
        ({"label": ["a"], "probability": 0.5}, ["/label"]),
        ({"label": "a", "probability": "0.5"}, ["/probability"]),
        ({"label": "a", "probability": True}, ["/probability"]),
        ({"label": "a", "probability": -0.1}, ["/probability"]),
        ({"label": "a", "probability": 1.1}, ["/probability"]),
        ({"label": "a", "probability": math.nan}, ["/probability"]),
        ({"label": "a", "probability": math.inf}, ["/probability"]),
        ({"label": "a", "probability": 0.5, "cost": 1}, ["/cost"]),
        ({"label": "a", "probability": 0.5, "a/b": 1}, ["/a~1b"]),
    ],
)
def test_what_is_no_point_is_refused_with_every_fault(document: object, paths: list[str]) -> None:
    with pytest.raises(espalier.ConfigError) as refused:
        espalier.operating_point_from_dict(document, LABELS)
    assert [fault.path for fault in refused.value.faults] == paths


def test_a_regression_has_no_operating_point() -> None:
    with pytest.raises(espalier.ConfigError, match="number"):
        espalier.operating_point_from_dict({"label": "a", "probability": 0.5}, ())
    data = espalier.dataset_from_csv("size,hours\n1,10\n2,12\n9,31\n", target="hours", task="regression")
    with pytest.raises(espalier.ConfigError):
        espalier.with_operating_point(espalier.train(data, "cart"), espalier.OperatingPoint(0, 0.5))


@pytest.mark.parametrize("probability", [-0.1, 1.5, 30.0, math.nan])
def test_a_probability_that_is_none_is_refused(probability: float) -> None:
    model = espalier.train(table(), "cart")
    with pytest.raises(espalier.ConfigError, match="must be a number from 0 to 1"):
        espalier.with_operating_point(model, espalier.OperatingPoint(0, probability))


@pytest.mark.parametrize(("share", "weights"), [((3, 10), (2, 2, 3)), ((1, 3), (1, 2, 11)), ((1, 10), (1, 2, 11))])
def test_at_exactly_the_share_of_all_leaves_a_divided_row_is_answered_as_each_leaf_answers(
    share: tuple[int, int], weights: tuple[int, int, int]
) -> None:
    part, whole = share
    leaves = tuple(Leaf(((whole - part) * weight, part * weight, 0.0)) for weight in weights)
    at = espalier.with_operating_point(
        plant(MIXED, Ask(1, (0, 1, 2), leaves)), espalier.OperatingPoint(1, part / whole)
    )
    row = {"length": 0, "colour": None, "size": "small", "sold": True}
    [divided] = espalier.predict(at, [row])
    # The sum of the shares is rounded to less than the probability.
    assert (divided.n_visits, dict(divided.distribution)["b"] < part / whole) == (3, True)
    assert divided.label == espalier.consult(at, {}).label == "b"
    data = espalier.dataset_from_rows([row], like=espalier.Schema(MIXED.attributes))
    assert espalier.predict_table(at, data).labels() == ["b"]
    assert predict_batch(at, encode_columns(at.schema, data)).answers.tolist() == [1]
