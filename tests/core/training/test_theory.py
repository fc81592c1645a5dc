"""Whole trainings against figures worked out from the definitions alone: scores at the root, trees, answers."""

import itertools
import json
from functools import cache
from typing import Any

import pytest

import espalier
from espalier import Dataset, Model, predict, to_text, train
from tests.factories import REFERENCE, needs_reference

pytestmark = needs_reference

TENNIS = ("Outlook", "Temperature", "Humidity", "Wind")
NODES = {"root": {}, "node Outlook=Sunny": {"Outlook": "Sunny"}, "node Outlook=Rain": {"Outlook": "Rain"}}


def exactly(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-11)


@cache
def theory() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((REFERENCE / "expected" / "theory.json").read_bytes())
    return document


def reference_data(name: str) -> Dataset:
    folder = REFERENCE / "data"
    schema = json.loads((folder / f"{name}.schema.json").read_bytes())
    return espalier.dataset_from_csv(folder / f"{name}.csv", schema=schema)


def tennis_rows() -> list[dict[str, Any]]:
    given = theory()["tennis"]
    return [dict(zip(given["columns"], row, strict=True)) for row in given["rows"]]


def tennis() -> Dataset:
    return espalier.dataset_from_rows(tennis_rows(), target="PlayTennis")


def score_of(rows: list[dict[str, Any]], attribute: str, target: str, **fields: Any) -> float:
    """Train on one attribute alone, one test deep, and give the score of that test."""
    chosen = [{attribute: row[attribute], target: row[target]} for row in rows]
    task = "regression" if fields.get("criterion") in ("sdr", "squared_error") else None
    dataset = espalier.dataset_from_rows(chosen, target=target, task=task)
    return float(train(dataset, "id3", **{"numeric": "best", "max_depth": 1, **fields}).tree.gain[0])


def assert_winners(rows: list[dict[str, Any]], scores: dict[str, float], **fields: Any) -> None:
    """See that of each two attributes the one of the higher score is tested; those that tie are passed over."""
    for one, other in itertools.combinations(scores, 2):
        if scores[one] == exactly(scores[other]):
            continue
        costs = (
            {name: fields["attribute_costs"][name] for name in (one, other)} if "attribute_costs" in fields else None
        )
        chosen = [{name: row[name] for name in (one, other, "PlayTennis")} for row in rows]
        data = espalier.dataset_from_rows(chosen, target="PlayTennis")
        model = train(data, "id3", **{**fields, "attribute_costs": costs, "max_depth": 1})
        assert root_attribute(model) == max((one, other), key=scores.__getitem__)


def root_attribute(model: Model) -> str:
    return model.schema.attributes[int(model.tree.feature[0])].name


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("attribute", TENNIS)
def test_the_tests_of_tennis_have_the_published_scores(node: str, attribute: str) -> None:
    rows = [row for row in tennis_rows() if NODES[node].items() <= row.items()]
    figures = theory()["tennis"][node].get(attribute)
    if figures is None:
        assert attribute in NODES[node]  # what the path has tested is not tested again
        return
    for criterion, name in (
        ("information_gain", "information_gain_bits"),
        ("gini", "gini_gain_multiway"),
        ("chi_square", "chi2"),
    ):
        assert score_of(rows, attribute, "PlayTennis", criterion=criterion) == exactly(figures[name]), name
    two = score_of(rows, attribute, "PlayTennis", criterion="gini", nominal="subset")
    assert two == exactly(figures["gini_binary_partitions_best_first"][0]["gini_gain"])


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize(
    ("criterion", "figure"),
    [
        ("information_gain", "information_gain_bits"),
        ("gain_ratio", "gain_ratio"),
        ("normalized_gain", "information_gain_bits"),
        ("gini", "gini_gain_multiway"),
        ("chi_square", "chi2"),
    ],
)
def test_of_two_attributes_of_tennis_that_with_the_higher_published_score_is_tested(
    node: str, criterion: str, figure: str
) -> None:
    rows = [row for row in tennis_rows() if NODES[node].items() <= row.items()]
    given = {name: theory()["tennis"][node][name][figure] for name in TENNIS if name in theory()["tennis"][node]}
    assert_winners(rows, given, criterion=criterion)


@pytest.mark.parametrize("attribute", TENNIS)
def test_what_a_test_of_tennis_leaves_wrong_is_the_published_count(attribute: str) -> None:
    figures = theory()["tennis"]["root"][attribute]
    data = espalier.dataset_from_rows(tennis_rows(), target="PlayTennis", ignore=sorted({*TENNIS} - {attribute}))
    assert train(data, "id3", max_depth=1).training.train["errors"] == figures["minimum_0_1_errors"]


@pytest.mark.parametrize("preset", ["id3", "c45", "j48"])
def test_the_tennis_tree_of_the_seeds_is_grown(preset: str) -> None:
    model = train(tennis(), preset, pruning=None)
    assert theory()["tennis"]["id3_tree"] == (
        "Outlook(Sunny: Humidity(High: No, Normal: Yes), Overcast: Yes, Rain: Wind(Strong: No, Weak: Yes))"
    )
    assert root_attribute(model) == "Outlook"
    answers = {
        ("Sunny", "High", "Weak"): "No",
        ("Sunny", "Normal", "Strong"): "Yes",
        ("Overcast", "High", "Strong"): "Yes",
        ("Rain", "High", "Strong"): "No",
        ("Rain", "Normal", "Weak"): "Yes",
    }
    rows = [dict(zip(("Outlook", "Humidity", "Wind"), cells, strict=True)) for cells in answers]
    assert [answer.label for answer in predict(model, rows)] == list(answers.values())
    assert (model.tree.n_leaves, "Temperature" in to_text(model)) == (5, False)


