"""The first page: every model is reached, and every link leads to something."""

import re

import pytest

from service.web import home
from tests.service.web.browser import Browser, Structure, text_of


def test_every_model_is_reached_from_the_first_page(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "MAX_MODELS", 1)
    visitor.served.train("older")
    visitor.served.train("newer")
    html = visitor.get("/")
    assert ("/ui/models/newer" in html, "/ui/models/older" in html) == (True, False)
    older = re.search(r'href="/ui([^"]*)">Older ones', html)
    assert older
    assert "/ui/models/older" in visitor.get(older[1])


def test_the_newest_version_is_one_that_was_not_deleted(visitor: Browser) -> None:
    for _ in range(2):
        visitor.served.train("tennis")
    for number, newest in ((2, ["/ui/models/tennis/versions/1"]), (1, [])):
        assert visitor.served.client.delete(f"/v1/models/tennis/versions/{number}").status_code == 204
        assert [one for one in Structure(visitor.get("/")).addresses if "/versions/" in one] == newest


def test_a_list_of_aliases_that_is_cut_says_so(visitor: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "SHOWN", 1)
    visitor.served.train("tennis")
    visitor.change("/models/tennis/aliases", alias="archive", version="1")
    assert "more" not in text_of(visitor.get("/"))
    visitor.change("/models/tennis/aliases", alias="production", version="1")
    assert "archive: version 1 , and more" in text_of(visitor.get("/"))
