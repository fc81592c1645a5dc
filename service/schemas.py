"""What comes in and what goes out, field by field: checked on the way in, and the source of the OpenAPI document.

Training fields, pruning parameters and holdouts are only shown here, read from the core's own tables; the core's own
parsers check them, so that a fault reads the same on the command line and over HTTP.
"""

from collections.abc import Mapping
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

import espalier
from service.tables import Kind, State

__all__ = [
    "DATA_SET_REQUEST",
    "DECISION_ID",
    "ID",
    "MODEL_NAME",
    "PREDICTION_REQUEST",
    "DataSet",
    "DataSetPage",
    "DataSetQuery",
    "Decision",
    "DecisionPage",
    "DecisionQuery",
    "Explanation",
    "ExplanationQuery",
    "Job",
    "JobPage",
    "JobQuery",
    "JobResult",
    "JobWaitQuery",
    "Model",
    "ModelPage",
    "PageQuery",
    "PredictionAnswer",
    "Problem",
    "PruningJobRequest",
    "RowPage",
    "RowsQuery",
    "Status",
    "TrainingJobRequest",
    "TreeQuery",
    "Version",
    "VersionPage",
]

MODEL_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
DECISION_ID = f"{ID}(?::[0-9]{{1,9}})?"
LONGEST_PAGE = 200
LONGEST_WAIT_SECONDS = 20
EXPLAIN = ("none", "path", "full")

OBJECT: Mapping[str, object] = {"type": "object"}
LABEL = {"type": ["string", "number", "boolean", "null"]}


def _text(description: str, **more: Any) -> fields.String:
    return fields.String(metadata={"description": description}, **more)


def _shape(description: str, shape: Mapping[str, object], **more: Any) -> fields.Raw:
    """A value that the core makes or checks; `shape` is its JSON Schema."""
    return fields.Raw(metadata={"description": description, **shape}, **more)


def _parameters(kind: type) -> dict[str, Any]:
    """JSON Schema of a parameter object of the core, read from the core's own table of fields."""
    return {
        "type": "object",
        "properties": {
            info.name: {
                "description": f"{info.meaning} ({info.legal})",
                **({"examples": list(info.choices)} if info.choices else {}),
            }
            for info in espalier.field_table(kind)
        },
        "additionalProperties": False,
    }


PRESET_PARAMETERS = _parameters(espalier.TrainingConfig)
PRUNING_PARAMETERS = {
    "type": "object",
    "properties": {
        name: shape for kind in espalier.PRUNERS.values() for name, shape in _parameters(kind)["properties"].items()
    },
}
HOLDOUT = {
    "type": ["object", "null"],
    "examples": [{"fraction": 0.3, "seed": 1, "stratified": True}, {"rows": [0, 5, 7]}],
    "properties": {
        "fraction": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "seed": {"type": "integer", "minimum": 0},
        "stratified": {"type": "boolean"},
        "rows": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "dataset": {"type": "string", "description": "id of another data set with the same columns"},
    },
}


class Shape(ma.Schema):
    """Keeps the order of its fields and refuses what it does not know."""

    class Meta:
        unknown = ma.RAISE


# --- in


class PageQuery(Shape):
    """Which part of a list."""

    limit = fields.Integer(
        load_default=50,
        validate=validate.Range(1, LONGEST_PAGE),
        metadata={"description": "how many at most"},
    )
    cursor = _text("the `next` of the page before", load_default=None)


class RowsQuery(Shape):
    """Which rows of a data set."""

    limit = fields.Integer(
        load_default=50, validate=validate.Range(1, LONGEST_PAGE), metadata={"description": "how many at most"}
    )
    cursor = fields.Integer(
        load_default=0,
        validate=validate.Range(0, 2**53),
        metadata={"description": "the `next` of the page before: the number of the first row, counted from 0"},
    )


class DataSetQuery(Shape):
    """How an uploaded body is to be read."""

    name = _text("what to call it", load_default="data set")
    target = _text("the column to learn", load_default=None)
    task = _text(
        "overrides what the target's values suggest",
        load_default=None,
        validate=validate.OneOf(["classification", "regression"]),
    )
    missing_values = _text(
        "cells that stand for a missing value, separated by commas; `?` and `NA` if not said", load_default=None
    )
    weight = _text("the column of row weights", load_default=None)
    ignore = _text("columns that are kept but never looked at, separated by commas", load_default=None)


