"""Data sets over HTTP: upload, list, look at, declare anew, delete."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import orjson
from flask import Request, Response, request
from sqlalchemy.orm import Session
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.formparser import MultiPartParser
from werkzeug.wsgi import LimitedStream, get_input_stream

import espalier
from espalier import Fault
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
from service.database.engine import read_session, transaction
from service.database.tables import Scope
from service.errors import ValidationFailed
from service.repositories import datasets as repository
from service.repositories.datasets import NewDataSet
from service.schemas import datasets as schemas
from service.schemas.fields import PageQuery
from service.usecases.datasets import profile_data_set, redeclared_data_set
from service.usecases.uploads import read_upload

data_sets = Blueprint("data sets", __name__, description="Tables to learn from")

SHOWN = schemas.DataSet()
LOCATION = {"Location": {"schema": {"type": "string"}, "description": "where the new data set is"}}
CONTENT_TYPES: Mapping[str, str] = {
    "text/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/vnd.apache.parquet": "parquet",
    "application/vnd.apache.arrow.stream": "arrow",
    "text/x-arff": "arff",
}
"""Content type -> the core's name of the format."""
MULTIPART = "multipart/form-data"
ENCODINGS = ("identity", "gzip")
GZIP_MAGIC = b"\x1f\x8b"
MAX_PARTS = 8
MAX_SCHEMA_BYTES = 16 * 2**20
PARTS = "legal: file, and schema if the columns are declared"
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
    repository.check_data_set_name(query["name"])
    with _read(query) as new, creating() as session:
        shown = SHOWN.dump(repository.add_data_set(session, name=query["name"], new=new))
        place = f"{request.root_path}/v1/datasets/{shown['id']}"
        return remember(session, json_answer(shown, status=201, headers={"Location": place}))


@data_sets.get("/v1/datasets", scope=Scope.READ)
@data_sets.arguments(PageQuery, location="query")
@data_sets.tagged(schemas.DataSetPage)
@data_sets.refuses(422)
def list_data_sets(query: dict[str, Any]) -> Response:
    """List data sets, newest first."""
    with read_session(current_service().sessions) as session:
        return page_answer(repository.list_data_sets(session, **query), SHOWN)


@data_sets.get("/v1/datasets/<id:data_set_id>", scope=Scope.READ)
@data_sets.tagged(schemas.DataSet)
@data_sets.refuses(404)
def get_data_set(data_set_id: str) -> Response:
    """Look at a data set."""
    with read_session(current_service().sessions) as session:
        return tagged_answer(SHOWN.dump(repository.find_data_set(session, data_set_id)))


@data_sets.get("/v1/datasets/<id:data_set_id>/rows", scope=Scope.READ)
@data_sets.arguments(schemas.RowsQuery, location="query")
@data_sets.tagged(schemas.RowPage)
@data_sets.refuses(404, 422)
def get_data_set_rows(query: dict[str, Any], data_set_id: str) -> Response:
    """Look at some rows of a data set, in the order of the upload."""
    start, stop = query["cursor"], query["cursor"] + query["limit"]
    with read_session(current_service().sessions) as session:
        n_rows = repository.find_data_set(session, data_set_id).n_rows
        items = repository.load_rows(session, data_set_id, start=start, stop=stop)
    return tagged_answer({"items": items, "next": stop if stop < n_rows else None})


@data_sets.get("/v1/datasets/<id:data_set_id>/profile", scope=Scope.READ)
@data_sets.arguments(schemas.ProfileQuery, location="query")
@data_sets.tagged(schemas.PROFILE, description="The profile")
@data_sets.refuses(404, 409, 422)
def get_data_set_profile(query: dict[str, Any], data_set_id: str) -> Response:
    """Look at how much each attribute says of the target: counts, missing values, entropies, gain, gain ratio.

    Gini or variance decrease and chi-square besides. A data set without a target has no profile. Of a data set with
    more than a million cells about as many are read: rows spread evenly over it, and `sample` says how many.
    """
    with read_session(current_service().sessions) as session:
        return tagged_answer(profile_data_set(session, data_set_id, log_base=query["log_base"]))


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
    redeclared = redeclared_data_set(service.sessions, data_set_id, changes, settings=service.settings)
    with redeclared as (new, was), transaction(service.sessions) as session:
        _refuse_if_changed(session, data_set_id)
        return changed_answer(SHOWN.dump(repository.redeclare_data_set(session, data_set_id, new=new, was=was)))


