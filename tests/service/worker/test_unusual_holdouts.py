"""Held-out rows of an unusual kind: asked for over HTTP, done by the handlers, with an answer that can be read."""

import html
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from werkzeug.test import TestResponse

import espalier
from service.database.engine import transaction
from service.repositories import job_queue
from service.settings import Settings
from service.worker import loop
from service.worker.handlers import JobContext, perform
from tests.service.served import Served, assert_problem, serving

WEATHER = "sky,play\n" + "sun,yes\nrain,no\n" * 6


@pytest.fixture
def served(on_sqlite: Settings) -> Iterator[Served]:
    with serving(on_sqlite) as one:
        yield one


@pytest.mark.parametrize(
    ("rows", "accuracy", "note"),
    [
        # Whatever is answered for a sky that was never seen, or is missing, one of two such rows is right.
        pytest.param("sun,yes\nrain,no\nsnow,yes\nsnow,no\n", 3 / 4, "2 rows have a category", id="unknown categories"),
        pytest.param("sun,yes\nrain,no\n,yes\n,no\n", 3 / 4, "2 rows have no value of any", id="missing values"),
        pytest.param(",yes\n,no\n", 1 / 2, "2 rows have no value of any", id="nothing but missing values"),
        pytest.param("sun,yes\nsun,yes\nrain,yes\n", 2 / 3, "all rows are of the class 'yes'", id="one class only"),
        pytest.param("sun,yes\nrain,maybe\n", 1 / 2, "1 row is of a class", id="a class that was not learned"),
    ],
)
def test_held_out_rows_of_an_unusual_kind_are_measured_on_and_pruned_by(
    served: Served, rows: str, accuracy: float, note: str
) -> None:
    dataset = served.upload(WEATHER, target="play")["id"]
    other = served.upload(f"sky,play\n{rows}", target="play")["id"]
    body = {"model": "weather", "dataset": dataset, "holdout": {"dataset": other}}
    trained = done(served, served.post("/v1/training-jobs", body))
    pruned = done(served, served.post("/v1/pruning-jobs", {"model": "weather", "method": "reduced_error"}))

    assert trained["summary"]["holdout"]["accuracy"] == pytest.approx(accuracy)
    assert (pruned["version"], pruned["summary"]["holdout"]["n_rows"]) == (2, rows.count("\n"))
    assert pruned["summary"]["holdout"]["accuracy"] >= accuracy - 1e-12
    trace = served.client.get("/v1/models/weather/versions/2/pruning").get_json()
    assert any(each.startswith(note) for each in trace["notes"])


def test_a_class_that_the_held_out_rows_lack_is_told_by_training_comparison_and_page(served: Served) -> None:
    dataset = served.upload(WEATHER + "fog,maybe\n" * 3, target="play")["id"]
    other = served.upload("sky,play\nsun,yes\nrain,no\n", target="play")["id"]
    held = {"dataset": dataset, "holdout": {"dataset": other}}
    note = "no row is of the class 'maybe', so no figure shows how it is answered"
    trained = done(served, served.post("/v1/training-jobs", {"model": "weather", **held}))
    compared = done(served, served.post("/v1/evaluation-jobs", {"candidates": [{"preset": "cart"}], **held}))

    assert f"held-out rows: {note}" in trained["summary"]["notes"]
    assert compared["candidates"][0]["notes"] == [note]
    assert note in html.unescape(served.client.get("/ui/models/weather/versions/1").text)


def test_a_column_of_numbers_may_be_empty_in_the_rows_that_are_held_out(served: Served) -> None:
    dataset = served.upload("heat,play\n" + "1.5,yes\n2.5,no\n" * 6, target="play")["id"]
    other = served.upload("heat,play\n,yes\n,no\n", target="play")["id"]
    body = {"model": "weather", "dataset": dataset, "holdout": {"dataset": other}}

    trained = done(served, served.post("/v1/training-jobs", body))

    assert trained["summary"]["holdout"]["errors"] == 1


