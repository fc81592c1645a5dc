"""The profile of a data set: figures from the definitions, worked out independently in the reference folder."""

import json
import math
from functools import cache
from typing import Any

import pytest

import espalier
from espalier.stats import chi_square_tail
from tests.factories import REFERENCE, needs_reference
from tests.reference import exact

CLOSE = {"rel": 1e-9, "abs": 1e-9}


@cache
def theory() -> dict[str, Any]:
    return json.loads((REFERENCE / "expected" / "theory.json").read_bytes())


def reference_data(name: str) -> espalier.Dataset:
    folder = REFERENCE / "data"
    schema = json.loads((folder / f"{name}.schema.json").read_bytes())
    return espalier.dataset_from_csv(folder / f"{name}.csv", schema=schema)


def tennis(**conditions: str) -> espalier.Dataset:
    names, rows = theory()["tennis"]["columns"], theory()["tennis"]["rows"]
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    kept = [row for row in cells if all(row[name] == value for name, value in conditions.items())]
    return espalier.dataset_from_rows(kept, target="PlayTennis")


def figures_of(dataset: espalier.Dataset, name: str, **options: Any) -> dict[str, Any]:
    document = espalier.profile(dataset, **options).to_dict()
    return next(attribute for attribute in document["attributes"] if attribute["name"] == name)


def assert_table(figures: dict[str, Any], expected: dict[str, Any]) -> None:
    assert figures["gain"] == pytest.approx(expected["information_gain_bits"], **CLOSE)
    assert figures["split_information"] == pytest.approx(expected["split_information"], **CLOSE)
    assert figures["gain_ratio"] == pytest.approx(expected["gain_ratio"], **CLOSE)
    assert figures["gini_decrease"] == pytest.approx(expected["gini_gain_multiway"], **CLOSE)
    assert figures["chi_square"] == pytest.approx(expected["chi2"], **CLOSE)
    assert figures["degrees_of_freedom"] == expected["chi2_df"]
    assert figures["p_value"] == pytest.approx(expected["chi2_p"], **CLOSE)


@needs_reference
@pytest.mark.parametrize("attribute", ["Outlook", "Temperature", "Humidity", "Wind"])
def test_the_root_of_the_tennis_data_has_the_seeds_figures(attribute: str) -> None:
    assert_table(figures_of(tennis(), attribute), theory()["tennis"]["root"][attribute])


@needs_reference
@pytest.mark.parametrize("outlook", ["Sunny", "Rain"])
@pytest.mark.parametrize("attribute", ["Temperature", "Humidity", "Wind"])
def test_the_nodes_of_the_tennis_tree_have_the_seeds_figures(outlook: str, attribute: str) -> None:
    expected = theory()["tennis"][f"node Outlook={outlook}"]
    dataset = tennis(Outlook=outlook)
    assert espalier.profile(dataset).entropy == pytest.approx(expected["entropy_bits"], **CLOSE)
    assert_table(figures_of(dataset, attribute), expected[attribute])


@needs_reference
@pytest.mark.parametrize(("base", "unit"), [(2, "bits"), ("e", "nats"), (math.e, "nats"), (10, "bans")])
def test_entropies_are_shown_in_bits_nats_or_bans(base: str | float, unit: str) -> None:
    found = espalier.profile(tennis(), log_base=base)
    assert found.unit == unit
    assert found.entropy == pytest.approx(theory()["tennis"][f"entropy_{unit}"], **CLOSE)


def test_a_gain_ratio_is_the_same_in_every_unit() -> None:
    dataset = espalier.dataset_from_csv("a,y\n1,n\n2,n\n2,y\n3,y\n5,n\n", target="y", ignore=[])
    ratios = [figures_of(dataset, "a", log_base=base)["gain_ratio"] for base in (2, "e", 10)]
    assert ratios == pytest.approx([ratios[0]] * 3)


@needs_reference
def test_each_class_has_its_share_and_self_information() -> None:
    no, yes = espalier.profile(tennis()).classes
    assert (no.label, no.weight, no.share) == ("No", 5, 5 / 14)
    assert (yes.label, yes.share) == ("Yes", 9 / 14)
    assert no.self_information == pytest.approx(math.log2(14 / 5))
    assert yes.self_information == pytest.approx(math.log2(14 / 9))


@needs_reference
def test_an_attribute_of_as_many_values_as_rows_has_the_full_gain_and_a_small_ratio() -> None:
    rows = [{**row, "Day": f"D{place}"} for place, row in enumerate(tennis().rows())]
    figures = figures_of(espalier.dataset_from_rows(rows, target="PlayTennis"), "Day")
    expected = theory()["tennis"]["day_id_attribute"]
    assert figures["gain"] == pytest.approx(expected["information_gain_bits"], **CLOSE)
    assert figures["split_information"] == pytest.approx(expected["split_information"], **CLOSE)
    assert figures["gain_ratio"] == pytest.approx(expected["gain_ratio"], **CLOSE)
    assert (figures["n_distinct"], figures["entropy"]) == (14, pytest.approx(math.log2(14)))


