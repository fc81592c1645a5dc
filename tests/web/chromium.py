"""Debian's Chromium, driven by Playwright: a page that notices what a strict page must not do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect, sync_playwright

WANTED = os.environ.get("ESPALIER_TEST_CHROMIUM")  # set where the tests must not be left out
FOUND = shutil.which(WANTED or "chromium")
OPTIONS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]
BARRIERS = {"resultTypes": ["violations"]}  # axe then does not collect what is in order
RULES = {**BARRIERS, "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
CONTRAST = {**BARRIERS, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 380, "height": 800}
REFUSED = "the server responded with a status of 4"  # Chromium's own line for a form that was refused
MAX_TABS = 400
# How many things that take the focus lie before something: asking after every Tab takes longer.
STEPS = """target => {
  const kinds = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
  const found = [...document.querySelectorAll(kinds)].filter((one) => one.checkVisibility());
  return Math.max(0, found.indexOf(target) - found.indexOf(document.activeElement));
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; without it the test is skipped, unless it must run."""
    if FOUND is None:
        assert WANTED is None, f"ESPALIER_TEST_CHROMIUM={WANTED}: there is no such program"
        pytest.skip("no chromium on this machine: on Debian, apt-get install chromium fonts-dejavu-core")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=FOUND, chromium_sandbox=False, args=OPTIONS)
        yield browser
        browser.close()


@dataclass
class Reader:
    """A person at a page, with a mouse; `complaints` is what the browser reported meanwhile."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(20_000)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._requested)
        # The browser reports dialogues from now on: asked for only just before a key, it may miss the first one.
        self.page.on("filechooser", lambda _: None)
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation', (event) =>"
            " console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )

    def open(self, path: str) -> None:
        """Open a page by its address."""
        self.page.goto(self.address + path)

    def click(self, name: str, *, role: Any = "link", exact: bool = True) -> None:
        """Click a link or a button by its name."""
        self.activate(self.page.get_by_role(role, name=name, exact=exact).first)

    def press(self, name: str) -> None:
        """Press a button by its name."""
        self.click(name, role="button")

    def activate(self, place: Locator) -> None:
        """Click on something."""
        place.click()

    def fill(self, label: str, text: str) -> None:
        """Type into a field."""
        self.page.get_by_label(label, exact=True).first.fill(text)

    def choose(self, label: str, text: str) -> None:
        """Choose from a menu."""
        self.page.get_by_label(label, exact=True).first.select_option(label=text)

    def attach(self, label: str, file: str) -> None:
        """Choose a file."""
        self.page.get_by_label(label, exact=True).set_input_files(file)

    def slide(self, label: str, steps: int) -> None:
        """Move a slider to the right."""
        self.page.get_by_label(label, exact=True).focus()
        for _ in range(steps):
            self.page.keyboard.press("ArrowRight")

    def check(self, name: str, heading: str) -> None:
        """Wait for the page with a heading, and check it: barriers in both colour schemes, and the width it needs."""
        expect(self.page.get_by_role("heading", level=1)).to_contain_text(heading)
        if name in self.checked:
            return
        self.checked.add(name)
        for rules, colours in ((RULES, "light"), (CONTRAST, "dark")):
            self.page.emulate_media(color_scheme=colours)  # type: ignore[arg-type] # one of its words
            found = Axe().run(self.page, options=rules)
            self.complaints += [
                f"{name}, {colours}: {one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
                for one in found.response["violations"]
            ]
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size(NARROW)  # type: ignore[arg-type] # as a mapping
        width = self.page.evaluate("document.documentElement.scrollWidth")
        if width > NARROW["width"]:
            self.complaints.append(f"{name}: is {width} wide on a screen of {NARROW['width']}")
        self.page.set_viewport_size(WIDE)  # type: ignore[arg-type] # as above

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and REFUSED not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _requested(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.complaints.append(f"request: {request.url}")


class Typist(Reader):
    """A person with a keyboard alone."""

    def activate(self, place: Locator) -> None:
        """Go to a link or a button, and press Enter."""
        self._reach(place)
        self.page.keyboard.press("Enter")

    def fill(self, label: str, text: str) -> None:
        """Go to a field, and type instead of what is there."""
        self._reach(self.page.get_by_label(label, exact=True).first)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose(self, label: str, text: str) -> None:
        """Go to a menu, and type what is to be chosen."""
        menu = self.page.get_by_label(label, exact=True).first
        self._reach(menu)
        self.page.keyboard.type(text)
        assert menu.evaluate("menu => menu.selectedOptions[0].label") == text

    def attach(self, label: str, file: str) -> None:
        """Go to the field of a file, and open the dialogue."""
        self._reach(self.page.get_by_label(label, exact=True))
        with self.page.expect_file_chooser() as dialogue:
            self.page.keyboard.press("Space")
        dialogue.value.set_files(file)

    def slide(self, label: str, steps: int) -> None:
        """Go to a slider, and move it to the right."""
        self._reach(self.page.get_by_label(label, exact=True))
        for _ in range(steps):
            self.page.keyboard.press("ArrowRight")

    def _reach(self, place: Locator) -> None:
        """Press Tab until something has the focus."""
        place.wait_for()
        for _ in range(place.evaluate(STEPS)):
            self.page.keyboard.press("Tab")
        for _ in range(MAX_TABS):
            if place.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{place} cannot be reached with Tab")
