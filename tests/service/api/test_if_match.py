"""Changes of what is still as the caller has seen it: If-Match."""

import threading
from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.service.served import TENNIS, Served, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def tag_of(served: Served, path: str) -> str:
    return str(served.client.get(path).headers["ETag"])


def changes(served: Served) -> dict[str, tuple[str, dict[str, object] | None]]:
    """By path, the method of a change, and its body."""
    data = served.upload(TENNIS, target="PlayTennis")["id"]
    return {
        f"/v1/datasets/{data}": ("PATCH", {"target": "Outlook"}),
        "/v1/models/tennis": ("PATCH", {"description": "for days out"}),
    }


def test_what_is_as_it_was_seen_is_changed_and_the_next_change_may_follow(served: Served) -> None:
    for path, (method, body) in changes(served).items():
        seen = tag_of(served, path)
        for match in (f'"other", {seen}', "*"):
            changed = served.client.open(path, method=method, json=body, headers={"If-Match": match})
            assert changed.status_code == 200, changed.text
            assert changed.headers["ETag"] == tag_of(served, path)
        assert tag_of(served, path) != seen


@pytest.mark.parametrize("match", ['"other"', "other", "", 'W/"other"', "before"])
def test_what_has_changed_meanwhile_stays_as_it_is(served: Served, match: str) -> None:
    for path, (method, body) in changes(served).items():
        given = match
        if match == "before":
            given = tag_of(served, path)
            assert served.client.open(path, method=method, json=body).status_code == 200
        now = served.client.get(path).data
        for again in (method, "DELETE"):
            refused = served.client.open(path, method=again, json=body, headers={"If-Match": given})
            problem = refused.get_json()
            assert (refused.status_code, problem["type"]) == (412, "urn:espalier:problem:changed"), refused.text
            assert "If-Match" in problem["detail"]
        assert served.client.get(path).data == now


@pytest.mark.parametrize("match", ["*", "current", "weak"])
def test_a_change_of_what_the_caller_says_he_has_not_is_refused(served: Served, match: str) -> None:
    """If-None-Match of another method than GET: 412 where the ETag is among those given (RFC 9110, 13.1.2)."""
    for path, (method, body) in changes(served).items():
        now, tag = served.client.get(path).data, tag_of(served, path)
        given = {"*": "*", "current": f'"other", {tag}', "weak": f"W/{tag}"}[match]
        for again in (method, "DELETE"):
            refused = served.client.open(path, method=again, json=body, headers={"If-None-Match": given})
            assert refused.status_code == 412, refused.text
        assert served.client.get(path).data == now
        other = served.client.open(path, method=method, json=body, headers={"If-None-Match": '"other"'})
        assert other.status_code == 200, other.text


def test_a_weak_tag_is_not_enough_for_a_change(served: Served) -> None:
    weak = f"W/{tag_of(served, '/v1/models/tennis')}"
    refused = served.client.patch("/v1/models/tennis", json={"description": "new"}, headers={"If-Match": weak})
    assert refused.status_code == 412


def test_a_version_or_a_data_set_that_is_as_it_was_seen_is_deleted(served: Served) -> None:
    data = served.upload(TENNIS, target="PlayTennis")["id"]
    for path in (f"/v1/datasets/{data}", "/v1/models/tennis/versions/1", "/v1/models/tennis"):
        seen = tag_of(served, path)
        assert served.client.delete(path, headers={"If-Match": '"other"'}).status_code == 412
        assert served.client.delete(path, headers={"If-Match": seen}).status_code == 204
        assert served.client.delete(path, headers={"If-Match": "*"}).status_code == 404


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/models/tennis/versions/1/archive", None),
        ("/v1/training-jobs", {"model": "second", "config": "cart"}),
        ("/v1/models/tennis/predict", {"rows": [{"Outlook": "sunny"}]}),
    ],
)
def test_a_condition_on_a_path_without_an_etag_is_refused_and_nothing_happens(
    served: Served, path: str, body: dict[str, object] | None, header: str
) -> None:
    if body is not None and "config" in body:
        body = {**body, "dataset": served.upload(TENNIS, target="PlayTennis")["id"]}
    before = [served.client.get(seen).data for seen in ("/v1/models/tennis/versions/1", "/v1/jobs", "/v1/decisions")]
    refused = served.client.post(path, json=body, headers={header: '"other"'})
    assert (refused.status_code, refused.get_json()["type"]) == (412, "urn:espalier:problem:changed")
    assert "has no ETag" in refused.get_json()["detail"]
    after = [served.client.get(seen).data for seen in ("/v1/models/tennis/versions/1", "/v1/jobs", "/v1/decisions")]
    assert after == before


def test_of_writers_that_have_seen_the_same_one_changes_it(served: Served) -> None:
    seen = tag_of(served, "/v1/models/tennis")
    found: list[int] = []
    start = threading.Barrier(4)

    def change(number: int) -> None:
        with served.client.application.test_client() as client:
            start.wait()
            answer = client.patch("/v1/models/tennis", json={"description": f"by {number}"}, headers={"If-Match": seen})
            found.append(answer.status_code)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200, 412, 412, 412]


def test_of_callers_that_delete_the_same_one_does_and_the_others_find_nothing(served: Served) -> None:
    data = served.upload(TENNIS, target="PlayTennis")["id"]
    for path in (f"/v1/datasets/{data}", "/v1/models/tennis"):
        found: list[int] = []
        start = threading.Barrier(6)

        def delete(number: int, path: str = path, found: list[int] = found, start: threading.Barrier = start) -> None:
            with served.client.application.test_client() as client:
                start.wait()
                found.append(client.delete(path, headers={"If-Match": "*"} if number % 2 else {}).status_code)

        threads = [threading.Thread(target=delete, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [204, *[404] * 5]
