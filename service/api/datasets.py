"""Data sets: upload, list, read, redeclare, delete."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flask import Request, Response, request
from sqlalchemy.orm import Session
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

import espalier
from espalier import Fault
from service.api.blueprint import ETAG, LOCATION, Blueprint
from service.api.context import current_service
from service.api.etags import changed_response, refuse_if_changed, tagged_response
from service.api.idempotency import remember
from service.api.request_bodies import open_body, open_file, open_parts, peek_json
from service.api.responses import created_response, page_response
from service.api.routing import DATA_SET
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import ValidationFailed, check_size, relocate
from service.repositories import datasets as repository
from service.repositories.datasets import NewDataSet
from service.schemas import datasets as schemas
from service.schemas.fields import PageQuery, page_of
from service.serialization.media_types import JSON, MULTIPART, TABLES
from service.usecases import datasets as usecases
from service.usecases.datasets import profile_data_set, read_upload, redeclared_data_set, registered_data_set

data_sets = Blueprint("data sets", __name__, description="Tables to learn from")

DATA_SET_SCHEMA = schemas.DataSet()
REFERENCE = "reference"  # the format of a body that names files below the store


@data_sets.post(
    "/v1/datasets", scope=Scope.TRAIN, query=schemas.DataSetQuery, body=schemas.DATA_SET_REQUEST, creates=True
)
@data_sets.response(201, schemas.DataSet, headers=LOCATION)
def upload_data_set(query: dict[str, Any]) -> Response:
    """Upload a data set.

    The table is CSV (UTF-8, commas, header line), JSON rows or columns, NDJSON, Parquet, Arrow or ARFF. Send it as the
    body or as the part `file` of a form; both may be gzipped. If the format gives no kind to a column and you
    declare none, the kind is inferred: boolean for true and false, numeric for numbers, nominal for other texts. The
    numbers of a target are classes if they are whole and at most 20 of them are distinct.

    Instead of a table, a JSON body may have a `reference`: the path of a Parquet file, or of a folder of Parquet files,
    below `ESPALIER_STORE`. The service stores no copy of such rows. It reads them now, and again for each use.
    """
    repository.check_data_set_name(query["name"])
    with _read(query) as new, transaction(current_service().sessions) as session:
        shown = DATA_SET_SCHEMA.dump(repository.add_data_set(session, name=query["name"], new=new))
        return remember(session, created_response(shown, f"/v1/datasets/{shown['id']}"))


@data_sets.get("/v1/datasets", scope=Scope.READ, query=PageQuery, shows=page_of(schemas.DataSet))
def list_data_sets(query: dict[str, Any]) -> Response:
    """List data sets, newest first. If they have very many categories, a page may have fewer than `limit` items."""
    with read_session(current_service().sessions) as session:
        return page_response(repository.list_data_sets(session, **query), DATA_SET_SCHEMA)


@data_sets.get(DATA_SET, scope=Scope.READ, shows=schemas.DataSet)
def get_data_set(data_set_id: str) -> Response:
    """Return a data set."""
    with read_session(current_service().sessions) as session:
        return tagged_response(DATA_SET_SCHEMA.dump(repository.find_data_set(session, data_set_id)))


@data_sets.get(f"{DATA_SET}/rows", scope=Scope.READ, query=schemas.RowsQuery, shows=schemas.RowPage, refuses=(409,))
def get_data_set_rows(query: dict[str, Any], data_set_id: str) -> Response:
    """Return rows of a data set in the order of the upload."""
    start, stop = query["cursor"], query["cursor"] + query["limit"]
    with read_session(current_service().sessions) as session:
        n_rows = repository.find_data_set(session, data_set_id).n_rows
        items = repository.load_rows(session, data_set_id, start=start, stop=stop)
    return tagged_response({"items": items, "next": stop if stop < n_rows else None})


@data_sets.get(
    f"{DATA_SET}/profile",
    scope=Scope.READ,
    query=schemas.ProfileQuery,
    shows=schemas.PROFILE,
    description="The profile",
    refuses=(409,),
)
def get_data_set_profile(query: dict[str, Any], data_set_id: str) -> Response:
    """Return how informative each attribute is about the target.

    A profile has counts, missing values, entropies, gain, gain ratio, decrease of Gini impurity or variance, and
    chi-square. A data set without a target is refused. If attributes, target and weights have over a million cells,
    only evenly spaced blocks of rows are read, and `sample` is the number of rows read; otherwise `sample` is null.
    """
    with read_session(current_service().sessions) as session:
        return tagged_response(profile_data_set(session, data_set_id, log_base=query["log_base"]))


@data_sets.patch(DATA_SET, scope=Scope.TRAIN, body=schemas.DataSetChange, refuses=(409,), guarded=True)
@data_sets.response(200, schemas.DataSet, headers=ETAG)
def redeclare_data_set(changes: dict[str, Any], data_set_id: str) -> Response:
    """Change the declaration of a data set: target, kinds, roles, order of categories, missing values.

    Refused if an unfinished job uses the data set, or a version was trained, pruned or evaluated on it.
    """
    service = current_service()
    redeclared = redeclared_data_set(service.sessions, data_set_id, changes, settings=service.settings)
    with redeclared as (new, was), transaction(service.sessions) as session:
        _refuse_if_changed(session, data_set_id)
        changed = usecases.redeclare_data_set(session, data_set_id, new=new, was=was)
        return changed_response(DATA_SET_SCHEMA.dump(changed))


@data_sets.delete(DATA_SET, scope=Scope.TRAIN, refuses=(409,), guarded=True)
@data_sets.response(204, description="The data set is deleted")
def delete_data_set(data_set_id: str) -> Response:
    """Delete a data set that no unfinished job uses, and that no version was trained, pruned or evaluated on."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, data_set_id)
        usecases.delete_data_set(session, data_set_id)
    return Response(status=204)


