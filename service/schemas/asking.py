"""What is asked and shown of counterfactuals and consultations, field by field."""

from marshmallow import fields

import espalier
from service.schemas.answers import Answer
from service.schemas.fields import (
    ALIAS,
    CATEGORY,
    LABEL,
    OBJECT,
    BaseSchema,
    StrictInteger,
    between,
    json_value,
    matching,
    one_of,
    text,
)

COST = {"type": "number", "minimum": 0}


class CounterfactualRequest(BaseSchema):
    """Which other answer, and what may change."""

    label = json_value("the class that is wanted; null: any other (classification)", CATEGORY, load_default=None)
    range = json_value(
        "the least and the greatest number wanted, null where that end is open (regression)",
        {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "null"]}},
        load_default=None,
    )
    immutable = fields.List(
        text("name of an attribute"), load_default=list, metadata={"description": "attributes that stay as they are"}
    )
    costs = json_value(
        "factors on the distances by attribute; where nothing is said, the attribute costs of the training, else 1",
        {"type": "object", "additionalProperties": COST},
        load_default=dict,
    )
    max = StrictInteger(
        load_default=5,
        validate=between(1, espalier.MOST_COUNTERFACTUALS),
        metadata={"description": "how many at most"},
    )


class Change(BaseSchema):
    """One attribute's other value."""

    attribute = text("its name")
    before = json_value("the value that it has; null: it is missing", LABEL, data_key="from")
    after = json_value("the value that it would have", LABEL, data_key="to")
    distance = fields.Float(metadata={"description": "1 is the span of the training values, or another category"})
    cost = fields.Float(metadata={"description": "the distance times the attribute's cost"})


class Counterfactual(BaseSchema):
    """Changes that lead to another answer."""

    changes = fields.List(fields.Nested(Change))
    distance = fields.Float()
    cost = fields.Float(metadata={"description": "what they are ordered by, least first"})
    leaf = fields.Integer(metadata={"description": "number of the node, or of the rule, that answers then"})
    answer = fields.Nested(Answer)
    text = text("the same as a sentence")


class Counterfactuals(BaseSchema):
    """The nearest changes of a decision's row that lead to another answer, at most one a leaf."""

    decision_id = text("the decision")
    model = fields.String()
    version = fields.Integer()
    answer = fields.Nested(Answer, metadata={"description": "what the row itself is answered"})
    counterfactuals = fields.List(fields.Nested(Counterfactual))
    complete = fields.Boolean(metadata={"description": "false: the model is so large that the search was given up"})


class ConsultationQuery(BaseSchema):
    """Which version is asked."""

    alias = matching(
        ALIAS,
        "the alias of the version that is to answer",
        error="an alias has 1 to 64 of the signs A-Z a-z 0-9 . _ -, first a letter",
        load_default=None,
    )


class ConsultationRequest(BaseSchema):
    """What is known so far."""

    known = json_value(
        "values by attribute; null: it was asked for and is not known; absent: it was not asked for yet",
        {"type": "object", "additionalProperties": LABEL},
        load_default=dict,
    )
    missing = text(
        "what is done at a test whose value is not known; null: as in training",
        load_default=None,
        allow_none=True,
        validate=one_of(list(espalier.PREDICTION_STRATEGIES)),
    )


class Question(BaseSchema):
    """What is to be found out next."""

    attribute = text("its name")
    kind = text("what its values are")
    categories = fields.List(json_value("a category", LABEL), metadata={"description": "that training saw"})
    cost = fields.Float(metadata={"description": "what it costs to find out"})
    node = fields.Integer(metadata={"description": "number of the node, or of the rule, that asks"})


class Possible(BaseSchema):
    """An answer that is still possible."""

    label = json_value("the class", LABEL)
    weight = fields.Float(metadata={"description": "training weight of the leaves that give it and can be reached"})


class Consultation(BaseSchema):
    """How far the answer has come."""

    model = fields.String()
    version = fields.Integer()
    settled = fields.Boolean(metadata={"description": "whether the answer is the same whatever else is found out"})
    next = fields.Nested(Question, metadata={"description": "what is to be found out next; absent once settled"})
    possible = fields.List(fields.Nested(Possible), metadata={"description": "what it can still be (classification)"})
    range = fields.List(
        fields.Float(), metadata={"description": "the least and the greatest number that it can still be (regression)"}
    )
    label = json_value("the class, once it is settled (classification)", LABEL)
    value = fields.Float(metadata={"description": "the number, once it is settled (regression)"})
    answer = fields.Nested(Answer, metadata={"description": "the whole answer, once no more is left to ask"})
    cost = json_value("`total` and cost by attribute of what was looked at so far, each paid once", OBJECT)
