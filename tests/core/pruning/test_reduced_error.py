"""Reduced-error pruning against its slow twin, and what must hold of every pruned tree."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from espalier import (
    ConfigError,
    Holdout,
    Progress,
    ReducedError,
    dataset_from_rows,
    evaluate,
    predict,
    prune,
    pruning_method,
    to_json,
    to_text,
    train,
)
from espalier.pruning.reduced_error import prune_reduced_error
from espalier.pruning.result import PruningRows
from tests.core.drawn import choices
from tests.core.planted import CELLS, MIXED, NUMBERS, Ask, Cut, Leaf, _branch, plant, roots, shares_of, stats_of
from tests.reference import reduced_error as twin

MIXED_NAMES = [feature.name for feature in MIXED.features]


def wrong(answer, truth):
    return float(answer != truth)


def squared(answer, truth):
    return (answer - truth) ** 2


def as_twin(schema, node):
    """The planted tree as the twin reads it."""
    stats = stats_of(node, classes=bool(schema.classes))
    answer = schema.classes[stats.index(max(stats))] if schema.classes else stats[1]
    if isinstance(node, Leaf):
        return twin.leaf(answer)

    def test(row):
        branch = _branch(schema, node, row[schema.attributes[node.attribute].name])
        if branch is not None:
            return [(branch, 1.0)]
        return list(enumerate(shares_of(node, classes=bool(schema.classes))))

    return {"answer": answer, "test": test, "children": [as_twin(schema, child) for child in node.children]}


def shape(tree, node=0):
    return [shape(tree, child) for child in tree.children(node)]


def twin_shape(node):
    return [twin_shape(child) for child in node.get("children", ())]


def validation_rows(schema):
    """Rows with a known target; no unseen categories, which a data set cannot hold; weights in halves, some zero."""
    return choices(90).map(lambda drawn: _validation_rows(drawn, schema))


def _validation_rows(drawn, schema):
    names = [feature.name for feature in schema.attributes]
    truths = schema.classes or [float(each) for each in range(-20, 21)]
    weights = [each / 2 for each in range(7)]
    rows = []
    for _ in range(1 + drawn.below(12)):
        cells = [drawn.one_of(each) for each in CELLS]
        values = {name: None if cell in ("mauve", "giant") else cell for name, cell in zip(names, cells, strict=True)}
        rows.append((values, drawn.one_of(truths), drawn.one_of(weights)))
    if not any(weight for *_, weight in rows):
        rows = [(*rows[0][:2], 1.0), *rows[1:]]
    return rows


def held_out(schema, rows):
    target = schema.target.name
    records = [{**values, target: truth, "w": weight} for values, truth, weight in rows]
    return dataset_from_rows(records, schema={**schema.to_dict()}, weight="w")


PARAMETERS = st.builds(ReducedError, ties=st.sampled_from(["prune", "keep"]), prune_root=st.booleans())


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["classes", "numbers"])
@given(data=st.data(), parameters=PARAMETERS)
def test_the_pruned_tree_is_that_of_the_slow_twin(schema, data, parameters):
    root, rows = data.draw(roots(schema)), data.draw(validation_rows(schema))
    miss = wrong if schema.classes else squared
    model = plant(schema, root)
    result = prune_reduced_error(model, parameters, PruningRows(held_out=held_out(schema, rows)), Progress())
    before = as_twin(schema, root)
    after = twin.pruned(before, rows, miss=miss, ties=parameters.ties, prune_root=parameters.prune_root)
    assert shape(result.model.tree) == twin_shape(after)
    assert result.trace["before"]["estimate"] == pytest.approx(twin.loss(before, rows, miss))
    assert result.trace["after"]["estimate"] == pytest.approx(twin.loss(after, rows, miss))
    assert result.trace["after"]["leaves"] == twin.n_leaves(after) == result.model.tree.n_leaves


@given(root=roots(MIXED), rows=validation_rows(MIXED), parameters=PARAMETERS)
def test_pruning_never_loses_held_out_votes(root, rows, parameters):
    model = plant(MIXED, root)
    trace = prune_reduced_error(model, parameters, PruningRows(held_out=held_out(MIXED, rows)), Progress()).trace
    assert trace["after"]["estimate"] <= trace["before"]["estimate"] + 1e-9
    assert trace["after"]["leaves"] <= trace["before"]["leaves"]


@given(root=roots(MIXED), rows=validation_rows(MIXED).filter(lambda rows: any(row[2] for row in rows)))
def test_a_trace_that_counts_other_errors_than_an_evaluation_says_why(root, rows):
    model, validation_data = plant(MIXED, root), held_out(MIXED, rows)
    result = prune_reduced_error(model, ReducedError(), PruningRows(held_out=validation_data), Progress())
    several = sum(
        answer.n_visits > 1 and weight > 0
        for answer, (_, _, weight) in zip(predict(model, [values for values, _, _ in rows]), rows, strict=True)
    )
    notes = [note for note in result.trace.get("notes", []) if "several branches" in note]
    assert [note.split()[0] for note in notes] == ([str(several)] if several else [])
    if not several:
        assert result.trace["before"]["estimate"] == pytest.approx(evaluate(model, validation_data).errors)


def complete(rows):
    """Only the rows that every test can ask, whose answer is one leaf's."""
    return [(values, truth, weight) for values, truth, weight in rows if None not in values.values()]


