"""The golden documents are read, answered from and written back; what they hold is what the published figures say."""

import csv
import json
import math

import pytest

from espalier import evaluate, explain, from_json, predict, to_json, to_text
from espalier.documents.model import FORMAT_VERSION
from tests.factories import REFERENCE, ROOT, needs_reference
from tests.golden.write import GOLDEN, MODELS, _read

NAMES = sorted(path.name.removesuffix(".json") for path in GOLDEN.glob("*.v*.json"))


def golden(name):
    return from_json((GOLDEN / f"{name}.json").read_bytes())


def expected(name):
    return json.loads((REFERENCE / "expected" / f"{name}.json").read_text())


def rules(model, rows):
    return {explanation.rule for explanation in explain(model, rows)}


def tennis_rows():
    with (ROOT / "service" / "examples" / "play_tennis.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_every_format_version_has_its_goldens():
    assert {f"{name}.v{version}" for name in MODELS for version in range(1, FORMAT_VERSION + 1)} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_of_the_newest_version_is_written_back_byte_for_byte(name):
    content = (GOLDEN / f"{name}.json").read_bytes().rstrip(b"\n")
    if json.loads(content)["format_version"] == FORMAT_VERSION:
        assert to_json(from_json(content)) == content


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_renders_as_it_always_did(name):
    assert to_text(golden(name)) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("preset", ["id3", "c45"])
def test_tennis_has_the_tree_of_the_book(preset):
    model = golden(f"tennis_{preset}.v1")
    assert (model.tree.n_leaves, model.tree.depth, model.training.train["errors"]) == (5, 2, 0)
    assert rules(model, tennis_rows()) == {
        "if Outlook is Sunny and Humidity is High then No",
        "if Outlook is Sunny and Humidity is Normal then Yes",
        "if Outlook is Overcast then Yes",
        "if Outlook is Rain and Wind is Strong then No",
        "if Outlook is Rain and Wind is Weak then Yes",
    }
    assert [answer.label for answer in predict(model, tennis_rows())] == [row["PlayTennis"] for row in tennis_rows()]


@needs_reference
@pytest.mark.parametrize("preset", ["id3", "c45"])
def test_tennis_gains_are_the_published_ones(preset):
    published = expected("theory")["tennis"]
    model = golden(f"tennis_{preset}.v1")
    names = [feature.name for feature in model.schema.attributes]
    nodes = {names[model.tree.feature[node]]: model.tree.gain[node] for node in range(8) if model.tree.test[node]}
    assert nodes == pytest.approx(
        {
            "Outlook": published["root"]["Outlook"]["information_gain_bits"],
            "Humidity": published["node Outlook=Sunny"]["Humidity"]["information_gain_bits"],
            "Wind": published["node Outlook=Rain"]["Wind"]["information_gain_bits"],
        },
        abs=1e-9,
    )
    assert published["rows"] == [list(row.values()) for row in tennis_rows()]


@needs_reference
@pytest.mark.parametrize("score", ["information_gain_bits", "gain_ratio"])
def test_the_root_asks_for_the_attribute_of_the_highest_published_score(score):
    published = expected("theory")["tennis"]["root"]
    assert max(published, key=lambda name: published[name][score]) == "Outlook"


def test_tennis_root_gain_is_what_fourteen_rows_give_by_hand():
    def entropy(*counts):
        return -sum(n / sum(counts) * math.log2(n / sum(counts)) for n in counts if n)

    gain = entropy(9, 5) - 5 / 14 * entropy(2, 3) - 4 / 14 * entropy(4) - 5 / 14 * entropy(3, 2)
    assert golden("tennis_id3.v1").tree.gain[0] == pytest.approx(gain, abs=1e-12)
    assert gain == pytest.approx(0.246750, abs=5e-7)


@needs_reference
def test_drug200_has_the_root_the_size_and_the_accuracy_of_the_seed():
    seed = expected("drug200_seed002")
    published = seed["gini_max_depth4"]
    model, data = golden("drug200_cart.v1"), _read("drug200")
    root = model.schema.attributes[model.tree.feature[0]].name
    assert (root, model.tree.threshold[0]) == (published["root_feature"], pytest.approx(14.6155, rel=1e-6))
    assert published["root_threshold"] == pytest.approx(14.6155, rel=1e-6)
    assert (model.tree.n_nodes, model.tree.n_leaves, model.tree.depth) == (
        published["node_count"],
        published["leaves"],
        published["depth"],
    )
    shares = model.tree.stats[0] / model.tree.stats[0].sum()
    assert float((shares * (1 - shares)).sum()) == pytest.approx(published["root_impurity"], abs=1e-12)
    assert model.training.fingerprint == data.fingerprint
    assert sorted(model.training.holdout.rows) == sorted(seed["test_rows"])
    assert evaluate(model, data.take(seed["test_rows"])).accuracy == pytest.approx(published["test_accuracy"])
    assert model.training.held_out["accuracy"] == pytest.approx(59 / 60)
    assert evaluate(model, data.take(seed["train_rows"])).accuracy == published["train_accuracy"] == 1


@needs_reference
def test_drug200_asks_what_the_published_tree_asks():
    data = _read("drug200")
    assert rules(golden("drug200_cart.v1"), data.rows()) == {
        "if Na_to_K > 14.6155 then drugY",
        "if Na_to_K ≤ 14.6155 and BP is HIGH and Age ≤ 50.5 then drugA",
        "if Na_to_K ≤ 14.6155 and BP is HIGH and Age > 50.5 then drugB",
        "if Na_to_K ≤ 14.6155 and BP is LOW or NORMAL and Cholesterol is NORMAL then drugX",
        "if Na_to_K ≤ 14.6155 and BP is LOW and Cholesterol is HIGH then drugC",
        "if Na_to_K ≤ 14.6155 and BP is NORMAL and Cholesterol is HIGH then drugX",
    }


@needs_reference
def test_cpu_has_the_first_two_levels_of_the_published_tree_and_the_means_of_their_rows():
    published = expected("sklearn/cpu")["as_is"]["squared_error_max_depth3"]
    model, data = golden("cpu_cart.v1"), _read("cpu")
    tree = model.tree
    names = [feature.name for feature in model.schema.attributes]
    assert (names[tree.feature[0]], tree.threshold[0]) == ("MMAX", published["root"]["threshold"])
    assert (names[tree.feature[1]], tree.threshold[1]) == ("MMAX", 22485.0)
    assert "|   |--- MMAX <= 22485.000000" in published["text"]
    assert tree.stats[0][2] / tree.stats[0][0] == pytest.approx(published["root"]["impurity"], rel=1e-12)
    groups = {}
    for row in data.rows():
        side = (row["MMAX"] > 48000) * 2 + (row["CACH"] > 80 if row["MMAX"] > 48000 else row["MMAX"] > 22485)
        groups.setdefault(side, []).append(row["class"])
    means = [sum(groups[side]) / len(groups[side]) for side in range(4)]
    assert tree.value[tree.test == 0].tolist() == pytest.approx(means, rel=1e-12)
    squares = sum((value - means[side]) ** 2 for side in groups for value in groups[side])
    assert model.training.train["rmse"] == pytest.approx(math.sqrt(squares / 209), rel=1e-12)


@needs_reference
@pytest.mark.parametrize("name", MODELS)
def test_the_same_training_still_gives_the_golden_tree(name):
    assert to_text(MODELS[name]()) == (GOLDEN / f"{name}.v1.txt").read_text(encoding="utf-8")
