"""What the OpenAPI document says of the bodies that a view reads itself, and of values that the core makes."""

from collections.abc import Mapping
from typing import Any

import espalier
from service.schemas.fields import CATEGORY, COLUMN
from service.schemas.predictions import rows_or_columns

TREE: Mapping[str, Any] = {
    "type": "object",
    "description": "a list a column, an entry a node, the nodes in preorder: node 0 is the root, and the subtree of "
    "node i is the entries i to i + size[i] - 1. Of a part, `node` has the numbers in the whole tree, and `folded` "
    "how many leaves are left out below each",
}


DOCUMENT_REQUEST: Mapping[str, Any] = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "description": "a model document, as the service gave it",
                "required": ["format", "format_version", "kind", "schema", "config", "preparation", "training"],
                "properties": {
                    "format": {"const": "espalier"},
                    "format_version": {"const": espalier.FORMAT_VERSION},
                    "kind": {"enum": ["tree", "rules"]},
                    **{name: {"type": "object"} for name in ("schema", "config", "preparation", "training")},
                    "tree": {"type": "object"},
                    "rules": {"type": "object"},
                    "pruning": {"type": ["object", "null"]},
                    "notes": {"type": "array", "items": {"type": "string"}},
                },
            }
        }
    },
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
# Of a stream of events the schema is that of each; tools read its fields as an object.
JOB_EVENT: Mapping[str, Any] = {
    "type": "object",
    "description": "an event of a job; lines that begin with a colon say only that the stream is still there",
    "properties": {
        "id": {"type": "string", "description": "of a transition: what Last-Event-ID takes"},
        "event": {"enum": ["transition", "progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "what happened, as JSON"},
        "retry": {"type": "integer", "description": "milliseconds before the stream is asked for again"},
    },
}
BINARY = {"type": "string", "format": "binary"}
TABLE = rows_or_columns(
    "table of",
    {"schema": DECLARATION},
    {"rows": [{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}]},
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
