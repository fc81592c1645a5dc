"""Comparisons over HTTP: what is wrong with a request is said at once, every fault by its place."""

from collections.abc import Iterator
from typing import Any

import pytest

from service.settings import Settings
from tests.service.served import HOURS, ON_SQLITE, TENNIS, UNKNOWN, Served, assert_problem, serving

REDUCED = {"method": "reduced_error"}


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


@pytest.fixture
def hours(served: Served) -> str:
    return str(served.upload(HOURS, target="hours")["id"])


def test_a_comparison_is_queued_for_no_model_and_says_where_to_watch_it(served: Served, tennis: str) -> None:
    response = served.post("/v1/evaluation-jobs", {"dataset": tennis, "candidates": [{"preset": "id3"}], "folds": 3})
    job = response.get_json()
    assert (response.status_code, job["state"], job["kind"]) == (202, "queued", "evaluate")
    assert (job["model"], job["dataset"]) == (None, tennis)
    assert served.client.get(response.headers["Location"]).get_json() == job
    listed = served.client.get("/v1/jobs?kind=evaluate").get_json()["items"]
    assert [one["id"] for one in listed] == [job["id"]]


def test_its_data_sets_are_kept_while_it_is_unfinished(served: Served, tennis: str) -> None:
    other = served.upload(TENNIS + "Rain,Hot,High,Weak,Yes\n", target="PlayTennis")["id"]
    body = {"dataset": tennis, "candidates": [{}], "holdout": {"dataset": other}}
    assert served.post("/v1/evaluation-jobs", body).status_code == 202
    for data_set in (tennis, other):
        assert_problem(served.client.delete(f"/v1/datasets/{data_set}"), 409)


def test_every_fault_is_said_at_once_those_of_form_first(served: Served) -> None:
    body = {
        "dataset": UNKNOWN,
        "candidates": [
            {"preset": 5},
            {"preset": "catr"},
            {"params": {"min_weight_leaf": -1, "nope": 1}},
            {"pruning": {"method": "pessimistic", "confidence": 7}},
            {"params": {"pruning": {"method": "scissors"}}},
        ],
        "folds": "three",
        "holdout": {"fraction": 2},
    }
    assert_problem(
        served.post("/v1/evaluation-jobs", body),
        422,
        "/candidates/0/preset",
        "/folds",
        "/dataset",
        "/candidates/1/preset",
        "/candidates/2/params/min_weight_leaf",
        "/candidates/2/params/nope",
        "/candidates/3/pruning/confidence",
        "/candidates/4/params/pruning/method",
        "/holdout/fraction",
    )


