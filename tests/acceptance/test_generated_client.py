"""A client that is generated from the OpenAPI document alone trains, predicts and reads an explanation."""

import importlib
import importlib.util
import io
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.acceptance.running import Running, running
from tests.service.served import TENNIS

IS_INSTALLED = importlib.util.find_spec("openapi_python_client") is not None
pytestmark = pytest.mark.skipif(not IS_INSTALLED, reason="openapi-python-client is not installed")

ADMIN = f"esp_01890000-0000-7000-8000-000000000000_{'k' * 43}"
SUNNY = {"Outlook": "Sunny", "Humidity": "High"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("served")
    with running(folder, ESPALIER_AUTH="keys", ESPALIER_ADMIN_KEY=ADMIN) as one:
        yield one


@pytest.fixture(scope="module")
def generated(service: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generate the package and give its name; nothing but the document is known to it."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(service.client.get("/openapi.json").content)
    (folder / "config.yml").write_text("post_hooks: []\npackage_name_override: from_the_document\n")
    options = ["--path", "openapi.json", "--config", "config.yml", "--output-path", "client", "--meta", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR" not in done.stdout
    # What it cannot read it says, and leaves out: streams of text and files, which a client sends by itself.
    left_out = [line for line in done.stdout.splitlines() if line.startswith("Unsupported content type")]
    warnings = done.stdout.count("WARNING")
    assert warnings == len(left_out), done.stdout
    assert "application/json" not in " ".join(left_out)
    (folder / "client").rename(folder / "from_the_document")
    sys.path.insert(0, str(folder))
    yield "from_the_document"
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "from_the_document"]:
        del sys.modules[name]


def module(generated: str, *path: str) -> ModuleType:
    return importlib.import_module(".".join([generated, *path]))


def ask(generated: str, service: Running, group: str, route: str, *arguments: Any, **more: Any) -> Any:
    """Call a route by its generated function; give what it makes of the answer."""
    client = module(generated).AuthenticatedClient(base_url=service.address, token=ADMIN, timeout=60)
    with client as open_client:
        return module(generated, "api", group, route).sync(*arguments, client=open_client, **more)


def rows() -> list[dict[str, str]]:
    names, *lines = [line.split(",") for line in TENNIS.splitlines()]
    return [dict(zip(names, line, strict=True)) for line in lines]


def test_it_uploads_trains_predicts_and_reads_the_explanation(generated: str, service: Running) -> None:
    models = module(generated, "models")
    table = models.UploadDataSetJsonTableOfRows.from_dict({"rows": rows()})
    data = ask(generated, service, "data_sets", "upload_data_set", body=table, name="days", target="PlayTennis")
    assert (data.n_rows, data.task) == (14, "classification")

    asked = models.TrainingJobRequest(model="tennis", dataset=data.id, preset=models.TrainingJobRequestPreset.ID3)
    job = ask(generated, service, "jobs", "train", body=asked)
    for _ in range(30):
        job = ask(generated, service, "jobs", "get_job", job.id, wait=20)
        if job.finished is not None:
            break
    assert (job.state, job.result.version) == ("succeeded", 1)

    body = models.PredictJsonPredictionRows.from_dict({"rows": [SUNNY, {"Outlook": "Overcast"}]})
    answer = ask(generated, service, "predictions", "predict", "tennis", body=body)
    assert (answer.model, answer.version) == ("tennis", 1)
    assert [one.label for one in answer.predictions] == ["No", "Yes"]
    first = answer.predictions[0]
    assert [step.attribute for step in first.path] == ["Outlook", "Humidity"]

    explanation = ask(generated, service, "decisions", "explain_decision", first.decision_id)
    assert explanation.verified is True
    assert explanation.explanation.rule == "if Outlook is Sunny and Humidity is High then No"
    listed = ask(generated, service, "decisions", "list_decisions", model="tennis", limit=10)
    assert [one.id for one in listed.items] == [one.decision_id for one in answer.predictions]


def test_it_reads_a_refusal_as_a_problem(generated: str, service: Running) -> None:
    models = module(generated, "models")
    asked = models.TrainingJobRequest(model="tennis", dataset="01890000-0000-7000-8000-000000000000")
    problem = ask(generated, service, "jobs", "train", body=asked)
    assert (problem.status, problem.errors[0].pointer) == (422, "/dataset")


def test_it_sends_a_form_and_looks_the_data_set_up(generated: str, service: Running) -> None:
    body = module(generated, "models").UploadDataSetFilesBody
    file = module(generated, "types").File(
        payload=io.BytesIO(TENNIS.encode()), file_name="days.csv", mime_type="text/csv"
    )
    data = ask(generated, service, "data_sets", "upload_data_set", body=body(file=file), target="PlayTennis")
    assert data.n_rows == 14
    assert ask(generated, service, "data_sets", "get_data_set", data.id).fingerprint == data.fingerprint