@given(root=roots(MIXED), rows=validation_rows(MIXED).map(complete).filter(lambda rows: any(row[2] for row in rows)))
def test_pruning_never_lowers_the_held_out_accuracy_of_complete_rows(root, rows):
    model, validation_data = plant(MIXED, fractional_only_where_unseen(root)), held_out(MIXED, rows)
    result = prune_reduced_error(model, ReducedError(), PruningRows(held_out=validation_data), Progress())
    assert evaluate(result.model, validation_data).accuracy >= evaluate(model, validation_data).accuracy - 1e-12


def fractional_only_where_unseen(root):
    """Give every test a fallback, so that an answer is one leaf's and its votes are whole."""
    if isinstance(root, Leaf):
        return root
    children = tuple(map(fractional_only_where_unseen, root.children))
    fields = {**{name: getattr(root, name) for name in root.__dataclass_fields__}, "children": children}
    return type(root)(**{**fields, "fallback": max(root.fallback, 0)})


@given(root=roots(MIXED), rows=validation_rows(MIXED))
def test_with_ties_pruned_no_further_node_could_go_without_a_loss(root, rows):
    after = twin.pruned(as_twin(MIXED, root), rows, miss=wrong)
    result = prune_reduced_error(
        plant(MIXED, root), ReducedError(), PruningRows(held_out=held_out(MIXED, rows)), Progress()
    )
    best = result.trace["after"]["estimate"]
    for smaller in twin.with_one_leaf_more(after):
        assert twin.loss(smaller, rows, wrong) > best + 1e-12


@given(root=roots(MIXED), rows=validation_rows(MIXED), parameters=PARAMETERS)
def test_a_pruned_tree_needs_no_second_pruning(root, rows, parameters):
    validation_data = held_out(MIXED, rows)
    once = prune_reduced_error(plant(MIXED, root), parameters, PruningRows(held_out=validation_data), Progress())
    twice = prune_reduced_error(once.model, parameters, PruningRows(held_out=validation_data), Progress())
    assert twice.model.tree == once.model.tree
    assert twice.trace["steps"] == []


@given(root=roots(MIXED), rows=validation_rows(MIXED), parameters=PARAMETERS)
def test_the_trace_accounts_for_every_node_that_went(root, rows, parameters):
    model = plant(MIXED, root)
    result = prune_reduced_error(model, parameters, PruningRows(held_out=held_out(MIXED, rows)), Progress())
    mask, left = np.zeros(model.tree.n_nodes, dtype=bool), model.tree.n_nodes
    for step in result.trace["steps"]:
        mask[step["node"]] = True
        assert step["after"] <= step["before"] + 1e-9
        left -= step["nodes_removed"]
        assert model.tree.collapsed(mask).n_nodes == left
    assert model.tree.collapsed(mask) == result.model.tree
    assert result.trace["before"]["nodes"] == model.tree.n_nodes
    assert (result.trace["parameters"]["ties"], result.trace["held_out_rows"]) == (parameters.ties, len(rows))


@given(root=roots(MIXED), rows=validation_rows(MIXED))
def test_the_parent_is_unchanged(root, rows):
    model = plant(MIXED, root)
    before = to_json(model)
    prune_reduced_error(model, ReducedError(), PruningRows(held_out=held_out(MIXED, rows)), Progress())
    assert to_json(model) == before


def test_a_leaf_answers_the_training_majority_not_the_voters():
    tree = Cut(0, 0.0, (Leaf((3.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0))))
    validation_data = dataset_from_rows([{**dict.fromkeys(MIXED_NAMES), "length": -1, "kind": "c"}], schema=MIXED)
    result = prune_reduced_error(plant(MIXED, tree), ReducedError(), PruningRows(held_out=validation_data), Progress())
    assert predict(result.model, [{}])[0].label == "a"
    assert result.model.tree.stats.tolist() == [[3.0, 2.0, 0.0]]


