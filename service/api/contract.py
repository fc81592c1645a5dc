"""What a view takes and answers, said once: checked when a request comes, and written into the OpenAPI document.

Thin, typed decorators over flask-smorest. Order on a view, from the outside: route with its scope, ``takes_*``,
``answers``, ``refuses``.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import flask_smorest
import marshmallow as ma
from flask import Request, Response
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict

from service.api.bodies import JSON, read_json
from service.api.once import HEADER, REPLAYED, once
from service.database.tables import Scope
from service.errors import Fault, Rejected
from service.schemas import InferenceError
from service.schemas.fields import faults_of

__all__ = [
    "SECURITY",
    "Resource",
    "answers",
    "answers_changed",
    "answers_tagged",
    "documents",
    "guarded",
    "refuse_repeated",
    "refuses",
    "refuses_inference",
    "takes_json",
    "takes_query",
    "takes_request",
]

P = ParamSpec("P")
R = TypeVar("R")
View = Callable[P, R]

ETAG = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "changes when the answer does: see If-None-Match, If-Match",
    }
}
MATCH_PARAMETER = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "ETags that GET gave: what has none of them any more is not changed, and the answer is 412",
}
KEY_PARAMETER = {
    "in": "header",
    "name": HEADER,
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "description": "a name of your own for this request, such as a UUID: sent again with it, the same request creates "
    f"nothing more and is answered as it was the first time ({REPLAYED}: true says so); another request is refused",
}
SECURITY = "key"  # the name that the OpenAPI document gives to our way of saying who asks


class Misshapen(Rejected):
    """The body has faults of form; `sound` is the rest of it, in which other faults can still be looked for."""

    def __init__(self, faults: Sequence[Fault], sound: Mapping[str, Any]) -> None:
        self.sound = sound
        super().__init__(faults)


class ContractParser(FlaskParser):
    """Reads JSON by orjson (its depth is limited, its numbers finite) and raises our own error with every fault."""

    DEFAULT_UNKNOWN_BY_LOCATION = {  # noqa: RUF012 - as the parent has it
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "query": ma.RAISE,
    }

    def _raw_load_json(self, req: Request) -> object:
        return read_json(req)

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:
        """Read the query; of a field that is said twice neither would be the right one.

        Raises:
            Rejected: Some are.
        """
        refuse_repeated(req.args)
        return super().load_querystring(req, schema)

    def handle_error(self, error: ma.ValidationError, req: Request, schema: ma.Schema, **_: Any) -> NoReturn:
        by_location = cast(dict[str, Any], error.messages)
        faults = [fault for messages in by_location.values() for fault in faults_of(ma.ValidationError(messages))]
        raise Misshapen(faults, error.valid_data if isinstance(error.valid_data, Mapping) else {}) from None


def refuse_repeated(query: MultiDict[str, str]) -> None:
    """Refuse a query that says a field more than once.

    Raises:
        Rejected: Every field that it does.
    """
    repeated = [name for name, values in query.lists() if len(values) > 1]
    if repeated:
        raise Rejected([Fault(f"/{name}", "repeated", "may be given once") for name in repeated])


class Resource(flask_smorest.Blueprint):  # type: ignore[misc] # the parent is untyped
    """A group of routes under one heading of the documentation.

    The name of a view is its ``operationId``, unlike any other's: generated clients call their functions by it.

    Attributes:
        scopes: The scope that a caller needs, by the name of the view; None: everybody may.
    """

    ARGUMENTS_PARSER = ContractParser()

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name, description=description)
        self.scopes: dict[str, Scope | None] = {}

    def get(self, rule: str, *, scope: Scope | None) -> Callable[[View[P, R]], View[P, R]]:
        """Answer GET at `rule` to callers with the scope."""
        return self._answer("GET", rule, scope)

    def post(
        self, rule: str, *, scope: Scope | None, creates: bool = False
    ) -> Callable[[View[P, Response]], View[P, Response]]:
        """Answer POST at `rule` to callers with the scope; where it `creates`, once an Idempotency-Key."""
        answering = self._answer("POST", rule, scope)
        if not creates:
            return answering

        def decorate(view: View[P, Response]) -> View[P, Response]:
            return answering(_takes_key(once(view)))

        return decorate

    def put(self, rule: str, *, scope: Scope | None) -> Callable[[View[P, R]], View[P, R]]:
        """Answer PUT at `rule` to callers with the scope."""
        return self._answer("PUT", rule, scope)

    def patch(self, rule: str, *, scope: Scope | None) -> Callable[[View[P, R]], View[P, R]]:
        """Answer PATCH at `rule` to callers with the scope."""
        return self._answer("PATCH", rule, scope)

    def delete(self, rule: str, *, scope: Scope | None) -> Callable[[View[P, R]], View[P, R]]:
        """Answer DELETE at `rule` to callers with the scope."""
        return self._answer("DELETE", rule, scope)

    def register_views_in_doc(self, api: Any, *application: Any, **place: Any) -> None:
        """Have `api` describe the views when somebody asks: that takes a tenth of a start, which is waited for."""
        api.to_describe.append(functools.partial(super().register_views_in_doc, api, *application, **place))

    def _answer(self, method: str, rule: str, scope: Scope | None) -> Callable[[View[P, R]], View[P, R]]:
        def decorate(view: View[P, R]) -> View[P, R]:
            name = view.__name__
            self.scopes[name] = scope
            needed = [] if scope is None else [{SECURITY: [scope.value]}]
            self.route(rule, methods=[method])(self.doc(security=needed, operationId=name)(view))
            return view

        return decorate


def _takes_key(view: View[P, R]) -> View[P, R]:
    """Say that an Idempotency-Key is taken, and what comes of one that is used wrongly."""
    for status in (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY):
        view = _tool.alt_response(status, status.name)(view)
    return _with_header(view, KEY_PARAMETER)


def _with_header(view: View[P, R], parameter: Mapping[str, object]) -> View[P, R]:
    """Say that a header is looked at."""
    described: Any = _tool.doc()(view)
    # Among those of the query, where there are some: `doc` would put it in their place.
    described._apidoc.setdefault("arguments", {}).setdefault("parameters", []).append(parameter)
    return cast("View[P, R]", described)


_tool = Resource("contract", __name__, description="")


def takes_json(schema: type[ma.Schema]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Read the body as a JSON object of `schema`; the view gets it as its first argument."""
    return cast("Callable[[Callable[..., R]], Callable[..., R]]", _tool.arguments(schema, location="json"))


