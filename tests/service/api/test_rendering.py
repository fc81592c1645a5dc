"""Trees and ways through them over HTTP: forms, parts, content types, and what a browser may do with a picture."""

import base64
import hashlib
import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest

import espalier
from service.api import models as views
from service.settings import Settings
from tests.core.hostile import HOSTILE, hostile
from tests.service.served import HOURS, TENNIS, Served, assert_problem, serving

TREE = "/v1/models/tennis/versions/1/tree"
SUNNY = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Strong"}
TYPES = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "mermaid": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "svg": "image/svg+xml; charset=utf-8",
}


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as one:
        one.train("tennis")
        yield one


def tennis() -> espalier.Model:
    return espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")


def test_each_form_of_a_tree_is_what_the_core_gives_with_its_own_content_type(served: Served) -> None:
    for form, content_type in TYPES.items():
        whole, part = (served.client.get(f"{TREE}?format={form}{more}") for more in ("", "&node=1&depth=0"))
        assert whole.content_type == part.content_type == content_type
        assert whole.headers["X-Content-Type-Options"] == "nosniff"
        if form == "json":
            assert whole.get_json() == espalier.to_columns(tennis())
            assert part.get_json() == espalier.to_columns(tennis(), node=1, depth=0)
        else:
            render = getattr(espalier, f"to_{form}")
            assert (whole.text, part.text) == (render(tennis()), render(tennis(), node=1, depth=0))


def test_columns_of_a_part_name_the_nodes_and_what_is_folded(served: Served) -> None:
    # Outlook: Overcast is a leaf, below Rain and below Sunny are two leaves each.
    part = served.client.get(f"{TREE}?depth=1").get_json()
    assert (part["node"], part["folded"], part["parent"]) == ([0, 1, 2, 5], [0, 0, 2, 2], [-1, 0, 0, 0])
    assert part["weight"] == [14, 4, 5, 5]
    sunny = served.client.get(f"{TREE}?node=5").get_json()
    assert (sunny["node"], sunny["folded"], sunny["size"]) == ([5, 6, 7], [0, 0, 0], [3, 1, 1])


def test_parts_that_do_not_exist_are_refused_by_name(served: Served) -> None:
    for asked in ("node=8", "node=-1", "node=x", "depth=-1", "depth=1e3", "depth=99999999999"):
        for form in TYPES:
            response = served.client.get(f"{TREE}?format={form}&{asked}")
            assert_problem(response, 422, f"/{asked.partition('=')[0]}")


def test_a_picture_may_apply_its_own_style_and_nothing_else(served: Served) -> None:
    response = served.client.get(f"{TREE}?format=svg")
    policy = dict(part.strip().partition(" ")[::2] for part in response.headers["Content-Security-Policy"].split(";"))
    [style] = re.findall(r"<style>(.*?)</style>", response.text)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.pop("style-src") == f"'sha256-{digest}'"
    assert policy.pop("sandbox") == ""
    assert set(policy.values()) == {"'none'"}
    assert {"default-src", "frame-ancestors"} <= policy.keys()


def test_names_of_others_are_shown_in_every_form_and_do_nothing(served: Served) -> None:
    for number, name in enumerate(HOSTILE, 1):
        served.keep("hostile", hostile(name))
        path = f"/v1/models/hostile/versions/{number}/tree"
        for form, content_type in TYPES.items():
            response = served.client.get(f"{path}?format={form}")
            assert (response.status_code, response.content_type) == (200, content_type)
            response.data.decode("utf-8")
        root = ET.fromstring(served.client.get(f"{path}?format=svg").text)  # noqa: S314 - our own
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "g", "path", "text"}


def test_trees_too_large_to_show_are_folded_for_people_and_refused_to_programs(served: Served, monkeypatch) -> None:
    steps = "x,y\n" + "".join(f"{place},{'pq'[place % 2]}\n" for place in range(200))
    served.train("steps", steps, preset="cart", target="y")
    monkeypatch.setattr(views, "MAX_NODES", 50)
    monkeypatch.setattr(views, "MAX_COLUMN_NODES", 50)
    path = "/v1/models/steps/versions/1/tree"
    for form in ("text", "mermaid", "dot"):
        shown = served.client.get(f"{path}?format={form}").text
        assert "leaves folded" in shown
        assert shown.count("\n") < 110
        detail = assert_problem(served.client.get(f"{path}?format={form}&depth=150"), 422)["detail"]
        assert "give a smaller depth" in detail
    assert "give a depth" in assert_problem(served.client.get(path), 422)["detail"]
    assert len(served.client.get(f"{path}?depth=10").get_json()["node"]) == 21


def test_a_decision_is_drawn_with_the_way_that_led_to_it(served: Served) -> None:
    prediction = served.predict("tennis", {"rows": [SUNNY]})["predictions"][0]
    response = served.client.get(f"/v1/decisions/{prediction['decision_id']}/explanation?format=svg")
    assert response.content_type == TYPES["svg"]
    assert "sandbox" in response.headers["Content-Security-Policy"]
    root = ET.fromstring(response.text)  # noqa: S314 - our own
    groups = {int(group.get("data-node", "")): group for group in root.iter() if group.get("data-node")}
    on_the_way = {node for node, group in groups.items() if group.get("opacity") is None}
    assert on_the_way == {*(step["node"] for step in prediction["path"]), prediction["leaf"]}
    assert "tennis, version 1, decided" in response.text
    assert "verified: the version makes the same decision today" in response.text


def test_a_decision_by_another_strategy_for_missing_values_is_drawn_by_it(served: Served) -> None:
    prediction = served.predict("tennis", {"rows": [{}], "missing": "last_prediction"})["predictions"][0]
    path = f"/v1/decisions/{prediction['decision_id']}/explanation?format=svg"
    faded = re.findall(r'data-node="(\d+)" opacity', served.client.get(path).text)
    assert sorted(map(int, faded)) == [1, 2, 3, 4, 5, 6, 7]


def test_the_picture_of_a_decision_by_rules_is_refused_and_its_text_is_not(served: Served) -> None:
    served.keep("rules", espalier.extract_rules(tennis()))
    decision = served.predict("rules", {"rows": [SUNNY]})["predictions"][0]["decision_id"]
    refused = assert_problem(served.client.get(f"/v1/decisions/{decision}/explanation?format=svg"), 422)
    assert "get text or json" in refused["detail"]
    for form in ("text", "json"):
        assert served.client.get(f"/v1/decisions/{decision}/explanation?format={form}").status_code == 200


def test_a_regression_is_drawn(served: Served) -> None:
    served.train("hours", HOURS, preset="cart", target="hours")
    decision = served.predict("hours", {"rows": [{"size": 1}]})["predictions"][0]["decision_id"]
    assert "it is 1" in served.client.get(f"/v1/decisions/{decision}/explanation?format=svg").text
