"""Documents of PMML answer as jpmml-evaluator answers them, and our own as the model that they were written from."""

import functools
import json
import math
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import espalier
from tests.core.export.models import hostile_model
from tests.core.export.pmml_models import NAMED_MODELS, drawn_models, typed_model
from tests.core.export.rows import UNSEEN, boundary_rows, predicted_rows
from tests.core.importing.pmml_mutations import mutations
from tests.factories import needs_reference

PYTHON = os.environ.get("ESPALIER_TEST_JUDGES")
needs_judges = pytest.mark.skipif(PYTHON is None, reason="ESPALIER_TEST_JUDGES names no Python with the judges of PMML")
JUDGE = Path(__file__).parent.parent / "export" / "pmml_judge.py"
DOCUMENTS = Path(__file__).with_name("pmml")
# Outputs of each document, whether rows may miss values, and what is a number of whole numbers.
JUDGED: dict[str, tuple[list[str], str | None, tuple[str, ...]]] = {
    "rpart": (["price"], None, ()),
    "knime": (["kind", "p0", "p1"], None, ("width",)),
    "partykit": (["answer", "p0", "p1", "p2"], None, ()),
    "rules": (["Drug"], None, ("Age",)),
    "sklearn_iris": (["y", "probability(se)", "probability(ve)", "probability(vi)"], "majority", ()),
    "sklearn_diabetes": (["target"], "majority", ()),
}


def document(name: str) -> bytes:
    return (DOCUMENTS / f"{name}.pmml").read_bytes()


@functools.cache
def imported(name: str) -> espalier.Model:
    return espalier.from_pmml(document(name), missing=JUDGED[name][1])


def rows_of(name: str, model: espalier.Model, n_rows: int) -> list[dict[str, Any]]:
    """Rows at each threshold, which the document has an answer to."""
    whole = JUDGED[name][2]
    rows = boundary_rows(model, n_rows=n_rows)
    for row in rows:
        for key, cell in row.items():
            if cell == UNSEEN and name != "partykit":
                row[key] = None
            elif key in whole and cell is not None:
                row[key] = int(cell)
    if any("the document has no answer to a missing value" in note for note in model.notes):
        return [
            {key: 0.5 if cell is None else cell for key, cell in row.items()}
            for row in rows
            if UNSEEN not in row.values()
        ]
    return rows


def text_of(name: str) -> str:
    """A document as text, all in one encoding."""
    return document(name).decode("latin-1" if name == "knime" else "utf-8").replace("ISO-8859-1", "UTF-8")


@functools.cache
def cases() -> list[tuple[str, str, espalier.Model, list[dict[str, Any]]]]:
    """Name, text, model and rows of each document, and of 60 with other strategies, operators, values and fields."""
    found = [(name, text_of(name), imported(name), rows_of(name, imported(name), 300)) for name in JUDGED]
    for name, text in mutations({name: text_of(name) for name in JUDGED}, seed=1):
        if len(found) == len(JUDGED) + 60:
            return found
        try:
            model = espalier.from_pmml(text.encode(), missing=JUDGED[name][1])
        except espalier.DocumentError:
            continue
        found.append((name, text, model, rows_of(name, model, 60)))
    raise AssertionError


