"""Pessimistic and cost-complexity pruning, and the orders of reduced-error pruning, against their slow twins."""

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import espalier
from espalier import (
    CostComplexity,
    Dataset,
    Holdout,
    Model,
    NotApplicable,
    Pessimistic,
    Progress,
    ReducedError,
    prune,
    train,
)
from espalier.pruning.cost_complexity import pruning_path
from espalier.pruning.pessimistic import add_errs, prune_pessimistic
from espalier.pruning.reduced_error import prune_reduced_error
from espalier.pruning.result import PruningRows
from tests.core.counted_calls import n_calls
from tests.core.growing.test_twin import tables
from tests.core.growing_bridge import config_of, dataset_of, node_of
from tests.core.planted import MIXED, NUMBERS, plant, roots
from tests.core.pruning.test_reduced_error import as_twin, held_out, shape, squared, twin_shape, validation_rows, wrong
from tests.factories import REFERENCE, needs_reference
from tests.reference import cost_complexity, pessimistic, reduced_error as voted
from tests.reference.pessimistic import Limit
from tests.reference.presets import preset
from tests.reference.table import Column, Table, Target
from tests.reference.tree import Node, n_leaves

SETTINGS = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
STRATEGIES = ("fractional", "spread", "direction", "majority", "surrogate", "imputed")
LIMITS = st.builds(Limit, st.sampled_from([0.05, 0.1, 0.25, 0.4, 0.5]), st.sampled_from(["normal", "c45"]))


@st.composite
def fields(draw: st.DrawFn, kind: str, *, missing: tuple[str, ...] = STRATEGIES) -> dict[str, Any]:
    """Configurations that grow deep trees."""
    criterion = draw(st.sampled_from(["information_gain", "gini"] if kind == "class" else ["squared_error"]))
    nominal = draw(st.sampled_from(["multiway", "subset", "one_vs_rest"]))
    return preset("id3", kind, criterion=criterion, nominal=nominal, numeric="best",
                  missing=draw(st.sampled_from(missing)))  # fmt: skip


def grown(table: Table, config: dict[str, Any]) -> tuple[Dataset, Model]:
    data = dataset_of(table)
    return data, train(data, config_of(config, table))


def same(ours: Node, twin: Node, path: str = "root") -> None:
    """Fail where two pruned trees differ."""
    assert (ours.test, ours.attribute, len(ours.children)) == (twin.test, twin.attribute, len(twin.children)), path
    assert ours.stats == pytest.approx(twin.stats, rel=1e-9, abs=1e-9), path
    assert ours.weight == pytest.approx(twin.weight, rel=1e-9, abs=1e-9), path
    if ours.children:
        assert ours.branch_weight == pytest.approx(twin.branch_weight, abs=1e-9), path
    for place, (mine, its) in enumerate(zip(ours.children, twin.children, strict=True)):
        same(mine, its, f"{path}/{place}")


def twin_of(model: Model, table: Table, limit: Limit, *, raising: bool) -> Node:
    rows = [(row, weight) for row, weight in enumerate(table.weights) if weight > 0]
    return pessimistic.pruned(node_of(model.tree, 0), rows, table, limit, model.config.missing, raising=raising)


def with_imputed(table: Table, model: Model) -> Table:
    """The table as an imputing model sees it."""
    if model.preparation.imputed is None:
        return table
    columns = tuple(
        Column(c.kind, tuple(_filled(cell, value) for cell in c.values), c.k)
        for c, value in zip(table.columns, model.preparation.imputed, strict=True)
    )
    return Table(columns, table.target, table.weights)


def _filled(cell: float | None, value: float) -> float | None:
    return value if cell is None and not math.isnan(value) else cell


@pytest.mark.parametrize("raising", [True, False])
@given(data=st.data())
@SETTINGS
def test_the_pessimistically_pruned_tree_is_that_of_the_slow_twin(data: st.DataObject, *, raising: bool) -> None:
    table = data.draw(tables(kind="class", most_rows=30))
    dataset, model = grown(table, data.draw(fields("class")))
    limit = data.draw(LIMITS)
    result = prune_pessimistic(
        model, Pessimistic(limit.confidence, limit.quantile, raising), PruningRows(dataset), Progress()
    )
    result.model.tree.validate(n_attributes=len(table.columns))
    same(node_of(result.model.tree, 0), twin_of(model, with_imputed(table, model), limit, raising=raising))
    assert result.trace["after"]["estimate"] == pytest.approx(
        pessimistic.of_tree(node_of(result.model.tree, 0), limit), abs=1e-9
    )


