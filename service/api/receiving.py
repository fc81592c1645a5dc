"""Bodies received into the memory that they are read from.

gunicorn receives a body into bytes of its own and copies them twice before it gives them. Of a body of a known length,
once nothing of it waits in gunicorn's buffers, the socket can be asked directly::

    gunicorn's    socket ─► bytes ─► its reader ─► its body ─► bytes ─► buffer
    here          socket ────────────────────────────────────────────► buffer
"""

from collections.abc import Callable
from typing import Any

from gunicorn.http.body import Body, LengthReader
from gunicorn.http.unreader import SocketUnreader

__all__ = ["receiving_into"]


def receiving_into(stream: Any) -> Callable[[memoryview], int]:
    """Give what fills a buffer from the body of a request, as far as it has come; 0 at the end only.

    The classes are gunicorn's own affair (27.0.1, hence the pin): of any other than these it is asked for bytes.
    """

    def copied(buffer: memoryview) -> int:
        part: bytes = stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    if type(stream) is not Body or type(stream.reader) is not LengthReader:
        return copied
    reader = stream.reader
    unreader = reader.unreader
    if type(unreader) is not SocketUnreader:
        return copied

    def received(buffer: memoryview) -> int:
        if stream.buf.tell() or unreader.buf.tell() or not reader.length:
            return copied(buffer[: max(1, stream.buf.tell() + unreader.buf.tell())])
        try:
            n_bytes: int = unreader.sock.recv_into(buffer[: reader.length])
        except BaseException:
            stream.failed = True  # where the next request begins is not known: gunicorn closes the connection
            raise
        reader.length -= n_bytes
        return n_bytes

    return received
