"""What the OpenAPI document says of the bodies that a view reads itself, and of values that the core makes."""

from collections.abc import Mapping
from typing import Any

import espalier
from service.schemas.shape import CATEGORY, COLUMN, LABEL, PRINTABLE

__all__ = [
    "DATA_SET_REQUEST",
    "DOCUMENT_REQUEST",
    "EXPLAIN",
    "JOB_EVENT",
    "ON_ERROR",
    "PREDICTION_REQUEST",
    "PREDICTION_STREAMS",
    "TREE",
]

EXPLAIN = ("none", "path", "full")
ON_ERROR = ("fail", "skip")

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


# Predictions are read by hand: this is what the OpenAPI document says about them.
ROWS: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "object", "additionalProperties": LABEL},
    "description": "one object a row: names of attributes and values; null or absent is missing",
}
COLUMNS: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"type": "array", "minItems": 1, "items": LABEL},
    "description": "names of attributes and lists of values, all of one length",
}
PREDICTION_OPTIONS: Mapping[str, Any] = {
    "explain": {
        "type": "string",
        "enum": list(EXPLAIN),
        "default": "path",
        "description": "none: the answer; path: with the tests that led to it; full: with all that is known of it",
    },
    "missing": {
        "enum": [*espalier.PREDICTION_STRATEGIES, None],
        "default": None,
        "description": "what is done with a row at a test whose value it does not have; null: as in training. "
        + "; ".join(f"{name}: {what}" for name, what in espalier.PREDICTION_STRATEGIES.items()),
    },
    "on_error": {
        "type": "string",
        "enum": list(ON_ERROR),
        "default": "fail",
        "description": "fail: rows that cannot be read refuse the request; skip: the others are answered, these "
        "have `errors` in the place of an answer",
    },
    "subject": {
        "type": ["string", "null"],
        "pattern": f"^{PRINTABLE}{{1,200}}$",
        "description": "whom the decision is about; decisions can be listed by it",
    },
}


def _rows_or_columns(what: str, more: Mapping[str, Any], example: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the schema of a table as rows or as columns; each has a title, of which generated clients make a name."""
    each = (("rows", ROWS), ("columns", COLUMNS))
    return {
        "oneOf": [
            {
                "title": f"{what} {name}",
                "type": "object",
                "properties": {name: table, **more},
                "required": [name],
                "additionalProperties": False,
            }
            for name, table in each
        ],
        "examples": [example],
    }


PREDICTION_REQUEST = _rows_or_columns(
    "asked",
    PREDICTION_OPTIONS,
    {"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"},
)


PREDICTION_STREAMS: Mapping[str, Any] = {
    "text/csv": {
        "type": "string",
        "description": "the first line names the attributes, in any order; answered line by line, as CSV",
        "examples": ["Outlook,Humidity,Wind\nSunny,High,Weak\nRain,High,\n"],
    },
    "application/x-ndjson": {
        "type": "string",
        "description": "a line a row: an object of attribute names and values; answered line by line, in the same form",
        "examples": ['{"Outlook":"Sunny","Humidity":"High"}\n{"Outlook":"Rain","Wind":null}\n'],
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
TABLE = _rows_or_columns(
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