def takes_request(schema: type[ma.Schema]) -> Callable[[View[..., R]], View[..., R]]:
    """Read the body as `takes_json` does, but let the view look for more where the form has faults.

    The view gets what is sound, and the faults of form; with such faults it raises `Rejected`, with these and its own.
    """

    def decorate(view: View[..., R]) -> View[..., R]:
        @takes_json(schema)
        @functools.wraps(view)
        def formed(asked: Mapping[str, Any], **more: Any) -> R:
            return view(asked, (), **more)

        @functools.wraps(formed)
        def tolerant(*args: Any, **more: Any) -> R:
            try:
                return formed(*args, **more)
            except Misshapen as error:
                return view(error.sound, error.faults, **more)

        return tolerant

    return decorate


def takes_query(schema: type[ma.Schema]) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Read the query string by `schema`; the view gets it as its next argument."""
    return cast("Callable[[Callable[..., R]], Callable[..., R]]", _tool.arguments(schema, location="query"))


def answers(
    status: int,
    schema: type[ma.Schema] | Mapping[str, object] | None = None,
    *,
    description: str | None = None,
    content_type: str | None = None,
    headers: Mapping[str, object] | None = None,
) -> Callable[[View[P, R]], View[P, R]]:
    """Say what a view answers when all is well; the view makes the response itself."""
    return cast(
        "Callable[[View[P, R]], View[P, R]]",
        _tool.alt_response(
            status,
            schema=schema,
            description=description or HTTPStatus(status).phrase,
            content_type=content_type,
            headers=headers,
            success=True,
        ),
    )


def answers_tagged(
    schema: type[ma.Schema] | Mapping[str, object], *, description: str | None = None, content_type: str | None = None
) -> Callable[[View[P, R]], View[P, R]]:
    """Say that a view answers 200 with an ETag, and 304 to one who sends that back in If-None-Match."""
    fresh = answers(200, schema, description=description, content_type=content_type, headers=ETAG)
    same = answers(304, description="It is as it was when the ETag of If-None-Match was given")

    def decorate(view: View[P, R]) -> View[P, R]:
        return fresh(same(view))

    return decorate


def answers_changed(schema: type[ma.Schema]) -> Callable[[View[P, R]], View[P, R]]:
    """Say that a view answers 200 with what it has changed, as GET would, and its ETag."""
    return answers(200, schema, headers=ETAG)


def guarded(view: View[P, R]) -> View[P, R]:
    """Say that a view changes only what is as its caller has seen it, where that is asked by If-Match."""
    return _with_header(_tool.alt_response(412, HTTPStatus.PRECONDITION_FAILED.name)(view), MATCH_PARAMETER)


def refuses(*statuses: int) -> Callable[[View[P, R]], View[P, R]]:
    """Say with which problem documents a view may refuse; what every route may answer is added by the application."""

    def decorate(view: View[P, R]) -> View[P, R]:
        for status in statuses:
            view = _tool.alt_response(status, HTTPStatus(status).name)(view)
        return view

    return decorate


def refuses_inference(*statuses: int) -> Callable[[View[P, R]], View[P, R]]:
    """Say with which errors of the Open Inference Protocol a view may refuse."""

    def decorate(view: View[P, R]) -> View[P, R]:
        for status in statuses:
            view = _tool.alt_response(
                status, schema=InferenceError, description=HTTPStatus(status).phrase, content_type=JSON
            )(view)
        return view

    return decorate


def documents(**operation: object) -> Callable[[View[P, R]], View[P, R]]:
    """Add to a view's OpenAPI operation as it is (a request body that the view reads itself)."""
    return cast("Callable[[View[P, R]], View[P, R]]", _tool.doc(**operation))
