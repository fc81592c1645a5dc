"""Inference responses of the Open Inference Protocol: output tensors, and their body."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

import espalier
from service.inference.tensors import Cells, Tensor, datatype_of, tensor_bytes

PATH: Final = "decision_path"  # only returned if the request names it
OUTPUT_NAMES: Final = ("label", "probability", "value", "leaf_id", "decision_id", PATH)
PATH_FIELDS: Final = ("path", "paths", "rule")
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """An output tensor; `cells` converts one prediction to cells of the given datatype."""

    datatype: str
    cells: Callable[[Answer, str], Cells]
    columns: tuple[int, ...] = ()  # the shape without its first number, which is that of the rows


def _label(answer: Answer, datatype: str) -> Cells:
    return [espalier.label_text(answer["label"]) if datatype == "BYTES" else answer["label"]]


def _path(answer: Answer, _: str) -> Cells:
    shown = {name: answer[name] for name in PATH_FIELDS if name in answer}
    return [orjson.dumps(shown, option=orjson.OPT_NON_STR_KEYS).decode()]


def outputs_of(schema: espalier.Schema) -> dict[str, Output]:
    """Return the outputs that models with this schema have; their names are some of `OUTPUT_NAMES`."""
    of_classes = {
        "label": Output(datatype_of(schema.classes), _label),
        "probability": Output("FP64", lambda answer, _: list(answer["distribution"].values()), (len(schema.classes),)),
    }
    return {
        **(of_classes if schema.classes else {"value": Output("FP64", lambda answer, _: [answer["value"]])}),
        "leaf_id": Output("INT64", lambda answer, _: [answer["leaf"]]),
        "decision_id": Output("BYTES", lambda answer, _: [answer["decision_id"] or ""]),
        PATH: Output("BYTES", _path),
    }


def describe_outputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Return the metadata of the outputs; ``probability`` has the parameter ``classes``, its classes as JSON text."""
    described: dict[str, dict[str, Any]] = {
        name: {"name": name, "datatype": output.datatype, "shape": [-1, *output.columns]}
        for name, output in outputs_of(schema).items()
    }
    if schema.classes:
        described["probability"]["parameters"] = {"classes": orjson.dumps(list(schema.classes)).decode()}
    return list(described.values())


def inference_body(
    head: Mapping[str, Any], schema: espalier.Schema, answers: Sequence[Answer], requested: Mapping[str, bool]
) -> tuple[bytes, list[bytes]]:
    """Return the JSON of a response, and the bytes of each output that is requested in binary form."""
    offered, outputs, behind = outputs_of(schema), [], []
    for name, is_binary in requested.items():
        datatype, shape = offered[name].datatype, (len(answers), *offered[name].columns)
        cells = [cell for answer in answers for cell in offered[name].cells(answer, datatype)]
        document: dict[str, Any] = {"name": name, "datatype": datatype, "shape": shape}
        if is_binary:
            behind.append(tensor_bytes(Tensor(name, datatype, shape, cells)))
            document["parameters"] = {"binary_data_size": len(behind[-1])}
        else:
            document["data"] = cells
        outputs.append(document)
    return orjson.dumps({**head, "outputs": outputs}), behind
