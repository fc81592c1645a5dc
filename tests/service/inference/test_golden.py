"""What tritonclient sends, byte for byte as it was written down, is answered as the native API answers these rows."""

from collections.abc import Iterator

import orjson
import pytest

from service.settings import Settings
from tests.factories import ROOT
from tests.golden.triton import CALLS, FOLDER, INFERENCES
from tests.service.served import Served, serving
from tests.service.tensors import outputs, send_again, taken_apart

CLIENTS = ("sync", "aio")
# The rows of `tests.golden.triton`, as the native API takes them.
ROWS = [
    {"Age": 50, "Sex": "F", "BP": "HIGH", "Cholesterol": "NORMAL", "Na_to_K": 12.25},
    {"Age": 22, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 25.5},
    {"Age": 67, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": None},
]


@pytest.fixture(scope="module")
def served(shared_sqlite: Settings) -> Iterator[Served]:
    with serving(shared_sqlite) as one:
        csv = (ROOT / "service" / "examples" / "drug200.csv").read_text()
        one.train("drugs", csv, preset="cart", target="Drug")
        yield one


def test_every_call_of_both_clients_was_written_down() -> None:
    assert {file.stem for file in FOLDER.glob("*.http")} == {f"{one}_{call}" for one in CLIENTS for call in CALLS}


@pytest.mark.parametrize("case", INFERENCES)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_inference_is_answered_as_the_native_api_does(served: Served, client: str, case: str) -> None:
    native = served.predict("drugs", {"rows": ROWS})["predictions"]

    response = send_again(served.client, FOLDER / f"{client}_infer_{case}.http")

    found = outputs(response)
    assert found["label"] == [one["label"] for one in native]
    logged = [served.client.get(f"/v1/decisions/{one}").get_json() for one in found.get("decision_id", [])]
    assert [one["input"] for one in logged] in ([], ROWS)
    if case == "some_outputs":
        assert list(found) == ["decision_path", "label"]
        paths = [orjson.loads(path) for path in found["decision_path"]]
        assert paths == [{"path": one["path"], "rule": one["rule"]} for one in native]
    else:
        assert list(found) == ["label", "probability", "leaf_id", "decision_id"]
        assert found["probability"] == [list(one["distribution"].values()) for one in native]
        assert found["leaf_id"] == [one["leaf"] for one in native]
        assert [one["answer"]["label"] for one in logged] == found["label"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_caller_says_of_a_request_comes_back_and_is_kept(served: Served, client: str) -> None:
    response = send_again(served.client, FOLDER / f"{client}_infer_some_outputs.http")
    assert taken_apart(response)[0]["id"] == "visit 17"
    decision = served.client.get("/v1/decisions?subject=patient 4").get_json()["items"][0]
    assert (decision["model"], decision["version"]) == ("drugs", 1)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("server_live", {"live": True}),
        ("server_ready", {"live": True, "ready": True}),
        ("model_ready", {"name": "drugs", "ready": True}),
        ("version_ready", {"name": "drugs", "ready": True}),
        ("repository_index", [{"name": "drugs", "version": "1", "state": "READY", "reason": ""}]),
    ],
)
def test_short_questions_are_answered_in_plain_json(served: Served, client: str, call: str, expected: object) -> None:
    response = send_again(served.client, FOLDER / f"{client}_{call}.http")
    assert (response.status_code, response.content_type) == (200, "application/json")
    assert "Content-Encoding" not in response.headers
    assert response.get_json() == expected


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("call", ["model_metadata", "version_metadata"])
def test_metadata_name_every_tensor(served: Served, client: str, call: str) -> None:
    found = send_again(served.client, FOLDER / f"{client}_{call}.http").get_json()
    assert (found["name"], found["versions"], found["platform"]) == ("drugs", ["1"], "espalier")
    kinds = {"Age": "FP64", "Sex": "BYTES", "BP": "BYTES", "Cholesterol": "BYTES", "Na_to_K": "FP64"}
    assert {one["name"]: one["datatype"] for one in found["inputs"]} == kinds
    assert {one["name"]: (one["datatype"], one["shape"]) for one in found["outputs"]} == {
        "label": ("BYTES", [-1]),
        "probability": ("FP64", [-1, 5]),
        "leaf_id": ("INT64", [-1]),
        "decision_id": ("BYTES", [-1]),
        "decision_path": ("BYTES", [-1]),
    }
    assert orjson.loads(found["outputs"][1]["parameters"]["classes"]) == ["drugA", "drugB", "drugC", "drugX", "drugY"]


@pytest.mark.parametrize("client", CLIENTS)
def test_the_server_says_what_it_is(served: Served, client: str) -> None:
    found = send_again(served.client, FOLDER / f"{client}_server_metadata.http").get_json()
    assert found["name"] == "espalier"
    assert found["version"] == served.client.get("/openapi.json").get_json()["info"]["version"]
    assert "binary_tensor_data" in found["extensions"]
