"""An inference request of the Open Inference Protocol, read by the schema of the version that answers.

The body is JSON, then the bytes of the tensors that are not in it::

    | {"inputs": [{…, "parameters": {"binary_data_size": 16}}, …]} | 16 bytes | …
      Inference-Header-Content-Length                                in the order of the inputs

One tensor an attribute, ``[N]`` or ``[N, 1]``, or one matrix ``[N, F]`` of all F attributes in the schema's order. An
attribute without a tensor is missing in every row. BYTES are read as the cells of a CSV file are. A missing number in
the JSON may be a bare NaN, as real clients send it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

import espalier
from espalier import Fault
from service.errors import ValidationFailed
from service.inference.response import OUTPUTS
from service.inference.tensors import DATATYPES, Cells, Tensor, cells_from_bytes, cells_from_json, datatype_of
from service.repositories import decisions
from service.usecases.limits import check_size

HEADER_LENGTH: Final = "Inference-Header-Content-Length"
MAX_NAMES_SHOWN: Final = 20
REFUSED: Final = {  # parameters of Triton's extensions that would change the answer
    "shared_memory_region": "shared memory is not offered: send the tensor itself",
    "classification": "is not offered: ask for the outputs label and probability",
}
DIGITS: Final = re.compile(r"[0-9]{1,18}")
# A text as a whole, ended or not, so that nothing inside one is looked at; or a number that JSON does not have.
NO_NUMBER: Final = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?|NaN\b|-?Infinity\b', re.DOTALL)
Row = dict[str, Any]


class MalformedBodyError(ValueError):
    """The body is not JSON, no object, or not as long as its header says."""


@dataclass(frozen=True, slots=True)
class InferenceBody:
    """A request's JSON object, decoded, and the bytes after it."""

    json: dict[str, Any]
    binary: memoryview


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output of the answer, and whether its cells are sent as bytes."""

    name: str
    binary: bool


@dataclass(frozen=True, slots=True)
class Inference:
    """An inference request, read.

    Attributes:
        id: The caller's name of it, if it has one.
        rows: Attribute names and values.
        outputs: In their order.
        subject: Whom the decisions are about.
        cell_pointer: The place of a cell in the request, by row and attribute.
    """

    id: str | None
    rows: Sequence[Row]
    outputs: Sequence[RequestedOutput]
    subject: str | None
    cell_pointer: Callable[[int, str], str]

    def pointer(self, row: int, path: str) -> str:
        """Return the place in the request of what is at `path` within a row."""
        return self.cell_pointer(row, path.removeprefix("/").replace("~1", "/").replace("~0", "~"))


def read_body(body: bytes, header_length: str | None) -> InferenceBody:
    """Divide a body into its JSON object and the bytes behind.

    Args:
        body: The body, unpacked.
        header_length: What the header `HEADER_LENGTH` says of the length of the JSON.

    Raises:
        MalformedBodyError: Not JSON, no object, or not as long as the header says.
    """
    length = len(body)
    if header_length is not None:
        if not DIGITS.fullmatch(header_length.strip()) or int(header_length) > length:
            raise MalformedBodyError(
                f"{HEADER_LENGTH} must be the length of the JSON in bytes, before any packing: at most the body's"
            )
        length = int(header_length)
    document = _decoded(body if length == len(body) else body[:length])
    if not isinstance(document, dict):
        raise MalformedBodyError("the body must be a JSON object")
    return InferenceBody(document, memoryview(body)[length:])


def read_inference(body: InferenceBody, schema: espalier.Schema, *, limit: int) -> Inference:
    """Read a request into rows.

    Args:
        body: The request.
        schema: Of the version that answers.
        limit: Most rows.

    Raises:
        ValidationFailed: Every fault of form, by its place.
        espalier.TooLarge: More rows than the limit.
    """
    given = body.json
    faults: list[Fault] = []
    parameters = _parameters(given, "", faults)
    inference_id, subject = given.get("id"), parameters.get("subject")
    if inference_id is not None and not isinstance(inference_id, str):
        faults.append(Fault("/id", "wrong_type", "must be text"))
    if subject is not None and not isinstance(subject, str):
        faults.append(Fault("/parameters/subject", "wrong_type", "must be text"))
    outputs = list(_outputs(given.get("outputs"), parameters, schema, faults))
    tensors = _tensors(given.get("inputs"), body.binary, schema, faults, limit=limit)
    if faults:
        raise ValidationFailed(faults)
    decisions.check_subject(subject, pointer="/parameters/subject")
    rows, pointers = _rows(tensors, schema)
    return Inference(inference_id, rows, outputs, subject, pointers)


def describe_inputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Return the metadata of one tensor an attribute; any type that can hold its values is taken."""
    return [
        {
            "name": attribute.name,
            "datatype": "FP64" if attribute.kind == espalier.FeatureKind.NUMERIC else datatype_of(attribute.categories),
            "shape": [-1],
        }
        for attribute in schema.attributes
    ]


def _decoded(content: bytes) -> object:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in content and b"Infinity" not in content:
            raise MalformedBodyError(f"the body is not JSON: {error}") from None
    try:
        return orjson.loads(NO_NUMBER.sub(_finite, content))
    except orjson.JSONDecodeError as error:
        raise MalformedBodyError(f"the body is not JSON: {error}") from None


def _finite(found: re.Match[bytes]) -> bytes:
    """Leave a text as it is; replace NaN by the null that stands for missing."""
    if found[0].startswith(b'"'):
        return found[0]
    if found[0] == b"NaN":
        return b"null"
    raise MalformedBodyError("numbers must be finite; a missing one is null or NaN")


def _outputs(
    given: object, parameters: Mapping[str, Any], schema: espalier.Schema, faults: list[Fault]
) -> Iterator[RequestedOutput]:
    offered = {name: output for name, output in OUTPUTS.items() if output.is_offered(schema)}
    all_binary = parameters.get("binary_data_output", False)
    if not isinstance(all_binary, bool):
        faults.append(Fault("/parameters/binary_data_output", "wrong_type", "must be true or false"))
    if given is None or given == []:
        yield from (RequestedOutput(name, bool(all_binary)) for name, output in offered.items() if output.is_default)
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
        yield RequestedOutput(name, bool(binary))


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
    """Read one input, or add its faults; also return how many of the bytes belong to it."""
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
    """Return the rows of the tensors, and the place of a cell in the request by row and attribute."""
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
    """Return columns as rows; cells of those in `texts` are read like CSV, an empty one as a category if it is one."""
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


def _shown(schema: espalier.Schema) -> str:
    names = [attribute.name for attribute in schema.attributes]
    return ", ".join(names[:MAX_NAMES_SHOWN]) + (", …" if len(names) > MAX_NAMES_SHOWN else "")
