"""Bytes of a table as they come: unpacked, counted, and kept, all or some, so that they can be read a second time."""

import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from espalier.csv_lines import ByteStream, reading_into
from espalier.errors import DataError, Fault
from espalier.limits import UNLIMITED, Limits

__all__ = ["Source", "opened", "unpacked"]

GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP: Final = 31
"""For zlib: a header of gzip, the largest window."""
PACKED_AT_ONCE: Final = 65_536
MOST_EMPTY_MEMBERS: Final = 1_000
"""Of a gzip stream: each costs time and gives nothing."""
IN_MEMORY: Final = 1_000_000
"""Bytes up to which what was read stays in memory."""


class Source:
    """Bytes that come once; what was read can be read again from a temporary file.

    Args:
        stream: Where they come from.
        limits: How many there may be.
        kept: A file that holds them already, from its start: `stream` itself; None: a temporary one is made.
    """

    def __init__(self, stream: ByteStream, *, limits: Limits = UNLIMITED, kept: IO[bytes] | None = None) -> None:
        self._stream: ByteStream = stream
        self._read_into = reading_into(stream)
        self._limits = limits
        self._is_copied = kept is None
        self._kept: IO[bytes] = kept or tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - see below
        self._closing = weakref.finalize(self, self._kept.close) if kept is None else None
        self._n_bytes = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """Give up to `size` bytes: fewer at the end only.

        Raises:
            TooLarge: There are more bytes than are allowed.
        """
        parts: list[bytes] = []
        while size > 0 and (part := self._stream.read(size)):
            parts.append(part)
            size -= len(part)
            self._count(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readinto(self, buffer: memoryview) -> int:
        """Read into a buffer, as much as comes at once; give how many bytes, 0 at the end only.

        Raises:
            TooLarge: There are more bytes than are allowed.
        """
        n_bytes = self._read_into(buffer)
        self._count(buffer[:n_bytes])
        return n_bytes

    def file(self) -> IO[bytes]:
        """Read what is left, and give all of it as a file, at its start.

        Raises:
            TooLarge: There are more bytes than are allowed.
        """
        while self.read(PACKED_AT_ONCE):
            pass
        self.rewind()
        return self._kept

    def choose(self) -> bool:
        """Keep only what `keep` is given from now on; give False where nothing is copied: all can be read again."""
        is_chosen = self._is_copied and not self._ended
        self._is_copied = False
        return is_chosen

    def keep(self, part: bytes | memoryview) -> None:
        """Keep these bytes, so that `rewind` begins with the first of them."""
        self._kept.write(part)

    def rewind(self) -> None:
        """Begin again with the first byte of what was read, or kept; what was not is out of reach."""
        self._ended = True
        self._kept.seek(0)
        self._stream = self._kept
        self._read_into = reading_into(self._kept)

    def _count(self, part: bytes | memoryview) -> None:
        if not self._ended:
            self._n_bytes += len(part)
            self._limits.check("content", self._n_bytes)
            if self._is_copied:
                self.keep(part)

    def close(self) -> None:
        """Forget the copy."""
        if self._closing is not None:
            self._closing()


@contextmanager
def opened(path: Path, *, limits: Limits = UNLIMITED) -> Iterator[Source]:
    """Open a file, packed by gzip or not.

    Raises:
        OSError: It cannot be opened.
    """
    with path.open("rb") as file:
        is_packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        source = Source(unpacked(file), limits=limits) if is_packed else Source(file, limits=limits, kept=file)
        try:
            yield source
        finally:
            source.close()


def unpacked(stream: ByteStream) -> ByteStream:
    """Read gzip as what it holds, of one or several members, without ever holding more than is asked for."""
    return _Gzip(stream)


class _Gzip:
    """The content of a gzip stream."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._member = zlib.decompressobj(GZIP)
        self._packed = b""
        self._begun = False  # whether something of the present member was seen
        self._n_empty = 0

    def read(self, size: int, /) -> bytes:
        """Give up to `size` bytes, none at the end.

        Raises:
            DataError: It is no gzip, damaged, or cut short.
        """
        while size > 0:
            if self._member.eof:
                self._n_empty += 1
                if self._n_empty > MOST_EMPTY_MEMBERS:
                    raise _damaged()
                self._packed, self._member, self._begun = self._member.unused_data, zlib.decompressobj(GZIP), False
            packed = self._packed or self._stream.read(PACKED_AT_ONCE)
            if not self._begun:
                packed = packed.lstrip(b"\0")  # what fills up a block of a tape
            is_end = not packed
            if is_end and not self._begun:
                return b""
            try:
                content = self._member.decompress(packed, size)
            except zlib.error:
                raise _damaged() from None
            self._begun = True
            self._packed = self._member.unconsumed_tail
            if content:
                self._n_empty = 0
                return content
            if is_end and not self._member.eof:
                raise _damaged()
        return b""


def _damaged() -> DataError:
    return DataError([Fault("", "not_gzip", "the gzip file is damaged or cut short")])
