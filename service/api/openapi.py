"""The OpenAPI document: what all routes take and answer, written when somebody first asks for it."""

import threading
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import flask_smorest
import orjson
from flask import Flask, Response, request

from service import schemas
from service.api.answers import JSON
from service.api.contract import SECURITY
from service.api.links import add_links
from service.api.names import CONVERTERS
from service.api.problems import CONTENT_TYPE, is_inference

__all__ = ["ProblemApi", "openapi"]

DESCRIPTION = """Decision trees you can read: upload a data set, train a model on it, prune it, ask it. Each answer
comes with the path that led to it, and can be looked up and explained again later.

Where keys are on, send yours as `Authorization: Bearer esp_<id>_<secret>`; each route names the scope that it needs,
and `admin` stands for all of them. A key may be limited to some models. The limit does not cover data sets: with the
scope `read` such a key sees all of them, but it may not change or delete any. Of the jobs for no model, comparisons, it
reaches only those that it asked for.

Errors are problem documents (RFC 9457), below /v2 with the member `error` besides. Of duplicate keys in a JSON object
the last one counts. A whole number beyond 2^53 in a nominal attribute must be sent as text."""

KEYS = {"type": "http", "scheme": "bearer", "bearerFormat": "esp_<id>_<secret>", "description": "A key of this service"}
INFERENCE_ERROR = {
    "description": "Error of the Open Inference Protocol",
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/InferenceError"}}},
}
REFUSALS = ("401", "403", "429")  # what every route may answer that needs a scope


class ProblemApi(flask_smorest.Api):  # type: ignore[misc] # the parent is untyped
    """flask-smorest with our problem documents, in what it answers and in what it writes down."""

    ERROR_SCHEMA = schemas.Problem

    def __init__(self, app: Flask) -> None:
        self.to_describe: list[Callable[[], None]] = []
        about = {"title": "Espalier", "openapi_version": "3.1.0"}
        super().__init__(app, spec_kwargs={**about, "info": {"description": DESCRIPTION}})
        for name, converter in CONVERTERS.items():
            self.register_converter(converter, _described(converter.regex, name))

    def description(self) -> dict[str, Any]:
        """Give the OpenAPI document of all that was registered; not by two threads at once."""
        while self.to_describe:
            self.to_describe[0]()
            del self.to_describe[0]  # not before: what fails would be missing from all later answers
        found: dict[str, Any] = self.spec.to_dict()
        return found

    def _register_error_handlers(self) -> None:
        """Leave errors to the application's one handler."""

    def _register_responses(self) -> None:
        """Leave them, too, until somebody asks for the description."""
        self.to_describe.append(self._describe_responses)

    def _describe_responses(self) -> None:
        """Write all errors down as problem documents; the parent takes the type of plain answers for them."""
        self.DEFAULT_RESPONSE_CONTENT_TYPE = CONTENT_TYPE
        try:
            super()._register_responses()
        finally:
            del self.DEFAULT_RESPONSE_CONTENT_TYPE  # the class's own shows again


def openapi(api: ProblemApi, *, keys_are_on: bool) -> Callable[[], Response]:
    """Give the view that answers with the description of `api`."""
    one_at_a_time = threading.Lock()

    @cache
    def document() -> dict[str, Any]:
        return _complete(api.description(), keys_are_on=keys_are_on)

    @lru_cache(maxsize=8)
    def content(root: str) -> bytes:
        with one_at_a_time:
            found = document()
        placed = found | {"servers": [{"url": root}]} if root else found
        return orjson.dumps(placed, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)

    def view() -> Response:
        return Response(content(request.root_path), content_type="application/json")

    return view


def _described(pattern: str, name: str) -> Callable[[object], dict[str, str]]:
    return lambda _: {"type": "string", "pattern": f"^{pattern}$", "description": f"{name} name or id"}


def _complete(document: dict[str, Any], *, keys_are_on: bool) -> dict[str, Any]:
    """Say what every route may answer, put the statuses in order, and drop what does not hold of this service."""
    document["components"]["responses"]["INFERENCE_ERROR"] = INFERENCE_ERROR
    for path, operations in document["paths"].items():
        failure = {"$ref": f"#/components/responses/{'INFERENCE' if is_inference(path) else 'DEFAULT'}_ERROR"}
        for operation in operations.values():
            if isinstance(operation, dict):
                statuses = operation["responses"]
                statuses["default"] = failure
                if not keys_are_on:
                    del operation["security"]
                refusals = REFUSALS if operation.get("security") else () if keys_are_on else ("403",)
                for status in ("500", *refusals):
                    statuses.setdefault(status, failure)
                operation["responses"] = dict(sorted(statuses.items()))
    add_links(document)
    document["components"]["schemas"].pop("PaginationMetadata", None)
    if keys_are_on:
        document["components"]["securitySchemes"] = {SECURITY: KEYS}
    return document
