"""The lines of docs/inference_protocol.md, run as they stand against a real server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "inference_protocol.md").read_text()
ADDRESS = "127.0.0.1:8080"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    [session], [printed], [program] = blocks("sh"), blocks("text"), blocks("python")
    with running(tmp_path) as service:
        tennis = (ROOT / "service" / "examples" / "play_tennis.csv").read_bytes()
        service.train("play-tennis", service.upload(tennis, target="PlayTennis"), preset="id3")
        here = service.address.removeprefix("http://")
        shell = ["bash", "-euo", "pipefail", "-c", session.replace(ADDRESS, here)]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == printed

        pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
        python = [sys.executable, "-c", program.replace(ADDRESS, here)]
        done = subprocess.run(python, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[b'No' b'Yes'] ")