def _refuse_if_changed(session: Session, data_set_id: str) -> None:
    refuse_if_changed(lambda: DATA_SET_SCHEMA.dump(repository.find_data_set(session, data_set_id, lock=True)))


@contextmanager
def _read(query: Mapping[str, Any]) -> Iterator[NewDataSet]:
    settings = current_service().settings
    with _opened(request, limit=settings.max_upload_mb * 2**20) as (source, form, schema):
        declared = {name: query[name] or None for name in ("target", "task", "weight")}
        declared |= {"ignore": _split(query["ignore"]) or (), "missing_values": _split(query["missing_values"])}
        columns = schema.get("columns") if isinstance(schema, dict) else None
        check_size("columns", given=len(columns) if isinstance(columns, list) else 0, limit=settings.max_columns)
        try:
            if form == REFERENCE:
                yield registered_data_set(source, settings=settings, schema=schema, **declared)
                return
            with read_upload(source, form, settings=settings, declared={**declared, "schema": schema}) as new:
                yield new
        except espalier.SchemaError as error:
            if schema is None and form != "json":
                raise
            # A fault of a schema in the body gets a path below /schema; a fault of the query names the parameter.
            given = ("schema", *(name for name, value in declared.items() if value is not None))
            place = relocate("/schema", {f"/{name}": f"/{name}" for name in given})
            faults = [Fault(place(fault.path), fault.code, fault.message) for fault in error.faults]
            raise espalier.SchemaError(faults) from None
        except espalier.DataError as error:
            if error.faults[0].code == "not_json" and form == "json":
                raise BadRequest(f"the body is {error.faults[0].message}") from None
            raise


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


@contextmanager
def _opened(request: Request, *, limit: int) -> Iterator[tuple[Any, str, Any]]:
    """Yield the stream of a table (or its reference), the format, and the schema (None if not sent separately)."""
    stream = open_body(request, limit=limit)
    if request.mimetype == MULTIPART:
        with open_parts(request, stream, limit=limit) as (part, schema):
            yield *open_file(part), schema
    elif request.mimetype in TABLES:
        document, stream = peek_json(stream) if request.mimetype == JSON else (None, stream)
        if isinstance(document, dict) and "reference" in document:
            unknown = sorted(document.keys() - {"reference", "schema"})
            message = "must not be given beside a reference: only schema may"
            ValidationFailed.raise_for(Fault(f"/{name}", "unknown_field", message) for name in unknown)
            yield document["reference"], REFERENCE, document.get("schema")
        else:
            yield stream, TABLES[request.mimetype], None
    else:
        raise UnsupportedMediaType(f"the Content-Type must be {', '.join(TABLES)} or {MULTIPART}")
