"""What comes in, field by field: checked, and the source of the OpenAPI document.

Training fields, pruning parameters and holdouts are only shown here, read from the core's own tables; the core's own
parsers check them, so that a fault reads the same on the command line and over HTTP.
"""

from typing import Any

from marshmallow import fields, validate

import espalier
from service.candidates import LONGEST_NAME, MOST_CANDIDATES
from service.schemas.shape import DECISION_ID, LABEL, MODEL_NAME, Moment, Shape, between, one_of, shape, text
from service.tables import Kind, Scope, State

__all__ = [
    "AliasQuery",
    "AliasRequest",
    "DataSetChange",
    "DataSetQuery",
    "DecisionQuery",
    "EvaluationJobRequest",
    "ExplanationQuery",
    "JobQuery",
    "JobWaitQuery",
    "KeyRequest",
    "PageQuery",
    "ProfileQuery",
    "PruningJobRequest",
    "RowsQuery",
    "RulesQuery",
    "TrainingJobRequest",
    "TreeQuery",
]

LONGEST_PAGE = 200
LONGEST_WAIT_SECONDS = 20


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
PRUNING_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: shape for kind in espalier.PRUNERS.values() for name, shape in _parameters(kind)["properties"].items()
    },
}
HOLDOUT = {
    "type": "object",
    "examples": [{"fraction": 0.3, "seed": 1, "stratified": True}, {"rows": [0, 5, 7]}],
    "properties": {
        "fraction": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "seed": {"type": "integer", "minimum": 0},
        "stratified": {"type": "boolean"},
        "rows": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "dataset": {"type": "string", "description": "id of another data set with the same columns"},
    },
}


PRUNING = {
    "type": ["object", "null"],
    "properties": {"method": {"type": "string", "enum": list(espalier.PRUNERS)}, **PRUNING_PARAMETERS["properties"]},
}


class PageQuery(Shape):
    """Which part of a list."""

    limit = fields.Integer(
        load_default=50,
        validate=between(1, LONGEST_PAGE),
        metadata={"description": "how many at most"},
    )
    cursor = fields.String(
        load_default=None, metadata={"description": "the `next` of the page before", "pattern": f"^{DECISION_ID}$"}
    )


class RowsQuery(Shape):
    """Which rows of a data set."""

    limit = fields.Integer(
        load_default=50, validate=between(1, LONGEST_PAGE), metadata={"description": "how many at most"}
    )
    cursor = fields.Integer(
        load_default=0,
        validate=between(0, 2**53),
        metadata={"description": "the `next` of the page before: the number of the first row, counted from 0"},
    )


class DataSetQuery(Shape):
    """How an uploaded body is to be read."""

    name = fields.String(
        load_default="data set", metadata={"description": "what to call it", "minLength": 1, "maxLength": 200}
    )
    target = text("the column to learn", load_default=None)
    task = text(
        "overrides what the target's values suggest",
        load_default=None,
        validate=one_of(["classification", "regression"]),
    )
    missing_values = text(
        "texts that stand for a missing value beside the empty cell, separated by commas; `?` and `NA` if not said",
        load_default=None,
    )
    weight = text("the column of row weights", load_default=None)
    ignore = text("columns that are kept but never looked at, separated by commas", load_default=None)


class ProfileQuery(Shape):
    """In which unit to show entropies."""

    log_base = text("2: bits, e: nats, 10: bans", load_default="2", validate=one_of(["2", "e", "10"]))


class ColumnChange(Shape):
    """What is to be declared of a column; what is not named stays."""

    name = text("which column", required=True)
    kind = text("what its values are", validate=one_of([kind.value for kind in espalier.FeatureKind]))
    role = text(
        "what it is for (the target is named beside the columns)",
        validate=one_of([role.value for role in espalier.Role if role is not espalier.Role.TARGET]),
    )
    categories = fields.List(
        shape("a category", LABEL), metadata={"description": "all of them, in the order that decides ties"}
    )


class DataSetChange(Shape):
    """Another declaration of the same rows; what is not named stays."""

    target = text("the column to learn; null: none", allow_none=True)
    task = text("overrides what the target's values suggest", validate=one_of(["classification", "regression"]))
    missing_values = fields.List(
        fields.String(),
        metadata={"description": "texts that stand for missing; a cell that was missing already stays missing"},
    )
    columns = fields.List(fields.Nested(ColumnChange))


class JobQuery(PageQuery):
    """Which jobs."""

    state = text("only in this state", load_default=None, validate=one_of([state.value for state in State]))
    kind = text("only of this kind", load_default=None, validate=one_of([kind.value for kind in Kind]))
    model = text("only for this model", load_default=None)


class JobWaitQuery(Shape):
    """How long to wait for the end of a job."""

    wait = fields.Integer(
        load_default=0,
        validate=between(0, LONGEST_WAIT_SECONDS),
        metadata={
            "description": "seconds to wait for the job to end; fewer, down to none, where many are waiting already"
        },
    )


class DecisionQuery(PageQuery):
    """Which decisions."""

    model = text("only by this model", load_default=None)
    version = fields.Integer(
        load_default=None,
        validate=between(1, 2**31 - 1),
        metadata={"description": "only by this version of the model"},
    )
    label = text("only with this answer (single rows)", load_default=None)
    leaf = fields.Integer(
        load_default=None,
        validate=between(0, 2**31 - 1),
        metadata={"description": "only from this leaf (single rows)"},
    )
    subject = text("only about this subject", load_default=None)
    from_time = Moment(
        load_default=None, data_key="from", metadata={"description": "at this moment or later (ISO 8601 with zone)"}
    )
    to_time = Moment(
        load_default=None, data_key="to", metadata={"description": "before this moment (ISO 8601 with zone)"}
    )


