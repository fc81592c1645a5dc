"""Exported decision tables of DMN answer as the model does: judged by pyDMNrules."""

import functools
import hashlib
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import espalier
from espalier import Feature, FeatureKind, Model, Role, Schema
from espalier.export import cases
from espalier.model.rules import RuleList
from tests.core.counted_calls import n_calls
from tests.core.export.consumers import Answer, different
from tests.core.export.models import alias_model, dated_model, large_model, reference_model
from tests.core.export.pmml_models import pmml_models
from tests.core.export.rows import boundary_rows, predicted_rows
from tests.core.planted import MIXED, A, Ask, B, C, Cut, Known, plant
from tests.factories import needs_reference

PYTHON = os.environ.get("ESPALIER_TEST_JUDGES")
JUDGE = Path(__file__).with_name("dmn_judge.py")
NAMESPACE = {"dmn": "https://www.omg.org/spec/DMN/20191111/MODEL/"}
X = Feature("x", FeatureKind.NUMERIC)


@functools.cache
def dmn_models() -> dict[str, Model]:
    """Return the models of the judges of PMML that DMN can express, some of them with another strategy."""
    models = {}
    for name, model in pmml_models().items():
        if not isinstance(model.body, RuleList) and espalier.applicable_exports(model)["dmn"] is not None:
            model = espalier.with_missing_strategy(model, "majority")  # noqa: PLW2901 - the model that is exported
        if espalier.applicable_exports(model)["dmn"] is None:
            models[name] = model
    # The judge reads 1,000 rules a second and asks each of a row in turn.
    del models["5,000 leaves"]
    return models | {"500 leaves": large_model(500)}


def rows_of(name: str, model: Model) -> list[dict[str, Any]]:
    """Return rows of what the judge reads: numbers without exponents, texts without quotes."""
    n_leaves = 1 if isinstance(model.body, RuleList) else model.body.n_leaves
    n_rows = 12 if n_leaves > 100 else 20 if name.startswith("drawn") else 30
    rows = boundary_rows(model, n_rows=n_rows)[: 2 * n_rows]
    return [{attribute: read_by_judge(cell) for attribute, cell in row.items()} for row in rows]


def read_by_judge(cell: Any) -> Any:
    if isinstance(cell, str):
        return cell if cell.isprintable() and not set(cell) & {'"', "\\"} else None
    if isinstance(cell, float):
        return cell if math.isfinite(cell) and "e" not in repr(cell) else None
    return cell


def document(name: str, model: Model) -> dict[str, Any]:
    text = espalier.export_model(model, "dmn")
    assert isinstance(text, str)
    inputs = ElementTree.fromstring(text.encode()).iterfind("dmn:inputData", NAMESPACE)  # noqa: S314 - our own
    names = {each.get("label"): each.get("name") for each in inputs}
    return {
        "text": text,
        "rows": [{names[attribute]: cell for attribute, cell in row.items()} for row in rows_of(name, model)],
        "outputs": ["label", "probabilities", "leaf"] if model.schema.classes else ["value", "leaf"],
    }


@functools.cache
def judged() -> dict[str, Any]:
    """Return the answers to each model."""
    documents = json.dumps([document(name, model) for name, model in dmn_models().items()])
    done = subprocess.run([str(PYTHON), str(JUDGE)], input=documents, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(dmn_models(), json.loads(done.stdout), strict=True))


def as_answer(model: Model, outputs: Any) -> Answer:
    if isinstance(outputs, str):
        return outputs, -1, ()
    label, *shares, leaf = outputs
    if model.schema.classes and not isinstance(label, str | bool):  # the judge's numbers are doubles
        label = next(each for each in model.schema.classes if each == label)
    return label, int(leaf), tuple(*shares)


def expected(model: Model, rows: list[dict[str, Any]]) -> list[Answer]:
    return [
        (each.value if each.label is None else each.label, each.leaf, tuple(share for _, share in each.distribution))
        for each in espalier.predict(model, predicted_rows(model, rows))
    ]


