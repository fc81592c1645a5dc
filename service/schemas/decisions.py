"""Decisions: records, explanations, counterfactuals, outcomes, erasure."""

import espalier
from service.schemas import fields
from service.schemas.predictions import Answer, Explained


class Decision(fields.BaseSchema):
    id = fields.Text("id of the decision")
    model_name = fields.Text(data_key="model")
    version = fields.Integer()
    time = fields.DateTime()
    input = fields.Json("the attribute values that were sent, without masked or erased ones", schema=fields.ROW)
    answer = fields.Nested(Answer)
    missing = fields.Text("the strategy for missing values")
    leaf = fields.Integer("number of the node or rule that predicted; null: the row was refused", allow_none=True)
    nodes = fields.ListOf(fields.Integer(), "nodes from the root to the leaf")
    subject = fields.Text(allow_none=True)
    alias = fields.Text("the alias that selected the version", allow_none=True)
    key_id = fields.Text("id of the key that sent the request; null if keys were off", data_key="key", allow_none=True)
    document_sha256 = fields.Text("SHA-256 of the document of the version")
    milliseconds = fields.Number("milliseconds from the arrival of the request, or of its batch, to the record")
    masked = fields.ListOf(fields.Text(), "attributes whose values were not stored because of the model's mask")
    erased = fields.DateTime("time at which all values were erased", allow_none=True)
    operating_point = fields.OPERATING_POINT


class DecisionQuery(fields.PageQuery):
    model = fields.search_text("only decisions by this model")
    version = fields.query_integer(1, fields.MAX_INTEGER, "only decisions by this version number", load_default=None)
    label = fields.search_text("only decisions with this label")
    leaf = fields.query_integer(0, fields.MAX_INTEGER, "only decisions from this leaf", load_default=None)
    subject = fields.search_text("only decisions about this subject")
    from_time = fields.utc_time("only decisions at this time or later (ISO 8601 with a time zone)", data_key="from")
    to_time = fields.utc_time("only decisions before this time (ISO 8601 with a time zone)", data_key="to")


class OfDecision(fields.OfVersion):
    decision_id = fields.Text("id of the decision")


class Explanation(OfDecision):
    """The explanation of a decision, and whether the version still makes the same decision."""

    verified = fields.Boolean("whether the version makes the same decision today; null: see `reason`", allow_none=True)
    reason = fields.Text("why the decision cannot be verified, such as values that are not in the log", allow_none=True)
    erased = fields.ListOf(
        fields.Text(), "attributes whose values are not stored; `explanation` is then the logged prediction"
    )
    operating_point = fields.OPERATING_POINT
    explanation = fields.Nested(Explained)


class ExplanationQuery(fields.BaseSchema):
    format = fields.word(["json", "text", "svg"], "the format", load_default="json")


class CounterfactualRequest(fields.BaseSchema):
    label = fields.Json(
        "the desired class; null: any other class (classification)", schema=fields.CATEGORY, load_default=None
    )
    range = fields.Json(
        "the smallest and the largest desired number; one of them may be null (required for a regression)",
        schema={"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": ["number", "null"]}},
        load_default=None,
        attribute="value_range",
    )
    immutable = fields.ListOf(fields.Text("name of an attribute"), "attributes that must not change", load_default=list)
    costs = fields.Json(
        "cost of each attribute, by which its distance is multiplied; default: its cost in training, else 1",
        schema={"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
        load_default=dict,
    )
    max = fields.strict_integer(
        1, espalier.MOST_COUNTERFACTUALS, "maximum number of counterfactuals", load_default=5, attribute="most"
    )


class Change(fields.BaseSchema):
    attribute = fields.Text("name of the attribute")
    before = fields.Label("the value in the row; null: missing", data_key="from")
    after = fields.Label("the value after the change", data_key="to")
    distance = fields.Number(
        "difference divided by the training range; ordinal: steps between the categories, divided by the largest "
        "number of steps; 1 for another nominal category or a missing value"
    )
    cost = fields.Number("the distance times the attribute's cost")


class Counterfactual(fields.BaseSchema):
    changes = fields.ListOf(fields.Nested(Change))
    distance = fields.Number("sum of the distances")
    cost = fields.Number("sum of the costs; the counterfactuals are sorted by it")
    leaf = fields.Integer("number of the node or rule that predicts after the changes")
    answer = fields.Nested(Answer)
    text = fields.Text("the changes as a sentence")


class Counterfactuals(OfDecision):
    """The smallest changes to a decision's row that lead to another prediction, at most one per leaf."""

    answer = fields.Nested(Answer, "the prediction for the unchanged row")
    counterfactuals = fields.ListOf(fields.Nested(Counterfactual))
    complete = fields.Boolean(
        "false: fewer than `max` were found, and others may exist: the search stopped early in a very large model, or "
        "a missing or unseen value may divide the row or let a surrogate decide"
    )


class OutcomeRequest(fields.BaseSchema):
    """The true outcome of a decision: either a label or a value."""

    label = fields.Json("the true class (classification)", schema=fields.CATEGORY)
    value = fields.Json("the true number (regression)", schema={"type": "number", "minimum": -1e100, "maximum": 1e100})


class Outcome(fields.BaseSchema):
    decision_id = fields.Text("id of the decision")
    label = fields.Label("the true class (classification)")
    value = fields.Number("the true number (regression)")
    right = fields.Boolean("whether the prediction was correct (classification; null: regression)", allow_none=True)
    at = fields.DateTime("time at which the outcome was reported")


class ErasureQuery(fields.BaseSchema):
    subject = fields.printable("the subject of the decisions", longest=200, required=True)


class Erasure(fields.BaseSchema):
    n_records = fields.Integer("number of erased records: one per request, or per batch of a stream")
    n_decisions = fields.Integer("number of decisions in these records, one per row")
