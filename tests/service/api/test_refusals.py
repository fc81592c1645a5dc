"""Predictions that are refused: logged as failed, row by row; and what is too much to be explained in full."""

import csv
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

import espalier
from service.settings import Settings
from tests.service.served import ON_SQLITE, TENNIS, Served, assert_problem, serving

SUNNY = {"Outlook": "Sunny", "Humidity": "High"}
WRONG = {"Outlook": "Sunny", "Wind": 5}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        one.train("tennis")
        yield one


def logged(served: Served, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = served.client.get(f"/v1/decisions{query}").get_json()["items"]
    return items


def faults(decision: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["pointer"], one["code"]) for one in decision["answer"]["errors"]]


def test_a_request_that_is_refused_is_logged_as_failed_row_by_row(served: Served) -> None:
    asked = {"rows": [SUNNY, WRONG, {"Sun": 1}], "subject": "Ada"}
    assert_problem(served.post("/v1/models/tennis/predict", asked), 422, "/rows/1/Wind", "/rows/2/Sun")
    good, wrong, strange = logged(served, "?subject=Ada")
    assert faults(good) == [("", "not_answered")]
    assert faults(wrong) == [("/rows/1/Wind", "wrong_type")]
    assert faults(strange) == [("/rows/2/Sun", "unknown_attribute")]
    assert [one["input"] for one in (good, wrong, strange)] == [SUNNY, WRONG, {}]
    assert [one["leaf"] for one in (good, wrong, strange)] == [None] * 3
    for one in (good, wrong):
        assert_problem(served.client.get(f"/v1/decisions/{one['id']}/explanation"), 409)
        assert_problem(served.post(f"/v1/decisions/{one['id']}/outcome", {"label": "No"}), 409)


def test_columns_that_are_refused_are_logged_by_their_places(served: Served) -> None:
    asked = {"columns": {"Outlook": ["Sunny", "Rain"], "Wind": ["Weak", 5]}}
    assert_problem(served.post("/v1/models/tennis/predict", asked), 422, "/columns/Wind/1")
    assert [faults(one) for one in logged(served)] == [[("", "not_answered")], [("/columns/Wind/1", "wrong_type")]]


def test_a_single_row_that_is_refused_is_one_decision(served: Served) -> None:
    assert_problem(served.post("/v1/models/tennis/predict", {"rows": [WRONG]}), 422, "/rows/0/Wind")
    [one] = logged(served)
    assert ":" not in one["id"]
    assert faults(one) == [("/rows/0/Wind", "wrong_type")]


def test_a_strategy_that_the_model_cannot_take_fails_every_row(served: Served) -> None:
    asked = {"rows": [SUNNY, SUNNY], "missing": "surrogate"}
    assert_problem(served.post("/v1/models/tennis/predict", asked), 422, "/missing")
    assert [faults(one) for one in logged(served)] == [[("/missing", "not_legal")]] * 2


def test_the_inference_protocol_logs_what_it_refuses(served: Served) -> None:
    inputs = [
        {"name": "Outlook", "shape": [2], "datatype": "BYTES", "data": ["Sunny", "Rain"]},
        {"name": "Wind", "shape": [2], "datatype": "INT64", "data": [5, 6]},
    ]
    assert served.post("/v2/models/tennis/infer", {"inputs": inputs}).status_code == 400
    assert {pointer for one in logged(served) for pointer, _ in faults(one)} == {"/inputs/1/data/0", "/inputs/1/data/1"}


@pytest.mark.parametrize("status", ["first", "later"])
def test_a_stream_logs_the_rows_at_which_it_ends(served: Served, status: str) -> None:
    good = '{"Outlook":"Overcast"}\n' * (0 if status == "first" else 1_000)
    lines = good + '{"Outlook":"Sunny"}\n{"Wind":5}\n'
    path = "/v1/models/tennis/predict?explain=none"
    response = served.client.post(path, data=lines, content_type="application/x-ndjson")
    assert response.status_code == (422 if status == "first" else 200)
    response.get_data()  # all of the answer, as a client that stays
    n_good = len(good.splitlines())
    assert [faults(one) for one in logged(served, "?limit=2")] == [
        [("", "not_answered")],
        [(f"/rows/{n_good + 1}/Wind", "wrong_type")],
    ]


def test_a_masked_input_of_a_refused_row_is_not_logged(served: Served) -> None:
    assert served.client.patch("/v1/models/tennis", json={"mask": ["Wind"]}).status_code == 200
    assert_problem(served.post("/v1/models/tennis/predict", {"rows": [WRONG]}), 422, "/rows/0/Wind")
    [one] = logged(served)
    assert (one["input"], one["masked"]) == ({"Outlook": "Sunny"}, ["Wind"])


