"""Trainings over HTTP: what is wrong with a request is said at once, what is right is queued."""

from collections.abc import Iterator

import flask
import pytest

from espalier import TooLarge
from service.api.request_bodies import MAX_MEMBERS, read_json
from service.settings import Settings
from tests.service.served import HOURS, ON_SQLITE, UNKNOWN, Served, assert_problem, request_training, serving

LIMIT = 2**24


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


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
        pytest.param({"memory_limit": 1_000}, "/memory_limit", id="a thousand bytes for a table"),
        pytest.param({"memory_limit": 0}, "/memory_limit", id="no bytes for a table"),
        pytest.param({"memory_limit": 2**63}, "/memory_limit", id="a memory of 64 bits"),
        pytest.param({"memory_limit": "1GB"}, "/memory_limit", id="a memory with a unit"),
        pytest.param({"memory_limit": LIMIT, "holdout": {"fraction": 0.3}}, "/holdout", id="a holdout from disk"),
        pytest.param({"memory_limit": LIMIT, "preset": "reptree"}, "/params/pruning", id="a pruning by other rows"),
        pytest.param(
            {"memory_limit": LIMIT, "params": {"missing": "surrogate"}}, "/params/missing", id="surrogates from disk"
        ),
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


def test_a_limit_that_the_rows_alone_exceed_is_refused_with_what_they_need(served: Served) -> None:
    dataset = served.upload("a,y\n" + "1,p\n2,q\n" * 250_000, target="y")["id"]
    body = {"model": "tall", "dataset": dataset, "memory_limit": LIMIT}
    problem = assert_problem(served.post("/v1/training-jobs", body), 422, "/memory_limit")
    assert "500,000 rows need 20,000,000 bytes, and the limit is 16,777,216" in problem["detail"]
    assert served.post("/v1/training-jobs", body | {"memory_limit": 25_600_000}).status_code == 202


def test_faults_of_form_and_of_reference_are_said_in_one_round(served: Served) -> None:
    body = {"model": 5, "dataset": UNKNOWN, "params": {"nope": 1}, "holdout": {"fraction": 2}}
    response = served.post("/v1/training-jobs", body)
    assert_problem(response, 422, "/model", "/dataset", "/params/nope", "/holdout/fraction")


@ON_SQLITE
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


@ON_SQLITE
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


@ON_SQLITE
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


def test_the_fault_of_a_holdout_is_a_json_pointer(served: Served, tennis: str, more_tennis: str) -> None:
    body = {"model": "m", "dataset": tennis, "holdout": {"dataset": more_tennis, "a/b~": 1}}
    assert_problem(served.post("/v1/training-jobs", body), 422, "/holdout/a~1b~0")


@ON_SQLITE
def test_a_body_with_very_many_names_is_too_large(served: Served, tennis: str) -> None:
    names = dict.fromkeys(map(str, range(MAX_MEMBERS)), 1)
    body = {"model": "m", "dataset": tennis}
    for wide in (names, {"params": names}, {"params": {"pruning": names}}, {"holdout": {"rows": [0, names]}}):
        response = served.post("/v1/training-jobs", body | wide)
        assert "members of objects: at most 100000" in assert_problem(response, 413)["detail"]
    changed = served.client.patch("/v1/models/m", json=names | {"tags": []})
    assert_problem(changed, 413)


def test_the_members_of_all_objects_of_a_body_are_counted(served: Served) -> None:
    content = b'{"a" :1, "b": {"c":"d"}, "e": [{"f": "g:h"}]}'
    with served.client.application.test_request_context(data=content, content_type="application/json"):
        assert read_json(flask.request, max_members=5) == {"a": 1, "b": {"c": "d"}, "e": [{"f": "g:h"}]}
    with (
        served.client.application.test_request_context(data=content, content_type="application/json"),
        pytest.raises(TooLarge),
    ):
        read_json(flask.request, max_members=4)