@functools.cache
def judged() -> list[Any]:
    """The answers of jpmml-evaluator: one process for all documents, since Java starts slowly."""
    given = []
    for name, text, model, rows in cases():
        names = [feature.name for feature in model.schema.attributes]
        cells = [[row.get(each) for each in names] for row in rows]
        given.append({"text": text, "names": names, "rows": cells, "outputs": JUDGED[name][0]})
    done = subprocess.run(
        [str(PYTHON), str(JUDGE), "jpmml"], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [each["jpmml"] for each in json.loads(done.stdout)]


def check(model: espalier.Model, rows: list[dict[str, Any]], found: Any) -> None:
    assert isinstance(found, list), found
    for row, outputs, prediction in zip(rows, found, espalier.predict(model, rows), strict=True):
        answer = prediction.value if prediction.label is None else prediction.label
        assert outputs[0] == answer, row
        shares = [share for _, share in prediction.distribution]
        assert all(math.isclose(*pair, abs_tol=1e-12) for pair in zip(outputs[1:], shares, strict=False)), row


@needs_judges
@pytest.mark.parametrize("name", JUDGED)
def test_a_document_answers_as_in_jpmml_evaluator(name) -> None:
    place = list(JUDGED).index(name)
    _, _, model, rows = cases()[place]
    check(model, rows, judged()[place])


@needs_judges
def test_a_document_with_other_strategies_and_operators_answers_as_in_jpmml_evaluator() -> None:
    for (_, _, model, rows), found in list(zip(cases(), judged(), strict=True))[len(JUDGED) :]:
        if isinstance(found, str):  # it asks for more than the standard does
            assert "Required attribute Node@defaultChild" in found
        else:
            check(model, rows, found)


def answers(model: espalier.Model, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (
            each.value if each.label is None else each.label,
            [pytest.approx(share, abs=1e-12) for _, share in each.distribution],
        )
        for each in espalier.predict(model, predicted_rows(model, rows))
    ]


@needs_reference
@pytest.mark.parametrize("name", NAMED_MODELS)
def test_what_is_exported_and_imported_gives_the_same_answers(name) -> None:
    check_round_trip(NAMED_MODELS[name]())


def test_any_tree_that_is_exported_and_imported_gives_the_same_answers() -> None:
    for model in drawn_models():
        check_round_trip(model)


def check_round_trip(model: espalier.Model) -> None:
    read = espalier.from_pmml(espalier.export_model(model, "pmml").encode())
    rows = boundary_rows(model)
    assert answers(read, rows) == answers(model, rows)
    assert [feature.name for feature in read.schema.features] == [feature.name for feature in model.schema.features]


def test_the_leaves_of_an_imported_tree_have_their_numbers() -> None:
    model = hostile_model()
    read = espalier.from_pmml(espalier.export_model(model, "pmml").encode())
    assert read.tree.parent.tolist() == model.tree.parent.tolist()
    assert read.tree.test.tolist() == model.tree.test.tolist()
    assert read.tree.fallback.tolist() == model.tree.fallback.tolist()


def test_a_number_of_rows_beyond_the_integers_of_a_document_is_limited() -> None:
    text = re.sub('recordCount="[^"]*"', 'recordCount="1e200"', text_of("rpart"))
    assert espalier.from_pmml(text.encode()).training.n_rows == 2**53


def test_labels_keep_their_types() -> None:
    for labels in ((7, -1, 0), (0.5, 1e300), (2**53, 1)):
        read = espalier.from_pmml(espalier.export_model(typed_model(labels), "pmml").encode())
        assert read.schema.classes == labels
        assert list(map(type, read.schema.classes)) == list(map(type, labels))


def test_a_missing_value_without_an_answer_is_refused_unless_the_heaviest_branch_is_asked_for() -> None:
    with pytest.raises(
        espalier.DocumentError, match=r"line 32, column 5: SimplePredicate: a missing value of 'petal width"
    ):
        espalier.from_pmml(document("sklearn_iris"))
    assert "down the heaviest branch" in imported("sklearn_iris").notes[1]


def test_a_document_tells_who_wrote_it() -> None:
    assert imported("rpart").notes[0] == "imported from PMML 4.4, written by SoftwareAG PMML Generator 2.5.2"


TREE = """<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
<DataDictionary><DataField name="x" optype="continuous" dataType="double"/>
<DataField name="k" optype="categorical" dataType="string"><Value value="a"/><Value value="b"/></DataField>
<DataField name="y" optype="categorical" dataType="string"><Value value="no"/><Value value="yes"/></DataField>
</DataDictionary>
<TreeModel functionName="classification" missingValueStrategy="defaultChild" noTrueChildStrategy="returnLastPrediction">
<MiningSchema><MiningField name="x"/><MiningField name="k"/><MiningField name="y" usageType="target"/></MiningSchema>
<Node id="0" score="no" defaultChild="1"><True/>
<Node id="1" score="no"><SimplePredicate field="x" operator="lessOrEqual" value="1"/></Node>
<Node id="2" score="yes"><SimplePredicate field="x" operator="greaterThan" value="1"/></Node>
</Node></TreeModel></PMML>"""
SECOND = '<SimplePredicate field="x" operator="greaterThan" value="1"/>'
REFUSED = {
    "two dividing strategies": ('="defaultChild" no', '="weightedConfidence" no', "missingValueStrategy weightedConf"),
    "another strategy": (
        '="defaultChild" no',
        '="aggregateNodes" no',
        "line 6, column 1: TreeModel: missingValueStrategy",
    ),
    "another model": ("TreeModel", "NeuralNetwork", "NeuralNetwork: cannot be imported within PMML"),
    "an ensemble": ("TreeModel", "MiningModel", "MiningModel: cannot be imported within PMML"),
    "another function": ('"classification"', '"clustering"', "functionName must be"),
    "a rescaled answer": (
        '<Node id="0"',
        '<Targets><Target/></Targets><Node id="0"',
        "Target: cannot be imported within Targets",
    ),
    "an equation": ("<True/>", "<True/><Regression/>", "line 8, column 49: Regression: cannot be imported within Node"),
    "a transformation": (
        "<Header/>",
        "<TransformationDictionary><DerivedField/></TransformationDictionary>",
        "DerivedField",
    ),
    "an unknown field": ('field="x" operator="g', 'field="z" operator="g', "tests 'z', which is not an active field"),
    "an operator": ("greaterThan", "near", "needs a value and an operator, one of equal"),
    "no number": ('"1"/></Node>\n<Node id="2"', '"1_0"/></Node>\n<Node id="2"', "needs a finite number"),
    "an order": ('field="x" operator="g', 'field="k" operator="g', "whose categories have no order"),
    "a gap": ("returnLastPrediction", "returnNullPrediction", None),
    "gaps": ('lessOrEqual" value="1"', 'lessOrEqual" value="0"', None),
    "no default": (' defaultChild="1"', "", "a missing value of 'x' has no answer here"),
    "an unknown default": (' defaultChild="1"', ' defaultChild="9"', "a missing value of 'x' has no answer here"),
    "several fields": (
        SECOND,
        f'<CompoundPredicate booleanOperator="and">{SECOND}<SimplePredicate field="k" operator="equal" value="a"/>'
        "</CompoundPredicate>",
        "tests several fields at once",
    ),
    "no predicate": (SECOND, "", "line 10, column 1: Node: needs one predicate"),
    "outliers": ('<MiningField name="x"', '<MiningField name="x" outliers="asExtremeValues"', "outliers are replaced"),
    "two optypes": (
        '<MiningField name="x"',
        '<MiningField name="x" optype="categorical"',
        "its optype is continuous in the DataDictionary and categorical in the MiningSchema",
    ),
    "replaced invalid values": (
        '<MiningField name="x"',
        '<MiningField name="x" invalidValueTreatment="asValue"',
        "invalidValueTreatment asValue cannot be imported",
    ),
    "a date": (
        'name="x" optype="continuous" dataType="double"',
        'name="x" optype="continuous" dataType="date"',
        "date",
    ),
    "a computed output": (
        '<Node id="0"',
        '<Output><OutputField name="profit" feature="transformedValue"/></Output><Node id="0"',
        "'profit' is computed from the answer",
    ),
    "a negative count": ('<Node id="0"', '<Node recordCount="-1" id="0"', "recordCount must be a number from 0 to"),
    "another namespace": (
        "http://www.dmg.org/PMML-4_4",
        "http://example.org/",
        "in the namespace 'http://example.org/'; legal namespaces begin with http://www.dmg.org/PMML-",
    ),
    "a version": ('version="4.4"', 'version="2.1"', "a version 3 or 4"),
    "an entity": (
        "<PMML",
        '<!DOCTYPE PMML [<!ENTITY a "b">]><PMML',
        "line 1, column 16: the document must have no doc",
    ),
    "an unknown entity": ("<Header/>", "<Header/>&a;", "not well-formed XML: line 1, column 66: undefined entity"),
    "two models": ("<TreeModel", "<RuleSetModel/><TreeModel", "must have one TreeModel or RuleSetModel"),
    "two trees": ("<TreeModel", "<TreeModel/><TreeModel", "TreeModel: must be in PMML only once"),
    "two roots": (
        "</TreeModel>",
        '<Node id="9" score="a"><True/></Node></TreeModel>',
        "must be in TreeModel only once",
    ),
    "a field mined twice": (
        "<MiningSchema>",
        '<MiningSchema><MiningField name="x" missingValueReplacement="1"/>',
        "MiningField: there is another field of this name",
    ),
}
RULES = (
    TREE[: TREE.index("<Node")]
    .replace("TreeModel", "RuleSetModel")
    .replace(' missingValueStrategy="defaultChild" noTrueChildStrategy="returnLastPrediction"', "")
    + '<RuleSet defaultScore="no"><RuleSelectionMethod criterion="firstHit"/>{}</RuleSet></RuleSetModel></PMML>'
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_with_its_place(name) -> None:
    given, changed, reason = REFUSED[name]
    assert given in TREE
    text = TREE.replace(given, changed)
    if reason is None:  # the gap is answered by the node itself, or does not exist
        assert espalier.from_pmml(text.encode()).tree.n_leaves >= 2
        return
    with pytest.raises(espalier.DocumentError, match=reason):
        espalier.from_pmml(text.encode())


def test_values_without_an_answer_are_refused() -> None:
    text = TREE.replace("returnLastPrediction", "returnNullPrediction").replace('l" value="1"', 'l" value="0"')
    with pytest.raises(espalier.DocumentError, match="some values of 'x' match no child"):
        espalier.from_pmml(text.encode())


def test_surrogates_of_one_child_only_are_refused() -> None:
    first, _, second = document("rpart").decode().rpartition('booleanOperator="surrogate"')
    for operator in ("and", "or", "xor"):
        with pytest.raises(espalier.DocumentError, match="two children with the same fields in order"):
            espalier.from_pmml(f'{first}booleanOperator="{operator}"{second}'.encode())


def test_a_category_that_is_not_listed_must_go_where_a_missing_value_goes() -> None:
    as_is = TREE.replace('<MiningField name="k"', '<MiningField name="k" invalidValueTreatment="asIs"')
    for value, is_kept in (("a", False), ("b", True)):
        first = f'<SimplePredicate field="k" operator="equal" value="{value}"/>'
        other = f'<SimplePredicate field="k" operator="notEqual" value="{value}"/>'
        text = as_is.replace(SECOND, other if value == "a" else first)
        text = text.replace(
            '<SimplePredicate field="x" operator="lessOrEqual" value="1"/>', first if value == "a" else other
        )
        if is_kept:
            [missing, unseen] = espalier.predict(espalier.from_pmml(text.encode()), [{}, {"k": "new"}])
            assert missing.label == unseen.label == "no"
        else:
            with pytest.raises(espalier.DocumentError, match="must go to the same branch"):
                espalier.from_pmml(text.encode())


def counted(*counts: int) -> espalier.Model:
    """The model of `TREE` with these numbers of rows at its nodes."""
    text = TREE
    for number, count in enumerate(counts):
        text = text.replace(f'<Node id="{number}"', f'<Node id="{number}" recordCount="{count}"')
    return espalier.from_pmml(text.encode())


def test_a_leaf_without_rows_has_the_whole_share_of_its_class() -> None:
    model = counted(10, 10, 0)
    low, high = espalier.predict(model, [{"x": 0}, {"x": 2}])
    assert (low.label, low.support, high.label, high.support) == ("no", 10, "yes", 1)
    assert high.distribution == (("no", 0.0), ("yes", 1.0))


def test_where_no_leaf_has_rows_each_has_the_whole_share_of_its_class() -> None:
    for model in (counted(0, 0, 0), espalier.from_pmml(TREE.encode())):
        low, high = espalier.predict(model, [{"x": 0}, {"x": 2}])
        assert (low.distribution, high.distribution) == ((("no", 1.0), ("yes", 0.0)), (("no", 0.0), ("yes", 1.0)))


def test_the_number_of_a_node_without_rows_is_the_mean_of_its_leaves() -> None:
    text = TREE.replace("classification", "regression").replace('"no"', '"5"').replace('"yes"', '"7"')
    text = text.replace(
        'name="y" optype="categorical" dataType="string"', 'name="y" optype="continuous" dataType="double"'
    )
    text = text.replace('<Value value="5"/><Value value="7"/>', "").replace('id="0" score="5"', 'id="0"')
    for counts in ((0, 0, 0), (0, 0, 4)):
        counted_text = text
        for number, count in enumerate(counts):
            counted_text = counted_text.replace(f'<Node id="{number}"', f'<Node id="{number}" recordCount="{count}"')
        model = espalier.from_pmml(counted_text.encode())
        [answer] = espalier.predict(model, [{}], missing="last_prediction")
        assert answer.value == (7 if any(counts) else (5 + 7) / 2)


def test_a_rule_without_rows_has_the_whole_share_of_its_class() -> None:
    text = re.sub(r' recordCount="[^"]*"|<ScoreDistribution[^>]*/>', "", text_of("rules"))
    model = espalier.from_pmml(text.replace("<SimpleRule ", '<SimpleRule recordCount="0" ').encode())
    assert {rule.weight for rule in model.rules.rules} == {1.0}
    for answer in espalier.predict(model, rows_of("rules", imported("rules"), 20)):
        assert dict(answer.distribution)[answer.label] == 1.0


def test_the_answer_to_a_missing_value_adds_no_rows_to_its_node() -> None:
    text = TREE.replace("defaultChild", "lastPrediction", 1)
    for number, count in enumerate((9, 6, 3)):
        text = text.replace(f'<Node id="{number}"', f'<Node id="{number}" recordCount="{count}"')
    model = espalier.from_pmml(text.encode())
    answers = espalier.predict(model, [{}, {"x": 0}, {"x": 2}])
    assert [(each.label, each.support) for each in answers] == [("no", 9), ("no", 6), ("yes", 3)]
    assert model.tree.weight[0] == 9


DICTIONARY_X = '<DataField name="x" optype="continuous" dataType="double"'


def test_a_number_that_means_missing_is_missing_in_a_converted_field_too() -> None:
    number = f'{DICTIONARY_X}><Value value="999" property="missing"/></DataField>'
    converted = (
        '<LocalTransformations><DerivedField name="narrow" optype="continuous" dataType="float">'
        '<FieldRef field="x"/></DerivedField></LocalTransformations>'
    )
    text = TREE.replace(f"{DICTIONARY_X}/>", number)
    narrow = text.replace('field="x"', 'field="narrow"').replace("</MiningSchema>", f"</MiningSchema>{converted}")
    for each in (text, narrow):
        model = espalier.from_pmml(each.encode())
        high, missing, given = espalier.predict(model, [{"x": 998}, {}, {"x": 999}])
        assert high.label != missing.label == given.label


def test_a_number_outside_an_interval_is_answered_with_a_note() -> None:
    interval = f'{DICTIONARY_X}><Interval closure="closedClosed" leftMargin="0" rightMargin="9"/></DataField>'
    text = TREE.replace(f"{DICTIONARY_X}/>", interval)
    assert "a number outside the Interval" in " ".join(espalier.from_pmml(text.encode()).notes)
    as_is = text.replace('<MiningField name="x"', '<MiningField name="x" invalidValueTreatment="asIs"')
    assert "Interval" not in " ".join(espalier.from_pmml(as_is.encode()).notes)


def test_a_text_that_means_missing_cannot_be_a_category_of_an_open_field() -> None:
    text = TREE.replace('<MiningField name="k"', '<MiningField name="k" invalidValueTreatment="asIs"')
    text = text.replace('<Value value="a"/>', '<Value value="a"/><Value value="none" property="missing"/>', 1)
    text = text.replace(SECOND, '<SimplePredicate field="k" operator="equal" value="none"/>')
    with pytest.raises(espalier.DocumentError, match="lists missing or invalid categories"):
        espalier.from_pmml(text.encode())


def test_a_message_is_short_whatever_the_names_of_a_document() -> None:
    for name in ("a" * 10**6, f'a xmlns="{"b" * 10**6}"'):
        with pytest.raises(espalier.DocumentError) as raised:
            espalier.from_pmml(TREE.replace("<Header/>", f"<{name}/>").encode())
        assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252", "us-ascii"])
def test_a_document_is_read_in_the_encoding_that_it_names(encoding) -> None:
    name = "x" if encoding == "us-ascii" else "größe"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + TREE.replace('"x"', f'"{name}"')
    assert espalier.from_pmml(text.encode(encoding)).schema.features[0].name == name


NO_PMML = [b"", b"{}", b"\0", b"<a>", b"<Extension/>", b'<?xml version="1.0" encoding="rot13"?><a/>']


@pytest.mark.parametrize("content", NO_PMML)
def test_what_is_no_pmml_is_refused(content) -> None:
    with pytest.raises(espalier.DocumentError):
        espalier.from_pmml(content)


def test_a_tree_of_numbers_says_that_their_spread_is_unknown() -> None:
    numbers, classes = (espalier.from_pmml(text_of(name).encode()) for name in ("rpart", "partykit"))
    assert espalier.predict(numbers, [{}])[0].std == 0
    spread = "the document does not give the spread of the rows: standard deviations are shown as 0"
    assert (spread in numbers.notes, spread in classes.notes) == (True, False)
