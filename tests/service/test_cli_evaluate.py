import json
from pathlib import Path

import pytest

from service.cli import main
from tests.factories import ROOT

DRUGS = ROOT / "service" / "examples" / "drug200.csv"


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["evaluate", str(DRUGS), "--target", "Drug", "--folds", "5", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_the_candidates_are_listed_with_the_best_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    lines = evaluated(capsys, "--candidate", "cart max_depth=1", "--candidate", "cart")

    assert [line.split()[0] for line in lines[1:4]] == ["candidate", "cart", "cart"]
    assert lines[3].endswith("best")
    assert "cart has the best accuracy" in lines[4]
    assert "the difference to cart max_depth=1 means something" in lines[4]


def test_without_candidates_the_published_ways_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    names = " ".join(evaluated(capsys))

    assert 'cart pruning={"method":"reduced_error"}' in names
    assert "c45 pruning=null" in names


def test_json_gives_a_line_a_share_of_noise(capsys: pytest.CaptureFixture[str]) -> None:
    lines = evaluated(capsys, "--candidate", "cart", "--noise", "0", "--noise", "0.2", "--json")

    documents = [json.loads(line) for line in lines]
    assert [document["label_noise"] for document in documents] == [0.0, 0.2]
    clean, noisy = (document["candidates"][0]["figures"]["accuracy"]["mean"] for document in documents)
    assert noisy < clean


def test_a_declaration_beside_the_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.csv").write_text("x,y\n" + "1,a\n2,b\n" * 20)
    (tmp_path / "small.schema.json").write_text(json.dumps({"target": "y"}))

    assert main(["evaluate", str(tmp_path / "small.csv"), "--folds", "2", "--candidate", "cart"]) == 0

    assert "40 rows, classification, 2 folds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--candidate", "catr"], "preset: must be one of"),
        (["--candidate", "cart max_dept=3"], "max_dept: the training configuration has no field"),
        (["--folds", "1"], "folds: must be from 2 to 200"),
        (["--folds", "3", "--holdout", "0.3"], "give either --folds or --holdout"),
        (["--holdout", "1.5"], "fraction: must be a number above 0 and below 1"),
        (["--noise", "2"], "label_noise: must be a share"),
    ],
)
def test_what_is_not_legal_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["evaluate", str(DRUGS), "--target", "Drug", *arguments]) == 2

    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1
