"""Jobs over HTTP: what is wrong with a request is said at once, what is right is queued."""

import threading
import time
from collections.abc import Iterator

import pytest

import espalier
from service import job_requests, queue
from service.db import reading, transaction
from service.errors import Rejected
from service.settings import Settings
from tests.service.served import HOURS, TENNIS, Served, assert_problem, serving

UNKNOWN = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings, web_threads=8) as one:
        yield one


@pytest.fixture
def tennis(served: Served) -> str:
    return str(served.upload(TENNIS, target="PlayTennis")["id"])


@pytest.fixture
def more_tennis(served: Served) -> str:
    return str(served.upload(TENNIS + "Overcast,Mild,High,Weak,Yes\n", target="PlayTennis")["id"])


def request_training(served: Served, dataset: str, **more: object) -> str:
    response = served.post("/v1/training-jobs", {"model": "tennis", "dataset": dataset, **more})
    assert response.status_code == 202, response.text
    return str(response.get_json()["id"])


def test_a_training_is_queued_and_says_where_to_watch_it(served: Served, tennis: str) -> None:
    response = served.post("/v1/training-jobs", {"model": "tennis", "dataset": tennis, "preset": "id3"})
    job = response.get_json()
    assert (response.status_code, job["state"], job["kind"], job["model"]) == (202, "queued", "train", "tennis")
    assert response.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert served.client.get(response.headers["Location"]).get_json() == job


def test_every_fault_of_a_training_request_is_said_at_once(served: Served) -> None:
    body = {"model": "m", "dataset": UNKNOWN, "params": {"max_depth": -1, "nope": 1}, "holdout": {"fraction": 2}}
    response = served.post("/v1/training-jobs", body)
    assert_problem(response, 422, "/dataset", "/params/max_depth", "/params/nope", "/holdout/fraction")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        pytest.param({"model": "a/b"}, "/model", id="a slash in the model's name"),
        pytest.param({"model": "x" * 65}, "/model", id="a long model name"),
        pytest.param({"model": "a\n"}, "/model", id="a line end in the model's name"),
        pytest.param({"model": "a\0"}, "/model", id="NUL in the model's name"),
        pytest.param({"model": 5}, "/model", id="a number for a model"),
        pytest.param({"dataset": "nothing"}, "/dataset", id="no such data set"),
        pytest.param({"dataset": None}, "/dataset", id="null for a data set"),
        pytest.param({"dataset": "a\0"}, "/dataset", id="NUL in a data set's id"),
        pytest.param({"holdout": {"dataset": "a\0"}}, "/holdout/dataset", id="NUL in a held-out data set's id"),
        pytest.param({"preset": "c5"}, "/preset", id="no such preset"),
        pytest.param({"params": {"criterion": "luck"}}, "/params/criterion", id="no such criterion"),
        pytest.param({"params": {"criterion": "squared_error"}}, "/params/criterion", id="a criterion for numbers"),
        pytest.param({"params": {"preset": "id3"}}, "/params/preset", id="a preset inside the parameters"),
        pytest.param({"params": []}, "/params", id="parameters that are a list"),
        pytest.param({"preset": ["cart"]}, "/preset", id="a list for a preset"),
        pytest.param({"preset": "m5"}, "/params/criterion", id="a preset for numbers"),
        pytest.param({"params": {"max_depth": 2**63}}, "/params/max_depth", id="a depth of 64 bits"),
        pytest.param({"params": {"max_depth": 10**30}}, "/params/max_depth", id="a depth of 30 digits"),
        pytest.param({"params": {"cost_weight": 10**30}}, "/params/cost_weight", id="an exponent of 30 digits"),
        pytest.param({"params": {"pruning": {"method": ["x"]}}}, "/params/pruning/method", id="a list for a method"),
        pytest.param(
            {"params": {"cost_function": "norton", "attribute_costs": {"Sky": 1}}},
            "/params/attribute_costs/Sky",
            id="the cost of no attribute",
        ),
        pytest.param({"holdout": {"fraction": 0.5, "seed": 2**63}}, "/holdout/seed", id="a seed of 64 bits"),
        pytest.param(
            {
                "params": {"pruning": {"method": "cost_complexity", "select": "cv"}},
                "holdout": {"rows": [0, 1, 2, 3, 4]},
            },
            "/params/pruning/folds",
            id="ten parts of nine rows",
        ),
        pytest.param({"holdout": 0.3}, "/holdout", id="a holdout that is a number"),
        pytest.param({"holdout": {"rows": [0, 14]}}, "/holdout/rows", id="a held-out row beyond the end"),
        pytest.param({"holdout": {"rows": list(range(14))}}, "/holdout/rows", id="all rows held out"),
        pytest.param({"holdout": {"dataset": UNKNOWN}}, "/holdout/dataset", id="no such held-out data set"),
        pytest.param({"holdout": {"dataset": [1]}}, "/holdout/dataset", id="a list for a held-out data set"),
        pytest.param({"colour": "red"}, "/colour", id="an unknown field"),
    ],
)
def test_a_bad_training_request_is_refused_with_its_place(
    served: Served, tennis: str, change: dict[str, object], pointer: str
) -> None:
    body = {"model": "tennis", "dataset": tennis, "preset": "cart"} | change
    assert_problem(served.post("/v1/training-jobs", body), 422, pointer)


