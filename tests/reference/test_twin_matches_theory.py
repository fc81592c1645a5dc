"""The twin's scores and small trees against theory.json, to 1e-9, and the trees of the seeds."""

import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.factories import REFERENCE, needs_reference
from tests.reference import candidates, replay, scores, splits, tree
from tests.reference.presets import preset
from tests.reference.table import Column, Table, Target, as_target, read_column, read_table

pytestmark = needs_reference

NODES = {"root": None, "node Outlook=Sunny": "Sunny", "node Outlook=Rain": "Rain"}


def exactly(figure: Any) -> Any:
    """The figure to nine digits, as theory.json is to be matched."""
    return pytest.approx(figure, rel=1e-9, abs=1e-11)


@cache
def theory() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((REFERENCE / "expected" / "theory.json").read_text(encoding="utf-8"))
    return document


@cache
def tennis() -> Table:
    given = theory()["tennis"]
    columns = []
    for position, name in enumerate(given["columns"]):
        texts = [row[position] for row in given["rows"]]
        columns.append(read_column(name, texts, list(dict.fromkeys(texts)), "?"))
    return Table(tuple(columns[:-1]), as_target(columns[-1]), (1.0,) * len(given["rows"]))


def rows_at(outlook: str | None) -> scores.Sample:
    column = tennis().columns[0]
    return [
        (row, 1.0) for row in range(14) if outlook is None or column.categories[int(column.values[row] or 0)] == outlook
    ]


def offer(table: Table, source: int, sample: scores.Sample, **fields: Any) -> splits.Split:
    """What an attribute offers at a node under an ID3 config with other fields."""
    config = preset("id3", table.target.kind, **{"numeric": "best", **fields})
    column = table.columns[source]
    place = splits.Place(sample, scores.impurity(config["criterion"], sample, table.target), frozenset())
    split = splits.best_split(
        candidates.Attribute(source, column.kind, column.values, column.k), place, table.target, config
    )
    assert split is not None
    return split


def offers_in(node: str) -> Iterator[tuple[int, scores.Sample, dict[str, Any]]]:
    for name, figures in theory()["tennis"][node].items():
        if isinstance(figures, dict):
            yield tennis().named(name), rows_at(NODES[node]), figures


def test_impurities_of_the_edge_cases_are_exact() -> None:
    for case in theory()["impurity_edge_cases"]:
        assert scores.entropy(case["counts"]) == exactly(case["entropy_bits"])
        assert scores.gini(case["counts"]) == exactly(case["gini"])
        assert scores.misclassification(case["counts"]) == exactly(case["misclassification"])


def test_the_tennis_target_has_the_published_entropy_in_bits_nats_and_bans() -> None:
    given = theory()["tennis"]
    bits = scores.entropy(scores.class_weights(rows_at(None), tennis().target))
    assert bits == exactly(given["entropy_bits"])
    assert bits * math.log(2) == exactly(given["entropy_nats"])
    assert bits * math.log10(2) == exactly(given["entropy_bans"])


@pytest.mark.parametrize("node", NODES)
def test_gains_ratios_gini_decreases_and_errors_of_a_tennis_node_are_exact(node: str) -> None:
    for source, sample, figures in offers_in(node):
        gain = offer(tennis(), source, sample)
        assert gain.score == exactly(figures["information_gain_bits"])
        weights = [scores.total(branch) for branch in gain.branches]
        assert scores.split_information(weights, 0.0) == exactly(figures["split_information"])
        assert offer(tennis(), source, sample, criterion="gain_ratio").score == exactly(figures["gain_ratio"])
        assert offer(tennis(), source, sample, criterion="gini").score == exactly(figures["gini_gain_multiway"])
        errors = sum(
            sum(counts) - max(counts) for counts in (scores.class_weights(b, tennis().target) for b in gain.branches)
        )
        assert errors == figures["minimum_0_1_errors"]


@pytest.mark.parametrize("node", NODES)
def test_chi_square_and_its_p_value_of_a_tennis_node_are_exact(node: str) -> None:
    for source, sample, figures in offers_in(node):
        statistic, freedom, tail = scores.chi_square(offer(tennis(), source, sample).branches, tennis().target)
        assert statistic == exactly(figures["chi2"])
        assert freedom == figures["chi2_df"]
        assert tail == exactly(figures["chi2_p"])


