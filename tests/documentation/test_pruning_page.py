"""The commands of docs/explanation/pruning.md, run as they stand; the experiment on small files of the same names."""

import contextlib
import gzip
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from service.cli.__main__ import main
from tests.documentation.pages import blocks, text_of
from tests.factories import ROOT

PAGE = text_of("explanation/pruning.md")
COMMANDS = re.findall(r"^    \.venv/bin/espalier (.*)$", PAGE, flags=re.MULTILINE)
BLOCKS = blocks(PAGE, "text")


def printed(command: str) -> str:
    shown = io.StringIO()
    words = shlex.split(command.replace("service/examples/", f"{ROOT}/service/examples/"))
    with contextlib.redirect_stdout(shown):
        assert main(words) == 0, command
    return shown.getvalue()


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def test_the_trace_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [printed(command) for command in COMMANDS if not command.startswith("evaluate")]

    assert len(shown) == 6
    assert shown[2].startswith(BLOCKS[0])


def test_the_experiment_is_one_command_that_prints_such_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = (command for command in COMMANDS if command.startswith("evaluate"))
    files = re.findall(r"\S+\.csv(?:\.gz)?", command)
    head, *rows = (ROOT / "service" / "examples" / "drug200.csv").read_text().splitlines()
    for place, file in enumerate(files):
        text = "\n".join([head, *rows[60 * place : 60 * place + 60]]) + "\n"
        (tmp_path / file).write_bytes(gzip.compress(text.encode()) if file.endswith(".gz") else text.encode())
        (tmp_path / file.partition(".")[0]).with_suffix(".schema.json").write_text(json.dumps({"target": "Drug"}))
    monkeypatch.chdir(tmp_path)

    small, whole = printed(command).splitlines(), BLOCKS[1].splitlines()

    # The same columns, files, shares of noise and candidates, line by line; the figures are those of other rows.
    assert cells(small[0]) == cells(whole[0])
    for line, documented in zip(small[2 : len(whole)], whole[2:], strict=True):
        assert cells(line)[0] == cells(documented)[0]


def test_the_words_count_what_the_table_says() -> None:
    verdicts = re.findall(r"(better|worse|chance)$", BLOCKS[1], flags=re.MULTILINE)

    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    assert f"In {counts['better']} of {len(verdicts)} comparisons,\n  the pruned tree was better" in PAGE
    assert f"in the other {counts['chance']}, the difference may be chance" in PAGE
    assert "worse" not in counts
