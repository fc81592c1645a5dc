"""Jobs: responses, queries and requests, and the comparison that an evaluation makes.

The parameters of training and pruning, and the members of a holdout, are documented here and checked by the core.
"""

from collections.abc import Mapping
from typing import Any

from marshmallow import validate

import espalier
from service.database import ID, MODEL_NAME, MODEL_NAME_RULE
from service.database.tables import Kind, State
from service.schemas import fields
from service.schemas.problems import Fault
from service.serialization.media_types import JSON, RESULTS
from service.usecases.evaluation import MAX_CANDIDATES, MAX_NAME_CHARS

KINDS = [kind.value for kind in Kind]
STATES = [state.value for state in State]
MAX_WAIT_SECONDS = 20
MAX_SEED = 2**63 - 1
MAX_MEMORY = 2**50


class JobError(fields.BaseSchema):
    code = fields.Text()
    message = fields.Text()
    errors = fields.ListOf(fields.Nested(Fault))


class JobResult(fields.OfVersion):
    """The result of a job: a new version, the verdict of a comparison, or the number of predicted rows."""

    summary = fields.AnyObject("task and size of the model, and its figures on training rows and held-out rows")
    verdict = fields.Text(
        "which candidate is better, and whether the difference is significant; the rest is at /result"
    )
    n_rows = fields.Integer("number of rows of the predictions or of the comparison; the result itself is at /result")
    operating_point = fields.OPERATING_POINT


class Job(fields.BaseSchema):
    id = fields.Text("id of the job")
    kind = fields.Text(schema={"enum": KINDS})
    state = fields.Text(schema={"enum": STATES})
    model = fields.Text(allow_none=True)
    data_set_id = fields.Text(allow_none=True, data_key="dataset")
    progress = fields.Number("0 to 1: share of the work that is done; it never falls within an attempt")
    phase = fields.Text("the current phase")
    attempt = fields.Integer("number of attempts so far")
    max_attempts = fields.Integer()
    cancel_requested = fields.Boolean()
    result = fields.Nested(JobResult, allow_none=True)
    error = fields.Nested(JobError, allow_none=True)
    created = fields.DateTime()
    started = fields.DateTime(allow_none=True)
    finished = fields.DateTime(allow_none=True)


class JobQuery(fields.PageQuery):
    state = fields.word(STATES, "only jobs in this state", load_default=None)
    kind = fields.word(KINDS, "only jobs of this kind", load_default=None)
    model = fields.search_text("only jobs for this model")


class JobWaitQuery(fields.BaseSchema):
    wait = fields.query_integer(
        0,
        MAX_WAIT_SECONDS,
        "seconds to wait for the end of the job; the response comes at once if many requests wait already",
        load_default=0,
    )


class JobResultQuery(fields.BaseSchema):
    format = fields.word(
        list(RESULTS),
        "the format of predictions; default: by the header Accept, else ndjson. Other results are always JSON",
        load_default=None,
    )


# OpenAPI describes a stream by the schema of one event, an object of the event's fields.
JOB_EVENT: Mapping[str, Any] = {
    "type": "object",
    "description": "an event of a job; lines that begin with a colon keep the connection open",
    "properties": {
        "id": {"type": "string", "description": "id of a transition, for Last-Event-ID"},
        "event": {"enum": ["transition", "progress", "end"]},
        "data": {"type": "string", "contentMediaType": JSON, "description": "the data of the event, as JSON"},
        "retry": {"type": "integer", "description": "milliseconds to wait before reconnecting"},
    },
}


