"""`espalier train --out-of-core` leaves the table on disk and writes the same model."""

import json
from pathlib import Path

import pytest

from service.cli.__main__ import main
from service.cli.train import memory_size

ROWS = "place,wind,temperature,play\n" + "".join(
    f"{place},{'weak' if place % 3 else 'strong'},{place % 17},{'yes' if place % 3 and place % 17 > 4 else 'no'}\n"
    for place in range(400)
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "play.csv").write_text(ROWS)
    return tmp_path / "play.csv"


def test_the_model_file_is_that_of_the_training_in_memory(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, models = (
        ["train", str(data), "--target", "play", "--preset", "c45"],
        [tmp_path / "a.json", tmp_path / "b.json"],
    )
    assert main([*given, "--out", str(models[0])]) == 0
    in_memory = capsys.readouterr()
    work = ["--out-of-core", "--memory", "64MB", "--work", str(tmp_path / "work")]
    assert main([*given, *work, "--out", str(models[1])]) == 0
    assert models[0].read_bytes() == models[1].read_bytes()
    on_disk = capsys.readouterr()
    assert on_disk.err == in_memory.err
    assert "notice " in on_disk.err
    assert on_disk.out.splitlines()[:3] == in_memory.out.splitlines()[:3]
    assert "written" in on_disk.out
    assert not (tmp_path / "work").exists()


def test_a_folder_of_files_is_one_table(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, lines = tmp_path / "parts", ROWS.splitlines(keepends=True)
    folder.mkdir()
    (folder / "a.csv").write_text("".join(lines[:201]))
    (folder / "b.csv").write_text("".join([lines[0], *lines[201:]]))
    model = str(tmp_path / "m.json")
    assert main(["train", str(folder), "--out-of-core", "--target", "play", "--out", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == 400


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--memory", "1GB"], "need --out-of-core"),
        (["--out-of-core", "--holdout", "0.3"], "--holdout cannot be used"),
        (["--out-of-core", "--preset", "reptree"], "pruning: cannot be used"),
        (["--out-of-core", "--set", "missing=surrogate"], "missing: this value cannot be used with a table that is"),
        (
            ["--out-of-core", "--memory", "1kB"],
            "memory_limit: must be a number of bytes, at least 16,777,216, not 1000",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    data: Path, given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", str(data), "--target", "play", "--out", str(data.with_suffix(".json")), *given]
    assert main(arguments) != 0
    assert message in capsys.readouterr().err


def test_sizes_have_units() -> None:
    assert [memory_size(text) for text in ("512", "1.5MB", "2g", "3 kb")] == [512, 1_500_000, 2 * 10**9, 3_000]
    for text in ("", "two", "-1GB", "1XB"):
        with pytest.raises(Exception, match="number of bytes"):
            memory_size(text)


def test_a_folder_needs_out_of_core_and_a_target_is_asked_for_before_reading(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "m.json")]
    assert main(["train", str(tmp_path), "--target", "play", *out]) == 2
    assert "is a folder, whose files are only read with --out-of-core" in capsys.readouterr().err
    data.write_bytes(b"\xff\xfe")  # cannot be read
    assert main(["train", str(data), "--out-of-core", *out]) == 2
    assert "which column is to be predicted? Give --target" in capsys.readouterr().err