@needs_reference
def test_missing_values_lower_the_gain_and_are_a_branch_of_the_split_information() -> None:
    figures, expected = figures_of(reference_data("golf_missing"), "outlook"), theory()["golf_missing"]
    assert (figures["n_known"], figures["n_missing"]) == (13, 1)
    assert figures["target_entropy"] == pytest.approx(expected["entropy_of_13_known"], **CLOSE)
    assert figures["conditional_entropy"] == pytest.approx(expected["conditional_entropy_known"], **CLOSE)
    assert figures["gain"] == pytest.approx(expected["gain_outlook"], **CLOSE)
    assert figures["split_information"] == pytest.approx(expected["split_information_with_unknown_as_a_class"], **CLOSE)
    assert figures["gain_ratio"] == pytest.approx(expected["gain_ratio"], **CLOSE)
    assert figures["entropy"] == pytest.approx(expected["split_information_known_only_over_13"], **CLOSE)


@needs_reference
@pytest.mark.parametrize("attribute", ["temperature", "humidity"])
def test_a_numeric_attribute_has_the_figures_of_its_best_cut(attribute: str) -> None:
    cuts = theory()["weather_numeric_thresholds_root"][attribute]
    figures = figures_of(reference_data("weather_numeric"), attribute)
    best = max(cuts, key=lambda cut: cut["information_gain_bits"])
    best_by_gini = max(cuts, key=lambda cut: cut["gini_gain"])
    assert (figures["threshold"], figures["gini_threshold"]) == (best["midpoint"], best_by_gini["midpoint"])
    assert figures["gain"] == pytest.approx(best["information_gain_bits"], **CLOSE)
    assert figures["gain_ratio"] == pytest.approx(best["gain_ratio"], **CLOSE)
    assert figures["gini_decrease"] == pytest.approx(best_by_gini["gini_gain"], **CLOSE)


@needs_reference
@pytest.mark.parametrize("attribute", ["temperature", "humidity"])
def test_every_cut_of_a_numeric_attribute_has_the_figures_of_its_two_sides(attribute: str) -> None:
    rows = reference_data("weather_numeric").rows()
    for cut in theory()["weather_numeric_thresholds_root"][attribute]:
        sides = [{"side": row[attribute] <= cut["midpoint"], "play": row["play"]} for row in rows]
        figures = figures_of(espalier.dataset_from_rows(sides, target="play"), "side")
        assert figures["gain"] == pytest.approx(cut["information_gain_bits"], **CLOSE)
        assert figures["gain_ratio"] == pytest.approx(cut["gain_ratio"], **CLOSE)
        assert figures["gini_decrease"] == pytest.approx(cut["gini_gain"], **CLOSE)


@needs_reference
def test_the_best_cut_of_mitchells_temperatures_is_54() -> None:
    cuts = theory()["mitchell_temperature_example_seed003"]
    temperatures, classes = [40, 48, 60, 72, 80, 90], ["no", "no", "yes", "yes", "yes", "no"]
    dataset = espalier.dataset_from_columns({"t": temperatures, "play": classes}, target="play")
    figures = figures_of(dataset, "t")
    assert figures["threshold"] == 54.0
    assert figures["gain"] == pytest.approx(max(cut["information_gain_bits"] for cut in cuts), **CLOSE)


@needs_reference
@pytest.mark.parametrize("attribute", ["Outlook", "Temperature", "Humidity", "Wind"])
def test_a_regression_has_the_variance_that_each_attribute_explains(attribute: str) -> None:
    expected = theory()["golf_hours_regression"]
    rows = [{**row, "hours": hours} for row, hours in zip(tennis().rows(), expected["hours"], strict=True)]
    dataset = espalier.dataset_from_rows(rows, target="hours", task="regression")
    figures, whole = figures_of(dataset, attribute), espalier.profile(dataset)
    assert whole.mean == pytest.approx(expected["mean"], **CLOSE)
    assert math.sqrt(whole.variance or 0) == pytest.approx(expected["sd_population"], **CLOSE)
    assert figures["variance_decrease"] == pytest.approx(expected[attribute]["variance_reduction"], **CLOSE)
    assert figures["sd_reduction"] == pytest.approx(expected[attribute]["sdr_population_sd"], **CLOSE)
    assert "gain" not in figures


