"""An inference request of the Open Inference Protocol, read by the schema of the version that is to answer.

One tensor an attribute, ``[N]`` or ``[N, 1]``, or one matrix ``[N, F]`` of all F attributes in the schema's order. An
attribute without a tensor is missing in every row. BYTES are read as the cells of a CSV file are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

import espalier
from espalier import Fault
from service.errors import ValidationFailed
from service.inference.body import Framed
from service.inference.tensors import DATATYPES, Cells, Tensor, cells_from_bytes, cells_from_json
from service.repositories import decisions
from service.usecases.limits import check_size

NAMES_SHOWN = 20
REFUSED = {  # parameters of Triton's extensions that would change the answer, and are not kept to
    "shared_memory_region": "shared memory is not offered: send the tensor itself",
    "classification": "is not offered: ask for the outputs label and probability",
}
PATH_FIELDS = ("path", "paths", "rule")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """An output that is asked for, and whether as bytes."""

    name: str
    binary: bool


@dataclass(frozen=True, slots=True)
class Inference:
    """An inference request, read.

    Attributes:
        id: What the caller calls it; None: nothing.
        rows: Attribute names and values.
        outputs: In the order in which they are asked for.
        subject: Whom the decisions are about.
        pointers: Where in the request a cell is, by row and attribute.
    """

    id: str | None
    rows: Sequence[Row]
    outputs: Sequence[Asked]
    subject: str | None
    pointers: Callable[[int, str], str]

    def place(self, row: int, path: str) -> str:
        """Give the place in the request of what is at `path` within a row."""
        return self.pointers(row, path.removeprefix("/").replace("~1", "/").replace("~0", "~"))


@dataclass(frozen=True, slots=True)
class Output:
    """One output: its type and width for a schema, and how it is made of an answer.

    Attributes:
        offered: Whether models with this schema have it.
        datatype: By the schema.
        width: None for ``[N]``; else what of ``[N, K]`` is K.
        cells: Of one answer: its JSON form and its decision's id.
        unasked: Whether it is given where no outputs are named.
    """

    offered: Callable[[espalier.Schema], bool]
    datatype: Callable[[espalier.Schema], str]
    width: Callable[[espalier.Schema], int | None]
    cells: Callable[[Mapping[str, Any], str, str], Cells]
    unasked: bool = True


def _classifies(schema: espalier.Schema) -> bool:
    return bool(schema.classes)


def _label(answer: Mapping[str, Any], _: str, datatype: str) -> Cells:
    return [_written(answer["label"]) if datatype == "BYTES" else answer["label"]]


def _path(answer: Mapping[str, Any], _: str, __: str) -> Cells:
    shown = {name: answer[name] for name in PATH_FIELDS if name in answer}
    return [orjson.dumps(shown, option=orjson.OPT_NON_STR_KEYS).decode()]


OUTPUTS: Mapping[str, Output] = {
    "label": Output(_classifies, lambda schema: _datatype(schema.classes), lambda _: None, _label),
    "probability": Output(
        _classifies,
        lambda _: "FP64",
        lambda schema: len(schema.classes),
        lambda answer, _, __: list(answer["distribution"].values()),
    ),
    "value": Output(
        lambda schema: not schema.classes,
        lambda _: "FP64",
        lambda _: None,
        lambda answer, _, __: [answer["value"]],
    ),
    "leaf_id": Output(lambda _: True, lambda _: "INT64", lambda _: None, lambda answer, _, __: [answer["leaf"]]),
    "decision_id": Output(lambda _: True, lambda _: "BYTES", lambda _: None, lambda _, decision, __: [decision]),
    "decision_path": Output(lambda _: True, lambda _: "BYTES", lambda _: None, _path, unasked=False),
}


def describe_inputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Give the metadata of one tensor an attribute; any type that can hold its values is taken."""
    return [
        {"name": attribute.name, "datatype": _datatype_of(attribute), "shape": [-1]} for attribute in schema.attributes
    ]