@ON_SQLITE
@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        pytest.param({"dataset": UNKNOWN}, ["/dataset"], id="no such data set"),
        pytest.param({"dataset": 5}, ["/dataset"], id="a number for a data set"),
        pytest.param({"candidates": []}, ["/candidates"], id="no candidate"),
        pytest.param({"candidates": [{}] * 51}, ["/candidates"], id="51 candidates"),
        pytest.param({"candidates": [{"model": "m"}] * 51}, ["/candidates"], id="51 candidates that are not read"),
        pytest.param({"candidates": {}}, ["/candidates"], id="an object for the candidates"),
        pytest.param({"candidates": [[]]}, ["/candidates/0"], id="a list for a candidate"),
        pytest.param({"candidates": [{}, {}]}, ["/candidates"], id="two candidates of one name"),
        pytest.param({"candidates": [{"name": ""}]}, ["/candidates/0/name"], id="an empty name"),
        pytest.param({"candidates": [{"name": "a\nb"}]}, ["/candidates/0/name"], id="a line end in a name"),
        pytest.param({"candidates": [{"model": "m"}]}, ["/candidates/0/model"], id="an unknown field of a candidate"),
        pytest.param({"candidates": [{"params": []}]}, ["/candidates/0/params"], id="parameters that are a list"),
        pytest.param({"candidates": [{"pruning": "hard"}]}, ["/candidates/0/pruning"], id="text for a pruning"),
        pytest.param(
            {"candidates": [{"params": {"pruning": None}, "pruning": None}]},
            ["/candidates/0/params/pruning"],
            id="pruning said twice",
        ),
        pytest.param(
            {"candidates": [{"params": {"criterion": "squared_error"}}]},
            ["/candidates/0/params/criterion"],
            id="a criterion for numbers",
        ),
        pytest.param(
            {"candidates": [{"pruning": {"method": "model_tree"}}]},
            ["/candidates/0/pruning/method"],
            id="a pruning for numbers",
        ),
        pytest.param(
            {"candidates": [{"pruning": {"method": "cost_complexity", "select": "cv", "folds": 8}}], "folds": 2},
            ["/candidates/0/pruning/folds"],
            id="more parts than rows that are learned from",
        ),
        pytest.param(
            {"candidates": [{}, {"pruning": REDUCED}], "holdout": {"rows": list(range(13))}},
            ["/candidates/1/pruning"],
            id="a third of one row to prune by",
        ),
        pytest.param(
            {"candidates": [{"params": {"pruning": REDUCED}}], "holdout": {"rows": list(range(13))}},
            ["/candidates/0/params/pruning"],
            id="the same, said among the parameters",
        ),
        pytest.param(
            {"candidates": [{"preset": "reptree"}], "holdout": {"rows": list(range(13))}},
            ["/candidates/0/pruning"],
            id="the same, as the preset has it",
        ),
        pytest.param({"folds": 1}, ["/folds"], id="one fold"),
        pytest.param({"folds": 15}, ["/folds"], id="more folds than rows"),
        pytest.param({"folds": 2.5}, ["/folds"], id="half a fold"),
        pytest.param({"holdout": {"fraction": 0.5}, "folds": 3}, ["/folds"], id="folds and a holdout"),
        pytest.param({"holdout": {"rows": [14]}}, ["/holdout/rows"], id="a row beyond the end"),
        pytest.param({"holdout": {"fraction": 0.01}}, ["/holdout"], id="a share of no row"),
        pytest.param({"holdout": {"dataset": UNKNOWN}}, ["/holdout/dataset"], id="no such held-out data set"),
        pytest.param({"label_noise": 1}, ["/label_noise"], id="noise in every row"),
        pytest.param({"label_noise": -0.1}, ["/label_noise"], id="noise below 0"),
        pytest.param({"seed": -1}, ["/seed"], id="a negative seed"),
        pytest.param({"seed": 2**63}, ["/seed"], id="a seed of 64 bits"),
        pytest.param({"colour": "red"}, ["/colour"], id="an unknown field"),
        pytest.param({"label_noise": "x"}, ["/label_noise"], id="noise in words"),
        pytest.param({"label_noise": "0.1"}, ["/label_noise"], id="noise as text"),
        pytest.param({"label_noise": False}, ["/label_noise"], id="noise that is false"),
    ],
)
def test_a_bad_request_is_refused_with_its_place(
    served: Served, tennis: str, change: dict[str, Any], pointers: list[str]
) -> None:
    body = {"dataset": tennis, "candidates": [{"preset": "cart"}]} | change
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, *pointers)


@ON_SQLITE
@pytest.mark.parametrize("candidates", [[], None, "x", {}, [None], [{}] * 60, ...])
@pytest.mark.parametrize("weight", [{}, {"weight": "w"}])
def test_candidates_that_are_none_are_refused_whatever_the_rows_weigh(
    served: Served, weight: dict[str, str], candidates: Any
) -> None:
    dataset = served.upload("a,w,y\n" + "1,1,p\n2,0.5,q\n" * 20, target="y", **weight)["id"]
    body = {"dataset": dataset} | ({} if candidates is ... else {"candidates": candidates})
    place = "/candidates/0" if candidates == [None] else "/candidates"
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, place)


def test_an_unknown_field_of_a_candidate_is_told_with_those_of_candidates(served: Served, tennis: str) -> None:
    body = {"dataset": tennis, "candidates": [{}, {"name": "X", "seed": 1}], "folds": 3, "colour": 1}
    problem = assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/candidates/1/seed", "/colour")
    legal = {fault["pointer"]: fault["message"].split("legal: ")[1] for fault in problem["errors"]}
    assert legal["/candidates/1/seed"] == "name, preset, params, pruning"
    assert legal["/colour"] == "dataset, candidates, folds, holdout, label_noise, seed"


@ON_SQLITE
@pytest.mark.parametrize("holdout", [{}, {"share": 0.3}, 0.3, [1], "all"])
def test_a_holdout_that_is_none_is_told_all_three_forms(served: Served, tennis: str, holdout: Any) -> None:
    body = {"dataset": tennis, "candidates": [{}], "holdout": holdout}
    message = assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/holdout")["errors"][0]["message"]
    assert all(form in message for form in ("fraction", "rows", "dataset"))


def test_a_target_that_cannot_be_counts_is_said_at_the_request(served: Served) -> None:
    dataset = served.upload("a,y\n" + "".join(f"{a},{a % 7 - 3}.5\n" for a in range(40)), target="y")["id"]
    poisson = {"params": {"criterion": "poisson"}}
    body = {"dataset": dataset, "candidates": [{}, poisson]}
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/candidates/1/params/criterion")
    training = {"dataset": dataset, "model": "m"} | poisson
    assert_problem(served.post("/v1/training-jobs", training), 422, "/params/criterion")
    for holdout, place in (({"rows": [99]}, "/holdout/rows"), ({"fraction": 1e-9}, "/holdout")):
        for job, asked in (("training", training), ("evaluation", body)):
            assert_problem(served.post(f"/v1/{job}-jobs", asked | {"holdout": holdout}), 422, place)
    weighted = "a,y,w\n" + "".join(f"{a},{a % 7 - 3}.5,{int(a % 7 > 2)}\n" for a in range(40))
    unused = served.upload(weighted, target="y", weight="w")["id"]
    for job, asked in (("training", training), ("evaluation", body)):
        assert served.post(f"/v1/{job}-jobs", asked | {"dataset": unused}).status_code == 202
    below = {"holdout": {"rows": [row for row in range(40) if row % 7 < 3]}}
    for job, asked in (("training", training), ("evaluation", body)):
        assert served.post(f"/v1/{job}-jobs", asked | below).status_code == 202


