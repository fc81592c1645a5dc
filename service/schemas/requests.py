"""What comes in, field by field: checked, and the source of the OpenAPI document."""

from marshmallow import fields

import espalier
from service.database.tables import Kind, Scope, State
from service.schemas.fields import (
    CATEGORY,
    DECISION_ID,
    MAX_PAGE,
    MODEL_NAME,
    BaseSchema,
    QueryInteger,
    UtcDateTime,
    between,
    json_value,
    one_of,
    printable,
    search_text,
    text,
)

LONGEST_WAIT_SECONDS = 20
LARGEST_INTEGER = 2**31 - 1


class PageQuery(BaseSchema):
    """Which part of a list."""

    limit = QueryInteger(
        load_default=50,
        validate=between(1, MAX_PAGE),
        metadata={"description": "how many at most"},
    )
    cursor = fields.String(
        load_default=None, metadata={"description": "the `next` of the page before", "pattern": f"^{DECISION_ID}$"}
    )


class RowsQuery(BaseSchema):
    """Which rows of a data set."""

    limit = QueryInteger(load_default=50, validate=between(1, MAX_PAGE), metadata={"description": "how many at most"})
    cursor = QueryInteger(
        load_default=0,
        validate=between(0, 2**53),
        metadata={"description": "the `next` of the page before: the number of the first row, counted from 0"},
    )


class DataSetQuery(BaseSchema):
    """How an uploaded body is to be read."""

    name = printable("what to call it", longest=200, load_default="data set")
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


class ProfileQuery(BaseSchema):
    """In which unit to show entropies."""

    log_base = text("2: bits, e: nats, 10: bans", load_default="2", validate=one_of(["2", "e", "10"]))


class ColumnChange(BaseSchema):
    """What is to be declared of a column; what is not named stays."""

    name = text("which column", required=True)
    kind = text("what its values are", validate=one_of([kind.value for kind in espalier.FeatureKind]))
    role = text(
        "what it is for (the target is named beside the columns)",
        validate=one_of([role.value for role in espalier.Role if role is not espalier.Role.TARGET]),
    )
    categories = fields.List(
        json_value("a category", CATEGORY), metadata={"description": "all of them, in the order that decides ties"}
    )


class DataSetChange(BaseSchema):
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
    model = search_text("only for this model")


class JobWaitQuery(BaseSchema):
    """How long to wait for the end of a job."""

    wait = QueryInteger(
        load_default=0,
        validate=between(0, LONGEST_WAIT_SECONDS),
        metadata={
            "description": "seconds to wait for the job to end; fewer, down to none, where many are waiting already"
        },
    )


class DecisionQuery(PageQuery):
    """Which decisions."""

    model = search_text("only by this model")
    version = QueryInteger(
        load_default=None,
        validate=between(1, 2**31 - 1),
        metadata={"description": "only by this version of the model"},
    )
    label = search_text("only with this answer")
    leaf = QueryInteger(
        load_default=None,
        validate=between(0, 2**31 - 1),
        metadata={"description": "only from this leaf"},
    )
    subject = search_text("only about this subject")
    from_time = UtcDateTime(
        load_default=None, data_key="from", metadata={"description": "at this moment or later (ISO 8601 with zone)"}
    )
    to_time = UtcDateTime(
        load_default=None, data_key="to", metadata={"description": "before this moment (ISO 8601 with zone)"}
    )


class TreeQuery(BaseSchema):
    """In which form to show a tree."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "mermaid", "dot", "svg"]))
    depth = QueryInteger(
        load_default=None,
        validate=between(0, LARGEST_INTEGER),
        metadata={"description": "at most so many tests below each other; what is below is folded and counted"},
    )
    node = QueryInteger(
        load_default=0,
        validate=between(0, LARGEST_INTEGER),
        metadata={"description": "the number of the node to begin at"},
    )


class RulesQuery(BaseSchema):
    """In which form to show rules, and whether of one class only."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "logic"]))
    label = text("only what a row of this class must be like", load_default=None, data_key="class")


class ExplanationQuery(BaseSchema):
    """In which form to show an explanation."""

    format = text("the form", load_default="json", validate=one_of(["json", "text", "svg"]))


class KeyRequest(BaseSchema):
    """Make a key."""

    name = printable("whose it is", longest=200, required=True)
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
        fields.String(metadata={"description": "name of a model", "pattern": f"^{MODEL_NAME}$"}),
        load_default=None,
        allow_none=True,
        metadata={"description": "the models that it reaches; null: all. Data sets are not limited", "minItems": 1},
    )
    expires = UtcDateTime(
        load_default=None, allow_none=True, metadata={"description": "when it stops working; null: never"}
    )


class JobResultQuery(BaseSchema):
    """In which form to give the answers of a prediction job."""

    format = text(
        "the form; if not said, what the header Accept asks for, else ndjson. Other jobs have JSON only",
        load_default=None,
        validate=one_of(["ndjson", "csv", "parquet"]),
    )
