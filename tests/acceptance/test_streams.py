"""Predictions that stream through a real server: clients of both kinds, flat memory, nothing loaded in vain."""

import http.client
import os
import socket
import subprocess
import threading
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


def test_a_client_that_reads_while_it_sends_has_answers_before_it_has_sent_everything(service: Running) -> None:
    block = LINE * 10_000
    n_blocks = 8
    begun = threading.Event()
    with connected(service) as connection:
        connection.sendall(head(len(NAMES) + n_blocks * len(block)) + NAMES)
        received: list[bytes] = []

        def read() -> None:
            response = http.client.HTTPResponse(connection)
            response.begin()
            while part := response.read1(65_536):
                received.append(part)
                begun.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for number in range(n_blocks):
            if number == n_blocks - 1:
                assert begun.wait(SECONDS), "no answer before the end of the body"
            connection.sendall(block)
        reader.join(SECONDS)
    assert b"".join(received).count(b"\n") == n_blocks * 10_000 + 1


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