@pytest.mark.parametrize("node", NODES)
def test_the_best_two_groups_of_categories_have_the_published_gini_decrease(node: str) -> None:
    for source, sample, figures in offers_in(node):
        best = offer(tennis(), source, sample, criterion="gini", nominal="subset")
        assert best.score == exactly(figures["gini_binary_partitions_best_first"][0]["gini_gain"])


def test_an_attribute_of_fourteen_days_gains_everything_and_pays_in_split_information() -> None:
    given = theory()["tennis"]["day_id_attribute"]
    days = Table((Column("nominal", tuple(range(14)), 14),), tennis().target, tennis().weights)
    assert offer(days, 0, rows_at(None)).score == exactly(given["information_gain_bits"])
    assert offer(days, 0, rows_at(None), criterion="gain_ratio").score == exactly(given["gain_ratio"])


@pytest.mark.parametrize(
    ("figures", "fields"),
    [
        ("tan_schlimmer_gain2_over_cost", {"cost_function": "tan_schlimmer"}),
        ("nunez_w=0", {"cost_function": "nunez", "cost_weight": 0.0}),
        ("nunez_w=0.5", {"cost_function": "nunez", "cost_weight": 0.5}),
        ("nunez_w=1", {"cost_function": "nunez", "cost_weight": 1.0}),
    ],
)
def test_attribute_costs_change_scores_and_winner_as_published(figures: str, fields: dict[str, Any]) -> None:
    given = theory()["attribute_costs_on_tennis"]
    costs = {tennis().named(name): float(cost) for name, cost in given["costs"].items()}
    for name, score in given[figures].items():
        split = offer(tennis(), tennis().named(name), rows_at(None), attribute_costs=costs, **fields)
        assert split.score == exactly(score)
    root = replay.train(tennis(), preset("id3", attribute_costs=costs, **fields)).tree
    assert tennis().columns[root.attribute].name == given[f"winner {figures}"]


@pytest.mark.parametrize("name", ["temperature", "humidity"])
def test_every_cut_of_the_numeric_weather_attributes_has_the_published_scores(name: str) -> None:
    table = read_table(REFERENCE, "weather_numeric")
    assert_cuts(table, table.named(name), theory()["weather_numeric_thresholds_root"][name])


def test_mitchell_s_six_temperatures_have_the_published_cuts() -> None:
    column = Column("numeric", (40.0, 48.0, 60.0, 72.0, 80.0, 90.0))
    table = Table((column,), Target("class", (0, 0, 1, 1, 1, 0), 2), (1.0,) * 6)
    assert_cuts(table, 0, theory()["mitchell_temperature_example_seed003"])


def assert_cuts(table: Table, source: int, figures: list[dict[str, float]]) -> None:
    for given in figures:
        fields = {"cut_points": {source: [given["midpoint"]]}}
        sample = list(enumerate(table.weights))
        split = offer(table, source, sample, **fields)
        assert len(split.branches[0]) == given["left_n"]
        assert split.score == exactly(given["information_gain_bits"])
        assert offer(table, source, sample, criterion="gini", **fields).score == exactly(given["gini_gain"])
        assert offer(table, source, sample, criterion="gain_ratio", **fields).score == exactly(given["gain_ratio"])
    found = {
        (c.threshold, len(c.branches[0]))
        for c in candidates.numeric_candidates(
            candidates.Attribute(source, "numeric", table.columns[source].values, 0),
            list(enumerate(table.weights)),
            table.target,
            preset("cart"),
        )
    }
    assert found == {(given["midpoint"], given["left_n"]) for given in figures}


