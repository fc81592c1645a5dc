"""Fields of documents of PMML: missing values without an answer, large integers; and nodes that are read once."""

import operator
from collections.abc import Sequence

import pytest

import espalier
from espalier.importing import pmml
from espalier.importing.pmml_answers import read_answer
from tests.core.importing.test_pmml import RULES, SECOND, TREE

RETURNS_INVALID = TREE.replace(
    '<MiningField name="k"', '<MiningField name="k" missingValueTreatment="returnInvalid"'
).replace('<MiningField name="x"', '<MiningField name="x" missingValueTreatment="returnInvalid"')
NODES = RETURNS_INVALID[RETURNS_INVALID.index('<Node id="1"') : RETURNS_INVALID.index("</Node></TreeModel>")]
ABOVE = f'<SimpleRule score="yes">{SECOND}</SimpleRule>'
RULE_SET = RULES.format(ABOVE).replace(
    '<MiningField name="x"', '<MiningField name="x" missingValueTreatment="returnInvalid"'
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RETURNS_INVALID, "SimplePredicate: a missing value of 'x' has no answer here; import with missing='majority'"),
        # x is not tested.
        (RETURNS_INVALID.replace(NODES, ""), "MiningField: a missing value of 'x' has no answer; import with missing="),
        # x is tested, and k is not.
        (
            RETURNS_INVALID.replace('name="x" missingValueTreatment="returnInvalid"', 'name="x"'),
            "MiningField: a missing value of 'k' has no answer; .* by which the row goes down the heaviest branch",
        ),
        (RULE_SET, "a missing value of 'x' has no answer; .* by which a condition on this value does not hold"),
        (RULE_SET.replace(ABOVE, ""), "MiningField: a missing value of 'x' has no answer"),
    ],
)
def test_a_field_without_an_answer_to_its_missing_value_is_refused_unless_majority_is_asked_for(text, reason) -> None:
    with pytest.raises(espalier.DocumentError, match=reason):
        espalier.from_pmml(text.encode())
    assert espalier.from_pmml(text.encode(), missing="majority").schema.attributes[0].name == "x"


def test_the_note_on_missing_values_without_an_answer_fits_the_kind_of_model() -> None:
    tree = espalier.from_pmml(RETURNS_INVALID.encode(), missing="majority")
    rules = espalier.from_pmml(RULE_SET.encode(), missing="majority")
    assert "no answer to a missing value, the row goes down the heaviest branch" in " ".join(tree.notes)
    assert "no answer to a missing value, a condition on this value does not hold" in " ".join(rules.notes)


@pytest.mark.parametrize("predicate", [SECOND, '<SimplePredicate field="x" operator="isNotMissing"/>'])
def test_no_rule_on_a_missing_value_without_an_answer_holds(predicate) -> None:
    rules = espalier.from_pmml(RULE_SET.replace(SECOND, predicate).encode(), missing="majority")
    assert [each.label for each in espalier.predict(rules, [{"x": 2.0}, {}])] == ["yes", "no"]


LARGE = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, -(2**53) - 2, 7]
OPPOSITE = {"equal": "notEqual", "lessThan": "greaterOrEqual", "lessOrEqual": "greaterThan"}


def of_integers(listed: Sequence[object], name: str, value: int) -> espalier.Model:
    """A tree that compares k, a category that is one of the listed integers: "no" if the comparison holds."""
    values = "".join(f'<Value value="{number}"/>' for number in listed)
    text = TREE.replace('<Value value="a"/><Value value="b"/>', values)
    text = text.replace('categorical" dataType="string"', 'categorical" dataType="integer"', 1)
    first = '<SimplePredicate field="x" operator="lessOrEqual" value="1"/>'
    text = text.replace(first, f'<SimplePredicate field="k" operator="{name}" value="{value}"/>')
    text = text.replace(SECOND, f'<SimplePredicate field="k" operator="{OPPOSITE[name]}" value="{value}"/>')
    return espalier.from_pmml(text.encode())


@pytest.mark.parametrize("value", LARGE)
@pytest.mark.parametrize(
    ("name", "compare"), [("equal", operator.eq), ("lessThan", operator.lt), ("lessOrEqual", operator.le)]
)
def test_integers_that_doubles_do_not_distinguish_remain_different_categories(name, compare, value) -> None:
    model = of_integers(LARGE, name, value)
    assert [str(label) for label in model.schema.attributes[1].categories] == [str(number) for number in LARGE]
    found = espalier.predict(model, [{"k": number} for number in LARGE])
    assert [each.label for each in found] == ["no" if compare(number, value) else "yes" for number in LARGE]


def test_leading_zeros_of_an_integer_are_no_digits() -> None:
    zeros = "0" * 5_000  # Python refuses to read an integer of so many digits
    model = of_integers([f"-{zeros}{2**53 + 1}", f"+{zeros}1"], "equal", 1)
    assert model.schema.attributes[1].categories == ("-9007199254740993", 1)


def test_an_inner_node_without_an_answer_is_read_once_however_many_tests_it_becomes(monkeypatch) -> None:
    nodes = "".join(
        f'<Node score="no"><SimplePredicate field="x" operator="lessOrEqual" value="{at}"/></Node>' for at in range(9)
    )
    text = TREE.replace(' score="no" defaultChild="1"', ' defaultChild="1"')
    text = text.replace('<Node id="1"', f'{nodes}<Node id="1"').replace("returnLastP", "returnNullP")
    read = list[str | None]()

    def counted(element, target):
        read.append(element.get("id"))
        return read_answer(element, target)

    monkeypatch.setattr(pmml, "read_answer", counted)
    assert espalier.from_pmml(text.encode()).tree.n_nodes > 9
    assert read.count("0") == 1
