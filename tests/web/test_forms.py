"""Forms in a browser with scripts: the slider, the fields and the code agree, also after a refusal and after Back."""

import re
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from playwright.sync_api import Error, Page, Route, expect

from tests.acceptance.running import Running, running
from tests.factories import ROOT
from tests.web.chromium import Reader, chromium

DRUGS = ROOT / "service" / "examples" / "drug200.csv"
PRUNE = "/ui/models/drugs/versions/1/prune"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with one version of the model drugs."""
    with running(tmp_path_factory.mktemp("forms")) as one:
        one.train("drugs", one.upload(DRUGS.read_bytes(), target="Drug", name="drugs"), preset="cart")
        yield one


@pytest.fixture(scope="module")
def reader(service: Running) -> Iterator[Reader]:
    with chromium() as browser:
        yield Reader(browser.new_page(), service.address)


def shell(page: Page) -> str:
    return page.locator("pre code").first.inner_text()


def test_the_step_that_the_slider_shows_is_pruned_after_another_method_was_chosen(
    service: Running, reader: Reader
) -> None:
    page = reader.page
    reader.open(PRUNE)
    reader.choose("Method", "pessimistic")
    expect(page.locator("pre code").first).to_contain_text('"method":"pessimistic"')
    reader.choose("Method", "cost complexity")
    expect(page.get_by_label("Step", exact=True)).to_be_visible()
    reader.slide("Step", 2)
    alpha = page.locator("#steps tbody tr").nth(2).get_attribute("data-alpha")
    expect(page.locator("pre code").first).to_contain_text(f'"params":{{"risk":"error","alpha":{alpha}}}')
    said = re.match(r"\d+", page.locator("#says").inner_text())
    assert said
    reader.press("Prune")
    reader.click("Open version 2 of drugs")
    expect(page.get_by_role("heading", name="drugs, version 2")).to_be_visible()
    assert service.get("/v1/models/drugs/versions/2")["summary"]["n_leaves"] == int(said[0])


def test_the_last_step_is_shown_if_the_slider_moves_faster_than_the_service_answers(reader: Reader) -> None:
    page, held = reader.page, list[Route]()
    reader.open(PRUNE)
    last = page.locator("#steps tbody tr").count() - 1  # there, the root becomes a leaf
    assert last >= 3
    page.route("**/prune/*", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks a function
    reader.slide("Step", last)
    page.unroute("**/prune/*")
    for route in held:
        with suppress(Error):  # the request was given up
            route.continue_()
    alpha = page.locator("#steps tbody tr").nth(last).get_attribute("data-alpha")
    expect(page.locator("pre code").first).to_contain_text(f'"alpha":{alpha}}}')
    expect(page.locator("#preview svg g g").first).to_have_class("differs")


def test_a_refused_pruning_keeps_the_slider_and_the_typed_alpha(reader: Reader) -> None:
    page = reader.page
    for typed in (None, "3.5"):
        reader.open(PRUNE)
        reader.slide("Step", 2)
        if typed:
            reader.fill("alpha", typed)
        alpha, says = page.get_by_label("alpha", exact=True).input_value(), page.locator("#says").inner_text()
        assert typed in (None, alpha)
        reader.choose("Held out", "a share of the rows")
        reader.fill("Share", "2")
        reader.press("Prune")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_label("Step", exact=True)).to_have_value("2")
        expect(page.get_by_label("alpha", exact=True)).to_have_value(alpha)
        expect(page.locator("#says")).to_have_text(says)


def test_going_back_shows_the_slider_and_alpha_of_the_same_step(reader: Reader) -> None:
    page = reader.page
    reader.open(PRUNE)
    reader.slide("Step", 2)
    expect(page.locator("#preview")).to_contain_text("become")
    reader.click("Jobs")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.go_back()
    step = int(page.get_by_label("Step", exact=True).input_value())
    row = page.locator("#steps tbody tr").nth(step)
    assert page.locator("#says").inner_text() == row.get_attribute("data-says")
    alpha = page.get_by_label("alpha", exact=True)
    assert (alpha.input_value() or alpha.get_attribute("placeholder")) == row.get_attribute("data-alpha")


def test_going_back_shows_the_fields_of_the_chosen_preset(reader: Reader) -> None:
    page = reader.page
    reader.open("/ui/train")
    page.get_by_label("Preset", exact=True).select_option("c45")
    expect(page.get_by_role("group", name="Fields of c45")).to_be_visible()
    reader.click("Jobs")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.go_back()
    preset = page.get_by_label("Preset", exact=True).input_value()
    expect(page.get_by_role("group", name=f"Fields of {preset}")).to_be_visible()
    assert f'"preset":"{preset}"' in shell(page)
    assert reader.complaints == []


def test_a_preset_that_cannot_be_shown_leaves_the_fields_as_they_are(reader: Reader) -> None:
    page = reader.page
    reader.open("/ui/train")
    reader.fill("max depth", "3")
    page.context.clear_cookies()  # the session ends
    page.get_by_label("Preset", exact=True).select_option("c45")
    expect(page.locator("#parameters").get_by_role("alert")).to_contain_text("session that has ended")
    expect(page.get_by_label("max depth", exact=True)).to_have_value("3")


def test_a_link_on_another_site_ends_no_session(service: Running, reader: Reader) -> None:
    """The browser takes localhost and 127.0.0.1 for two sites, so it sends no cookie when it follows the link."""
    browser = reader.page.context.browser
    assert browser is not None
    with closing(browser.new_context()) as tabs:
        page, address, form = tabs.new_page(), f"{service.address}/ui/datasets", "form[action$=datasets] [name=csrf]"
        page.goto(address)
        token = page.locator(form).first.get_attribute("value")
        page.goto(service.address.replace("127.0.0.1", "localhost") + "/ui/about")
        page.evaluate(f"location.href = '{address}'")
        page.wait_for_url(address)
        expect(page.locator(form).first).to_have_value(token or "there is none")


def test_the_tree_stays_if_a_part_of_it_cannot_be_fetched(service: Running, reader: Reader) -> None:
    data_set = service.upload(DRUGS.read_bytes(), target="Drug", name="drugs")
    service.train("gone", data_set, preset="cart")
    page = reader.page
    reader.open("/ui/models/gone/versions/1")
    page.locator("summary", has_text="Show the rules").wait_for()
    assert service.client.delete("/v1/models/gone").status_code == 204
    address = page.url
    page.locator("#picture a[data-node]").nth(1).click()
    expect(page.locator("#tree").get_by_role("alert")).to_contain_text("there is no model")
    assert page.url == address
    expect(page.locator("#node h3")).to_contain_text("Node 0")
    page.locator("summary", has_text="Show the rules").click()
    expect(page.locator("details[open]").get_by_role("alert")).to_contain_text("there is no model")
    expect(page.locator("details[open]").get_by_role("link", name="Show them")).to_be_visible()


def test_the_focus_stays_on_a_box_that_the_keyboard_opens(reader: Reader) -> None:
    page = reader.page
    reader.open("/ui/models/drugs/versions/1")
    for node in (0, 1):
        box = page.locator(f'#picture a[data-node="{node}"]')
        box.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"node={node}"))
        expect(page.locator("#node h3")).to_contain_text(f"Node {node}")
        expect(box).to_be_focused()
    page.go_back()
    expect(page.locator("#node h3")).to_contain_text("Node 0")