def labelled(*attributes: Feature, classes: tuple = ("a", "b", "c"), missing_values: tuple = ("?",)) -> Schema:
    return Schema((*attributes, Feature("y", FeatureKind.NOMINAL, Role.TARGET, classes)), missing_values=missing_values)


def cells_of(model: Model) -> list[str]:
    """Return the text of every cell of the inputs."""
    text = espalier.export_model(model, "dmn")
    assert isinstance(text, str)
    document = ElementTree.fromstring(text.encode())  # noqa: S314 - our own
    return [
        str(each.findtext("dmn:text", None, NAMESPACE)) for each in document.iterfind(".//dmn:inputEntry", NAMESPACE)
    ]


@needs_reference
@pytest.mark.skipif(PYTHON is None, reason="ESPALIER_TEST_JUDGES names no Python with the judges")
def test_every_row_gets_the_answer_of_the_model() -> None:
    answers = judged()
    assert len(answers) >= 60
    for name, model in dmn_models().items():
        assert not isinstance(answers[name], str), (name, answers[name])
        found = [as_answer(model, each) for each in answers[name]]
        assert different(found, expected(model, rows_of(name, model))) == [], name


@pytest.mark.parametrize(
    ("root", "missing_values", "expected_cells"),
    [
        (Cut(0, 0.5, (A, B), 0), ("?",), ["<= 0.5, null", "> 0.5"]),
        (
            Cut(0, 0.5, (Cut(0, -1e-7, (A, B), 1), C), 0),
            ("?",),
            ["<= -0.0000001", "(-0.0000001..0.5]", "null", "> 0.5"],
        ),
        (Cut(0, 0.5, (A, B), 1), ("0.25", "7"), ["< 0.25", "(0.25..0.5]", "> 0.5, null, 0.25, 7"]),
        (Cut(0, 0.5, (A, B), 1), ("0.5",), ["< 0.5", "> 0.5, null, 0.5"]),
        (Known(0, (A, B)), ("-999",), ["null, -999", "not(null, -999)"]),
    ],
)
def test_a_cell_is_an_interval_or_a_list(root, missing_values, expected_cells) -> None:
    found = cells_of(plant(labelled(X, missing_values=missing_values), root))
    assert sorted(found) == sorted(expected_cells)


def test_inputs_have_names_that_every_engine_reads() -> None:
    names = ("a", "a-b", "a b", "in", "label", "1st", "größe")
    schema = labelled(*(Feature(name, FeatureKind.NUMERIC) for name in names))
    text = espalier.export_model(plant(schema, Cut(0, 0.5, (A, B), 0)), "dmn")
    assert isinstance(text, str)
    inputs = list(ElementTree.fromstring(text.encode()).iterfind("dmn:inputData", NAMESPACE))  # noqa: S314 - our own
    assert [each.get("label") for each in inputs] == list(names)
    assert [each.get("name") for each in inputs] == ["a", "a_b", "a_b_2", "_in", "label_2", "_1st", "gr__e"]


def test_names_that_become_alike_are_numbered_in_linear_time() -> None:
    def written(n_names: int) -> str:
        names = [chr(0x4E00 + place) for place in range(n_names)]
        model = plant(labelled(*(Feature(name, FeatureKind.NUMERIC) for name in names)), Cut(0, 0.5, (A, B), 0))
        text = espalier.export_model(model, "dmn")
        assert isinstance(text, str)
        return text

    inputs = ElementTree.fromstring(written(400).encode()).iterfind("dmn:inputData", NAMESPACE)  # noqa: S314 - our own
    assert [each.get("name") for each in inputs] == ["_", *(f"__{number}" for number in range(2, 401))]
    few, many = (n_calls(functools.partial(written, n_names), events=("call", "c_call")) for n_names in (400, 800))
    assert many < 2.5 * few  # four times, if every name is compared with all others


