"""Models and their versions: trees, rules, documents, settings, archive, deletion.

The settings of a model need the scope admin: its mask and its retention decide what the decision log keeps.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import BadRequest

import espalier
from service.api.blueprint import ETAG, Blueprint
from service.api.context import current_caller, current_service
from service.api.idempotency import creating, remember
from service.api.rendering import DOT, SVG, drawn
from service.api.requests import read_bytes
from service.api.responses import (
    JSON,
    TEXT,
    bytes_answer,
    changed_answer,
    has_condition,
    json_answer,
    page_answer,
    refuse_if_changed,
    tagged_answer,
)
from service.api.routing import MODEL, VERSION
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import NotFound
from service.repositories import models as repository
from service.schemas import models as schemas
from service.schemas.fields import PageQuery
from service.schemas.predictions import row_schema
from service.usecases import models as usecases

models = Blueprint("models", __name__, description="Trees and their versions")
curation = Blueprint("curation", __name__, description="What is said of models, and what is put away")

SHOWN = schemas.Model()
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "where the new version is"}}
SHOWN_VERSION = schemas.Version()
MOST_RULES = 10_000
"""Of a tree with as many leaves the description of a class takes some seconds, for which nobody else is answered."""
MOST_LISTED = 2_000_000
"""Categories of all tests together: each rule names those of its conditions."""
Render = Callable[[espalier.Model], str]
RULE_TEXTS: Mapping[str, Render] = {
    "text": lambda model: espalier.to_text(espalier.extract_rules(model)),
    "logic": espalier.to_logic,
}
CLASS_TEXTS: Mapping[str, Callable[[espalier.Model, str], str]] = {
    "text": lambda model, label: "".join(f"{each}\n" for each in espalier.class_sentences(model, label)),
    "logic": espalier.to_logic,
}
NO_TRACE = "a pruning leaves one, or a training that ends with pruning, and none comes with an imported document"


@models.get("/v1/models", scope=Scope.READ)
@models.arguments(PageQuery, location="query")
@models.tagged(schemas.ModelPage)
@models.refuses(422)
def list_models(query: dict[str, Any]) -> Response:
    """List models, newest first."""
    with read_session(current_service().sessions) as session:
        return page_answer(repository.list_models(session, names=current_caller().models, **query), SHOWN)


@models.get(MODEL, scope=Scope.READ)
@models.tagged(schemas.Model)
@models.refuses(404)
def get_model(name: str) -> Response:
    """Look at a model."""
    with read_session(current_service().sessions) as session:
        return tagged_answer(SHOWN.dump(repository.find_model(session, name)))


@models.get(f"{MODEL}/versions", scope=Scope.READ)
@models.arguments(PageQuery, location="query")
@models.tagged(schemas.VersionPage)
@models.refuses(404, 422)
def list_versions(query: dict[str, Any], name: str) -> Response:
    """List the versions of a model, newest first."""
    with read_session(current_service().sessions) as session:
        return page_answer(repository.list_versions(session, name, **query), SHOWN_VERSION)


@models.post(f"{MODEL}/versions", scope=Scope.TRAIN, creates=True)
@models.response(201, schemas.Version, headers=LOCATION)
@models.refuses(400, 413, 415, 422)
@models.doc(requestBody=schemas.DOCUMENT_REQUEST)
def import_version(name: str) -> Response:
    """Add a version from a model document, such as `GET …/document` gives; the model is made if it is not there.

    The new version has the document's SHA-256 and answers as the one it came from. It names no data set, so methods of
    pruning that need the training rows cannot be applied to it.
    """
    new = _read_document(name)
    with creating() as session:
        shown = SHOWN_VERSION.dump(repository.add_version(session, new))
        place = f"{request.root_path}/v1/models/{name}/versions/{shown['version']}"
        made = remember(session, json_answer(shown, status=201, headers={"Location": place}))
    current_service().versions.invalidate()
    return made


@models.get(VERSION, scope=Scope.READ)
@models.tagged(schemas.Version)
@models.refuses(404)
def get_version(name: str, number: int) -> Response:
    """Look at a version: how it was made, and its figures."""
    with read_session(current_service().sessions) as session:
        return tagged_answer(SHOWN_VERSION.dump(repository.find_version(session, name, number)))


@models.get(f"{VERSION}/tree", scope=Scope.READ)
@models.arguments(schemas.TreeQuery, location="query")
@models.tagged(schemas.TREE, description="The tree")
@models.tagged({"type": "string"}, content_type="text/plain")
@models.tagged({"type": "string"}, content_type=DOT)
@models.tagged({"type": "string"}, content_type=SVG)
@models.refuses(404, 422)
def get_tree(query: dict[str, Any], name: str, number: int) -> Response:
    """Look at the tree of a version, or a part: columns (json), lines (text), diagrams (mermaid, dot), a picture (svg).

    Of a tree that is too large to be shown, the lower levels are folded, and it is said how many leaves they have;
    columns of more than 200 000 nodes are refused.
    """
    model = _model(name, number)
    if isinstance(model.body, espalier.RuleList):
        raise espalier.NotApplicable("this version is a list of rules and has no tree: see its rules, or its parent")
    return drawn(model, form=query["format"], node=query["node"], depth=query["depth"])


@models.get(f"{VERSION}/rules", scope=Scope.READ)
@models.arguments(schemas.RulesQuery, location="query")
@models.tagged({"type": "object"}, description="The rules")
@models.tagged({"type": "string"}, content_type="text/plain")
@models.refuses(404, 422)
def get_rules(query: dict[str, Any], name: str, number: int) -> Response:
    """Look at the rules of a version, one a leaf of its tree: as json, as sentences, or in the notation of logic.

    Of one class: what a row must be like to be answered with it, in json as ``class`` and ``any_of``, the ways to it. A
    model of numbers has no classes, and one that is a list of rules has no leaf a rule: there that is refused. So are
    the rules of more than 10 000 leaves, or of tests that list more than 2 000 000 categories.
    """
    model, form, label = _model(name, number), query["format"], query["label"]
    _refuse_many_rules(model)
    if form == "json":
        described = espalier.rules_to_dict(model) if label is None else espalier.class_dnf(model, label).to_dict()
        return tagged_answer(described)
    text = RULE_TEXTS[form](model) if label is None else CLASS_TEXTS[form](model, label)
    return bytes_answer(text, content_type=TEXT)


@models.get(f"{VERSION}/importances", scope=Scope.READ)
@models.tagged(schemas.Importances)
@models.refuses(404, 422)
def get_importances(name: str, number: int) -> Response:
    """Look at each attribute's share of what the tests of a version gain, times the rows that they part.

    Every attribute is named, the most telling first; of equal ones the earlier column. A list of rules has no tests.
    """
    shares = espalier.attribute_importances(_model(name, number))
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    return tagged_answer({"attributes": [{"attribute": name, "importance": share} for name, share in ordered]})


@models.get(f"{VERSION}/document", scope=Scope.READ)
@models.tagged({"type": "object"}, description="The whole model; the same bytes each time")
@models.refuses(404)
def get_document(name: str, number: int) -> Response:
    """Fetch the whole model as its JSON document, which the core and the command line read too."""
    with read_session(current_service().sessions) as session:
        version = repository.find_version(session, name, number)
        return bytes_answer(repository.document(session, version.id), content_type=JSON)


@models.get(f"{VERSION}/schema", scope=Scope.READ)
@models.tagged({"type": "object"}, description="The JSON Schema (2020-12) of a row")
@models.refuses(404)
def get_schema(name: str, number: int) -> Response:
    """Look at what a row must be to be answered by this version, as JSON Schema."""
    return tagged_answer(row_schema(_model(name, number).schema, title=f"a row for {name}, version {number}"))


@models.get(f"{VERSION}/pruning", scope=Scope.READ)
@models.tagged({"type": "object"}, description="The trace")
@models.refuses(404)
def get_pruning(name: str, number: int) -> Response:
    """Look at what the pruning that made this version, or ended its training, did: node by node."""
    with read_session(current_service().sessions) as session:
        version = repository.find_version(session, name, number)
        trace = repository.trace(session, version.id)
    if trace is None:
        raise NotFound("pruning of", f"{name}/{number}", why=NO_TRACE)
    return tagged_answer(trace)


@curation.patch(MODEL, scope=Scope.ADMIN)
@curation.arguments(schemas.ModelChange)
@curation.response(200, schemas.Model, headers=ETAG)
@curation.refuses(400, 404, 413, 415, 422)
@curation.guarded
def change_model(changes: dict[str, Any], name: str) -> Response:
    """Describe a model, tag it, mask inputs, set how long its decisions are kept.

    Values of masked inputs are not logged from then on, everywhere within a second. Decisions older than
    `retention_days` are deleted by the workers.
    """
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name)
        shown = SHOWN.dump(usecases.change_settings(session, current_service().models, name, changes))
    current_service().versions.invalidate()
    return changed_answer(shown)


@curation.post(f"{VERSION}/archive", scope=Scope.TRAIN)
@curation.response(200, schemas.Version)
@curation.refuses(404, 409)
def archive_version(name: str, number: int) -> Response:
    """Have a version answer no more, everywhere within a second; what it has answered can still be explained.

    Refused while an alias points at it. Asked again, it stays as it was. There is no way back but to import the
    version's document, which makes a new version.
    """
    with transaction(current_service().sessions) as session:
        shown = SHOWN_VERSION.dump(usecases.archive_version(session, name, number))
    current_service().versions.invalidate()
    return json_answer(shown)


@curation.delete(VERSION, scope=Scope.TRAIN)
@curation.response(204, description="It is gone")
@curation.refuses(404, 409)
@curation.guarded
def delete_version(name: str, number: int) -> Response:
    """Delete a version that no decision, no alias, no unfinished job and no other version refers to."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name, number)
        usecases.delete_version(session, name, number)
    current_service().versions.invalidate()
    return Response(status=204)


