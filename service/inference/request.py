"""Inference requests of the Open Inference Protocol, decoded with the schema of the version that predicts.

The body is JSON, followed by the bytes of the tensors whose data are not in the JSON::

    | {"inputs": [{…, "parameters": {"binary_data_size": 16}}, …]} | 16 bytes | …
      length: Inference-Header-Content-Length                        in the order of the inputs

For N rows, each input is one attribute, of shape ``[N]`` or ``[N, 1]``. Or the only input is a matrix of shape
``[N, F]`` with all F attributes in the schema's order. An attribute without a tensor is missing in every row.
Cells of type BYTES are read as in CSV. In the JSON, a missing number is null or a bare NaN, which some clients send.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

import espalier
from espalier import Fault
from service.errors import ValidationFailed, check_size
from service.inference.response import PATH, outputs_of
from service.inference.tensors import DATATYPES, Cells, Tensor, cells_from_bytes, cells_from_json, datatype_of
from service.repositories import decisions

HEADER_LENGTH: Final = "Inference-Header-Content-Length"
REFUSED: Final = {  # parameters of Triton's extensions that would change the result
    "shared_memory_region": "shared memory is not supported: send the tensor itself",
    "classification": "is not supported: request the outputs label and probability",
}
DIGITS: Final = re.compile(r"[0-9]{1,18}")
# Matches numbers that JSON lacks. It also matches whole strings, terminated or not, so it finds no numbers in them.
NO_NUMBER: Final = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?|NaN\b|-?Infinity\b', re.DOTALL)
Row = dict[str, Any]


class MalformedBodyError(ValueError):
    """The body is not a JSON object, or the header with the length of the JSON is wrong."""


@dataclass(frozen=True, slots=True)
class Inference:
    """An inference request; `pointer` returns the JSON pointer to a path within a row, given the row's number."""

    id: str | None
    rows: Sequence[Row]
    outputs: Mapping[str, bool]  # the requested names, and whether each is returned as bytes
    subject: str | None
    pointer: Callable[[int, str], str]


def read_body(body: bytes, header_length: str | None) -> tuple[dict[str, Any], memoryview]:
    """Return the JSON object of a body and the bytes after it; without `header_length`, the whole body is JSON."""
    length = len(body)
    if header_length is not None:
        if not DIGITS.fullmatch(header_length.strip()) or int(header_length) > length:
            raise MalformedBodyError(
                f"{HEADER_LENGTH} must be the length of the uncompressed JSON in bytes, at most that of the body"
            )
        length = int(header_length)
    document = _decoded(body if length == len(body) else body[:length])
    if not isinstance(document, dict):
        raise MalformedBodyError("the body must be a JSON object")
    return document, memoryview(body)[length:]


def read_inference(given: Mapping[str, Any], binary: memoryview, schema: espalier.Schema, *, limit: int) -> Inference:
    """Read a request of at most `limit` rows; raise `ValidationFailed` with the faults found, or `TooLarge`."""
    reader = _Reader(schema, limit=limit)
    parameters = reader.parameters(given, "")
    inference_id, subject = given.get("id"), parameters.get("subject")
    if inference_id is not None and not isinstance(inference_id, str):
        reader.fault("/id", "wrong_type", "must be text")
    if subject is not None and not isinstance(subject, str):
        reader.fault("/parameters/subject", "wrong_type", "must be text")
    outputs = dict(reader.outputs(given.get("outputs"), parameters))
    tensors = reader.tensors(given.get("inputs"), binary)
    ValidationFailed.raise_for(reader.faults)
    decisions.check_subject(subject, pointer="/parameters/subject")
    rows, pointer = _rows(tensors, schema)
    return Inference(inference_id, rows, outputs, subject, pointer)


def describe_inputs(schema: espalier.Schema) -> list[dict[str, Any]]:
    """Return the metadata of one tensor per attribute; requests may use any datatype that can hold the values."""
    return [
        {
            "name": attribute.name,
            "datatype": "FP64" if attribute.kind == espalier.FeatureKind.NUMERIC else datatype_of(attribute.categories),
            "shape": [-1],
        }
        for attribute in schema.attributes
    ]


def _decoded(content: bytes) -> object:
    may_have_constants = b"NaN" in content or b"Infinity" in content
    try:
        return orjson.loads(NO_NUMBER.sub(_finite, content) if may_have_constants else content)
    except orjson.JSONDecodeError as error:
        raise MalformedBodyError(f"the body is not JSON: {error}") from None


