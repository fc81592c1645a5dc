"""Resolved versions are cached for at most a second; a change made in the same process is seen at once."""

from collections.abc import Iterator

import pytest

from service.repositories import models
from service.settings import Settings
from service.usecases.version_resolver import VersionResolver
from tests.service.served import Served, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def test_a_new_version_made_elsewhere_answers_at_once(served: Served) -> None:
    elsewhere = VersionResolver(served.service.sessions, timer=lambda: 100.0)  # nothing cached grows old
    assert elsewhere.resolve("tennis").version.number == 1
    served.train("tennis")
    assert elsewhere.resolve("tennis").version.number == 2


def test_a_new_version_made_in_this_process_answers_at_once(served: Served) -> None:
    assert served.predict("tennis", {"rows": [{}]})["version"] == 1
    document = served.client.get("/v1/models/tennis/versions/1/document").data
    made = served.client.post("/v1/models/tennis/versions", data=document, content_type="application/json")
    assert made.status_code == 201
    assert served.predict("tennis", {"rows": [{}]})["version"] == 2


def test_what_changes_during_a_look_up_is_not_missed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = VersionResolver(served.service.sessions)
    look_up = models.newest_version_id

    def slow(*given: object) -> str:
        found = look_up(*given)  # type: ignore[arg-type]
        monkeypatch.undo()
        served.train("tennis")
        versions.invalidate()
        return found

    monkeypatch.setattr(models, "newest_version_id", slow)
    assert versions.resolve("tennis").version.number == 2


def test_a_cached_look_up_began_at_most_a_second_ago(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [100.0]
    versions = VersionResolver(served.service.sessions, timer=lambda: seconds[0])
    look_up = models.newest_version_id

    def slow(*given: object) -> str:
        found = look_up(*given)  # type: ignore[arg-type]
        seconds[0] += took
        return found

    monkeypatch.setattr(models, "newest_version_id", slow)
    took = 0.7
    assert versions.resolve("tennis").settings.mask == frozenset()
    assert served.client.patch("/v1/models/tennis", json={"mask": ["Wind"]}).status_code == 200
    assert versions.resolve("tennis").settings.mask == frozenset()
    seconds[0] += 0.4  # 1.1 seconds after the look-up began, 0.4 after it ended
    assert versions.resolve("tennis").settings.mask == {"Wind"}
    seconds[0] += 2.0
    took = 1.2
    assert versions.resolve("tennis").settings.mask == {"Wind"}
    assert served.client.patch("/v1/models/tennis", json={"mask": []}).status_code == 200
    assert versions.resolve("tennis").settings.mask == frozenset()  # a look-up of more than a second is not cached
