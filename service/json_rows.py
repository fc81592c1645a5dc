"""The rows of a prediction's JSON body, read by compiled code where there are many; no object is made for a cell.

::

    {"rows": [{"size": 1.5, …}, …], "explain": "none"}
     ------- ------------------------ ----------------
      frame   columns of a table       frame

The frame is read as any JSON. What is not plain in it or in the rows is left to the way that reads all of JSON, and
says what is wrong. The compiled code is loaded behind the requests, by a process that has read some megabytes
without it.
"""

import gc
import logging
import math
import threading
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

import espalier
from service.row_tables import MANY_ROWS

__all__ = ["Frame", "frame_of", "rows_of"]

LOG: Final = logging.getLogger(__name__)

LEAST_BYTES: Final = 8 * MANY_ROWS
"""Of many rows: `{"a":1},` each."""
MOST_FRAME: Final = 4_096
"""Bytes of a plain frame, before and behind the rows each."""
ROWS: Final = b'"rows"'
WORTH_LOADING: Final = 8 * 2**20
"""Bytes read without compiled code after which it is loaded: half a second, and memory."""
WORTH_COMPILING: Final = 64 * 2**20
"""The same, where it has to be compiled first: some seconds, once a machine."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A body without its rows.

    Attributes:
        content: The body.
        begin: Where the list of its rows begins.
        end: The place behind the list.
        document: The members of the body, with one row that says nothing.
    """

    content: bytes | bytearray
    begin: int
    end: int
    document: dict[str, Any]


def frame_of(content: bytes | bytearray) -> Frame | None:
    r"""Find the rows of a body; None where they are few, or the frame is not plain.

    >>> frame = frame_of(b'{"rows":[' + b'{"size":1},' * 999 + b'{"size":2}],"explain":"none"}')
    >>> frame.begin, frame.content[frame.end :], frame.document
    (8, b',"explain":"none"}', {'rows': [{}], 'explain': 'none'})
    """
    name = content.find(ROWS, 0, MOST_FRAME) if len(content) >= LEAST_BYTES else -1
    begin = content.find(b"[", name, name + MOST_FRAME) if name >= 0 else -1
    end = content.rfind(b"]", -MOST_FRAME if len(content) > MOST_FRAME else 0) + 1
    if not 0 < begin < end:
        return None
    head, tail = content[:begin], content[end:]
    outside = head + tail
    if outside.count(b"{") != 1 or outside.count(ROWS) != 1 or b"[" in outside or b"\\" in outside:
        return None
    try:
        document = orjson.loads(b"".join((head, b"[{}]", tail)))
    except orjson.JSONDecodeError:
        return None
    is_plain = isinstance(document, dict) and document.get("rows") == [{}]
    return Frame(content, begin, end, document) if is_plain else None


def rows_of(frame: Frame, model: espalier.Model, *, most_rows: int, most_chars: int) -> espalier.Dataset | None:
    """Read the rows as a table of some of the model's attributes; None where they are few, or not plain.

    So it is where the compiled code is not there: it may be soon.
    """
    if not espalier.can_read_json_rows():
        _loading.begin_after(len(frame.content), model)
        return None
    reader = _READERS.get(model)
    if reader is None or reader[0] != most_chars:
        reader = _READERS[model] = most_chars, espalier.JsonReader(model.schema, most_chars=most_chars)
    found = reader[1].read(frame.content, frame.begin, most_rows=most_rows)
    return found.dataset if found is not None and found.end == frame.end and found.dataset.n_rows >= MANY_ROWS else None


_READERS: WeakKeyDictionary[espalier.Model, tuple[int, espalier.JsonReader]] = WeakKeyDictionary()


class _Loading:
    """Loads the compiled code once enough was read without it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen = 0
        self._next: float = WORTH_LOADING

    def begin_after(self, n_bytes: int, model: espalier.Model) -> None:
        """Count what is read without the code; begin to load it where that is worth it."""
        with self._lock:
            self._seen += n_bytes
            if self._seen < self._next:
                return
            compiles = self._seen >= WORTH_COMPILING
            self._next = math.inf if compiles else WORTH_COMPILING
        threading.Thread(
            target=self._load, args=[model], kwargs={"compiles": compiles}, name="compiled code", daemon=True
        ).start()

    def _load(self, model: espalier.Model, *, compiles: bool) -> None:
        try:
            espalier.load_many_rows(model, compiles=compiles)
        except Exception as error:
            LOG.warning("compiled code was not loaded: %s", type(error).__name__)
        gc.collect()
        gc.freeze()  # a compiler is as many objects as all the rest: the collector would look at each, again and again


_loading = _Loading()
