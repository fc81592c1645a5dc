"""The session of the page on keys, run as it stands against a service with keys on."""

import os
import re
from pathlib import Path

from service.database.tables import Scope
from tests.acceptance.running import running
from tests.documentation.pages import blocks, session, text_of

PAGE = text_of("operations/keys.md")
ADMIN = "esp_01890000-0000-7000-8000-000000000000_" + "documentation" * 4


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    with running(tmp_path, ESPALIER_AUTH="keys", ESPALIER_ADMIN_KEY=ADMIN) as service:
        shown = session(blocks(PAGE, "sh")[0], service, tmp_path, env=os.environ | {"ESPALIER_ADMIN_KEY": ADMIN})
        told = service.output()

    assert shown == blocks(PAGE, "text")[0]
    assert ADMIN not in told


def test_the_page_lists_every_scope() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE) == list(Scope)