def noisy_table(seed: int, *, n_rows: int = 160, holes: float = 0.1) -> Table:
    """Rows whose class hangs on two columns of six, with noise: full-grown trees of it have branches to raise."""
    random = np.random.default_rng(seed)
    numeric = random.integers(0, 12, size=(3, n_rows)).astype(float)
    nominal = random.integers(0, 3, size=(3, n_rows))
    signal = (numeric[0] > 5) ^ (nominal[0] == 1)
    classes = np.where(random.random(n_rows) < 0.25, random.integers(0, 2, n_rows), signal.astype(int))
    blank = random.random((6, n_rows)) < holes
    columns = [
        *(Column("numeric", tuple(None if b else float(v) for v, b in zip(numeric[i], blank[i], strict=True)))
          for i in range(3)),
        *(Column("nominal", tuple(None if b else int(v) for v, b in zip(nominal[i], blank[3 + i], strict=True)), 3)
          for i in range(3)),
    ]  # fmt: skip
    weights = tuple(random.choice([0.5, 1.0, 1.0, 2.0], n_rows).tolist())
    return Table(tuple(columns), Target("class", tuple(classes.tolist()), 2), weights)


@pytest.mark.parametrize("missing", ["fractional", "direction", "surrogate"])
def test_branches_raised_in_noisy_trees_are_those_that_the_slow_twin_raises(missing: str) -> None:
    n_raised = 0
    for seed in range(8):
        table = noisy_table(seed, n_rows=400)
        dataset, model = grown(table, preset("id3", numeric="best", missing=missing))
        result = prune_pessimistic(model, Pessimistic(0.25), PruningRows(dataset), Progress())
        n_raised += sum(step["raised"] is not None for step in result.trace["steps"])
        same(node_of(result.model.tree, 0), twin_of(model, table, Limit(0.25), raising=True))
    assert n_raised > 2


@pytest.mark.parametrize("seed", [15, 31])
def test_a_row_that_goes_one_way_until_a_branch_is_raised_and_several_then_counts_in_what_is_tried_above(
    seed: int,
) -> None:
    table = noisy_table(seed, holes=0.3)
    dataset, model = grown(table, preset("id3", numeric="best", missing="fractional", nominal="multiway"))
    result = prune_pessimistic(model, Pessimistic(0.25), PruningRows(dataset), Progress())
    same(node_of(result.model.tree, 0), twin_of(model, table, Limit(0.25), raising=True))


def test_no_step_of_pessimistic_pruning_costs_more_than_its_tenth_of_an_error() -> None:
    for seed in range(4):
        dataset, model = grown(noisy_table(seed), preset("id3", numeric="best", missing="fractional"))
        for step in prune_pessimistic(model, Pessimistic(), PruningRows(dataset), Progress()).trace["steps"]:
            assert step["after"] <= step["before"] + 0.1


def test_raised_branches_keep_the_weight_of_every_row() -> None:
    dataset, model = grown(noisy_table(3), preset("id3", numeric="best", missing="fractional"))
    tree = prune_pessimistic(model, Pessimistic(), PruningRows(dataset), Progress()).model.tree
    for node in range(tree.n_nodes):
        children = tree.children(node)
        if children:
            assert tree.stats[children].sum(axis=0) == pytest.approx(tree.stats[node], abs=1e-9)


@needs_reference
def test_added_errors_are_weka_s_at_every_published_point() -> None:
    for point in json.loads((REFERENCE / "expected" / "weka_addErrs.json").read_text()):
        given_, errors = float(point["N"]), float(point["e"])
        assert add_errs(given_, errors, point["CF"]) == pytest.approx(point["addErrs"], abs=1e-6)


@given(n=st.integers(1, 40), data=st.data(), confidence=st.sampled_from([0.01, 0.1, 0.25, 0.5]))
@SETTINGS
def test_the_exact_limit_leaves_the_confidence_below_it(n: int, data: st.DataObject, confidence: float) -> None:
    errors = data.draw(st.integers(0, n - 1))
    rate = (errors + add_errs(n, errors, confidence, quantile="exact")) / n
    tail = sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(errors + 1))
    if errors / n < rate:
        assert tail == pytest.approx(confidence, abs=1e-9)


@given(weight=st.floats(0.1, 1e4), share=st.floats(0, 1), limit=LIMITS)
def test_added_errors_are_those_of_the_slow_twin(weight: float, share: float, limit: Limit) -> None:
    ours = add_errs(weight, share * weight, limit.confidence, quantile=limit.quantile)
    assert ours == pytest.approx(pessimistic.added(weight, share * weight, limit), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["classes", "numbers"])
