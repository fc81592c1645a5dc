"""The arguments that several commands share."""

import json
from pathlib import Path

import pytest

from service.cli import Refused
from service.cli.__main__ import main
from service.cli.files import write_whole
from service.cli.options import assignments
from service.cli.train import memory_size


@pytest.mark.parametrize("given", [[".x=1"], ["a.=1"], ["a..b=1"], ["=1"], ["a"]])
def test_a_field_without_a_name_is_refused_with_an_example(given: list[str]) -> None:
    with pytest.raises(Refused, match="must be FIELD=VALUE, such as max_depth=4"):
        assignments(given)


@pytest.mark.parametrize("given", [["a.b=1", "a=5"], ["a=5", "a.b=1"], ["a=5", "a=6"], ["a.b=5", "a.b=5"]])
def test_a_field_is_set_once_as_a_whole_or_by_its_members(given: list[str]) -> None:
    with pytest.raises(Refused, match="set either it or its fields"):
        assignments(given)


def test_a_seed_is_given_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n1,a\n2,b\n")
    arguments = ["train", str(table), "--target", "y", "--out", str(tmp_path / "m.json")]
    assert main([*arguments, "--seed", "0", "--set", "seed=5"]) == 2
    assert "seed=5: seed or fields of it are set already" in capsys.readouterr().err
    assert main([*arguments, "--seed", "5"]) == 0


def test_a_file_that_a_command_reads_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, other, model, held = (tmp_path / name for name in ("t.csv", "link.csv", "m.json", "held.csv"))
    table.write_text("x,y\n1,a\n2,b\n")
    held.write_text("x,y\n3,a\n")
    other.symlink_to(table)
    train = ["train", str(table), "--target", "y", "--out"]
    assert main([*train, str(model)]) == 0
    kept = table.read_bytes(), model.read_bytes(), held.read_bytes()
    for arguments in (
        [*train, str(table)],
        [*train, str(other)],
        [*train, str(other), "--holdout", str(table)],
        [*train, str(held), "--holdout", json.dumps({"dataset": str(held)})],
        [*train, str(held), "--holdout", json.dumps(str(held))],
        ["predict", str(model), str(table), "--out", str(table)],
        ["show", str(model), "--out", str(model)],
        ["export", str(model), "--format", "python", "--out", str(model)],
    ):
        capsys.readouterr()
        assert main(arguments) == 2
        assert "is read by this command and would be lost" in capsys.readouterr().err
        assert (table.read_bytes(), model.read_bytes(), held.read_bytes()) == kept
    assert main(["rules", str(model), "--out", str(model)]) == 0


def test_what_is_no_regular_file_is_refused_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "/dev/null"]) == 2
    assert "/dev/null: is no regular file" in capsys.readouterr().err


def test_json_that_is_nested_too_deeply_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, schema = tmp_path / "t.csv", tmp_path / "s.json"
    table.write_text("x,y\n1,a\n2,b\n")
    schema.write_text("[" * 100_000)
    train = ["train", str(table), "--target", "y", "--out", str(tmp_path / "m.json")]
    assert main([*train, "--set", f"max_depth={'[' * 100_000}"]) == 2
    assert "espalier: max_depth: must be" in capsys.readouterr().err
    assert main([*train, "--schema", str(schema)]) == 2
    assert f"espalier: {schema}: not JSON" in capsys.readouterr().err


def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    file, link = tmp_path / "m.json", tmp_path / "link.json"
    file.write_text("old")
    link.symlink_to(file)
    write_whole(link, b"new")
    assert (link.is_symlink(), file.read_text(), sorted(each.name for each in tmp_path.iterdir())) == (
        True,
        "new",
        ["link.json", "m.json"],
    )


def test_a_memory_beyond_doubles_is_read() -> None:
    assert memory_size(f"{10**400}kb") == 10**403


def test_words_behind_a_preset_that_set_no_field_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n1,a\n2,b\n3,a\n4,b\n")
    assert main(["evaluate", str(table), "--target", "y", "--folds", "2", "--candidate", "cart 'gini"]) == 2
    printed = capsys.readouterr().err
    assert "preset: must be" in printed
    assert printed.count("\n") == 1