class EvaluatedCandidate(fields.BaseSchema):
    name = fields.Text()
    config = fields.AnyObject("every field of the configuration")
    figures = fields.AnyObject("by measure: mean and standard deviation over the folds, and the figure of each fold")
    confusion = fields.Json(
        "confusion matrix over all folds (classification): weights, a row per true class, a column per predicted "
        "class; test rows with an unknown class are not counted; left out above "
        f"{espalier.MAX_CONFUSION_CLASSES:,} classes",
        schema={"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    )
    leaves = fields.AnyObject("number of leaves or rules: the mean, and the number of each fold")
    seconds = fields.Number("mean seconds to train and prune, over the folds")
    notes = fields.Json(
        "with a holdout: remarks on the test rows, such as classes that do not occur in training",
        schema={"type": "array", "items": {"type": "string"}},
    )


class PairedTest(fields.BaseSchema):
    p_value = fields.Number("two-sided p-value of the difference")
    test = fields.Text("name of the paired test")


class Difference(PairedTest):
    better = fields.Text("name of the best candidate")
    other = fields.Text("name of the other candidate")
    by = fields.Number("difference of the measure; at least 0")
    significant = fields.Boolean("whether the p-value is below 0.05")


class PruningEffect(PairedTest):
    pruned = fields.Text("name of the candidate with pruning")
    unpruned = fields.Text("name of the candidate without")
    gain = fields.Number("improvement of the measure by pruning; below 0: deterioration")
    leaves_kept = fields.Number("leaves of the pruned trees divided by those of the unpruned trees")
    verdict = fields.Text('better, worse, or "may be chance"')


class Comparison(fields.BaseSchema):
    """The comparison of configurations; `espalier evaluate --json` prints the same, but a file name as `dataset`."""

    dataset = fields.Text("id of the data set")
    measure = fields.Text("the measure: accuracy (more is better) or rmse (less is better)")
    classes = fields.ListOf(fields.Label("a class"), "order of the classes in the confusion matrices")
    n_rows = fields.Integer()
    n_tested = fields.Integer("number of test rows with a weight above 0, over all folds")
    folds = fields.Integer("number of trees per candidate; 1 with a holdout")
    label_noise = fields.Number()
    verdict = fields.Text("which candidate is better, and whether the difference is significant")
    candidates = fields.ListOf(fields.Nested(EvaluatedCandidate))
    differences = fields.ListOf(fields.Nested(Difference))
    pruning_effects = fields.ListOf(fields.Nested(PruningEffect))


def _parameters(*kinds: type) -> dict[str, Any]:
    """Return the schema of the fields of all `kinds`; if several kinds have a field, the first kind describes it."""
    described: dict[str, Any] = {}
    for info in (info for kind in kinds for info in espalier.field_table(kind)):
        described.setdefault(info.name, {"description": info.meaning, **info.json_schema})
    return fields.closed(described)


PRESET_PARAMETERS = _parameters(espalier.TrainingConfig)
PRUNING_PARAMETERS = _parameters(*espalier.PRUNERS.values())

OTHER_DATA_SET = {"type": "string", "pattern": f"^{ID}$", "description": "id of another data set with the same columns"}
HELD_OUT_ROWS: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
    "description": "numbers of rows, counted from 0",
}
HELD_OUT_SHARE: Mapping[str, Any] = {
    "fraction": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "seed": {"type": "integer", "minimum": 0, "maximum": MAX_SEED},
    "stratified": {"type": "boolean"},
}
HOLDOUT: dict[str, Any] = {
    "anyOf": [
        fields.closed(HELD_OUT_SHARE, "fraction", title="held out share"),
        fields.closed({"rows": HELD_OUT_ROWS}, "rows", title="held out rows"),
        fields.closed({"dataset": OTHER_DATA_SET}, "dataset", title="held out data set"),
        {"type": "null"},
    ],
    "examples": [{"fraction": 0.3, "seed": 1, "stratified": True}, {"rows": [0, 5, 7]}],
}

# The pattern is not checked: a text that does not match is refused like the id of a data set that does not exist.
DATA_SET = fields.Text("id of the data set", schema={"pattern": f"^{ID}$"}, required=True)
PRESET = fields.Text("the algorithm", load_default="cart", schema={"enum": list(espalier.PRESETS)})
PARAMS = fields.Object(
    "fields of the preset, with their new values", keys=fields.Text(), load_default=dict, schema=PRESET_PARAMETERS
)


def _version(description: str) -> fields.Integer:
    return fields.strict_integer(1, fields.MAX_INTEGER, description, load_default=None, allow_none=True)


def _holdout(description: str) -> fields.Json:
    return fields.Json(description, schema=HOLDOUT, load_default=None, allow_none=True)


class TrainingJobRequest(fields.BaseSchema):
    model = fields.matching(
        MODEL_NAME, "the model; it is created if it does not exist", error=MODEL_NAME_RULE, required=True
    )
    dataset = DATA_SET
    preset = PRESET
    params = PARAMS
    holdout = _holdout("rows that are held out of training")
    memory_limit = fields.strict_integer(
        2**24,
        MAX_MEMORY,
        "bytes of memory for the table, which then stays on disk; the model is the same. A holdout is not possible. "
        "Default: a table that needs more than the memory of a job stays on disk if the request allows it",
        load_default=None,
        allow_none=True,
    )


class PruningJobRequest(fields.BaseSchema):
    model = fields.Text("the model", required=True)
    version = _version("the version; default: the newest that is not archived")
    method = fields.Text("the pruning method", required=True, schema={"enum": list(espalier.PRUNERS)})
    params = fields.Object("parameters of the method", keys=fields.Text(), load_default=dict, schema=PRUNING_PARAMETERS)
    holdout = _holdout(
        "rows to prune with: some rows of the data set that the version was trained on, or another data set; default: "
        "the holdout of the training"
    )


class PredictionJobRequest(fields.BaseSchema):
    model = fields.Text("the model", required=True)
    version = _version("the version; default: the alias `production`, else the newest that is not archived")
    dataset = DATA_SET
    explain = fields.word(
        ["none", "path"], "none: predictions only; path: also the rule of each as a sentence", load_default="path"
    )
    missing = fields.MISSING_STRATEGY


class CandidateRequest(fields.BaseSchema):
    name = fields.matching(
        f"{fields.PRINTABLE}{{1,{MAX_NAME_CHARS}}}",
        "a unique name; default: the preset and the changed fields",
        error=f"must have 1 to {MAX_NAME_CHARS} printable characters",
        load_default=None,
        allow_none=True,
    )
    preset = PRESET
    params = PARAMS
    pruning = fields.Json(
        "how the tree is pruned; null: not at all; default: as in the preset. A method that needs held-out rows gets a "
        "third of the training rows",
        schema={"anyOf": PRESET_PARAMETERS["properties"]["pruning"]["anyOf"]},
        allow_none=True,
    )


class EvaluationJobRequest(fields.BaseSchema):
    dataset = DATA_SET
    candidates = fields.ListOf(
        fields.Nested(CandidateRequest),
        longest=MAX_CANDIDATES,
        required=True,
        validate=validate.Length(1, MAX_CANDIDATES, error=f"must be 1 to {MAX_CANDIDATES} candidates"),
    )
    folds = fields.strict_integer(
        2, 1000, "folds of the cross-validation; default without a holdout: 10", load_default=None, allow_none=True
    )
    holdout = _holdout("rows to test on, or another data set, instead of cross-validation")
    label_noise = fields.Number(
        "share of the training rows whose class is changed at random; test rows are never changed",
        load_default=0.0,
        validate=validate.Range(0, 1, max_inclusive=False, error="must be a share of at least 0 and below 1"),
    )
    seed = fields.strict_integer(0, MAX_SEED, "seed of the folds and the label noise, not of a holdout", load_default=0)