def test_a_voter_of_a_class_that_the_model_does_not_know_is_an_error_everywhere():
    tree = Cut(0, 0.0, (Leaf((3.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0))))
    schema = MIXED.to_dict()
    schema["columns"][-1]["categories"] = ["z", "a", "b", "c"]
    rows = [{**dict.fromkeys(MIXED_NAMES), "length": -1, "kind": "z"}, {**dict.fromkeys(MIXED_NAMES), "kind": "a"}]
    trace = prune_reduced_error(
        plant(MIXED, tree), ReducedError(), PruningRows(held_out=dataset_from_rows(rows, schema=schema)), Progress()
    ).trace
    assert trace["before"]["estimate"] == pytest.approx(1 + 0.4)


def test_a_voter_is_routed_by_label_where_its_data_set_has_another_order_of_categories():
    tree = Ask(1, (0, 1, 1), (Leaf((3.0, 0.0, 0.0)), Leaf((0.0, 2.0, 0.0))))
    schema = MIXED.to_dict()
    schema["columns"][1]["categories"] = ["blue", "violet", "red", "green"]
    schema["columns"][-1]["categories"] = ["c", "b", "a"]
    rows = [
        {**dict.fromkeys(MIXED_NAMES), "colour": colour, "kind": kind}
        for colour, kind in [("red", "a"), ("blue", "b"), ("green", "b")]
    ]
    validation_data = dataset_from_rows(rows, schema=schema)
    assert (
        prune_reduced_error(
            plant(MIXED, tree), ReducedError(), PruningRows(held_out=validation_data), Progress()
        ).trace["before"]["estimate"]
        == 0
    )


# The public function


def noisy(n=60, seed=0):
    """A concept with noise: x above 3, and one row in five the other way."""
    draws = np.random.default_rng(seed)
    rows = [
        {"x": float(x), "c": "uvw"[int(c)], "y": "no" if (x > 3) != (flip < 0.2) else "yes"}
        for x, c, flip in zip(draws.uniform(0, 6, n).round(2), draws.integers(0, 3, n), draws.random(n), strict=True)
    ]
    return dataset_from_rows(rows, target="y")


def test_pruning_uses_the_rows_that_were_set_aside_at_training():
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3, seed=5))
    result = prune(model, "reduced_error", dataset=data)
    assert result.trace["held_out_rows"] == model.training.held_out["n_rows"]
    assert result.model.training.held_out["accuracy"] >= model.training.held_out["accuracy"]
    assert result.model.tree.n_leaves < model.tree.n_leaves
    assert result.model.training.holdout == model.training.holdout


def test_figures_on_rows_that_voted_are_called_validation():
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3))
    assert model.training.held_out_use == "holdout"
    assert prune(model, "reduced_error", dataset=data).model.training.held_out_use == "validation"


def test_the_pruned_model_says_how_it_came_to_be_and_no_longer_that_it_is_unpruned():
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3))
    result = prune(model, "reduced_error", dataset=data, ties="keep")
    assert any("unpruned" in note for note in model.notes)
    assert not any("unpruned" in note for note in result.model.notes)
    assert (result.model.pruning["method"], result.model.pruning["ties"]) == ("reduced_error", "keep")


def test_a_method_may_be_given_by_name_or_as_its_parameters_with_changes():
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3))
    by_name = prune(model, "reduced_error", dataset=data, ties="keep")
    by_object = prune(model, pruning_method("reduced_error", ties="keep"), dataset=data)
    changed = prune(model, ReducedError(), dataset=data, ties="keep")
    assert to_json(by_name.model) == to_json(by_object.model) == to_json(changed.model)


@pytest.mark.parametrize("method", ["magic", 3, None, Holdout(0.3)])
def test_what_is_no_pruning_method_is_refused(method):
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3))
    with pytest.raises(ConfigError, match="/method"):
        prune(model, method, dataset=data)


def test_a_wrong_parameter_is_refused_however_the_method_is_given():
    data = noisy()
    model = train(data, "cart", holdout=Holdout(0.3))
    for method in ("reduced_error", ReducedError()):
        with pytest.raises(ConfigError, match="/ties: must be one of prune, keep"):
            prune(model, method, dataset=data, ties="toss")


def test_a_holdout_of_its_own_stands_instead_of_the_remembered_rows():
    data, other = noisy(), noisy(seed=9)
    model = train(data, "cart")
    result = prune(model, "reduced_error", holdout=other)
    assert result.trace["held_out_rows"] == other.n_rows
    assert to_text(result.model) == to_text(prune(model, "reduced_error", dataset=data, holdout=other).model)


def test_training_figures_of_a_pruned_model_are_the_same_with_and_without_the_data_at_hand():
    data, other = noisy(), noisy(seed=9)
    model = train(data, "cart", holdout=Holdout(0.3))
    from_leaves = prune(model, "reduced_error", holdout=other).model.training.train
    from_rows = prune(model, "reduced_error", dataset=data, holdout=other).model.training.train
    assert {name: from_rows[name] for name in from_leaves} == pytest.approx(from_leaves)
