"""The lines of docs/explanations.md, run as they stand against a real server with an example model."""

import re
import subprocess
from pathlib import Path

from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "explanations.md").read_text()


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    session, printed = (
        "".join(re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)) for kind in ("sh", "text")
    )
    with running(tmp_path) as service:
        tennis = (ROOT / "service" / "examples" / "play_tennis.csv").read_bytes()
        service.train("play-tennis", service.upload(tennis, target="PlayTennis"), preset="id3")
        shell = ["bash", "-euo", "pipefail", "-c", session.replace("http://127.0.0.1:8080", service.address)]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