@given(data=st.data(), ties=st.sampled_from(["prune", "keep"]), prune_root=st.booleans(), initial=st.booleans())
def test_greedy_pruning_takes_the_nodes_that_the_slow_twin_takes(
    schema: Any, data: st.DataObject, ties: str, *, prune_root: bool, initial: bool
) -> None:
    root, rows = data.draw(roots(schema)), data.draw(validation_rows(schema))
    parameters = ReducedError("greedy", ties, prune_root, compare="initial" if initial else "current")
    result = prune_reduced_error(
        plant(schema, root), parameters, PruningRows(held_out=held_out(schema, rows)), Progress()
    )
    miss = wrong if schema.classes else squared
    after = voted.pruned_greedily(
        as_twin(schema, root), rows, miss=miss, ties=ties, prune_root=prune_root, initial=initial
    )
    assert shape(result.model.tree) == twin_shape(after)


@given(
    root=roots(MIXED), rows=validation_rows(MIXED), ties=st.sampled_from(["prune", "keep"]), prune_root=st.booleans()
)
def test_against_the_unpruned_tree_each_leaf_stays_that_the_loop_of_the_seed_lets_stay(
    root: Any, rows: Any, ties: str, *, prune_root: bool
) -> None:
    parameters = ReducedError("bottom_up", ties, prune_root, compare="initial")
    result = prune_reduced_error(
        plant(MIXED, root), parameters, PruningRows(held_out=held_out(MIXED, rows)), Progress()
    )
    after = voted.pruned_in_order(as_twin(MIXED, root), rows, miss=wrong, ties=ties, prune_root=prune_root)
    assert shape(result.model.tree) == twin_shape(after)


@pytest.mark.parametrize("order", ["greedy", "bottom_up"])
@given(root=roots(MIXED), rows=validation_rows(MIXED))
def test_with_ties_pruned_in_any_order_no_further_node_could_go_without_a_loss(
    order: str, root: Any, rows: Any
) -> None:
    validation_data = held_out(MIXED, rows)
    result = prune_reduced_error(
        plant(MIXED, root), ReducedError(order), PruningRows(held_out=validation_data), Progress()
    )
    best = result.trace["after"]["estimate"]
    once_more = prune_reduced_error(
        result.model, ReducedError("greedy"), PruningRows(held_out=validation_data), Progress()
    )
    assert once_more.model.tree == result.model.tree
    assert best <= result.trace["before"]["estimate"] + 1e-9


