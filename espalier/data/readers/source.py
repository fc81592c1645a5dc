"""Read the bytes of a table. They are decompressed, counted against a limit, and can be read a second time."""

import gzip
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Final, Protocol, TypeVar

from espalier.data.limits import UNLIMITED, Limits
from espalier.errors import DataError, Fault

Item = TypeVar("Item")

GZIP_MAGIC: Final = b"\x1f\x8b"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
MAX_BYTES_IN_MEMORY: Final = 1_000_000
"""If the copy of a stream has more bytes, it becomes a temporary file."""
MAX_IDLE_BYTES: Final = 2**20
"""Maximum number of consecutive compressed bytes that yield no content, such as empty members of gzip."""
BYTES_AT_ONCE: Final = 2**20


class ByteStream(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; ``b""`` only at the end."""


class TableFile(Protocol):
    """A file that can be opened several times: a `Path`, or an object with a name and a method `open`."""

    @property
    def name(self) -> str:
        """The file name. Its ending shows the format."""

    def open(self, mode: Any, /) -> Any:
        """Return the file at its start, to be used in a ``with`` statement."""


class Source:
    """The bytes of a stream, which can be read a second time.

    Args:
        is_file: Whether `stream` is a seekable file at its start. If not, all bytes that are read are also copied.
    """

    def __init__(self, stream: Any, *, limits: Limits = UNLIMITED, is_file: bool = False) -> None:
        self._stream, self._limits = stream, limits
        self._copy = None if is_file else tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY)  # noqa: SIM115 - see close
        self._n_bytes = 0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and (part := self._stream.read(size)):
            parts.append(part)
            size -= len(part)
            self._n_bytes += len(part)
            self._limits.check("content", self._n_bytes)
            if self._copy is not None and self._copy is not self._stream:
                self._copy.write(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the number (from 1) and the stripped bytes of each line that is not blank."""
        waiting, number = b"", 0
        while content := self.read(BYTES_AT_ONCE):
            if number == 0 and not waiting:
                content = content.removeprefix(BYTE_ORDER_MARK)
            *whole, waiting = (waiting + content).split(b"\n")
            for line in whole:
                number += 1
                self._limits.check("line", len(line))
                if stripped := line.strip():
                    yield number, stripped
            self._limits.check("line", len(waiting))
        if stripped := waiting.strip():
            yield number + 1, stripped

    def rewind(self) -> IO[bytes]:
        """Return all bytes as a file at its start. A stream is read to its end first."""
        while self._copy is not None and self._copy is not self._stream and self.read(BYTES_AT_ONCE):
            pass
        self._stream, self._n_bytes = self._copy or self._stream, 0
        file: IO[bytes] = self._stream
        file.seek(0)
        return file

    def close(self) -> None:
        """Delete the copy."""
        if self._copy is not None:
            self._copy.close()


def in_blocks(items: Iterable[tuple[int, Item]], n_items: int) -> Iterator[list[Item]]:
    """Yield items, each given with its size, in lists of at most `n_items` items or about `BYTES_AT_ONCE` bytes."""
    block, n_bytes = list[Item](), 0
    for size, item in items:
        block.append(item)
        n_bytes += size
        if len(block) == n_items or n_bytes > BYTES_AT_ONCE:
            yield block
            block, n_bytes = [], 0
    if block:
        yield block


@contextmanager
def opened(path: TableFile | str, *, limits: Limits = UNLIMITED) -> Iterator[Source]:
    """Open a file, which may be compressed with gzip."""
    with (Path(path) if isinstance(path, str) else path).open("rb") as file:
        content = unpacked_file(file)
        with closing(Source(content, limits=limits, is_file=content is file)) as source:
            yield source


def unpacked(stream: ByteStream) -> ByteStream:
    """Return the content of a gzip stream. Its `read` raises DataError if the stream is damaged or not gzip."""
    return _Unpacked(stream)


def unpacked_file(file: IO[bytes]) -> ByteStream:
    """Return the decompressed content of a file if it is gzip, else the file. `file` must be at its start."""
    is_packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    file.seek(0)
    return unpacked(file) if is_packed else file


class _Unpacked:
    """The content of a gzip stream of one or several members (see `MAX_IDLE_BYTES`)."""

    def __init__(self, stream: ByteStream) -> None:
        self._packed, self._n_idle = stream, 0
        file: Any = SimpleNamespace(read=self._read_packed)  # the only method of a file that reading needs
        self._content = gzip.GzipFile(fileobj=file, mode="rb")

    def read(self, size: int, /) -> bytes:
        try:
            content = self._content.read1(size)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise _damaged() from None
        self._n_idle = 0
        return content

    def _read_packed(self, size: int, /) -> bytes:
        part = self._packed.read(size)
        self._n_idle += len(part)
        if self._n_idle > MAX_IDLE_BYTES:
            raise _damaged()
        return part


def _damaged() -> DataError:
    return DataError([Fault("", "not_gzip", "the gzip file is damaged or cut short")])
