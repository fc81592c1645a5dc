"""The trace of a pruning as a stranger reads it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from service.cli.__main__ import main
from tests.factories import ROOT

DRUGS = ROOT / "service" / "examples" / "drug200.csv"


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """The drug data with every seventh answer wrong, so that there is something to prune."""
    head, *rows = DRUGS.read_text().splitlines()
    wrong = [row.rpartition(",")[0] + ",drugA" if place % 7 == 0 else row for place, row in enumerate(rows)]
    (tmp_path / "noisy.csv").write_text("\n".join([head, *wrong]) + "\n")
    return tmp_path / "noisy.csv"


def pruned(
    noisy: Path, capsys: pytest.CaptureFixture[str], preset: str, *method: str, holdout: bool = True
) -> tuple[list[str], dict[str, Any]]:
    """What is printed, and the trace as JSON, of the same pruning."""
    model, out = str(noisy.with_name("model.json")), str(noisy.with_name("out.json"))
    train = ["train", str(noisy), "--target", "Drug", "--preset", preset, "--set", "pruning=null"]
    assert main([*train, *(["--holdout", "0.4"] if holdout else []), "--out", model]) == 0
    prune = ["prune", model, "--method", *method, "--data", str(noisy), "--out", out]
    capsys.readouterr()
    assert main(prune) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main([*prune, "--json"]) == 0
    return lines, json.loads(capsys.readouterr().out)["trace"]


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def steps(lines: list[str]) -> list[dict[str, str]]:
    start = next(place for place, line in enumerate(lines) if line.startswith("steps"))
    end = next(place for place, line in enumerate(lines) if line.startswith("          before, after:"))
    names = cells(lines[start + 1])
    return [dict(zip(names, cells(line), strict=True)) for line in lines[start + 2 : end]]


def test_each_step_is_a_line_with_its_node_its_estimates_and_its_rule(noisy, capsys) -> None:
    lines, trace = pruned(noisy, capsys, "cart", "reduced_error")

    written = steps(lines)
    assert len(written) == len(trace["steps"]) > 1
    for line, step in zip(written, trace["steps"], strict=True):
        assert (int(line["node"]), line["reached by"]) == (step["node"], step["reached_by"])
        assert (float(line["before"]), float(line["after"])) == (step["before"], step["after"])
        assert int(line["removed"]) == step["nodes_removed"]
        assert f"          {line['rule']}: {step['rule']}" in lines
    assert f"validation errors on {trace['held_out_rows']} held-out rows" in lines[1]


def test_a_node_s_number_is_its_line_in_the_tree_before(noisy, capsys) -> None:
    lines, _ = pruned(noisy, capsys, "c45", "pessimistic")

    assert main(["show", str(noisy.with_name("model.json"))]) == 0
    shown = capsys.readouterr().out.splitlines()
    for line in steps(lines):
        if line["reached by"] != "every row":
            assert line["reached by"] in shown[int(line["node"]) - 1]


def test_a_raised_branch_is_told_from_a_leaf(noisy, capsys) -> None:
    lines, trace = pruned(noisy, capsys, "c45", "pessimistic", holdout=False)

    becomes = [line["becomes"] for line in steps(lines)]
    assert becomes == [
        "a leaf" if step["raised"] is None else f"its branch {step['raised']}" for step in trace["steps"]
    ]
    assert {each.split()[0] for each in becomes} == {"a", "its"}


def test_the_path_of_cost_complexity_marks_the_tree_that_was_taken(noisy, capsys) -> None:
    lines, trace = pruned(noisy, capsys, "cart", "cost_complexity", "--set", "select=validation")

    start = next(place for place, line in enumerate(lines) if line.startswith("path"))
    assert cells(lines[start + 1])[:5] == ["alpha", "leaves", "risk", "error", "± standard error"]
    written = lines[start + 2 : start + 2 + len(trace["table"])]
    assert [line.endswith("<") for line in written] == [line["selected"] for line in trace["table"]]
    assert [int(cells(line)[1]) for line in written] == [line["leaves"] for line in trace["table"]]
    assert all(float(line["alpha"]) >= 0 for line in steps(lines))
