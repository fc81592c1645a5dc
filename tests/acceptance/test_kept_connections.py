"""Predictions on connections that are kept open: each answer is the same and logged, whatever other clients do."""

import http.client
import json
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.running import Running, Service, is_cut_off, running, unread, until

CSV = "wind,play\n" + "weak,yes\nstrong,no\n" * 10
BODY = {"rows": [{"wind": "weak"}]}
AT_ONCE = 12


@pytest.fixture(scope="module")
def model(running_service: Service) -> str:
    running_service.train("kept", running_service.upload(CSV, name="kept", target="play"), preset="id3")
    return "/v1/models/kept/predict"


def without_id(answer: Any) -> Any:
    return {**answer, "predictions": [{**one, "decision_id": None} for one in answer["predictions"]]}


def test_many_clients_get_what_one_client_gets_and_each_decision_is_in_the_log(
    running_service: Service, model: str
) -> None:
    alone = running_service.client.post(model, json=BODY, headers={"Connection": "close"})
    assert alone.status_code == 200
    answers: list[httpx.Response] = []

    def ask() -> None:
        with running_service.client_with(running_service.key) as client:
            answers.extend(client.post(model, json=BODY) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {answer.status_code for answer in answers} == {200}
    assert len(answers) == 20 * AT_ONCE
    same = ("content-type", "content-length", "content-security-policy", "server")
    for answer in answers:
        assert without_id(answer.json()) == without_id(alone.json())
        assert [answer.headers[name] for name in same] == [alone.headers[name] for name in same]
    ids = {answer.json()["predictions"][0]["decision_id"] for answer in answers}
    assert len(ids) == 20 * AT_ONCE
    for decision_id in ids:
        assert running_service.get(f"/v1/decisions/{decision_id}/explanation")["verified"] is True


def test_clients_that_leave_without_their_answer_hold_nobody_up(running_service: Service, model: str) -> None:
    whole = written(running_service, model)
    for _ in range(30):
        with connected(running_service) as (connection, replies):
            connection.sendall(whole)
            assert next(replies)[0] == 200
            connection.sendall(whole)  # and gone before the answer
    with connected(running_service) as (connection, replies):
        for _ in range(3):
            connection.sendall(whole)
            assert next(replies)[0] == 200
        connection.sendall(whole.replace(b"\r\n\r\n", b"\r\nX-A: a\r\n\r\n", 1))
        assert next(replies)[0] == 200
        many = b"".join(b"\r\nX-%d: a" % place for place in range(120))
        connection.sendall(whole.replace(b"\r\n\r\n", many + b"\r\n\r\n", 1))
        assert next(replies)[0] == 431


def test_after_a_refusal_the_connection_goes_on(running_service: Service, model: str) -> None:
    with running_service.client_with(running_service.key) as client:
        for body, status in (
            (BODY, 200),
            ({"rows": [{"wind": 3}]}, 422),
            (BODY, 200),
            ({"rows": []}, 422),
            ({"rows": [{"wind": None}], "explain": "full"}, 200),
            (BODY, 200),
        ):
            assert client.post(model, json=body).status_code == status
        assert client.post("/v1/models/none/predict", json=BODY).status_code == 404
        assert client.post(model, json=BODY, headers={"Host": "example.com"}).status_code == 403
        assert client.post(model, json=BODY).status_code == 200


def test_a_request_in_pieces_and_two_in_one_piece_are_answered(running_service: Service, model: str) -> None:
    whole = written(running_service, model)
    with connected(running_service) as (connection, replies):
        for pieces in ([whole], [whole], [whole[:20], whole[20:]], [whole[:-5], whole[-5:]], [whole + whole], [whole]):
            for piece in pieces:
                connection.sendall(piece)
            for _ in range(b"".join(pieces).count(b"POST ")):
                assert next(replies)[0] == 200


def test_who_asks_and_never_reads_delays_nobody_and_takes_no_memory(tmp_path: Path) -> None:
    with running(tmp_path) as own:
        own.train("kept", own.upload(CSV, name="kept", target="play"), preset="id3")
        whole = written(own, "/v1/models/kept/predict")

        def answered_while_they_are_waited_for() -> bool:
            with ExitStack() as deaf_ones:
                deaf = [deaf_client(own, whole, deaf_ones) for _ in range(4)]
                before = resident(own)
                with connected(own) as (connection, replies):
                    for _ in range(50):
                        connection.sendall(whole)
                        assert next(replies)[0] == 200
                assert resident(own) < before + 20
                return not any(is_cut_off(one) for one in deaf)  # they are after 20 s each

        until(answered_while_they_are_waited_for, what="50 answers while deaf clients are waited for")


def test_what_was_taken_is_answered_and_logged_when_the_process_is_asked_to_stop(tmp_path: Path) -> None:
    with running(tmp_path) as own, ExitStack() as opened:
        own.train("kept", own.upload(CSV, name="kept", target="play"), preset="id3")
        whole = written(own, "/v1/models/kept/predict")
        clients = [opened.enter_context(connected(own)) for _ in range(AT_ONCE)]
        for connection, replies in clients:
            connection.sendall(whole)
            assert next(replies)[0] == 200
        [server] = own.children("serve")
        asking = http.client.HTTPConnection(own.address.removeprefix("http://"), timeout=60)
        assert status_of(asking, "/readyz") == 200
        with closing(asking), closing(sqlite3.connect(tmp_path / "espalier.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # no decision is committed until this one ends
            for connection, _ in clients:
                connection.sendall(whole)
                until(lambda: unread(connection) == 0, what="the taking")  # noqa: B023
            os.kill(server, signal.SIGTERM)
            until(lambda: status_of(asking, "/readyz") == 503, what="the beginning of the end")
            other.execute("ROLLBACK")
        answers = [next(replies) for _, replies in clients]
        assert {status for status, _ in answers} == {200}
        until(lambda: own.children("serve") not in ([], [server]), what="the next web server")
        for _, content in answers:
            decision_id = json.loads(content)["predictions"][0]["decision_id"]
            assert own.get(f"/v1/decisions/{decision_id}/explanation")["verified"] is True


def written(service: Service, path: str) -> bytes:
    content = json.dumps(BODY).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    if service.key is not None:
        head += f"Authorization: Bearer {service.key}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def deaf_client(service: Service, whole: bytes, opened: ExitStack) -> socket.socket:
    """A connection that had an answer, asks on, and reads no more."""
    deaf, replies = opened.enter_context(connected(service))
    deaf.sendall(whole)
    assert next(replies)[0] == 200
    deaf.setblocking(False)
    send_until_full(deaf, whole)
    return deaf


def send_until_full(connection: socket.socket, content: bytes) -> None:
    """Send requests until nothing more is taken: nobody reads them, since the answers are not read either."""
    until_full = time.monotonic() + 30
    with suppress(BlockingIOError):
        while time.monotonic() < until_full:
            connection.send(content)
    assert unread(connection) > 0


def status_of(connection: http.client.HTTPConnection, path: str) -> int:
    """Ask on a kept connection; a server may close one that is idle, and a client then asks again (RFC 9112, 9.3.1)."""
    try:
        connection.request("GET", path)
        response = connection.getresponse()
    except http.client.RemoteDisconnected:
        connection.request("GET", path)
        response = connection.getresponse()
    with response as answer:
        answer.read()
        return answer.status


def resident(own: Running) -> float:
    """Give what the web processes have in memory, MiB."""
    [server] = own.children("serve")
    tasks = Path(f"/proc/{server}/task").glob("*/children")
    processes = [child for task in tasks for child in task.read_text().split()]
    status = [Path(f"/proc/{process}/status").read_text() for process in processes]
    return sum(int(text.partition("VmRSS:")[2].split()[0]) for text in status) / 1024


@contextmanager
def connected(service: Service) -> Iterator[tuple[socket.socket, Iterator[tuple[int, bytes]]]]:
    """Give a connection, and the answers that come on it: status and body."""
    host, port = service.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection, connection.makefile("rb") as answers:

        def replies() -> Iterator[tuple[int, bytes]]:
            while line := answers.readline():
                fields = dict(iter(lambda: answers.readline().decode().rstrip("\r\n").partition(": ")[::2], ("", "")))
                yield int(line.split()[1]), answers.read(int(fields["Content-Length"]))

        yield connection, replies()
