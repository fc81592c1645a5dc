"""Progress on standard error: a bar on a terminal, lines elsewhere, nothing for a short command."""

import io
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from service.cli import progress
from tests.factories import ROOT
from tests.service.waiting import PATIENCE

pty = pytest.importorskip("pty")

DRUGS = ROOT / "service" / "examples" / "drug200.csv"


def on_terminal(*arguments: object, kind: str = "xterm") -> tuple[str, str]:
    """Run a command whose standard error is a terminal; return standard output and what the terminal got."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "service.cli", *map(str, arguments)]
    environment = {**os.environ, "TERM": kind, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(command, env=environment, stdout=output, stderr=theirs) as process,
    ):
        os.close(theirs)
        shown = []
        try:
            while part := os.read(ours, 4096):
                shown.append(part.decode())
        except OSError:  # the command has ended: Linux reports it so
            pass
        os.close(ours)
        assert process.wait(PATIENCE) == 0, "".join(shown)
        output.seek(0)
        return output.read(), "".join(shown)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "model.json"
    on_terminal("train", DRUGS, "--target", "Drug", "--out", file)
    return file


def test_every_command_that_takes_long_shows_a_bar_that_only_grows(model: Path, tmp_path: Path) -> None:
    pruned = tmp_path / "pruned.json"
    for arguments in (
        ["train", DRUGS, "--target", "Drug", "--preset", "c45", "--out", tmp_path / "other.json"],
        ["prune", model, "--method", "pessimistic", "--data", DRUGS, "--out", pruned],
        ["evaluate", DRUGS, "--target", "Drug", "--folds", "3", "--candidate", "cart"],
        ["predict", model, DRUGS],
        ["importances", model, DRUGS],
    ):
        output, shown = on_terminal(*arguments)

        shares, phases = zip(*re.findall(r" (\d+)% (\w*)", shown), strict=True)
        assert list(map(int, shares)) == sorted(map(int, shares))
        assert shares[-1] == "100"
        assert all(phases)
        assert "━" in shown
        assert "━" not in output


def test_the_bar_disappears_at_the_end(tmp_path: Path) -> None:
    _, shown = on_terminal("train", DRUGS, "--target", "Drug", "--out", tmp_path / "model.json")

    assert shown.endswith("\x1b[2K")  # the line is cleared


def test_a_terminal_that_cannot_replace_lines_gets_no_bar(tmp_path: Path) -> None:
    _, shown = on_terminal("train", DRUGS, "--target", "Drug", "--out", tmp_path / "model.json", kind="dumb")

    assert shown == ""


class Written(io.StringIO):
    """A standard error that is no terminal; `happened` is set at the first line."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = threading.Event()

    def write(self, text: str) -> int:
        length = super().write(text)
        if text.endswith("\n"):
            self.happened.set()
        return length


def test_elsewhere_a_line_says_the_phase_and_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)

    with progress.shown_progress() as shown:
        shown.begin("predicting")
        shown.state[0] = 0.5
        assert written.happened.wait(PATIENCE)

    assert "%" in written.getvalue()
    assert set(written.getvalue().splitlines()) <= {
        f"espalier: {line}" for line in ("0% done, loading", "0% done, predicting", "50% done, predicting")
    }


def test_a_short_command_elsewhere_prints_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    monkeypatch.setattr(sys, "stderr", written)

    with progress.shown_progress() as shown:
        shown.begin("growing")

    assert written.getvalue() == ""
