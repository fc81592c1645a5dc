"""Models, their versions and aliases: trees, rules, documents, settings, archive, deletion.

Changing a model's settings needs the scope admin, since mask and retention determine what the decision log stores.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import BadRequest

import espalier
from service.api import etags, responses
from service.api.blueprint import ETAG, LOCATION, Blueprint
from service.api.context import current_caller, current_service
from service.api.idempotency import remember
from service.api.request_bodies import read_bytes
from service.api.routing import ALIAS, MODEL, VERSION
from service.database.engine import read_session
from service.database.tables import Scope
from service.errors import NotFound, ValidationFailed
from service.repositories import aliases as alias_events, models as repository
from service.schemas import models as schemas
from service.schemas.fields import OBJECT, PageQuery, page_of
from service.schemas.predictions import row_schema
from service.serialization.media_types import DOT, JSON, PMML, SVG, TEXT, XML
from service.usecases import models as usecases

models = Blueprint("models", __name__, description="Models and their versions")
settings = Blueprint("model settings", __name__, description="Settings of models, archiving and deletion")
aliases = Blueprint("aliases", __name__, description="Names that point at versions")

MODEL_SCHEMA = schemas.Model()
VERSION_SCHEMA = schemas.Version()
EVENT_SCHEMA = schemas.AliasEvent()
PMML_TYPES = (XML, PMML)
FILE_TYPES = sorted({export.media_type for export in espalier.EXPORTS.values()})
TREE_TEXTS: Mapping[str, tuple[Callable[..., str], str]] = {
    "text": (espalier.to_text, TEXT),
    "mermaid": (espalier.to_mermaid, TEXT),
    "dot": (espalier.to_dot, DOT),
}
MAX_NODES = 20_000  # of a tree as text or diagram; deeper levels are folded
MAX_COLUMN_NODES = 200_000
NO_TRACE = "only a pruning, or a training that ends with pruning, leaves a trace; an imported document has none"


@models.get("/v1/models", scope=Scope.READ, query=PageQuery, shows=page_of(schemas.Model))
def list_models(query: dict[str, Any]) -> Response:
    """List models, newest first."""
    with read_session(current_service().sessions) as session:
        page = repository.list_models(session, names=current_caller().models, **query)
        return responses.page_response(page, MODEL_SCHEMA)


@models.get(MODEL, scope=Scope.READ, shows=schemas.Model)
def get_model(name: str) -> Response:
    """Return a model."""
    with read_session(current_service().sessions) as session:
        return etags.tagged_response(MODEL_SCHEMA.dump(repository.find_model(session, name)))


@models.get(f"{MODEL}/versions", scope=Scope.READ, query=PageQuery, shows=page_of(schemas.Version))
def list_versions(query: dict[str, Any], name: str) -> Response:
    """List the versions of a model, newest first."""
    with read_session(current_service().sessions) as session:
        return responses.page_response(repository.list_versions(session, name, **query), VERSION_SCHEMA)


@models.post(
    f"{MODEL}/versions", scope=Scope.TRAIN, query=schemas.ImportQuery, body=schemas.DOCUMENT_REQUEST, creates=True
)
@models.response(201, schemas.Version, headers=LOCATION)
def import_version(query: dict[str, Any], name: str) -> Response:
    """Import a model document, as returned by `GET …/document`, or a PMML document, as a new version.

    The model is created if necessary. A version from a model document predicts the same; if the document is unchanged,
    so is its SHA-256. PMML of another system is accepted only if the version predicts exactly the same; the version's
    document names the system. An imported version has no data set: methods that need training rows cannot prune it.
    """
    new = _read_document(name, query["missing"])
    with current_service().changing_versions() as session:
        shown = VERSION_SCHEMA.dump(repository.add_version(session, new))
        return remember(session, responses.created_response(shown, f"/v1/models/{name}/versions/{shown['version']}"))


@models.get(VERSION, scope=Scope.READ, shows=schemas.Version)
def get_version(name: str, number: int) -> Response:
    """Return a version: how it was made, and its figures."""
    with read_session(current_service().sessions) as session:
        return etags.tagged_response(VERSION_SCHEMA.dump(repository.find_version(session, name, number)))


@models.get(
    f"{VERSION}/tree",
    scope=Scope.READ,
    query=schemas.TreeQuery,
    shows=schemas.TREE,
    description="The tree",
    texts=(TEXT, DOT, SVG),
)
def get_tree(query: dict[str, Any], name: str, number: int) -> Response:
    """Return the tree of a version, or a part of it.

    The format is json (columns), text (lines), mermaid or dot (diagrams), or svg (a picture). In a large tree, lower
    levels are folded and their leaves counted, except in json. A list of rules is refused, and so are json with more
    than 200 000 nodes and svg with more than 4 000 boxes.
    """
    model = _model(name, number)
    if isinstance(model.body, espalier.RuleList):
        raise espalier.NotApplicable("this version is a list of rules and has no tree: get its rules, or its parent")
    part: dict[str, Any] = {"node": query["node"], "depth": query["depth"]}
    if query["format"] == "json":
        return etags.tagged_response(espalier.to_columns(model, **part, most_nodes=MAX_COLUMN_NODES))
    if query["format"] == "svg":
        return responses.svg_response(espalier.to_svg(model, **part))
    render, media_type = TREE_TEXTS[query["format"]]
    return etags.tagged_bytes(render(model, **part, most_nodes=MAX_NODES), media_type)


@models.get(
    f"{VERSION}/rules", scope=Scope.READ, query=schemas.RulesQuery, shows=OBJECT, description="The rules", texts=(TEXT,)
)
def get_rules(query: dict[str, Any], name: str, number: int) -> Response:
    """Return a version's rules as json, text (sentences) or logic. A tree has a rule per leaf that rows can reach.

    With `class`, return the condition under which a row gets this class. In json, `any_of` lists the conjunctions for
    this class, and `none_of` those for other classes. `class` is refused for a regression and an ordered list of rules.
    More than 10 000 rules or leaves are refused, and so are tests that together list more than 2 000 000 categories.
    """
    model, form, label = _model(name, number), query["format"], query["label"]
    usecases.check_rules(model)
    if form == "json":
        described = espalier.rules_to_dict(model) if label is None else espalier.class_dnf(model, label).to_dict()
        return etags.tagged_response(described)
    if form == "logic":
        text = espalier.to_logic(model, label)
    elif label is None:
        text = espalier.to_text(espalier.extract_rules(model))
    else:
        text = "".join(f"{each}\n" for each in espalier.class_sentences(model, label))
    return etags.tagged_bytes(text, TEXT)


@models.get(f"{VERSION}/importances", scope=Scope.READ, shows=schemas.Importances, refuses=(422,))
def get_importances(name: str, number: int) -> Response:
    """Return the importance of each attribute: its share of the total gain of the tests.

    A gain is weighted by the rows of its node, except with chi_square. The most important attribute comes first, equal
    ones in the order of the columns. A list of rules is refused, and so is a tree whose document lacks a gain.
    """
    shares = espalier.attribute_importances(_model(name, number))
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    return etags.tagged_response({"attributes": [{"attribute": name, "importance": share} for name, share in ordered]})


@models.get(
    f"{VERSION}/document", scope=Scope.READ, shows=OBJECT, description="The whole model; the same bytes each time"
)
def get_document(name: str, number: int) -> Response:
    """Return the model document, which the Python package and the command line read, too."""
    with read_session(current_service().sessions) as session:
        return etags.tagged_bytes(repository.find_version(session, name, number).document, JSON)


@models.get(
    f"{VERSION}/export",
    scope=Scope.READ,
    query=schemas.ExportQuery,
    shows=schemas.ExportFormats,
    description="The formats, or with `format` the file",
    texts=FILE_TYPES,
)
def export_version(query: dict[str, Any], name: str, number: int) -> Response:
    """Return a version as a file for another system, which then predicts the same.

    Without `format`, return the list of formats; `obstacle` says why a format cannot express this version exactly. The
    operating point of the model's settings is left out. An SQL query predicts the rows of the table `rows`. The file is
    an attachment with the media type of its format. More than 10 000 rules, or tests that together list more than
    2 000 000 categories, are refused: the command line exports larger versions.
    """
    model, form = _model(name, number), query["format"]
    usecases.check_rules(model, exported=True)
    if form is not None:
        content, export = espalier.export_model(model, form, missing=query["missing"]), espalier.EXPORTS[form]
        response = etags.tagged_bytes(content, export.media_type)
        response.headers.set("Content-Disposition", "attachment", filename=f"{name}-{number}.{export.ending}")
        return response
    reasons = espalier.applicable_exports(model, missing=query["missing"])
    formats = [
        {"format": form, "meaning": each.meaning, "ending": each.ending, "obstacle": reasons[form]}
        for form, each in espalier.EXPORTS.items()
    ]
    return etags.tagged_response({"formats": formats})


@models.get(f"{VERSION}/schema", scope=Scope.READ, shows=OBJECT, description="The JSON Schema (2020-12) of a row")
def get_schema(name: str, number: int) -> Response:
    """Return the JSON Schema of the rows that this version predicts."""
    return etags.tagged_response(row_schema(_model(name, number).schema, title=f"a row for {name}, version {number}"))


@models.get(f"{VERSION}/pruning", scope=Scope.READ, shows=OBJECT, description="The trace")
def get_pruning(name: str, number: int) -> Response:
    """Return the trace of the pruning that made this version, step by step."""
    with read_session(current_service().sessions) as session:
        trace = repository.find_version(session, name, number).trace
    if trace is None:
        raise NotFound("pruning of", f"{name}/{number}", why=NO_TRACE)
    return etags.tagged_response(trace)


@settings.patch(MODEL, scope=Scope.ADMIN, body=schemas.ModelChange, guarded=True)
@settings.response(200, schemas.Model, headers=ETAG)
def change_model(changes: dict[str, Any], name: str) -> Response:
    """Change the settings of a model: description, tags, mask, retention, operating point.

    A mask applies in every process within a second. Workers delete decisions older than `retention_days`.
    """
    with current_service().changing_versions() as session:
        _refuse_if_changed(session, name)
        model = usecases.change_settings(session, current_service().models, name, changes)
        return etags.changed_response(MODEL_SCHEMA.dump(model))


@settings.post(f"{VERSION}/archive", scope=Scope.TRAIN, refuses=(409,))
@settings.response(200, schemas.Version)
def archive_version(name: str, number: int) -> Response:
    """Archive a version: within a second it predicts only in unfinished jobs; its decisions can still be explained.

    Refused while an alias points at it. Archiving again changes nothing. To undo it, import the document as a version.
    """
    with current_service().changing_versions() as session:
        return responses.json_response(VERSION_SCHEMA.dump(usecases.archive_version(session, name, number)))


@settings.delete(VERSION, scope=Scope.TRAIN, refuses=(409,), guarded=True)
@settings.response(204, description="The version is deleted")
def delete_version(name: str, number: int) -> Response:
    """Delete a version.

    Refused if a decision, an unfinished job or a pruned version refers to it, or if an alias points or pointed at it.
    """
    with current_service().changing_versions() as session:
        _refuse_if_changed(session, name, number)
        usecases.delete_version(session, name, number)
        return Response(status=204)


@settings.delete(MODEL, scope=Scope.TRAIN, refuses=(409,), guarded=True)
@settings.response(204, description="The model is deleted")
def delete_model(name: str) -> Response:
    """Delete a model with its versions and aliases; refused while it has decisions or unfinished jobs."""
    with current_service().changing_versions() as session:
        _refuse_if_changed(session, name)
        usecases.delete_model(session, name)
        return Response(status=204)


@aliases.get(f"{MODEL}/aliases", scope=Scope.READ, query=schemas.AliasesQuery, shows=page_of(schemas.AliasEvent))
def list_aliases(query: dict[str, Any], name: str) -> Response:
    """List the aliases of a model, sorted by name, each with its latest change."""
    with read_session(current_service().sessions) as session:
        return responses.page_response(alias_events.list_current(session, name, **query), EVENT_SCHEMA)


@aliases.put(ALIAS, scope=Scope.TRAIN, body=schemas.AliasRequest, refuses=(409,))
@aliases.response(200, schemas.AliasEvent)
def point_alias(body: dict[str, Any], name: str, alias: str) -> Response:
    """Point an alias at a version; with `if_current`, only if it points at version `if_current` now (null: at none)."""
    with current_service().changing_versions() as session:
        event = alias_events.point(session, name, alias, **body, key_id=current_caller().key_id)
        return responses.json_response(EVENT_SCHEMA.dump(event))


@aliases.get(f"{ALIAS}/history", scope=Scope.READ, query=schemas.AliasQuery, shows=page_of(schemas.AliasEvent))
def get_alias_history(query: dict[str, Any], name: str, alias: str) -> Response:
    """List the changes of an alias, newest first; with `at`, only the one that was in force at that time."""
    with read_session(current_service().sessions) as session:
        return responses.page_response(alias_events.history(session, name, alias, **query), EVENT_SCHEMA)


@aliases.post(f"{ALIAS}/rollback", scope=Scope.TRAIN, creates=True)
@aliases.response(200, schemas.AliasEvent)
def roll_alias_back(name: str, alias: str) -> Response:
    """Point an alias back at its previous version; a second rollback goes back one more step."""
    with current_service().changing_versions() as session:
        event = alias_events.roll_back(session, name, alias, key_id=current_caller().key_id)
        return remember(session, responses.json_response(EVENT_SCHEMA.dump(event)))


def _read_document(name: str, missing: str | None) -> repository.NewVersion:
    body, settings = read_bytes(request, kinds=(JSON, *PMML_TYPES)), current_service().settings
    try:
        if request.mimetype in PMML_TYPES:
            model = espalier.from_pmml(body, missing=missing)
        elif missing is None:
            model = espalier.from_json(body)
        else:
            raise ValidationFailed([espalier.Fault("/missing", "not_legal", "is for PMML only")])
    except espalier.DocumentError as error:
        if error.faults[0].code in ("not_json", "not_xml"):
            raise BadRequest(f"the body is {error.faults[0].message}") from None
        raise
    return usecases.new_version(model, name=name, settings=settings)


def _model(name: str, number: int) -> espalier.Model:
    with read_session(current_service().sessions) as session:
        version = repository.find_version(session, name, number)
        return current_service().models.get(session, version.id).model


def _refuse_if_changed(session: Session, name: str, number: int | None = None) -> None:
    def shown() -> object:
        model = repository.find_model(session, name, lock=True)  # this lock guards the versions of the model, too
        if number is None:
            return MODEL_SCHEMA.dump(model)
        return VERSION_SCHEMA.dump(repository.find_version(session, name, number))

    etags.refuse_if_changed(shown)
