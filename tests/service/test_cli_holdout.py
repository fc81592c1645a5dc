"""The rows that `espalier train` sets aside, in each form that Python and JSON have."""

import json
from pathlib import Path

import pytest

from service.cli import main

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
    [("0.3", 6), ('{"fraction": 0.4, "seed": 2}', 8), ('{"rows": [0, 3, 5]}', 3), ("{file}", 20)],
)
def test_rows_are_set_aside_by_share_by_number_and_by_file(
    data: Path, holdout: str, n_rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert held_out(data, holdout.replace("{file}", str(data)), capsys) == n_rows


@pytest.mark.parametrize(
    ("holdout", "said"),
    [
        ("1.5", "fraction: must be a number above 0 and below 1"),
        ('{"rows": [20]}', "holdout.rows: there are 20 rows, counted from 0"),
        ('{"rows": [1, 1]}', "rows: must be a list of different row numbers"),
        ('{"share": 0.3}', 'must be {"fraction": 0.3, "seed": 1, "stratified": true} or {"rows": [0, 5'),
        ("nothing.csv", "nothing.csv: there is no such file"),
    ],
)
def test_what_cannot_be_set_aside_is_refused_with_what_can(
    data: Path, holdout: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(data), "--target", "play", "--holdout", holdout, "--out", str(data) + ".json"]) != 0
    assert said in capsys.readouterr().err
