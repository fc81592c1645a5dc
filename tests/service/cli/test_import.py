"""`espalier import`: models of other systems, written as model documents."""

import pickle

import pytest
from sklearn.tree import DecisionTreeClassifier

import espalier
from service.cli.__main__ import main
from tests.factories import ROOT

DOCUMENTS = ROOT / "tests" / "core" / "importing" / "pmml"


def test_import_writes_a_document_that_predicts(tmp_path, capsys) -> None:
    out = tmp_path / "model.json"
    assert main(["import", str(DOCUMENTS / "rpart.pmml"), "--out", str(out)]) == 0
    assert "written by SoftwareAG" in capsys.readouterr().err
    [answer] = espalier.predict(espalier.from_json(out.read_bytes()), [{"cylinders": "4"}])
    assert answer.value == 29.2554455445545


def test_without_a_file_the_document_is_printed(capsysbinary) -> None:
    assert main(["import", str(DOCUMENTS / "sklearn_iris.pmml"), "--missing", "majority"]) == 0
    assert espalier.from_json(capsysbinary.readouterr().out).tree.n_leaves == 9


def test_a_tree_of_scikit_learn_is_read_from_skops(tmp_path, capsysbinary) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    file = tmp_path / "tree.skops"
    skops.dump(DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], ["no", "no", "yes"]), file)
    assert main(["import", str(file), "--target", "play"]) == 0
    model = espalier.from_json(capsysbinary.readouterr().out)
    assert model.schema.features[-1].name == "play"
    assert [answer.label for answer in espalier.predict(model, [{"x0": 2.0}, {"x0": 2.6}])] == ["no", "yes"]


def test_an_option_that_does_not_apply_is_refused(capsys) -> None:
    for file, option, legal in (("rpart.pmml", "--target", "--missing"), ("tree.skops", "--missing", "--target")):
        assert main(["import", str(DOCUMENTS / file), option, "majority"]) == 2
        assert f"{option} does not apply to such a file; {legal} does" in capsys.readouterr().err


def test_what_cannot_be_imported_is_refused_with_the_reason(tmp_path, capsys) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text("<PMML")
    dumped = tmp_path / "tree.pkl"
    dumped.write_bytes(pickle.dumps([]))
    for file, reason in (
        (DOCUMENTS / "sklearn_iris.pmml", "import with missing='majority'"),
        (bad, "not well-formed XML: line 1"),
        (dumped, "a pickle is never read"),
        (tmp_path / "none.pmml", "there is no such file"),
    ):
        assert main(["import", str(file)]) == 2
        assert reason in capsys.readouterr().err
