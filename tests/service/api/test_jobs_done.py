"""Jobs asked for over HTTP and done by a real worker: training, three prunings, rules, a comparison, and a cancel."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from werkzeug.test import TestResponse

import espalier
from service.cli.__main__ import main
from service.database.engine import read_session
from service.repositories import job_queue
from service.settings import Settings
from service.worker import loop
from tests.service.kept import keep_data_set
from tests.service.served import Served, assert_problem, serving
from tests.service.starting import process_context
from tests.service.waiting import PATIENCE, until

# Whether x is below 50 says yes or no, but for every seventh row; y and c say nothing.
NOISY = "x,y,c,label\n" + "".join(
    f"{row * 37 % 101},{row * 53 % 89},{'abc'[row % 3]},{'yes' if (row * 37 % 101 < 50) != (row % 7 == 0) else 'no'}\n"
    for row in range(240)
)
PRUNINGS: Mapping[str, Mapping[str, Any]] = {
    "reduced_error": {},
    "pessimistic": {},
    "cost_complexity": {"select": "cv", "folds": 5, "rule": "one_se"},
}
CANDIDATES = [{"preset": "cart"}, {"preset": "cart", "pruning": {"method": "reduced_error"}}]


@pytest.fixture(scope="module")
def served(shared_settings: Settings) -> Iterator[Served]:
    """An application and a worker on one database."""
    settings = replace(shared_settings, web_threads=8)
    process = process_context().Process(target=loop.run, args=(settings,))
    process.start()
    try:
        with serving(settings) as one:
            yield one
    finally:
        process.terminate()
        process.join(PATIENCE)
        process.kill()


@dataclass(frozen=True)
class Story:
    """What was asked for: the number of each method's version, and the document of the parent before it was pruned."""

    versions: Mapping[str, int]
    parent: bytes
    comparison: Mapping[str, Any]


@pytest.fixture(scope="module")
def story(served: Served) -> Story:
    """Train, prune in every way, and compare: the jobs wait in the queue together."""
    dataset = served.upload(NOISY, target="label")["id"]
    body = {"model": "noisy", "dataset": dataset, "preset": "cart", "holdout": {"fraction": 0.3, "seed": 1}}
    assert succeeded(served, served.post("/v1/training-jobs", body))["result"]["version"] == 1
    parent = served.client.get("/v1/models/noisy/versions/1/document").data
    asked = [
        served.post("/v1/pruning-jobs", {"model": "noisy", "version": 1, "method": method, "params": params})
        for method, params in (PRUNINGS | {"rules": {}}).items()
    ]
    comparing = served.post(
        "/v1/evaluation-jobs", {"dataset": dataset, "candidates": CANDIDATES, "folds": 4, "seed": 3}
    )
    made = [succeeded(served, response)["result"]["version"] for response in asked]
    job = succeeded(served, comparing)
    result = get(served, f"/v1/jobs/{job['id']}/result")
    assert job["result"] == {"verdict": result["verdict"], "n_rows": result["n_rows"]}
    return Story(dict(zip([*PRUNINGS, "rules"], made, strict=True)), parent, result)


def test_a_training_whose_table_stays_on_disk_makes_the_same_version(served: Served) -> None:
    dataset = served.upload(NOISY, target="label")["id"]
    documents = []
    for version, limit in ((1, None), (2, 2**24)):
        body = {"model": "twice", "dataset": dataset, "preset": "c45", "memory_limit": limit}
        assert succeeded(served, served.post("/v1/training-jobs", body))["result"]["version"] == version
        documents.append(served.client.get(f"/v1/models/twice/versions/{version}/document").data)
    assert documents[0] == documents[1]


@pytest.mark.parametrize("method", PRUNINGS)
def test_the_trace_of_a_pruning_counts_the_nodes_that_went(served: Served, story: Story, method: str) -> None:
    before, after = (columns(served, version) for version in (1, story.versions[method]))
    trace = get(served, f"{version_of(story, method)}/pruning")

    assert (trace["method"], len(trace["steps"]) > 0) == (method, True)
    for shown, tree in (("before", before), ("after", after)):
        # A node whose subtree is itself alone is a leaf.
        counted = {"leaves": tree["size"].count(1), "nodes": len(tree["size"])}
        assert counted == {name: trace[shown][name] for name in counted}
    left = set(range(len(before["size"])))
    for step in trace["steps"]:
        node, raised, there = step["node"], step.get("raised"), len(left)
        stays = {node} if raised is None else set(range(raised, raised + before["size"][raised]))
        left -= set(range(node, node + before["size"][node])) - stays
        assert step["nodes_removed"] == there - len(left)
    assert len(left) == trace["after"]["nodes"]