def test_faults_of_form_and_of_reference_are_said_in_one_round(served: Served) -> None:
    body = {"model": 5, "dataset": UNKNOWN, "params": {"nope": 1}, "holdout": {"fraction": 2}}
    response = served.post("/v1/training-jobs", body)
    assert_problem(response, 422, "/model", "/dataset", "/params/nope", "/holdout/fraction")


@pytest.mark.parametrize(
    "params", [{"pruning": {"method": "reduced_error"}}, {"pruning": {"method": "rules"}}, {"validation_stop": True}]
)
def test_a_training_that_asks_held_out_rows_needs_some(served: Served, tennis: str, params: dict[str, object]) -> None:
    body = {"model": "m", "dataset": tennis, "params": params}
    assert "set aside" in assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout")["detail"]
    assert served.post("/v1/training-jobs", body | {"holdout": {"fraction": 0.3}}).status_code == 202


def test_a_preset_that_sets_rows_aside_by_itself_needs_enough_of_them(served: Served) -> None:
    pair = served.upload("a,y\n1,p\n2,q\n", target="y")["id"]
    body = {"model": "m", "dataset": pair, "preset": "reptree"}
    assert "sets aside 0 of 2 rows" in assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout")["detail"]


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_a_share_of_no_row_or_of_all_is_refused_at_the_request(served: Served, tennis: str, fraction: float) -> None:
    body = {"model": "m", "dataset": tennis, "holdout": {"fraction": fraction}}
    assert "of 14 rows" in assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout")["detail"]


def test_held_out_rows_must_have_weight(served: Served) -> None:
    weighed = served.upload("a,y,w\n1,p,1\n2,q,1\n3,p,0\n", target="y", weight="w")["id"]
    body = {"model": "m", "dataset": weighed, "holdout": {"rows": [2]}}
    assert "weight" in assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout")["detail"]


def test_id3_refuses_numeric_attributes_and_names_c45(served: Served) -> None:
    numbers = served.upload("a,y\n1,p\n2,q\n", target="y")["id"]
    response = served.post("/v1/training-jobs", {"model": "m", "dataset": numbers, "preset": "id3"})
    assert "c45" in assert_problem(response, 422, "/params/numeric")["detail"]


@pytest.mark.parametrize(("csv", "query"), [("a,y\n1,p\n2,p\n", {"target": "y"}), ("a,y\n1,p\n2,q\n", {})])
def test_a_data_set_with_nothing_to_learn_is_refused_at_the_request(
    served: Served, csv: str, query: dict[str, str]
) -> None:
    dataset = served.upload(csv, **query)["id"]
    assert_problem(served.post("/v1/training-jobs", {"model": "m", "dataset": dataset}), 422, "/dataset")


def test_a_held_out_data_set_must_have_the_same_columns(served: Served, tennis: str) -> None:
    other = served.upload(HOURS, target="hours")["id"]
    body = {"model": "m", "dataset": tennis, "holdout": {"dataset": other}}
    assert_problem(served.post("/v1/training-jobs", body), 422, *["/holdout/dataset"] * 5)


def test_a_held_out_data_set_is_kept_while_the_job_is_unfinished(served: Served, tennis: str, more_tennis: str) -> None:
    request_training(served, tennis, holdout={"dataset": more_tennis})
    assert_problem(served.client.delete(f"/v1/datasets/{more_tennis}"), 409)


