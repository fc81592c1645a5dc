"""What has not changed is not sent again."""

from service.settings import Settings
from tests.service.served import TENNIS, Served, serving


def places(served: Served) -> list[str]:
    dataset = served.upload(TENNIS, target="PlayTennis")["id"]
    job = served.post("/v1/training-jobs", {"model": "m", "dataset": dataset}).get_json()["id"]
    one = [f"/v1/datasets/{dataset}", f"/v1/jobs/{job}", "/v1/models/tennis", "/v1/models/tennis/versions/1"]
    lists = ["/v1/datasets", "/v1/jobs", "/v1/models", "/v1/models/tennis/versions", "/v1/models/tennis/aliases"]
    parts = [
        f"/v1/models/tennis/versions/1/{part}" for part in ("tree", "rules", "rules?format=text", "document", "schema")
    ]
    return [*one, *lists, *parts, f"/v1/datasets/{dataset}/rows", f"/v1/datasets/{dataset}/profile"]


def test_what_the_caller_has_already_is_answered_without_a_body(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("tennis")
        for path in places(served):
            first = served.client.get(path)
            again = served.client.get(path, headers={"If-None-Match": first.headers["ETag"]})
            other = served.client.get(path, headers={"If-None-Match": '"other"'})
            assert (first.status_code, again.status_code, other.status_code) == (200, 304, 200), path
            assert (again.data, other.data) == (b"", first.data)


def test_a_change_gives_another_tag(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("tennis")
        job, model = places(served)[1:3]
        before = {path: served.client.get(path).headers["ETag"] for path in (job, model)}
        served.client.post(f"{job}/cancel")
        served.train("tennis")
        for path, tag in before.items():
            assert served.client.get(path, headers={"If-None-Match": tag}).status_code == 200, path


def test_if_match_comes_before_if_none_match(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("tennis")
        for path in places(served):
            first = served.client.get(path)
            tag = first.headers["ETag"]
            unmet = served.client.get(path, headers={"If-Match": '"other"'})
            met = served.client.get(path, headers={"If-Match": f'"other", {tag}'})
            both = served.client.get(path, headers={"If-Match": tag, "If-None-Match": f'"a", W/{tag}'})
            anything = served.client.get(path, headers={"If-None-Match": "*"})
            assert unmet.status_code == 412, path
            assert (met.status_code, met.data) == (200, first.data), path
            assert [(one.status_code, one.data, one.headers["ETag"]) for one in (both, anything)] == [
                (304, b"", tag)
            ] * 2, path
