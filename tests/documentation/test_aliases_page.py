"""The session of the page on aliases, run as it stands."""

import re
import subprocess
from pathlib import Path

from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "aliases.md").read_text()


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    [session] = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    [printed] = re.findall(r"^```text\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)

    with running(tmp_path) as service:
        tennis = (ROOT / "service" / "examples" / "play_tennis.csv").read_bytes()
        service.train("play-tennis", service.upload(tennis, target="PlayTennis"), preset="id3")
        session = session.replace("http://127.0.0.1:8080", service.address)
        shell = ["bash", "-euo", "pipefail", "-c", session]
        done = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
