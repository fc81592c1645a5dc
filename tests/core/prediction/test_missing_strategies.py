"""Another strategy for missing values at prediction: the same tree, read otherwise."""

import gc
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    PREDICTION_STRATEGIES,
    ConfigError,
    NotApplicable,
    OperatingPoint,
    dataset_from_csv,
    dataset_from_rows,
    explain,
    extract_rules,
    predict,
    prune,
    to_document,
    to_json,
    train,
    with_operating_point,
)
from espalier.config.training_parameters import MISSING_STRATEGIES
from espalier.prediction.batch import predict_batch
from espalier.prediction.encode_columns import EncodedMatrix, encode_columns
from espalier.prediction.missing_strategies import with_missing_strategy
from espalier.prediction.tree_predictor import tree_predictor
from espalier.rules.extract import merged_paths
from tests.core.growing_bridge import node_of
from tests.core.planted import MIXED, NUMBERS, Ask, Cut, Known, Leaf, mixed_rows, plant, roots
from tests.core.prediction.test_apply import agrees, encoded, table
from tests.reference.predictor import arrivals

EVERYWHERE = ("fractional", "spread", "direction", "majority", "last_prediction")


def heaviest(node):
    """The first of the branches with the largest share."""
    return node.branch_weight.index(max(node.branch_weight))


def falling_back(node, choose):
    """A twin's tree in which every node has the fallback that `choose` says, and no surrogates."""
    if not node.children:
        return node
    children = tuple(falling_back(child, choose) for child in node.children)
    return replace(node, children=children, fallback=choose(node), surrogates=())


@pytest.mark.parametrize("trained", ["fractional", "majority", "direction", "surrogate", "imputed"])
@pytest.mark.parametrize("asked", EVERYWHERE)
def test_the_shares_are_those_of_the_slow_twin_under_the_strategy_asked_for(trained, asked):
    nominal = "subset" if trained == "surrogate" else "multiway"
    model = train(table(300, 3), "cart", missing=trained, nominal=nominal, min_weight_leaf=5)
    if trained == asked:
        assert with_missing_strategy(model, asked) is model
        return
    data = table(200, 4, missing=0.4)
    root = falling_back(node_of(model.tree, 0), heaviest)
    other = with_missing_strategy(model, asked)
    shares = predict_batch(other, encode_columns(other.schema, data, other.preparation.imputed), shares=True).shares
    columns = [np.where(column < 0, np.nan, column) if column.dtype == np.int32 else column for column in data.columns]
    for place, row in enumerate(zip(*(column.tolist() for column in columns[:4]), strict=True)):
        ends = arrivals(root, [None if cell != cell else cell for cell in row], asked)  # noqa: PLR0124 - NaN
        expected = [sum(end.share * end.stats[code] / sum(end.stats) for end in ends) for code in range(3)]
        assert shares[place].tolist() == pytest.approx(expected, abs=1e-12), place


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.parametrize("asked", EVERYWHERE)
def test_compiled_code_and_plain_python_give_the_same_answers_under_every_strategy(schema, asked):
    @given(root=roots(schema), rows=st.lists(mixed_rows(), min_size=1, max_size=30))
    def holds(root, rows):
        model = with_missing_strategy(plant(schema, root, missing="imputed"), asked)
        values = encoded(model, rows)
        agrees(model, EncodedMatrix(values), values)

    holds()


def tree_of_three_weights():
    """Colours of weight 2, 5 and 5; below red a cut."""
    red = Cut(0, 1.0, (Leaf((1.0, 0.0, 0.0)), Leaf((0.0, 1.0, 0.0))), fallback=0)
    return Ask(1, (0, 1, 2), (red, Leaf((0.0, 5.0, 0.0)), Leaf((0.0, 0.0, 5.0))), fallback=0)


def test_majority_goes_down_the_heaviest_branch_and_of_equals_the_first():
    model = plant(MIXED, tree_of_three_weights())
    assert [predict(model, [{}], missing=asked)[0].label for asked in ("direction", "majority")] == ["a", "b"]


def test_last_prediction_stops_at_the_node_that_asks_and_answers_from_it():
    model = plant(MIXED, tree_of_three_weights())
    top, below = predict(model, [{}, {"colour": "red"}], missing="last_prediction")
    assert (top.leaf, top.nodes, [share for _, share in top.distribution]) == (0, (0,), [1 / 12, 6 / 12, 5 / 12])
    assert (below.leaf, below.nodes, below.label, below.support) == (1, (0, 1), "a", 2.0)


def test_an_unseen_category_is_taken_as_a_missing_value_is():
    model = plant(MIXED, tree_of_three_weights())
    for asked in EVERYWHERE:
        unseen, absent = predict(model, [{"colour": "mauve"}, {}], missing=asked)
        assert (unseen.distribution, unseen.nodes) == (absent.distribution, absent.nodes)
        assert unseen.row.unseen == ("colour",)


def test_fractional_shares_out_over_a_node_whose_weights_are_all_zero():
    nothing = Cut(0, 0.0, (Leaf((0.0, 0.0, 0.0)), Leaf((0.0, 0.0, 0.0))), fallback=0)
    model = plant(MIXED, Known(1, (Leaf((1.0, 0.0, 0.0)), nothing)), missing="majority")
    ways = predict(model, [{}], missing="fractional")[0].visits
    assert [(visit.weight, visit.leaf) for visit in ways] == [(0.5, 3), (0.5, 4)]


