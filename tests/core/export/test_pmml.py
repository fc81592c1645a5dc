"""Exported PMML answers as the model does: judged by jpmml-evaluator and PMML4S, which read it in other ways."""

import functools
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import espalier
from espalier import Feature, FeatureKind, Model, Schema
from espalier.data.labels import label_text
from tests.core.export.consumers import Answer, different
from tests.core.export.models import dated_model, large_model, reference_model
from tests.core.export.pmml_models import NAMED_MODELS, pmml_models
from tests.core.export.rows import boundary_rows, predicted_rows
from tests.core.planted import MIXED, A, Ask, B, Cut, plant
from tests.factories import needs_reference

PYTHON = os.environ.get("ESPALIER_TEST_JUDGES")
JUDGE = Path(__file__).with_name("pmml_judge.py")
JUDGES = ("jpmml", "pmml4s")
ONLY_JPMML = ("doubles", "large")  # PMML4S compares no categories that are doubles with a fraction or beyond 32 bits
needs_judges = pytest.mark.skipif(PYTHON is None, reason="ESPALIER_TEST_JUDGES names no Python with the judges of PMML")
pytestmark = needs_reference


def rows_of(name: str, model: Model) -> list[dict[str, Any]]:
    return boundary_rows(model, n_rows=40) if name.startswith("drawn") else boundary_rows(model)


def document(name: str, model: Model) -> dict[str, Any]:
    names = [feature.name for feature in model.schema.attributes]
    shares = [f"espalier_probability({label_text(label)})" for label in model.schema.classes]
    return {
        "text": espalier.export_model(model, "pmml"),
        "names": names,
        "rows": [[row.get(each) for each in names] for row in rows_of(name, model)],
        "outputs": ["espalier_label" if model.schema.classes else "espalier_value", "espalier_leaf", *shares],
    }


@functools.cache
def judged() -> dict[str, dict[str, Any]]:
    """Return the answers of each judge to each model: one process for all, since Java starts slowly."""
    documents = json.dumps([document(name, model) for name, model in pmml_models().items()])
    done = subprocess.run(
        [str(PYTHON), str(JUDGE), *JUDGES], input=documents, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(pmml_models(), json.loads(done.stdout), strict=True))


def as_answer(model: Model, outputs: list[Any]) -> Answer:
    label, leaf, *shares = outputs
    if model.schema.classes and not isinstance(label, str | bool):  # Java's numbers have other types
        label = next(each for each in model.schema.classes if each == label)
    return label, int(leaf), tuple(shares)


def expected(name: str, model: Model) -> list[Answer]:
    return [
        (each.value if each.label is None else each.label, each.leaf, tuple(share for _, share in each.distribution))
        for each in espalier.predict(model, predicted_rows(model, rows_of(name, model)))
    ]


def check(judge: str, name: str) -> None:
    model, found = pmml_models()[name], judged()[name][judge]
    assert isinstance(found, list), found
    assert different([as_answer(model, outputs) for outputs in found], expected(name, model)) == [], name


@needs_judges
@pytest.mark.parametrize(
    ("judge", "name"),
    [(judge, name) for name in NAMED_MODELS for judge in JUDGES if judge == "jpmml" or name not in ONLY_JPMML],
)
def test_every_row_gets_the_answer_of_the_model(judge, name) -> None:
    check(judge, name)


@needs_judges
@pytest.mark.parametrize("judge", JUDGES)
def test_any_tree_answers_alike(judge) -> None:
    for name in pmml_models():
        if name.startswith("drawn"):
            check(judge, name)


def test_a_document_names_the_model_document_and_the_version_it_was_written_from() -> None:
    text = espalier.export_model(reference_model("golf c45"), "pmml", missing="majority")
    digest = hashlib.sha256(espalier.to_json(reference_model("golf c45"))).hexdigest()
    root = ElementTree.fromstring(text)  # noqa: S314 - our own text
    header = root.find("{*}Header")
    assert digest in header.get("description")
    assert digest in text.partition("<PMML")[0]
    assert header.find("{*}Application").attrib == {"name": "Espalier", "version": espalier.__version__}


def test_five_thousand_leaves_are_one_document_in_ascii() -> None:
    text = espalier.export_model(large_model(), "pmml")
    assert text.count("<Node ") == text.count("</Node>") == 9_999
    assert text.isascii()


def test_no_date_is_missing_because_its_seconds_are_a_listed_number() -> None:
    root = ElementTree.fromstring(espalier.export_model(dated_model(), "pmml"))  # noqa: S314 - our own text
    fields = {each.get("name"): list(each.iterfind("{*}Value")) for each in root.iterfind(".//{*}DataField")}
    assert [value.attrib for value in fields["x"]] == [{"value": "0.0", "property": "missing"}]
    assert fields["when"] == []


def test_what_pmml_cannot_express_is_refused_with_the_reason() -> None:
    control = Schema((Feature("a\x01b", FeatureKind.NUMERIC), MIXED.features[-1]))
    taken = Schema((Feature("espalier_leaf", FeatureKind.NUMERIC), MIXED.features[-1]))
    mixed = Schema((Feature("x", FeatureKind.NOMINAL, categories=(1, "1", True)), MIXED.features[-1]))
    for model, reason in (
        (plant(control, Cut(0, 0.5, (A, B), 0)), "control character"),
        (plant(taken, Cut(0, 0.5, (A, B), 0)), "'espalier_leaf' has a name reserved for predictions: espalier_"),
        (plant(mixed, Ask(0, (0, 1, 1), (A, B), 0)), "different types"),
        (plant(MIXED, Cut(0, 0.5, (A, B), -1)), "export with missing='majority'"),
        (reference_model("cpu m5"), "linear equations"),
    ):
        with pytest.raises(espalier.NotApplicable, match=reason):
            espalier.export_model(model, "pmml")