def test_no_tennis_attribute_passes_a_chi_square_test_at_five_per_cent() -> None:
    assert train(tennis(), "id3", chi_square_alpha=0.05).tree.n_nodes == 1
    least = min(theory()["tennis"]["root"][name]["chi2_p"] for name in TENNIS)
    assert train(tennis(), "id3", chi_square_alpha=least + 1e-9, max_depth=1).tree.n_nodes > 1


@pytest.mark.parametrize(
    ("figures", "fields"),
    [
        ("tan_schlimmer_gain2_over_cost", {"cost_function": "tan_schlimmer"}),
        ("nunez_w=0", {"cost_function": "nunez", "cost_weight": 0.0}),
        ("nunez_w=0.5", {"cost_function": "nunez", "cost_weight": 0.5}),
        ("nunez_w=1", {"cost_function": "nunez", "cost_weight": 1.0}),
    ],
)
def test_costs_change_the_winner_as_published(figures: str, fields: dict[str, Any]) -> None:
    given = theory()["attribute_costs_on_tennis"]
    assert_winners(tennis_rows(), given[figures], attribute_costs=given["costs"], **fields)
    model = train(tennis(), "id3", attribute_costs=given["costs"], **fields)
    assert root_attribute(model) == given[f"winner {figures}"]


@pytest.mark.parametrize("attribute", ["temperature", "humidity"])
def test_every_cut_of_the_weather_has_the_published_scores(attribute: str) -> None:
    rows = reference_data("weather_numeric").rows()
    for cut in theory()["weather_numeric_thresholds_root"][attribute]:
        for criterion, name in (
            ("information_gain", "information_gain_bits"),
            ("gini", "gini_gain"),
        ):
            only = {attribute: [cut["midpoint"]]}
            assert score_of(rows, attribute, "play", criterion=criterion, cut_points=only) == exactly(cut[name])


def test_mitchell_s_temperatures_are_cut_at_54_and_then_at_85() -> None:
    cells = {"t": [40, 48, 60, 72, 80, 90], "play": ["No", "No", "Yes", "Yes", "Yes", "No"]}
    data = espalier.dataset_from_columns(cells, target="play")
    best = max(cut["information_gain_bits"] for cut in theory()["mitchell_temperature_example_seed003"])
    for numeric in ("boundary", "best"):
        tree = train(data, "id3", numeric=numeric).tree
        assert float(tree.gain[0]) == exactly(best)
        assert tree.threshold[tree.feature >= 0].tolist() == [54.0, 85.0]


def test_a_missing_outlook_lowers_the_gain_as_in_quinlan_s_book() -> None:
    rows = [{"outlook": row["outlook"], "play": row["play"]} for row in reference_data("golf_missing").rows()]
    data = espalier.dataset_from_rows(rows, target="play")
    tree = train(data, "id3", missing="fractional", max_depth=1).tree
    assert float(tree.gain[0]) == exactly(theory()["golf_missing"]["gain_outlook"])


@pytest.mark.parametrize("preset", ["c45", "j48"])
def test_the_row_without_an_outlook_is_shared_out_as_in_quinlan_s_book(preset: str) -> None:
    model, given = train(reference_data("golf_missing"), preset), theory()["golf_missing"]
    below = model.tree.children(0)
    categories = model.schema.attributes[0].categories
    totals = {categories[branch]: float(model.tree.weight[child]) for branch, child in enumerate(below)}
    assert totals == exactly(given["branch_totals"])
    leaves = sorted(tuple(stats) for stats in model.tree.stats[model.tree.test == 0].tolist())
    assert model.schema.classes == ("yes", "no")
    expected = sorted((leaf["yes"], leaf["no"]) for leaf in given["leaf_class_weights"].values())
    assert [share for leaf in leaves for share in leaf] == exactly([share for leaf in expected for share in leaf])


@pytest.mark.parametrize("preset", ["c45", "j48"])
def test_the_incomplete_rows_of_golf_are_answered_with_31_70_and_29_44(preset: str) -> None:
    model = train(reference_data("golf_missing"), preset)
    rows = [
        {"outlook": "sunny", "temperature": 70, "humidity": None, "windy": "FALSE"},
        {"outlook": None, "temperature": 70, "humidity": 90, "windy": "FALSE"},
    ]
    answers = predict(model, rows)
    shares = [dict(answer.distribution) for answer in answers]
    assert shares == [exactly({"yes": 31 / 70, "no": 39 / 70}), exactly({"yes": 29 / 44, "no": 15 / 44})]
    given = theory()["golf_missing"]
    assert shares[0]["yes"] == exactly(given["classify sunny,70,humidity=?,FALSE"]["yes"])
    assert shares[1]["yes"] == exactly(given["classify outlook=?,70,90,FALSE"]["yes"])
    assert [answer.label for answer in answers] == ["no", "yes"]


@pytest.mark.parametrize("attribute", TENNIS)
def test_hours_of_golf_have_the_published_reductions(attribute: str) -> None:
    given = theory()["golf_hours_regression"]
    rows = [{**row, "hours": hours} for row, hours in zip(tennis_rows(), given["hours"], strict=True)]
    for criterion, figure in (("sdr", "sdr_population_sd"), ("squared_error", "variance_reduction")):
        assert score_of(rows, attribute, "hours", criterion=criterion) == exactly(given[attribute][figure])


def test_the_best_cuts_of_cpu_have_the_published_reductions() -> None:
    data = reference_data("cpu")
    rows, target = data.rows(), data.schema.target
    assert target is not None
    for given in theory()["m5_root_split_by_SDR"]["cpu"]["population_sd"]:
        name = given["attribute"]
        found = score_of(rows, name, target.name, criterion="sdr", cut_points={name: [given["midpoint"]]})
        assert found == exactly(given["sdr"])