@data_sets.delete("/v1/datasets/<id:data_set_id>", scope=Scope.TRAIN)
@data_sets.response(204, description="It is gone")
@data_sets.refuses(404, 409)
@data_sets.guarded
def delete_data_set(data_set_id: str) -> Response:
    """Delete a data set that no unfinished job uses and no version was trained on."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, data_set_id)
        repository.delete_data_set(session, data_set_id)
    return Response(status=204)


def _refuse_if_changed(session: Session, data_set_id: str) -> None:
    """Refuse where a data set is not as the caller has seen it.

    Raises:
        NotFound: There is none.
        PreconditionFailed: It is another by now.
    """
    if has_condition():
        refuse_if_changed(SHOWN.dump(repository.lock_data_set(session, data_set_id)))


@contextmanager
def _read(query: Mapping[str, Any]) -> Iterator[NewDataSet]:
    """Read the body of the current request into a data set to be stored.

    Raises:
        UnsupportedMediaType: Another content type or Content-Encoding.
        RequestEntityTooLarge: The body is longer than the limit.
        BadRequest: The body is shorter than announced, or not JSON or multipart where it should be.
        ValidationFailed: A part of a multipart body is missing, or there is one too many.
        espalier.InvalidInput: It is no table, or the declaration is wrong.
    """
    settings = current_service().settings
    with _opened(request, limit=settings.max_upload_mb * 2**20) as (stream, form, schema):
        declared = {
            "target": query["target"] or None,
            "task": query["task"],
            "weight": query["weight"] or None,
            "ignore": _listed(query["ignore"]) or (),
            "missing_values": _listed(query["missing_values"]),
            "schema": schema,
        }
        try:
            with read_upload(stream, form, settings=settings, declared=declared) as new:
                yield new
        except espalier.SchemaError as error:
            raise error if schema is None else _in_schema(error) from None
        except espalier.DataError as error:
            if error.faults[0].code == "not_json" and form == "json":
                raise BadRequest(f"the body is {error.faults[0].message}") from None
            raise


def _in_schema(error: espalier.SchemaError) -> espalier.SchemaError:
    """Place the faults in the part `schema` of the body; those of the query keep their place."""
    return espalier.SchemaError(
        fault if fault.path.startswith(OUTSIDE) else espalier.Fault("/schema" + fault.path, fault.code, fault.message)
        for fault in error.faults
    )


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


# --- the body of an upload


@contextmanager
def _opened(request: Request, *, limit: int) -> Iterator[tuple[espalier.ByteStream, str, Any]]:
    """Open a body that is a data set: give its bytes, unpacked as they are read, its format and its schema, if any."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ENCODINGS:
        raise UnsupportedMediaType(f"the Content-Encoding must be {' or '.join(ENCODINGS)}")
    stream = _body(request, limit=limit)
    if encoding == "gzip":
        stream = espalier.unpacked(stream)
    if request.mimetype == MULTIPART:
        with _parts(request, stream, limit=limit) as (part, schema):
            yield *_of_part(part), schema
    elif request.mimetype in CONTENT_TYPES:
        yield stream, CONTENT_TYPES[request.mimetype], None
    else:
        raise UnsupportedMediaType(f"the Content-Type must be {', '.join(CONTENT_TYPES)} or {MULTIPART}")


def _body(request: Request, *, limit: int) -> espalier.ByteStream:
    """Return the bytes of a request as they come; one that ends before its announced length is refused."""
    length = request.content_length
    if length is not None and length > limit:
        raise RequestEntityTooLarge
    stream = get_input_stream(request.environ)
    return cast(espalier.ByteStream, LimitedStream(stream, limit if length is None else length, is_max=length is None))


@contextmanager
def _parts(request: Request, stream: Any, *, limit: int) -> Iterator[tuple[FileStorage, Any]]:
    """Read the parts of a multipart body: the file and the schema, if there is one."""
    parser = MultiPartParser(max_form_memory_size=MAX_SCHEMA_BYTES, max_form_parts=MAX_PARTS)
    try:
        boundary = request.mimetype_params.get("boundary", "").encode("ascii")
        if not boundary:
            raise BadRequest("a multipart body needs its boundary in the Content-Type")
        fields, files = parser.parse(cast(Any, LimitedStream(stream, limit, is_max=True)), boundary, None)
    except ValueError:
        raise BadRequest("the body is not well-formed multipart/form-data") from None
    try:
        unknown = {*fields, *files} - {"file", "schema"}
        if unknown or len(files.getlist("file")) != 1 or "file" in fields:
            places = [f"/{name}" for name in sorted(unknown)] or ["/file"]
            code = "unknown_field" if unknown else "required"
            raise ValidationFailed([Fault(place, code, PARTS) for place in places])
        schema = files["schema"].stream.read() if "schema" in files else fields.get("schema")
        yield files["file"], _schema(schema)
    finally:
        for _, file in files.items(multi=True):
            file.close()


def _of_part(part: FileStorage) -> tuple[espalier.ByteStream, str]:
    """Return the bytes of a file, unpacked, and its format by the ending of its name, else by its content type."""
    try:
        form = espalier.format_of(part.filename or "")
    except espalier.DataError:
        form = CONTENT_TYPES.get(part.mimetype, "")
    if not form:
        endings = ", ".join(ending for known in espalier.FORMATS.values() for ending in known.endings)
        legal = f"{endings}, also with .gz, or its Content-Type be {', '.join(CONTENT_TYPES)}"
        raise ValidationFailed([Fault("/file", "unknown_format", f"the file's name must end in {legal}")])
    is_packed = part.stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    part.stream.seek(0)
    return espalier.unpacked(part.stream) if is_packed else part.stream, form


def _schema(text: str | bytes | None) -> Any:
    if text is None or not text.strip():
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the part schema is not JSON: {error}") from None
