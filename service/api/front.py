"""The way in for most predictions, in front of Flask, which costs more than the answer itself.

What is surely a prediction of rows in a body of moderate size, by JSON or by the inference protocol, is answered here,
by the functions that the views call, too: `admitted`, `check_host`, `Finder.find`, `answer_body`, `answer_inference`.
All else is Flask's, as if nothing were here::

    request ── looks like a prediction? ── may the caller? ── read, answered, logged ── 200
                       │ no                     │ no                 │ raised
                       └────────────────────────┴── Flask ───────────┘
                           unread, as it came         with what was raised, to be written down

So every answer other than 200 is Flask's, and so are requests from pages, packed bodies, streams and unusual headers.

Where the server answers several requests at once (`service.api.lane`), it says so in the WSGI environment: the answer
is given before its record is committed, the record with it, and what is Flask's is not answered at all: `NotHere`.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from werkzeug.exceptions import ClientDisconnected

from service.answering import Answering
from service.api.access import admitted, check_host
from service.api.bodies import JSON
from service.api.context import ADMITTED, BEGAN, RAISED, Service
from service.api.inference_body import HEADER_LENGTH, framed
from service.api.inferring import BYTES, answer_inference
from service.api.names import INFERENCE_MODEL, INFERENCE_VERSION, MODEL, VERSION
from service.api.predicting import answer_body
from service.api.receiving import receiving_into
from service.api.recording import Inquiry, Record
from service.api.surroundings import SAFE
from service.database.tables import Scope
from service.errors import Unavailable
from service.schemas import ALIAS, MODEL_NAME
from service.settings import Settings

__all__ = ["LATER", "Front", "Later", "NotHere"]

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

PATH: Final = re.compile(
    rf"/(?P<api>v1|v2)/models/(?P<name>{MODEL_NAME})(/versions/(?P<number>[1-9][0-9]{{0,8}}))?/(?P<verb>predict|infer)"
)
VERBS: Final = {"v1": "predict", "v2": "infer"}
KINDS: Final = {"v1": frozenset({JSON}), "v2": frozenset({JSON, BYTES, "", None})}
"""Of content: the clients of the inference protocol do not say what they send."""
ALIAS_IS: Final = "alias="
QUERY: Final = re.compile(ALIAS_IS + ALIAS)
HOST: Final = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
LENGTH_IS: Final = "HTTP_" + HEADER_LENGTH.upper().replace("-", "_")
LENGTH: Final = re.compile("[1-9][0-9]{0,9}")
MOST_TENSORS: Final = 99_999
"""Bytes of an inference; what is larger takes so long that Flask does not matter."""
UNUSUAL: Final = frozenset({"HTTP_ORIGIN", "HTTP_SEC_FETCH_SITE", "HTTP_CONTENT_ENCODING", "HTTP_TRANSFER_ENCODING"})
LONG: Final = 65_536
"""Bytes of a body from which on gunicorn's copies of it cost time."""
ROOM: Final = 2**20
"""Bytes that are kept ready for a body before any of it has come."""
ROUTES: Final = {
    ("v1", False): f"{MODEL}/predict",
    ("v1", True): f"{VERSION}/predict",
    ("v2", False): f"{INFERENCE_MODEL}/infer",
    ("v2", True): f"{INFERENCE_VERSION}/infer",
}
"""By whether a version is named: the routes of the views, as requests are counted by them."""
ENCODING: Final = "Accept-Encoding"
LATER: Final = "espalier.later"
"""In the WSGI environment: a `Later`. No client can write there."""


class NotHere(Exception):  # noqa: N818 - no error: it is to be answered by a thread of its own
    """A request that is not answered together with others."""


@dataclass(slots=True)
class Later:
    """An answer that its server sends once the record is committed; then it is the server that counts it.

    Attributes:
        newest: Gives the newest version of a model, as `Finder.newest` does, at a moment after the request arrived.
        began: `time.perf_counter()` when it arrived.
        record: Of the answer, once there is one.
        route: That it is counted by.
    """

    newest: Callable[[str], str | None]
    began: float
    record: Record | None = None
    route: str = ""

    def keep(self, record: Record) -> None:
        """Take the record."""
        self.record = record