def test_the_best_cut_of_a_regression_explains_most_variance() -> None:
    dataset = espalier.dataset_from_columns({"x": [1, 2, 3, 5], "y": [0.5, 0.5, 9.5, 9.5]}, target="y")
    figures = figures_of(dataset, "x")
    # Both sides are pure: all of the variance, 4.5², is explained.
    assert (figures["threshold"], figures["variance_decrease"], figures["sd_reduction"]) == (2.5, 20.25, 4.5)


def test_missing_values_lower_what_a_regression_explains() -> None:
    dataset = espalier.dataset_from_columns({"x": [1, 2, 3, None], "y": [0.5, 0.5, 9.5, 7.25]}, target="y")
    # Known rows: variance of 0.5, 0.5, 9.5 = 18, fully explained; factor 3/4.
    assert figures_of(dataset, "x")["variance_decrease"] == pytest.approx(13.5)


def test_a_weight_counts_as_so_many_rows() -> None:
    weighted = {"a": ["x", "y", "y"], "n": [1, 2, 4], "w": [3, 1, 2], "t": ["p", "q", "p"]}
    repeated = {"a": list("xxxyyy"), "n": [1, 1, 1, 2, 4, 4], "t": list("pppqpp")}
    by_weight = espalier.profile(espalier.dataset_from_columns(weighted, target="t", weight="w")).to_dict()
    by_rows = espalier.profile(espalier.dataset_from_columns(repeated, target="t")).to_dict()
    for mine, its in zip(by_weight["attributes"], by_rows["attributes"], strict=True):
        del mine["n_known"], its["n_known"]
        assert mine == pytest.approx(its)


def test_an_attribute_of_one_value_says_nothing() -> None:
    dataset = espalier.dataset_from_columns({"a": ["x", "x"], "n": [1, 1], "t": ["p", "q"]}, target="t")
    for name in ("a", "n"):
        figures = figures_of(dataset, name)
        assert (figures["gain"], figures["gini_decrease"], figures["chi_square"]) == (0, 0, 0)
        assert (figures["gain_ratio"], figures["p_value"], figures["threshold"]) == (None, None, None)


def test_an_attribute_without_values_says_nothing() -> None:
    dataset = espalier.dataset_from_columns(
        {"a": [None, None], "t": ["p", "q"]}, target="t", schema={"columns": [{"name": "a", "kind": "numeric"}]}
    )
    figures = figures_of(dataset, "a")
    assert (figures["n_known"], figures["n_missing"], figures["gain"], figures["gain_ratio"]) == (0, 2, 0, None)


def test_thresholds_of_ordered_categories_and_dates_are_shown_by_name() -> None:
    columns = {"size": ["S", "M", "L"], "day": ["2020-01-01", "2020-01-03", "2020-01-09"], "t": ["p", "p", "q"]}
    kinds = [{"name": "size", "kind": "ordinal", "categories": ["S", "M", "L"]}, {"name": "day", "kind": "datetime"}]
    dataset = espalier.dataset_from_columns(columns, target="t", schema={"columns": kinds})
    assert [figures_of(dataset, name)["threshold"] for name in ("size", "day")] == ["M", "2020-01-06"]


def test_equally_good_cuts_give_the_lowest() -> None:
    dataset = espalier.dataset_from_columns({"x": [1, 2, 3], "t": ["p", "q", "p"]}, target="t")
    assert figures_of(dataset, "x")["threshold"] == 1.5


def test_another_base_is_refused_with_what_is_legal() -> None:
    dataset = espalier.dataset_from_columns({"x": [1, 2], "t": ["p", "q"]}, target="t")
    with pytest.raises(espalier.ConfigError, match=r"/log_base: must be one of 2, e, 10"):
        espalier.profile(dataset, log_base=3)


def test_a_data_set_without_a_target_is_refused() -> None:
    with pytest.raises(espalier.DataError, match="no target"):
        espalier.profile(espalier.dataset_from_columns({"x": [1, 2]}))


