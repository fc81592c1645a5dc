"""The command ``rules``: sentences, JSON and logic; rules shortened, put in order and written as a model."""

import json
import re
from pathlib import Path

import pytest

from service.cli.__main__ import main

SKY = (
    "sky,wind,play\n"
    + "clear,weak,yes\n" * 6
    + "clear,strong,yes\n" * 5
    + "rain,weak,no\n" * 6
    + "rain,strong,no\n" * 5
)
NOISE = "clear,strong,no\n"
HELD_OUT = "sky,wind,play\nclear,weak,yes\nclear,strong,yes\nrain,weak,no\nrain,strong,no\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sky.csv").write_text(SKY + NOISE)
    (tmp_path / "held_out.csv").write_text(HELD_OUT)
    train = ["train", str(tmp_path / "sky.csv"), "--target", "play", "--out", str(tmp_path / "model.json")]
    assert main([*train, "--preset", "id3"]) == 0
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()

    def rules(*arguments: str) -> str:
        assert main(["rules", str(folder / "model.json"), *arguments]) == 0
        return capsys.readouterr().out

    return rules


def test_each_rule_is_a_line(run) -> None:
    assert run().splitlines() == [
        "rule 0: if sky is clear and wind is strong then yes (6/1)",
        "rule 1: if sky is clear and wind is weak then yes (6)",
        "rule 2: if sky is rain then no (11)",
        "otherwise no",
    ]


def test_a_class_is_described_as_sentences_logic_and_json(run) -> None:
    assert run("--class", "yes") == "if sky is clear then yes\n"
    assert run("--class", "yes", "--format", "logic") == "yes ⇔ sky = clear\n"
    assert run("--format", "logic") == "no ⇔ sky = rain\nyes ⇔ sky = clear\n"
    assert json.loads(run("--class", "no", "--format", "json"))["any_of"][0][0]["in"] == ["rain"]


