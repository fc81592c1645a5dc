"""Jobs: their answers, queries and requests, and the comparison that an evaluation makes.

The fields of training, pruning and holdouts are documented here and checked by the core.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validate

import espalier
from service.database import ID, MODEL_NAME
from service.database.tables import Kind, State
from service.schemas.fields import (
    LABEL,
    MAX_INTEGER,
    OBJECT,
    POINT,
    PRINTABLE,
    BaseSchema,
    PageQuery,
    QueryInteger,
    StrictInteger,
    boolean,
    id_field,
    integer,
    json_value,
    list_of,
    matching,
    one_of,
    page_of,
    real,
    search_text,
    text,
)
from service.schemas.problems import Fault
from service.usecases.evaluation import MAX_CANDIDATES, MAX_NAME_CHARS


class JobError(BaseSchema):
    """Why a job failed."""

    code = fields.String()
    message = fields.String()
    errors = fields.List(fields.Nested(Fault))


class JobResult(BaseSchema):
    """What came of a job: a new version of a model, what a comparison says, or how many rows were answered."""

    model = fields.String()
    version = fields.Integer()
    summary = json_value("sizes, training and held-out figures", OBJECT)
    verdict = text("which candidate is better, and whether the difference means anything; the rest is at /result")
    n_rows = integer("rows answered, or compared on; what came of it: /result")
    operating_point = json_value("by which the rows were answered, if by any", POINT)


class Job(BaseSchema):
    """A piece of work that a worker does."""

    id = text("its id")
    kind = fields.String(metadata={"enum": [kind.value for kind in Kind]})
    state = fields.String(metadata={"enum": [state.value for state in State]})
    model = fields.String(allow_none=True)
    data_set_id = fields.String(allow_none=True, data_key="dataset")
    progress = real("0 to 1: share of the training weight settled")
    phase = text("what it does now")
    attempt = integer("attempts begun")
    max_attempts = fields.Integer()
    cancel_requested = fields.Boolean()
    result = fields.Nested(JobResult, allow_none=True)
    error = fields.Nested(JobError, allow_none=True)
    created = fields.AwareDateTime()
    started = fields.AwareDateTime(allow_none=True)
    finished = fields.AwareDateTime(allow_none=True)


JobPage = page_of(Job)


class JobQuery(PageQuery):
    """Which jobs."""

    state = text("only in this state", load_default=None, validate=one_of([state.value for state in State]))
    kind = text("only of this kind", load_default=None, validate=one_of([kind.value for kind in Kind]))
    model = search_text("only for this model")


LONGEST_WAIT_SECONDS = 20


class JobWaitQuery(BaseSchema):
    """How long to wait for the end of a job."""

    wait = QueryInteger(
        0,
        LONGEST_WAIT_SECONDS,
        "seconds to wait for the job to end; fewer, down to none, where many are waiting already",
        load_default=0,
    )


class JobResultQuery(BaseSchema):
    """In which form to give the answers of a prediction job."""

    format = text(
        "the form; if not said, what the header Accept asks for, else ndjson. Other jobs have JSON only",
        load_default=None,
        validate=one_of(["ndjson", "csv", "parquet"]),
    )


# Of a stream of events the schema is that of each; tools read its fields as an object.
JOB_EVENT: Mapping[str, Any] = {
    "type": "object",
    "description": "an event of a job; lines that begin with a colon say only that the stream is still there",
    "properties": {
        "id": {"type": "string", "description": "of a transition: what Last-Event-ID takes"},
        "event": {"enum": ["transition", "progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "what happened, as JSON"},
        "retry": {"type": "integer", "description": "milliseconds before the stream is asked for again"},
    },
}


class EvaluatedCandidate(BaseSchema):
    """One way of training, tested."""

    name = fields.String()
    config = json_value("every field, as it was trained", OBJECT)
    figures = json_value("by measure: mean and standard deviation over the folds, and each fold's own", OBJECT)
    confusion = json_value(
        "of a classification, all folds together: the weight of each true class (a row each) by what was answered; "
        "rows of a class that is not among these are in none of the cells",
        {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    )
    leaves = json_value("of the trees: mean, and each fold's own; of a list of rules, how many rules", OBJECT)
    seconds = real("to train and prune, the mean over the folds")
    notes = json_value(
        "on one split: what one should know of the rows that it was tested on, such as classes that it has not learned",
        {"type": "array", "items": {"type": "string"}},
    )


class Difference(BaseSchema):
    """The best candidate against another one."""

    better = text("name of the best candidate")
    other = text("name of the other one")
    by = real("how much better, in the measure; at least 0")
    p_value = real("chance of such a difference if there were none; two-sided")
    test = text("which paired test says so")
    means_something = boolean("whether the p-value is below 0.05")


class PruningEffect(BaseSchema):
    """A candidate that prunes, beside the candidate that is the same in everything else."""

    pruned = text("name of the one")
    unpruned = text("name of the other")
    gain = real("how much better the pruned one is, in the measure; below 0: worse")
    p_value = real("chance of such a difference if there were none; two-sided")
    test = text("which paired test says so")
    leaves_kept = real("leaves of the pruned trees to those of the unpruned ones")
    verdict = text("better, worse, or may be chance")


class Comparison(BaseSchema):
    """What came of comparing several ways of training; the same as `espalier evaluate --json` prints."""

    dataset = text("id of the data set")
    measure = text("what is compared: accuracy (more is better) or rmse (less is better)")
    classes = list_of(json_value("a class", LABEL), "of the confusion matrices, in this order")
    n_rows = fields.Integer()
    n_tested = integer("rows with weight that each was tested on, of all folds together")
    folds = integer("how many trees of each candidate; 1 with a holdout")
    label_noise = fields.Float()
    verdict = text("which is better, and whether the difference means anything")
    candidates = fields.List(fields.Nested(EvaluatedCandidate))
    differences = fields.List(fields.Nested(Difference))
    pruning_effects = fields.List(fields.Nested(PruningEffect))


def _parameters(kind: type) -> dict[str, Any]:
    """JSON Schema of a parameter object of the core, read from the core's own table of fields."""
    return {
        "type": "object",
        "properties": {
            info.name: {"description": info.meaning, **info.json_schema} for info in espalier.field_table(kind)
        },
        "additionalProperties": False,
    }


