"""Blueprints whose routes name the scope that a caller needs, and document what they accept, return and refuse.

The arguments of `route` declare what a view accepts and refuses. They also declare the response to GET if it has an
ETag; flask-smorest's `response` or `doc` declares all other responses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from http import HTTPStatus
from typing import Any, NoReturn, cast

import flask_smorest
import marshmallow as ma
from flask import Request, Response, request
from webargs.flaskparser import FlaskParser

from service.api.idempotency import IdempotencyHeader, once
from service.api.request_bodies import MAX_MEMBERS, read_json
from service.api.routing import is_inference
from service.database.tables import Scope
from service.errors import PreconditionFailed, ValidationFailed
from service.schemas.fields import BaseSchema, coded, faults_of, parameter
from service.schemas.inference import InferenceError
from service.serialization.media_types import BYTES, JSON

View = Callable[..., Response]

ETAG = {"ETag": {"schema": {"type": "string"}, "description": "hash of the response, for If-None-Match and If-Match"}}
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "path of the new resource"}}
STRING = {"type": "string"}
IF_MATCH_MEANING = "ETags from GET; if none of them is the current one, nothing is changed and the response is 412"
IF_MATCH = parameter("header", "If-Match", STRING, IF_MATCH_MEANING)
NO_ETAG = "this path has no ETag: leave out If-Match and If-None-Match (for an alias, use if_current)"
FILE = {**STRING, "format": "binary"}
BODY_REFUSALS = (400, 413, 415, 422)
NOT_MODIFIED = "Not modified since the ETag in If-None-Match"
SECURITY = "key"  # the name of the security scheme in the OpenAPI document
NO_QUERY = BaseSchema()


class Parser(FlaskParser):
    """Parses the headers, the query or the body of a request by a schema; raises `ValidationFailed` with its faults."""

    DEFAULT_UNKNOWN_BY_LOCATION = {"headers": ma.EXCLUDE}  # noqa: RUF012 - webargs' own declaration

    def parse(self, argmap: Any, req: Request | None = None, **options: Any) -> Any:
        """Return the arguments; to be fast, skip the parser if the route takes no query and none was sent."""
        return {} if argmap is NO_QUERY and not request.query_string else super().parse(argmap, req, **options)

    def load_json(self, req: Request, schema: ma.Schema) -> Any:
        """Return the JSON body."""
        return read_json(req, max_members=MAX_MEMBERS)

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:
        """Return the query; raise `ValidationFailed` if it repeats a parameter."""
        twice = coded("repeated", "must not be given twice")
        ValidationFailed.raise_for(faults_of({name: twice for name, values in req.args.lists() if len(values) > 1}))
        return super().load_querystring(req, schema)

    def handle_error(self, error: ma.ValidationError, req: Request, schema: ma.Schema, **_: Any) -> NoReturn:
        """Raise `ValidationFailed` with the faults that marshmallow found."""
        raise ValidationFailed(faults_of(list(cast(dict[str, Any], error.messages).values()))) from None


def _refusals(rule: str, statuses: Collection[int]) -> dict[int, Any]:
    """Return the OpenAPI response of each error status; routes of the inference protocol have another error schema."""
    if not is_inference(rule):
        return {status: HTTPStatus(status).name for status in statuses}
    content = {JSON: {"schema": InferenceError}}
    # The inference protocol has no 422.
    return {one: {"description": HTTPStatus(one).phrase, "content": content} for one in statuses if one != 422}


def _without_condition(view: View) -> View:
    @wraps(view)
    def checked(*arguments: Any, **named: Any) -> Response:
        if "HTTP_IF_MATCH" in request.environ or "HTTP_IF_NONE_MATCH" in request.environ:
            raise PreconditionFailed(NO_ETAG)
        return view(*arguments, **named)

    return checked


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc] # the parent is untyped
    """Routes under one heading of the documentation; the name of a view is its ``operationId``.

    `scopes` maps the name of each view to its scopes. A caller needs one of them; an open route has none.
    """

    ARGUMENTS_PARSER = Parser()

    def __init__(self, name: str, import_name: str, *, description: str) -> None:
        super().__init__(name, import_name, description=description)
        self.scopes: dict[str, tuple[Scope, ...]] = {}

    def route(
        self,
        rule: str,
        *,
        scope: Scope | tuple[Scope, ...] | None,
        query: ma.Schema | type[ma.Schema] | None = NO_QUERY,
        body: type[ma.Schema] | Mapping[str, Any] | None = None,
        shows: type[ma.Schema] | Mapping[str, Any] | None = None,
        description: str | None = None,
        texts: Iterable[str] = (),
        refuses: Collection[int] = (),
        creates: bool = False,
        guarded: bool = False,
        **options: Any,
    ) -> Callable[[View], View]:
        """Return a decorator that registers a view; `get`, `post`, `put`, `patch` and `delete` call this method.

        Args:
            rule: The path. If it contains a name or an id, the status 404 is documented, too.
            scope: The scope that a caller needs; any one of them if several are given; None for an open route.
            query: The schema of the query, passed to the view as a dict; None if the view reads the query itself. By
                default a query is refused, but an open route ignores it, since probes add parameters.
            body: The schema of the JSON body, passed after the query; an OpenAPI object if the view reads the body.
            shows: The schema of the JSON response, which has an ETag for If-None-Match (304) and If-Match (412).
            description: Description of the response that `shows` and `texts` declare.
            texts: Further media types of this response, for text or files. Generated clients use the type of `shows`.
            refuses: Further error statuses, besides those of every route (see `openapi`) and those of other arguments.
            creates: Whether the view creates something, which it must do only once per Idempotency-Key.
            guarded: Whether the view checks If-Match with `etags.refuse_if_changed`; the header is then documented. If
                false, every method except GET refuses If-Match and If-None-Match.
            options: Options of Flask's `add_url_rule`.
        """
        scopes = () if scope is None else (scope,) if isinstance(scope, Scope) else scope
        is_get = options["methods"] == ["GET"]
        has_no_query = bool(scopes) and query is NO_QUERY
        implied = {
            400 if is_inference(rule) else 422: has_no_query,
            404: "<" in rule,
            409: creates,
            412: not is_get or shows is not None,
        } | dict.fromkeys(BODY_REFUSALS, body is not None)
        statuses = {*refuses, *(status for status, holds in implied.items() if holds)}
        documented = {"security": [{SECURITY: [one.value]} for one in scopes], "responses": _refusals(rule, statuses)}
        documented |= {"parameters": [IF_MATCH]} if guarded else {}
        documented |= {"requestBody": body} if isinstance(body, Mapping) else {}
        register = super().route(rule, **options)

        def decorate(view: View) -> View:
            name = view.__name__
            self.scopes[name] = scopes
            decorated = view if is_get or guarded else _without_condition(view)
            shown: dict[str, Any] = {text: FILE if text == BYTES else STRING for text in texts}
            shown |= {} if shows is None else {JSON: shows}  # JSON is applied last, so that it is listed first
            for media_type, schema in shown.items():
                tagged = self.response(200, schema, content_type=media_type, description=description, headers=ETAG)
                decorated = tagged(decorated)
            if shows is not None:
                decorated = self.alt_response(304, description=NOT_MODIFIED, success=True)(decorated)
            if body is not None and not isinstance(body, Mapping):
                decorated = self.arguments(body)(decorated)
            if has_no_query:
                decorated = self.ARGUMENTS_PARSER.use_kwargs(NO_QUERY, location="query")(decorated)
            elif query not in (NO_QUERY, None):
                decorated = self.arguments(query, location="query")(decorated)
            if creates:
                decorated = self.arguments(IdempotencyHeader, location="headers")(once(decorated))
            register(self.doc(operationId=name, **documented)(decorated))
            return decorated

        return decorate
