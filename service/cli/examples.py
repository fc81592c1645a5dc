"""The two example data sets and their models, loaded over HTTP as anybody would, and what to try with them.

Nothing here needs arrays or a database: the process that only watches over the others stays small.
"""

import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

LOOK_SECONDS = 0.05
WAIT_SECONDS = 5  # that the service is asked to wait for the end of a job before it answers
LONGEST_SECONDS = 30.0  # of one request
UNFINISHED = ("queued", "running")
CSV = "text/csv"
JSON = "application/json"
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # our own address is behind no proxy


@dataclass(frozen=True, slots=True)
class Example:
    """A data set that comes with the package, and how a model is trained on it."""

    file: str
    target: str
    preset: str


EXAMPLES: Mapping[str, Example] = {
    "play-tennis": Example("play_tennis.csv", target="PlayTennis", preset="id3"),
    "drug200": Example("drug200.csv", target="Drug", preset="cart"),
}


def is_ready(address: str, *, stopping: threading.Event, seconds: float) -> bool:
    """Wait until the web server says that it can answer; False if it does not within `seconds`, or we are stopping."""
    deadline = time.monotonic() + seconds
    while not stopping.is_set() and time.monotonic() < deadline:
        if is_ready_now(address):
            return True
        stopping.wait(LOOK_SECONDS)
    return False


def is_ready_now(address: str) -> bool:
    """Whether the web server says that it can answer; False if it says nothing within 5 s."""
    try:
        with OPENER.open(f"{address}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


def load_examples(address: str, *, key: str | None, stopping: threading.Event) -> list[str]:
    """Upload the examples and train on them, where that was not done before; give a line for each that failed.

    What is there already is kept: a model that has a version is left alone, a job that is under way is waited for.

    Raises:
        OSError: The service does not answer.
    """
    service = Service(address, key)
    jobs = {name: _begin(service, name, example) for name, example in EXAMPLES.items()}
    failures = []
    for name, job in jobs.items():
        if job is not None and (reason := _failure(service, job, stopping)):
            failures.append(f"the example {name} could not be trained: {reason}")
    return failures


def suggestions(address: str, *, with_key: bool) -> list[str]:
    """Give three lines for a shell: a prediction by each example's model, and a tree."""
    curl = 'curl -s -H "Authorization: Bearer $ESPALIER_ADMIN_KEY"' if with_key else "curl -s"
    predict = curl + " {address}/v1/models/{name}/predict -H 'Content-Type: application/json' -d '{body}'"
    tennis = '{"rows": [{"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}]}'
    drug = '{"rows": [{"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}]}'
    return [
        predict.format(address=address, name="play-tennis", body=tennis),
        predict.format(address=address, name="drug200", body=drug),
        f"{curl} '{address}/v1/models/drug200/versions/1/tree?format=text'",
    ]


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is, and the key that opens it, if it asks for one."""

    address: str
    key: str | None


def _begin(service: Service, name: str, example: Example) -> Mapping[str, Any] | None:
    """Give the job that trains the example as it stands, or None if its model is there."""
    if _ask(service, f"/v1/models/{name}") is not None:
        return None
    for job in _asked(service, f"/v1/jobs?model={name}")["items"]:
        if job["state"] in UNFINISHED:
            return dict(job)
    content = files("service").joinpath("examples", example.file).read_bytes()
    query = urllib.parse.urlencode({"name": name, "target": example.target})
    data_set = _asked(service, f"/v1/datasets?{query}", content, content_type=CSV)
    wanted = {"model": name, "dataset": data_set["id"], "preset": example.preset}
    return dict(_asked(service, "/v1/training-jobs", json.dumps(wanted).encode(), content_type=JSON))


def _failure(service: Service, job: Mapping[str, Any], stopping: threading.Event) -> str | None:
    """Wait for the end of a job, however long it takes; say why it did not succeed."""
    while job["state"] in UNFINISHED and not stopping.is_set():
        with suppress(OSError):  # a web process that died is started again
            job = _asked(service, f"/v1/jobs/{job['id']}?wait={WAIT_SECONDS}")
        stopping.wait(LOOK_SECONDS)
    if stopping.is_set() or job["state"] == "succeeded":
        return None
    return f"{job['state']} ({(job['error'] or {}).get('message', '')})"


def _asked(service: Service, path: str, body: bytes | None = None, *, content_type: str = JSON) -> Any:
    """Answer what `_ask` does; nothing is a failure."""
    found = _ask(service, path, body, content_type=content_type)
    if found is None:
        raise OSError(f"{path} is not there")
    return found


def _ask(service: Service, path: str, body: bytes | None = None, *, content_type: str = JSON) -> Any | None:
    """GET, or POST a body; give the JSON that comes back, None where nothing is found.

    Raises:
        OSError: No answer, or one that refuses, with what it says.
    """
    headers = {"Content-Type": content_type} | ({"Authorization": f"Bearer {service.key}"} if service.key else {})
    request = urllib.request.Request(service.address + path, data=body, headers=headers)  # noqa: S310 - our own address
    try:
        with OPENER.open(request, timeout=LONGEST_SECONDS) as response:
            return json.load(response)
    except urllib.error.HTTPError as refusal:
        with refusal:
            if refusal.code == http.HTTPStatus.NOT_FOUND:
                return None
            raise OSError(json.load(refusal)["detail"]) from None
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
