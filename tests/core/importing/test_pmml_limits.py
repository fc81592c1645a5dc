"""Hostile documents of PMML are refused before they take much time or memory."""

import subprocess
import sys

import pytest

import espalier
from espalier.importing import pmml_predicates
from tests.core.importing.test_pmml import RULES, SECOND, TREE


def compound(operator: str, parts: list[str]) -> str:
    return f'<CompoundPredicate booleanOperator="{operator}">{"".join(parts)}</CompoundPredicate>'


@pytest.fixture
def a_tenth_of_the_steps(monkeypatch) -> None:
    """Refuse earlier: a limit takes seconds to reach. Comparisons and rules of many categories reach the whole one."""
    monkeypatch.setattr(pmml_predicates, "MAX_STEPS", pmml_predicates.MAX_STEPS // 10)


@pytest.mark.usefixtures("a_tenth_of_the_steps")
def test_nested_tests_of_many_thresholds_are_refused_before_they_are_evaluated() -> None:
    below = [SECOND.replace('"1"', f'"{at}"') for at in range(10_000)]
    nested = compound("and", [SECOND, compound("or", [compound("and", [one, one]) for one in below])])
    for text in (TREE.replace(SECOND, nested), RULES.format(f'<SimpleRule score="yes">{nested}</SimpleRule>')):
        with pytest.raises(espalier.DocumentError, match="too many tests of the same field"):
            espalier.from_pmml(text.encode())


def test_rules_over_many_categories_are_refused_before_they_are_evaluated() -> None:
    names = [f"c{at}" for at in range(10_000)]
    listed = "".join(f'<Value value="{name}"/>' for name in names)
    rules = "".join(
        f'<SimpleRule score="yes"><SimplePredicate field="k" operator="notEqual" value="{name}"/></SimpleRule>'
        for name in names
    )
    text = RULES.format(rules).replace('<Value value="a"/><Value value="b"/>', listed)
    with pytest.raises(espalier.DocumentError, match="fields with too many categories"):
        espalier.from_pmml(text.encode())


def test_comparisons_of_many_ordered_categories_are_refused_before_they_fill_the_memory() -> None:
    listed = "".join(f'<Value value="c{at}"/>' for at in range(10_000))
    less = '<SimplePredicate field="k" operator="lessThan" value="c9000"/>'
    text = TREE.replace(SECOND, compound("or", [less] * 2_000))
    text = text.replace('<DataField name="k" optype="categorical"', '<DataField name="k" optype="ordinal"')
    text = text.replace('<Value value="a"/><Value value="b"/>', listed)
    with pytest.raises(espalier.DocumentError, match="fields with too many categories"):
        espalier.from_pmml(text.encode())


def test_as_many_classes_as_leaves_are_refused_before_their_weights_are_allocated() -> None:
    sizes = range(10_000)
    rules = "".join(
        f'<SimpleRule score="s{at}"><SimplePredicate field="x" operator="equal" value="{at}"/></SimpleRule>'
        for at in sizes
    )
    with pytest.raises(espalier.DocumentError, match="has 10002 classes for 10001 nodes or rules; the product"):
        espalier.from_pmml(RULES.format(rules).encode())


HOSTILE = """
import resource, sys
import espalier, espalier.importing.pmml
from espalier.importing.pmml import from_pmml
head = b'<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">'
deep = b'<Node>' * 1_000_000
wide = b'<Header/>' * 3_000_000
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
long = b'<Header a="' + b'x' * 30_000_000 + b'"/></PMML>'
for content in (head + deep, head + b'<Extension>' + deep, head + wide, head + long):
    try:
        from_pmml(content)
    except espalier.DocumentError as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_hostile_document_is_refused_in_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=True)
    *reasons, used = done.stdout.splitlines()
    assert "deeper than 10000" in reasons[0]
    assert "deeper than 10000" in reasons[1]
    assert "more than 1000000 elements" in reasons[2]
    assert "must have one TreeModel" in reasons[3]
    assert int(used) < 700  # MiB


@pytest.mark.usefixtures("a_tenth_of_the_steps")
def test_many_tests_of_one_field_are_refused_before_they_take_minutes() -> None:
    nodes = "".join(
        f'<Node score="no"><SimplePredicate field="x" operator="lessOrEqual" value="{at}"/></Node>'
        for at in range(20_000)
    )
    text = TREE.replace('<Node id="1"', f'{nodes}<Node id="1"')
    with pytest.raises(espalier.DocumentError, match="too many tests of the same field"):
        espalier.from_pmml(text.encode())


@pytest.mark.usefixtures("a_tenth_of_the_steps")
def test_many_tests_of_many_categories_are_refused_before_they_fill_the_memory() -> None:
    values = "".join(f'<Value value="{at}"/>' for at in range(20_000))
    nodes = "".join(
        f'<Node score="no"><SimplePredicate field="k" operator="equal" value="{at}"/></Node>'
        f'<Node score="no"><SimplePredicate field="x" operator="equal" value="{at}"/></Node>'
        for at in range(2, 1_000)
    )
    text = TREE.replace('<Value value="a"/>', values, 1).replace('<Node id="1"', f'{nodes}<Node id="1"')
    with pytest.raises(espalier.DocumentError, match="fields with too many categories"):
        espalier.from_pmml(text.encode(), missing="majority")


def test_a_deep_tree_is_read_without_recursion() -> None:
    levels = 4_000
    opened = "".join(
        f'<Node score="no"><SimplePredicate field="x" operator="greaterThan" value="{at}"/>' for at in range(2, levels)
    )
    text = TREE.replace(SECOND, SECOND + opened + "</Node>" * (levels - 2))
    model = espalier.from_pmml(text.encode())
    assert model.tree.depth == levels - 1
