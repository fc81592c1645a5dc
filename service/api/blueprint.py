"""Blueprints whose routes name the scope that a caller needs, and document what they accept, return and refuse.

The decorators are flask-smorest's own and a few shorthands. Their order on a view, from the outside: the route,
`arguments`, `response` or `tagged`, `refuses`.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn, cast

import flask_smorest
import marshmallow as ma
from flask import Request, Response
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import MultiDict

from espalier import Fault
from service.api.idempotency import IdempotencyHeader, once
from service.api.request_bodies import read_json
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.schemas.fields import faults_of
from service.schemas.inference import InferenceError
from service.serialization.media_types import JSON

View = Callable[..., Response]
Scopes = Scope | tuple[Scope, ...] | None

ETAG = {"ETag": {"schema": {"type": "string"}, "description": "changes with the response; for If-None-Match, If-Match"}}
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "path of the new resource"}}
IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "required": False,
    "schema": {"type": "string"},
    "description": "ETags of GET: if none of them is current, nothing is changed and the answer is 412",
}
NOT_MODIFIED = "Not modified since the ETag in If-None-Match"
SECURITY = "key"  # the name of the security scheme in the OpenAPI document


class Parser(FlaskParser):
    """Reads arguments by their schemas; every fault is reported as our own error."""

    DEFAULT_UNKNOWN_BY_LOCATION = {  # noqa: RUF012 - webargs' own declaration
        **FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION,
        "query": ma.RAISE,
    }

    def load_json(self, req: Request, schema: ma.Schema) -> Any:
        """Return the JSON body."""
        return read_json(req)

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:
        """Return the query, in which no parameter is repeated."""
        refuse_repeated(req.args)
        return super().load_querystring(req, schema)

    def handle_error(self, error: ma.ValidationError, req: Request, schema: ma.Schema, **_: Any) -> NoReturn:
        """Raise the faults that marshmallow found."""
        by_location = cast(dict[str, Any], error.messages)
        found = (faults_of(ma.ValidationError(messages)) for messages in by_location.values())
        raise ValidationFailed([fault for faults in found for fault in faults]) from None


def refuse_repeated(query: MultiDict[str, str]) -> None:
    """Raise `ValidationFailed` if the query repeats a parameter."""
    repeated = [name for name, values in query.lists() if len(values) > 1]
    if repeated:
        raise ValidationFailed([Fault(f"/{name}", "repeated", "may be given once") for name in repeated])


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc] # the parent is untyped
    """A group of routes under one heading of the documentation.

    The name of a view is its ``operationId``, after which generated clients name their functions. `scopes` has the
    scopes of which a caller needs one, by the name of the view; empty: the route is open.
    """

    ARGUMENTS_PARSER = Parser()

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name, description=description)
        self.scopes: dict[str, tuple[Scope, ...]] = {}
        self._with_refusals: set[str] = set()

    def route(self, rule: str, *, scope: Scopes, creates: bool = False, **options: Any) -> Callable[[View], View]:
        """Register a view for callers with this scope, or one of these; None: the route is open.

        Flask's `get`, `post`, `put`, `patch` and `delete` call this. A view that `creates` does so once per
        Idempotency-Key.
        """
        scopes = () if scope is None else (scope,) if isinstance(scope, Scope) else scope
        register = super().route(rule, **options)

        def decorate(view: View) -> View:
            if "<" in rule and view.__name__ not in self._with_refusals:
                view = self.refuses(404)(view)
            if creates:
                view = self.refuses(409, 422)(self.arguments(IdempotencyHeader, location="headers")(once(view)))
            name = view.__name__
            self.scopes[name] = scopes
            register(self.doc(security=[{SECURITY: [one.value]} for one in scopes], operationId=name)(view))
            return view

        return decorate

    def tagged(
        self,
        schema: type[ma.Schema] | Mapping[str, object],
        *,
        content_type: str = JSON,
        description: str | None = None,
    ) -> Callable[[View], View]:
        """Document a view that returns 200 with an ETag, or 304 if the caller has that ETag already."""
        modified = self.response(200, schema, description=description, content_type=content_type, headers=ETAG)
        not_modified = self.alt_response(304, description=NOT_MODIFIED, success=True)
        return lambda view: modified(not_modified(self.refuses(412)(view)))

    def guarded(self, view: View) -> View:
        """Document a view that changes something only if its ETag is in If-Match."""
        documented: View = self.doc(parameters=[IF_MATCH])(self.refuses(412)(view))
        return documented

    def refuses(self, *statuses: int) -> Callable[[View], View]:
        """Document the problems that a view may return; `openapi` adds those of every route.

        Without it, a view with arguments documents 422, and one with a name or id in its path 404.
        """
        return self._documents({status: HTTPStatus(status).name for status in statuses})

    def refuses_inference(self, *statuses: int) -> Callable[[View], View]:
        """Document the errors of the Open Inference Protocol that a view may return."""
        content = {JSON: {"schema": InferenceError}}
        return self._documents(
            {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}
        )

    def _documents(self, responses: Mapping[int, object]) -> Callable[[View], View]:
        def decorate(view: View) -> View:
            self._with_refusals.add(view.__name__)
            documented: View = self.doc(responses=responses)(view)
            return documented

        return decorate
