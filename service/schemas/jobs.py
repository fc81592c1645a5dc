"""What jobs can be asked for over HTTP, field by field.

Training fields, pruning parameters and holdouts are only shown here, read from the core's own tables; the core's own
parsers check them, so that a fault reads the same on the command line and over HTTP.
"""

from typing import Any

from marshmallow import fields, validate

import espalier
from service.schemas.fields import (
    ID,
    MODEL_NAME,
    PRINTABLE,
    BaseSchema,
    StrictInteger,
    between,
    id_field,
    json_value,
    matching,
    one_of,
    text,
)
from service.usecases.candidates import LONGEST_NAME, MOST_CANDIDATES


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


PRUNING = PRESET_PARAMETERS["properties"]["pruning"]


def _preset() -> fields.String:
    return fields.String(load_default="cart", metadata={"description": "the algorithm", "enum": list(espalier.PRESETS)})


def _params() -> fields.Dict:
    return fields.Dict(
        keys=fields.String(),
        load_default=dict,
        metadata={"description": "fields of the preset to change", **PRESET_PARAMETERS},
    )


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


def _version(description: str) -> StrictInteger:
    return StrictInteger(
        load_default=None,
        allow_none=True,
        validate=between(1, 2**31 - 1),
        metadata={"description": description},
    )


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
        f"{PRINTABLE}{{1,{LONGEST_NAME}}}",
        "what the answer calls it; unique; if not given, preset and fields",
        error=f"must have 1 to {LONGEST_NAME} printable characters",
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
        validate=validate.Length(1, MOST_CANDIDATES, error=f"must be 1 to {MOST_CANDIDATES} candidates"),
        metadata={"minItems": 1, "maxItems": MOST_CANDIDATES},
    )
    folds = StrictInteger(
        load_default=None,
        allow_none=True,
        validate=between(2, 1000),
        metadata={"description": "in how many parts the rows are dealt out, each tested on once; 10 without a holdout"},
    )
    holdout = json_value(
        "rows to test on, or another data set, instead of folds", HOLDOUT, load_default=None, allow_none=True
    )
    label_noise = fields.Float(
        load_default=0.0,
        validate=validate.Range(0, 1, max_inclusive=False, error="must be a share of at least 0 and below 1"),
        metadata={"description": "share of the training rows that are given a wrong class; tests are never touched"},
    )
    seed = StrictInteger(
        load_default=0,
        validate=between(0, MAX_SEED),
        metadata={"description": "for everything that is drawn at random"},
    )
