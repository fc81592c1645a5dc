"""tritonclient, sync and aio, against the running service: everything as its own users call it."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pytest

from tests.acceptance.running import Running
from tests.factories import ROOT
from tests.golden.triton import CALLS, INFERENCES, inputs, options
from tests.service.inference.test_golden import ROWS

# The aio client does not read the answers that tell readiness, and so leaves their connections to the collector.
pytestmark = pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning")
Ask = Callable[[Callable[[Any, Any], Any]], Any]


@pytest.fixture(scope="module")
def libraries() -> tuple[Any, Any]:
    """Import both clients: not when tests are collected, which each process does."""
    names = ("tritonclient.http", "tritonclient.http.aio")
    blocking, waiting = (pytest.importorskip(name, reason="tritonclient is not installed") for name in names)
    return blocking, waiting


@pytest.fixture(scope="module")
def address(running_service: Running) -> str:
    csv = (ROOT / "service" / "examples" / "drug200.csv").read_bytes()
    running_service.train("drugs", running_service.upload(csv, target="Drug"))
    return running_service.address.removeprefix("http://")


@pytest.fixture(params=["sync", "aio"])
def ask(request: pytest.FixtureRequest, libraries: tuple[Any, Any], address: str) -> Iterator[Ask]:
    """Give what has either client make a call."""
    blocking, waiting = libraries
    if request.param == "sync":
        with blocking.InferenceServerClient(address) as client:
            yield lambda call: call(client, blocking)
        return

    async def once(call: Callable[[Any, Any], Any]) -> Any:
        async with waiting.InferenceServerClient(address) as client:
            return await call(client, waiting)

    yield lambda call: asyncio.run(once(call))
    gc.collect()  # here, where it is known what for, that client's warning is passed over


def test_server_and_models_say_that_they_are_ready(ask: Ask) -> None:
    for call in ("server_live", "server_ready", "model_ready", "version_ready"):
        assert ask(CALLS[call]) is True
    assert ask(lambda client, _: client.is_model_ready("drugs", "99")) is False
    assert ask(lambda client, _: client.is_model_ready("nothing")) is False


def test_metadata_and_index_are_read(ask: Ask) -> None:
    assert ask(CALLS["server_metadata"])["name"] == "espalier"
    assert [one["name"] for one in ask(CALLS["model_metadata"])["inputs"]] == list(ROWS[0])
    assert ask(CALLS["version_metadata"])["versions"] == ["1"]
    named = SimpleNamespace(**next(one for one in ask(CALLS["repository_index"]) if one["name"] == "drugs"))
    assert (named.version, named.state) == ("1", "READY")


@pytest.mark.parametrize("case", INFERENCES)
def test_inference_answers_as_the_native_api_does(running_service: Running, ask: Ask, case: str) -> None:
    native = running_service.post("/v1/models/drugs/predict", {"rows": ROWS}, status=200)["predictions"]

    answer = ask(CALLS[f"infer_{case}"])

    labels = [label.decode() if isinstance(label, bytes) else label for label in answer.as_numpy("label")]
    assert labels == [one["label"] for one in native]
    if case == "some_outputs":
        assert answer.get_response()["id"] == "visit 17"
        paths = [orjson.loads(path) for path in answer.as_numpy("decision_path")]
        assert [path["rule"] for path in paths] == [one["rule"] for one in native]
    else:
        assert answer.as_numpy("probability").tolist() == [list(one["distribution"].values()) for one in native]
        assert answer.as_numpy("leaf_id").tolist() == [one["leaf"] for one in native]
        decision = answer.as_numpy("decision_id")[0]
        name = decision.decode() if isinstance(decision, bytes) else decision
        assert running_service.get(f"/v1/decisions/{name}/explanation")["verified"] is True


def unknown_attribute(client: Any, module: Any) -> Any:
    one = module.InferInput("Nope", [1], "FP64").set_data_from_numpy(np.array([1.0]))
    return client.infer("drugs", [one])


def infinite(client: Any, module: Any) -> Any:
    one = module.InferInput("Age", [1], "FP64").set_data_from_numpy(np.array([np.inf]), binary_data=False)
    return client.infer("drugs", [one])


@pytest.mark.parametrize(
    ("call", "status", "said"),
    [
        (
            lambda client, module: client.infer("nothing", inputs(module, "binary")),
            "404",
            "there is no model 'nothing'",
        ),
        (unknown_attribute, "400", "/inputs/0/name: must be one of Age, Sex, BP, Cholesterol, Na_to_K"),
        (infinite, "400", "numbers must be finite"),
        (lambda client, _: client.get_model_config("drugs"), "404", "there is nothing at this path"),
        (
            lambda client, module: client.infer(
                "drugs", inputs(module, "binary"), outputs=[module.InferRequestedOutput("label", class_count=2)]
            ),
            "400",
            "/outputs/0/parameters/classification: is not supported",
        ),
    ],
)
def test_what_goes_wrong_can_be_read(
    ask: Ask, libraries: tuple[Any, Any], call: Callable[[Any, Any], Any], status: str, said: str
) -> None:
    with pytest.raises(libraries[0].InferenceServerException) as caught:
        ask(call)
    assert caught.value.status() == status
    assert said in caught.value.message()


def test_a_thousand_rows_go_through_packed_both_ways(ask: Ask) -> None:
    ages = np.linspace(15, 75, 1000)

    def call(client: Any, module: Any) -> Any:
        one = module.InferInput("Age", [1000, 1], "FP64").set_data_from_numpy(ages.reshape(-1, 1))
        return client.infer("drugs", [one], **options(module, "binary_gzip"))

    assert ask(call).as_numpy("probability").sum(axis=1) == pytest.approx(np.ones(1000))
