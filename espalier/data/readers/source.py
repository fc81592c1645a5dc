"""The bytes of a table: unpacked, counted against a limit, and copied, so that they can be read a second time."""

import gzip
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol

from espalier.data.limits import UNLIMITED, Limits
from espalier.errors import DataError, Fault

GZIP_MAGIC: Final = b"\x1f\x8b"
MAX_BYTES_IN_MEMORY: Final = 1_000_000
"""Of the copy; what is longer goes to a temporary file."""
MAX_IDLE_BYTES: Final = 2**20
"""Packed bytes in a row that unpack to nothing: very many empty members of gzip cost time only."""
COPIED_BYTES: Final = 2**20
"""Bytes read at a time to be copied."""


class ByteStream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, and none only at the end."""
        ...


class Source:
    """Bytes that come once; what was read can be read again.

    Args:
        stream: Where they come from.
        limits: How many there may be.
        file: A file that holds them from its start, `stream` itself; None: they are copied to a temporary file.
    """

    def __init__(self, stream: ByteStream, *, limits: Limits = UNLIMITED, file: IO[bytes] | None = None) -> None:
        self._stream: ByteStream = stream
        self._limits = limits
        self._is_counted, self._is_copied = True, file is None
        self._file: IO[bytes] = file or tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY)  # noqa: SIM115 - see below
        self._closing = weakref.finalize(self, self._file.close) if file is None else None
        self._n_bytes = 0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and (part := self._stream.read(size)):
            parts.append(part)
            size -= len(part)
            if self._is_counted:
                self._count(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def file(self) -> IO[bytes]:
        """Read what is left, and return all bytes as a file, at its start."""
        while self.read(COPIED_BYTES):
            pass
        self._stream, self._is_counted = self._file, False
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Forget the copy."""
        if self._closing is not None:
            self._closing()

    def _count(self, part: bytes) -> None:
        self._n_bytes += len(part)
        self._limits.check("content", self._n_bytes)
        if self._is_copied:
            self._file.write(part)


@contextmanager
def opened(path: Path, *, limits: Limits = UNLIMITED) -> Iterator[Source]:
    """Open a file, packed by gzip or not."""
    with path.open("rb") as file:
        is_packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        source = Source(unpacked(file), limits=limits) if is_packed else Source(file, limits=limits, file=file)
        try:
            yield source
        finally:
            source.close()


def unpacked(stream: ByteStream) -> ByteStream:
    """Return the content of gzip, of one or several members, unpacked while it is read, in bounded memory."""
    return _Unpacked(stream)


class _Unpacked:
    """The content of a gzip stream."""

    def __init__(self, stream: ByteStream) -> None:
        self._packed = _Packed(stream)
        file: Any = self._packed  # of a file it has only what is needed to read
        self._content = gzip.GzipFile(fileobj=file, mode="rb")

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none only at the end.

        Raises:
            DataError: It is no gzip, damaged, or cut short.
        """
        try:
            content = self._content.read1(size)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise _damaged() from None
        self._packed.n_idle = 0
        return content


class _Packed:
    """A packed stream that is refused if very much of it unpacks to nothing."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.n_idle = 0

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none only at the end."""
        part = self._stream.read(size)
        self.n_idle += len(part)
        if self.n_idle > MAX_IDLE_BYTES:
            raise _damaged()
        return part


def _damaged() -> DataError:
    return DataError([Fault("", "not_gzip", "the gzip file is damaged or cut short")])
