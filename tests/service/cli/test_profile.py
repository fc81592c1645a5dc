"""The command ``profile``: the figures of `espalier.profile`, as a table and as JSON."""

import json
from pathlib import Path

import pytest

from service.cli.__main__ import main

WIND = "wind,degrees,play\nweak,20,yes\nweak,19,yes\nstrong,,no\nstrong,3,no\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "wind.csv"
    file.write_text(WIND)
    return file


def test_each_attribute_is_a_line_with_its_figures(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(data), "--target", "play"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Wind tells the classes apart: one bit of one bit; chi-square of 4 rows on the diagonal is 4.
    wind = next(line.split() for line in lines if line.startswith("wind"))
    assert wind == ["wind", "nominal", "0", "2", "1", "-", "1", "1", "1", "0.5", "4", "1", "0.0455003"]
    degrees = next(line.split() for line in lines if line.startswith("degrees"))
    assert degrees[:3] == ["degrees", "numeric", "1"]
    assert degrees[5] == "11"
    assert "entropy   1 bits, gini 0.5" in lines


def test_the_base_of_logarithms_changes_the_unit(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(data), "--target", "play", "--log-base", "10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["unit"], round(found["entropy"], 6)) == ("bans", 0.30103)


def test_a_regression_shows_what_each_attribute_explains(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text("x,y\n1,0.5\n2,0.5\n3,9.5\n5,9.5\n")
    assert main(["profile", str(data), "--target", "y"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "mean      5, variance 20.25" in lines
    assert next(line.split() for line in lines if line.startswith("x "))[-3:] == ["2.5", "20.25", "4.5"]


def test_a_file_without_the_target_is_refused_in_one_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(data), "--target", "rain"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "there is no column 'rain'; there are: wind, degrees, play" in error