def test_a_request_that_says_nothing_of_rows_is_no_decision(served: Served) -> None:
    assert_problem(served.post("/v1/models/tennis/predict", {"rows": [SUNNY], "explian": "full"}), 422, "/explian")
    assert logged(served) == []


# explain=full


def test_more_rows_times_nodes_than_allowed_are_not_explained_in_full(settings: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    with serving(settings, max_full_nodes=3 * model.tree.n_nodes) as served:
        served.keep("tennis", model)
        full = {"explain": "full"}
        assert served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 3, **full}).status_code == 200
        refused = served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 4, **full})
        detail = assert_problem(refused, 413)["detail"]
        limit = 3 * model.tree.n_nodes
        assert detail == f"too many rows times nodes (explain: full): at most {limit} are allowed"
        assert served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 4}).status_code == 200
        lines = '{"Outlook":"Overcast"}\n' * 4
        streamed = served.client.post(
            "/v1/models/tennis/predict?explain=full", data=lines, content_type="application/x-ndjson"
        )
        assert_problem(streamed, 413)


def test_more_rows_times_levels_than_allowed_have_no_paths(settings: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "id3")
    assert model.tree.depth == 2
    with serving(settings, max_full_nodes=6) as served:
        served.keep("tennis", model)
        assert served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 3}).status_code == 200
        refused = served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 4})
        detail = assert_problem(refused, 413)["detail"]
        assert detail == "too many rows times levels (explain: path): at most 6 are allowed"
        assert served.post("/v1/models/tennis/predict", {"rows": [SUNNY] * 4, "explain": "none"}).status_code == 200
        inputs = [{"name": "Outlook", "shape": [4], "datatype": "BYTES", "data": ["Sunny"] * 4}]
        asked = {"inputs": inputs, "outputs": [{"name": "decision_path"}]}
        assert "rows times levels" in served.post("/v2/models/tennis/infer", asked).get_json()["error"]
        assert served.post("/v2/models/tennis/infer", {"inputs": inputs}).status_code == 200
        # Lines are answered as they come, as many together as may be.
        streamed = served.client.post(
            "/v1/models/tennis/predict", data='{"Outlook":"Sunny"}\n' * 7, content_type="application/x-ndjson"
        )
        assert (streamed.status_code, streamed.text.count('"label"')) == (200, 7)


def test_the_paths_of_a_row_that_goes_several_ways_count_each(settings: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "c45")
    n_steps = 2 + 2 + 1 + 2 + 2  # sunny: high or normal; overcast; rain: weak or strong
    with serving(settings, max_full_nodes=2 * n_steps) as served:
        served.keep("tennis", model)
        for on_error in ("fail", "skip"):
            asked = {"on_error": on_error, "missing": "fractional"}
            found = served.post("/v1/models/tennis/predict", {**asked, "rows": [{}] * 2}).get_json()["predictions"]
            assert [sum(len(path["path"]) for path in one["paths"]) for one in found] == [n_steps] * 2
            refused = served.post("/v1/models/tennis/predict", {**asked, "rows": [{}] * 3})
            assert "at most 18 are allowed" in assert_problem(refused, 413)["detail"]
            assert (
                served.post("/v1/models/tennis/predict", {**asked, "rows": [{}] * 3, "explain": "none"}).status_code
                == 200
            )
        # Lines are answered as they come, as many together as may be.
        streamed = served.client.post(
            "/v1/models/tennis/predict?missing=fractional", data="{}\n" * 7, content_type="application/x-ndjson"
        )
        assert (streamed.status_code, streamed.text.count('"label"')) == (200, 7)
    with serving(settings, max_full_nodes=60) as served:  # 7 rows times 8 nodes, but 63 steps
        served.keep("tennis", model)
        for explain in ("path", "full"):
            streamed = served.client.post(
                f"/v1/models/tennis/predict?missing=fractional&explain={explain}",
                data="{}\n" * 7,
                content_type="application/x-ndjson",
            )
            assert (streamed.status_code, streamed.text.count('"decision_id"')) == (200, 7)


@ON_SQLITE
def test_the_paths_of_rows_without_values_are_limited_in_answers_without_paths_too(settings: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "c45")
    n_paths = 5  # of a row without values: see above
    for n_rows in (3, 250):  # a few rows are answered one by one, many as a table
        with serving(settings, max_full_nodes=n_paths * n_rows) as served:
            served.keep("tennis", model)
            for given in (n_rows, n_rows + 1):
                status = 200 if given == n_rows else 413
                for table in ({"rows": [{}] * given}, {"columns": {"Outlook": [None] * given}}):
                    asked = {**table, "explain": "none", "missing": "fractional"}
                    response = served.post("/v1/models/tennis/predict", asked)
                    assert response.status_code == status, response.text
            detail = assert_problem(response, 413)["detail"]
            limit = f"at most {n_paths * n_rows} are allowed"
            assert detail == f"too many paths of rows that take several branches: {limit}"
            hot = {"name": "Temperature", "shape": [given], "datatype": "BYTES", "data": ["Hot"] * given}
            assert_problem(served.post("/v2/models/tennis/infer", {"inputs": [hot]}), 413)


