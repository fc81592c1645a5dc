"""Models and their versions over HTTP: lists, trees, documents, pruning traces."""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

import espalier
from service import catalog, schemas
from service.api.answers import JSON, TEXT, bytes_answer, json_answer, page_answer, tagged_answer
from service.api.context import caller, here
from service.api.contract import Resource, answers, answers_tagged, refuses, takes_query
from service.api.names import MODEL, VERSION
from service.db import reading
from service.errors import NotFound
from service.tables import Scope

__all__ = ["models"]

models = Resource("models", __name__, description="Trees and their versions")

SHOWN = schemas.Model()
SHOWN_VERSION = schemas.Version()
Render = Callable[[espalier.Model], str]
TREE_TEXTS: Mapping[str, Render] = {"text": espalier.to_text, "mermaid": espalier.to_mermaid}
RULE_TEXTS: Mapping[str, Render] = {
    "text": lambda model: espalier.to_text(espalier.extract_rules(model)),
    "logic": espalier.to_logic,
}


@models.get("/v1/models", scope=Scope.READ)
@takes_query(schemas.PageQuery)
@answers(200, schemas.ModelPage)
@refuses(422)
def list_all(query: dict[str, Any]) -> Response:
    """List models, newest first."""
    with reading(here().sessions) as session:
        return page_answer(catalog.list_models(session, names=caller().models, **query), SHOWN)


@models.get(MODEL, scope=Scope.READ)
@answers_tagged(schemas.Model)
@refuses(404)
def get_one(name: str) -> Response:
    """Look at a model."""
    with reading(here().sessions) as session:
        return tagged_answer(SHOWN.dump(catalog.find_model(session, name)))


@models.get(f"{MODEL}/versions", scope=Scope.READ)
@takes_query(schemas.PageQuery)
@answers(200, schemas.VersionPage)
@refuses(404, 422)
def list_versions(query: dict[str, Any], name: str) -> Response:
    """List the versions of a model, newest first."""
    with reading(here().sessions) as session:
        return page_answer(catalog.list_versions(session, name, **query), SHOWN_VERSION)


@models.get(VERSION, scope=Scope.READ)
@answers_tagged(schemas.Version)
@refuses(404)
def get_version(name: str, number: int) -> Response:
    """Look at a version: how it was made, and its figures."""
    with reading(here().sessions) as session:
        return tagged_answer(SHOWN_VERSION.dump(catalog.find_version(session, name, number)))


@models.get(f"{VERSION}/tree", scope=Scope.READ)
@takes_query(schemas.TreeQuery)
@answers(200, schemas.TREE, description="The tree")
@answers(200, {"type": "string"}, content_type="text/plain")
@refuses(404, 422)
def get_tree(query: dict[str, Any], name: str, number: int) -> Response:
    """Look at the tree of a version: as columns (json), indented lines (text) or a diagram (mermaid)."""
    model = _model(name, number)
    if isinstance(model.body, espalier.RuleList):
        raise espalier.NotApplicable("this version is a list of rules and has no tree: see its rules, or its parent")
    if query["format"] == "json":
        return json_answer(espalier.to_document(model)["tree"])
    return bytes_answer(TREE_TEXTS[query["format"]](model), content_type=TEXT)


@models.get(f"{VERSION}/rules", scope=Scope.READ)
@takes_query(schemas.RulesQuery)
@answers(200, {"type": "object"}, description="The rules")
@answers(200, {"type": "string"}, content_type="text/plain")
@refuses(404, 422)
def get_rules(query: dict[str, Any], name: str, number: int) -> Response:
    """Look at the rules of a version, one a leaf of its tree: as json, as sentences, or in the notation of logic."""
    model = _model(name, number)
    if query["format"] == "json":
        return json_answer(espalier.rules_to_dict(model))
    return bytes_answer(RULE_TEXTS[query["format"]](model), content_type=TEXT)


@models.get(f"{VERSION}/document", scope=Scope.READ)
@answers(200, {"type": "object"}, description="The whole model; the same bytes each time")
@refuses(404)
def get_document(name: str, number: int) -> Response:
    """Fetch the whole model as its JSON document, which the core and the command line read too."""
    with reading(here().sessions) as session:
        version = catalog.find_version(session, name, number)
        return bytes_answer(catalog.document(session, version.id), content_type=JSON)


@models.get(f"{VERSION}/pruning", scope=Scope.READ)
@answers(200, {"type": "object"}, description="The trace")
@refuses(404)
def get_pruning(name: str, number: int) -> Response:
    """Look at what the pruning that made this version, or ended its training, did: node by node."""
    with reading(here().sessions) as session:
        version = catalog.find_version(session, name, number)
        trace = catalog.trace(session, version.id)
    if trace is None:
        raise NotFound("pruning of", f"{name}/{number}")
    return json_answer(trace)


def _model(name: str, number: int) -> espalier.Model:
    with reading(here().sessions) as session:
        version = catalog.find_version(session, name, number)
        return here().models.get(session, version.id).model
