"""Bodies received into the memory that they are read from, beside gunicorn's own way."""

import io
import socket
import struct
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.unreader import SocketUnreader

from service.api.receiving import receiving_into


def received(stream: Any, n_bytes: int) -> bytes:
    """Fill a buffer of so many bytes as often as something comes."""
    read_into, content, buffer = receiving_into(stream), b"", bytearray(n_bytes)
    while n := read_into(memoryview(buffer)):
        content += buffer[:n]
    return content


@pytest.mark.parametrize("n_bytes", [1, 7, 1_000, 10**6])
@pytest.mark.parametrize("n_buffered", [0, 5, 400])
def test_a_body_comes_whole_and_nothing_behind_it(n_bytes: int, n_buffered: int) -> None:
    ours, theirs = socket.socketpair()
    sent = bytes(range(256)) * 12
    unreader = SocketUnreader(ours)
    unreader.unread(sent[:n_buffered])
    stream = Body(LengthReader(unreader, len(sent)))
    sender = threading.Thread(target=theirs.sendall, args=[sent[n_buffered:] + b"GET / HTTP/1.1"])
    sender.start()

    found = received(stream, n_bytes)

    sender.join()
    assert found == sent
    assert unreader.read(14) == b"GET / HTTP/1.1"
    ours.close()
    theirs.close()


def test_what_the_body_itself_holds_back_comes_first() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"first\nsecond\nthird")
    stream = Body(LengthReader(SocketUnreader(ours), 18))
    assert stream.readline() == b"first\n"

    assert received(stream, 4) == b"second\nthird"

    ours.close()
    theirs.close()


def test_a_body_in_chunks_is_left_to_gunicorn() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    request = SimpleNamespace(limit_request_field_size=8190, max_buffer_headers=8190, trailers=[])

    assert received(Body(ChunkedReader(request, SocketUnreader(ours))), 4) == b"abcde"

    ours.close()
    theirs.close()


def test_any_other_stream_is_read() -> None:
    assert received(io.BytesIO(b"abcdef"), 4) == b"abcdef"


def test_a_connection_on_which_nothing_comes_is_not_used_again() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 10_000))
    stream = Body(LengthReader(SocketUnreader(ours), 10))

    with pytest.raises(OSError, match="unavailable"):
        receiving_into(stream)(memoryview(bytearray(4)))

    assert stream.failed
    ours.close()
    theirs.close()
