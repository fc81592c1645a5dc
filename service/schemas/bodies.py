"""What the OpenAPI document says of the bodies that a view reads itself, and of values that the core makes."""

from collections.abc import Mapping
from typing import Any

import espalier
from service.schemas.shape import LABEL

__all__ = ["DATA_SET_REQUEST", "EXPLAIN", "PREDICTION_REQUEST", "TREE"]

EXPLAIN = ("none", "path", "full")

TREE: Mapping[str, Any] = {
    "type": "object",
    "description": "a list a column, an entry a node, the nodes in preorder: node 0 is the root, and the subtree of "
    "node i is the entries i to i + size[i] - 1",
}


# Predictions are read by hand: this is what the OpenAPI document says about them.
PREDICTION_REQUEST: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "additionalProperties": LABEL},
            "description": "one object a row: attribute names and values; null or absent is missing",
        },
        "columns": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "array", "minItems": 1, "items": LABEL},
            "description": "instead of rows: attribute names and lists of values, all of one length",
        },
        "explain": {
            "type": "string",
            "enum": list(EXPLAIN),
            "default": "path",
            "description": "none: the answer; path: with the tests that led to it; full: with all that is known of it",
        },
        "subject": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 200,
            "description": "whom the decision is about; decisions can be listed by it",
        },
    },
    "oneOf": [{"required": ["rows"]}, {"required": ["columns"]}],
    "additionalProperties": False,
    "examples": [{"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"}],
}


# A data set comes as CSV or JSON; the body is read by the core.
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
                    "name": {"type": "string", "minLength": 1},
                    "kind": {"enum": [kind.value for kind in espalier.FeatureKind]},
                    "role": {"enum": [role.value for role in espalier.Role]},
                    "categories": {"type": "array", "items": LABEL},
                },
            },
        },
    },
}
DATA_SET_REQUEST: Mapping[str, Any] = {
    "required": True,
    "content": {
        "text/csv": {"schema": {"type": "string", "examples": ["wind,play\nweak,yes\nstrong,no\n"]}},
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "rows": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "additionalProperties": LABEL},
                    },
                    "columns": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": {"type": "array", "minItems": 1, "items": LABEL},
                    },
                    "schema": DECLARATION,
                },
                "oneOf": [{"required": ["rows"]}, {"required": ["columns"]}],
                "additionalProperties": False,
                "examples": [{"rows": [{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}]}],
            }
        },
    },
}
