"""Pages that are shown again at the address of a refused form: their links and forms lead to pages."""

import re

import pytest

from service.web import models
from tests.service.web.browser import Browser, Structure


def test_older_versions_are_reached_after_a_refused_promotion(
    visitor: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "SHOWN", 1)
    for _ in range(2):
        visitor.served.train("tennis")
    html = visitor.refused("/models/tennis/aliases", alias="1", version="1")
    older = re.search(r'href="([^"]*)">Older ones', html)
    assert older
    assert older[1].startswith("/ui/models/tennis?cursor=")
    assert "version 1" in visitor.get(older[1].removeprefix("/ui"))


def test_every_address_of_a_page_after_a_refusal_is_complete(visitor: Browser) -> None:
    data_set = visitor.served.train("tennis")
    answer = visitor.served.predict("tennis", {"rows": [{"Outlook": "Sunny"}]})
    job = visitor.change("/train", model="tennis", dataset=data_set, preset="cart")
    visitor.change(f"{job}/cancel")
    visitor.change("/models/tennis/aliases", alias="production", version="1")
    decision = f"/decisions/{answer['predictions'][0]['decision_id']}"
    for path, status in (
        (f"/datasets/{data_set}/delete", 409),
        (f"{job}/cancel", 409),
        ("/models/tennis/aliases", 422),
        ("/models/tennis/aliases/production/rollback", 409),
        ("/models/tennis/versions/1/archive", 409),
        (f"{decision}/outcome", 422),
        ("/models/tennis/versions/1/prune", 422),
        ("/train", 422),
        ("/datasets", 422),
    ):
        fields = {"method": "none"} if path.endswith("prune") else {}
        found = Structure(visitor.refused(path, status=status, **fields))
        assert "" not in found.actions, path
        assert [one for one in found.addresses if not one.startswith(("/ui/", "/static/", "#"))] == [], path
