"""Jobs that answer whole data sets: every row in the log, and the result streamed from there in three forms."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow.parquet
import pytest
from sqlalchemy import delete, select

import espalier
from service.database.engine import read_session, transaction
from service.database.tables import DecisionRecord
from service.repositories import decisions, job_queue
from service.repositories.model_cache import ModelCache
from service.settings import Settings
from service.worker import handlers, loop
from service.worker.handlers import Cancelled, Failed, JobContext, ResultChunk, perform
from tests.core.prediction.test_apply import table
from tests.service.kept import keep_data_set
from tests.service.served import TENNIS, Served, assert_problem, serving

ROWS_A_PART = 50
N_ROWS = 230


@pytest.fixture
def served(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(handlers, "record_rows", lambda _, n_classes: ROWS_A_PART)
    with serving(settings) as one:
        yield one


def keep(served: Served, name: str, *, n_classes: int = 3, preset: str = "c45") -> espalier.Model:
    """A model of the tables of the routing tests, as version 1."""
    model = espalier.train(table(300, 1, n_classes=n_classes), preset)
    served.keep(name, model)
    return model


def kept(served: Served, dataset: espalier.Dataset) -> str:
    return keep_data_set(served.service.sessions, dataset, chunk_rows=ROWS_A_PART)


def asked(served: Served, model: str, data_set_id: str, **more: Any) -> str:
    response = served.post("/v1/prediction-jobs", {"model": model, "dataset": data_set_id, **more})
    assert response.status_code == 202, response.text
    return str(response.get_json()["id"])


def work(served: Served, *, stop_at: int | None = None, stopped: Callable[[], Exception] | None = None) -> Any:
    """Do the next job as the worker does, in this process; `stopped` is raised in the place of a part."""
    source, progress, n_parts = served.service.sessions, espalier.Progress(), 0
    with transaction(source) as session:
        claim = job_queue.claim(session, worker="test", lease_seconds=60)
    assert claim is not None

    def send(part: ResultChunk) -> None:
        nonlocal n_parts
        if n_parts == stop_at and stopped is not None:
            raise stopped()
        n_parts += 1
        with transaction(source) as session:
            decisions.add(session, part.record)
        if n_parts == stop_at and stopped is None:
            progress.stop()

    outcome = perform(JobContext(source, progress, claim.job_id, send, Settings()), claim.kind, claim.payload)
    with transaction(source) as session:
        loop.save_outcome(session, claim, outcome)
    return outcome


def result(served: Served, job: str, form: str | None = None, **headers: str) -> bytes:
    response = served.client.get(f"/v1/jobs/{job}/result", query_string=form and {"format": form}, headers=headers)
    assert response.status_code == 200, response.text
    return bytes(response.data)


def ndjson(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


@pytest.mark.parametrize("missing", [None, "last_prediction"])
def test_every_row_is_answered_as_one_by_one_in_every_form(served: Served, missing: str | None) -> None:
    model = keep(served, "m")
    dataset = table(N_ROWS, 2, missing=0.2)
    job = asked(served, "m", kept(served, dataset), missing=missing)
    assert work(served) == {"model": "m", "version": 1, "n_rows": N_ROWS}
    shown = served.client.get(f"/v1/jobs/{job}").get_json()
    assert (shown["state"], shown["kind"], shown["result"]) == (
        "succeeded",
        "predict",
        {"model": "m", "version": 1, "n_rows": N_ROWS},
    )

    lines = ndjson(result(served, job))
    by_csv = list(csv.DictReader(io.StringIO(result(served, job, "csv").decode())))
    columns = pyarrow.parquet.read_table(io.BytesIO(result(served, job, "parquet"))).to_pylist()
    singles = espalier.explain(model, dataset.rows(), missing=missing)
    for place, (line, of_csv, of_parquet, one) in enumerate(zip(lines, by_csv, columns, singles, strict=True)):
        answer = one.prediction.to_dict()
        assert line == {"row": place, "decision_id": line["decision_id"], **answer, "rule": one.rule}
        assert of_parquet == {
            "row": place,
            "decision_id": line["decision_id"],
            "label": answer["label"],
            "probability": answer["distribution"][answer["label"]],
            **{name: answer[name] for name in ("confidence", "support", "leaf")},
            **answer["flags"],
            "rule": one.rule,
        }
        assert (of_csv["row"], of_csv["decision_id"]) == (str(place), line["decision_id"])
        assert (of_csv["label"], float(of_csv["confidence"])) == (answer["label"], answer["confidence"])
        assert (of_csv["missing"], of_csv["rule"]) == ("; ".join(answer["flags"]["missing"]), one.rule)
    assert len({line["decision_id"].partition(":")[0] for line in lines}) == 5


@pytest.mark.parametrize(("missing", "n_records"), [(None, 23), ("spread", 23), ("last_prediction", 5)])
def test_rows_that_may_take_many_branches_are_answered_few_at_a_time(
    served: Served, missing: str | None, n_records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "MAX_DIVIDED_ROWS", 10)
    model = keep(served, "m")
    dataset = table(N_ROWS, 2, missing=0.3)
    assert model.missing_strategy == "fractional"
    job = asked(served, "m", kept(served, dataset), missing=missing)
    work(served)

    lines = ndjson(result(served, job))
    assert len({line["decision_id"].partition(":")[0] for line in lines}) == n_records
    singles = espalier.predict(model, dataset.rows(), missing=missing)
    for line, one in zip(lines, singles, strict=True):
        assert {name: line[name] for name in one.to_dict()} == one.to_dict()


def test_a_regression_is_answered_with_numbers(served: Served) -> None:
    model = keep(served, "numbers", n_classes=0, preset="m5")
    dataset = table(60, 3, n_classes=0)
    job = asked(served, "numbers", kept(served, dataset), explain="none")
    work(served)
    rows = [{name: cell for name, cell in row.items() if name != "y"} for row in dataset.rows()]
    expected = [one.to_dict() for one in espalier.predict(model, rows)]
    lines = ndjson(result(served, job))
    assert [(line["value"], line["std"]) for line in lines] == [(one["value"], one["std"]) for one in expected]
    assert not {"rule", "label"} & lines[0].keys()
    columns = pyarrow.parquet.read_table(io.BytesIO(result(served, job, "parquet")))
    assert columns.column("value").to_pylist() == [one["value"] for one in expected]
    assert "rule" not in columns.column_names


def test_each_answer_is_a_decision_that_explains_itself(served: Served) -> None:
    keep(served, "m")
    served.client.put("/v1/models/m/aliases/production", json={"version": 1})
    dataset = table(ROWS_A_PART + 5, 4)
    job = asked(served, "m", kept(served, dataset))
    work(served)
    lines = ndjson(result(served, job))
    for place in (0, ROWS_A_PART - 1, ROWS_A_PART, ROWS_A_PART + 4):
        path = f"/v1/decisions/{lines[place]['decision_id']}"
        shown = served.client.get(path).get_json()
        row = {name: cell for name, cell in dataset.rows(place, place + 1)[0].items() if name != "y"}
        assert (shown["input"], shown["alias"], shown["subject"]) == (row, "production", None)
        explained = served.client.get(f"{path}/explanation").get_json()
        assert (explained["verified"], explained["explanation"]["rule"]) == (True, lines[place]["rule"])


@pytest.mark.parametrize(
    ("accepted", "content_type"),
    [
        ("*/*", "application/x-ndjson"),
        ("text/csv", "text/csv"),
        ("application/json, application/vnd.apache.parquet;q=0.5", "application/vnd.apache.parquet"),
        ("text/csv;q=0.1, application/x-ndjson", "application/x-ndjson"),
        ("image/png", "application/x-ndjson"),
    ],
)
def test_the_form_is_what_the_caller_accepts(served: Served, accepted: str, content_type: str) -> None:
    keep(served, "m")
    job = asked(served, "m", kept(served, table(5, 5)))
    work(served)
    response = served.client.get(f"/v1/jobs/{job}/result", headers={"Accept": accepted})
    assert (response.status_code, response.content_type) == (200, content_type)
    assert_problem(served.client.get(f"/v1/jobs/{job}/result?format=xml"), 422, "/format")


def test_another_attempt_goes_on_behind_what_is_logged(served: Served) -> None:
    model = keep(served, "m")
    dataset = table(N_ROWS, 6)
    job = asked(served, "m", kept(served, dataset))
    outcome = work(served, stop_at=2, stopped=MemoryError)
    assert isinstance(outcome, Failed)
    assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)
    with read_session(served.service.sessions) as session:
        assert decisions.n_rows_of_job(session, job) == 2 * ROWS_A_PART
        of_job = DecisionRecord.job_id == job, DecisionRecord.first_row == ROWS_A_PART
        before = session.scalars(select(DecisionRecord.id).where(*of_job)).one()
    with transaction(served.service.sessions) as session:
        job_queue.find_job(session, job).run_at = job_queue.find_job(session, job).created
    assert work(served) == {"model": "m", "version": 1, "n_rows": N_ROWS}
    lines = ndjson(result(served, job))
    assert [line["label"] for line in lines] == [one.label for one in espalier.predict(model, dataset.rows())]
    assert lines[ROWS_A_PART]["decision_id"] == f"{before}:0"


def test_a_cancelled_job_has_no_result_and_what_it_answered_stays_in_the_log(served: Served) -> None:
    keep(served, "m")
    job = asked(served, "m", kept(served, table(N_ROWS, 7)))
    assert isinstance(work(served, stop_at=2), Cancelled)
    assert "cancelled" in assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)["detail"]
    with read_session(served.service.sessions) as session:
        assert decisions.n_rows_of_job(session, job) == 2 * ROWS_A_PART


def test_a_result_whose_decisions_are_gone_is_said_to_be(served: Served) -> None:
    keep(served, "m")
    job = asked(served, "m", kept(served, table(N_ROWS, 8)))
    work(served)
    with transaction(served.service.sessions) as session:
        session.execute(delete(DecisionRecord).where(DecisionRecord.first_row == 0))
    assert "from row 0 on are not stored" in assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)["detail"]


def test_a_result_whose_version_is_gone_too_is_said_to_be(served: Served) -> None:
    keep(served, "m")
    job = asked(served, "m", kept(served, table(N_ROWS, 8)))
    work(served)
    with transaction(served.service.sessions) as session:
        session.execute(delete(DecisionRecord))
    assert served.client.delete("/v1/models/m").status_code == 204
    served.service.versions.models = ModelCache()  # as in a process that has not answered by it
    assert "from row 0 on are not stored" in assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)["detail"]


def test_a_data_set_without_some_attributes_is_answered_and_one_without_any_refused(served: Served) -> None:
    keep(served, "m")
    whole = table(20, 9)
    some = espalier.Dataset(espalier.Schema(whole.schema.features[:2]), whole.columns[:2])
    job = asked(served, "m", kept(served, some))
    work(served)
    assert all(line["flags"]["missing"][-2:] == ["colour", "size"] for line in ndjson(result(served, job)))
    other = served.upload(TENNIS, target="PlayTennis")["id"]
    refused = served.post("/v1/prediction-jobs", {"model": "m", "dataset": other})
    assert "none of the model's attributes" in assert_problem(refused, 422, "/dataset")["detail"]


def test_a_job_that_cannot_succeed_is_refused_with_every_fault(served: Served) -> None:
    keep(served, "m")
    text = served.upload("x,z\na,b\nc,d\n")["id"]
    path = "/v1/prediction-jobs"
    assert_problem(
        served.post(path, {"model": "m", "dataset": text, "missing": "surrogate"}),
        422,
        "/missing",
        "/dataset",
        "/dataset",
    )
    assert_problem(served.post(path, {"model": "n", "dataset": "no"}), 422, "/dataset", "/model")
    assert_problem(served.post(path, {"model": "m", "version": 9, "dataset": text}), 422, "/version")
    assert_problem(
        served.post(path, {"explain": "full", "missing": "none", "rows": []}),
        422,
        "/model",
        "/dataset",
        "/explain",
        "/missing",
        "/rows",
    )


@pytest.mark.parametrize("role", [espalier.Role.IGNORE, espalier.Role.TARGET])
def test_a_column_is_matched_by_its_name_whatever_its_role_is(served: Served, role: espalier.Role) -> None:
    keep(served, "m")
    *others, size = table(20, 9).schema.features[:4]
    columns = table(20, 9).columns[:4]

    def answers(feature: espalier.Feature) -> list[tuple[Any, Any]]:
        rows = espalier.Dataset(espalier.Schema((*others, feature)), columns)
        job = asked(served, "m", kept(served, rows))
        work(served)
        return [(line["label"], line["flags"]) for line in ndjson(result(served, job))]

    assert answers(dataclasses.replace(size, role=role)) == answers(size)
