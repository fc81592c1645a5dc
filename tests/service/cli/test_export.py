"""``espalier export``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import espalier
from service.cli.__main__ import main

ROWS = "wind,play\nweak,yes\nweak,yes\nstrong,no\n,no\n"


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "model.json"
    file.write_bytes(espalier.to_json(espalier.train(espalier.dataset_from_csv(ROWS, target="play"), "c45")))
    return file


def test_export_writes_a_file_that_predicts(model, tmp_path, capsys) -> None:
    out = tmp_path / "tennis.py"
    assert main(["export", str(model), "--format", "python", "--out", str(out)]) == 0
    names = {}
    exec(compile(out.read_text(), "tennis.py", "exec"), names)  # noqa: S102 - the test runs what it exports
    [expected] = espalier.predict(espalier.from_json(model.read_bytes()), [{"wind": "weak"}])
    assert names["predict"]({"wind": "weak"})["label"] == expected.label


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that takes nothing is Linux's")
def test_a_list_that_cannot_be_written_is_no_fault_of_the_model(model) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "service.cli", "export", str(model)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "espalier: cannot write all of the output: No space left on device\n",
    )


def test_export_without_a_format_lists_the_formats_and_why_another_does_not_apply(model, capsys) -> None:
    assert main(["export", str(model)]) == 0
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert set(lines) == set(espalier.EXPORTS)
    assert lines["python"] == "a Python file with predict(row)"


def test_a_query_names_the_table_and_has_the_rules_on_request(model, capsys) -> None:
    arguments = ["--format", "sql-sqlite", "--missing", "majority", "--table", "shop.days", "--rule-text"]
    assert main(["export", str(model), *arguments]) == 0
    query = capsys.readouterr().out
    assert '"shop"."days"' in query
    assert "espalier_rule" in query


def test_a_binary_file_is_written_and_printed_as_it_is(model, tmp_path, capfdbinary) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    out = tmp_path / "tennis.onnx"
    arguments = ["export", str(model), "--format", "onnx", "--missing", "majority"]
    assert main([*arguments, "--out", str(out)]) == 0
    assert main(arguments) == 0
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == out.read_bytes() != b""


def test_what_cannot_be_exported_is_refused_with_the_reason(tmp_path, capsys) -> None:
    table = {"x": [1.0, 2.0, 3.0, 4.0, None], "y": ["a", "a", "b", "b", "b"]}
    model = espalier.train(espalier.dataset_from_columns(table, target="y"), "cart", missing="fractional")
    file = tmp_path / "model.json"
    file.write_text(json.dumps(espalier.to_document(model)))
    assert main(["export", str(file), "--format", "sql-sqlite"]) == 2
    assert "missing='majority'" in capsys.readouterr().err
    assert main(["export", str(file), "--format", "fortran"]) == 2
    assert "must be one of python, c, javascript" in capsys.readouterr().err
