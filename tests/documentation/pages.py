"""Pages of the documentation: their blocks of code, and their sessions run against a service."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.running import Service
from tests.factories import ROOT

ADDRESS = "127.0.0.1:8080"  # the address that the pages use
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TENNIS = ROOT / "service" / "examples" / "play_tennis.csv"


def text_of(page: str) -> str:
    """Return the text of a page: a path below docs/, or README.md."""
    folder = ROOT if page in ("README.md", "CONTRIBUTING.md") else DOCS
    return (folder / page).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return the blocks of code in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def printed(command: list[str], text: str, service: Service, **options: Any) -> str:
    """Run lines of a page with the address of the service instead of the page's; return what they print."""
    words = [*command, text.replace(ADDRESS, service.address.removeprefix("http://"))]
    environment = dict(options.pop("env", os.environ))
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"  # this environment's `espalier`
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, env=environment, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(text: str, service: Service, folder: Path, **options: Any) -> str:
    """Run shell lines of a page in a folder; return what they print."""
    return printed(["bash", "-euo", "pipefail", "-c"], text, service, cwd=folder, **options)