class JobQuery(PageQuery):
    """Which jobs."""

    state = _text("only in this state", load_default=None, validate=validate.OneOf([state.value for state in State]))
    kind = _text("only of this kind", load_default=None, validate=validate.OneOf([kind.value for kind in Kind]))
    model = _text("only for this model", load_default=None)


class JobWaitQuery(Shape):
    """How long to wait for the end of a job."""

    wait = fields.Integer(
        load_default=0,
        validate=validate.Range(0, LONGEST_WAIT_SECONDS),
        metadata={
            "description": "seconds to wait for the job to end; fewer, down to none, where many are waiting already"
        },
    )


class DecisionQuery(PageQuery):
    """Which decisions."""

    model = _text("only by this model", load_default=None)
    version = fields.Integer(
        load_default=None,
        validate=validate.Range(1, 2**31 - 1),
        metadata={"description": "only by this version of the model"},
    )
    label = _text("only with this answer (single rows)", load_default=None)
    leaf = fields.Integer(
        load_default=None,
        validate=validate.Range(0, 2**31 - 1),
        metadata={"description": "only from this leaf (single rows)"},
    )
    subject = _text("only about this subject", load_default=None)
    from_time = fields.AwareDateTime(
        load_default=None, data_key="from", metadata={"description": "at this moment or later (ISO 8601 with zone)"}
    )
    to_time = fields.AwareDateTime(
        load_default=None, data_key="to", metadata={"description": "before this moment (ISO 8601 with zone)"}
    )


class TreeQuery(Shape):
    """In which form to show a tree."""

    format = _text("the form", load_default="json", validate=validate.OneOf(["json", "text", "mermaid"]))


class ExplanationQuery(Shape):
    """In which form to show an explanation."""

    format = _text("the form", load_default="json", validate=validate.OneOf(["json", "text"]))


class TrainingJobRequest(Shape):
    """Train a new version of a model."""

    model = _text(
        "the model that gets the new version; made if it is not there",
        required=True,
        validate=validate.Regexp(
            f"{MODEL_NAME}\\Z",
            error="a model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with a letter or a digit",
        ),
    )
    dataset = _text("id of the data set", required=True)
    preset = fields.String(
        load_default="cart", metadata={"description": "the algorithm", "enum": list(espalier.PRESETS)}
    )
    params = fields.Dict(
        keys=fields.String(),
        load_default=dict,
        metadata={"description": "fields of the preset to change", **PRESET_PARAMETERS},
    )
    holdout = _shape("rows set aside before anything is learned", HOLDOUT, load_default=None, allow_none=True)


class PruningJobRequest(Shape):
    """Prune a version; the result is a new version."""

    model = _text("the model", required=True)
    version = fields.Integer(
        load_default=None,
        allow_none=True,
        strict=True,
        validate=validate.Range(1, 2**31 - 1),
        metadata={"description": "which version; the newest if not said"},
    )
    method = fields.String(
        required=True, metadata={"description": "the pruning method", "enum": list(espalier.PRUNERS)}
    )
    params = fields.Dict(
        keys=fields.String(), load_default=dict, metadata={"description": "its parameters", **PRUNING_PARAMETERS}
    )
    holdout = _shape(
        "rows to prune by, of the data set that the version was trained on, or another data set; "
        "if not given, the rows that were set aside when it was trained",
        HOLDOUT,
        load_default=None,
        allow_none=True,
    )