def test_a_version_trained_on_all_rows_is_not_pruned_on_them(served: Served) -> None:
    served.train("tennis")
    response = served.post("/v1/pruning-jobs", {"model": "tennis", "method": "reduced_error"})
    assert "all its rows" in assert_problem(response, 422, "/holdout")["detail"]


def test_a_model_whose_name_holds_nul_is_one_that_is_not_there(served: Served) -> None:
    response = served.post("/v1/pruning-jobs", {"model": "a\0", "method": "reduced_error"})
    assert_problem(response, 422, "/model")


def test_rows_that_were_all_learned_from_cannot_be_held_out_afterwards(served: Served) -> None:
    served.train("tennis")
    body = {"model": "tennis", "method": "reduced_error", "holdout": {"rows": [0, 1, 2]}}
    assert "another data set" in assert_problem(served.post("/v1/pruning-jobs", body), 422, "/holdout")["detail"]


def test_a_pruning_with_its_own_holdout_is_queued(served: Served, more_tennis: str) -> None:
    served.train("tennis")
    body = {"model": "tennis", "version": 1, "method": "reduced_error", "holdout": {"dataset": more_tennis}}
    response = served.post("/v1/pruning-jobs", body)
    assert (response.status_code, response.get_json()["kind"]) == (202, "prune")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("pessimistic", {}),
        ("cost_complexity", {"alpha": 0.01}),
        ("cost_complexity", {"select": "cv"}),
        ("rules", {"estimate": "pessimistic"}),
    ],
)
def test_a_method_that_asks_no_held_out_rows_needs_none(served: Served, method: str, params: dict[str, object]) -> None:
    served.train("tennis")
    response = served.post("/v1/pruning-jobs", {"model": "tennis", "method": method, "params": params})
    assert response.status_code == 202, response.text


@pytest.mark.parametrize(("method", "params"), [("cost_complexity", {"select": "validation"}), ("rules", {})])
def test_a_method_that_asks_held_out_rows_is_refused_without_them(
    served: Served, method: str, params: dict[str, object]
) -> None:
    served.train("tennis")
    body = {"model": "tennis", "method": method, "params": params}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/holdout")


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        pytest.param({"model": "nothing"}, ["/model"], id="no such model"),
        pytest.param({"version": 7}, ["/version"], id="no such version"),
        pytest.param({"version": "1"}, ["/version"], id="a version that is text"),
        pytest.param({"version": 10**30}, ["/version"], id="a version beyond all numbers"),
        pytest.param({"method": "scissors"}, ["/method"], id="no such method"),
        pytest.param({"params": {"ties": "maybe", "x": 1}}, ["/params/ties", "/params/x"], id="bad parameters"),
    ],
)
def test_a_bad_pruning_request_is_refused_with_its_place(
    served: Served, more_tennis: str, change: dict[str, object], pointers: list[str]
) -> None:
    served.train("tennis")
    body = {"model": "tennis", "method": "reduced_error", "holdout": {"dataset": more_tennis}} | change
    assert_problem(served.post("/v1/pruning-jobs", body), 422, *pointers)


def test_faults_of_form_and_of_the_version_are_said_in_one_round(served: Served) -> None:
    served.train("tennis")
    body = {"model": "tennis", "method": "model_tree", "holdout": {"dataset": UNKNOWN}, "colour": "red"}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/colour", "/holdout/dataset", "/method")


def test_rows_that_the_version_has_learned_from_cannot_be_held_out(served: Served) -> None:
    served.train("tennis", holdout={"rows": [0, 1, 2, 3]})
    body = {"model": "tennis", "method": "reduced_error"}
    for holdout, learned in (({"rows": [2, 3, 4]}, "1 of these 3 rows"), ({"rows": [9]}, "1 of these 1 rows")):
        problem = assert_problem(served.post("/v1/pruning-jobs", body | {"holdout": holdout}), 422, "/holdout")
        assert learned in problem["detail"]
    assert served.post("/v1/pruning-jobs", body | {"holdout": {"rows": [1, 3]}}).status_code == 202
    assert served.post("/v1/pruning-jobs", body).status_code == 202