class Front:
    """A WSGI application that answers predictions and leaves the rest to another."""

    def __init__(self, inner: Application, service: Callable[[], Service], settings: Settings) -> None:
        """Stand in front of `inner`, which answers all that is not answered here by what `service` gives."""
        self.inner = inner
        self._service = service
        self._counts = settings.metrics == "on"
        self._own = settings.host if settings.auth == "none" else None
        self._vary = ["Origin"] if settings.shared_with else []
        self._most_bytes = {"v1": settings.max_body_mb * 2**20, "v2": MOST_TENSORS}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request.

        Raises:
            NotHere: It is Flask's, and the server said that it answers several at once.
        """
        later: Later | None = environ.get(LATER)
        began = time.perf_counter() if later is None else later.began
        asked = None if RAISED in environ else _asked(environ)  # that was raised when it was tried together with others
        if asked is None or not self._is_taken(environ, asked):
            return self._left(environ, start_response)
        try:
            content, headers = self._answer(environ, asked, began)
        except Exception as error:
            environ[RAISED], environ[BEGAN] = error, began
            return self._left(environ, start_response)
        route = ROUTES[asked["api"], asked["number"] is not None]
        if later is not None:
            later.route = route
        elif self._counts:
            self._service().metrics.request("POST", route, 200, time.perf_counter() - began)
        start_response("200 OK", [*headers.items(), *SAFE.items(), ("Content-Length", str(len(content)))])
        return [content]

    def _left(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if LATER in environ:
            raise NotHere
        return self.inner(environ, start_response)

    def _is_taken(self, environ: dict[str, Any], asked: re.Match[str]) -> bool:
        """Whether the body is not too long, and the caller may ask."""
        return int(environ["CONTENT_LENGTH"]) <= self._most_bytes[asked["api"]] and self._admits(environ, asked["name"])

    def _admits(self, environ: dict[str, Any], name: str) -> bool:
        """Whether the caller may ask this model; who may not is told so by Flask."""
        service = self._service()
        try:
            if self._own is not None:
                check_host(environ, self._own)
            caller = environ.get(ADMITTED) or admitted(service, environ.get("HTTP_AUTHORIZATION", ""))
            environ[ADMITTED] = caller  # it is counted: not a second time
            caller.check_scope(Scope.PREDICT)
            caller.check_model(name)
        except Unavailable as error:
            environ[RAISED], environ[BEGAN] = error, time.perf_counter()  # so that Flask does not wait for it again
            return False
        except Exception:
            return False
        return True

    def _answer(self, environ: dict[str, Any], asked: re.Match[str], began: float) -> tuple[bytes, dict[str, str]]:
        """Give the body of the answer, and its header fields."""
        service = self._service()
        later: Later | None = environ.get(LATER)
        newest, keep_by = (None, None) if later is None else (later.newest, later.keep)
        name, number = asked["name"], None if asked["number"] is None else int(asked["number"])
        alias = environ.get("QUERY_STRING", "").removeprefix(ALIAS_IS) or None

        def find() -> Answering:
            return service.finder.find(service.sessions, name, number, alias, newest=newest)

        body, inquiry = _body(environ), Inquiry(service, find, environ[ADMITTED].key_id, began, keep_by)
        if asked["api"] == "v1":
            content = answer_body(inquiry, body)
            return content, {"Content-Type": JSON, **self._varying([])}
        inferred = answer_inference(inquiry, framed(bytes(body), environ.get(LENGTH_IS)))
        content, headers = inferred.packed(environ.get("HTTP_ACCEPT_ENCODING"))
        return content, headers | self._varying([ENCODING])

    def _varying(self, names: list[str]) -> dict[str, str]:
        """Give the header that says by what an answer differs, if by anything."""
        names += self._vary
        return {"Vary": ", ".join(names)} if names else {}


def _asked(environ: Mapping[str, Any]) -> re.Match[str] | None:
    """Give the parts of the path, if this looks like a prediction that is to be answered here."""
    if (
        environ["REQUEST_METHOD"] != "POST"
        or not LENGTH.fullmatch(environ.get("CONTENT_LENGTH") or "")
        or not HOST.fullmatch(environ.get("HTTP_HOST", ""))
        or not UNUSUAL.isdisjoint(environ)
    ):
        return None
    path = PATH.fullmatch(environ.get("PATH_INFO", ""))
    if path is None or path["verb"] != VERBS[path["api"]] or environ.get("CONTENT_TYPE") not in KINDS[path["api"]]:
        return None
    query = environ.get("QUERY_STRING")
    if query and (path["api"] != "v1" or path["number"] is not None or not QUERY.fullmatch(query)):
        return None
    return path


def _body(environ: Mapping[str, Any]) -> bytes | bytearray:
    """Read the body; where less comes than was promised, it is what Werkzeug would say."""
    length = int(environ["CONTENT_LENGTH"])
    try:
        body = environ["wsgi.input"].read(length) if length < LONG else _received(environ["wsgi.input"], length)
    except (OSError, ValueError) as error:
        raise ClientDisconnected from error
    if len(body) < length:
        raise ClientDisconnected
    return body


def _received(stream: Any, length: int) -> bytearray:
    """Receive a long body where it stays; its room grows as it comes, so that a promise alone takes no memory."""
    receive, body, at = receiving_into(stream), bytearray(min(length, ROOM)), 0
    while at < length:
        if at == len(body):
            body.extend(bytes(min(length, 2 * at) - at))
        with memoryview(body) as room:
            n_bytes = receive(room[at:])
        if not n_bytes:
            break
        at += n_bytes
    del body[at:]
    return body
