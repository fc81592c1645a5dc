"""The figures of /metrics: what is counted, who may see it, and that several processes are added up."""

import os
import re
import signal
import tempfile
from pathlib import Path

import sqlalchemy

from service.database.engine import Sessions, transaction
from service.database.tables import Job, Kind, Scope
from service.metrics import MAX_LABELS, MAX_SERIES, Metrics
from service.repositories import job_queue
from service.repositories.job_queue import Claim
from service.settings import Settings
from tests.acceptance.running import running, until
from tests.service.guarded import token_of
from tests.service.served import HOURS, Served, assert_problem, serving

ROW = {"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak", "Temperature": "Hot"}
PREDICT = 'espalier_request_seconds_count{method="POST",route="/v1/models/<model:name>/predict",status="200"}'


def figures(text: str) -> dict[str, float]:
    """Read the text form."""
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def seen(served: Served) -> dict[str, float]:
    response = served.client.get("/metrics")
    assert (response.status_code, response.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return figures(response.text)


def test_requests_predictions_and_commits_are_counted(settings: Settings) -> None:
    with serving(settings) as served:
        served.train("play")
        served.train("hours", HOURS, preset="cart", target="hours")
        assert PREDICT not in seen(served)

        for _ in range(2):
            served.predict("play", {"rows": [ROW, ROW]})
        served.predict("hours", {"rows": [{"size": 3}]})
        assert served.post("/v1/models/play/predict", {"rows": [{"Outlook": 5}]}).status_code == 422
        lines = "Outlook,Humidity,Wind,Temperature\n" + "Sunny,High,Weak,Hot\n" * 3 + "Overcast,High,Weak,Hot\n"
        served.client.post("/v1/models/play/predict", data=lines, content_type="text/csv").get_data()
        served.client.get("/v1/nothing/of/the/kind")
        served.client.open("/v1/models", method="BREW")
        found = seen(served)

    assert found[PREDICT] == 4
    assert found[PREDICT.replace("200", "422")] == 1
    assert found['espalier_predictions_total{label="No",model="play",version="1"}'] == 2 * 2 + 3
    assert found['espalier_predictions_total{label="Yes",model="play",version="1"}'] == 1
    assert found['espalier_predictions_total{label="",model="hours",version="1"}'] == 1
    assert found['espalier_predictions_total{label="(refused)",model="play",version="1"}'] == 1
    assert found["espalier_decision_commit_seconds_count"] == 5
    assert {"404", "405"} == {
        status for name in found for status in re.findall(r'_count{method="other",route="none",status="(\d+)"', name)
    }


def test_the_number_of_series_is_bounded() -> None:
    metrics = Metrics()

    for label in range(MAX_LABELS + 30):
        metrics.predictions("many", 1, f"label {label}", 1)
    for version in range(MAX_SERIES + 5):
        metrics.predictions("versions", version, "yes", 1)

    shown = figures(metrics.text(None).decode())
    series = [name for name in shown if name.startswith("espalier_predictions_total")]
    assert len(series) == MAX_SERIES + 2
    assert shown['espalier_predictions_total{label="(other)",model="many",version="1"}'] == 30
    assert shown['espalier_predictions_total{label="(other)",model="(other)",version="(other)"}'] == 25


def test_the_queue_shows_its_depth_its_age_and_lost_leases(source: Sessions) -> None:
    def enqueue(kind: Kind) -> str:
        with transaction(source) as session:
            return job_queue.enqueue(session, Job(kind=kind, payload={}), max_attempts=2).id

    def claim() -> Claim:
        with transaction(source) as session:
            held = job_queue.claim(session, worker="w", lease_seconds=60)
        assert held is not None
        return held

    enqueue(Kind.TRAIN)
    held = claim()
    for kind in (Kind.PRUNE, Kind.PRUNE, Kind.TRAIN):
        enqueue(kind)
    with transaction(source) as session:
        moved = {"s": "-100 seconds"} if source.engine.dialect.name == "sqlite" else {}
        earlier = "strftime('%Y-%m-%d %H:%M:%f000', 'now', :s)" if moved else "now() - interval '100 seconds'"
        session.execute(sqlalchemy.text(f"UPDATE jobs SET run_at = {earlier} WHERE kind = 'prune'"), moved)  # noqa: S608
        session.execute(sqlalchemy.text(f"UPDATE jobs SET lease_expires_at = {earlier} WHERE state = 'running'"), moved)  # noqa: S608
    with transaction(source) as session:
        assert job_queue.reap(session) == 1
        job_queue.note_fenced_out(session, held)
    with transaction(source) as session:
        found = job_queue.job_figures(session)

    assert dict(found.unfinished) == {("queued", "prune"): 2, ("queued", "train"): 2}
    assert 99 <= found.oldest_seconds < 100 + 3600
    assert (found.dead, found.leases_lost, found.fenced_out) == (0, 1, 1)


def test_figures_need_a_key_that_reads_all_models(settings: Settings) -> None:
    with serving(settings, auth="keys") as served:
        assert_problem(served.client.get("/metrics"), 401)
        limited = token_of(served, Scope.READ, models=["play"])
        problem = assert_problem(served.client.get("/metrics", headers={"Authorization": f"Bearer {limited}"}), 403)
        assert "about all models" in problem["detail"]
        whole = token_of(served, Scope.READ)
        assert served.client.get("/metrics", headers={"Authorization": f"Bearer {whole}"}).status_code == 200


def test_figures_can_be_switched_off(settings: Settings) -> None:
    with serving(settings, metrics="off") as served:
        served.train("play")
        served.predict("play", {"rows": [ROW]})
        assert "ESPALIER_METRICS" in assert_problem(served.client.get("/metrics"), 404)["detail"]


def test_several_processes_are_added_up_and_one_that_died_still_counts(tmp_path: Path) -> None:
    with running(tmp_path, ESPALIER_WEB_WORKERS="2") as service:
        for _ in range(40):
            with service.client_with(None) as client:  # a connection of its own may come to another process
                client.get("/v1/models")

        def counted() -> float:
            shown = figures(service.client.get("/metrics").text)
            return shown['espalier_request_seconds_count{method="GET",route="/v1/models",status="200"}']

        assert counted() == 40
        [server] = service.children("serve")
        workers = [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]
        os.kill(workers[0], signal.SIGKILL)
        children = Path(f"/proc/{server}/task/{server}/children")
        until(lambda: len(set(children.read_text().split()) - {str(workers[0])}) == 2, what="a new web process")
        assert counted() == 40
        assert len(_folders(server)) == 1
    assert _folders(server) == []


def _folders(server: int) -> list[Path]:
    """Find where the web processes of this server put what they count."""
    places = {Path("/dev/shm"), Path(tempfile.gettempdir())}  # noqa: S108 - where they are
    return [folder for place in places for folder in place.glob(f"espalier-figures-{server}-*")]
