"""Prunings over HTTP: what a version and its data set allow is said at the request."""

from collections.abc import Iterator

import pytest
from sqlalchemy import select

import espalier
from service.database.engine import read_session
from service.database.tables import Job
from service.settings import Settings
from tests.service.served import HOURS, ON_SQLITE, TENNIS, UNKNOWN, Served, assert_problem, serving


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as one:
        yield one


def test_a_version_trained_on_all_rows_is_not_pruned_on_them(served: Served) -> None:
    served.train("tennis")
    response = served.post("/v1/pruning-jobs", {"model": "tennis", "method": "reduced_error"})
    assert "all the rows" in assert_problem(response, 422, "/holdout")["detail"]


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


@ON_SQLITE
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


@ON_SQLITE
@pytest.mark.parametrize(("method", "params"), [("cost_complexity", {"select": "validation"}), ("rules", {})])
def test_a_method_that_asks_held_out_rows_is_refused_without_them(
    served: Served, method: str, params: dict[str, object]
) -> None:
    served.train("tennis")
    body = {"model": "tennis", "method": method, "params": params}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/holdout")


@ON_SQLITE
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


def test_one_reason_why_rows_cannot_vote_is_enough(served: Served) -> None:
    served.train("tennis", preset="reptree", holdout={"rows": [0, 1, 2, 3]})
    body = {"model": "tennis", "method": "reduced_error", "holdout": {"rows": [3, 4]}}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/holdout")


def test_an_unknown_data_set_to_hold_out_is_the_only_fault_of_a_version_that_was_tested_on_another(
    served: Served, more_tennis: str
) -> None:
    data = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    other = espalier.dataset_from_csv(TENNIS + "Overcast,Mild,High,Weak,Yes\n", target="PlayTennis")
    model = espalier.train(data, "id3", holdout=other)
    served.keep("tennis", model, data_set_id=served.train("own"), holdout_data_set_id=more_tennis)
    body = {"model": "tennis", "method": "reduced_error", "holdout": {"dataset": UNKNOWN}}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/holdout/dataset")


def test_rows_that_backfit_has_added_to_the_leaves_are_not_asked_again(served: Served, more_tennis: str) -> None:
    held_out = {"fraction": 0.3}
    served.train("tennis", preset="reptree", holdout=held_out)
    body = {"model": "tennis", "method": "reduced_error"}
    for holdout in (None, held_out):
        refused = served.post("/v1/pruning-jobs", body | {"holdout": holdout})
        assert "backfit" in assert_problem(refused, 422, "/holdout")["detail"]
    unknown = body | {"holdout": {"dataset": UNKNOWN}}
    assert_problem(served.post("/v1/pruning-jobs", unknown), 422, "/holdout/dataset")
    assert served.post("/v1/pruning-jobs", body | {"holdout": {"dataset": more_tennis}}).status_code == 202


@pytest.mark.parametrize("preset", ["id3", "reptree"])
def test_rows_of_the_own_data_set_may_be_asked_of_a_version_that_remembers_another_one(
    served: Served, more_tennis: str, preset: str
) -> None:
    """Of reptree they are in the leaves, by its own pruning; those of the other data set are, by the one after it."""
    data = espalier.dataset_from_csv(TENNIS, target="PlayTennis")
    other = espalier.dataset_from_csv(TENNIS + "Overcast,Mild,High,Weak,Yes\n", target="PlayTennis")
    own = served.train("other")
    model = espalier.train(data, preset, holdout=espalier.Holdout(rows=(0, 1, 2, 3)))
    pruned = espalier.prune(model, "reduced_error", dataset=data, holdout=other, backfit=True).model
    served.keep("tennis", pruned, data_set_id=own, holdout_data_set_id=more_tennis)
    body = {"model": "tennis", "method": "reduced_error"}
    refused = served.post("/v1/pruning-jobs", body)
    assert "backfit" in assert_problem(refused, 422, "/holdout")["detail"]
    answer = served.post("/v1/pruning-jobs", body | {"holdout": {"rows": [0, 1, 2]}})
    if preset == "reptree":
        assert "backfit" in assert_problem(answer, 422, "/holdout")["detail"]
    else:
        assert answer.status_code == 202
        with read_session(served.service.sessions) as session:
            assert session.scalars(select(Job)).one().holdout_data_set_id is None


@ON_SQLITE
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