@pytest.mark.parametrize(
    ("preset", "method", "params", "pointer"),
    [
        pytest.param("id3", "model_tree", {}, "/method", id="model_tree on classes"),
        pytest.param("cart", "pessimistic", {}, "/method", id="pessimistic on numbers"),
        pytest.param("cart", "rules", {"estimate": "pessimistic"}, "/params/estimate", id="rules on numbers"),
        pytest.param("m5", "cost_complexity", {"alpha": 1}, "/method", id="weakest links of linear leaves"),
        pytest.param(
            "id3", "cost_complexity", {"select": "cv", "folds": 15}, "/params/folds", id="15 parts of 14 rows"
        ),
        pytest.param("id3", "cost_complexity", {"alpha": 1, "select": "cv"}, "/params/alpha", id="both"),
    ],
)
def test_a_method_that_cannot_take_the_version_is_refused_at_the_request(
    served: Served, preset: str, method: str, params: dict[str, object], pointer: str
) -> None:
    classes = preset == "id3"
    served.train("m", TENNIS if classes else HOURS, preset=preset, target="PlayTennis" if classes else "hours")
    assert_problem(served.post("/v1/pruning-jobs", {"model": "m", "method": method, "params": params}), 422, pointer)


def test_a_list_of_rules_is_not_pruned(served: Served) -> None:
    tennis = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    rules = espalier.prune(espalier.train(tennis, "id3"), "rules", dataset=tennis, estimate="pessimistic").model
    served.keep("rules", rules)
    for method, params in (("cost_complexity", {"alpha": 0}), ("rules", {"estimate": "pessimistic"})):
        body = {"model": "rules", "method": method, "params": params}
        assert "list of rules" in assert_problem(served.post("/v1/pruning-jobs", body), 422, "/method")["detail"]


@pytest.mark.parametrize(
    ("method", "params", "pointer"),
    [
        pytest.param("pessimistic", {}, "/params/raising", id="raising"),
        pytest.param("cost_complexity", {"select": "cv"}, "/params/select", id="cross-validation"),
        pytest.param("rules", {"estimate": "pessimistic"}, "/method", id="rules"),
        pytest.param("reduced_error", {}, "/holdout", id="the rows that were set aside"),
        pytest.param("reduced_error", {"ties": "keep"}, "/holdout", id="the same, asked otherwise"),
    ],
)
def test_what_asks_rows_of_a_data_set_that_is_gone_is_refused_at_the_request(
    served: Served, method: str, params: dict[str, object], pointer: str
) -> None:
    tennis = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    served.keep("orphan", espalier.train(tennis, "id3", holdout=espalier.Holdout(rows=(0, 5))))
    body = {"model": "orphan", "method": method, "params": params}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, pointer)


def test_a_version_whose_data_set_is_gone_is_still_pruned_by_what_it_keeps(served: Served) -> None:
    tennis = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    served.keep("orphan", espalier.train(tennis, "id3"))
    for method, params in (("pessimistic", {"raising": False}), ("cost_complexity", {"alpha": 0.1})):
        body = {"model": "orphan", "method": method, "params": params}
        assert served.post("/v1/pruning-jobs", body).status_code == 202


def test_jobs_are_listed_by_state_kind_and_model(served: Served, tennis: str) -> None:
    first, second = request_training(served, tennis), request_training(served, tennis)
    served.client.post(f"/v1/jobs/{first}/cancel")
    found = served.client.get("/v1/jobs?state=cancelled&kind=train&model=tennis").get_json()["items"]
    assert [job["id"] for job in found] == [first]
    assert [job["id"] for job in served.client.get("/v1/jobs").get_json()["items"]] == [second, first]
    assert_problem(served.client.get("/v1/jobs?state=lost&kind=paint"), 422, "/state", "/kind")


