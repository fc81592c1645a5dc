"""Connections on which nothing comes do not keep the service from answering others."""

import socket
from contextlib import ExitStack, suppress

from tests.acceptance.running import PATIENCE, Service, is_cut_off, until


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

    # Left alone, each of 32 threads waits 5 s for each connection, and the first are cut off long before the answer.
    until(answered_while_all_of_them_are_waited_for, what="an answer while 200 idle connections are open")


def test_a_client_that_stops_in_the_middle_of_its_request_is_cut_off(running_service: Service) -> None:
    host, port = running_service.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /v1/datasets HTTP/1.1\r\nHost: x\r\n")
        assert connection.recv(1) == b""
