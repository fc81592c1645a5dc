"""Decisions: records, explanations, counterfactuals, outcomes, erasure."""

from marshmallow import fields

import espalier
from service.schemas.fields import (
    CATEGORY,
    LABEL,
    MAX_INTEGER,
    POINT,
    BaseSchema,
    PageQuery,
    QueryInteger,
    StrictInteger,
    UtcDateTime,
    boolean,
    integer,
    json_value,
    list_of,
    moment,
    one_of,
    page_of,
    printable,
    real,
    search_text,
    text,
)
from service.schemas.predictions import Answer, Explained


class Decision(BaseSchema):
    """A logged decision."""

    id = text("its id")
    model_name = fields.String(data_key="model")
    version = fields.Integer()
    time = fields.AwareDateTime()
    input = json_value("the row as it was given", {"type": "object", "additionalProperties": LABEL})
    answer = fields.Nested(Answer)
    missing = text("the strategy for missing values that was in force")
    leaf = integer("null: the row was refused", allow_none=True)
    nodes = list_of(fields.Integer(), "nodes from the root to the leaf")
    subject = fields.String(allow_none=True)
    alias = text("the alias by which the version was chosen", allow_none=True)
    key_id = text("id of the key that asked; null where keys were off", data_key="key", allow_none=True)
    document_sha256 = text("SHA-256 of the model document that answered")
    milliseconds = real("from the request's arrival to the record")
    masked = list_of(fields.String(), "attributes whose values were not kept, by the model's mask")
    erased = moment("when all values were erased", allow_none=True)
    operating_point = json_value("that was in force: from which probability on the label was given", POINT)


DecisionPage = page_of(Decision)


class DecisionQuery(PageQuery):
    """Which decisions."""

    model = search_text("only by this model")
    version = QueryInteger(1, MAX_INTEGER, "only by this version of the model", load_default=None)
    label = search_text("only with this answer")
    leaf = QueryInteger(0, MAX_INTEGER, "only from this leaf", load_default=None)
    subject = search_text("only about this subject")
    from_time = UtcDateTime(
        load_default=None, data_key="from", metadata={"description": "at this moment or later (ISO 8601 with zone)"}
    )
    to_time = UtcDateTime(
        load_default=None, data_key="to", metadata={"description": "before this moment (ISO 8601 with zone)"}
    )


class Explanation(BaseSchema):
    """A decision, derived once more from the version that made it, and compared."""

    decision_id = fields.String()
    model = fields.String()
    version = fields.Integer()
    verified = boolean("whether the version answers today what it answered then; null: see `reason`", allow_none=True)
    reason = text("why that cannot be known: values are not in the log", allow_none=True)
    erased = list_of(fields.String(), "attributes whose values are not there; then `explanation` is the logged answer")
    operating_point = json_value("that was in force", POINT)
    explanation = fields.Nested(Explained)


class ExplanationQuery(BaseSchema):
    """In which form to show an explanation."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "svg"]))


COST = {"type": "number", "minimum": 0}


class CounterfactualRequest(BaseSchema):
    """Which other answer, and what may change."""

    label = json_value("the class that is wanted; null: any other (classification)", CATEGORY, load_default=None)
    range = json_value(
        "the least and the greatest number wanted, null where that end is open (regression)",
        {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "null"]}},
        load_default=None,
    )
    immutable = list_of(text("name of an attribute"), "attributes that stay as they are", load_default=list)
    costs = json_value(
        "factors on the distances by attribute; where nothing is said, the attribute costs of the training, else 1",
        {"type": "object", "additionalProperties": COST},
        load_default=dict,
    )
    max = StrictInteger(1, espalier.MOST_COUNTERFACTUALS, "how many at most", load_default=5)


class Change(BaseSchema):
    """One attribute's other value."""

    attribute = text("its name")
    before = json_value("the value that it has; null: it is missing", LABEL, data_key="from")
    after = json_value("the value that it would have", LABEL, data_key="to")
    distance = real("1 is the span of the training values, or another category")
    cost = real("the distance times the attribute's cost")


class Counterfactual(BaseSchema):
    """Changes that lead to another answer."""

    changes = fields.List(fields.Nested(Change))
    distance = fields.Float()
    cost = real("what they are ordered by, least first")
    leaf = integer("number of the node, or of the rule, that answers then")
    answer = fields.Nested(Answer)
    text = text("the same as a sentence")


class Counterfactuals(BaseSchema):
    """The nearest changes of a decision's row that lead to another answer, at most one a leaf."""

    decision_id = text("the decision")
    model = fields.String()
    version = fields.Integer()
    answer = fields.Nested(Answer, metadata={"description": "what the row itself is answered"})
    counterfactuals = fields.List(fields.Nested(Counterfactual))
    complete = boolean("false: the model is so large that the search was given up")


class OutcomeRequest(BaseSchema):
    """What turned out to be true: one of the two."""

    label = json_value("the true class (classification)", CATEGORY)
    value = json_value("the true number (regression)", {"type": "number"})


class Outcome(BaseSchema):
    """What turned out to be true of a decision."""

    decision_id = text("the decision")
    label = json_value("the true class (classification)", LABEL)
    value = real("the true number (regression)")
    right = boolean("whether that was answered (classification; null: regression)", allow_none=True)
    at = moment("when it was said")


class ErasureQuery(BaseSchema):
    """Whose decisions."""

    subject = printable("whom the decisions are about", longest=200, required=True)


class Erasure(BaseSchema):
    """How much was erased just now."""

    n_records = integer("requests, or parts of streams")
    n_decisions = integer("rows")
