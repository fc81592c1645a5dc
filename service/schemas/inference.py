"""Requests and responses of the Open Inference Protocol."""

from collections.abc import Mapping
from typing import Any

from service.inference import tensors
from service.inference.request import HEADER_LENGTH
from service.inference.response import OUTPUT_NAMES
from service.schemas import fields
from service.schemas.problems import Problem
from service.serialization.media_types import BYTES, JSON

DATATYPES = list(tensors.DATATYPES)
BINARY = {"type": "boolean", "description": "whether the data follow the JSON as bytes"}
PARAMETERS: Mapping[str, Any] = {"type": "object", "description": "unknown parameters are ignored"}


class InferenceError(Problem):
    """A problem document (RFC 9457) whose detail is also given as `error`."""

    error = fields.Text(required=True)


class InferenceServer(fields.BaseSchema):
    name = fields.Text()
    version = fields.Text()
    extensions = fields.ListOf(fields.Text(), "extensions of the protocol")


class InferenceHealth(fields.BaseSchema):
    live = fields.Boolean()
    ready = fields.Boolean()


class InferenceReadiness(fields.BaseSchema):
    name = fields.Text()
    ready = fields.Boolean()


class InferenceTensor(fields.BaseSchema):
    name = fields.Text()
    datatype = fields.Text(schema={"enum": DATATYPES})
    shape = fields.ListOf(fields.Integer(), "-1: the number of rows")
    parameters = fields.AnyObject("`classes` of the output `probability`: the class of each column, as JSON text")


class InferenceModel(fields.BaseSchema):
    name = fields.Text()
    versions = fields.ListOf(fields.Text())
    platform = fields.Text()
    inputs = fields.ListOf(fields.Nested(InferenceTensor))
    outputs = fields.ListOf(fields.Nested(InferenceTensor))


class InferenceEntry(fields.BaseSchema):
    name = fields.Text()
    version = fields.Text()
    state = fields.Text("READY, or UNAVAILABLE if the version is archived")
    reason = fields.Text("`archived`, or empty")


class InferenceOutput(fields.BaseSchema):
    name = fields.Text(schema={"enum": list(OUTPUT_NAMES)})
    datatype = fields.Text(schema={"enum": DATATYPES})
    shape = fields.ListOf(fields.Integer())
    parameters = fields.AnyObject("`binary_data_size`: number of bytes after the JSON that belong to this output")
    data = fields.ListOf(fields.Json("a cell", schema={"type": ["string", "number", "boolean"]}))


class InferenceAnswer(fields.BaseSchema):
    model_name = fields.Text()
    model_version = fields.Text()
    id = fields.Text("the id of the request")
    parameters = fields.AnyObject("`operating_point` as JSON text; `audited` as in native predictions; both optional")
    outputs = fields.ListOf(fields.Nested(InferenceOutput))


INPUT: Mapping[str, Any] = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string", "description": "name of the attribute; any name for a matrix"},
        "shape": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {"type": "integer", "minimum": 1},
            "description": "[N] or [N, 1] for N rows, or [N, F] for a matrix of all F attributes",
        },
        "datatype": {"enum": DATATYPES},
        "parameters": {
            **PARAMETERS,
            "properties": {
                "binary_data_size": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "number of bytes after the JSON that belong to this tensor, instead of `data`",
                }
            },
        },
        "data": {
            "type": "array",
            "items": {},
            "description": "the cells row by row, in one list or one per row; null: missing; texts are read as in CSV",
        },
    },
}
REQUEST: Mapping[str, Any] = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": ["string", "null"], "description": "an id that the response repeats"},
        "parameters": {
            **PARAMETERS,
            "properties": {
                "binary_data_output": {**BINARY, "description": "whether all outputs are returned as bytes"},
                "subject": fields.SUBJECT,
            },
        },
        "inputs": {
            "type": "array",
            "minItems": 1,
            "description": "one tensor per attribute at most, or a matrix of all attributes in the order of the schema",
            "items": INPUT,
        },
        "outputs": {
            "type": ["array", "null"],
            "description": "the outputs to return, in this order; default: all except decision_path",
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"enum": list(OUTPUT_NAMES)},
                    "parameters": {**PARAMETERS, "properties": {"binary_data": BINARY}},
                },
            },
        },
    },
    "examples": [{"inputs": [{"name": "Outlook", "shape": [2], "datatype": "BYTES", "data": ["Sunny", None]}]}],
}
IN_BYTES = {"type": "string", "format": "binary", "description": "the JSON, followed by the bytes of the tensors"}
LENGTH_MEANING = "length of the JSON in bytes, if the bytes of tensors follow it"
INFERENCE_REQUEST: Mapping[str, Any] = {
    "required": True,
    "description": "`Content-Encoding` gzip and deflate are accepted",
    "content": {JSON: {"schema": REQUEST}, BYTES: {"schema": IN_BYTES}},
}
INFERENCE_ANSWER: Mapping[str, Any] = {
    "description": "The predictions, logged as decisions unless ESPALIER_DECISIONS is off",
    "content": {JSON: {"schema": InferenceAnswer}, BYTES: {"schema": IN_BYTES}},
    "headers": {HEADER_LENGTH: {"schema": {"type": "integer"}, "description": LENGTH_MEANING}},
}
READY_ONLY = {"type": "boolean", "description": "true: only versions that are ready, not archived ones"}
INDEX_REQUEST: Mapping[str, Any] = {
    "required": False,
    "content": {JSON: {"schema": {"type": "object", "properties": {"ready": READY_ONLY}}}},
}