def test_a_missing_outlook_lowers_gain_and_raises_split_information_as_in_quinlan_s_book() -> None:
    given = theory()["golf_missing"]
    table = read_table(REFERENCE, "golf_missing")
    sample = list(enumerate(table.weights))
    ratio = offer(table, 0, sample, criterion="gain_ratio", missing="fractional")
    weights = [scores.total(branch) for branch in ratio.branches]
    assert ratio.gain == exactly(given["gain_outlook"])
    information = scores.split_information(weights, scores.total(ratio.unknown))
    assert information == exactly(given["split_information_with_unknown_as_a_class"])
    assert ratio.score == exactly(given["gain_ratio"])
    totals = [scores.total(branch) for branch in splits.shared_out(ratio)]
    assert totals == exactly(list(given["branch_totals"].values()))


def test_the_two_incomplete_golf_rows_are_answered_with_31_70_and_29_44() -> None:
    model = replay.train(read_table(REFERENCE, "golf_missing"), preset("j48"))
    assert model.distribution((0, 70.0, None, 1))[0] == pytest.approx(31 / 70, rel=1e-12)
    assert model.distribution((None, 70.0, 90.0, 1))[0] == pytest.approx(29 / 44, rel=1e-12)


def test_weka_s_fractional_answers_on_golf_are_ours_to_the_printed_digits() -> None:
    published = json.loads((REFERENCE / "expected" / "golf_missing_predictions.json").read_text(encoding="utf-8"))
    table = read_table(REFERENCE, "golf_missing")
    model = replay.train(table, preset("j48"))
    for query in published["queries"]:
        cells = zip(table.columns, query["case"], strict=True)
        row = [read_column(c.name, [text], c.categories or None, "?").values[0] for c, text in cells]
        assert model.distribution(row) == pytest.approx([query["P(yes)"], query["P(no)"]], abs=5.001e-4)


def test_hours_of_golf_have_the_published_deviations_and_reductions() -> None:
    given = theory()["golf_hours_regression"]
    hours = tuple(float(value) for value in given["hours"])
    table = Table(tennis().columns, Target("number", hours), (1.0,) * 14)
    sample = rows_at(None)
    assert scores.impurity("sdr", sample, table.target) == exactly(given["sd_population"])
    for source, column in enumerate(table.columns):
        figures = given[column.name]
        assert offer(table, source, sample, criterion="sdr").score == exactly(figures["sdr_population_sd"])
        variance = offer(table, source, sample, criterion="squared_error")
        assert variance.score == exactly(figures["variance_reduction"])


def test_the_best_cuts_of_cpu_by_standard_deviation_are_the_published_ones() -> None:
    table = read_table(REFERENCE, "cpu")
    sample = list(enumerate(table.weights))
    for given in theory()["m5_root_split_by_SDR"]["cpu"]["population_sd"]:
        fields = {"criterion": "sdr", "cut_points": {table.named(given["attribute"]): [given["midpoint"]]}}
        split = offer(table, table.named(given["attribute"]), sample, **fields)
        assert split.score == exactly(given["sdr"])
        assert len(split.branches[0]) == given["left_n"]


@pytest.mark.parametrize("name", ["id3", "c45"])
def test_the_tennis_tree_of_the_seeds_is_grown(name: str) -> None:
    root = replay.train(tennis(), preset(name)).tree
    categories = tennis().columns[0].categories
    below = {categories[branch]: child for branch, child in enumerate(root.children)}
    assert tennis().columns[root.attribute].name == "Outlook"
    assert tennis().columns[below["Sunny"].attribute].name == "Humidity"
    assert tennis().columns[below["Rain"].attribute].name == "Wind"
    assert tree.n_leaves(root) == theory()["tennis"]["id3_leaves"]


def test_no_tennis_attribute_passes_a_chi_square_test_at_five_per_cent() -> None:
    assert replay.train(tennis(), preset("id3", chi_square_alpha=0.05)).tree.children == ()


def test_seed_002_s_drug_tree_has_its_root_and_its_accuracy() -> None:
    given = json.loads((REFERENCE / "expected" / "drug200_seed002.json").read_text(encoding="utf-8"))
    table = read_table(REFERENCE, "drug200")
    held = set(given["test_rows"])
    model = replay.train(table.only([row for row in range(table.n_rows) if row not in held]), preset("cart"))
    assert table.columns[model.tree.attribute].name == "Na_to_K"
    assert model.tree.threshold == pytest.approx(14.6155, abs=1e-9)
