"""A page of the documentation: its blocks of code, and its session told to a service as it stands."""

import re
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.running import Service
from tests.factories import ROOT

ADDRESS = "127.0.0.1:8080"  # what the pages say
TENNIS = ROOT / "service" / "examples" / "play_tennis.csv"


def text_of(file: str) -> str:
    """Give a page: a file of docs/, or the README."""
    folder = ROOT if file == "README.md" else ROOT / "docs"
    return (folder / file).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Give the blocks of code in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def printed(command: list[str], text: str, service: Service, **more: Any) -> str:
    """Run a page's lines with the address of the service in place of the page's; give what they print."""
    words = [*command, text.replace(ADDRESS, service.address.removeprefix("http://"))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def session(text: str, service: Service, folder: Path, **more: Any) -> str:
    """Run a page's shell lines in a folder; give what they print."""
    return printed(["bash", "-euo", "pipefail", "-c"], text, service, cwd=folder, **more)
