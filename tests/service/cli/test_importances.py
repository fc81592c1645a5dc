"""The command ``importances``: by the tests of a model, and by what it loses on rows."""

import json
from pathlib import Path

import pytest

import espalier
from service.cli.__main__ import main

ROWS = "x,noise,y\n" + "".join(f"{x},{x * 7 % 5},{'yes' if x > 9 else 'no'}\n" for x in range(20))


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "rows.csv").write_text(ROWS)
    train = ["train", str(tmp_path / "rows.csv"), "--target", "y", "--out", str(tmp_path / "model.json")]
    assert main(train) == 0
    capsys.readouterr()
    return tmp_path


def test_without_rows_each_attribute_has_its_share_of_the_gains(folder: Path, capsys) -> None:
    assert main(["importances", str(folder / "model.json")]) == 0
    assert capsys.readouterr().out == "attribute  importance\nx                   1\nnoise               0\n"


def test_with_rows_it_is_said_besides_what_is_lost(folder: Path, capsys) -> None:
    arguments = [str(folder / "model.json"), str(folder / "rows.csv"), "--repeats", "3", "--seed", "2", "--json"]
    assert main(["importances", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)["attributes"]
    model = espalier.from_json((folder / "model.json").read_bytes())
    dataset = espalier.dataset_from_csv(ROWS, like=model.schema)
    lost = espalier.permutation_importances(model, dataset, repeats=3, seed=2)
    assert found == [
        {"attribute": "x", "importance": 1.0, "lost": lost["x"].mean, "deviation": lost["x"].deviation},
        {"attribute": "noise", "importance": 0.0, "lost": 0.0, "deviation": 0.0},
    ]
    assert lost["x"].mean > 0


def test_of_a_list_of_rules_only_the_loss_is_known(folder: Path, capsys) -> None:
    rules = str(folder / "rules.json")
    assert main(["rules", str(folder / "model.json"), "--out", rules]) == 0
    capsys.readouterr()
    assert main(["importances", rules]) == 2
    assert "list of rules" in capsys.readouterr().err
    assert main(["importances", rules, str(folder / "rows.csv")]) == 0
    assert capsys.readouterr().out.split("\n")[0].split() == ["attribute", "lost", "deviation"]


def test_what_says_how_to_shuffle_needs_rows(folder: Path, capsys) -> None:
    assert main(["importances", str(folder / "model.json"), "--seed", "1"]) == 2
    assert "needs DATA" in capsys.readouterr().err


def test_help_names_every_measure(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["importances", "--help"])
    said = capsys.readouterr().out.replace(",", " ").split()
    assert {measure for legal in espalier.LOSS_MEASURES.values() for measure in legal} <= set(said)


def test_a_measure_of_the_other_task_is_refused_with_those_that_there_are(folder: Path, capsys) -> None:
    arguments = [str(folder / "model.json"), str(folder / "rows.csv"), "--measure", "rmse"]
    assert main(["importances", *arguments]) == 2
    assert "\nespalier: --measure: must be one of accuracy" in capsys.readouterr().err  # after a notice on the column x


def test_arguments_that_are_not_legal_are_named_not_the_file_of_the_rows(folder: Path, capsys) -> None:
    arguments = [str(folder / "model.json"), str(folder / "rows.csv"), "--repeats", "0", "--seed", "-1"]
    assert main(["importances", *arguments]) == 2
    _notice, *errors = capsys.readouterr().err.splitlines()  # the column x could be an identifier
    assert [line.split(": must be a whole number from ")[0] for line in errors] == [
        "espalier: --repeats",
        "espalier: --seed",
    ]
