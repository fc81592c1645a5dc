"""Load the two example data sets and train their models over HTTP; suggest commands to try.

This module imports neither numpy nor SQLAlchemy, so that the supervising process stays small.
"""

import http.client
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.resources import files
from typing import Any

from service.database import UNFINISHED
from service.serialization.media_types import CSV, JSON

LOOK_SECONDS = 0.05
WAIT_SECONDS = 5  # how long the service waits for the end of a job before it responds
REQUEST_SECONDS = 30.0
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy

Request = Callable[..., Any]

EXAMPLES = (("play-tennis", "play_tennis.csv", "PlayTennis", "id3"), ("drug200", "drug200.csv", "Drug", "cart"))
"""The name, the file in `service/examples`, the target and the preset of each example."""


def is_ready(address: str, *, stopping: threading.Event, seconds: float = 0.0) -> bool:
    """Ask until the web server is ready, each time for at most 5 s; return False after `seconds`, or if `stopping`."""
    deadline = time.monotonic() + seconds
    while not stopping.is_set():
        with suppress(http.client.HTTPException, OSError), OPENER.open(f"{address}/readyz", timeout=5):
            return True
        if time.monotonic() >= deadline or stopping.wait(LOOK_SECONDS):
            break
    return False


def load_examples(address: str, *, key: str | None, stopping: threading.Event) -> list[str]:
    """Upload the examples and train on them; return a line for each failed job; raise `OSError` if a job cannot begin.

    A model that exists is skipped. If a model has an unfinished job, wait for that job instead of training again.
    Once `stopping` is set, return without waiting for the jobs.
    """
    request = partial(_request, address, key)
    jobs = {name: _begin(request, name, *example) for name, *example in EXAMPLES}
    reasons = {name: _failure(request, job, stopping) for name, job in jobs.items() if job is not None}
    return [f"the example {name} could not be trained: {reason}" for name, reason in reasons.items() if reason]


def suggestions(address: str, *, with_key: bool) -> list[str]:
    """Return three shell commands: one for a prediction by each of the two models, and one that shows a tree."""
    curl = 'curl -s -H "Authorization: Bearer $ESPALIER_ADMIN_KEY"' if with_key else "curl -s"
    predict = curl + " {address}/v1/models/{name}/predict -H 'Content-Type: application/json' -d '{body}'"
    tennis = '{"rows": [{"Outlook": "Sunny", "Temperature": "Cool", "Humidity": "High", "Wind": "Strong"}]}'
    drug = '{"rows": [{"Age": 47, "Sex": "M", "BP": "LOW", "Cholesterol": "HIGH", "Na_to_K": 13.1}]}'
    return [
        predict.format(address=address, name="play-tennis", body=tennis),
        predict.format(address=address, name="drug200", body=drug),
        f"{curl} '{address}/v1/models/drug200/versions/1/tree?format=text'",
    ]


def _begin(request: Request, name: str, file: str, target: str, preset: str) -> Mapping[str, Any] | None:
    with suppress(FileNotFoundError):
        request(f"/v1/models/{name}")
        return None
    for job in request(f"/v1/jobs?model={name}")["items"]:
        if job["state"] in UNFINISHED:
            return dict(job)
    content = files("service").joinpath("examples", file).read_bytes()
    query = urllib.parse.urlencode({"name": name, "target": target})
    data_set = request(f"/v1/datasets?{query}", content, content_type=CSV)
    training = {"model": name, "dataset": data_set["id"], "preset": preset}
    return dict(request("/v1/training-jobs", json.dumps(training).encode(), content_type=JSON))


def _failure(request: Request, job: Mapping[str, Any], stopping: threading.Event) -> str | None:
    while job["state"] in UNFINISHED and not stopping.is_set():
        with suppress(OSError):  # the supervisor restarts a web server that died
            job = request(f"/v1/jobs/{job['id']}?wait={WAIT_SECONDS}")
        stopping.wait(LOOK_SECONDS)
    if stopping.is_set() or job["state"] == "succeeded":
        return None
    return f"{job['state']} ({(job['error'] or {}).get('message', '')})"


def _request(address: str, key: str | None, path: str, body: bytes | None = None, *, content_type: str = JSON) -> Any:
    """Send GET, or POST with `body`; return the JSON. Raise `FileNotFoundError` for 404, `OSError` for other errors."""
    headers = {"Content-Type": content_type} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(address + path, data=body, headers=headers)  # noqa: S310 - our own address
    try:
        with OPENER.open(request, timeout=REQUEST_SECONDS) as response:
            return json.load(response)
    except urllib.error.HTTPError as refusal:
        with refusal:
            kind = FileNotFoundError if refusal.code == http.HTTPStatus.NOT_FOUND else OSError
            raise kind(json.load(refusal)["detail"]) from None
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
