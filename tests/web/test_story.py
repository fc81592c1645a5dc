"""The whole story in a browser, on a real service: from a file to a model that is rolled back."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.running import Running, held, running, until
from tests.factories import ROOT
from tests.service.conftest import empty_database
from tests.web.chromium import WIDE, Reader, Typist, chromium

expect.set_options(timeout=20_000)
DRUGS = str(ROOT / "service" / "examples" / "drug200.csv")
ADMIN = "esp_01890000-0000-7000-8000-000000000000_" + "story" * 9


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    """One `espalier up` on the database that the test names, with or without keys."""
    kind, keys = request.param
    more = {"ESPALIER_AUTH": "keys", "ESPALIER_ADMIN_KEY": ADMIN, "ESPALIER_PATH_PREFIX": "/trees"} if keys else {}
    with ExitStack() as stack:
        if kind == "postgresql":
            more["ESPALIER_DATABASE_URL"] = stack.enter_context(empty_database(kind, tmp_path))
        yield stack.enter_context(running(tmp_path, **more))


@pytest.mark.parametrize("service", [("sqlite", False)], indirect=True, ids=["sqlite"])
def test_with_a_keyboard_alone_and_without_a_barrier(service: Running, browser: Browser) -> None:
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type] # as a mapping
    reader = Typist(page, service.address)
    reader.open("/")
    assert page.url == f"{service.address}/ui/"
    tell(reader, checks=True)
    assert reader.complaints == []
    page.close()


@pytest.mark.parametrize("service", [("postgresql", True)], indirect=True, ids=["postgresql, keys, prefix"])
def test_with_a_mouse_on_postgresql_below_a_prefix_with_keys_on(service: Running, browser: Browser) -> None:
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type] # as a mapping
    reader = Reader(page, f"{service.address}/trees")
    reader.open("/ui/datasets")
    expect(page).to_have_url(re.compile("/trees/ui/login"))
    reader.check("login", heading="Log in")
    reader.fill("Key", "esp_wrong")
    reader.press("Log in")
    expect(page.get_by_role("alert")).to_contain_text("a key looks like")
    reader.fill("Key", ADMIN)
    reader.press("Log in")
    expect(page).to_have_url(f"{service.address}/trees/ui/datasets")
    tell(reader, checks=False)
    reader.open("/ui/decisions")
    reader.activate(page.locator("tbody th a").first)
    expect(page.locator("#changes li").first).to_be_visible()
    paper = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1  # one sheet of A4
    reader.click("Keys")
    reader.fill("Name of its owner", "sensor")
    page.get_by_label("predict").check()
    reader.press("Create a key")
    expect(page.get_by_role("status")).to_contain_text("esp_")
    reader.check("keys", heading="Keys")
    reader.press("Log out")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert reader.complaints == []
    page.close()


@pytest.mark.parametrize("service", [("sqlite", False)], indirect=True, ids=["sqlite"])
def test_a_page_finds_its_job_again_after_the_web_server_was_killed(service: Running, browser: Browser) -> None:
    page = browser.new_page(viewport=WIDE)  # type: ignore[arg-type] # as a mapping
    data_set = service.upload(Path(DRUGS).read_bytes(), target="Drug")
    [worker] = until(lambda: service.children("worker"), what="a worker")
    with held(worker):
        job = service.post("/v1/training-jobs", {"model": "drugs", "dataset": data_set}, status=202)
        page.goto(f"{service.address}/ui/jobs/{job['id']}")
        expect(page.locator("#job .state")).to_have_text("running", timeout=20_000)
        [server] = service.children("serve")
        os.kill(server, signal.SIGKILL)
        until(lambda: service.children("serve") not in ([], [server]), what="another web server")
    expect(page.get_by_role("link", name="Open version 1 of drugs")).to_be_visible(timeout=30_000)
    page.close()


def tell(reader: Reader, *, checks: bool) -> None:
    """Upload, correct a kind, train, watch, open a node, try a row, find the decision, prune, compare, promote."""
    page = reader.page
    check = reader.check if checks else lambda name, heading: None

    check("home", heading="Overview")
    reader.click("Data sets")
    check("data sets", heading="Data sets")
    reader.fill("Target", "Drug")
    reader.attach("File", DRUGS)
    reader.press("Upload")
    expect(page.get_by_role("heading", name="drug200.csv")).to_be_visible()
    expect(page.locator("#profile article")).to_have_count(5)
    check("data set", heading="drug200.csv")

    reader.choose("Kind of BP", "numeric")
    reader.press("Change the declaration")
    expect(page.get_by_role("alert")).to_contain_text("must be a finite number")
    check("data set, refused", heading="drug200.csv")
    reader.choose("Kind of BP", "ordinal")
    page.get_by_label("Categories of BP, one per line").evaluate("field => field.closest('details').open = true")
    reader.fill("Categories of BP, one per line", "LOW\nNORMAL\nHIGH")
    reader.press("Change the declaration")
    expect(page.get_by_label("Kind of BP")).to_have_value("ordinal")

    reader.click("Train a model on it")
    reader.fill("Model", "drugs")
    reader.choose("Preset", "c45: C4.5 release 8 (Quinlan 1993, 1996)")
    expect(page.get_by_role("group", name="Fields of c45")).to_be_visible()
    expect(page.get_by_label("Model", exact=True)).to_have_value("drugs")
    reader.choose("Pruning", "none")
    reader.choose("Held out", "a share of the rows")
    reader.fill("Share", "0.25")
    check("train", heading="Train a model")
    reader.press("Train")
    check("job", heading="Training of drugs")
    reader.click("Open version 1 of drugs")

    expect(page.get_by_role("heading", name="drugs, version 1")).to_be_visible()
    check("version", heading="drugs, version 1")
    reader.activate(page.locator("#picture a[data-node]").nth(1))
    expect(page.locator("#node h3")).to_contain_text("Node 1")
    reader.click("Show the rows of the data set at this node")
    expect(page.locator("#rows")).to_contain_text("rows of the data set reach this node")
    check("node", heading="drugs, version 1")
    reader.press("Larger")
    reader.activate(page.locator("summary", has_text="Confusion matrix"))
    expect(page.get_by_role("heading", name="Held-out rows")).to_be_visible()
    reader.activate(page.locator("summary", has_text="Show the rules"))
    expect(page.locator("details ol li").first).to_contain_text("if ")
    check("version, opened", heading="drugs, version 1")

    reader.click("Try it")
    check("try", heading="Try drugs")
    reader.fill("Na_to_K", "ten")
    reader.press("Answer")
    expect(page.get_by_role("alert")).to_contain_text("must be a finite number")
    reader.fill("Na_to_K", "9.5")
    reader.choose("BP", "HIGH")
    reader.fill("Age", "30")
    reader.fill("Subject", "jane")
    reader.press("Answer")
    expect(page.locator(".answer")).to_have_text("drugA")
    expect(page.locator("#path svg.espalier-tree")).to_be_visible()
    expect(page.get_by_text("gives").first).to_be_visible()
    check("answer", heading="Try drugs")

    reader.click("Decisions")
    reader.fill("Subject", "jane")
    reader.press("Filter")
    expect(page).to_have_url(re.compile("subject=jane"))
    check("decisions", heading="Decisions")
    reader.activate(page.locator("tbody th a").first)
    expect(page.locator(".verified")).to_have_text("Verified:")
    reader.fill("True class", "drugA")
    reader.press("Enter the outcome")
    expect(page.get_by_text("so the answer was right")).to_be_visible()
    expect(page.locator("#changes li").first).to_contain_text("gives")
    check("decision", heading="Decision of")

    reader.click("drugs, version 1")
    reader.click("Prune it")
    reader.slide("Step", 2)
    expect(page.locator("#preview")).to_contain_text("become")
    check("prune", heading="Prune drugs, version 1")
    reader.press("Prune")
    reader.click("Open version 2 of drugs")
    reader.click("Compare it")
    expect(page.get_by_role("heading", name="Figures")).to_be_visible()
    check("compare", heading="Compare two versions")

    reader.click("drugs, version 2")
    reader.click("drugs")
    for version in ("1", "2"):
        reader.choose("Version", version)
        reader.press("Promote")
        expect(page.get_by_role("row", name=f"production version {version}")).to_be_visible()
    reader.press("Roll production back")
    expect(page.get_by_role("row", name="production version 1")).to_be_visible()
    check("model", heading="Model drugs")
    reader.click("production")
    expect(page.get_by_role("row", name="rollback version 1")).to_be_visible()
    check("alias", heading="Alias production of drugs")

    reader.open("/ui/models/drugs/consultation")
    expect(page.get_by_role("heading", name="Question 1")).to_be_visible()
    check("consultation", heading="Consult drugs")
    reader.click("Jobs")
    check("jobs", heading="Jobs")
    reader.click("About")
    check("about", heading="About")
    reader.open("/ui/nothing")
    check("a page that is not there", heading="Not found")
