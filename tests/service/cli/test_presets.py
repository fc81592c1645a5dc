"""``espalier presets`` and the help of the commands that take presets, fields and methods."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import espalier
from service.cli.__main__ import main
from tests.factories import ROOT


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command and give its text with every run of blanks as one: lines are broken anywhere."""
    with contextlib.suppress(SystemExit):  # argparse ends a --help so
        assert main(arguments) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("arguments", [["presets"], ["train", "--help"], ["prune", "-h"]])
def test_every_preset_field_and_method_is_listed_with_its_meaning(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, *arguments)
    for name, sentence in espalier.PRESET_SENTENCES.items():
        assert f" {name} {sentence}" in text
    for table in (espalier.TrainingConfig, *espalier.PRUNERS.values()):
        for info in espalier.field_table(table):
            assert f" {info.name} = {json.dumps(info.default)} {info.meaning} [{info.legal}]" in text
    for method, kind in espalier.PRUNERS.items():
        assert f"Pruning method {method} " in text
        assert " ".join((kind.__doc__ or "").splitlines()[0].split()) in text


def test_a_preset_is_shown_by_the_fields_in_which_it_differs_from_cart(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "presets")
    between = text[text.index(" id3 ") : text.index(" c45 ")]
    plain = espalier.config_to_dict(espalier.PRESETS["cart"])
    for field, value in espalier.config_to_dict(espalier.PRESETS["id3"]).items():
        if field != "preset":
            assert (f"{field}={json.dumps(value)}" in between) == (value != plain[field])


def test_the_presets_are_one_json_object_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(shown(capsys, "presets", "--json"))
    for name, fields in document["presets"].items():
        assert espalier.config_from_dict(fields) == espalier.PRESETS[name]
    assert {info["name"] for info in document["fields"]} == set(document["presets"]["cart"]) - {"preset"}
    assert set(document["pruning"]) == set(espalier.PRUNERS)


def test_every_word_that_may_be_chosen_for_missing_values_and_splits_is_explained() -> None:
    for info in espalier.field_table(espalier.TrainingConfig):
        if info.name in ("missing", "nominal", "numeric", "cost_function"):
            assert not [word for word in info.choices if word not in info.meaning]


@pytest.mark.parametrize("command", ["presets", "train --help"])
def test_a_reader_that_leaves_early_sees_no_traceback(command: str) -> None:
    shell = f"{shlex.quote(sys.executable)} -m service.cli {command} | head -1"
    done = subprocess.run(["/bin/bash", "-c", shell], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["presets", "train --help"])
def test_a_reader_that_leaves_before_anything_is_written_sees_no_traceback(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "service.cli", *command.split()]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that takes nothing is Linux's")
@pytest.mark.parametrize("command", ["presets", "train --help"])
def test_output_that_cannot_be_written_is_told_in_one_line(command: str) -> None:
    words = [sys.executable, "-m", "service.cli", *command.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr == "espalier: cannot write all of the output: No space left on device\n"