def test_a_test_with_a_branch_for_each_of_many_categories_is_written_in_linear_time() -> None:
    def write(form: str, n_categories: int) -> None:
        labels = tuple(f"category {number}" for number in range(n_categories))
        leaves = tuple((A, B, C)[number % 3] for number in range(n_categories))
        feature = Feature("x", FeatureKind.NOMINAL, categories=labels)
        model = plant(labelled(feature), Ask(0, tuple(range(n_categories)), leaves, 0))
        assert espalier.applicable_exports(model)[form] is None
        # Its own case, and the exceptions of the case of missing values.
        assert espalier.export_model(model, form).count("category 123") == 2, form

    for form in ("jdm", "dmn"):
        few, many = (n_calls(functools.partial(write, form, n), events=("call", "c_call")) for n in (400, 800))
        assert many < 2.5 * few, form


def test_no_date_is_missing_because_its_seconds_are_a_listed_number() -> None:
    found = cells_of(dated_model())
    numbers, dates = found[::2], found[1::2]
    assert numbers == ["< 0", "(0..0.5]", "> 0.5, null, 0", "> 0.5, null, 0"]
    assert dates == ["-", "-", "<= 0.5", "> 0.5, null"]


def test_a_text_that_is_listed_as_missing_stands_for_no_category() -> None:
    assert cells_of(alias_model()) == ['not("2")', '"2"']  # without "2.0"


def test_the_cells_of_a_table_are_limited(monkeypatch) -> None:
    both = plant(labelled(X, Feature("z", FeatureKind.NUMERIC)), Cut(0, 0.5, (A, Cut(1, 0.5, (B, C), 0)), 0))
    n_cells = len(cells_of(both))
    monkeypatch.setattr(cases, "MAX_CELLS", n_cells)
    assert espalier.applicable_exports(both)["dmn"] is None
    monkeypatch.setattr(cases, "MAX_CELLS", n_cells - 1)
    with pytest.raises(espalier.NotApplicable, match=f"cells each, and at most {n_cells - 1} cells are written"):
        espalier.export_model(both, "dmn")


def test_a_table_names_the_document_and_the_version_it_was_written_from() -> None:
    model = large_model()
    text = espalier.export_model(model, "dmn")
    assert isinstance(text, str)
    assert hashlib.sha256(espalier.to_json(model)).hexdigest() in text
    assert f"Espalier {espalier.__version__} " in text


def test_what_a_table_cannot_express_is_refused_with_the_reason() -> None:
    quoted = Feature("x", FeatureKind.NOMINAL, categories=('a "b"', "c", "d"))
    empty = Feature("x", FeatureKind.NOMINAL, categories=("", "c", "d"))
    mixed = Feature("x", FeatureKind.NOMINAL, categories=("1", True, "a"))
    ask = Ask(0, (0, 1, 2), (A, B, C), 0)
    # Each number between the cuts that means missing makes two rules of one, on each of the columns.
    wide = [Feature(f"x{place}", FeatureKind.NUMERIC) for place in range(17)]
    root: Any = A
    for place in range(17):
        root = Cut(place, 1.0, (root, B), 1)
    for model, reason in (
        (plant(MIXED, Cut(0, 0.5, (A, B), -1)), "export with missing='majority'"),
        (plant(labelled(quoted), ask), "a category of 'x' has a quote"),
        (plant(labelled(empty), ask), "a category of 'x' has no character"),
        (plant(labelled(mixed), ask), "different types"),
        (plant(labelled(X, classes=("a", "b\\", "c")), Cut(0, 0.5, (A, B), 0)), "a category of 'y' has a quote"),
        (plant(labelled(Feature("a\nb", FeatureKind.NUMERIC)), Cut(0, 0.5, (A, B), 0)), "the name 'a.nb' has a quote"),
        (plant(labelled(*wide, missing_values=("0.5",)), root), "it needs [0-9,]+ rules, and at most 100,000"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.export_model(model, "dmn")


@needs_reference
def test_equations_in_leaves_are_refused() -> None:
    with pytest.raises(espalier.NotApplicable, match="equations"):
        espalier.export_model(reference_model("cpu m5"), "dmn")
