"""Data sets over HTTP: upload, list, look at, declare anew, delete."""

from collections.abc import Mapping
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import BadRequest

import espalier
from service.api.blueprint import ETAG, Blueprint
from service.api.context import current_service
from service.api.idempotency import creating, remember
from service.api.responses import (
    changed_answer,
    has_condition,
    json_answer,
    page_answer,
    refuse_if_changed,
    tagged_answer,
)
from service.api.uploading import open_upload
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import Conflict
from service.repositories import catalog, storage
from service.schemas import datasets as schemas
from service.schemas.fields import PageQuery
from service.usecases import datasets as usecases
from service.usecases.datasets import NewDataSet
from service.usecases.schema_changes import redeclared
from service.usecases.uploads import read_upload

data_sets = Blueprint("data sets", __name__, description="Tables to learn from")

SHOWN = schemas.DataSet()
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "where the new data set is"}}
OUTSIDE = ("/target", "/task", "/missing_values", "/schema")  # places that are not within the part schema


@data_sets.post("/v1/datasets", scope=Scope.TRAIN, creates=True)
@data_sets.arguments(schemas.DataSetQuery, location="query")
@data_sets.response(201, schemas.DataSet, headers=LOCATION)
@data_sets.refuses(400, 413, 415, 422)
@data_sets.doc(requestBody=schemas.DATA_SET_REQUEST)
def upload_data_set(query: dict[str, Any]) -> Response:
    """Upload a data set.

    As CSV (UTF-8, commas, the first line holds the names), JSON rows or columns, NDJSON, Parquet, an Arrow stream or
    ARFF, as the body or as the part `file` of a form, each also packed by gzip. What is not declared is inferred:
    numbers are numeric, text is nominal, unless the format's own types say more.
    """
    new = _read(query)
    with creating() as session:
        shown = SHOWN.dump(usecases.upload_data_set(session, new))
        place = f"{request.root_path}/v1/datasets/{shown['id']}"
        return remember(session, json_answer(shown, status=201, headers={"Location": place}))


@data_sets.get("/v1/datasets", scope=Scope.READ)
@data_sets.arguments(PageQuery, location="query")
@data_sets.tagged(schemas.DataSetPage)
@data_sets.refuses(422)
def list_data_sets(query: dict[str, Any]) -> Response:
    """List data sets, newest first."""
    with read_session(current_service().sessions) as session:
        return page_answer(catalog.list_data_sets(session, **query), SHOWN)


@data_sets.get("/v1/datasets/<id:data_set_id>", scope=Scope.READ)
@data_sets.tagged(schemas.DataSet)
@data_sets.refuses(404)
def get_data_set(data_set_id: str) -> Response:
    """Look at a data set."""
    with read_session(current_service().sessions) as session:
        return tagged_answer(SHOWN.dump(catalog.find_data_set(session, data_set_id)))


@data_sets.get("/v1/datasets/<id:data_set_id>/rows", scope=Scope.READ)
@data_sets.arguments(schemas.RowsQuery, location="query")
@data_sets.tagged(schemas.RowPage)
@data_sets.refuses(404, 422)
def get_data_set_rows(query: dict[str, Any], data_set_id: str) -> Response:
    """Look at some rows of a data set, in the order of the upload."""
    start, stop = query["cursor"], query["cursor"] + query["limit"]
    with read_session(current_service().sessions) as session:
        n_rows = catalog.find_data_set(session, data_set_id).n_rows
        items = storage.rows(session, data_set_id, start=start, stop=stop)
    return tagged_answer({"items": items, "next": stop if stop < n_rows else None})


@data_sets.get("/v1/datasets/<id:data_set_id>/profile", scope=Scope.READ)
@data_sets.arguments(schemas.ProfileQuery, location="query")
@data_sets.tagged({"type": "object"}, description="The profile")
@data_sets.refuses(404, 409, 422)
def get_data_set_profile(query: dict[str, Any], data_set_id: str) -> Response:
    """Look at how much each attribute says of the target: counts, missing values, entropies, gain, gain ratio.

    Gini or variance decrease and chi-square besides. A data set without a target has no profile.
    """
    with read_session(current_service().sessions) as session:
        dataset = storage.load(session, data_set_id)
    if dataset.schema.target is None:
        raise Conflict("the data set declares no target, of which its attributes could say something: declare one")
    return tagged_answer(espalier.profile(dataset, log_base=query["log_base"]).to_dict())


@data_sets.patch("/v1/datasets/<id:data_set_id>", scope=Scope.TRAIN)
@data_sets.arguments(schemas.DataSetChange)
@data_sets.response(200, schemas.DataSet, headers=ETAG)
@data_sets.refuses(400, 404, 409, 413, 415, 422)
@data_sets.guarded
def redeclare_data_set(changes: dict[str, Any], data_set_id: str) -> Response:
    """Declare the same rows anew: target, kinds, roles, order of categories, missing values.

    Refused while an unfinished job uses the data set, and once a version was trained on it.
    """
    service = current_service()
    with read_session(service.sessions) as session:
        row = catalog.find_data_set(session, data_set_id)
        dataset = storage.load(session, data_set_id)
    new = NewDataSet.of(redeclared(dataset, changes), name=row.name, settings=service.settings)
    with transaction(service.sessions) as session:
        _refuse_if_changed(session, data_set_id)
        changed = usecases.redeclare_data_set(session, data_set_id, new, was=row.fingerprint)
        return changed_answer(SHOWN.dump(changed))


@data_sets.delete("/v1/datasets/<id:data_set_id>", scope=Scope.TRAIN)
@data_sets.response(204, description="It is gone")
@data_sets.refuses(404, 409)
@data_sets.guarded
def delete_data_set(data_set_id: str) -> Response:
    """Delete a data set that no unfinished job uses and no version was trained on."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, data_set_id)
        catalog.delete_data_set(session, data_set_id)
    return Response(status=204)


def _refuse_if_changed(session: Session, data_set_id: str) -> None:
    """Refuse where a data set is not as the caller has seen it.

    Raises:
        NotFound: There is none.
        PreconditionFailed: It is another by now.
    """
    if has_condition():
        refuse_if_changed(SHOWN.dump(catalog.lock_data_set(session, data_set_id)))


def _read(query: Mapping[str, Any]) -> NewDataSet:
    settings = current_service().settings
    catalog.check_data_set_name(query["name"])
    with open_upload(request, limit=settings.max_upload_mb * 2**20) as upload:
        declared = {
            "target": query["target"] or None,
            "task": query["task"],
            "weight": query["weight"] or None,
            "ignore": _listed(query["ignore"]) or (),
            "missing_values": _listed(query["missing_values"]),
            "schema": upload.schema,
        }
        try:
            packed = read_upload(upload.stream, upload.form, settings=settings, declared=declared)
        except espalier.SchemaError as error:
            raise error if upload.schema is None else _in_schema(error) from None
        except espalier.DataError as error:
            if error.faults[0].code == "not_json" and upload.form == "json":
                raise BadRequest(f"the body is {error.faults[0].message}") from None
            raise
    return NewDataSet(query["name"], packed)


def _in_schema(error: espalier.SchemaError) -> espalier.SchemaError:
    """Say that the faults sit in the part of the body that declares; those of the query keep their place."""
    return espalier.SchemaError(
        fault if fault.path.startswith(OUTSIDE) else espalier.Fault("/schema" + fault.path, fault.code, fault.message)
        for fault in error.faults
    )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
