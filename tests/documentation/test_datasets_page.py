"""The lines of docs/datasets.md, run as they stand against a real server."""

import re
import subprocess
from pathlib import Path

import espalier
from service.api.uploading import CONTENT_TYPES
from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "datasets.md").read_text()


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    session, printed = (
        re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0] for kind in ("sh", "text")
    )
    with running(tmp_path) as service:
        shell = ["bash", "-euo", "pipefail", "-c", session.replace("http://127.0.0.1:8080", service.address)]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_every_content_type_and_every_ending_is_on_the_page() -> None:
    endings = [ending for known in espalier.FORMATS.values() for ending in known.endings]
    assert not [name for name in (*CONTENT_TYPES, *endings) if name not in PAGE]