def test_rules_shortened_on_held_out_rows_are_written_as_a_model(run, folder: Path, capsys) -> None:
    files = ["--data", str(folder / "sky.csv"), "--holdout", str(folder / "held_out.csv")]
    out = folder / "rules.json"
    assert run("--prune", "validation", *files, "--out", str(out)).splitlines() == [
        "rule 0: if sky is clear and wind is strong then yes (6/1)  [accuracy 1]",
        "rule 1: if sky is clear and wind is weak then yes (6)  [accuracy 1]",
        "rule 2: if sky is rain then no (11)  [accuracy 1]",
        "otherwise no",
    ]
    assert main(["show", str(out)]) == 0
    assert capsys.readouterr().out.startswith("rule 0: if sky is clear and wind is strong then yes")
    assert main(["predict", str(out), str(folder / "held_out.csv"), "--explain", "full"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["label"] for answer in answers] == ["yes", "yes", "no", "no"]
    assert [len(answer["passed_over"]) for answer in answers] == [1, 0, 2, 2]


def test_the_json_of_shortened_rules_holds_their_trace(run, folder: Path) -> None:
    shown = run("--prune", "pessimistic", "--data", str(folder / "sky.csv"), "--format", "json")
    found = json.loads(shown)
    assert [rule["text"] for rule in found["rules"]] == ["if sky is rain then no", "if sky is clear then yes"]
    assert found["trace"]["method"] == "rules"
    assert found["trace"]["steps"]


def test_pruning_by_the_method_rules_prints_what_was_dropped(run, folder: Path, capsys) -> None:
    arguments = ["prune", str(folder / "model.json"), "--method", "rules", "--set", "estimate=pessimistic"]
    assert main([*arguments, "--data", str(folder / "sky.csv"), "--out", str(folder / "out.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pruning   rules: 3 leaves before, 2 rules after"
    dropped = [re.split(r"\s{2,}", line.strip()) for line in lines]
    assert ["leaf", "of rule", "without", "before", "after", "holds for"] in dropped
    assert any(cells[2:3] == ["wind is weak"] for cells in dropped)
    assert any(line.startswith("rules     id3: 2 rules, 2 conditions") for line in lines)


def test_some_of_the_rows_that_were_set_aside_may_vote(folder: Path, capsys) -> None:
    aside = [0, 6, 12, 18]
    files, model = [str(folder / "sky.csv")], str(folder / "aside.json")
    train = ["train", *files, "--target", "play", "--preset", "id3", "--holdout", json.dumps({"rows": aside})]
    assert main([*train, "--out", model]) == 0
    capsys.readouterr()
    for command in (
        ["rules", model, "--prune", "validation", "--format", "json"],
        ["prune", model, "--method", "reduced_error", "--out", str(folder / "out.json"), "--json"],
    ):
        assert main([*command, "--data", *files, "--holdout", json.dumps({"rows": aside[1:]})]) == 0
        assert json.loads(capsys.readouterr().out)["trace"]["held_out_rows"] == 3


def test_what_is_odd_stands_beside_the_rules(folder: Path, capsys) -> None:
    # Clear and strong is wrong for 1 of 1, clear alone for 1 of 2, always yes for 1 of 3; rain holds for none.
    (folder / "held_out.csv").write_text("sky,wind,play\nclear,weak,yes\nclear,strong,no\nsnow,weak,yes\n")
    files = ["--data", str(folder / "sky.csv"), "--holdout", str(folder / "held_out.csv")]
    capsys.readouterr()
    assert main(["rules", str(folder / "model.json"), "--prune", "validation", *files, "--format", "json"]) == 0
    out, notes = capsys.readouterr()
    told = json.loads(out)["trace"]["notes"]
    assert told
    lines = [line for line in notes.splitlines() if line.startswith("note ")]
    assert lines[: len(told)] == [f"note      {note}" for note in told]
    assert "note      1 rule can never answer: it follows a rule that holds for every row" in lines


@pytest.mark.parametrize(
    "command", [["prune", "--method", "reduced_error", "--out", "x"], ["rules", "--prune", "validation"]]
)
def test_a_list_of_rules_is_refused_before_any_row_is_read(folder: Path, capsys, command: list[str]) -> None:
    rules = str(folder / "rules.json")
    assert main(["rules", str(folder / "model.json"), "--out", rules]) == 0
    capsys.readouterr()
    given = [str(folder / each) if each == "x" else each for each in command[1:]]
    for rows in ([], ["--data", "none.csv", "--holdout", "none.csv"]):
        assert main([command[0], rules, *given, *rows]) == 2
        error = capsys.readouterr().err
        assert "the model is a list of rules" in error
        assert "none.csv" not in error


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--class", "maybe"], "class: must be one of the model's classes: no, yes"),
        (["--class", "yes", "--out", "rules.json"], "--out: writes the rules of all classes; leave out --class"),
        (["--prune", "pessimistic"], "give the training rows with --data"),
        (["--prune", "validation", "--data", "DATA"], "rows that it has not learned from"),
        (["--set", "confidence=0.1", "--data", "DATA"], "--set, --data: only with --prune"),
        (["--holdout", "DATA"], "--holdout: only with --prune"),
        (
            ["--prune", "validation", "--data", "DATA", "--holdout", '{"rows": [0]}'],
            "1 of the 1 rows were learned from",
        ),
        (["--prune", "validation", "--data", "DATA", "--holdout", "none.csv"], "none.csv: there is no such file"),
        (["--prune", "pessimistic", "--data", "DATA", "--set", "confidence=2"], "confidence: must be"),
        (["--prune", "pessimistic", "--data", "DATA", "--set", "estimate=validation"], "--set estimate=…: --prune"),
        (["--out", "/no/such/folder/x.json"], "there is no folder"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(folder: Path, capsys, arguments: list[str], reason: str) -> None:
    capsys.readouterr()
    given = [str(folder / "sky.csv") if argument == "DATA" else argument for argument in arguments]
    assert main(["rules", str(folder / "model.json"), *given]) == 2
    error = capsys.readouterr().err
    assert reason in error
    assert error.count("\n") == 1
