"""What comes in and goes out by the Open Inference Protocol."""

from collections.abc import Mapping
from typing import Any

from marshmallow import fields

from service.inference import tensors
from service.inference.response import OUTPUTS
from service.schemas.fields import OBJECT, PRINTABLE, BaseSchema, json_value as raw, list_of, text
from service.schemas.problems import Problem

DATATYPES = list(tensors.DATATYPES)
OUTPUT_NAMES = list(OUTPUTS)
BINARY = {"type": "boolean", "description": "whether the data follow the JSON as bytes"}
PARAMETERS: Mapping[str, Any] = {"type": "object", "description": "those that are not known are passed over"}


class InferenceError(Problem):
    """What is wrong with a request: a problem document (RFC 9457) whose sentence stands under `error`, too."""

    error = fields.String(required=True)


class InferenceServer(BaseSchema):
    """What serves here."""

    name = fields.String()
    version = fields.String()
    extensions = list_of(fields.String(), "what is offered beyond the protocol")


class InferenceHealth(BaseSchema):
    """Whether the process lives, and whether it can answer."""

    live = fields.Boolean()
    ready = fields.Boolean()


class InferenceReadiness(BaseSchema):
    """Whether a model can answer."""

    name = fields.String()
    ready = fields.Boolean()


class InferenceTensor(BaseSchema):
    """What a tensor is."""

    name = fields.String()
    datatype = fields.String(metadata={"enum": DATATYPES})
    shape = list_of(fields.Integer(), "-1: as many as there are rows")
    parameters = raw("of probability: the classes behind its columns, as JSON text", OBJECT)


class InferenceModel(BaseSchema):
    """What a model takes and gives."""

    name = fields.String()
    versions = fields.List(fields.String())
    platform = fields.String()
    inputs = fields.List(fields.Nested(InferenceTensor))
    outputs = fields.List(fields.Nested(InferenceTensor))


class InferenceEntry(BaseSchema):
    """A version that can be asked."""

    name = fields.String()
    version = fields.String()
    state = text("READY, or UNAVAILABLE where the version is archived")
    reason = text("`archived`, or empty")


class InferenceOutput(BaseSchema):
    """The answers to all rows, as one tensor."""

    name = fields.String(metadata={"enum": OUTPUT_NAMES})
    datatype = fields.String(metadata={"enum": DATATYPES})
    shape = fields.List(fields.Integer())
    parameters = raw("binary_data_size: how many of the bytes behind the JSON are its own", OBJECT)
    data = fields.List(raw("a cell", {"type": ["string", "number", "boolean"]}))


class InferenceAnswer(BaseSchema):
    """The answers to all rows."""

    model_name = fields.String()
    model_version = fields.String()
    id = text("as it was given")
    outputs = fields.List(fields.Nested(InferenceOutput))


REQUEST: Mapping[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": ["string", "null"], "description": "comes back with the answer"},
        "parameters": {
            **PARAMETERS,
            "properties": {
                "binary_data_output": {**BINARY, "description": "whether all outputs are wanted as bytes"},
                "subject": {
                    "type": ["string", "null"],
                    "pattern": f"^{PRINTABLE}{{1,200}}$",
                    "description": "whom the decisions are about",
                },
            },
        },
        "inputs": {
            "type": "array",
            "minItems": 1,
            "description": "a tensor an attribute, or one matrix of all attributes in the schema's order",
            "items": {
                "type": "object",
                "required": ["name", "shape", "datatype"],
                "properties": {
                    "name": {"type": "string", "description": "of the attribute; any for a matrix"},
                    "shape": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": 2,
                        "items": {"type": "integer", "minimum": 1},
                        "description": "[N], [N, 1], or [N, F] for a matrix of all F attributes",
                    },
                    "datatype": {"enum": DATATYPES},
                    "parameters": {
                        **PARAMETERS,
                        "properties": {
                            "binary_data_size": {
                                "type": "integer",
                                "minimum": 0,
                                "description": "how many of the bytes behind the JSON are its own, instead of data",
                            }
                        },
                    },
                    "data": {
                        "type": "array",
                        "items": {},
                        "description": "the cells row by row, flat or in lists as the shape says; null is missing",
                    },
                },
            },
        },
        "outputs": {
            "type": ["array", "null"],
            "description": "those that are wanted, in this order; all but decision_path where none are named",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"enum": OUTPUT_NAMES},
                    "parameters": {**PARAMETERS, "properties": {"binary_data": BINARY}},
                },
            },
        },
    },
    "examples": [{"inputs": [{"name": "Outlook", "shape": [2], "datatype": "BYTES", "data": ["Sunny", None]}]}],
}
IN_BYTES = {"type": "string", "format": "binary", "description": "the JSON, then the bytes of the tensors"}
INFERENCE_REQUEST: Mapping[str, Any] = {
    "required": True,
    "description": "gzip and deflate are taken",
    "content": {"application/json": {"schema": REQUEST}, "application/octet-stream": {"schema": IN_BYTES}},
}
INFERENCE_ANSWER: Mapping[str, Any] = {
    "description": "The answers; every decision is in the log",
    "content": {"application/json": {"schema": InferenceAnswer}, "application/octet-stream": {"schema": IN_BYTES}},
    "headers": {
        "Inference-Header-Content-Length": {
            "schema": {"type": "integer"},
            "description": "length of the JSON, where bytes follow it",
        }
    },
}
INDEX_REQUEST: Mapping[str, Any] = {
    "required": False,
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "ready": {
                        "type": "boolean",
                        "description": "true: only the versions that are ready; an archived one is not",
                    }
                },
            }
        }
    },
}
