"""Field types with their error messages, and parts that several schemas share.

The `description` of a field is for the OpenAPI document; `schema` adds to the JSON Schema of the field.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate
from marshmallow.exceptions import SCHEMA

import espalier
from espalier import Fault
from service.database import DECISION_ID
from service.repositories.pagination import PAGE_LIMIT

PRINTABLE = "[^\\x00-\\x1f\\x7f-\\x9f]"
"""Pattern of a character that is no control character. Other characters that do not print are refused elsewhere."""

WITHOUT_NUL = "^[^\\x00]*$"  # PostgreSQL stores no NUL in a text

DIGITS = re.compile("-?[0-9]+")
MAX_INTEGER = 2**31 - 1
MAX_ITEMS = 100_000  # of a list in a request, by default; marshmallow takes a second for some ten thousand objects

OBJECT: Mapping[str, object] = {"type": "object"}
LABEL = {"type": ["string", "number", "boolean", "null"]}
CATEGORY = {"type": ["string", "number", "boolean"]}
ROW: Mapping[str, object] = {"type": "object", "additionalProperties": LABEL}
COLUMN = {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": WITHOUT_NUL}
SHARES = {"type": "object", "additionalProperties": {"type": "number"}}
POINT = {
    "type": ["object", "null"],
    "properties": {"label": CATEGORY, "probability": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["label", "probability"],
    "additionalProperties": False,
}
SUBJECT = {
    "type": ["string", "null"],
    "pattern": f"^{PRINTABLE}{{1,200}}$",
    "description": "the person or thing that the decisions are about; decisions can be listed and erased by it",
}


def coded(code: str, message: str) -> Any:
    """Return an error message with a code for programs; marshmallow passes this object on unchanged."""
    return {"code": code, "message": message}


NO_CURSOR = coded("invalid", "must be the `next` of the previous page, unchanged")
NO_INTEGER = coded("wrong_type", "must be a whole number")


class Described(fields.Field[Any]):
    """A field with a description and with coded error messages."""

    default_error_messages = {  # noqa: RUF012 - marshmallow's own declaration
        "required": coded("required", "must be given"),
        "null": coded("wrong_type", "must not be null"),
    }

    json_schema: Mapping[str, object] = {}

    def __init__(
        self, description: str = "", *inner: Any, schema: Mapping[str, object] | None = None, **options: Any
    ) -> None:
        described = {"description": description} if description else {}
        super().__init__(*inner, metadata={**described, **self.json_schema, **(schema or {})}, **options)


class Text(Described, fields.String):
    default_error_messages = {"invalid": coded("wrong_type", "must be text")}  # noqa: RUF012


class Integer(Described, fields.Integer):
    default_error_messages = {"invalid": NO_INTEGER}  # noqa: RUF012


class Number(Described, fields.Float):
    default_error_messages = {"invalid": coded("wrong_type", "must be a number")}  # noqa: RUF012
    num_type = staticmethod(lambda number: float(number + 0.0))  # type: ignore[assignment] # refuses a text


class Boolean(Described, fields.Boolean):
    default_error_messages = {"invalid": coded("wrong_type", "must be true or false")}  # noqa: RUF012


class DateTime(Described, fields.AwareDateTime):
    default_error_messages = dict.fromkeys(
        ("invalid", "invalid_awareness"), coded("wrong_type", "must be a date and time in ISO 8601 with a time zone")
    )


class Object(Described, fields.Dict):
    """An object whose members the core checks."""

    default_error_messages = {"invalid": coded("wrong_type", "must be an object")}  # noqa: RUF012


class Json(Described, fields.Raw):
    """Any JSON value; marshmallow does not convert it."""


class Label(Json):
    """A class or the value of an attribute; null: missing."""

    json_schema = LABEL


class AnyObject(Json):
    """An object that the core or the service produces."""

    json_schema = OBJECT


class ListOf(Described, fields.List[Any]):
    default_error_messages = {"invalid": coded("wrong_type", "must be a list")}  # noqa: RUF012

    def __init__(
        self, inner: fields.Field[Any], description: str = "", *, longest: int = MAX_ITEMS, **options: Any
    ) -> None:
        def refuse_long(value: object) -> object:
            if isinstance(value, list) and len(value) > longest:
                raise ma.ValidationError(coded("out_of_range", f"must have at most {longest} items"))
            return value

        super().__init__(description, inner, pre_load=refuse_long, **options)


class Nested(Described, fields.Nested):
    def __init__(self, nested: type[ma.Schema], description: str = "", **options: Any) -> None:
        super().__init__(description, nested, **options)


def strict_integer(low: int, high: int, description: str, **options: Any) -> Integer:
    """Return a field for a whole number from `low` to `high` in a JSON body; 3.0 is legal, the text "3" is not."""

    def whole(value: object) -> object:
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return Integer(description, strict=True, pre_load=whole, validate=between(low, high), **options)


def query_integer(low: int, high: int, description: str, **options: Any) -> Integer:
    """Return a field for a whole number from `low` to `high` in a query: digits 0 to 9, optionally after a minus."""

    def digits(value: object) -> object:
        if isinstance(value, str) and not DIGITS.fullmatch(value):
            raise ma.ValidationError(NO_INTEGER)
        return value

    return Integer(description, pre_load=digits, validate=between(low, high), **options)


def utc_time(description: str, **options: Any) -> DateTime:
    """Return a field for a time with a time zone, which is converted to UTC."""

    def in_utc(moment: datetime) -> datetime:
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise ma.ValidationError("must be in the years 1 to 9999 in UTC") from None

    return DateTime(description, load_default=None, post_load=in_utc, **options)


def choice(words: Sequence[str | None], description: str, *, default: str | None) -> Json:
    """Return a field for one of `words`; null is legal if None is one of them."""

    def check(value: object) -> None:
        if not isinstance(value, str) or value not in words:
            legal = ", ".join(word or "null" for word in words)
            raise ma.ValidationError(coded("unknown_value", f"must be one of {legal}"))

    schema = {"enum": list(words), "default": default} | ({} if None in words else {"type": "string"})
    return Json(description, schema=schema, load_default=default, allow_none=None in words, validate=check)


def matching(pattern: str, description: str, *, error: Any, **options: Any) -> Text:
    """Return a field for text that matches a pattern from its first to its last character."""

    def check(value: str) -> None:
        if not re.fullmatch(pattern, value):
            raise ma.ValidationError(error)

    # JSON Schema uses JavaScript's patterns, which have ^ and $, but not Python's \Z.
    return Text(description, schema={"pattern": f"^{pattern}$"}, validate=check, **options)


def printable(description: str, *, longest: int, **options: Any) -> Text:
    """Return a field documented as 1 to `longest` printable characters; the code that uses the text checks it."""
    return Text(description, schema={"pattern": f"^{PRINTABLE}{{1,{longest}}}$"}, **options)


def search_text(description: str) -> Text:
    """Return a field for text to search for; NUL, which no stored text contains, is refused."""
    without_nul = validate.ContainsNoneOf("\0", error="must not contain the character NUL")
    return Text(description, load_default=None, validate=without_nul, schema={"pattern": WITHOUT_NUL})


def word(words: Sequence[str], description: str, **options: Any) -> Text:
    """Return a field for text that is one of `words`."""
    return Text(description, validate=validate.OneOf(words, error=f"must be one of {', '.join(words)}"), **options)


def between(low: int, high: int) -> validate.Range:
    """Return a validator of whole numbers from `low` to `high`."""
    return validate.Range(low, high, error=f"must be a whole number from {low} to {high}")


def closed(properties: Mapping[str, Any], *required: str, title: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema of an object with only these members; those named in `required` must be present."""
    titled = {} if title is None else {"title": title}
    needed = {"required": list(required)} if required else {}
    return {**titled, "type": "object", "properties": properties, **needed, "additionalProperties": False}