def test_the_profile_is_json() -> None:
    dataset = espalier.dataset_from_columns({"x": [1, 2, None], "t": ["p", "q", "q"]}, target="t")
    assert json.loads(json.dumps(espalier.profile(dataset).to_dict(), allow_nan=False))["unit"] == "bits"


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 99, 1000, 20000])
@pytest.mark.parametrize("factor", [1e-6, 0.1, 0.9, 0.999, 1.0, 1.001, 1.2, 3.0, 20.0])
def test_chi_square_probabilities_are_those_of_scipy(freedom: int, factor: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.chi2.sf(freedom * factor, freedom)
    assert chi_square_tail(freedom * factor, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-280)


def test_chi_square_probabilities_of_two_degrees_are_exponential() -> None:
    # With two degrees of freedom P(X > x) = exp(-x/2).
    assert [chi_square_tail(x, 2) for x in (0.5, 3.0, 40.0)] == pytest.approx(
        [math.exp(-0.25), math.exp(-1.5), math.exp(-20)], rel=1e-14
    )


@pytest.mark.parametrize("weights", [[1.0] * 6, [0.1, 3.0, 1e12, 1e-12, 0.7, 2.0]])
@pytest.mark.parametrize("base", [1e9 + 0.1, -1e15, 4e15, 1e60])
def test_a_variance_on_a_large_base_is_that_of_exact_arithmetic(base: float, weights: list[float]) -> None:
    target = [base + math.ulp(base) * step for step in (0, 1, 5, 2, 3, 9)]
    cells = {"x": [1, 1, 2, 2, 3, 3], "y": target, "w": weights}
    found = espalier.profile(espalier.dataset_from_columns(cells, target="y", weight="w", task="regression"))
    rows = exact.rows_of(target, weights)
    assert found.variance == pytest.approx(float(exact.squares(rows) / exact.weight_of(rows)), rel=1e-12)


@pytest.mark.parametrize("target", [[1.0, 2.0, 9.0, 9.0], ["a", "b", "c", "c"]])
def test_rows_far_lighter_than_the_others_make_no_cut_without_a_figure(target: list[Any]) -> None:
    """1e20 + 1 is 1e20, so that above the last thresholds nothing would be left of the whole weight."""
    cells = {"x": [1, 2, 3, 4], "y": target, "w": [1e20, 1e20, 1.0, 1.0]}
    task = "regression" if target[0] == 1.0 else "classification"
    # All weight but 1e-20 of it is in the first two rows, which differ: the cut between them leaves least.
    assert figures_of(espalier.dataset_from_columns(cells, target="y", weight="w", task=task), "x")["threshold"] == 1.5


def test_an_attribute_of_one_value_gains_nothing_and_none_gains_less() -> None:
    """Differences of entropies give −2.2e-16 here, and −1.1e-16 for the decrease of Σ p(1 − p)."""
    cells = {"c": ["v"] * 3, "y": ["a", "b", "a"]}
    figures = figures_of(espalier.dataset_from_columns(cells, target="y"), "c")
    assert (figures["gain"], figures["gini_decrease"]) == (0.0, 0.0)
    for n in range(1, 60):
        # Both branches have n rows of one class and 2n of the other: attribute and target are independent.
        cells = {"c": ["v", "w"] * (3 * n), "y": (["a", "a"] + ["b", "b"] * 2) * n}
        figures = figures_of(espalier.dataset_from_columns(cells, target="y"), "c")
        assert 0 <= figures["gain"] < 1e-15
        assert 0 <= figures["gini_decrease"] < 1e-15


def test_no_attribute_explains_less_than_nothing_of_a_regression() -> None:
    """Differences of variances and of standard deviations give up to −3e-14 here."""
    for n in range(1, 60):
        # Both categories have the same targets. Their mean is rounded.
        cells = {"c": ["v", "w"] * (3 * n), "y": [0.1, 0.1, 0.7, 0.7, 9.2, 9.2] * n}
        figures = figures_of(espalier.dataset_from_columns(cells, target="y", task="regression"), "c")
        assert 0 <= figures["variance_decrease"] < 1e-15
        assert 0 <= figures["sd_reduction"] < 1e-14


def test_a_small_part_of_a_large_variance_keeps_its_digits() -> None:
    # The two halves have the means ±d, and each has the deviations ±1: the part between the halves is d².
    apart = 2.0**-30
    cells = {"c": ["v", "v", "w", "w"], "y": [1 + apart, -1 + apart, 1 - apart, -1 - apart]}
    figures = figures_of(espalier.dataset_from_columns(cells, target="y", task="regression"), "c")
    assert figures["variance_decrease"] == pytest.approx(apart**2, rel=1e-9, abs=0)


def test_shares_far_below_rounding_are_still_in_entropies() -> None:
    cells = {"c": ["v", "w"], "y": ["a", "b"], "w": [1e12, 1e-12]}
    found = espalier.profile(espalier.dataset_from_columns(cells, target="y", weight="w"))
    # p = 1e-24: −p ln p − (1 − p) ln(1 − p) = p(1 − ln p) up to p², and 2p(1 − p) = 2p.
    entropy = 1e-24 * (1 + 24 * math.log(10)) / math.log(2)
    assert found.entropy == pytest.approx(entropy, rel=1e-12, abs=0)
    assert found.attributes[0].split_information == pytest.approx(entropy, rel=1e-12, abs=0)
    assert found.gini == pytest.approx(2e-24, rel=1e-12, abs=0)
