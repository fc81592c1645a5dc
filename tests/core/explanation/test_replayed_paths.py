"""Every path leads to its leaf, every condition holds, and every sentence, read back, is the same rule."""

import dataclasses

from hypothesis import given, settings, strategies as st

from espalier import explain, predict
from tests.core.every_row import as_cells, cells_of
from tests.core.planted import MIXED, NUMBERS, Leaf, mixed_rows, plant, roots
from tests.core.rule_lists import rule_lists
from tests.reference.sentences import parsed

ORDERS = {feature.name: feature.categories for feature in MIXED.attributes}
PLACES = {feature.name: place for place, feature in enumerate(MIXED.attributes)}


@st.composite
def whole_rows(draw):
    """A row without missing values, of categories that were seen."""
    lengths = st.integers(-8, 8).map(lambda n: n / 2)
    return {"length": draw(lengths)} | {
        feature.name: draw(st.sampled_from(feature.categories)) for feature in MIXED.attributes[1:]
    }


def asking_trees(schema):
    """A tree that asks for something."""
    return roots(schema, may_be_leaf=False)


def condition_holds(condition, cell):
    """By the fields of a condition, as `Condition` documents them."""
    feature = condition.attribute
    if cell is None or condition.known is False:
        return cell is None and condition.known is False
    value = feature.categories.index(cell) if feature.coded else cell
    listed = condition.categories is None or cell in condition.categories
    return condition.above < value <= condition.at_most and listed


def by_value(path):
    return all(step.reason == "value" or step.test == "known" for step in path)


@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]))
def test_the_steps_of_every_way_replayed_on_the_tree_lead_to_its_leaf(data, schema):
    model, row = plant(schema, data.draw(roots(schema))), data.draw(mixed_rows())
    (found,) = explain(model, [row])
    for visit, path in zip(found.prediction.visits, found.paths, strict=True):
        node = 0
        for step in path:
            assert step.node == node
            children = model.tree.children(node)
            if step.categories is not None:
                codes = model.tree.codes(node).tolist()
                places = [step.attribute.categories.index(label) for label in step.categories]
                branches = {codes[place] for place in places}
                assert len(branches) <= 1
                node = children[branches.pop()] if branches else visit.nodes[visit.nodes.index(node) + 1]
            else:
                node = children[0 if step.branch == "yes" else 1]
        assert node == visit.leaf


@settings(max_examples=150)
@given(data=st.data(), schema=st.sampled_from([MIXED, NUMBERS]))
def test_the_conditions_of_a_path_hold_for_the_row_and_its_sentence_says_the_same(data, schema):
    root = data.draw(asking_trees(schema))
    model, row = plant(schema, root), data.draw(mixed_rows() | whole_rows())
    (found,) = explain(model, [row])
    holds, answer = parsed(found.rule, ORDERS)
    cells, own = cells_of(schema, root), as_cells(schema, row)
    assert list(holds) == [condition.attribute.name for condition in found.conditions]
    if schema is MIXED:
        assert answer == found.prediction.label
    if not by_value(found.paths[0]):
        return  # where no value decided, a condition says which way was taken, not what the row is like
    for condition in found.conditions:
        place = PLACES[condition.attribute.name]
        assert condition_holds(condition, own[place])
        for cell in cells[place]:
            assert holds[condition.attribute.name](cell) == condition_holds(condition, cell), (found.rule, cell)


@given(data=st.data())
def test_a_row_for_which_a_sentence_holds_is_answered_as_it_says(data):
    root = data.draw(asking_trees(MIXED))
    model, row = plant(MIXED, root), data.draw(mixed_rows() | whole_rows())
    (found,) = explain(model, [row])
    if not by_value(found.paths[0]) or found.prediction.n_visits > 1:
        return
    holds, answer = parsed(found.rule, ORDERS)
    other = dict(row)
    for name, wanted in holds.items():
        legal = [cell for cell in cells_of(MIXED, root)[PLACES[name]] if wanted(cell)]
        other[name] = data.draw(st.sampled_from(legal))
    assert predict(model, [other])[0].label == answer


@given(rules=rule_lists(), row=mixed_rows() | whole_rows())
def test_the_sentence_of_a_rule_that_fires_is_read_back_as_its_conditions(rules, row):
    model = dataclasses.replace(plant(MIXED, Leaf((1.0, 0.0, 0.0))), body=rules)
    (found,) = explain(model, [row])
    if found.rule.startswith("otherwise "):
        assert found.prediction.leaf == rules.n_rules
        return
    holds, answer = parsed(found.rule, ORDERS)
    assert answer == found.prediction.label
    own = as_cells(MIXED, row)
    for condition in found.conditions:
        place = PLACES[condition.attribute.name]
        assert condition_holds(condition, own[place])
        assert holds[condition.attribute.name](own[place])
