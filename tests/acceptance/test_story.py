"""The main story on drug200: upload, train, predict, look up, explain, prune, explain again."""

import json
from typing import Any

import pytest

from tests.acceptance.running import Service
from tests.factories import REFERENCE, ROOT, needs_reference

PATIENT = {"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}

pytestmark = needs_reference


@pytest.fixture(scope="module")
def split() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REFERENCE / "expected" / "drug200_seed002.json").read_text())
    return found


@pytest.fixture(scope="module")
def dataset(running_service: Service) -> str:
    return running_service.upload((REFERENCE / "data" / "drug200.csv").read_bytes(), name="drug200", target="Drug")


@pytest.fixture(scope="module")
def trained(running_service: Service, dataset: str, split: dict[str, Any]) -> dict[str, Any]:
    return running_service.train("story", dataset, preset="cart", holdout={"rows": split["test_rows"]})


def test_the_training_runs_to_its_end_with_progress(trained: dict[str, Any]) -> None:
    assert (trained["state"], trained["progress"], trained["attempt"]) == ("succeeded", 1.0, 1)
    assert (trained["result"]["model"], trained["result"]["version"]) == ("story", 1)


def test_the_held_out_accuracy_is_that_of_the_reference(
    running_service: Service, trained: dict[str, Any], split: dict[str, Any]
) -> None:
    version = running_service.get("/v1/models/story/versions/1")
    expected = split["entropy_max_depth4"]["test_accuracy"]
    assert version["summary"]["holdout"]["accuracy"] == pytest.approx(expected, abs=1e-9)
    assert expected == pytest.approx(0.98333, abs=5e-6)


def test_the_root_tests_na_to_k_at_the_threshold_of_the_reference(
    running_service: Service, trained: dict[str, Any]
) -> None:
    answer = running_service.post("/v1/models/story/predict", {"rows": [PATIENT]}, status=200)
    root = answer["predictions"][0]["path"][0]
    assert (root["attribute"], root["test"], root["branch"]) == ("Na_to_K", "<=", "yes")
    assert root["threshold"] == pytest.approx(14.6155, abs=1e-9)
    assert root["margin"] == pytest.approx(14.6155 - 13.1, abs=1e-9)


def test_a_decision_explains_itself_by_the_version_that_made_it_even_after_a_pruning(
    running_service: Service, dataset: str, split: dict[str, Any]
) -> None:
    service = running_service
    service.train("pruned-story", dataset, preset="cart", holdout={"rows": split["test_rows"]})
    answer = service.post("/v1/models/pruned-story/predict", {"rows": [PATIENT], "subject": "patient 1"}, status=200)
    prediction = answer["predictions"][0]
    decision_id = prediction.pop("decision_id")
    assert (answer["version"], prediction["label"]) == (1, "drugC")
    assert prediction["distribution"]["drugC"] == 1.0

    decision = service.get(f"/v1/decisions/{decision_id}")
    assert (decision["input"], decision["subject"], decision["version"]) == (PATIENT, "patient 1", 1)
    first = service.get(f"/v1/decisions/{decision_id}/explanation")
    assert (first["verified"], first["explanation"]) == (True, prediction)

    job = service.post("/v1/pruning-jobs", {"model": "pruned-story", "method": "reduced_error"}, status=202)
    assert service.finished(job)["result"]["version"] == 2
    second = service.get("/v1/models/pruned-story/versions/2")
    assert (second["parent"], second["dataset"]) == (1, dataset)
    assert isinstance(service.get("/v1/models/pruned-story/versions/2/pruning"), dict)

    assert service.post("/v1/models/pruned-story/predict", {"rows": [PATIENT]}, status=200)["version"] == 2
    assert service.get(f"/v1/decisions/{decision_id}/explanation") == first


def test_the_example_that_comes_with_the_package_is_the_reference_data() -> None:
    ours = (ROOT / "service" / "examples" / "drug200.csv").read_bytes()
    assert ours == (REFERENCE / "data" / "drug200.csv").read_bytes()
