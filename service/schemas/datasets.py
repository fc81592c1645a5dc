"""Data sets: their answers, queries and changes, and the formats of an upload."""

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import fields

import espalier
from service.schemas.fields import (
    CATEGORY,
    COLUMN,
    LABEL,
    OBJECT,
    BaseSchema,
    QueryInteger,
    integer,
    json_value,
    list_of,
    one_of,
    page_limit,
    page_of,
    printable,
    text,
)


class DataSet(BaseSchema):
    """A data set."""

    id = text("its id")
    name = text("what it is called")
    n_rows = fields.Integer()
    n_attributes = fields.Integer()
    task = text("what its target asks for; null without a target", allow_none=True)
    declared = json_value("every column: kind, role, categories", OBJECT, data_key="schema")
    notices = list_of(fields.String(), "what a reader should know")
    fingerprint = text("SHA-256 of schema and cells")
    created = fields.AwareDateTime()


DataSetPage = page_of(DataSet)


class RowPage(BaseSchema):
    """Some rows of a data set."""

    items = fields.List(json_value("column names and values", {"type": "object", "additionalProperties": LABEL}))
    next = integer("cursor of the next page; null: there is none", allow_none=True)


class DataSetQuery(BaseSchema):
    """How an uploaded body is to be read."""

    name = printable("what to call it", longest=200, load_default="data set")
    target = text("the column to learn", load_default=None)
    task = text(
        "overrides what the target's values suggest",
        load_default=None,
        validate=one_of(["classification", "regression"]),
    )
    missing_values = text(
        "texts that stand for a missing value beside the empty cell, separated by commas; `?` and `NA` if not said",
        load_default=None,
    )
    weight = text("the column of row weights", load_default=None)
    ignore = text("columns that are kept but never looked at, separated by commas", load_default=None)


class RowsQuery(BaseSchema):
    """Which rows of a data set."""

    limit = page_limit()
    cursor = QueryInteger(
        0, 2**53, "the `next` of the page before: the number of the first row, counted from 0", load_default=0
    )


class ProfileQuery(BaseSchema):
    """In which unit to show entropies."""

    log_base = text("2: bits, e: nats, 10: bans", load_default="2", validate=one_of(["2", "e", "10"]))


PROFILE: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "sample": {
            "type": ["integer", "null"],
            "description": "of a large data set: so many rows, spread evenly over it, were read; null: all were",
        }
    },
    "required": ["sample"],
}


class ColumnChange(BaseSchema):
    """What is to be declared of a column; what is not named stays."""

    name = text("which column", required=True)
    kind = text("what its values are", validate=one_of([kind.value for kind in espalier.FeatureKind]))
    role = text(
        "what it is for (the target is named beside the columns)",
        validate=one_of([role.value for role in espalier.Role if role is not espalier.Role.TARGET]),
    )
    categories = list_of(json_value("a category", CATEGORY), "all of them, in the order that decides ties")


class DataSetChange(BaseSchema):
    """Another declaration of the same rows; what is not named stays."""

    target = text("the column to learn; null: none", allow_none=True)
    task = text("overrides what the target's values suggest", validate=one_of(["classification", "regression"]))
    missing_values = list_of(
        fields.String(), "texts that stand for missing; a cell that was missing already stays missing"
    )
    columns = fields.List(fields.Nested(ColumnChange))


# The rows of a prediction are read without marshmallow: this is what the OpenAPI document says of them.
ROWS: Final[Mapping[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "object", "additionalProperties": LABEL},
    "description": "one object a row: names of attributes and values; null or absent is missing",
}


COLUMNS: Final[Mapping[str, Any]] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "array", "minItems": 1, "items": LABEL},
    "description": "names of attributes and lists of values, all of one length",
}


def rows_or_columns(what: str, more: Mapping[str, Any], example: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a table as rows or as columns; generated clients make names of the titles."""
    return {
        "oneOf": [
            {
                "title": f"{what} {name}",
                "type": "object",
                "properties": {name: table, **more},
                "required": [name],
                "additionalProperties": False,
            }
            for name, table in (("rows", ROWS), ("columns", COLUMNS))
        ],
        "examples": [example],
    }


# Of a data set the body is read by the core.
DECLARATION: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "what is declared of the columns; the rest is inferred",
    "properties": {
        "target": {"type": ["string", "null"]},
        "task": {"enum": ["classification", "regression", None]},
        "missing_values": {"type": "array", "items": {"type": "string"}},
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": COLUMN,
                    "kind": {"enum": [kind.value for kind in espalier.FeatureKind]},
                    "role": {"enum": [role.value for role in espalier.Role]},
                    "categories": {"type": "array", "items": CATEGORY},
                },
            },
        },
    },
}


BINARY = {"type": "string", "format": "binary"}


TABLE = rows_or_columns(
    "table of", {"schema": DECLARATION}, {"rows": [{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}]}
)


ARFF = "@relation wind\n@attribute wind {weak, strong}\n@attribute play {no, yes}\n@data\nweak, yes\nstrong, no\n"


def _text(description: str, example: str) -> Mapping[str, Any]:
    return {"schema": {"type": "string", "description": description, "examples": [example]}}


DATA_SET_REQUEST: Mapping[str, Any] = {
    "required": True,
    "description": "a table in one of these formats; with `Content-Encoding: gzip` it is unpacked as it is read",
    "content": {
        "text/csv": _text(
            "UTF-8, cells between commas, the first line holds the names (RFC 4180); an empty cell is missing",
            "wind,play\nweak,yes\nstrong,no\n",
        ),
        "application/json": {"schema": TABLE},
        "application/x-ndjson": _text(
            "a JSON object a line; null or an absent name is missing",
            '{"wind": "weak", "play": "yes"}\n{"wind": "strong", "play": "no"}\n',
        ),
        "application/vnd.apache.parquet": {
            "schema": {**BINARY, "description": "a Parquet file of numbers, texts, dates, true and false"}
        },
        "application/vnd.apache.arrow.stream": {
            "schema": {**BINARY, "description": "an Arrow IPC stream, or an Arrow file, of the same types"}
        },
        "text/x-arff": _text("UTF-8; the order of the categories is the header's", ARFF),
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "required": ["file"],
                "properties": {
                    "file": {
                        **BINARY,
                        "description": "the table; the ending of its name says its format, else its Content-Type",
                    },
                    "schema": {**DECLARATION, "description": "what is declared of the columns, as JSON"},
                },
                "additionalProperties": False,
            },
            "encoding": {"schema": {"contentType": "application/json"}},
        },
    },
}
