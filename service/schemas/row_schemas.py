"""What a version takes as a row, as JSON Schema: forms, generators and checks of others read it.

A row that does not fit is refused, one that fits is answered; only whether a text is a date by ISO 8601 is beyond it.
Categories stand as examples: another one of the same type is answered, and flagged as never seen.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import espalier

DIALECT = "https://json-schema.org/draft/2020-12/schema"
WITHOUT_NUL = "^[^\\x00]*$"
TYPES: Mapping[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}
UNREAD: Mapping[espalier.Role, str] = {
    espalier.Role.TARGET: "what is answered; a value is passed over",
    espalier.Role.WEIGHT: "the weight in training; a value is passed over",
    espalier.Role.IGNORE: "never looked at; a value is passed over",
}


def row_schema(schema: espalier.Schema, *, title: str) -> dict[str, Any]:
    """Give the JSON Schema (2020-12) of a row that a version with this schema answers."""
    return {
        "$schema": DIALECT,
        "title": title,
        "description": "one row: attribute names and values; null or absent is missing",
        "type": "object",
        "properties": {
            feature.name: {"description": UNREAD[feature.role]}
            if feature.role in UNREAD
            else _cell(feature, schema.missing_values)
            for feature in schema.features
        },
        "additionalProperties": False,
    }


def _cell(attribute: espalier.Feature, missing_values: Sequence[str]) -> dict[str, Any]:
    cell: dict[str, Any] = {"description": str(attribute.kind)}
    types = _types(attribute)
    if "string" in types or not missing_values:
        cell["type"] = [*types, "null"]
        cell |= {"pattern": WITHOUT_NUL} if "string" in types else {}
    else:
        cell["anyOf"] = [{"type": [*types, "null"]}, {"enum": list(missing_values)}]
    if attribute.kind == espalier.FeatureKind.DATETIME:
        cell["description"] = "datetime: a date or a time by ISO 8601, without a zone taken as UTC"
    elif attribute.coded:
        cell["description"] = f"{attribute.kind}: one of the examples; another value was never seen in training"
        cell["examples"] = list(attribute.categories)
    return cell


def _types(attribute: espalier.Feature) -> list[str]:
    """Give the JSON types that its known values may have; of a column that was empty at training, any."""
    if attribute.kind == espalier.FeatureKind.DATETIME:
        return ["string"]
    if not attribute.coded:
        return ["number"]
    return sorted({TYPES[type(label)] for label in attribute.categories} or {*TYPES.values()})