# Predictions are read by hand: this is what the OpenAPI document says about them.
PREDICTION_REQUEST: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "additionalProperties": LABEL},
            "description": "one object a row: attribute names and values; null or absent is missing",
        },
        "columns": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": LABEL},
            "description": "instead of rows: attribute names and lists of values, all of one length",
        },
        "explain": {
            "type": "string",
            "enum": list(EXPLAIN),
            "default": "path",
            "description": "none: the answer; path: with the tests that led to it; full: with all that is known of it",
        },
        "subject": {
            "type": ["string", "null"],
            "maxLength": 200,
            "description": "whom the decision is about; decisions can be listed by it",
        },
    },
    "oneOf": [{"required": ["rows"]}, {"required": ["columns"]}],
    "additionalProperties": False,
    "examples": [{"rows": [{"Outlook": "Sunny", "Humidity": "High", "Wind": "Weak"}], "explain": "path"}],
}


# A data set comes as CSV or JSON; the body is read by the core.
DECLARATION: Mapping[str, Any] = {
    "type": "object",
    "description": "what is declared of the columns; the rest is inferred",
    "properties": {
        "target": {"type": ["string", "null"]},
        "task": {"enum": ["classification", "regression", None]},
        "missing_values": {"type": "array", "items": {"type": "string"}},
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "kind": {"enum": [kind.value for kind in espalier.FeatureKind]},
                    "role": {"enum": [role.value for role in espalier.Role]},
                    "categories": {"type": "array", "items": LABEL},
                },
            },
        },
    },
}
DATA_SET_REQUEST: Mapping[str, Any] = {
    "required": True,
    "content": {
        "text/csv": {"schema": {"type": "string", "examples": ["wind,play\nweak,yes\nstrong,no\n"]}},
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "rows": {"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": LABEL}},
                    "columns": {"type": "object", "additionalProperties": {"type": "array", "items": LABEL}},
                    "schema": DECLARATION,
                },
                "oneOf": [{"required": ["rows"]}, {"required": ["columns"]}],
                "additionalProperties": False,
                "examples": [{"rows": [{"wind": "weak", "play": "yes"}, {"wind": "strong", "play": "no"}]}],
            }
        },
    },
}


# --- out


class DataSet(Shape):
    """A data set."""

    id = _text("its id")
    name = _text("what it is called")
    n_rows = fields.Integer()
    n_attributes = fields.Integer()
    task = _text("what its target asks for; null without a target", allow_none=True)
    declared = _shape("every column: kind, role, categories", OBJECT, data_key="schema")
    notices = fields.List(fields.String(), metadata={"description": "what a reader should know"})
    fingerprint = _text("SHA-256 of schema and cells")
    created = fields.AwareDateTime()


class RowPage(Shape):
    """Some rows of a data set."""

    items = fields.List(_shape("column names and values", {"type": "object", "additionalProperties": LABEL}))
    next = fields.Integer(allow_none=True, metadata={"description": "cursor of the next page; null: there is none"})


class Fault(Shape):
    """One thing that is wrong."""

    pointer = _text("JSON pointer into what was sent; a query parameter counts as a member")
    code = _text("a stable word for programs")
    message = _text("what is wrong and what is legal")


class JobError(Shape):
    """Why a job failed."""

    code = fields.String()
    message = fields.String()
    errors = fields.List(fields.Nested(Fault))


class JobResult(Shape):
    """What came of a job."""

    model = fields.String()
    version = fields.Integer()


class Job(Shape):
    """A piece of work that a worker does."""

    id = _text("its id")
    kind = fields.String(metadata={"enum": [kind.value for kind in Kind]})
    state = fields.String(metadata={"enum": [state.value for state in State]})
    model = fields.String(allow_none=True)
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    progress = fields.Float(metadata={"description": "0 to 1: share of the training weight settled"})
    phase = _text("what it does now")
    attempt = fields.Integer(metadata={"description": "attempts begun"})
    max_attempts = fields.Integer()
    cancel_requested = fields.Boolean()
    result = fields.Nested(JobResult, allow_none=True)
    error = fields.Nested(JobError, allow_none=True)
    created = fields.AwareDateTime()
    started = fields.AwareDateTime(allow_none=True)
    finished = fields.AwareDateTime(allow_none=True)


class Model(Shape):
    """A model: a name with versions."""

    name = fields.String()
    last_number = fields.Integer(data_key="newest_version")
    created = fields.AwareDateTime()


