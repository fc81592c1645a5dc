"""Our worker of gunicorn: what is not HTTP gets a problem document, and who is asked to stop closes the door first."""

import socket
import uuid
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from gunicorn.http import errors

from service.api.answers import JSON
from service.api.patience import PatientWorker
from service.api.problems import CONTENT_TYPE, DETAILS, Problem, content_of, inference_content_of, is_inference

__all__ = ["ProblemWorker"]

SEND_SECONDS = 2.0
STATUSES: Mapping[type[Exception], HTTPStatus] = {
    errors.LimitRequestLine: HTTPStatus.REQUEST_URI_TOO_LONG,
    errors.LimitRequestHeaders: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.ExpectationFailed: HTTPStatus.EXPECTATION_FAILED,
    errors.UnsupportedTransferCoding: HTTPStatus.NOT_IMPLEMENTED,
    errors.InvalidResponseHeader: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.InvalidResponseHeaderName: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ConfigurationProblem: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ParseException: HTTPStatus.BAD_REQUEST,
    Exception: HTTPStatus.INTERNAL_SERVER_ERROR,
}
SENTENCES: Mapping[HTTPStatus, str] = {
    HTTPStatus.REQUEST_URI_TOO_LONG: "the request line is longer than this service takes",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "there are more or longer header fields than this service takes",
    HTTPStatus.EXPECTATION_FAILED: "of the header Expect only 100-continue is taken",
    HTTPStatus.NOT_IMPLEMENTED: "of transfer codings only chunked is taken",
    HTTPStatus.BAD_REQUEST: "this is not well-formed HTTP/1.1: look at the request line, the header fields, the chunks",
    HTTPStatus.INTERNAL_SERVER_ERROR: DETAILS[500],
}


class ProblemWorker(PatientWorker):
    """gunicorn's worker with threads, which would answer such requests with a page of HTML."""

    def set_accept_enabled(self, enabled: bool) -> None:  # noqa: FBT001 - the parent's own
        """Begin or cease to accept; once asked to stop, take in who has knocked, and close the door behind them.

        The parent leaves it open until its last request is answered: whoever knocks meanwhile waits there in vain.
        """
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            if listener.fileno() < 0:  # this was done already, while a connection was left to others
                continue
            before = -1
            while before < self.nr_conns < self.worker_connections:
                before = self.nr_conns
                self.accept(listener)
            listener.close()

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request, unless its body is coded in a way that nobody here would undo.

        Raises:
            gunicorn.http.errors.UnsupportedTransferCoding: It is; the parent takes ``gzip, chunked``, too.
        """
        for name, value in req.headers:
            if name == "TRANSFER-ENCODING" and value.strip().lower() != "chunked":
                raise errors.UnsupportedTransferCoding(value)
        stays = super().handle_request(req, conn)
        req.is_answered = True
        return stays

    def handle_error(self, req: Any, client: socket.socket, addr: object, exc: Exception) -> None:
        """Answer a request that could not be read; the connection is closed after it."""
        if getattr(req, "is_answered", False):  # without a look at its body, whose rest is wrong: one answer is enough
            return
        status = next(STATUSES[kind] for kind in type(exc).__mro__ if kind in STATUSES)
        request_id = uuid.uuid4().hex
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log.error("a request failed before it was read", exc_info=exc, extra={"request_id": request_id})
        slug = status.phrase.lower().replace(" ", "-")
        problem = Problem(status=status, slug=slug, title=status.phrase, detail=SENTENCES[status])
        path = getattr(req, "path", None) or ""
        write, content_type = (inference_content_of, JSON) if is_inference(path) else (content_of, CONTENT_TYPE)
        content = write(problem, instance=path, request_id=request_id)
        head = (
            f"HTTP/1.1 {status} {status.phrase}\r\nConnection: close\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(content)}\r\nX-Request-Id: {request_id}\r\n\r\n"
        )
        with suppress(OSError):  # the client may be gone
            client.settimeout(SEND_SECONDS)
            client.sendall(head.encode() + content)
