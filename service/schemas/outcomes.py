"""What is said and shown of outcomes, field by field."""

from marshmallow import fields

from service.schemas.fields import CATEGORY, LABEL, BaseSchema, json_value, text


class OutcomeRequest(BaseSchema):
    """What turned out to be true: one of the two."""

    label = json_value("the true class (classification)", CATEGORY)
    value = json_value("the true number (regression)", {"type": "number"})


class Outcome(BaseSchema):
    """What turned out to be true of a decision."""

    decision_id = text("the decision")
    label = json_value("the true class (classification)", LABEL)
    value = fields.Float(metadata={"description": "the true number (regression)"})
    right = fields.Boolean(
        allow_none=True, metadata={"description": "whether that was answered (classification; null: regression)"}
    )
    at = fields.AwareDateTime(metadata={"description": "when it was said"})


class Accuracy(BaseSchema):
    """How often a version is right."""

    model = fields.String()
    version = fields.Integer()
    n_outcomes = fields.Integer(metadata={"description": "decisions whose outcome is known; all else is about these"})
    accuracy = fields.Float(allow_none=True, metadata={"description": "share that was right (classification)"})
    classes = fields.List(
        json_value("a class", LABEL), metadata={"description": "of the confusion matrix, in this order"}
    )
    confusion = fields.List(
        fields.List(fields.Integer()),
        metadata={"description": "a row for each true class, a column for each answer (classification)"},
    )
    mae = fields.Float(allow_none=True, metadata={"description": "mean absolute error (regression)"})
    rmse = fields.Float(allow_none=True, metadata={"description": "root mean squared error (regression)"})
    bias = fields.Float(allow_none=True, metadata={"description": "mean of answer minus truth (regression)"})
