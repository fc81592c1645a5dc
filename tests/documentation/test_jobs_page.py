"""The lines of docs/jobs.md, run as they stand against a real server."""

import re
import subprocess
from pathlib import Path

from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "jobs.md").read_text()


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    session, printed = (
        re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0] for kind in ("sh", "text")
    )
    with running(tmp_path) as service:
        shell = ["bash", "-euo", "pipefail", "-c", session.replace("http://127.0.0.1:8080", service.address)]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