@ON_SQLITE
@pytest.mark.parametrize("explain", ["none", "path"])
@pytest.mark.parametrize(
    ("kind", "lines"), [("text/csv", "Temperature\n" + "Hot\n" * 700), ("application/x-ndjson", "{}\n" * 700)]
)
def test_of_a_stream_as_many_rows_are_answered_together_as_the_limit_allows(
    settings: Settings, kind: str, lines: str, explain: str
) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "c45")
    path = f"/v1/models/tennis/predict?missing=fractional&explain={explain}"
    with serving(settings, max_full_nodes=900) as served:  # 180 rows of 5 paths, 100 of 9 steps
        served.keep("tennis", model)
        text = served.client.post(path, data=lines, content_type=kind).text.splitlines()
        found = list(csv.DictReader(text)) if kind == "text/csv" else list(map(orjson.loads, text))
        assert [int(one["row"]) for one in found] == list(range(700))
        assert len({(one["label"], one["support"]) for one in found}) == 1
        records = {one["decision_id"].partition(":")[0] for one in found}
        assert 700 / 180 <= len(records) <= 700 / 50
    with serving(settings, max_full_nodes=4) as served:
        served.keep("tennis", model)
        assert_problem(served.client.post(path, data=lines, content_type=kind), 413)


@ON_SQLITE
def test_after_rows_with_many_paths_a_stream_answers_more_rows_together_again(settings: Settings) -> None:
    model = espalier.train(espalier.dataset_from_csv(TENNIS, target="PlayTennis"), "c45")
    known = '{"Outlook": "Overcast"}\n'
    with serving(settings, max_full_nodes=9) as served:  # one row of 5 paths
        served.keep("tennis", model)
        path = "/v1/models/tennis/predict?missing=fractional&explain=none"
        text = served.client.post(path, data="{}\n" * 2 + known * 500, content_type="application/x-ndjson").text
        records = {orjson.loads(line)["decision_id"].partition(":")[0] for line in text.splitlines()}
        assert len(records) < 20


@ON_SQLITE
@pytest.mark.parametrize(("n_classes", "times"), [(9, 1), (10, 2), (25, 3)])
def test_levels_and_paths_count_once_more_for_every_ten_classes(settings: Settings, n_classes: int, times: int) -> None:
    csv = "x,y\n" + "".join(f"{n},c{n}\n" * 4 for n in range(n_classes))
    model = espalier.train(espalier.dataset_from_csv(csv, target="y"), "c45")
    n_leaves, depth = model.tree.n_leaves, model.tree.depth
    assert n_leaves == n_classes
    for n_rows, cell, explain, each in (
        (3, 1, "path", depth),
        (3, None, "none", n_leaves),
        (250, None, "none", n_leaves),
    ):
        with serving(settings, max_full_nodes=n_rows * each * times) as served:
            served.keep("many", model)
            for given, status in ((n_rows, 200), (n_rows + 1, 413)):
                response = served.post("/v1/models/many/predict", {"rows": [{"x": cell}] * given, "explain": explain})
                assert response.status_code == status, response.text
            assert f"at most {n_rows * each} are allowed" in response.get_json()["detail"]


def test_one_level_is_always_allowed(settings: Settings) -> None:
    csv = "x,y\n" + "".join(f"{n % 2},c{n}\n" for n in range(20))
    model = espalier.train(espalier.dataset_from_csv(csv, target="y"), "c45")
    assert model.tree.depth <= 1
    with serving(settings, max_full_nodes=1) as served:
        served.keep("many", model)
        assert served.post("/v1/models/many/predict", {"rows": [{"x": 1}], "explain": "path"}).status_code == 200


def test_a_list_of_rules_counts_by_its_rules(settings: Settings) -> None:
    data = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    rules = espalier.prune(
        espalier.train(data, "id3", holdout=espalier.Holdout(0.3, seed=1)),
        espalier.pruning_method("rules"),
        dataset=data,
    ).model
    n_rules = rules.rules.n_rules + 1
    with serving(settings, max_full_nodes=2 * n_rules) as served:
        served.keep("rules", rules)
        for n_rows, status in ((2, 200), (3, 413)):
            asked = {"rows": [SUNNY] * n_rows, "explain": "full"}
            assert served.post("/v1/models/rules/predict", asked).status_code == status