@curation.delete(MODEL, scope=Scope.TRAIN)
@curation.response(204, description="It is gone")
@curation.refuses(404, 409)
@curation.guarded
def delete_model(name: str) -> Response:
    """Delete a model with its versions and aliases; refused while there are decisions by it, or unfinished jobs."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name)
        usecases.delete_model(session, name)
    current_service().versions.invalidate()
    return Response(status=204)


def _read_document(name: str) -> repository.NewVersion:
    try:
        return usecases.read_document(
            read_bytes(request, kinds=(JSON,)), name=name, settings=current_service().settings
        )
    except espalier.DocumentError as error:
        if error.faults[0].code == "not_json":
            raise BadRequest(f"the body is {error.faults[0].message}") from None
        raise


def _model(name: str, number: int) -> espalier.Model:
    with read_session(current_service().sessions) as session:
        version = repository.find_version(session, name, number)
        return current_service().models.get(session, version.id).model


def _refuse_many_rules(model: espalier.Model) -> None:
    body = model.body
    count, has = (
        (body.n_rules, "rules") if isinstance(body, espalier.RuleList) else (body.n_leaves, "leaves, a rule each")
    )
    if count > MOST_RULES:
        raise espalier.NotApplicable(
            f"this version has {count} {has}; at most {MOST_RULES} are shown: prune it, or read its document"
        )
    n_listed = 0 if isinstance(body, espalier.RuleList) else len(model.tree.code_branch)
    if n_listed > MOST_LISTED:
        raise espalier.NotApplicable(
            f"the tests of this version list {n_listed} categories; rules are shown of at most {MOST_LISTED}: "
            "prune it, or read its document"
        )


def _refuse_if_changed(session: Session, name: str, number: int | None = None) -> None:
    """Refuse where a model, or one of its versions, is not as the caller has seen it.

    Raises:
        NotFound: There is no such model or version.
        PreconditionFailed: It is another by now.
    """
    if has_condition():
        model = repository.lock_model(session, name)  # its versions, too, change only for who holds it
        shown = (
            SHOWN.dump(model) if number is None else SHOWN_VERSION.dump(repository.find_version(session, name, number))
        )
        refuse_if_changed(shown)
