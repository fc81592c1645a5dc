"""What is said of models beside their versions, field by field."""

from marshmallow import fields

from service.schemas.fields import POINT, PRINTABLE, BaseSchema, StrictInteger, between, json_value, printable
from service.usecases.curation import LONGEST_DESCRIPTION, LONGEST_TAG, MOST_TAGS

LONGEST_RETENTION_DAYS = 36_500


class ModelChange(BaseSchema):
    """What is to be said of a model; what is not named stays, null takes it away."""

    description = fields.String(
        allow_none=True,
        metadata={
            "description": "for people",
            "maxLength": LONGEST_DESCRIPTION,
            "pattern": f"^(?:{PRINTABLE}|[\\n\\t])*$",
        },
    )
    tags = fields.List(
        printable("a word", longest=LONGEST_TAG),
        allow_none=True,
        metadata={"description": "words to sort models by", "maxItems": MOST_TAGS, "uniqueItems": True},
    )
    mask = fields.List(
        fields.String(),
        allow_none=True,
        metadata={
            "description": "attributes whose values are not kept in the decision log, from now on; such decisions "
            "cannot be answered again to be verified",
            "uniqueItems": True,
        },
    )
    retention_days = StrictInteger(
        allow_none=True,
        validate=between(1, LONGEST_RETENTION_DAYS),
        metadata={"description": "days after which decisions are deleted; null: as ESPALIER_RETENTION_DAYS says"},
    )
    operating_point = json_value(
        "the label is given where its probability reaches this one, elsewhere the most probable of the others; null: "
        "the most probable one is given. Versions without such a class answer as they were trained",
        {**POINT, "type": "object"},  # null is added by what follows
        allow_none=True,
    )


class ErasureQuery(BaseSchema):
    """Whose decisions."""

    subject = printable("whom the decisions are about", longest=200, required=True)


class Erasure(BaseSchema):
    """How much was erased just now."""

    n_records = fields.Integer(metadata={"description": "requests, or parts of streams"})
    n_decisions = fields.Integer(metadata={"description": "rows"})
