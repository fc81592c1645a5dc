"""Two web servers and two workers on one PostgreSQL, as compose.yaml starts them, keys on."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.acceptance.running import PATIENCE, Service, begun_upload, held, listens, until
from tests.acceptance.test_kill import noise

# The same story, told to both web servers in turn.
from tests.acceptance.test_story import (  # noqa: F401
    dataset,
    split,
    test_a_decision_explains_itself_by_the_version_that_made_it_even_after_a_pruning,
    test_the_held_out_accuracy_is_that_of_the_reference,
    test_the_root_tests_na_to_k_at_the_threshold_of_the_reference,
    test_the_training_runs_to_its_end_with_progress,
    trained,
)
from tests.acceptance.topology import ADMIN, Topology, is_ready, topology
from tests.service.conftest import empty_database

CSV = {"Content-Type": "text/csv"}
ROWS = "a,y\n" + "".join(f"{n},{'pq'[n % 2]}\n" for n in range(400))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    """Those that all tests share; a lost job is soon found."""
    folder = tmp_path_factory.mktemp("topology")
    with empty_database("postgresql", folder) as url, topology(url, folder, ESPALIER_LEASE_SECONDS="2") as one:
        yield one


@pytest.fixture(scope="module")
def running_service(whole: Topology) -> Service:
    return whole.service


@pytest.fixture
def own(whole: Topology) -> Iterator[Topology]:
    """Those of which a test may end some: they are started again after it."""
    yield whole
    for kind in (whole.webs, whole.workers):
        kind[:] = [one if one.poll() is None else whole.start(one) for one in kind]
    for server in whole.servers:
        until(lambda server=server: is_ready(server), what="a web server that was started again")


def test_the_first_key_is_the_one_that_was_given_and_is_not_printed(whole: Topology) -> None:
    assert ADMIN not in whole.printed
    for server in whole.servers:
        assert server.get("/v1/models")["items"] is not None
        with server.client_with(None) as stranger:
            assert stranger.get("/v1/models").status_code == 401


def test_a_key_without_the_scope_is_refused_by_both(whole: Topology) -> None:
    made = whole.servers[0].post("/v1/keys", {"name": "reads", "scopes": ["read"]}, status=201)
    for server in whole.servers:
        with server.client_with(made["token"]) as reading:
            assert reading.get("/v1/models").status_code == 200
            upload = reading.post("/v1/datasets", content=ROWS, headers=CSV)
            assert (upload.status_code, "train" in upload.json()["detail"]) == (403, True)


def test_a_key_that_one_revoked_is_soon_refused_by_the_other(whole: Topology) -> None:
    first, second = whole.servers
    made = first.post("/v1/keys", {"name": "soon gone", "scopes": ["read"]}, status=201)
    with second.client_with(made["token"]) as asking:
        assert asking.get("/v1/models").status_code == 200
        assert first.client.delete(f"/v1/keys/{made['id']}").status_code == 204
        until(lambda: asking.get("/v1/models").status_code == 401, what="the refusal")


def test_two_jobs_run_at_the_same_time(whole: Topology) -> None:
    data = whole.service.upload(noise(), target="y")
    first, second = whole.workers
    with held(first.pid), held(second.pid):
        jobs = [
            whole.service.post("/v1/training-jobs", {"model": f"long-{n}", "dataset": data}, status=202)
            for n in range(2)
        ]
        until(lambda: [state(whole, job) for job in jobs] == ["running"] * 2, what="both at work")
    assert [whole.service.finished(job)["state"] for job in jobs] == ["succeeded"] * 2


def test_a_killed_workers_job_is_finished_by_the_other_once(own: Topology) -> None:
    data = own.service.upload(noise(), target="y")
    for worker in own.workers[1:]:
        os.kill(worker.pid, signal.SIGSTOP)  # so that the first takes the job
    with held(own.workers[0].pid):
        job = own.service.post("/v1/training-jobs", {"model": "long", "dataset": data}, status=202)
        until(lambda: state(own, job) == "running", what="the first worker at work")
        os.killpg(own.workers[0].pid, signal.SIGKILL)
    os.kill(own.workers[1].pid, signal.SIGCONT)
    finished = own.service.finished(job)
    assert (finished["state"], finished["attempt"]) == ("succeeded", 2)
    assert [version["job"] for version in own.service.get("/v1/models/long/versions")["items"]] == [job["id"]]


def test_a_worker_that_is_asked_to_stop_gives_its_job_back_unspent(own: Topology) -> None:
    data = own.service.upload(noise(), target="y")
    for worker in own.workers[1:]:
        os.kill(worker.pid, signal.SIGSTOP)
    with held(own.workers[0].pid):
        job = own.service.post("/v1/training-jobs", {"model": "given-back", "dataset": data}, status=202)
        until(lambda: state(own, job) == "running", what="the first worker at work")
        own.workers[0].terminate()
        assert own.workers[0].wait(timeout=PATIENCE) == 0
    assert (state(own, job), own.service.get(f"/v1/jobs/{job['id']}")["attempt"]) == ("queued", 0)
    os.kill(own.workers[1].pid, signal.SIGCONT)
    finished = own.service.finished(job)
    assert (finished["state"], finished["attempt"]) == ("succeeded", 1)


def test_a_web_server_that_is_asked_to_stop_answers_what_it_has_begun_and_lets_nobody_wait(own: Topology) -> None:
    first, second = own.servers

    def answer_while_it_stops() -> str:
        if own.webs[0].poll() is not None:
            own.webs[0] = own.start(own.webs[0])
            until(lambda: is_ready(first), what="the web server of the next try")
        with begun_upload(first, ROWS) as finish:
            own.webs[0].terminate()
            until(lambda: not listens(first), what="the closing of the door")
            answer = finish()
        assert own.webs[0].wait(timeout=PATIENCE) == 0
        return answer

    answer = until(answer_while_it_stops, what="an answer")
    assert answer.startswith("HTTP/1.1 201 ")
    created = json.loads(answer.partition("\r\n\r\n")[2])
    assert second.get(f"/v1/datasets/{created['id']}")["n_rows"] == 400


def state(whole: Topology, job: dict[str, str]) -> str:
    return str(whole.service.get(f"/v1/jobs/{job['id']}")["state"])
