"""The commands on files read every format, known by the ending of the file's name."""

import gzip
import json
from pathlib import Path

import pytest

from service.cli.__main__ import main
from tests.written import WRITERS

TENNIS = {
    "Outlook": ["Sunny", "Sunny", "Overcast", "Rain", "Rain", "Rain", "Overcast"],
    "Wind": ["Weak", "Strong", "Weak", "Weak", None, "Strong", "Strong"],
    "Humidity": [85, 90.5, 78, 96, 80, 70, 65],
    "Play": ["No", "No", "Yes", "Yes", "Yes", "No", "Yes"],
}
ENDINGS = {
    "csv": ".csv",
    "json": ".json",
    "ndjson": ".ndjson",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "arff": ".arff",
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("is_packed", [False, True])
def test_training_pruning_and_predicting_take_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, *, is_packed: bool
) -> None:
    form, _, write = WRITERS[name]
    data = tmp_path / f"tennis{ENDINGS[form]}{'.gz' if is_packed else ''}"
    data.write_bytes(gzip.compress(write(TENNIS)) if is_packed else write(TENNIS))
    (tmp_path / "tennis.schema.json").write_text('{"target": "Play"}')
    model, pruned = tmp_path / "model.json", tmp_path / "pruned.json"

    assert main(["train", str(data), "--preset", "cart", "--out", str(model)]) == 0
    assert "7 rows, 3 attributes" in capsys.readouterr().out
    held_out = tmp_path / f"held-out{''.join(data.suffixes)}"
    few = write({column: cells[:4] for column, cells in TENNIS.items()})
    held_out.write_bytes(gzip.compress(few) if is_packed else few)
    prune = ["prune", str(model), "--method", "reduced_error", "--data", str(data), "--holdout", str(held_out)]
    assert main([*prune, "--out", str(pruned)]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(data), "--explain", "none"]) == 0
    answers = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert answers == TENNIS["Play"]  # a full-grown tree on rows that contradict nowhere


def test_a_file_that_is_not_what_its_ending_says_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ending in ENDINGS.values():
        file = tmp_path / f"table{ending}"
        file.write_bytes(b"\x00\xffsecret")
        assert main(["profile", str(file), "--target", "y"]) == 2
        said = capsys.readouterr().err
        assert f"table{ending}: " in said
        assert "secret" not in said


def test_a_file_of_an_unknown_ending_is_taken_for_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "adult.data").write_text("wind,play\nweak,yes\nstrong,no\n")
    assert main(["profile", str(tmp_path / "adult.data"), "--target", "play"]) == 0
    assert "2 rows" in capsys.readouterr().out