def test_what_reduced_error_pruning_asks_are_the_rows_held_out_at_training(served: Served, story: Story) -> None:
    trace = get(served, f"{version_of(story, 'reduced_error')}/pruning")
    parent, child = (get(served, f"/v1/models/noisy/versions/{n}") for n in (1, story.versions["reduced_error"]))

    held_out = [version["summary"]["holdout"] for version in (parent, child)]
    n_rows = sum(round(0.3 * NOISY.count(f",{label}\n")) for label in ("yes", "no"))  # the same share of each class
    assert [figures["n_rows"] for figures in held_out] == [n_rows, n_rows]
    assert [figures["use"] for figures in held_out] == ["holdout", "validation"]
    assert [figures["errors"] for figures in held_out] == [trace[part]["estimate"] for part in ("before", "after")]
    assert trace["after"]["estimate"] <= trace["before"]["estimate"]


def test_the_path_of_cost_complexity_goes_from_the_grown_tree_to_the_selected_one_and_on(
    served: Served, story: Story
) -> None:
    trace = get(served, f"{version_of(story, 'cost_complexity')}/pruning")
    table = trace["table"]
    [selected] = [line for line in table if line["selected"]]

    assert table[0]["leaves"] == trace["before"]["leaves"]
    assert selected["leaves"] == trace["after"]["leaves"]
    assert table[-1]["leaves"] == 1
    for line, following in itertools.pairwise(table):
        assert line["alpha"] < following["alpha"]
        assert line["leaves"] > following["leaves"]
    # The smallest tree whose error is within one standard error of the least one (Breiman et al. 1984).
    best = min(table, key=lambda line: (line["error"], line["leaves"]))
    within = [line for line in table if line["error"] <= best["error"] + best["standard_error"] + 1e-9]
    assert selected["leaves"] == min(line["leaves"] for line in within)


def test_a_pruning_leaves_the_parent_as_it_was(served: Served, story: Story) -> None:
    version = get(served, "/v1/models/noisy/versions/1")
    assert served.client.get("/v1/models/noisy/versions/1/document").data == story.parent
    assert version["document_sha256"] == hashlib.sha256(story.parent).hexdigest()
    assert_problem(served.client.get("/v1/models/noisy/versions/1/pruning"), 404)
    for number in story.versions.values():
        child = get(served, f"/v1/models/noisy/versions/{number}")
        assert (child["parent"], child["dataset"]) == (1, version["dataset"])


def test_a_list_of_rules_answers_by_the_first_rule_that_holds_and_names_those_before_it(
    served: Served, story: Story
) -> None:
    rules = get(served, f"{version_of(story, 'rules')}/rules?format=json")["rules"]
    rows = [{"x": x, "y": y, "c": c} for x, y, c in ((3, 70, "a"), (90, 20, "b"), (49, 1, "c"), (None, 40, "b"))]
    path = f"{version_of(story, 'rules')}/predict"
    answers = served.post(path, {"rows": rows, "explain": "full"}).get_json()["predictions"]

    for row, answer in zip(rows, answers, strict=True):
        first = next(rule for rule in rules if all(holds(one, row) for one in rule["conditions"]))
        assert (answer["leaf"], answer["label"], answer["rule"]) == (first["number"], first["label"], first["text"])
        before = rules[: first["number"]]
        passed = answer["passed_over"]
        assert [one["number"] for one in passed] == [rule["number"] for rule in before]
        assert [one["rule"] for one in passed] == [rule["text"] for rule in before]
        assert not any(holds(one["failed"], row) for one in passed)


def test_rules_are_shown_as_text_and_are_no_tree(served: Served, story: Story) -> None:
    rules = get(served, f"{version_of(story, 'rules')}/rules?format=json")
    text = served.client.get(f"{version_of(story, 'rules')}/rules?format=text").text
    trace = get(served, f"{version_of(story, 'rules')}/pruning")

    assert [rule["text"] in line for rule, line in zip(rules["rules"], text.splitlines(), strict=False)] == [
        True
    ] * rules["n_rules"]
    assert trace["before"]["leaves"] == columns(served, 1)["size"].count(1)
    assert_problem(served.client.get(f"{version_of(story, 'rules')}/tree"), 422)
    body = {"model": "noisy", "version": story.versions["rules"], "method": "reduced_error"}
    assert_problem(served.post("/v1/pruning-jobs", body), 422, "/method")


