"""The sessions of the pages, run against a real service: they print what the page shows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import espalier
from service.serialization.media_types import TABLES
from tests.acceptance.running import Service
from tests.documentation.pages import DOCS, PAGES, TENNIS, blocks, printed, session, text_of
from tests.factories import ROOT

PARTS = ("espalier", "service", "migrations", "tests", "benchmarks", "tools")
RUN_ELSEWHERE = {"operations/deploy.md", "operations/keys.md", "start/five_minutes.md"}
"""Pages with a session that another file here runs."""

BANNED = (
    r"\b(?:stretch(?:es)?|pieces?|lanes?|lent|settled?|told|said|asked|kept|noughts|given up|as it is|who asks"
    r"|in the place of|where (?:it|they) stands?|what comes)\b"
)
"""Words that puzzle a reader who knows the field (the glossary has better ones)."""
WRITTEN_ELSEWHERE = {"serving.md", "http_api.md", "settings.md", "configuration.md", "command_line.md"}
"""Pages whose sentences come from the code."""


def pages_with_sessions() -> list[str]:
    names = (path.relative_to(DOCS).as_posix() for path in PAGES if blocks(path.read_text(encoding="utf-8"), "sh"))
    return [name for name in names if name not in RUN_ELSEWHERE]


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda path: path.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:\w+/)*(\w+\.py)`", text))
    there = {path.name for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert named - there == set()

    paths = set(re.findall(rf"`((?:{'|'.join(PARTS)}|docs)/[\w./-]*)`", text))
    assert {path for path in paths if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda path: path.name)
def test_every_link_to_a_page_or_picture_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.S | re.M))
    assert [link for link in links if ":" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    "page", [path for path in PAGES if path.name not in WRITTEN_ELSEWHERE], ids=lambda path: path.name
)
def test_a_page_uses_plain_words(page: Path) -> None:
    prose = re.sub(
        r"^```.*?^```$|`[^`]*`|^    .*$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )

    assert re.findall(BANNED, prose, flags=re.IGNORECASE) == []


def own_copy(service: Service, tennis: bytes, page: str) -> str:
    """Import a copy of the model play-tennis for a page; return its name."""
    name = f"tennis-of-{Path(page).stem}"
    kind = {"Content-Type": "application/json"}
    assert service.client.post(f"/v1/models/{name}/versions", content=tennis, headers=kind).status_code == 201
    return name


@pytest.mark.parametrize("page", pages_with_sessions())
def test_the_session_prints_what_the_page_shows(service: Service, tennis: bytes, page: str, tmp_path: Path) -> None:
    name = own_copy(service, tennis, page)
    lines, expected = ("".join(blocks(text_of(page), kind)).replace("play-tennis", name) for kind in ("sh", "text"))
    for folder in ("docs", "service"):
        (tmp_path / folder).symlink_to(ROOT / folder)

    assert session(lines, service, tmp_path) == expected

    if page == "how-to/drawings.md":
        assert (tmp_path / "tennis.svg").read_text(encoding="utf-8").endswith("</svg>\n")


def curl_lines() -> list[str]:
    """Return the lines that call the service outside of sessions."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "README.md", *PAGES)]
    outside = [re.sub(r"^```sh\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE) for text in texts]
    return [line.strip() for text in outside for line in text.splitlines() if line.strip().startswith("curl ")]


@pytest.mark.usefixtures("tennis")
@pytest.mark.parametrize("line", curl_lines())
def test_a_curl_line_outside_of_the_sessions_is_answered_too(service: Service, line: str, tmp_path: Path) -> None:
    assert json.loads(session(f"KEY=any; {line.replace('curl ', 'curl --fail --silent ', 1)}", service, tmp_path))


@pytest.mark.parametrize("page", ["tutorials/application.md", "how-to/inference_protocol.md"])
def test_the_program_of_the_page_prints_what_the_page_shows(service: Service, tennis: bytes, page: str) -> None:
    if "inference" in page:
        pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    program, shown = "".join(blocks(text_of(page), "python")), "".join(blocks(text_of(page), "output"))
    name = own_copy(service, tennis, f"{Path(page).stem}-program")

    assert printed([sys.executable, "-c"], program.replace("play-tennis", name), service, cwd=ROOT) == shown


@pytest.mark.parametrize("page", ["how-to/export.md", "tutorials/from_scikit_learn.md", "tutorials/from_weka_and_r.md"])
def test_the_python_lines_of_the_page_print_what_the_page_shows(page: str) -> None:
    program, shown = "".join(blocks(text_of(page), "python")), "".join(blocks(text_of(page), "output"))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, shown), done.stderr


def test_the_picture_of_the_page_on_drawings_is_drawn_by_its_lines() -> None:
    page = text_of("how-to/drawings.md")
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    names = {"document": espalier.to_json(model)}
    exec(blocks(page, "python")[0], names)  # noqa: S102 - the page's own lines
    [picture] = re.findall(r"^!\[.*\]\((.*)\)$", page, re.MULTILINE)
    assert (DOCS / "how-to" / picture).read_text(encoding="utf-8") == names["svg"]


def test_every_content_type_and_every_ending_is_on_the_page_on_formats() -> None:
    endings = [ending for known in espalier.FORMATS.values() for ending in known.endings]
    page = text_of("reference/data_formats.md")
    assert not [name for name in (*TABLES, *endings) if name not in page]