@given(data=st.data(), kind=st.sampled_from(["class", "number"]))
@SETTINGS
def test_backfitted_counts_are_those_of_both_sets_of_rows(data: st.DataObject, kind: str) -> None:
    table, other = (data.draw(tables(kind=kind, holes=False)) for _ in range(2))
    if [(c.kind, c.k) for c in table.columns] != [
        (c.kind, c.k) for c in other.columns
    ] or table.target.k != other.target.k:
        return
    _, model = grown(table, data.draw(fields(kind, missing=("majority",))))
    root = prune_reduced_error(
        model, ReducedError(backfit=True, prune_root=False), PruningRows(held_out=dataset_of(other)), Progress()
    ).model.tree
    values = [*table.target.values, *other.target.values]
    weights = [*table.weights, *other.weights]
    if kind == "class":
        expected = [sum(w for y, w in zip(values, weights, strict=True) if y == c) for c in range(table.target.k)]
    else:
        mean = math.fsum(y * w for y, w in zip(values, weights, strict=True)) / math.fsum(weights)
        squares = math.fsum(w * (y - mean) ** 2 for y, w in zip(values, weights, strict=True))
        expected = [math.fsum(weights), mean, squares]
    assert root.stats[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert root.value[0] == pytest.approx(expected.index(max(expected)) if kind == "class" else expected[1])


RISKS = {
    ("class", "impurity"): lambda whole, criterion: cost_complexity.impurity_risk(criterion, whole),
    ("class", "leaf_impurity"): lambda whole, criterion: cost_complexity.impurity_risk(criterion, None),
    ("class", "error"): lambda whole, criterion: cost_complexity.error_risk,
    ("number", "impurity"): lambda whole, criterion: cost_complexity.impurity_risk("variance", whole),
    ("number", "leaf_impurity"): lambda whole, criterion: cost_complexity.impurity_risk("variance", None),
    ("number", "error"): lambda whole, criterion: cost_complexity.squared_risk,
}


@pytest.mark.parametrize(("kind", "risk"), RISKS)
@given(data=st.data())
@SETTINGS
def test_the_pruning_path_is_that_of_the_slow_twin(kind: str, risk: str, data: st.DataObject) -> None:
    table = data.draw(tables(kind=kind))
    _, model = grown(table, data.draw(fields(kind)))
    criterion = {"information_gain": "entropy"}.get(str(model.config.criterion), str(model.config.criterion))
    of_node = RISKS[kind, risk](float(model.tree.weight[0]), criterion)
    stages = cost_complexity.path(node_of(model.tree, 0), of_node)
    path = pruning_path(model, risk)
    assert path.alpha.tolist() == pytest.approx([stage.alpha for stage in stages], rel=1e-9, abs=1e-9)
    assert path.leaves.tolist() == [stage.leaves for stage in stages]
    expected = [cost_complexity.risk_of_tree(stage.tree, of_node) for stage in stages]
    assert path.risk.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(data=st.data(), kind=st.sampled_from(["class", "number"]), alpha=st.sampled_from([0.0, 0.3, 0.75, 2.0]))
@SETTINGS
def test_no_other_pruning_costs_less_at_the_price_and_none_that_costs_the_same_is_smaller(
    data: st.DataObject, kind: str, alpha: float
) -> None:
    table = data.draw(tables(kind=kind, most_rows=12, weights=(1.0,)))
    dataset, model = grown(table, data.draw(fields(kind, missing=("direction",))))
    if model.tree.n_leaves > 7:
        return
    risk = cost_complexity.error_risk if kind == "class" else cost_complexity.squared_risk
    result = prune(model, CostComplexity(alpha, risk="error"), dataset=dataset)
    ours = node_of(result.model.tree, 0)
    cost = cost_complexity.risk_of_tree(ours, risk) + alpha * n_leaves(ours)
    for other in cost_complexity.prunings(node_of(model.tree, 0)):
        its = cost_complexity.risk_of_tree(other, risk) + alpha * n_leaves(other)
        assert cost <= its + 1e-9
        assert its > cost + 1e-9 or n_leaves(ours) <= n_leaves(other)


@given(data=st.data(), kind=st.sampled_from(["class", "number"]))
@SETTINGS
def test_the_path_is_nested_and_its_prices_increase(data: st.DataObject, kind: str) -> None:
    _, model = grown(data.draw(tables(kind=kind)), data.draw(fields(kind)))
    path = pruning_path(model)
    assert path.alpha[0] == 0
    assert np.all(np.diff(path.alpha) > 0)
    assert np.all(np.diff(path.leaves) < 0)
    assert path.leaves[-1] == 1
    for place in range(len(path.alpha) - 1):
        assert set(path.collapsed(place).tolist()) <= set(path.collapsed(place + 1).tolist())


@given(data=st.data(), kind=st.sampled_from(["class", "number"]), rule=st.sampled_from(["min", "one_se"]))
@SETTINGS
def test_selection_by_validation_measures_each_tree_of_the_path_as_an_evaluation_does(
    data: st.DataObject, kind: str, rule: str
) -> None:
    table = data.draw(tables(kind=kind, holes=False, most_rows=40, weights=(1.0,)))
    if table.n_rows < 6:
        return
    dataset = dataset_of(table)
    validation_data = Holdout(rows=tuple(range(0, table.n_rows, 3)))
    model = train(dataset, config_of(data.draw(fields(kind, missing=("direction",))), table), holdout=validation_data)
    result = prune(model, CostComplexity(select="validation", rule=rule), dataset=dataset)
    lines = result.trace["table"]
    for line in lines:
        at = prune(model, CostComplexity(line["alpha"]), dataset=dataset).model
        held = at.training.held_out or {}
        measured = 1 - held["accuracy"] if kind == "class" else held["rmse"] ** 2
        assert (line["leaves"], line["error"]) == (at.tree.n_leaves, pytest.approx(measured, abs=1e-9))
    least = min(line["error"] for line in lines)
    best = max((line for line in lines if line["error"] <= least + 1e-12), key=lambda line: line["alpha"])
    if rule == "one_se":
        bound = best["error"] + best["standard_error"]
        best = max((line for line in lines if line["error"] <= bound + 1e-12), key=lambda line: line["alpha"])
    assert best["selected"]
    assert sum(line["selected"] for line in lines) == 1
    assert result.model.tree.n_leaves == best["leaves"]


@pytest.mark.parametrize("risk", ["impurity", "error"])
def test_cross_validation_judges_each_price_by_trees_grown_without_the_part(risk: str) -> None:
    table = noisy_table(1, holes=0.0)
    dataset, model = grown(table, preset("cart", min_weight_leaf=3.0))
    parameters = CostComplexity(select="cv", folds=4, seed=7, risk=risk)
    lines = prune(model, parameters, dataset=dataset).trace["table"]
    order = np.argsort(np.random.PCG64(7).random_raw(dataset.n_rows), kind="stable")
    order = order[np.argsort(np.asarray(dataset.target)[order], kind="stable")]
    prices = [math.sqrt(a["alpha"] * b["alpha"]) for a, b in pairwise(lines)]
    wrong_weight = np.zeros(len(prices))
    for fold in range(4):
        held = np.zeros(dataset.n_rows, dtype=bool)
        held[order[fold::4]] = True
        other = train(dataset.take(np.flatnonzero(~held)), model.config)
        scale = other.tree.weight[0] / model.tree.weight[0] if risk == "error" else 1.0
        for place, price in enumerate(prices):
            at = prune(other, CostComplexity(price * scale, risk=risk), holdout=dataset.take(np.flatnonzero(held)))
            wrong_weight[place] += (at.model.training.held_out or {})["errors"]
    expected = (wrong_weight / dataset.weight.sum()).tolist()
    assert [line["error"] for line in lines[:-1]] == pytest.approx(expected, abs=1e-9)
    majority = max(model.tree.stats[0]) / model.tree.weight[0]
    assert lines[-1]["error"] == pytest.approx(1 - majority, abs=0.1)


def test_cross_validation_without_the_training_rows_is_refused_with_the_reason() -> None:
    _, model = grown(noisy_table(0), preset("cart"))
    with pytest.raises(
        NotApplicable, match=r"^select: must not be cv.*: the data set that the model was trained on is not given"
    ):
        prune(model, CostComplexity(select="cv"))


def test_raising_without_the_training_rows_is_refused_with_the_reason_and_a_way_out() -> None:
    _, model = grown(noisy_table(0), preset("cart"))
    with pytest.raises(NotApplicable, match=r"^raising: must be false"):
        prune(model, "pessimistic")
    assert prune(model, "pessimistic", raising=False).model.tree.n_leaves < model.tree.n_leaves


def test_a_regression_is_not_pruned_by_numbers_of_errors() -> None:
    table = Table((Column("numeric", (1.0, 2.0, 3.0)),), Target("number", (1.0, 5.0, 9.0)), (1.0, 1.0, 1.0))
    dataset, model = grown(table, preset("cart", "number"))
    with pytest.raises(NotApplicable, match=r"^method: must not be pessimistic.*: the target has no classes"):
        prune(model, "pessimistic", dataset=dataset)


def test_a_step_of_a_trace_takes_as_many_calls_with_many_attributes_as_with_few() -> None:
    draw = np.random.default_rng(2)
    noise, answers = draw.standard_normal((80, 40)), ["ab"[each] for each in draw.integers(0, 2, 80).tolist()]
    counts = []
    for n_attributes in (4, 40):
        rows = {f"x{place}": noise[:, place % 4].tolist() for place in range(n_attributes)}
        model = espalier.train(espalier.dataset_from_columns({**rows, "y": answers}, target="y"), "cart")
        found = prune(model, "cost_complexity", alpha=1.0)
        counts.append((n_calls(lambda found=found: found.trace), len(found.trace["steps"])))
    (few, n_steps), (many, as_many_steps) = counts
    assert n_steps == as_many_steps > 5  # the other attributes repeat the first four
    assert many - few < 5 * (40 - 4)


def test_pruning_changes_no_array_of_the_parent() -> None:
    table = noisy_table(5)
    dataset, model = grown(table, preset("id3", numeric="best", missing="fractional"))
    again = train(dataset, model.config)
    prune(model, "pessimistic", dataset=dataset)
    prune(model, CostComplexity(select="cv", folds=3), dataset=dataset)
    assert model.tree == again.tree


def test_a_trace_is_json_and_numbers_its_nodes_as_the_parent_does() -> None:
    dataset, model = grown(noisy_table(2), preset("id3", numeric="best", missing="fractional"))
    for parameters in (Pessimistic(), CostComplexity(0.01), CostComplexity(select="cv", folds=3)):
        trace = prune(model, parameters, dataset=dataset).trace
        assert json.loads(json.dumps(trace)) == trace
        assert all(0 <= step["node"] < model.tree.n_nodes for step in trace["steps"])