def describe_outputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Give the metadata of the outputs; the classes behind the columns of ``probability`` as JSON text."""
    described = []
    for name, output in OUTPUTS.items():
        if output.offered(schema):
            width = output.width(schema)
            shape = [-1] if width is None else [-1, width]
            one: dict[str, Any] = {"name": name, "datatype": output.datatype(schema), "shape": shape}
            if name == "probability":
                one["parameters"] = {"classes": orjson.dumps(list(schema.classes)).decode()}
            described.append(one)
    return described


def read_inference(framed: Framed, schema: espalier.Schema, *, limit: int) -> Inference:
    """Read a request into rows.

    Args:
        framed: The request's JSON and the bytes behind it.
        schema: Of the version that is to answer.
        limit: Most rows.

    Raises:
        ValidationFailed: Every fault of form, by its place.
        espalier.TooLarge: More rows than the limit.
    """
    given = framed.json
    faults: list[Fault] = []
    parameters = _parameters(given, "", faults)
    inference_id, subject = given.get("id"), parameters.get("subject")
    if inference_id is not None and not isinstance(inference_id, str):
        faults.append(Fault("/id", "wrong_type", "must be text"))
    if subject is not None and not isinstance(subject, str):
        faults.append(Fault("/parameters/subject", "wrong_type", "must be text"))
    outputs = list(_outputs(given.get("outputs"), parameters, schema, faults))
    tensors = _tensors(given.get("inputs"), framed.binary, schema, faults, limit=limit)
    if faults:
        raise ValidationFailed(faults)
    decisions.check_subject(subject, pointer="/parameters/subject")
    rows, pointers = _rows(tensors, schema)
    return Inference(inference_id, rows, outputs, subject, pointers)


def tensors_of(
    asked: Sequence[Asked], schema: espalier.Schema, answers: Sequence[Mapping[str, Any]], ids: Sequence[str]
) -> Iterator[Tensor]:
    """Give each output that is asked for, made of the answers to all rows and the ids of their decisions."""
    for one in asked:
        output = OUTPUTS[one.name]
        datatype, width = output.datatype(schema), output.width(schema)
        pairs = zip(answers, ids, strict=True)
        cells = [cell for answer, decision in pairs for cell in output.cells(answer, decision, datatype)]
        shape = (len(ids),) if width is None else (len(ids), width)
        yield Tensor(one.name, datatype, shape, cells)


def placed(error: espalier.RowError, asked: Inference) -> ValidationFailed:
    """Say of what the model cannot take where in the request it is."""
    faults = []
    for fault in error.faults:
        row, _, attribute = fault.path.removeprefix("/").partition("/")
        faults.append(Fault(asked.place(int(row), attribute), fault.code, fault.message))
    return ValidationFailed(faults)


def _outputs(
    given: object, parameters: Mapping[str, Any], schema: espalier.Schema, faults: list[Fault]
) -> Iterator[Asked]:
    offered = {name: output for name, output in OUTPUTS.items() if output.offered(schema)}
    all_binary = parameters.get("binary_data_output", False)
    if not isinstance(all_binary, bool):
        faults.append(Fault("/parameters/binary_data_output", "wrong_type", "must be true or false"))
    if given is None or given == []:
        yield from (Asked(name, bool(all_binary)) for name, output in offered.items() if output.unasked)
        return
    if not isinstance(given, list):
        faults.append(Fault("/outputs", "wrong_type", "must be a list of objects"))
        return
    seen = set()
    for place, one in enumerate(given[: len(offered) + 1]):
        at = f"/outputs/{place}"
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(name, str) or name not in offered or name in seen:
            message = f"must name one of {', '.join(offered)}, each once"
            faults.append(Fault(f"{at}/name" if isinstance(one, dict) else at, "unknown_output", message))
            continue
        seen.add(name)
        binary = _parameters(one, at, faults).get("binary_data", all_binary)
        if not isinstance(binary, bool):
            faults.append(Fault(f"{at}/parameters/binary_data", "wrong_type", "must be true or false"))
        yield Asked(name, bool(binary))


def _tensors(
    given: object, binary: memoryview, schema: espalier.Schema, faults: list[Fault], *, limit: int
) -> list[Tensor]:
    """Read the inputs that are sound; nothing is decoded that has more cells than the rows that are allowed."""
    most = len(schema.attributes)
    if not isinstance(given, list) or not 1 <= len(given) <= max(most, 1):
        message = f"must be a list of 1 to {most} tensors: one an attribute, or one matrix of all"
        faults.append(Fault("/inputs", "wrong_type", message))
        return []
    names = {attribute.name for attribute in schema.attributes}
    tensors, seen, start, n_rows = [], set(), 0, None
    for place, one in enumerate(given):
        at = f"/inputs/{place}"
        tensor, size = _tensor(one, at, binary[start:], schema, faults, alone=len(given) == 1, limit=limit)
        start += size
        if tensor is None:
            continue
        is_matrix = _is_matrix(tensor.shape, schema, alone=len(given) == 1)
        if not is_matrix and (tensor.name not in names or tensor.name in seen):
            faults.append(Fault(f"{at}/name", "unknown_attribute", f"must be one of {_shown(schema)}, each once"))
        elif n_rows not in (None, tensor.shape[0]):
            faults.append(Fault(f"{at}/shape", "length", "must have as many rows as the input before"))
        seen.add(tensor.name)
        n_rows = tensor.shape[0]
        tensors.append(tensor)
    if start != len(binary) and not faults:
        message = f"the sizes in binary_data_size come to {start} bytes, after the JSON there are {len(binary)}"
        faults.append(Fault("/inputs", "length", message))
    return tensors


def _tensor(
    given: object,
    at: str,
    binary: memoryview,
    schema: espalier.Schema,
    faults: list[Fault],
    *,
    alone: bool,
    limit: int,
) -> tuple[Tensor | None, int]:
    """Read one input, or tell its faults; give how many of the bytes are its own, too."""
    if not isinstance(given, dict):
        faults.append(Fault(at, "wrong_type", "must be an object with name, shape, datatype and data"))
        return None, 0
    before = len(faults)
    parameters = _parameters(given, at, faults)
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or not 0 <= size <= len(binary)):
        faults.append(Fault(f"{at}/parameters/binary_data_size", "not_legal", f"must be 0 to {len(binary)} bytes"))
        size = None
    name, word = given.get("name"), given.get("datatype")
    if not isinstance(name, str):
        faults.append(Fault(f"{at}/name", "wrong_type", "must be text"))
    datatype = DATATYPES.get(word) if isinstance(word, str) else None
    if datatype is None:
        faults.append(Fault(f"{at}/datatype", "unknown_value", f"must be one of {', '.join(DATATYPES)}"))
    shape = _shape(given.get("shape"), f"{at}/shape", schema, faults, alone=alone, limit=limit)
    if len(faults) > before or datatype is None or shape is None:
        return None, size or 0
    if size is None:
        cells, found = cells_from_json(given.get("data"), datatype, shape, pointer=f"{at}/data")
    else:
        pointer = f"{at}/parameters/binary_data_size"
        cells, found = cells_from_bytes(binary[:size], datatype, shape[0] * (shape[1:] or (1,))[0], pointer=pointer)
    if "data" in given and size is not None:
        found = [Fault(f"{at}/data", "not_legal", "must not be given beside binary_data_size")]
    faults += found
    return (None if found else Tensor(str(name), datatype.name, shape, cells)), size or 0


def _shape(
    given: object, at: str, schema: espalier.Schema, faults: list[Fault], *, alone: bool, limit: int
) -> tuple[int, ...] | None:
    matrix = f", or [N, {len(schema.attributes)}] for a matrix of all attributes" if alone else ""
    legal = f"must be [N] or [N, 1]{matrix}, with at least one row"
    if not isinstance(given, list) or not all(type(one) is int and one > 0 for one in given):
        faults.append(Fault(at, "wrong_type", legal))
        return None
    shape = tuple(given)
    if len(shape) not in (1, 2) or (shape[1:] not in ((), (1,)) and not _is_matrix(shape, schema, alone=alone)):
        faults.append(Fault(at, "not_legal", legal))
        return None
    check_size("rows", given=shape[0], limit=limit)
    return shape


def _is_matrix(shape: Sequence[int], schema: espalier.Schema, *, alone: bool) -> bool:
    return alone and len(shape) == 2 and shape[1] == len(schema.attributes)


def _parameters(given: Mapping[str, Any], at: str, faults: list[Fault]) -> Mapping[str, Any]:
    parameters = given.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        faults.append(Fault(f"{at}/parameters", "wrong_type", "must be an object"))
        return {}
    faults += [
        Fault(f"{at}/parameters/{name}", "not_offered", message)
        for name, message in REFUSED.items()
        if parameters.get(name) not in (None, 0)
    ]
    return parameters


def _rows(tensors: Sequence[Tensor], schema: espalier.Schema) -> tuple[list[Row], Callable[[int, str], str]]:
    """Turn tensors into rows, and give what finds a cell of a row in the request."""
    if len(tensors) == 1 and _is_matrix(tensors[0].shape, schema, alone=True):
        matrix, names = tensors[0], [attribute.name for attribute in schema.attributes]
        width = len(names)
        columns = {name: matrix.cells[place::width] for place, name in enumerate(names)}
        rows = _with_texts(columns, schema, set(names) if matrix.datatype == "BYTES" else set())
        places = {name: place for place, name in enumerate(names)}
        return rows, lambda row, name: f"/inputs/0/data/{row * width + places.get(name, 0)}"
    columns = {tensor.name: tensor.cells for tensor in tensors}
    rows = _with_texts(columns, schema, {tensor.name for tensor in tensors if tensor.datatype == "BYTES"})
    at = {tensor.name: place for place, tensor in enumerate(tensors)}
    return rows, lambda row, name: f"/inputs/{at[name]}/data/{row}" if name in at else "/inputs"


def _with_texts(columns: Mapping[str, Cells], schema: espalier.Schema, texts: set[str]) -> list[Row]:
    """Make rows of columns; cells of those in `texts` are read as CSV's, an empty one as a category if there is one."""
    read = dict(columns)
    named = [name for name in columns if name in texts]
    if named:
        lines = zip(*([cell or "" for cell in columns[name]] for name in named), strict=True)
        found = espalier.rows_from_text(schema, named, list(lines))
        read |= {name: [row[name] for row in found] for name in named}
        for attribute in schema.attributes:
            if attribute.name in texts and "" in attribute.categories:
                pairs = zip(columns[attribute.name], read[attribute.name], strict=True)
                read[attribute.name] = ["" if cell == "" else value for cell, value in pairs]
    return [dict(zip(read, cells, strict=True)) for cells in zip(*read.values(), strict=True)]


def _datatype_of(attribute: espalier.Feature) -> str:
    return "FP64" if attribute.kind == espalier.FeatureKind.NUMERIC else _datatype(attribute.categories)


def _datatype(labels: Sequence[espalier.Label]) -> str:
    """Give the type that holds all labels as they are; BYTES, as they are written, where there is none."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    return "FP64" if kinds and kinds <= {int, float} else "BYTES"


def _written(label: espalier.Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def _shown(schema: espalier.Schema) -> str:
    names = [attribute.name for attribute in schema.attributes]
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
