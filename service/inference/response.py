"""An inference request: read, answered, logged and written. Without a word of Flask: both ways in end here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

import espalier
from service.api.compression import packed
from service.api.context import Service
from service.api.recording import PredictionContext, record_answers
from service.api.responses import JSON
from service.inference.body import HEADER_LENGTH, Framed
from service.inference.request import placed, read_inference, tensors_of
from service.inference.tensors import Tensor, tensor_bytes
from service.usecases import predictions, refusals
from service.usecases.version_resolver import ResolvedVersion

BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Inferred:
    """The answer to an inference request.

    Attributes:
        content: JSON.
        behind: The outputs that were asked for as bytes, in their order.
    """

    content: bytes
    behind: Sequence[bytes]

    def packed(self, accepted: str | None) -> tuple[bytes, dict[str, str]]:
        """Give the body, in an encoding that the header Accept-Encoding names, and the header fields that it needs."""
        body, encoding = packed(b"".join([self.content, *self.behind]), accepted)
        headers = {"Content-Type": BYTES if self.behind else JSON}
        if self.behind:
            headers[HEADER_LENGTH] = str(len(self.content))
        if encoding is not None:
            headers["Content-Encoding"] = encoding
        return body, headers


def answer_inference(inquiry: PredictionContext, framed: Framed) -> Inferred:
    """Answer an inference request and log the decisions.

    Raises:
        ValidationFailed: The request is not valid, or the model cannot take the rows; every fault, by its place.
        espalier.TooLarge: More rows, longer texts or longer paths than the settings allow.
        NotFound: As `find`.
        Conflict: As `find`, or the version that answered was deleted meanwhile.
        LimitExceeded: The log takes no more decisions.
        Unavailable: The database cannot be reached or written now.
    """
    service, answering = inquiry.service, inquiry.find()
    version = answering.version
    schema = version.model.schema
    asked = read_inference(framed, schema, limit=service.settings.max_predict_rows)
    predictions.check_cells(asked.rows, limit=service.settings.max_cell_chars)
    explain = "path" if any(one.name == "decision_path" for one in asked.outputs) else "none"
    predictions.check_paths(version.model, len(asked.rows), explain=explain, limit=service.settings.max_full_nodes)
    record = partial(record_answers, inquiry, answering, asked.rows, subject=asked.subject)
    try:
        answered = predictions.predict(version, asked.rows, explain=explain, limit=service.settings.max_full_nodes)
    except espalier.RowError as error:
        record(refusals.failed(len(asked.rows), error, place=asked.place))
        raise placed(error, asked) from None
    ids = record(answered)
    tensors = list(tensors_of(asked.outputs, schema, answered.answers, ids))
    return _written(_head(service, answering, asked.id), tensors, {one.name for one in asked.outputs if one.binary})


def _head(service: Service, answering: ResolvedVersion, asked_id: str | None) -> dict[str, Any]:
    version = answering.version
    head: dict[str, Any] = {"model_name": version.model_name, "model_version": str(version.number)}
    if asked_id is not None:
        head["id"] = asked_id
    parameters: dict[str, Any] = {**service.audited}
    if answering.settings.operating_point is not None:
        parameters["operating_point"] = orjson.dumps(answering.settings.operating_point).decode()
    if parameters:
        head["parameters"] = parameters
    return head


def _written(head: Mapping[str, Any], tensors: Sequence[Tensor], in_bytes: set[str]) -> Inferred:
    """Write the outputs, those `in_bytes` behind the JSON."""
    outputs, behind = [], []
    for tensor in tensors:
        output: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
        if tensor.name in in_bytes:
            behind.append(tensor_bytes(tensor))
            output["parameters"] = {"binary_data_size": len(behind[-1])}
        else:
            output["data"] = tensor.cells
        outputs.append(output)
    return Inferred(orjson.dumps({**head, "outputs": outputs}), behind)