def test_a_comparison_says_which_is_better_and_whether_that_means_anything(story: Story) -> None:
    found = story.comparison
    plain, pruned = found["candidates"]
    ours, theirs = (np.array(each["figures"]["accuracy"]["folds"]) for each in (pruned, plain))
    [difference] = found["differences"]

    assert [len(ours), len(theirs), found["folds"], found["n_rows"]] == [4, 4, 4, 240]
    assert [plain["name"], pruned["name"]] == ["cart", 'cart pruning={"method":"reduced_error"}']
    assert pruned["figures"]["accuracy"]["mean"] == pytest.approx(ours.mean())
    assert pruned["leaves"]["mean"] < plain["leaves"]["mean"]
    # Nadeau and Bengio (2003): the variance of the mean is (1/k + n_test/n_train) times that of the differences.
    gaps = ours - theirs
    statistic = gaps.mean() / np.sqrt(gaps.var(ddof=1) * (1 / 4 + 60 / 180))
    assert (difference["better"], difference["other"]) == (pruned["name"], plain["name"])
    assert difference["by"] == pytest.approx(gaps.mean())
    assert difference["p_value"] == pytest.approx(2 * stats.t.sf(statistic, 3), rel=1e-9)
    assert difference["significant"] == (difference["p_value"] < 0.05)
    said = "is significant" if difference["significant"] else "may be chance"
    assert found["verdict"].startswith(f"{pruned['name']} has the best accuracy")
    assert said in found["verdict"]


def test_the_command_line_prints_the_same_comparison(
    story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy.csv").write_text(NOISY)
    named = [option for each in story.comparison["candidates"] for option in ("--candidate", each["name"])]
    arguments = [str(tmp_path / "noisy.csv"), "--target", "label", "--folds", "4", "--seed", "3", "--json"]

    assert main(["evaluate", *arguments, *named]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == story.comparison.keys()
    assert without_times(printed) == without_times(story.comparison)


def test_progress_moves_while_a_tree_grows_and_a_cancel_ends_it_within_two_seconds(served: Served) -> None:
    params = {"missing": "fractional"}
    dataset = keep_data_set(served.service.sessions, unlearnable(150_000), name="coins")
    body = {"model": "coins", "dataset": dataset, "params": params}
    response = served.post("/v1/training-jobs", body)
    job = response.get_json()["id"]

    seen = until(lambda: moved(served, job), what="progress while the tree grows")
    asked = served.client.post(f"/v1/jobs/{job}/cancel")
    ended = finished(served, job)

    assert (asked.status_code, seen["state"], ended["state"]) == (202, "running", "cancelled")
    assert "growing" in seen["phase"]
    assert 0 < seen["progress"] < 1
    with read_session(served.service.sessions) as session:
        events = job_queue.list_events(session, job)
    assert [event.event for event in events] == ["enqueue", "claim", "request_cancel", "cancel"]
    assert (events[3].at - events[2].at).total_seconds() <= 2.0  # by the database's own clock
    assert_problem(served.client.get("/v1/models/coins"), 404)
    assert_problem(served.client.get(f"/v1/jobs/{job}/result"), 409)


# --- what the tests ask


def get(served: Served, path: str) -> Any:
    response = served.client.get(path)
    assert response.status_code == 200, response.text
    return response.get_json()


def finished(served: Served, job: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        shown: dict[str, Any] = get(served, f"/v1/jobs/{job}?wait=20")
        return shown if shown["state"] in job_queue.FINAL else None

    shown = until(look, seconds=180, what="the end of the job")
    assert shown is not None
    return shown


def succeeded(served: Served, response: TestResponse) -> dict[str, Any]:
    assert response.status_code == 202, response.text
    job = finished(served, response.get_json()["id"])
    assert job["state"] == "succeeded", job
    return job


def moved(served: Served, job: str) -> dict[str, Any] | None:
    shown: dict[str, Any] = get(served, f"/v1/jobs/{job}")
    assert shown["state"] in ("queued", "running"), shown
    return shown if shown["progress"] > 0 else None


def version_of(story: Story, method: str) -> str:
    return f"/v1/models/noisy/versions/{story.versions[method]}"


def columns(served: Served, version: int) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = get(served, f"/v1/models/noisy/versions/{version}/tree?format=json")
    return found


def holds(condition: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a condition of a rule holds, by what its JSON says; none holds for a missing value."""
    value = row[condition["attribute"]]
    if value is None:
        return False
    if "in" in condition:
        return value in condition["in"]
    return bool(condition.get("above", -math.inf) < value <= condition.get("at_most", math.inf))


def without_times(comparison: Mapping[str, Any]) -> dict[str, Any]:
    candidates = [
        {name: value for name, value in each.items() if name != "seconds"} for each in comparison["candidates"]
    ]
    return {**comparison, "candidates": candidates, "dataset": None}


def unlearnable(n_rows: int) -> espalier.Dataset:
    """Numbers that say nothing of a thrown coin: a tree needs a leaf for every few rows, and its time."""
    draw = np.random.default_rng(8)
    numbers = [draw.normal(size=n_rows) for _ in range(6)]
    numbers[0][::10] = np.nan
    coin = espalier.Feature("coin", espalier.FeatureKind.NOMINAL, espalier.Role.TARGET, ("heads", "tails"))
    names = [espalier.Feature(f"x{place}", espalier.FeatureKind.NUMERIC) for place in range(6)]
    return espalier.Dataset(espalier.Schema((*names, coin)), (*numbers, draw.integers(0, 2, n_rows).astype(np.int32)))
