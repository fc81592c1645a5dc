"""The lines of docs/drawings.md, run as they stand against a real server; the picture beside it is what it says."""

import re
import subprocess
from pathlib import Path

import espalier
from tests.acceptance.running import running
from tests.factories import ROOT

PAGE = (ROOT / "docs" / "drawings.md").read_text()
SATURDAYS = ROOT / "service" / "examples" / "play_tennis.csv"


def block(kind: str) -> str:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0]


def test_the_session_prints_what_the_page_says(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        service.train("play-tennis", service.upload(SATURDAYS.read_bytes(), target="PlayTennis"), preset="id3")
        session = block("sh").replace("http://127.0.0.1:8080", service.address)
        shell = ["bash", "-euo", "pipefail", "-c", session]
        done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == block("text")
    assert (tmp_path / "tennis.svg").read_text(encoding="utf-8").endswith("</svg>\n")


def test_the_picture_of_the_page_is_drawn_by_its_lines() -> None:
    model = espalier.train(espalier.dataset_from_csv(SATURDAYS, target="PlayTennis"), "id3")
    names = {"document": espalier.to_json(model)}
    exec(block("python"), names)  # noqa: S102 - the page's own lines
    [picture] = re.findall(r"^!\[.*\]\((.*)\)$", PAGE, re.MULTILINE)
    assert (ROOT / "docs" / picture).read_text(encoding="utf-8") == names["svg"]