def _finite(match: re.Match[bytes]) -> bytes:
    """Keep a string, replace NaN by null, which means missing, and refuse infinities."""
    if match[0].startswith(b'"'):
        return match[0]
    if match[0] == b"NaN":
        return b"null"
    raise MalformedBodyError("numbers must be finite; a missing one is null or NaN")


class _Reader:
    def __init__(self, schema: espalier.Schema, *, limit: int) -> None:
        self.schema, self.limit, self.names = schema, limit, [attribute.name for attribute in schema.attributes]
        self.faults: list[Fault] = []

    def fault(self, path: str, code: str, message: str) -> None:
        self.faults.append(Fault(path, code, message))

    def outputs(self, given: object, parameters: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
        offered = outputs_of(self.schema)
        all_binary = parameters.get("binary_data_output", False)
        if not isinstance(all_binary, bool):
            self.fault("/parameters/binary_data_output", "wrong_type", "must be true or false")
        if given is None or given == []:
            yield from ((name, bool(all_binary)) for name in offered if name != PATH)
            return
        if not isinstance(given, list):
            self.fault("/outputs", "wrong_type", "must be a list of objects")
            return
        seen = set()
        for place, one in enumerate(given[: len(offered) + 1]):
            at = f"/outputs/{place}"
            name = one.get("name") if isinstance(one, dict) else None
            if not isinstance(name, str) or name not in offered or name in seen:
                message = f"must name one of {', '.join(offered)}, each once"
                self.fault(f"{at}/name" if isinstance(one, dict) else at, "unknown_output", message)
                continue
            seen.add(name)
            binary = self.parameters(one, at).get("binary_data", all_binary)
            if not isinstance(binary, bool):
                self.fault(f"{at}/parameters/binary_data", "wrong_type", "must be true or false")
            yield name, bool(binary)

    def tensors(self, given: object, binary: memoryview) -> list[Tensor]:
        """Return the tensors that can be decoded; raise `TooLarge` before decoding one with too many rows."""
        most = len(self.names)
        if not isinstance(given, list) or not 1 <= len(given) <= max(most, 1):
            message = f"must be a list of 1 to {most} tensors: one per attribute, or one matrix of all attributes"
            self.fault("/inputs", "wrong_type", message)
            return []
        tensors, seen = [], set()
        start, n_rows = 0, None
        alone = len(given) == 1
        for place, one in enumerate(given):
            at = f"/inputs/{place}"
            tensor, size = self.tensor(one, at, binary[start:], alone=alone)
            start += size
            if tensor is None:
                continue
            is_matrix = _is_matrix(tensor.shape, self.schema, alone=alone)
            if not is_matrix and (tensor.name not in self.names or tensor.name in seen):
                legal = f"must be one of {espalier.listed(self.names)}, each once"
                self.fault(f"{at}/name", "unknown_attribute", legal)
            elif n_rows not in (None, tensor.shape[0]):
                self.fault(f"{at}/shape", "length", "must have as many rows as the previous input")
            seen.add(tensor.name)
            n_rows = tensor.shape[0]
            tensors.append(tensor)
        if start != len(binary) and not self.faults:
            message = f"the sizes in binary_data_size add up to {start} bytes, but {len(binary)} bytes follow the JSON"
            self.fault("/inputs", "length", message)
        return tensors

    def tensor(self, given: object, at: str, binary: memoryview, *, alone: bool) -> tuple[Tensor | None, int]:
        """Return the tensor of one input (None: its faults were recorded) and the number of its bytes in `binary`."""
        if not isinstance(given, dict):
            self.fault(at, "wrong_type", "must be an object with name, shape, datatype and data")
            return None, 0
        before = len(self.faults)
        parameters = self.parameters(given, at)
        size = parameters.get("binary_data_size")
        if size is not None and (type(size) is not int or not 0 <= size <= len(binary)):
            self.fault(f"{at}/parameters/binary_data_size", "not_legal", f"must be 0 to {len(binary)} bytes")
            size = None
        name, word = given.get("name"), given.get("datatype")
        if not isinstance(name, str):
            self.fault(f"{at}/name", "wrong_type", "must be text")
        datatype = DATATYPES.get(word) if isinstance(word, str) else None
        if datatype is None:
            self.fault(f"{at}/datatype", "unknown_value", f"must be one of {', '.join(DATATYPES)}")
        shape = self.shape(given.get("shape"), f"{at}/shape", alone=alone)
        if len(self.faults) > before or datatype is None or shape is None:
            return None, size or 0
        if size is None:
            cells, faults = cells_from_json(given.get("data"), datatype, shape, pointer=f"{at}/data")
        else:
            pointer, count = f"{at}/parameters/binary_data_size", shape[0] * (shape[1:] or (1,))[0]
            cells, faults = cells_from_bytes(binary[:size], datatype, count, pointer=pointer)
            if "data" in given:
                faults = [Fault(f"{at}/data", "not_legal", "must not be given beside binary_data_size")]
        self.faults += faults
        is_nested = size is None and not faults and isinstance(given["data"][0], list)
        return (None if faults else Tensor(str(name), datatype.name, shape, cells, is_nested)), size or 0

    def shape(self, given: object, at: str, *, alone: bool) -> tuple[int, ...] | None:
        matrix = f", or [N, {len(self.names)}] for a matrix of all attributes" if alone else ""
        legal = f"must be [N] or [N, 1]{matrix}, with at least one row"
        if not isinstance(given, list) or not all(type(one) is int and one > 0 for one in given):
            self.fault(at, "wrong_type", legal)
            return None
        shape = tuple(given)
        if len(shape) != 1 and shape[1:] != (1,) and not _is_matrix(shape, self.schema, alone=alone):
            self.fault(at, "not_legal", legal)
            return None
        check_size("rows", given=shape[0], limit=self.limit)
        return shape

    def parameters(self, given: Mapping[str, Any], at: str) -> Mapping[str, Any]:
        parameters = given.get("parameters")
        if parameters is None:
            return {}
        if not isinstance(parameters, dict):
            self.fault(f"{at}/parameters", "wrong_type", "must be an object")
            return {}
        for name, message in REFUSED.items():
            if parameters.get(name) not in (None, 0):
                self.fault(f"{at}/parameters/{name}", "not_offered", message)
        return parameters


def _is_matrix(shape: Sequence[int], schema: espalier.Schema, *, alone: bool) -> bool:
    return alone and len(shape) == 2 and shape[1] == len(schema.attributes)


def _rows(tensors: Sequence[Tensor], schema: espalier.Schema) -> tuple[list[Row], Callable[[int, str], str]]:
    """Return the rows of the tensors, and the function for `Inference.pointer`."""
    if len(tensors) == 1 and _is_matrix(tensors[0].shape, schema, alone=True):
        width = len(schema.attributes)
        places = {attribute.name: (0, place) for place, attribute in enumerate(schema.attributes)}
    else:
        width = 1
        places = {tensor.name: (at, 0) for at, tensor in enumerate(tensors)}
    columns = {name: tensors[at].cells[place::width] for name, (at, place) in places.items()}
    texts = {name for name, (at, _) in places.items() if tensors[at].datatype == "BYTES"}

    def pointer(row: int, path: str) -> str:
        at, place = places.get(path.removeprefix("/").replace("~1", "/").replace("~0", "~"), (-1, 0))
        return "/inputs" if at < 0 else f"/inputs/{at}/data/{tensors[at].pointer(row * width + place)}"

    return _with_texts(columns, schema, texts), pointer


def _with_texts(columns: Mapping[str, Cells], schema: espalier.Schema, texts: set[str]) -> list[Row]:
    """Convert columns to rows. The columns named in `texts` are read like CSV.

    An empty cell of these columns is the empty category if the attribute has this category, else it is missing.
    """
    read = dict(columns)
    named = [name for name in columns if name in texts]
    if named:
        lines = zip(*([cell or "" for cell in columns[name]] for name in named), strict=True)
        rows = espalier.rows_from_text(schema, named, list(lines))
        read |= {name: [row[name] for row in rows] for name in named}
        for attribute in schema.attributes:
            if attribute.name in texts and "" in attribute.categories:
                pairs = zip(columns[attribute.name], read[attribute.name], strict=True)
                read[attribute.name] = ["" if cell == "" else value for cell, value in pairs]
    return [dict(zip(read, cells, strict=True)) for cells in zip(*read.values(), strict=True)]