class Version(Shape):
    """An immutable version of a model."""

    model = fields.String(attribute="model.name")
    number = fields.Integer(data_key="version")
    parent_number = fields.Integer(
        allow_none=True, data_key="parent", metadata={"description": "the version that it was pruned from"}
    )
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    job_id = fields.String(allow_none=True, data_key="job")
    preset = fields.String()
    summary = _shape("sizes, training and held-out figures", OBJECT)
    document_sha256 = fields.String()
    seconds = fields.Float(metadata={"description": "that training or pruning took"})
    created = fields.AwareDateTime()


class Step(Shape):
    """One test on the path to a leaf."""

    node = fields.Integer()
    attribute = fields.String()
    test = _text("`<=` against a threshold, or `in` a set of categories")
    threshold = _shape("of a cut; a date for a datetime attribute", {"type": ["number", "string"]})
    set = fields.List(_shape("a category", LABEL))
    value = _shape("the row's own value; null: missing", LABEL)
    branch = _shape("which way the row went", {"type": ["string", "integer", "null"]})
    margin = fields.Float(allow_none=True, metadata={"description": "distance to the threshold"})
    weight = fields.Float(metadata={"description": "training weight that reached the node"})


class Prediction(Shape):
    """The answer for one row."""

    decision_id = _text("where the decision can be looked up")
    label = _shape("the class (classification)", LABEL)
    distribution = _shape("share of each class", {"type": "object", "additionalProperties": {"type": "number"}})
    confidence = fields.Float(metadata={"description": "Wilson lower bound of the label's share"})
    value = fields.Float(metadata={"description": "the number (regression)"})
    std = fields.Float(allow_none=True, metadata={"description": "standard deviation at the leaf (regression)"})
    support = fields.Float(metadata={"description": "training weight at the leaf"})
    leaf = fields.Integer(allow_none=True)
    flags = _shape("missing and unseen values on the way", OBJECT)
    path = fields.List(fields.Nested(Step), metadata={"description": "every test from the root to the leaf"})
    conditions = fields.List(_shape("the path merged, one line an attribute", OBJECT))
    rule = _text("the path as a sentence")


class PredictionAnswer(Shape):
    """The answers for all rows of a request."""

    model = fields.String()
    version = fields.Integer()
    predictions = fields.List(fields.Nested(Prediction))


class Decision(Shape):
    """A logged decision."""

    id = _text("its id")
    model_name = fields.String(data_key="model")
    version = fields.Integer()
    time = fields.AwareDateTime()
    input = _shape("the row as it was given", {"type": "object", "additionalProperties": LABEL})
    answer = _shape("what was answered", OBJECT)
    leaf = fields.Integer(allow_none=True)
    nodes = fields.List(fields.Integer(), metadata={"description": "nodes from the root to the leaf"})
    subject = fields.String(allow_none=True)
    document_sha256 = _text("SHA-256 of the model document that answered")
    milliseconds = fields.Float(metadata={"description": "from the request's arrival to the record"})


class Explanation(Shape):
    """A decision, derived once more from the version that made it, and compared."""

    decision_id = fields.String()
    model = fields.String()
    version = fields.Integer()
    verified = fields.Boolean(metadata={"description": "whether the version answers today what it answered then"})
    explanation = fields.Nested(Prediction)


class Problem(Shape):
    """What is wrong with a request (RFC 9457)."""

    type = fields.String(required=True)
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    instance = fields.String(required=True)
    request_id = fields.String(required=True)
    retryable = fields.Boolean(required=True)
    errors = fields.List(fields.Nested(Fault), required=True)


class Status(Shape):
    """Whether the process lives, or can answer."""

    status = fields.String()


def _page_of(schema: type[ma.Schema]) -> type[ma.Schema]:
    return ma.Schema.from_dict(
        {
            "items": fields.List(fields.Nested(schema)),
            "next": fields.String(allow_none=True, metadata={"description": "cursor of the next page; null: no more"}),
        },
        name=f"{schema.__name__}Page",
    )


DataSetPage = _page_of(DataSet)
JobPage = _page_of(Job)
ModelPage = _page_of(Model)
VersionPage = _page_of(Version)
DecisionPage = _page_of(Decision)
