"""The lines of the pages, run as they stand against a real service; what they print is what the page says."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import espalier
from service.api.datasets import CONTENT_TYPES
from tests.acceptance.running import Service
from tests.documentation.pages import TENNIS, blocks, printed, session, text_of
from tests.factories import ROOT

IN_THE_CHECKOUT, ANYWHERE = True, False
SESSIONS: Mapping[str, bool] = {
    "aliases.md": ANYWHERE,
    "datasets.md": IN_THE_CHECKOUT,
    "documents.md": ANYWHERE,
    "drawings.md": ANYWHERE,
    "explanations.md": ANYWHERE,
    "idempotency.md": ANYWHERE,
    "inference_protocol.md": ANYWHERE,
    "jobs.md": IN_THE_CHECKOUT,
    "keeping.md": ANYWHERE,
    "predictions.md": IN_THE_CHECKOUT,
}
"""The pages that have a session: whether it reads files of the checkout."""
PARTS = ("espalier", "service", "migrations", "tests", "benchmarks", "tools")
OF_THEIR_OWN = {"README.md", "deployment.md", "keys.md"}  # sessions that other files here run


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_every_file_of_python_that_a_page_names_is_there(page: str) -> None:
    named = set(re.findall(r"`(?:\w+/)*(\w+\.py)`", (ROOT / page).read_text(encoding="utf-8")))
    there = {path.name for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert named - there == set()


@pytest.fixture(scope="module")
def tennis(service: Service) -> bytes:
    """The document of the model that the pages call play-tennis."""
    service.train("play-tennis", service.upload(TENNIS.read_bytes(), target="PlayTennis"), preset="id3")
    return service.client.get("/v1/models/play-tennis/versions/1/document").content


def has_its_own(service: Service, tennis: bytes, page: str) -> str:
    """Make a copy of that model for a page; give its name."""
    name = f"tennis-of-{page.partition('.')[0]}"
    kind = {"Content-Type": "application/json"}
    assert service.client.post(f"/v1/models/{name}/versions", content=tennis, headers=kind).status_code == 201
    return name


@pytest.mark.parametrize("page", SESSIONS)
def test_the_session_prints_what_the_page_says(service: Service, tennis: bytes, page: str, tmp_path: Path) -> None:
    name = has_its_own(service, tennis, page)
    lines, said = ("".join(blocks(text_of(page), kind)).replace("play-tennis", name) for kind in ("sh", "text"))

    shown = session(lines, service, ROOT if SESSIONS[page] is IN_THE_CHECKOUT else tmp_path)

    assert shown == said
    if page == "drawings.md":
        assert (tmp_path / "tennis.svg").read_text(encoding="utf-8").endswith("</svg>\n")


def test_every_page_with_a_session_is_run() -> None:
    with_session = {file.name for file in (ROOT / "docs").glob("*.md") if blocks(file.read_text(), "sh")}
    assert with_session | {"README.md"} == SESSIONS.keys() | OF_THEIR_OWN


def curl_lines() -> list[str]:
    """Give the lines that call the service, but for those of the sessions."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    outside = [re.sub(r"^```sh\n.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE) for text in texts]
    return [line.strip() for text in outside for line in text.splitlines() if line.strip().startswith("curl ")]


@pytest.mark.parametrize("line", curl_lines())
def test_a_curl_line_outside_of_the_sessions_is_answered_too(service: Service, line: str, tmp_path: Path) -> None:
    said = session(f"KEY=any; {line.replace('curl ', 'curl --fail --silent ', 1)}", service, tmp_path)

    assert json.loads(said)


def test_the_client_of_the_inference_protocol_prints_what_the_page_says(service: Service, tennis: bytes) -> None:
    pytest.importorskip("tritonclient.http", reason="tritonclient is not installed")
    [program] = blocks(text_of("inference_protocol.md"), "python")
    name = has_its_own(service, tennis, "tritonclient")

    shown = printed([sys.executable, "-c"], program.replace("play-tennis", name), service, cwd=ROOT)

    assert shown.startswith("[b'No' b'Yes'] ")


def test_the_picture_of_the_page_on_drawings_is_drawn_by_its_lines() -> None:
    page = text_of("drawings.md")
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    names = {"document": espalier.to_json(model)}
    exec(blocks(page, "python")[0], names)  # noqa: S102 - the page's own lines
    [picture] = re.findall(r"^!\[.*\]\((.*)\)$", page, re.MULTILINE)
    assert (ROOT / "docs" / picture).read_text(encoding="utf-8") == names["svg"]


def test_every_content_type_and_every_ending_is_on_the_page_on_data_sets() -> None:
    endings = [ending for known in espalier.FORMATS.values() for ending in known.endings]
    page = text_of("datasets.md")
    assert not [name for name in (*CONTENT_TYPES, *endings) if name not in page]
