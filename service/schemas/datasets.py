"""Data sets: responses, queries and changes, and the formats of an upload."""

from collections.abc import Mapping
from typing import Any, Final

import espalier
from service.schemas import fields
from service.serialization.media_types import ARFF, ARROW, CSV, JSON, MULTIPART, NDJSON, PARQUET

KINDS = [kind.value for kind in espalier.FeatureKind]
ROLES = [role.value for role in espalier.Role]
TASKS = ["classification", "regression"]
TASK_MEANING = "the task, instead of the one that the target's values suggest"


class NoticedCell(fields.BaseSchema):
    row = fields.Integer("number of the row, counted from 0")
    value = fields.Json("the cell", schema=fields.CATEGORY)


class Notice(fields.BaseSchema):
    code = fields.Text("a stable identifier for programs, such as `kind_against_majority` or `identifier`")
    attribute = fields.Text("name of the column")
    message = fields.Text("the remark, and how to declare the column differently")
    cells = fields.ListOf(fields.Nested(NoticedCell), "the first cells that caused it")


class DataSet(fields.BaseSchema):
    id = fields.Text("id of the data set")
    name = fields.Text("name of the data set")
    n_rows = fields.Integer()
    n_attributes = fields.Integer()
    task = fields.Text("classification or regression; null: there is no target", allow_none=True)
    declared = fields.AnyObject("declaration of every column: kind, role, categories", data_key="schema")
    notices = fields.ListOf(fields.Nested(Notice), "remarks on columns that may be declared wrongly")
    fingerprint = fields.Text("SHA-256 of schema and cells")
    reference = fields.Text("path of its files below the store; null: the rows are in the database", allow_none=True)
    created = fields.DateTime()


class RowPage(fields.BaseSchema):
    items = fields.ListOf(fields.Json("column names and values", schema=fields.ROW))
    next = fields.Integer("cursor of the next page; null on the last page", allow_none=True)


class DataSetQuery(fields.BaseSchema):
    name = fields.printable("name of the data set", longest=200, load_default="data set")
    target = fields.Text("the column to predict; overrides the schema's", load_default=None)
    task = fields.word(TASKS, f"{TASK_MEANING}; overrides the schema's", load_default=None)
    missing_values = fields.Text(
        "texts that mean missing besides the empty cell, separated by commas; default: the schema's, else `?` and `NA`",
        load_default=None,
    )
    weight = fields.Text("the column of row weights", load_default=None)
    ignore = fields.Text("columns that are stored but ignored in training, separated by commas", load_default=None)


class RowsQuery(fields.LimitQuery):
    cursor = fields.query_integer(
        0, 2**53, "`next` of the previous page: the number of the first row, counted from 0", load_default=0
    )


class ProfileQuery(fields.BaseSchema):
    log_base = fields.word(["2", "e", "10"], "base of the logarithm; 2: bits, e: nats, 10: bans", load_default="2")


PROFILE: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "sample": {
            "type": ["integer", "null"],
            "description": "number of rows that were read, if the data set is large; null: all rows were read",
        }
    },
    "required": ["sample"],
}


class ColumnChange(fields.BaseSchema):
    """A new declaration of a column; members that are left out do not change, but a kind may be inferred again."""

    name = fields.Text("name of the column", required=True)
    kind = fields.word(
        KINDS, "kind; left out: unchanged, but inferred for numbers that are or were the target, or were ignored"
    )
    role = fields.word(
        [role for role in ROLES if role != espalier.Role.TARGET],
        "role of the column; to change the target, give the member `target` of this request",
    )
    categories = fields.Json(
        "all categories in their order; ties go to the first one", schema={"type": "array", "items": fields.CATEGORY}
    )


class DataSetChange(fields.BaseSchema):
    """A new declaration of the same rows; members that are left out do not change, but a kind may be inferred again."""

    target = fields.Text("the column to predict; null: none", allow_none=True)
    task = fields.word(TASKS, TASK_MEANING)
    missing_values = fields.ListOf(
        fields.Text(), "all texts that mean a missing value; in uploaded tables, missing cells stay missing"
    )
    columns = fields.ListOf(fields.Nested(ColumnChange))


# The rows of tables and predictions are read without marshmallow: these schemas are for the OpenAPI document.
ROWS: Final[Mapping[str, Any]] = {
    "type": "array",
    "minItems": 1,
    "items": fields.ROW,
    "description": "an object per row with attribute names and values; null or an absent name is missing",
}

COLUMNS: Final[Mapping[str, Any]] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "array", "minItems": 1, "items": fields.LABEL},
    "description": "an object of attribute names and lists of values, all of the same length",
}


def rows_or_columns(what: str, further: Mapping[str, Any], example: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON Schema of rows or columns with `further` members. Generated clients name types by the titles."""
    return {
        "oneOf": [
            fields.closed({name: table, **further}, name, title=f"{what} {name}")
            for name, table in (("rows", ROWS), ("columns", COLUMNS))
        ],
        "examples": [example],
    }


DECLARATION: Mapping[str, Any] = {
    "type": ["object", "null"],
    "description": "declarations of columns; all other columns are inferred",
    "properties": {
        "target": {"type": ["string", "null"]},
        "task": {"enum": [*TASKS, None]},
        "missing_values": {"type": "array", "items": {"type": "string"}},
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": fields.COLUMN,
                    "kind": {"enum": KINDS},
                    "role": {"enum": ROLES},
                    "categories": {"type": "array", "items": fields.CATEGORY},
                },
            },
        },
    },
}

BINARY = {"type": "string", "format": "binary"}

TABLE = rows_or_columns(
    "table of", {"schema": DECLARATION}, {"rows": [{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}]}
)

PATH = {
    "type": "string",
    "description": "path below the store: a Parquet file, or a folder of Parquet files with the same columns",
    "maxLength": 1000,
}
REFERENCE = fields.closed({"reference": PATH, "schema": DECLARATION}, "reference", title="table below the store")

ARFF_EXAMPLE = (
    "@relation wind\n@attribute wind {weak, strong}\n@attribute play {no, yes}\n@data\nweak, yes\nstrong, no\n"
)


def _text(description: str, example: str) -> Mapping[str, Any]:
    return {"schema": {"type": "string", "description": description, "examples": [example]}}


DATA_SET_REQUEST: Mapping[str, Any] = {
    "required": True,
    "description": "a table in one of these formats; `Content-Encoding: gzip` is accepted",
    "content": {
        CSV: _text(
            "CSV (RFC 4180) in UTF-8 with commas and a header line; an empty cell is missing",
            "wind,play\nweak,yes\nstrong,no\n",
        ),
        JSON: {"schema": {**TABLE, "oneOf": [*TABLE["oneOf"], REFERENCE]}},
        NDJSON: _text(
            "a JSON object per line; null or an absent name is missing",
            '{"wind": "weak", "play": "yes"}\n{"wind": "strong", "play": "no"}\n',
        ),
        PARQUET: {"schema": {**BINARY, "description": "a Parquet file of numbers, texts, dates and booleans"}},
        ARROW: {"schema": {**BINARY, "description": "an Arrow IPC stream or an Arrow file of the same types"}},
        ARFF: _text("ARFF in UTF-8; the categories have the order of the header", ARFF_EXAMPLE),
        MULTIPART: {
            "schema": fields.closed(
                {
                    "file": {
                        **BINARY,
                        "description": "the table; its format is given by the file name, else by the Content-Type",
                    },
                    "schema": {**DECLARATION, "description": "declarations of columns, as JSON"},
                },
                "file",
            ),
            "encoding": {"schema": {"contentType": JSON}},
        },
    },
}
