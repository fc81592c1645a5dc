"""How trees of linear leaves are pruned, and what they cannot take."""

import json

import pytest

from espalier import (
    Cancelled,
    ConfigError,
    Holdout,
    NotApplicable,
    Progress,
    dataset_from_rows,
    prune,
    summary,
    train,
)
from espalier.config.presets import resolved, training_config
from espalier.growing.linear_models import fit_linear_models
from tests.core.growing_bridge import grow
from tests.core.model_trees import line


def test_the_trace_names_each_node_that_went_with_its_errors_before_and_after():
    grown = train(line(), "m5", pruning=None, criterion="sdr")
    pruned = prune(grown, "model_tree")
    trace = pruned.trace
    assert trace["method"] == "model_tree"
    assert trace["before"]["leaves"] == grown.tree.n_leaves
    assert trace["after"]["leaves"] == pruned.model.tree.n_leaves == 2
    assert trace["steps"]
    assert all(step["after"] <= step["before"] + 1e-6 * 20 for step in trace["steps"])
    assert [step["node"] for step in trace["steps"]] == sorted((s["node"] for s in trace["steps"]), reverse=True)
    assert json.loads(json.dumps(trace)) == trace
    assert grown.pruning is None
    assert pruned.model.pruning == {"method": "model_tree"}


def test_a_pruned_tree_is_not_pruned_again():
    once = prune(train(line(), "m5", pruning=None), "model_tree").model
    assert prune(once, "model_tree").trace["steps"] == []


def test_a_regression_tree_of_constants_is_pruned_by_its_means():
    data = dataset_from_rows(
        [{"x": x, "y": float(x >= 20) * 10 + x % 2} for x in range(40)], target="y", task="regression"
    )
    assert prune(train(data, "m5", leaf="constant", pruning=None), "model_tree", dataset=data).model.tree.n_leaves == 2


def test_other_methods_do_not_weigh_linear_models():
    model = train(line(), "m5", pruning=None, holdout=Holdout(fraction=0.3))
    with pytest.raises(NotApplicable, match="must be model_tree if leaf is linear"):
        prune(model, "reduced_error", dataset=line())


def test_classes_have_no_model_tree():
    data = dataset_from_rows([{"x": x, "y": "ab"[x % 2]} for x in range(8)], target="y")
    with pytest.raises(NotApplicable, match="classes"):
        prune(train(data, "cart"), "model_tree", dataset=data)
    with pytest.raises(ConfigError) as caught:
        train(data, "cart", leaf="linear", smoothing=15, pruning={"method": "model_tree"})
    assert {fault.path for fault in caught.value.faults} == {"/leaf", "/smoothing", "/pruning/method"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"missing": "fractional"}, "/missing"),
        ({"nominal": "subset"}, "/nominal"),
        ({"pruning": {"method": "reduced_error"}}, "/pruning/method"),
        ({"smoothing": 0}, "/smoothing"),
        ({"smoothing": -1}, "/smoothing"),
        ({"leaf": "cubic"}, "/leaf"),
    ],
)
def test_what_linear_leaves_cannot_take_is_refused_by_path(fields, path):
    rows = [{"x": x, "c": "abc"[x % 3], "y": x / 3} for x in range(12)]
    with pytest.raises(ConfigError) as caught:
        train(dataset_from_rows(rows, target="y", task="regression"), "m5", **fields)
    assert [fault.path for fault in caught.value.faults] == [path]


def test_fitting_stops_when_it_is_told_to():
    data = line()
    grown = grow(data, resolved(training_config("m5"), data.schema))
    progress = Progress()
    progress.stop()
    with pytest.raises(Cancelled):
        fit_linear_models(grown.tree, data, grown.preparation.imputed, progress=progress)


def test_the_summary_of_a_model_tree_counts_its_leaves():
    facts = summary(train(line(), "m5", smoothing=None, criterion="sdr"))
    assert (facts["preset"], facts["n_leaves"]) == ("m5", 2)
    assert facts["rmse"] == pytest.approx(0, abs=1e-6)
