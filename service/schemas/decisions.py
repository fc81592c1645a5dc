"""What is shown of decisions, field by field."""

from marshmallow import fields

from service.schemas.answers import Answer, Explained, page_of
from service.schemas.fields import LABEL, POINT, BaseSchema, json_value, text


class Decision(BaseSchema):
    """A logged decision."""

    id = text("its id")
    model_name = fields.String(data_key="model")
    version = fields.Integer()
    time = fields.AwareDateTime()
    input = json_value("the row as it was given", {"type": "object", "additionalProperties": LABEL})
    answer = fields.Nested(Answer)
    missing = text("the strategy for missing values that was in force")
    leaf = fields.Integer(allow_none=True, metadata={"description": "null: the row was refused"})
    nodes = fields.List(fields.Integer(), metadata={"description": "nodes from the root to the leaf"})
    subject = fields.String(allow_none=True)
    alias = text("the alias by which the version was chosen", allow_none=True)
    key_id = text("id of the key that asked; null where keys were off", data_key="key", allow_none=True)
    document_sha256 = text("SHA-256 of the model document that answered")
    milliseconds = fields.Float(metadata={"description": "from the request's arrival to the record"})
    masked = fields.List(
        fields.String(), metadata={"description": "attributes whose values were not kept, by the model's mask"}
    )
    erased = fields.AwareDateTime(allow_none=True, metadata={"description": "when all values were erased"})
    operating_point = json_value("that was in force: from which probability on the label was given", POINT)


class Explanation(BaseSchema):
    """A decision, derived once more from the version that made it, and compared."""

    decision_id = fields.String()
    model = fields.String()
    version = fields.Integer()
    verified = fields.Boolean(
        allow_none=True,
        metadata={"description": "whether the version answers today what it answered then; null: see `reason`"},
    )
    reason = text("why that cannot be known: values are not in the log", allow_none=True)
    erased = fields.List(
        fields.String(),
        metadata={"description": "attributes whose values are not there; then `explanation` is the logged answer"},
    )
    operating_point = json_value("that was in force", POINT)
    explanation = fields.Nested(Explained)


DecisionPage = page_of(Decision)