def test_a_queued_job_is_cancelled_at_once_and_can_be_tried_again(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    assert served.client.post(f"/v1/jobs/{job}/cancel").get_json()["state"] == "cancelled"
    assert_problem(served.client.post(f"/v1/jobs/{job}/cancel"), 409)
    assert served.client.post(f"/v1/jobs/{job}/retry").get_json()["state"] == "queued"
    assert_problem(served.client.post(f"/v1/jobs/{job}/retry"), 409)


@pytest.mark.parametrize("changed", ["dataset", "holdout"])
def test_a_job_whose_data_is_not_what_it_was_cannot_be_tried_again(
    served: Served, tennis: str, more_tennis: str, changed: str
) -> None:
    job = request_training(served, tennis, holdout={"dataset": more_tennis})
    served.client.post(f"/v1/jobs/{job}/cancel")
    path = f"/v1/datasets/{tennis if changed == 'dataset' else more_tennis}"
    for name, status in (("Wind", 409), ("PlayTennis", 202)):  # declared anew, and as it was
        assert served.client.patch(path, json={"target": name}).status_code == 200
        response = served.client.post(f"/v1/jobs/{job}/retry")
        assert response.status_code == status, response.text
        assert status == 202 or "declared anew" in assert_problem(response, 409)["detail"]
    served.client.post(f"/v1/jobs/{job}/cancel")
    assert served.client.delete(path).status_code == 204
    assert "deleted" in assert_problem(served.client.post(f"/v1/jobs/{job}/retry"), 409)["detail"]
    assert served.client.get(f"/v1/jobs/{job}").get_json()["state"] == "cancelled"


def test_a_data_set_that_changes_between_plan_and_queue_is_refused_by_its_place(served: Served, tennis: str) -> None:
    asked = {"model": "m", "dataset": tennis, "preset": "id3", "params": {}, "holdout": None}
    with reading(served.service.sessions) as session:
        plan = job_requests.plan_training(session, served.service.models, asked)
    assert served.client.patch(f"/v1/datasets/{tennis}", json={"target": "Wind"}).status_code == 200
    with pytest.raises(Rejected) as refused, transaction(served.service.sessions) as session:
        job_requests.submit(session, plan, settings=served.settings)
    assert [(fault.pointer, fault.code) for fault in refused.value.faults] == [("/dataset", "changed_data_set")]


def test_an_unfinished_job_has_no_result(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    assert "queued" in assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)["detail"]


def test_a_job_that_succeeded_has_a_result(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    finish(served, {"model": "tennis", "version": 1, "summary": {"n_leaves": 5}})
    shown = served.client.get(f"/v1/jobs/{job}/result").get_json()
    assert shown == {"model": "tennis", "version": 1, "summary": {"n_leaves": 5}}


def test_waiting_ends_when_the_job_ends(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    finisher = threading.Timer(0.3, finish, (served, {"model": "tennis", "version": 1}))
    finisher.start()
    began = time.monotonic()
    shown = served.client.get(f"/v1/jobs/{job}?wait=20").get_json()
    finisher.join()
    assert shown["state"] == "succeeded"
    assert time.monotonic() - began < 10


def test_waiting_ends_when_the_seconds_are_over(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    began = time.monotonic()
    assert served.client.get(f"/v1/jobs/{job}?wait=1").get_json()["state"] == "queued"
    assert 0.9 < time.monotonic() - began < 5


def test_beyond_a_quarter_of_the_threads_nobody_waits(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    held = [served.service.waiting.acquire(blocking=False) for _ in range(3)]
    began = time.monotonic()
    assert served.client.get(f"/v1/jobs/{job}?wait=20").get_json()["state"] == "queued"
    assert held == [True, True, False]  # a quarter of 8 threads
    assert time.monotonic() - began < 5


def test_nobody_waits_in_a_process_that_stops(served: Served, tennis: str) -> None:
    job = request_training(served, tennis)
    served.service.is_stopping = lambda: True
    began = time.monotonic()
    assert served.client.get(f"/v1/jobs/{job}?wait=20").status_code == 200
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("wait", ["21", "-1", "long"])
def test_a_wait_outside_0_to_20_seconds_is_refused(served: Served, tennis: str, wait: str) -> None:
    job = request_training(served, tennis)
    assert_problem(served.client.get(f"/v1/jobs/{job}?wait={wait}"), 422, "/wait")


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/result"), ("POST", "/cancel"), ("POST", "/retry")])
def test_an_unknown_job_is_not_found(served: Served, method: str, path: str) -> None:
    assert_problem(served.client.open(f"/v1/jobs/{UNKNOWN}{path}", method=method), 404)


def finish(served: Served, result: dict[str, object]) -> None:
    """Do what a worker does when a job has succeeded."""
    with transaction(served.service.sessions) as session:
        claim = queue.claim(session, worker="test", lease_seconds=60)
        assert claim is not None
        queue.finish(session, claim, result=result)