PRESET_PARAMETERS = _parameters(espalier.TrainingConfig)


PRUNING_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: shape for kind in espalier.PRUNERS.values() for name, shape in _parameters(kind)["properties"].items()
    },
    "additionalProperties": False,
}


PRUNING = PRESET_PARAMETERS["properties"]["pruning"]


MAX_SEED = 2**63 - 1


HOLDOUTS: dict[str, dict[str, Any]] = {
    "share": {
        "fraction": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "seed": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
        "stratified": {"type": "boolean"},
    },
    "rows": {
        "rows": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
            "description": "numbers of rows, counted from 0",
        }
    },
    "data set": {
        "dataset": {
            "type": "string",
            "pattern": f"^{ID}$",
            "description": "id of another data set with the same columns",
        }
    },
}


HOLDOUT: dict[str, Any] = {
    "anyOf": [
        *(
            {
                "title": f"held out {what}",
                "type": "object",
                "properties": properties,
                "required": [next(iter(properties))],
                "additionalProperties": False,
            }
            for what, properties in HOLDOUTS.items()
        ),
        {"type": "null"},
    ],
    "examples": [{"fraction": 0.3, "seed": 1, "stratified": True}, {"rows": [0, 5, 7]}],
}


def _preset() -> fields.String:
    return fields.String(load_default="cart", metadata={"description": "the algorithm", "enum": list(espalier.PRESETS)})


def _params() -> fields.Dict:
    return fields.Dict(
        keys=fields.String(),
        load_default=dict,
        metadata={"description": "fields of the preset to change", **PRESET_PARAMETERS},
    )


def _version(description: str) -> StrictInteger:
    return StrictInteger(1, MAX_INTEGER, description, load_default=None, allow_none=True)


class TrainingJobRequest(BaseSchema):
    """Train a new version of a model."""

    model = matching(
        MODEL_NAME,
        "the model that gets the new version; made if it is not there",
        error="a model name has 1 to 64 of the signs A-Z a-z 0-9 . _ - and begins with a letter or a digit",
        required=True,
    )
    dataset = id_field("the data set", required=True)
    preset = _preset()
    params = _params()
    holdout = json_value("rows set aside before anything is learned", HOLDOUT, load_default=None, allow_none=True)


class PruningJobRequest(BaseSchema):
    """Prune a version; the result is a new version."""

    model = text("the model", required=True)
    version = _version("which version; the newest if not said")
    method = fields.String(
        required=True, metadata={"description": "the pruning method", "enum": list(espalier.PRUNERS)}
    )
    params = fields.Dict(
        keys=fields.String(), load_default=dict, metadata={"description": "its parameters", **PRUNING_PARAMETERS}
    )
    holdout = json_value(
        "rows to prune by, of the data set that the version was trained on, or another data set; "
        "if not given, the rows that were set aside when it was trained",
        HOLDOUT,
        load_default=None,
        allow_none=True,
    )


class PredictionJobRequest(BaseSchema):
    """Answer every row of a data set."""

    model = text("the model", required=True)
    version = _version("which version; if not said, the one that `production` points at, else the newest")
    dataset = id_field("the data set", required=True)
    explain = text(
        "none: the answers; path: with the rule that each follows, as a sentence",
        load_default="path",
        validate=one_of(["none", "path"]),
    )
    missing = text(
        "what is done with a row at a test whose value it does not have; null: as in training",
        load_default=None,
        allow_none=True,
        validate=one_of(list(espalier.PREDICTION_STRATEGIES)),
    )


class CandidateRequest(BaseSchema):
    """One way of training."""

    name = matching(
        f"{PRINTABLE}{{1,{MAX_NAME_CHARS}}}",
        "what the answer calls it; unique; if not given, preset and fields",
        error=f"must have 1 to {MAX_NAME_CHARS} printable characters",
        load_default=None,
        allow_none=True,
    )
    preset = _preset()
    params = _params()
    pruning = json_value(
        "how the tree is pruned once it is grown; null: not at all; if not given, as the preset does. A method that "
        "asks held-out rows gets a third of the rows that are learned from",
        {"anyOf": PRUNING["anyOf"]},
        allow_none=True,
    )


class EvaluationJobRequest(BaseSchema):
    """Compare several ways of training on the same rows."""

    dataset = id_field("the data set", required=True)
    candidates = fields.List(
        fields.Nested(CandidateRequest),
        required=True,
        validate=validate.Length(1, MAX_CANDIDATES, error=f"must be 1 to {MAX_CANDIDATES} candidates"),
        metadata={"minItems": 1, "maxItems": MAX_CANDIDATES},
    )
    folds = StrictInteger(
        2,
        1000,
        "in how many parts the rows are dealt out, each tested on once; 10 without a holdout",
        load_default=None,
        allow_none=True,
    )
    holdout = json_value(
        "rows to test on, or another data set, instead of folds", HOLDOUT, load_default=None, allow_none=True
    )
    label_noise = real(
        "share of the training rows that are given a wrong class; tests are never touched",
        load_default=0.0,
        validate=validate.Range(0, 1, max_inclusive=False, error="must be a share of at least 0 and below 1"),
    )
    seed = StrictInteger(0, MAX_SEED, "for everything that is drawn at random", load_default=0)