def test_a_target_of_numbers_may_not_be_empty_in_the_rows_that_are_held_out(served: Served) -> None:
    dataset = served.upload("size,heat\n" + "1,1.5\n2,2.5\n3,3.25\n" * 9, target="heat", task="regression")["id"]
    other = served.upload("size,heat\n1,\n2,\n")["id"]

    refused = served.post("/v1/training-jobs", {"model": "m", "dataset": dataset, "holdout": {"dataset": other}})

    assert "'heat' is nominal, and must be numeric" in assert_problem(refused, 422, "/holdout/dataset")["detail"]


def test_rows_that_judge_with_an_unknown_grade_of_an_ordered_attribute_are_told_of(served: Served) -> None:
    grade = {"name": "grade", "kind": "ordinal", "categories": ["low", "high"]}
    learned = graded(served, "low,yes\nhigh,no\n" * 6, grade)
    other = graded(served, "low,yes\nhighest,no\n", {**grade, "categories": ["low", "high", "highest"]})
    done(served, served.post("/v1/training-jobs", {"model": "g", "dataset": learned, "holdout": {"dataset": other}}))
    done(served, served.post("/v1/pruning-jobs", {"model": "g", "method": "reduced_error"}))

    trace = served.client.get("/v1/models/g/versions/2/pruning").get_json()

    assert any(each.startswith("1 row has a category") for each in trace["notes"]), trace


def graded(served: Served, rows: str, grade: Mapping[str, Any]) -> str:
    """Upload rows and declare their ordered attribute."""
    found: str = served.upload(f"grade,play\n{rows}", target="play")["id"]
    changed = served.client.patch(f"/v1/datasets/{found}", json={"columns": [grade]})
    assert changed.status_code == 200, changed.text
    return found


def test_a_data_set_that_was_only_held_out_is_not_said_to_have_been_trained_on(served: Served) -> None:
    dataset = served.upload(WEATHER, target="play")["id"]
    other = served.upload("sky,play\nsun,yes\nrain,no\n", target="play")["id"]
    done(served, served.post("/v1/training-jobs", {"model": "w", "dataset": dataset, "holdout": {"dataset": other}}))

    for one, use in ((dataset, "was trained on"), (other, "was evaluated or pruned on")):
        problem = assert_problem(served.client.delete(f"/v1/datasets/{one}"), 409)
        assert f"version 1 of model 'w' {use} data set {one}" in problem["detail"]


def test_held_out_rows_that_are_none_are_refused_before_a_job_is_made(served: Served) -> None:
    dataset = served.upload(WEATHER, target="play")["id"]
    empty = served.client.post("/v1/datasets?target=play", data="sky,play\n", content_type="text/csv")
    body = {"model": "m", "dataset": dataset, "holdout": {"fraction": 0.01}}

    assert "rows" in assert_problem(empty, 422, "")["detail"]
    none = served.post("/v1/training-jobs", {**body, "holdout": {"rows": []}})
    assert "at least one" in assert_problem(none, 422, "/holdout/rows")["detail"]
    assert (
        "sets aside 0 of 12 rows" in assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout")["detail"]
    )


def done(served: Served, response: TestResponse) -> dict[str, Any]:
    """Do the job in this process, as a worker's child would, and save what comes of it; give the result."""
    assert response.status_code == 202, response.text
    source = served.service.sessions
    with transaction(source) as session:
        claim = job_queue.claim(session, worker="test", lease_seconds=60)
    assert claim is not None
    outcome = perform(
        JobContext(source, espalier.Progress(), claim.job_id, pytest.fail, Settings()), claim.kind, claim.payload
    )
    with transaction(source) as session:
        assert loop.save_outcome(session, claim, outcome) == "succeeded", outcome
    found: dict[str, Any] = served.client.get(f"{response.headers['Location']}/result").get_json()
    return found
