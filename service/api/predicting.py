"""Rows in a JSON body: read, answered, logged and written. Without a word of Flask: both ways in end here."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

import espalier
from espalier import Fault
from service.api.context import Service
from service.api.recording import PredictionContext, record_answers
from service.api.requests import decoded
from service.errors import ValidationFailed
from service.repositories import decisions, models
from service.schemas.predictions import OPTION_NAMES, read_options
from service.serialization.answer_rows import TableBatch, json_items
from service.serialization.json_columns import MANY_ROWS, table_of
from service.usecases import prediction_streams, predictions, refusals
from service.usecases.limits import check_size
from service.usecases.version_resolver import ResolvedVersion

FIELDS = frozenset({"rows", "columns", *OPTION_NAMES})


def answer_body(inquiry: PredictionContext, content: bytes | bytearray) -> bytes:
    """Answer a prediction request as it came and log the decisions; give the answer as JSON.

    What is to answer is looked for once the request is known to be well-formed.

    Raises:
        BadRequest: It is not JSON.
        ValidationFailed: The request is not valid; every fault.
        espalier.RowError: Rows that the model cannot take; every fault, by its place in the body.
        espalier.TooLarge: More rows, longer texts or more explanation than the settings allow.
        NotFound: As `find`.
        Conflict: As `find`, or the version that answered was deleted meanwhile.
        LimitExceeded: The log takes no more decisions.
        Unavailable: The database cannot be reached or written now.
    """
    return _rows_answered(inquiry, decoded(content))


def _takes_tables(inquiry: PredictionContext) -> bool:
    """Whether rows may be answered and logged as one table."""
    return inquiry.service.settings.decisions != "best_effort"


def _rows_answered(inquiry: PredictionContext, body: object) -> bytes:
    service, settings = inquiry.service, inquiry.service.settings
    asked = _read(body, limit=settings.max_predict_rows)
    predictions.check_cells(asked.rows, limit=settings.max_cell_chars)
    answering = inquiry.find()
    version = answering.version
    for check in (predictions.check_explaining, predictions.check_paths):
        check(version.model, len(asked.rows), explain=asked.explain, limit=settings.max_full_nodes)
    if asked.are_many and _takes_tables(inquiry):
        found = _as_table(version, asked)
        if found is not None:
            return _table_answered(inquiry, answering, asked, *found)()
    record = partial(record_answers, inquiry, answering, asked.rows, missing=asked.missing, subject=asked.subject)
    try:
        answered = _answered(version, asked, limit=settings.max_full_nodes)
    except (espalier.RowError, ValidationFailed) as error:
        record(refusals.failed(len(asked.rows), error, place=asked.place))
        raise _placed(error, asked) if isinstance(error, espalier.RowError) else error from None
    ids = record(answered)
    answers = [{"decision_id": key or None, **answer} for key, answer in zip(ids, answered.answers, strict=True)]
    return orjson.dumps({**_head(service, answering), "predictions": answers}, option=orjson.OPT_NON_STR_KEYS)


def _head(service: Service, answering: ResolvedVersion) -> dict[str, Any]:
    """Give what an answer says before its predictions."""
    return {
        "model": answering.version.model_name,
        "version": answering.version.number,
        "operating_point": answering.settings.operating_point,
        **service.audited,
    }


def _as_table(version: models.LoadedVersion, asked: "Asked") -> tuple[espalier.Model, espalier.Dataset] | None:
    """Give the model, as it takes missing values, and the rows as a table; None where they are answered one by one."""
    table = table_of(version.model, asked.rows)
    try:
        return None if table is None else (predictions.reading_of(version, asked.missing), table)
    except ValidationFailed:  # which goes into the log on the other way
        return None


def _table_answered(
    inquiry: PredictionContext,
    answering: ResolvedVersion,
    asked: "Asked",
    model: espalier.Model,
    table: espalier.Dataset,
) -> Callable[[], bytes]:
    """Answer rows as the table that they are; give what logs them, and gives the answer as JSON."""
    service, version = inquiry.service, answering.version
    wanted = prediction_streams.Asked(
        version=version,
        model=model,
        alias=answering.alias,
        model_settings=answering.settings,
        explain=asked.explain,
        missing=asked.missing,
        skip=asked.skip,
        subject=asked.subject,
        key_id=inquiry.key_id,
        settings=service.settings,
        count=service.counting(version),
    )
    rows = prediction_streams.packed_answers(wanted, table)
    entry = None
    if service.settings.decisions != "off":
        milliseconds = (time.perf_counter() - inquiry.began) * 1000
        entry = decisions.table_record(
            wanted.origin, n_rows=rows.n_rows, content=rows.to_bytes(), milliseconds=milliseconds
        )
    batch = TableBatch(0, "" if entry is None else entry["id"], rows)
    head = orjson.dumps(_head(service, answering), option=orjson.OPT_NON_STR_KEYS)
    items = json_items(batch)
    content = b"".join((head[:-1], b',"predictions":[', items, b"]}"))

    def logged() -> bytes:
        if entry is not None:
            service.log.append(entry)
        prediction_streams.count_answers(wanted, rows)
        return content

    return logged


@dataclass(frozen=True, slots=True)
class Asked:
    """A prediction request, read."""

    rows: list[Mapping[str, Any]]
    by_column: bool
    explain: str
    missing: str | None
    skip: bool
    subject: str | None

    @property
    def are_many(self) -> bool:
        """Whether so many rows are asked for so little that they are worth a look as a table."""
        return len(self.rows) >= MANY_ROWS and self.explain == "none"

    def place(self, row: int, path: str) -> str:
        """Give the place in the body of what is at `path` within a row: below /rows, or turned round below /columns."""
        if not self.by_column:
            return f"/rows/{row}{path}"
        return f"/columns{path}/{row}" if path else "/columns"


def _answered(version: models.LoadedVersion, asked: Asked, *, limit: int) -> predictions.PredictionResults:
    if asked.skip:
        return predictions.predict_each(
            version, asked.rows, explain=asked.explain, missing=asked.missing, place=asked.place, limit=limit
        )
    return predictions.predict(version, asked.rows, explain=asked.explain, missing=asked.missing, limit=limit)


def _read(body: object, *, limit: int) -> Asked:
    """Check the frame of a request; what the rows hold is checked by the model.

    Raises:
        ValidationFailed: Every fault, by its place.
        espalier.TooLarge: More rows than one request may have.
    """
    if not isinstance(body, dict):
        raise ValidationFailed([Fault("", "wrong_type", 'must be {"rows": [{…}, …], "explain": "path"}')])
    faults: list[Fault] = []
    options = read_options(body, beside=("rows", "columns"), faults=faults)
    if ("rows" in body) == ("columns" in body):
        faults.append(Fault("", "required", "give either rows or columns"))
        raise ValidationFailed(faults)
    by_column = "columns" in body
    rows = _rows_of_columns(body["columns"], faults) if by_column else body["rows"]
    if not by_column and not (isinstance(rows, list) and rows):
        faults.append(
            Fault("/rows", "wrong_type", "must be a list of at least one object of attribute names and values")
        )
    if faults:
        raise ValidationFailed(faults)
    check_size("rows", given=len(rows), limit=limit)
    decisions.check_subject(options.subject)
    return Asked(rows, by_column, options.explain, options.missing, options.skip, options.subject)


def _rows_of_columns(columns: object, faults: list[Fault]) -> list[Mapping[str, Any]]:
    lists = columns if isinstance(columns, dict) else {}
    lengths = {len(cells) if isinstance(cells, list) else -1 for cells in lists.values()}
    if len(lengths) != 1 or lengths & {-1, 0}:
        message = "must be an object of attribute names and lists of values, all of one length of at least 1"
        faults.append(Fault("/columns", "wrong_type", message))
        return []
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


def _placed(error: espalier.RowError, asked: Asked) -> espalier.RowError:
    """Turn the core's "/row/attribute" into the place in the body."""
    parts = [(fault, *fault.path.removeprefix("/").partition("/")) for fault in error.faults]
    return espalier.RowError(
        [
            espalier.Fault(asked.place(int(row), slash + attribute), fault.code, fault.message)
            for fault, row, slash, attribute in parts
        ]
    )
