"""The pieces that schemas are made of, and what names and ids look like."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

__all__ = [
    "ALIAS",
    "CATEGORY",
    "COLUMN",
    "DECISION_ID",
    "ID",
    "LABEL",
    "LONGEST_PAGE",
    "MODEL_NAME",
    "OBJECT",
    "POINT",
    "PRINTABLE",
    "SHARES",
    "Digits",
    "Listed",
    "Moment",
    "Shape",
    "Whole",
    "between",
    "identified",
    "one_of",
    "printable",
    "shape",
    "sought",
    "spelled",
    "text",
]

MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
ALIAS = "[A-Za-z][A-Za-z0-9._-]{0,63}"
ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
DECISION_ID = f"{ID}(?::(?:0|[1-9][0-9]{{0,8}}))?"

PRINTABLE = "[^\\x00-\\x1f\\x7f-\\x9f]"
"""A sign that is no control character; for the others that cannot be printed, patterns of Python have no name."""

WITHOUT_NUL = "^[^\\x00]*$"
"""Not every database takes NUL in a text."""

DIGITS = re.compile("-?[0-9]+")
LONGEST_PAGE = 200

OBJECT: Mapping[str, object] = {"type": "object"}
LABEL = {"type": ["string", "number", "boolean", "null"]}
CATEGORY = {"type": ["string", "number", "boolean"]}
COLUMN = {"type": "string", "minLength": 1, "maxLength": 1000, "pattern": WITHOUT_NUL}
SHARES = {"type": "object", "additionalProperties": {"type": "number"}}


POINT = {
    "type": ["object", "null"],
    "properties": {
        "label": CATEGORY,
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": ["label", "probability"],
    "additionalProperties": False,
}


class Shape(ma.Schema):
    """Keeps the order of its fields and refuses what it does not know; once made it is not changed."""

    class Meta:  # noqa: D106 - marshmallow's own way to set this
        unknown = ma.RAISE

    def __deepcopy__(self, _: object) -> "Shape":
        """Give itself: each decorator of a view copies what was said of the view before, shapes and all."""
        return self


class Whole(fields.Integer):
    """A whole number in a JSON body, as JSON Schema counts them: 3.0 is one, the text "3" is none."""

    def __init__(self, **more: Any) -> None:
        super().__init__(strict=True, **more)

    def _validated(self, value: Any) -> int:
        return super()._validated(int(value) if isinstance(value, float) and value.is_integer() else value)


class Digits(fields.Integer):
    """A whole number in a query: digits 0 to 9, with a minus before them or not, and no other way that Python reads."""

    def _validated(self, value: Any) -> int:
        if isinstance(value, str) and not DIGITS.fullmatch(value):
            raise self.make_error("invalid", input=value)
        return super()._validated(value)


class Moment(fields.AwareDateTime):
    """A moment with its zone, read in UTC; one that has no date there, at either end of the calendar, is refused."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:
        moment = super()._deserialize(value, attr, data, **kwargs)
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            raise ma.ValidationError("must be in the years 1 to 9999 as UTC counts them") from None


class Listed(fields.List[Any]):
    """A list that is empty where there is none."""

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> list[Any] | None:
        return super()._serialize(value or [], attr, obj, **kwargs)


def text(description: str, **more: Any) -> fields.String:
    """Give a field of text."""
    return fields.String(metadata={"description": description}, **more)


def sought(description: str) -> fields.String:
    """Give a field for a text that is looked for, if anything is; what no text of ours can hold is refused."""
    return fields.String(
        load_default=None,
        validate=validate.ContainsNoneOf("\0", error="must not hold the character NUL"),
        metadata={"description": description, "pattern": WITHOUT_NUL},
    )


def spelled(pattern: str, description: str, *, error: str, **more: Any) -> fields.String:
    """Give a field of text that matches a pattern from its first sign to its last."""
    whole = re.compile(pattern)

    def check(text: str) -> None:
        if not whole.fullmatch(text):
            raise ma.ValidationError(error)

    # Python's own mark for the end of a text means nothing in JSON Schema, where patterns are written as in JavaScript.
    return fields.String(validate=check, metadata={"description": description, "pattern": f"^{pattern}$"}, **more)


def printable(description: str, *, longest: int, **more: Any) -> fields.String:
    """Give a field of 1 to `longest` printable signs, which are looked at again where the text is kept."""
    pattern = f"^{PRINTABLE}{{1,{longest}}}$"
    return fields.String(metadata={"description": description, "pattern": pattern}, **more)


def identified(what: str, **more: Any) -> fields.String:
    """Give a field for the id of something that is looked for: what is no id is not found."""
    return fields.String(metadata={"description": f"id of {what}", "pattern": f"^{ID}$"}, **more)


def between(low: int, high: int) -> validate.Range:
    """Give a rule for whole numbers."""
    return validate.Range(low, high, error=f"must be a whole number from {low} to {high}")


def one_of(words: Sequence[str]) -> validate.OneOf:
    """Give a rule for words."""
    return validate.OneOf(words, error=f"must be one of {', '.join(words)}")


def shape(description: str, shape: Mapping[str, object], **more: Any) -> fields.Raw:
    """Give a field for a value that the core makes or checks; `shape` is its JSON Schema."""
    return fields.Raw(metadata={"description": description, **shape}, **more)