def test_classes_of_numbers_cannot_be_made_wrong(served: Served, hours: str) -> None:
    body = {"dataset": hours, "candidates": [{}], "folds": 2, "label_noise": 0.1}
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/label_noise")


def test_a_data_set_that_nothing_can_be_learned_from_is_said_once(served: Served) -> None:
    dataset = served.upload("a,y\n1,p\n2,p\n3,p\n", target="y")["id"]
    body = {"dataset": dataset, "candidates": [{}, {"preset": "c45"}], "folds": 2}
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/dataset")


def test_a_held_out_data_set_must_have_the_columns_in_their_kinds(served: Served, tennis: str) -> None:
    rows = "Outlook,Temperature,Humidity,Wind,PlayTennis\nSunny,30,High,Weak,No\nRain,20,High,Weak,Yes\n"
    other = served.upload(rows, target="PlayTennis")["id"]
    body = {"dataset": tennis, "candidates": [{}], "holdout": {"dataset": other}}
    problem = assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/holdout/dataset")
    assert "'Temperature' is numeric, and must be nominal" in problem["detail"]


def test_rows_that_are_learned_from_cannot_be_tested_on(served: Served, tennis: str) -> None:
    again = served.upload(TENNIS, target="PlayTennis")["id"]
    body = {"dataset": tennis, "candidates": [{}], "holdout": {"dataset": again}}
    assert_problem(served.post("/v1/evaluation-jobs", body), 422, "/holdout/dataset")


@ON_SQLITE
@pytest.mark.parametrize(
    "pruning", [REDUCED, {"method": "rules"}, {"method": "cost_complexity", "select": "cv", "folds": 7}]
)
def test_a_candidate_may_be_pruned_by_any_method_that_its_target_allows(
    served: Served, tennis: str, pruning: dict[str, Any]
) -> None:
    body = {"dataset": tennis, "candidates": [{"pruning": None}, {"pruning": pruning}], "folds": 2}
    assert served.post("/v1/evaluation-jobs", body).status_code == 202


def test_every_fold_must_have_some_weight(served: Served) -> None:
    lines = "".join(f"{row},{'yn'[row % 2]},{int(row < 4)}\n" for row in range(60))
    weighted = served.upload(f"a,y,w\n{lines}", target="y", weight="w")["id"]
    body = {"dataset": weighted, "candidates": [{"preset": "cart"}]}
    problem = assert_problem(served.post("/v1/evaluation-jobs", body | {"folds": 10}), 422, "/folds")
    assert "of 10 have no weight" in problem["detail"]
    enough = served.upload(f"a,y,w\n{lines.replace(',0', ',1').replace(',1', ',0', 1)}", target="y", weight="w")["id"]
    assert served.post("/v1/evaluation-jobs", body | {"dataset": enough, "folds": 10}).status_code == 202


def test_the_fewest_rows_of_a_class_that_a_third_can_be_taken_of_are_two(served: Served, tennis: str) -> None:
    # 1 / 3 of one row rounds to none, of two rows to one. The last rows but one are of one class, the last is not.
    body = {"dataset": tennis, "candidates": [{"pruning": REDUCED}], "holdout": {"rows": list(range(11))}}
    assert served.post("/v1/evaluation-jobs", body).status_code == 202
    two = served.upload("a,y\n1,yes\n2,no\n", target="y")["id"]
    asked = {"dataset": two, "candidates": [{"pruning": REDUCED}], "folds": 2}
    assert_problem(served.post("/v1/evaluation-jobs", asked), 422, "/candidates/0/pruning")
    other = {"dataset": served.upload("a,y\n3,yes\n4,no\n5,yes\n", target="y")["id"]}
    apart = {"candidates": [{"pruning": REDUCED}], "holdout": other}
    assert_problem(served.post("/v1/evaluation-jobs", {"dataset": two, **apart}), 422, "/candidates/0/pruning")
    three = served.upload("a,y\n1,yes\n2,no\n6,no\n", target="y")["id"]
    assert served.post("/v1/evaluation-jobs", {"dataset": three, **apart}).status_code == 202
