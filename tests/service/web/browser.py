"""A browser without scripts: the application in this process, with cookies and the token of its forms."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import flask.testing
from werkzeug.test import TestResponse

from tests.service.served import Served

TOKEN = re.compile(r'name="csrf" value="(\w+)"')


@dataclass
class Browser:
    """A browser at an application."""

    served: Served
    client: flask.testing.FlaskClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.served.client.application.test_client()

    def get(self, path: str, *, status: int = 200, **headers: str) -> str:
        """Open a page below /ui; give its HTML."""
        with self.client.get(f"/ui{path}", headers=headers) as response:
            assert response.status_code == status, text_of(response.text)
            return response.get_data(as_text=True)

    def token(self) -> str:
        """The token of the session, as every form has it."""
        found = TOKEN.search(self.get("/login")) or TOKEN.search(self.get("/datasets"))
        assert found
        return found[1]

    def send(self, path: str, fields: Mapping[str, Any], **more: Any) -> TestResponse:
        """Send a form with the token of the session."""
        return self.client.post(f"/ui{path}", data={"csrf": self.token(), **fields}, **more)

    def change(self, path: str, **fields: Any) -> str:
        """Send a form that must succeed; give the path that the browser goes to."""
        response = self.send(path, fields)
        assert response.status_code == 303, text_of(response.text)
        return response.headers["Location"].removeprefix("/ui")

    def refused(self, path: str, *, status: int = 422, **fields: Any) -> str:
        """Send a form that must be refused; give the HTML of the form that is shown again."""
        response = self.send(path, fields)
        assert response.status_code == status, text_of(response.text)
        return response.text


def log_in(browser: Browser, token: str) -> TestResponse:
    """Log in with a key."""
    return browser.send("/login", {"key": token})


def text_of(html: str) -> str:
    """Give what a reader sees."""
    html = re.sub("</?bdi>", "", html)  # has no space around it
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


class Structure(HTMLParser):
    """What a strict policy would forbid, fields by their ids, labels by what they are for, lists of words, actions."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forbidden: list[str] = []
        self.ids: list[str] = []
        self.labelled: set[str] = set()
        self.lists: set[str] = set()
        self.addresses: list[str] = []
        self.actions: list[str] = []
        self.values: dict[str, str] = {}
        self.described: dict[str, str] = {}
        self.in_svg = False
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.in_svg = self.in_svg or tag == "svg"
        if (tag == "script" and "src" not in given) or (tag == "style" and not self.in_svg):
            self.forbidden.append(tag)
        self.forbidden += [name for name in given if name.startswith("on") or name == "style"]
        self.addresses += [given[name] for name in ("src", "href", "action", "hx-get", "hx-post") if name in given]
        if tag == "form":
            self.actions.append(given.get("action", ""))
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "label":
            self.labelled.add(given.get("for", ""))
        if "list" in given:
            self.lists.add(given["list"])
        if "name" in given and tag == "input":
            self.values[given["name"]] = given.get("value", "")
        if "aria-describedby" in given:
            self.described[given.get("name", given.get("id", ""))] = given["aria-describedby"]


def faults_of(html: str, name: str) -> str:
    """Give the text that a field is described by."""
    place = Structure(html).described[name]
    found = re.search(rf'id="{re.escape(place)}">([^<]*)<', html)
    assert found, place
    return found[1]