def test_an_explanation_tells_the_way_of_the_strategy_asked_for():
    model = plant(MIXED, tree_of_three_weights())
    (whole,) = explain(model, [{"colour": "red"}], missing="last_prediction")
    assert [step.node for step in whole.paths[0]] == [0]
    assert whole.rule == "if colour is red then a"
    (full,) = explain(model, [{"colour": "red"}], missing="last_prediction", detail="full")
    assert full.baseline == 1 / 12
    assert full.contributions == pytest.approx({"colour": 1 / 2 - 1 / 12})
    (several,) = explain(model, [{"colour": "red"}], missing="fractional", detail="full")
    assert [len(path) for path in several.paths] == [2, 2]


def test_values_kept_for_imputation_are_used_only_where_that_is_the_strategy():
    data = dataset_from_csv("x,y\n0,a\n0,a\n0,a\n9,b\n9,b\n", target="y")
    model = train(data, "cart", missing="imputed")
    # The mean of x is 3.6, on the side of a; the branch of x <= 4.5 is the heavier one, too.
    assert [predict(model, [{}], missing=asked)[0].confidence for asked in (None, "imputed")] == [
        predict(model, [{"x": 0}])[0].confidence
    ] * 2
    assert [share for _, share in predict(model, [{}], missing="fractional")[0].distribution] == [0.6, 0.4]


@pytest.mark.parametrize("asked", ["surrogate", "imputed"])
def test_what_was_never_learned_cannot_be_asked_for(asked):
    with pytest.raises(ConfigError) as caught:
        predict(plant(MIXED, tree_of_three_weights()), [{}], missing=asked)
    assert [(fault.path, fault.code) for fault in caught.value.faults] == [("/missing", "not_legal")]


@pytest.mark.parametrize("asked", ["", "none", "Majority", 5, [], {}])
def test_an_unknown_strategy_is_refused_with_the_legal_ones(asked):
    with pytest.raises(ConfigError, match="last_prediction"):
        explain(plant(MIXED, tree_of_three_weights()), [{}], missing=asked)


def test_rules_and_linear_models_keep_their_own_strategy():
    data = table(200, 5, n_classes=0, missing=0.0)
    linear = train(data, "m5")
    classes = table(300, 6)
    rules = prune(train(classes, "c45", pruning=None), "rules", dataset=classes, estimate="pessimistic").model
    for model, own in ((linear, "imputed"), (rules, "fractional")):
        assert predict(model, [{}], missing=own)[0] == predict(model, [{}])[0]
        with pytest.raises(ConfigError, match=f"by {own} only"):
            predict(model, [{}], missing="majority")


def test_the_strategies_of_training_are_among_those_of_prediction():
    assert set(MISSING_STRATEGIES) | {"last_prediction"} == PREDICTION_STRATEGIES.keys()


@pytest.mark.parametrize("own", ["surrogate", "imputed", "majority", "fractional"])
def test_the_strategy_of_the_training_comes_back_from_a_model_with_another_one(own):
    data = table(300, 3)
    model = train(data, "cart", missing=own, nominal="subset", min_weight_leaf=5)
    rows = [{}, *table(60, 4, missing=0.4).rows()]
    for between in [name for name in EVERYWHERE if name != own]:
        other = with_missing_strategy(model, between)
        assert (other.missing_strategy, model.missing_strategy) == (between, own)
        assert predict(other, rows) == predict(model, rows, missing=between)
        assert predict(other, rows, missing=own) == predict(model, rows)
        assert to_json(other.trained) == to_json(model)
        again = with_missing_strategy(other, "last_prediction")
        assert predict(again, rows) == predict(model, rows, missing="last_prediction")


def test_a_strategy_and_an_operating_point_are_both_kept_in_either_order():
    data = table(300, 3)
    model, rows = train(data, "cart", missing="surrogate", nominal="subset", max_depth=3), table(60, 4, missing=0.4)
    point = OperatingPoint(1, 0.2)
    first = with_missing_strategy(with_operating_point(model, point), "majority")
    second = with_operating_point(with_missing_strategy(model, "majority"), point)
    for found in (first, second):
        assert (found.operating_point, found.missing_strategy) == (point, "majority")
        back = with_missing_strategy(found, "surrogate")
        assert predict(back, rows.rows()) == predict(with_operating_point(model, point), rows.rows())
        assert to_json(found.trained) == to_json(model)
    assert predict(first, rows.rows()) == predict(second, rows.rows())


def test_the_rules_of_a_tree_with_another_strategy_are_those_of_its_paths():
    rows = [{"c": "a", "y": "p"}] * 3 + [{"c": "b", "y": "q"}] * 4 + [{"c": "d", "y": "r"}] * 2
    model = train(dataset_from_rows(rows, target="y"), "cart", missing="fractional", nominal="subset")
    for name in EVERYWHERE:
        other = with_missing_strategy(model, name)
        rules = extract_rules(other)
        assert [rule.conditions for rule in rules.rules.rules] == [conditions for _, conditions in merged_paths(other)]
        assert (rules.trained is None) == (other.trained is None)


def test_only_a_trained_model_is_written_as_a_document_or_pruned():
    data = table(100, 7)
    model = train(data, "cart", missing="majority", max_depth=3)
    for other in (with_missing_strategy(model, "last_prediction"), with_operating_point(model, OperatingPoint(0, 0.2))):
        for refused in (to_json, to_document, partial(prune, method="pessimistic", dataset=data)):
            with pytest.raises(NotApplicable, match="attribute `trained`"):
                refused(other)


def test_another_reading_changes_nothing_in_the_model_and_goes_with_it():
    model = train(table(100, 7), "cart", missing="majority")
    before, fallback = to_json(model), tree_predictor(model).fallback[:]
    other = weakref.ref(with_missing_strategy(model, "last_prediction"))
    assert other() is with_missing_strategy(model, "last_prediction")
    predict(model, [{}], missing="fractional")
    assert (to_json(model), tree_predictor(model).fallback) == (before, fallback)
    del model
    gc.collect()
    assert other() is None
