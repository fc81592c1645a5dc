"""Predictions that stream through a real server: clients of both kinds, flat memory, nothing loaded in vain."""

import http.client
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.running import Running, running
from tests.factories import ROOT

PATH = "/v1/models/play-tennis/predict?explain=none"
# A category that is not the model's: a line is long, and its answer about half as long.
LINE = b"Sunny,High," + b"x" * 200 + b"\n"
NAMES = b"Outlook,Humidity,Wind\n"
SECONDS = 120


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("streams"), ESPALIER_WEB_WORKERS="1") as one:
        tennis = (ROOT / "service" / "examples" / "play_tennis.csv").read_bytes()
        one.train("play-tennis", one.upload(tennis, target="PlayTennis"), preset="id3")
        yield one


def web_process(service: Running) -> int:
    [server] = service.children("serve")
    found = subprocess.run(["pgrep", "-P", str(server)], capture_output=True, text=True, check=True).stdout.split()
    assert len(found) == 1
    return int(found[0])


def connected(service: Running) -> socket.socket:
    """A connection whose buffer for what comes back is small."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", int(service.address.rsplit(":", 1)[1])))
    return connection


def head(length: int) -> bytes:
    fields = ("Host: 127.0.0.1", "Content-Type: text/csv", f"Content-Length: {length}")
    return "\r\n".join((f"POST {PATH} HTTP/1.1", *fields, "\r\n")).encode()


def test_a_client_that_reads_only_when_it_has_sent_everything_gets_its_answer(service: Running) -> None:
    n_rows = 150_000
    body = NAMES + LINE * n_rows
    with connected(service) as connection:
        connection.sendall(head(len(body)) + body)
        response = http.client.HTTPResponse(connection)
        response.begin()
        lines = response.read().splitlines()
    assert response.status == 200
    assert len(lines) == n_rows + 1
    assert lines[-1].startswith(b"%d," % (n_rows - 1))


def test_a_client_that_vanishes_in_the_middle_of_its_answer_has_what_was_answered_in_the_log(service: Running) -> None:
    n_rows = 200_000
    body = NAMES + LINE * n_rows
    with connected(service) as connection:
        connection.sendall(head(len(body)) + body)
        assert connection.recv(16_384).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + SECONDS
    while not (found := service.client.get("/v1/decisions?limit=1").json()["items"]):
        assert time.monotonic() < deadline, "no decision is logged"
    answered = service.client.get(f"/v1/decisions/{found[0]['id']}").json()
    assert answered["input"] == {"Outlook": "Sunny", "Humidity": "High", "Wind": "x" * 200}
    # The thread is free again: the next request of the only process is answered.
    assert service.client.post(PATH, content=NAMES + LINE, headers={"Content-Type": "text/csv"}).status_code == 200


@pytest.mark.skipif(not Path(f"/proc/{os.getpid()}/status").exists(), reason="only Linux tells a process's memory")
def test_memory_does_not_grow_with_the_body(service: Running) -> None:
    def asked(n_rows: int) -> int:
        blocks = (LINE * 1000 for _ in range(n_rows // 1000))

        def body() -> Iterator[bytes]:
            yield NAMES
            yield from blocks

        with service.client.stream(
            "POST", PATH, content=body(), headers={"Content-Type": "text/csv"}, timeout=SECONDS
        ) as response:
            assert response.status_code == 200
            return sum(part.count(b"\n") for part in response.iter_bytes())

    process = web_process(service)
    assert asked(20_000) == 20_001
    before = most_memory(process)
    assert asked(200_000) == 200_001
    assert most_memory(process) - before < 40, "MiB more for a body of 43 MB"


def most_memory(process: int) -> float:
    """The most that a process ever had in memory, MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
