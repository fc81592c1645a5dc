"""Play-tennis by ID3 and by C4.5, over HTTP and by the command line: the tree and the gains of the books."""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.running import Service, run_command
from tests.factories import ROOT

CSV = ROOT / "service" / "examples" / "play_tennis.csv"
# T. Mitchell, Machine Learning, 1997, figure 3.1.
RULES = {
    ("Sunny", "High"): "No",
    ("Sunny", "Normal"): "Yes",
    ("Overcast", None): "Yes",
    ("Rain", "Strong"): "No",
    ("Rain", "Weak"): "Yes",
}
SECOND = {"Sunny": "Humidity", "Rain": "Wind"}


@pytest.fixture(scope="module")
def dataset(running_service: Service) -> str:
    return running_service.upload(CSV.read_bytes(), name="play-tennis", target="PlayTennis")


@pytest.mark.parametrize("preset", ["id3", "c45"])
def test_the_tree_is_that_of_the_book(running_service: Service, dataset: str, preset: str) -> None:
    model = f"tennis-{preset}"
    running_service.train(model, dataset, preset=preset)
    rows = [row_for(outlook, second) for outlook, second in RULES]
    answer = running_service.post(f"/v1/models/{model}/predict", {"rows": rows}, status=200)
    assert [prediction["label"] for prediction in answer["predictions"]] == list(RULES.values())
    for prediction, outlook in zip(answer["predictions"], (outlook for outlook, _ in RULES), strict=True):
        asked = [step["attribute"] for step in prediction["path"]]
        assert asked == ["Outlook", *([SECOND[outlook]] if outlook in SECOND else [])]
    assert running_service.get(f"/v1/models/{model}/versions/1")["summary"]["n_leaves"] == 5


def test_the_gain_at_the_root_is_that_of_the_book(running_service: Service, dataset: str) -> None:
    running_service.train("tennis-gain", dataset, preset="id3")
    tree = running_service.get("/v1/models/tennis-gain/versions/1/tree")
    assert tree["gain"][0] == pytest.approx(0.246750, abs=5e-7)


@pytest.mark.parametrize("preset", ["id3", "c45"])
def test_the_command_line_gives_the_tree_of_the_service(
    running_service: Service, dataset: str, preset: str, tmp_path: Path
) -> None:
    model = f"tennis-twice-{preset}"
    running_service.train(model, dataset, preset=preset)
    file = tmp_path / "model.json"
    arguments = ["train", str(CSV), "--target", "PlayTennis", "--preset", preset, "--out", str(file)]
    assert run_command(arguments).returncode == 0
    shown = run_command(["show", str(file), "--format", "text"]).stdout
    served = running_service.client.get(f"/v1/models/{model}/versions/1/tree?format=text").text
    assert shown.strip() == served.strip()


def row_for(outlook: str, second: str | None) -> dict[str, Any]:
    return {"Outlook": outlook, "Temperature": "Mild", SECOND.get(outlook, "Wind"): second}
