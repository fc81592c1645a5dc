"""Inference responses of the Open Inference Protocol: output tensors, and their body."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

import espalier
from service.inference.tensors import Cells, Tensor, datatype_of, tensor_bytes

PATH_FIELDS: Final = ("path", "paths", "rule")
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """An output tensor; `is_offered` returns whether models with a given schema have this output.

    `cells` converts one prediction to cells of the given datatype. If `width` returns None, the tensor for N rows has
    the shape ``[N]``, else ``[N, width]``.
    """

    is_offered: Callable[[espalier.Schema], bool]
    datatype: Callable[[espalier.Schema], str]
    cells: Callable[[Answer, str], Cells]
    width: Callable[[espalier.Schema], int | None] = lambda _: None
    is_default: bool = True  # returned if a request names no outputs


def _label(answer: Answer, datatype: str) -> Cells:
    label = answer["label"]
    if datatype != "BYTES":
        return [label]
    return [str(label).lower() if isinstance(label, bool) else str(label)]


def _path(answer: Answer, _: str) -> Cells:
    shown = {name: answer[name] for name in PATH_FIELDS if name in answer}
    return [orjson.dumps(shown, option=orjson.OPT_NON_STR_KEYS).decode()]


OUTPUTS: Final[Mapping[str, Output]] = {
    "label": Output(lambda schema: bool(schema.classes), lambda schema: datatype_of(schema.classes), _label),
    "probability": Output(
        lambda schema: bool(schema.classes),
        lambda _: "FP64",
        lambda answer, _: list(answer["distribution"].values()),
        width=lambda schema: len(schema.classes),
    ),
    "value": Output(lambda schema: not schema.classes, lambda _: "FP64", lambda answer, _: [answer["value"]]),
    "leaf_id": Output(lambda _: True, lambda _: "INT64", lambda answer, _: [answer["leaf"]]),
    "decision_id": Output(lambda _: True, lambda _: "BYTES", lambda answer, _: [answer["decision_id"] or ""]),
    "decision_path": Output(lambda _: True, lambda _: "BYTES", _path, is_default=False),
}


def describe_outputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Return the metadata of the outputs; ``probability`` has ``classes``, the class of each column, as JSON text."""
    described = []
    for name, output in OUTPUTS.items():
        if output.is_offered(schema):
            width = output.width(schema)
            one: dict[str, Any] = {"name": name, "datatype": output.datatype(schema)}
            one["shape"] = [-1] if width is None else [-1, width]
            if name == "probability":
                one["parameters"] = {"classes": orjson.dumps(list(schema.classes)).decode()}
            described.append(one)
    return described


def inference_body(
    head: Mapping[str, Any], schema: espalier.Schema, answers: Sequence[Answer], requested: Mapping[str, bool]
) -> tuple[bytes, list[bytes]]:
    """Return the JSON of a response, and the bytes of each output for which `requested` is true."""
    outputs, behind = [], []
    for name, is_binary in requested.items():
        output = OUTPUTS[name]
        datatype, width = output.datatype(schema), output.width(schema)
        cells = [cell for answer in answers for cell in output.cells(answer, datatype)]
        shape = (len(answers),) if width is None else (len(answers), width)
        document: dict[str, Any] = {"name": name, "datatype": datatype, "shape": shape}
        if is_binary:
            behind.append(tensor_bytes(Tensor(name, datatype, shape, cells)))
            document["parameters"] = {"binary_data_size": len(behind[-1])}
        else:
            document["data"] = cells
        outputs.append(document)
    return orjson.dumps({**head, "outputs": outputs}), behind
