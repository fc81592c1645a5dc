"""The session of the page on keys, run as it stands against a service with keys on."""

import os
import re
import subprocess
from pathlib import Path

from service.tables import Scope
from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "keys.md").read_text()
ADMIN = "esp_01890000-0000-7000-8000-000000000000_" + "documentation" * 4


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    [session] = re.findall(r"^```sh\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    [printed] = re.findall(r"^```text\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)

    with running(tmp_path, ESPALIER_AUTH="keys", ESPALIER_ADMIN_KEY=ADMIN) as service:
        session = session.replace("http://127.0.0.1:8080", service.address)
        shell = ["bash", "-euo", "pipefail", "-c", session]
        environment = os.environ | {"ESPALIER_ADMIN_KEY": ADMIN}
        done = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=120, check=False)
        told = service.output()

    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
    assert ADMIN not in told


def test_the_page_lists_every_scope() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE) == list(Scope)