class TreeQuery(Shape):
    """In which form to show a tree."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "mermaid"]))


class RulesQuery(Shape):
    """In which form to show rules."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "logic"]))


class ExplanationQuery(Shape):
    """In which form to show an explanation."""

    format = text("the form", load_default="json", validate=one_of(["json", "text"]))


class AliasRequest(Shape):
    """Have an alias point at a version."""

    version = fields.Integer(
        required=True,
        strict=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "the number of the version"},
    )
    if_current = fields.Integer(
        strict=True,
        allow_none=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "only if it points at this version now; null: only if there is no such alias yet"},
    )


class AliasQuery(Shape):
    """Which changes of an alias."""

    at = Moment(
        load_default=None, metadata={"description": "only what was in force at this moment (ISO 8601 with zone)"}
    )
    limit = fields.Integer(
        load_default=50, validate=between(1, LONGEST_PAGE), metadata={"description": "how many at most"}
    )
    cursor = fields.Integer(
        load_default=None, validate=between(1, 2**31 - 1), metadata={"description": "the `next` of the page before"}
    )


class KeyRequest(Shape):
    """Make a key."""

    name = fields.String(required=True, metadata={"description": "whose it is", "minLength": 1, "maxLength": 200})
    scopes = fields.List(
        text("a scope", validate=one_of([scope.value for scope in Scope])),
        required=True,
        metadata={
            "description": "predict: ask models; read: look at data sets, jobs, models; train: upload, train, prune, "
            "delete; audit: look at decisions; admin: all of it, and keys",
            "minItems": 1,
        },
    )
    models = fields.List(
        text("name of a model"),
        load_default=None,
        allow_none=True,
        metadata={"description": "the models that it reaches; null: all. Data sets are not limited", "minItems": 1},
    )
    expires = Moment(load_default=None, allow_none=True, metadata={"description": "when it stops working; null: never"})


class TrainingJobRequest(Shape):
    """Train a new version of a model."""

    model = text(
        "the model that gets the new version; made if it is not there",
        required=True,
        validate=validate.Regexp(
            f"{MODEL_NAME}\\Z",
            error="a model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with a letter or a digit",
        ),
    )
    dataset = text("id of the data set", required=True)
    preset = fields.String(
        load_default="cart", metadata={"description": "the algorithm", "enum": list(espalier.PRESETS)}
    )
    params = fields.Dict(
        keys=fields.String(),
        load_default=dict,
        metadata={"description": "fields of the preset to change", **PRESET_PARAMETERS},
    )
    holdout = shape("rows set aside before anything is learned", HOLDOUT, load_default=None, allow_none=True)


class PruningJobRequest(Shape):
    """Prune a version; the result is a new version."""

    model = text("the model", required=True)
    version = fields.Integer(
        load_default=None,
        allow_none=True,
        strict=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": "which version; the newest if not said"},
    )
    method = fields.String(
        required=True, metadata={"description": "the pruning method", "enum": list(espalier.PRUNERS)}
    )
    params = fields.Dict(
        keys=fields.String(), load_default=dict, metadata={"description": "its parameters", **PRUNING_PARAMETERS}
    )
    holdout = shape(
        "rows to prune by, of the data set that the version was trained on, or another data set; "
        "if not given, the rows that were set aside when it was trained",
        HOLDOUT,
        load_default=None,
        allow_none=True,
    )


class CandidateRequest(Shape):
    """One way of training."""

    name = fields.String(
        load_default=None,
        allow_none=True,
        validate=validate.Regexp(
            f"[^\\x00-\\x1f\\x7f]{{1,{LONGEST_NAME}}}\\Z", error=f"must have 1 to {LONGEST_NAME} printable characters"
        ),
        metadata={"description": "what the answer calls it; unique; if not given, preset and fields"},
    )
    preset = fields.String(
        load_default="cart", metadata={"description": "the algorithm", "enum": list(espalier.PRESETS)}
    )
    params = fields.Dict(
        keys=fields.String(),
        load_default=dict,
        metadata={"description": "fields of the preset to change", **PRESET_PARAMETERS},
    )
    pruning = shape(
        "how the tree is pruned once it is grown; null: not at all; if not given, as the preset does. A method that "
        "asks held-out rows gets a third of the rows that are learned from",
        PRUNING,
        allow_none=True,
    )


class EvaluationJobRequest(Shape):
    """Compare several ways of training on the same rows."""

    dataset = text("id of the data set", required=True)
    candidates = fields.List(
        fields.Nested(CandidateRequest),
        required=True,
        validate=validate.Length(1, MOST_CANDIDATES, error=f"must be 1 to {MOST_CANDIDATES} candidates"),
        metadata={"minItems": 1, "maxItems": MOST_CANDIDATES},
    )
    folds = fields.Integer(
        load_default=None,
        allow_none=True,
        strict=True,
        validate=between(2, 1000),
        metadata={"description": "in how many parts the rows are dealt out, each tested on once; 10 without a holdout"},
    )
    holdout = shape(
        "rows to test on, or another data set, instead of folds", HOLDOUT, load_default=None, allow_none=True
    )
    label_noise = fields.Float(
        load_default=0.0,
        validate=validate.Range(0, 1, max_inclusive=False, error="must be a share of at least 0 and below 1"),
        metadata={"description": "share of the training rows that are given a wrong class; tests are never touched"},
    )
    seed = fields.Integer(
        load_default=0,
        strict=True,
        validate=between(0, 2**63 - 1),
        metadata={"description": "for everything that is drawn at random"},
    )
