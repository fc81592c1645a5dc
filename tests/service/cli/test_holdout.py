"""The rows that `espalier train` sets aside, in each form that Python and JSON have."""

import json
from pathlib import Path

import pytest

from service.cli.__main__ import main

DATA = "wind,play\n" + "weak,yes\nstrong,no\n" * 10


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "wind.csv").write_text(DATA)
    return tmp_path / "wind.csv"


def held_out(data: Path, holdout: str, capsys: pytest.CaptureFixture[str]) -> object:
    arguments = ["--target", "play", "--holdout", holdout, "--out", str(data.with_suffix(".json")), "--json"]
    assert main(["train", str(data), *arguments]) == 0
    return json.loads(capsys.readouterr().out)["holdout"]["n_rows"]


@pytest.mark.parametrize(
    ("holdout", "n_rows"),
    [
        ("0.3", 6),
        ('{"fraction": 0.4, "seed": 2}', 8),
        ('{"rows": [0, 3, 5]}', 3),
        ("{file}", 21),
        ('{"dataset": "{file}"}', 21),
    ],
)
def test_rows_are_set_aside_by_share_by_number_and_by_file(
    data: Path, holdout: str, n_rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    other = data.with_name("other.csv")
    other.write_text(DATA + "weak,no\n")
    assert held_out(data, holdout.replace("{file}", str(other)), capsys) == n_rows


@pytest.mark.parametrize(
    ("holdout", "said"),
    [
        ("1.5", "fraction: must be a number above 0 and below 1"),
        ('{"rows": [20]}', "holdout.rows: there are 20 rows, counted from 0"),
        ('{"rows": [1, 1]}', "rows: must be a list of different row numbers"),
        ('{"share": 0.3}', 'must be {"fraction": 0.3, "seed": 1, "stratified": true} or {"rows": [0, 5'),
        ("nothing.csv", "nothing.csv: there is no such file"),
        ("{file}", "holdout: is the training data itself: give other rows"),
        ('{"dataset": {"rows": [1]}}', 'holdout: must be {"fraction": 0.3'),
        ("1", "holdout.fraction: must be a number above 0 and below 1"),
        ("[0, 5]", 'holdout: must be {"fraction": 0.3'),
        ("", 'holdout: must be {"fraction": 0.3'),
        ("null", 'holdout: must be {"fraction": 0.3'),
        ("0", "holdout.fraction: must be a number above 0 and below 1"),
    ],
)
def test_what_cannot_be_set_aside_is_refused_with_what_can(
    data: Path, holdout: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    holdout = holdout.replace("{file}", str(data))
    assert main(["train", str(data), "--target", "play", "--holdout", holdout, "--out", str(data) + ".json"]) != 0
    assert said in capsys.readouterr().err


def test_a_class_that_the_held_out_rows_lack_is_told_by_train_and_evaluate(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text(DATA + "calm,maybe\n" * 3)
    asked = [str(data), "--target", "play", "--holdout", '{"rows": [0, 1]}']
    note = "no row is of the class 'maybe', so no figure shows how it is answered"
    assert main(["train", *asked, "--out", str(data.with_suffix(".json"))]) == 0
    assert f"note      held-out rows: {note}\n" in capsys.readouterr().out
    assert main(["evaluate", *asked]) == 0
    assert f"test rows: {note}\n" in capsys.readouterr().out


@pytest.mark.parametrize("stratified", ["true", "false"])
def test_a_share_to_prune_by_is_a_part_of_the_share_that_was_set_aside(
    data: Path, capsys: pytest.CaptureFixture[str], stratified: str
) -> None:
    model, pruned = str(data.with_suffix(".json")), str(data.parent / "pruned.json")
    drawn = f'{{"fraction": 0.6, "seed": 7, "stratified": {stratified}}}'
    assert main(["train", str(data), "--target", "play", "--holdout", drawn, "--out", model]) == 0
    capsys.readouterr()
    arguments = ["--method", "reduced_error", "--data", str(data), "--holdout", "0.3", "--out", pruned, "--json"]
    assert main(["prune", model, *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["trace"]["held_out_rows"] == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["train", "DATA", "--target", "play", "--set", "preset=c45", "--out", "x.json"],
            "preset=c45: the preset is chosen by another argument",
        ),
        (
            ["evaluate", "DATA", "--target", "play", "--candidate", "cart preset=c45"],
            "preset=c45: the preset is chosen by another argument",
        ),
        (
            ["prune", "MODEL", "--method", "rules", "--set", "method=x", "--out", "x.json"],
            "method=x: the method is chosen by another argument",
        ),
        (
            ["rules", "MODEL", "--prune", "pessimistic", "--data", "DATA", "--set", "method=x"],
            "method=x: the method is chosen by another argument",
        ),
    ],
)
def test_what_has_a_place_of_its_own_is_not_set_among_the_fields(
    data: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    model = str(data.with_suffix(".json"))
    assert main(["train", str(data), "--target", "play", "--out", model]) == 0
    capsys.readouterr()
    known = {"DATA": str(data), "MODEL": model, "x.json": str(data.parent / "x.json")}
    assert main([known.get(each, each) for each in arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
