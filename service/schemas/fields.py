"""Field types with their error texts, constructors of described fields, and shapes that several schemas share.

Fields that only go out need no error texts; those that come in get them in `BaseSchema.on_bind_field`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from espalier import Fault
from service.database import DECISION_ID, ID
from service.repositories.pages import PAGE_LIMIT

PRINTABLE = "[^\\x00-\\x1f\\x7f-\\x9f]"
"""A character that is no control character; Python's patterns have no name for the other unprintable ones."""

WITHOUT_NUL = "^[^\\x00]*$"
"""PostgreSQL stores no NUL in a text."""

DIGITS = re.compile("-?[0-9]+")
MAX_INTEGER = 2**31 - 1

OBJECT: Mapping[str, object] = {"type": "object"}
LABEL = {"type": ["string", "number", "boolean", "null"]}
CATEGORY = {"type": ["string", "number", "boolean"]}
COLUMN = {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": WITHOUT_NUL}
SHARES = {"type": "object", "additionalProperties": {"type": "number"}}
POINT = {
    "type": ["object", "null"],
    "properties": {"label": CATEGORY, "probability": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["label", "probability"],
    "additionalProperties": False,
}

SCHEMA_KEY = "_schema"  # where marshmallow puts the faults of an object as a whole


def coded(code: str, message: str) -> dict[str, str]:
    """Return a fault's code and message in the form that a field takes for its error message."""
    return {"code": code, "message": message}


REQUIRED = coded("required", "must be given")
IS_NULL = coded("wrong_type", "must not be null")
NO_OBJECT = coded("wrong_type", "must be an object")
INVALID: Mapping[type[fields.Field[Any]], str] = {
    fields.String: "must be text",
    fields.Integer: "must be a whole number",
    fields.Float: "must be a number",
    fields.Boolean: "must be true or false",
    fields.List: "must be a list",
    fields.Mapping: "must be an object",
    fields.AwareDateTime: "must be a moment by ISO 8601, with its zone",
}
"""What a value of each type of field must be."""


class BaseSchema(ma.Schema):
    """Keeps the order of its fields, refuses unknown ones, and gives each fault a code for programs."""

    class Meta:  # noqa: D106 - read by marshmallow
        unknown = ma.RAISE

    error_messages = {"type": NO_OBJECT}  # type: ignore[dict-item] # noqa: RUF012 - any message is legal

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        legal = ", ".join(field.data_key or name for name, field in self.load_fields.items())
        unknown: Any = coded("unknown_field", f"there is no such field; legal: {legal}")
        self.error_messages["unknown"] = unknown

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Set the texts of a field's faults."""
        set_error_messages(field_obj)

    def __deepcopy__(self, _: object) -> "BaseSchema":
        """Return itself: a schema does not change, and each decorator of a view copies what those before it said."""
        return self


def set_error_messages(field: fields.Field[Any]) -> None:
    """Set the texts of a field's faults, and of the fields within a list."""
    messages: dict[str, Any] = {"required": REQUIRED, "null": IS_NULL}
    invalid = next((message for kind, message in INVALID.items() if isinstance(field, kind)), None)
    if invalid is not None:
        messages["invalid"] = coded("wrong_type", invalid)
    field.error_messages.update(messages)
    if isinstance(field, fields.List):
        set_error_messages(field.inner)


def faults_of(error: ma.ValidationError) -> list[Fault]:
    """Return the faults that marshmallow found, with JSON pointers; a query parameter counts as a member."""
    return list(_faults("", error.messages))


def _faults(prefix: str, messages: Any) -> Iterator[Fault]:
    if isinstance(messages, Mapping):
        if messages.keys() == {"code", "message"} and isinstance(messages["code"], str):
            yield Fault(prefix, messages["code"], messages["message"])
            return
        for key, inner in messages.items():
            escaped = str(key).replace("~", "~0").replace("/", "~1")
            yield from _faults(prefix if key == SCHEMA_KEY else f"{prefix}/{escaped}", inner)
    elif isinstance(messages, list):
        for message in messages:
            yield from _faults(prefix, message)
    else:
        yield Fault(prefix, "invalid_value", str(messages))


class StrictInteger(fields.Integer):
    """A whole number from `low` to `high` in a JSON body; as in JSON Schema 3.0 is one, the text "3" is none."""

    def __init__(self, low: int, high: int, description: str, **options: Any) -> None:
        super().__init__(strict=True, validate=between(low, high), metadata={"description": description}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int:
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        return super()._deserialize(number, attr, data, **options)


class QueryInteger(fields.Integer):
    """A whole number from `low` to `high` in a query: digits 0 to 9, with a minus before them or not."""

    def __init__(self, low: int, high: int, description: str, **options: Any) -> None:
        super().__init__(validate=between(low, high), metadata={"description": description}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> int:
        if isinstance(value, str) and not DIGITS.fullmatch(value):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, attr, data, **options)


class UtcDateTime(fields.AwareDateTime):
    """A moment with its zone, converted to UTC; one outside the years of the calendar there is refused."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **options)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise ma.ValidationError("must be in the years 1 to 9999 as UTC counts them") from None


class ListOrEmpty(fields.List[Any]):
    """A list that is empty where there is none."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **options: Any) -> list[Any] | None:
        return super()._serialize(value or [], attr, obj, **options)


class Choice(fields.Field[Any]):
    """One of some words, or null if that is among them."""

    def __init__(self, words: Sequence[str | None], **options: Any) -> None:
        super().__init__(allow_none=None in words, **options)
        self.words = words

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if not isinstance(value, str) or value not in self.words:
            legal = ", ".join(word or "null" for word in self.words)
            message: Any = coded("unknown_value", f"must be one of {legal}")
            raise ma.ValidationError(message)
        return value


def text(description: str, **options: Any) -> fields.String:
    """Return a field of text."""
    return fields.String(metadata={"description": description}, **options)


def integer(description: str, **options: Any) -> fields.Integer:
    """Return a field of a whole number."""
    return fields.Integer(metadata={"description": description}, **options)


def real(description: str, **options: Any) -> fields.Float:
    """Return a field of a number."""
    return fields.Float(metadata={"description": description}, **options)


def boolean(description: str, **options: Any) -> fields.Boolean:
    """Return a field of true or false."""
    return fields.Boolean(metadata={"description": description}, **options)


def moment(description: str, **options: Any) -> fields.AwareDateTime:
    """Return a field of a time with its zone."""
    return fields.AwareDateTime(metadata={"description": description}, **options)


def list_of(inner: fields.Field[Any], description: str, **options: Any) -> fields.List[Any]:
    """Return a field of a list."""
    return fields.List(inner, metadata={"description": description}, **options)


def search_text(description: str) -> fields.String:
    """Return a field for a text to search for; NUL, which no stored text holds, is refused."""
    return fields.String(
        load_default=None,
        validate=validate.ContainsNoneOf("\0", error="must not hold the character NUL"),
        metadata={"description": description, "pattern": WITHOUT_NUL},
    )


def matching(pattern: str, description: str, *, error: str, **options: Any) -> fields.String:
    """Return a field of text that matches a pattern from its first character to its last."""
    whole = re.compile(pattern)

    def check(text: str) -> None:
        if not whole.fullmatch(text):
            raise ma.ValidationError(error)

    # Python's own mark for the end of a text means nothing in JSON Schema, where patterns are written as in JavaScript.
    return fields.String(validate=check, metadata={"description": description, "pattern": f"^{pattern}$"}, **options)


def printable(description: str, *, longest: int, **options: Any) -> fields.String:
    """Return a field of 1 to `longest` printable characters; the code that stores the text checks it again."""
    pattern = f"^{PRINTABLE}{{1,{longest}}}$"
    return fields.String(metadata={"description": description, "pattern": pattern}, **options)


def id_field(what: str, **options: Any) -> fields.String:
    """Return a field for the id of something to look up: what is no id is not found."""
    return fields.String(metadata={"description": f"id of {what}", "pattern": f"^{ID}$"}, **options)


def between(low: int, high: int) -> validate.Range:
    """Return a validator of whole numbers."""
    return validate.Range(low, high, error=f"must be a whole number from {low} to {high}")


def one_of(words: Sequence[str]) -> validate.OneOf:
    """Return a validator of words."""
    return validate.OneOf(words, error=f"must be one of {', '.join(words)}")


def page_limit() -> QueryInteger:
    """Return the field `limit` of the query of a list."""
    return QueryInteger(1, PAGE_LIMIT, "how many at most", load_default=50)


def json_value(description: str, schema: Mapping[str, object], **options: Any) -> fields.Raw:
    """Return a field for a value that the core makes or checks; `schema` is its JSON Schema."""
    return fields.Raw(metadata={"description": description, **schema}, **options)


class PageQuery(BaseSchema):
    """Which part of a list."""

    limit = page_limit()
    cursor = fields.String(
        load_default=None, metadata={"description": "the `next` of the page before", "pattern": f"^{DECISION_ID}$"}
    )


def page_of(schema: type[ma.Schema]) -> type[ma.Schema]:
    """Return the schema of a page of a list."""
    return ma.Schema.from_dict(
        {
            "items": fields.List(fields.Nested(schema)),
            "next": text("cursor of the next page; null: no more", allow_none=True),
        },
        name=f"{schema.__name__}Page",
    )
