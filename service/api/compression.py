"""Bodies in a Content-Encoding: unpacked within a bound, packed where the caller asks for it."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping

from werkzeug.datastructures import Accept
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.http import parse_accept_header

BLOCK = 65536
MOST_MEMBERS = 10_000  # of a gzip file: each begins anew, which takes its time
LEVEL = 1  # answers are made while somebody waits
WORTH_PACKING = 1024  # bytes; below that, packing costs more than it saves
GZIP, ZLIB, RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
PACKERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, LEVEL, mtime=0),
    "deflate": lambda content: zlib.compress(content, LEVEL),
}


def unpacked(body: bytes, encoding: str, *, limit: int) -> bytes:
    """Undo a Content-Encoding; no more than `limit` bytes and a block are ever in memory.

    Args:
        body: As it came.
        encoding: ``identity``, ``gzip`` or ``deflate`` (by RFC 9110 with zlib's frame; bare as some clients send it).
        limit: Most bytes of the result.

    Raises:
        UnsupportedMediaType: Another encoding, or several.
        RequestEntityTooLarge: The result is longer than `limit`.
        BadRequest: The body is not in this encoding, is cut short, or goes on after its end.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in PACKERS:
        raise UnsupportedMediaType(f"the Content-Encoding must be {', '.join(PACKERS)} or none")
    try:
        return _inflated(body, name, limit=limit)
    except zlib.error:
        raise BadRequest(f"the body is not what its Content-Encoding says: {name}") from None


def packed(content: bytes, accepted: str | None) -> tuple[bytes, str | None]:
    """Give `content` in an encoding that the header Accept-Encoding names, with its name; or as it is, with None."""
    if len(content) < WORTH_PACKING or not accepted:
        return content, None
    taken = parse_accept_header(accepted, Accept)
    name = max(PACKERS, key=taken.quality)  # of equals the first
    return (PACKERS[name](content), name) if taken.quality(name) > 0 else (content, None)


def _inflated(body: bytes, name: str, *, limit: int) -> bytes:
    bits = GZIP if name == "gzip" else ZLIB if _has_zlib_frame(body) else RAW
    stream = zlib.decompressobj(bits)
    parts: list[bytes] = []
    length, n_members = 0, 1
    for start in range(0, len(body), BLOCK):
        rest = body[start : start + BLOCK]
        while rest:
            if stream.eof:  # a gzip file may have several members
                n_members += 1
                if name != "gzip" or n_members > MOST_MEMBERS:
                    raise BadRequest("the body goes on after the end of what was compressed")
                stream = zlib.decompressobj(bits)
            for part in _parts(stream, rest):
                length += len(part)
                if length > limit:
                    raise RequestEntityTooLarge
                parts.append(part)
            rest = stream.unused_data
    if not stream.eof:
        raise BadRequest("the body ends in the middle of what was compressed")
    return b"".join(parts)


def _parts(stream: "zlib._Decompress", block: bytes) -> Iterator[bytes]:
    """Give what a block holds, piece by piece; a piece may still be to come when all of the block has been read."""
    while True:
        part = stream.decompress(block, BLOCK)
        yield part
        block = stream.unconsumed_tail
        if stream.eof or not (part or block):
            return


def _has_zlib_frame(body: bytes) -> bool:
    """Whether the first two bytes are those of RFC 1950: method 8, and a multiple of 31."""
    return len(body) >= 2 and body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
