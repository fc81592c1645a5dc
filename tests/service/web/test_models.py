"""The page of a model: what its forms do after a refusal, and when they are sent twice."""

import re

import pytest

from service.database.engine import read_session
from service.repositories import aliases
from service.web import models
from tests.service.web.browser import Browser, Structure, text_of

OPTION = re.compile(r'<option value="(\d+)"( selected)?>')


def test_a_rollback_that_is_sent_twice_goes_back_one_step(visitor: Browser) -> None:
    for number in ("1", "2", "3"):
        visitor.served.train("tennis")
        visitor.change("/models/tennis/aliases", alias="production", version=number)
    [action] = [one for one in Structure(visitor.get("/models/tennis")).actions if "rollback" in one]
    action = action.removeprefix("/ui")
    visitor.change(action)
    refused = text_of(visitor.refused(action, status=409))
    assert "alias &#39;production&#39; of model &#39;tennis&#39; was not changed: it points at version 2" in refused
    with read_session(visitor.served.service.sessions) as session:
        [event] = aliases.list_current(session, "tennis").items
    assert event.version.number == 2


def test_a_refused_promotion_of_an_old_version_keeps_the_version(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SHOWN", 1)
    for _ in range(2):
        visitor.served.train("tennis")
    older = re.search(r'href="/ui([^"]*)">Older ones', visitor.get("/models/tennis"))
    assert older
    html = visitor.get(older[1].replace("&amp;", "&"))
    assert OPTION.findall(html) == [("1", "")]
    [action] = [one for one in Structure(html).actions if one.partition("?")[0].endswith("/aliases")]
    refused = visitor.refused(action.removeprefix("/ui").replace("&amp;", "&"), alias="1", version="1")
    assert OPTION.findall(refused) == [("1", " selected")]
