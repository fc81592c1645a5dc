"""The built site requests nothing from other hosts. `make docs` builds it and runs this."""

from html.parser import HTMLParser

import pytest

import espalier
from tests.factories import ROOT

SITE = ROOT / "site"
LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
    "object": "data",
    "use": "href",
}
"""Elements that make a browser load something, and the attribute that says from where."""

pytestmark = pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is built by `make docs`")


class Loads(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name == LOADS.get(tag) and value]


def is_elsewhere(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def test_no_page_loads_a_script_a_font_a_style_or_an_image_from_elsewhere() -> None:
    for page in SITE.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [address for address in loads.addresses if is_elsewhere(address)] == [], page


def test_no_style_sheet_loads_anything_from_elsewhere() -> None:
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8").replace('"', "").replace("'", "")
        assert "url(http" not in text, sheet
        assert "url(//" not in text, sheet
        assert "@import http" not in text, sheet


@pytest.mark.parametrize("page", ["index.html", "reference/python_api.html", "how-to/predict.html"])
def test_the_pages_are_there(page: str) -> None:
    assert (SITE / page).stat().st_size > 1_000


def test_every_public_name_has_an_entry_on_the_page_on_python() -> None:
    text = (SITE / "reference" / "python_api.html").read_text(encoding="utf-8")

    assert text.count('class="doc doc-heading"') >= len(espalier.__all__)
