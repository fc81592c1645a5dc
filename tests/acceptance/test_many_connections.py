"""Connections on which nothing comes do not keep the service from answering others."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.acceptance.conftest import answers
from tests.acceptance.running import (
    PATIENCE,
    Service,
    environment_for,
    free_port,
    is_cut_off,
    is_ended_there,
    until,
)
from tests.factories import ROOT

SLOW = 20  # fewer than threads: each holds one until it is cut off; more of them are the work of a buffering proxy
LINGERING = 4  # gunicorn waits up to 2 s for each to close its side, in the main loop of its process
IMPATIENT = """
from service import gunicorn_conf
gunicorn_conf.SEND_SECONDS = 1
from service.gunicorn_conf import *
"""
SERVE = """
import sys
from service.cli import server
from service.cli.__main__ import main
server.GUNICORN_CONFIGURATION = sys.argv.pop(1)
sys.exit(main(sys.argv[1:]))
"""
HEAD = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n"


def address(service: Service) -> tuple[str, int]:
    host, port = service.address.removeprefix("http://").split(":")
    return host, int(port)


def connected(service: Service) -> socket.socket:
    return socket.create_connection(address(service), timeout=60)


def test_12_idle_connections_and_half_a_header_do_not_delay_an_answer(running_service: Service) -> None:
    host, port = running_service.address.removeprefix("http://").split(":")
    with ExitStack() as connections:
        for _ in range(12):
            connections.enter_context(socket.create_connection((host, int(port))))

        def answered_before_it_is_cut_off() -> bool:
            with socket.create_connection((host, int(port))) as half:
                half.sendall(b"POST /v1/models/any/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
                assert running_service.get("/livez") == {"status": "live"}
                half.setblocking(False)
                with suppress(BlockingIOError):  # nothing to read: it is still waited for
                    return half.recv(1) != b""
                return True

        until(answered_before_it_is_cut_off, what="an answer while half a header is waited for")


def test_200_idle_connections_do_not_stop_an_answer(running_service: Service) -> None:
    host, port = running_service.address.removeprefix("http://").split(":")

    def answered_while_all_of_them_are_waited_for() -> bool:
        with ExitStack() as connections:
            idle = [connections.enter_context(socket.create_connection((host, int(port)))) for _ in range(200)]
            assert running_service.get("/livez") == {"status": "live"}
            return not any(is_cut_off(one) for one in idle)

    # The kernel keeps a connection on which nothing has come.
    until(answered_while_all_of_them_are_waited_for, what="an answer while 200 idle connections are open")


def test_a_client_that_stops_in_the_middle_of_its_request_is_cut_off(running_service: Service) -> None:
    host, port = running_service.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /v1/datasets HTTP/1.1\r\nHost: x\r\n")
        assert connection.recv(1) == b""


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"GET /v1/models", id="request-line"),
        pytest.param(b"POST /v1/models/any/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", id="header"),
        pytest.param(HEAD % (b"/v1/models/any/predict", b"application/json"), id="body"),
        pytest.param(HEAD % (b"/v1/datasets", b"text/csv"), id="upload"),
    ],
)
def test_20_clients_that_send_a_byte_a_second_do_not_stop_an_answer(running_service: Service, begun: bytes) -> None:
    def answered_while_most_of_them_are_waited_for() -> bool:
        with ExitStack() as connections:
            slow = [connections.enter_context(connected(running_service)) for _ in range(SLOW)]
            for one in slow:
                one.sendall(begun)
            for one in slow:
                with suppress(OSError):  # it was cut off: no harm
                    one.sendall(b"a")
            assert running_service.get("/livez") == {"status": "live"}
            return sum(is_cut_off(one) for one in slow) < SLOW // 2

    until(answered_while_most_of_them_are_waited_for, what="an answer while most of the slow clients are waited for")


def test_clients_that_keep_their_side_open_after_the_last_answer_do_not_stop_others(running_service: Service) -> None:
    with ExitStack() as connections:
        many = [connections.enter_context(connected(running_service)) for _ in range(LINGERING)]
        for one in many:
            one.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert all(one.recv(12) == b"HTTP/1.1 200" for one in many)
        assert running_service.get("/livez") == {"status": "live"}


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Service]:
    """A web server that waits 1 s, and not 20 s, for a client that does not read."""
    (tmp_path / "impatient.py").write_text(IMPATIENT)
    port = str(free_port())
    words = [sys.executable, "-c", SERVE, str(tmp_path / "impatient.py"), "serve", "--port", port]
    with subprocess.Popen(words, cwd=ROOT, env=environment_for(tmp_path), stderr=subprocess.DEVNULL) as process:
        one = Service(f"http://127.0.0.1:{port}")
        # Only connections that are made from then on have the time-outs.
        try:
            until(lambda: answers(f"{one.address}/livez") or process.poll() is not None, what="the web server")
            yield one
        finally:
            one.client.close()
            process.terminate()


def test_a_file_that_a_client_does_not_take_is_not_waited_for_for_ever(impatient: Service) -> None:
    request = b"GET /static/vendor/swagger-ui/swagger-ui-bundle.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        deaf.settimeout(60)
        deaf.connect(address(impatient))
        deaf.sendall(request)
        assert deaf.recv(12) == b"HTTP/1.1 200"
        with suppress(ConnectionError):  # it may be over already
            deaf.sendall(request * 8)  # 11 MB: more than the system keeps for one who does not read
        until(lambda: is_ended_there(deaf), what="an end of the connection at its other end")
