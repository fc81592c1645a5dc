"""Blueprints whose routes name the scope that a caller needs, and document what they take, answer and refuse.

The decorators are flask-smorest's own, and a few shorthands over them. Their order on a view, from the outside: the
route, `arguments`, `response` or `tagged`, `refuses`.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import flask_smorest
import marshmallow as ma
from flask import Request, Response
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict

from espalier import Fault
from service.api.idempotency import IdempotencyHeader, once
from service.api.requests import JSON, read_json
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.schemas.fields import faults_of
from service.schemas.inference import InferenceError

P = ParamSpec("P")
R = TypeVar("R")
View = Callable[P, R]
Documented = type[ma.Schema] | Mapping[str, object]

ETAG = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "changes when the answer does: see If-None-Match, If-Match",
    }
}
IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "ETags that GET gave: what has none of them any more is not changed, and the answer is 412",
}
NOT_MODIFIED = "It is as it was when the ETag of If-None-Match was given"
SECURITY = "key"  # the name of the security scheme in the OpenAPI document


class MalformedRequest(ValidationFailed):
    """The body has faults of form; `sound` is the rest of it, in which a view can look for others."""

    def __init__(self, faults: Sequence[Fault], sound: Mapping[str, Any]) -> None:
        self.sound = sound
        super().__init__(faults)


class Parser(FlaskParser):
    """Reads JSON by orjson (its depth is limited, its numbers finite) and raises our own error with every fault."""

    DEFAULT_UNKNOWN_BY_LOCATION = {  # noqa: RUF012 - as the parent declares it
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "query": ma.RAISE,
    }

    def load_json(self, req: Request, schema: ma.Schema) -> Any:
        """Return the body, read as JSON."""
        return read_json(req)

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:
        """Return the query, in which no field is repeated."""
        refuse_repeated(req.args)
        return super().load_querystring(req, schema)

    def handle_error(self, error: ma.ValidationError, req: Request, schema: ma.Schema, **_: Any) -> NoReturn:
        """Raise what marshmallow found as faults of the request."""
        by_location = cast(dict[str, Any], error.messages)
        faults = [fault for messages in by_location.values() for fault in faults_of(ma.ValidationError(messages))]
        raise MalformedRequest(faults, error.valid_data if isinstance(error.valid_data, Mapping) else {}) from None


def refuse_repeated(query: MultiDict[str, str]) -> None:
    """Refuse a query that gives a field more than once.

    Raises:
        ValidationFailed: Every field that is repeated.
    """
    repeated = [name for name, values in query.lists() if len(values) > 1]
    if repeated:
        raise ValidationFailed([Fault(f"/{name}", "repeated", "may be given once") for name in repeated])


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc] # the parent is untyped
    """A group of routes under one heading of the documentation.

    The name of a view is its ``operationId``, unlike any other's: generated clients call their functions by it.

    Attributes:
        scopes: The scopes of which a caller needs one, by the name of the view; none: the route is open.
    """

    ARGUMENTS_PARSER = Parser()

    if TYPE_CHECKING:  # flask-smorest's own, with types

        def arguments(
            self, schema: type[ma.Schema], *, location: str = "json"
        ) -> Callable[[Callable[..., R]], Callable[..., R]]:
            """Read a part of the request by `schema`; the view gets it as its first argument."""

        def response(
            self,
            status_code: int,
            schema: Documented | None = None,
            *,
            content_type: str | None = None,
            description: str | None = None,
            headers: Mapping[str, object] | None = None,
        ) -> Callable[[View[P, R]], View[P, R]]:
            """Document an answer; the view makes the response itself."""

        def alt_response(
            self, status_code: int, response: str | None = None, **described: object
        ) -> Callable[[View[P, R]], View[P, R]]:
            """Document another answer."""

        def doc(self, **operation: object) -> Callable[[View[P, R]], View[P, R]]:
            """Add to a view's OpenAPI operation."""

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name, description=description)
        self.scopes: dict[str, tuple[Scope, ...]] = {}

    def get(self, rule: str, *, scope: Scope | tuple[Scope, ...] | None) -> Callable[[View[P, R]], View[P, R]]:
        """Answer GET at `rule` to callers with the scope."""
        return self._answer("GET", rule, scope)

    def post(
        self, rule: str, *, scope: Scope | tuple[Scope, ...] | None, creates: bool = False
    ) -> Callable[[View[P, Response]], View[P, Response]]:
        """Answer POST at `rule` to callers with the scope; where it `creates`, once an Idempotency-Key."""
        answering = self._answer("POST", rule, scope)
        if not creates:
            return answering

        def decorate(view: View[P, Response]) -> View[P, Response]:
            with_header = self.arguments(IdempotencyHeader, location="headers")
            return answering(self.refuses(409, 422)(with_header(once(view))))

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

    def lenient_arguments(self, schema: type[ma.Schema]) -> Callable[[View[..., R]], View[..., R]]:
        """Read the body as JSON, but let the view look for more faults where the form has some.

        The view gets the sound fields and the faults of form; where there are any, it raises `ValidationFailed` with
        these and its own.
        """

        def decorate(view: View[..., R]) -> View[..., R]:
            @self.arguments(schema)
            @functools.wraps(view)
            def strict(payload: Mapping[str, Any], **named: Any) -> R:
                return view(payload, (), **named)

            @functools.wraps(strict)
            def lenient(**named: Any) -> R:
                try:
                    return strict(**named)
                except MalformedRequest as error:
                    return view(error.sound, error.faults, **named)

            return lenient

        return decorate

    def tagged(
        self, schema: Documented, *, description: str | None = None, content_type: str | None = None
    ) -> Callable[[View[P, R]], View[P, R]]:
        """Document a view that answers 200 with an ETag, and 304 to one who sends that back in If-None-Match."""
        fresh = self.response(200, schema, description=description, content_type=content_type, headers=ETAG)
        same = self.alt_response(304, description=NOT_MODIFIED, success=True)

        def decorate(view: View[P, R]) -> View[P, R]:
            return fresh(same(view))

        return decorate

    def guarded(self, view: View[P, R]) -> View[P, R]:
        """Document a view that changes a thing only as its caller has seen it, where If-Match asks for that."""
        return self.doc(parameters=[IF_MATCH])(self.refuses(412)(view))

    def refuses(self, *statuses: int) -> Callable[[View[P, R]], View[P, R]]:
        """Document the problems with which a view may refuse; `openapi` adds those that every route may answer."""

        def decorate(view: View[P, R]) -> View[P, R]:
            for status in statuses:
                view = self.alt_response(status, HTTPStatus(status).name)(view)
            return view

        return decorate

    def refuses_inference(self, *statuses: int) -> Callable[[View[P, R]], View[P, R]]:
        """Document the errors of the Open Inference Protocol with which a view may refuse."""

        def decorate(view: View[P, R]) -> View[P, R]:
            for status in statuses:
                view = self.alt_response(status, schema=InferenceError, content_type=JSON)(view)
            return view

        return decorate

    def _answer(
        self, method: str, rule: str, scope: Scope | tuple[Scope, ...] | None
    ) -> Callable[[View[P, R]], View[P, R]]:
        def decorate(view: View[P, R]) -> View[P, R]:
            name = view.__name__
            self.scopes[name] = () if scope is None else (scope,) if isinstance(scope, Scope) else scope
            needed = [{SECURITY: [one.value]} for one in self.scopes[name]]
            self.route(rule, methods=[method])(self.doc(security=needed, operationId=name)(view))
            return view

        return decorate