def parameter(place: str, name: str, schema: Mapping[str, Any], description: str) -> Mapping[str, Any]:
    """Return an optional parameter of a route, in the ``query`` or a ``header``, as an OpenAPI object."""
    return {"in": place, "name": name, "required": False, "schema": schema, "description": description}


MISSING_STRATEGY = word(
    list(espalier.PREDICTION_STRATEGIES),
    "how a test handles a missing value; null: as in training",
    load_default=None,
    allow_none=True,
)
OPERATING_POINT = Json(
    "the label is predicted if it has at least this probability; null: the most probable class is predicted",
    schema=POINT,
)


class BaseSchema(ma.Schema):
    """A schema that refuses unknown fields; each of its errors has a code for programs."""

    class Meta:  # noqa: D106 - read by marshmallow
        unknown = ma.RAISE

    error_messages = {"type": coded("wrong_type", "must be an object")}  # noqa: RUF012

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        legal = ", ".join(field.data_key or name for name, field in self.load_fields.items()) or "none"
        self.error_messages["unknown"] = coded("unknown_field", f"there is no such field; legal: {legal}")


def faults_of(messages: Any, prefix: str = "") -> list[Fault]:
    """Return the faults that marshmallow found, with JSON pointers: ``/name`` for a member or a query parameter."""
    if isinstance(messages, list):
        return [fault for message in messages for fault in faults_of(message, prefix)]
    if not isinstance(messages, Mapping):
        return [Fault(prefix, "invalid_value", str(messages))]
    if messages.keys() == {"code", "message"} and isinstance(messages["code"], str):
        return [Fault(prefix, messages["code"], messages["message"])]
    names = {key: "" if key == SCHEMA else "/" + str(key).replace("~", "~0").replace("/", "~1") for key in messages}
    return [fault for key, inner in messages.items() for fault in faults_of(inner, prefix + names[key])]


def load_members(schema: ma.Schema, body: Any) -> tuple[Mapping[str, Any], list[Fault]]:
    """Return the valid members of a request, and the faults of the others."""
    try:
        return schema.load(body), []
    except ma.ValidationError as error:
        return error.valid_data if isinstance(error.valid_data, Mapping) else {}, faults_of(error.messages)


class LimitQuery(BaseSchema):
    limit = query_integer(1, PAGE_LIMIT, "maximum number of items", load_default=50)


class PageQuery(LimitQuery):
    cursor = matching(DECISION_ID, "`next` of the previous page", error=NO_CURSOR, load_default=None)


@cache
def page_of(schema: type[ma.Schema]) -> type[ma.Schema]:
    """Return the schema of one page of a list whose items have `schema`."""
    items, after = ListOf(Nested(schema)), Text("cursor of the next page; null on the last page", allow_none=True)
    return ma.Schema.from_dict({"items": items, "next": after}, name=f"{schema.__name__}Page")


class OfVersion(BaseSchema):
    model = Text()
    version = Integer()
