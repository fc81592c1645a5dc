"""Prediction options: one schema for the JSON body, the query of a stream and the OpenAPI document."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import marshmallow as ma
from marshmallow import fields

import espalier
from espalier import Fault
from service.schemas.fields import ALIAS, LABEL, PRINTABLE, BaseSchema, Choice, coded, faults_of

STRATEGIES: Final = espalier.PREDICTION_STRATEGIES
NO_TEXT: Any = coded("wrong_type", "must be text or null")


class Subject(fields.Field[str]):
    """Text or null; the code that stores it checks its characters."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        if not isinstance(value, str):
            raise ma.ValidationError(NO_TEXT)
        return value


class PredictionOptionsSchema(BaseSchema):
    """How rows are answered."""

    explain = Choice(
        ("none", "path", "full"),
        load_default="path",
        metadata={
            "type": "string",
            "enum": ["none", "path", "full"],
            "description": "none: the answer; path: with the tests that led to it; full: with all that is known of it",
        },
    )
    missing = Choice(
        (*STRATEGIES, None),
        load_default=None,
        metadata={
            "enum": [*STRATEGIES, None],
            "description": "what is done with a row at a test whose value it does not have; null: as in training. "
            + "; ".join(f"{name}: {what}" for name, what in STRATEGIES.items()),
        },
    )
    on_error = Choice(
        ("fail", "skip"),
        load_default="fail",
        metadata={
            "type": "string",
            "enum": ["fail", "skip"],
            "description": "fail: rows that cannot be read refuse the request; skip: the others are answered, these "
            "have `errors` in the place of an answer",
        },
    )
    subject = Subject(
        load_default=None,
        allow_none=True,
        metadata={
            "type": ["string", "null"],
            "pattern": f"^{PRINTABLE}{{1,200}}$",
            "description": "whom the decision is about; decisions can be listed by it",
        },
    )


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """How rows are answered.

    Attributes:
        explain: ``none``, ``path`` or ``full``.
        missing: The strategy for missing values; None: the one of the training.
        skip: Whether rows that cannot be read are passed over, instead of refusing the request.
        subject: Whom the decisions are about.
    """

    explain: str = "path"
    missing: str | None = None
    skip: bool = False
    subject: str | None = None


OPTIONS: Final = PredictionOptionsSchema()
OPTION_NAMES: Final = frozenset(OPTIONS.fields)
DEFAULT_OPTIONS: Final = PredictionOptions()


def read_options(given: Mapping[str, Any], *, beside: Collection[str], faults: list[Fault]) -> PredictionOptions:
    """Return the prediction options of a JSON body or of a query; of faulty ones the default.

    Args:
        given: The body, or the query.
        beside: The other names that are legal in it, such as ``rows``.
        faults: Those found are added: names that are not legal first.
    """
    legal = ", ".join(sorted({*OPTION_NAMES, *beside}))
    unknown = sorted(given.keys() - OPTION_NAMES - set(beside))
    faults += [Fault(f"/{name}", "unknown_field", f"legal: {legal}") for name in unknown]
    if OPTION_NAMES.isdisjoint(given):
        return DEFAULT_OPTIONS
    try:
        read = OPTIONS.load({name: given[name] for name in OPTIONS.fields if name in given})
    except ma.ValidationError as error:
        faults += faults_of(error)
        return DEFAULT_OPTIONS
    return PredictionOptions(read["explain"], read["missing"], read["on_error"] == "skip", read["subject"])


def _documented(field: fields.Field[Any]) -> dict[str, Any]:
    described = dict(field.metadata)
    if field.load_default is not None or (isinstance(field, Choice) and None in field.words):
        described["default"] = field.load_default
    return described


OPTION_SCHEMAS: Final[Mapping[str, Any]] = {name: _documented(field) for name, field in OPTIONS.fields.items()}
"""JSON Schema of each option in a body."""

STREAM_PARAMETERS: Final[list[dict[str, Any]]] = [
    {
        "in": "query",
        "name": name,
        "required": False,
        "schema": {
            "type": "string",
            **(
                {"enum": [word for word in field.words if word is not None]}
                if isinstance(field, Choice)
                else {"pattern": field.metadata["pattern"]}
            ),
        },
        "description": f"of CSV and lines of JSON, in the place of `{name}` in a JSON body",
    }
    for name, field in OPTIONS.fields.items()
]
"""OpenAPI parameters of the options in the query of a stream."""

ALIAS_PARAMETER: Final[Mapping[str, Any]] = {
    "in": "query",
    "name": "alias",
    "required": False,
    "schema": {"type": "string", "pattern": f"^{ALIAS}$"},
    "description": "the alias of the version that is to answer",
}

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


PREDICTION_REQUEST: Final = rows_or_columns(
    "asked",
    OPTION_SCHEMAS,
    {"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"},
)

PREDICTION_STREAMS: Final[Mapping[str, Any]] = {
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
