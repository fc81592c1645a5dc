"""Tables as JSON: one document of rows or columns, or one row per line (NDJSON)."""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from espalier.data.assembly import Block, TableAssembler
from espalier.data.column import column_from_json
from espalier.data.dataset import Dataset
from espalier.data.limits import UNLIMITED, Limits
from espalier.data.readers.python import dataset_from_columns, dataset_from_rows, names_of_rows
from espalier.data.readers.source import Source, in_blocks
from espalier.errors import DataError, Fault, InvalidInput, SchemaError, pointer

KEYS: Final = frozenset({"rows", "columns", "schema"})
READERS: Final[Mapping[str, Callable[..., Dataset]]] = {"rows": dataset_from_rows, "columns": dataset_from_columns}
ROWS_AT_ONCE: Final = 65_536
CELLS_AT_ONCE: Final = 500_000
"""Maximum number of cells in a block."""


def dataset_from_json(content: bytes | str, *, limits: Limits = UNLIMITED, **declared: Any) -> Dataset:
    """Read a data set from JSON: ``{"rows": [{…}, …]}`` or ``{"columns": {"name": […], …}}``.

    The member ``"schema"`` of the document is used if neither `schema` nor `like` is given.

    Args:
        content: The document.
        limits: Limits on the size of the table.
        **declared: As in `dataset_from_columns`.

    Raises:
        DataError: `content` is not JSON (code ``not_json``) or no such document, or as in `dataset_from_columns`.
        SchemaError: The declaration is wrong.
        TooLarge: The table exceeds a limit.

    >>> dataset_from_json('{"rows": [{"wind": "weak", "play": true}]}', target="play").n_rows
    1
    """
    document = _document(content)
    kind = "rows" if "rows" in document else "columns"
    if declared.get("schema") is None and declared.get("like") is None:
        declared["schema"] = document.get("schema")
    try:
        return READERS[kind](document[kind], limits=limits, **declared)
    except SchemaError as error:
        raise _moved(error, "/schema") from None
    except DataError as error:
        raise _moved(error, f"/{kind}") from None


def json_rows(content: bytes | str) -> list[Mapping[str, Any]]:
    """Return the rows of a JSON document, which has the form that `dataset_from_json` reads.

    Raises:
        DataError: The content is not JSON or not such a document.
    """
    document = _document(content)
    if "rows" in document:
        if not isinstance(document["rows"], list):
            raise DataError([Fault("/rows", "wrong_type", "must be a list of objects")])
        return document["rows"]
    columns = document["columns"]
    lists = isinstance(columns, dict) and all(isinstance(cells, list) for cells in columns.values())
    if not lists or len(set(map(len, columns.values()))) > 1:
        raise DataError([Fault("/columns", "wrong_type", "must be names with lists of cells, all of one length")])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_ndjson(source: Source, assembler: TableAssembler) -> Iterator[Block]:
    """Yield the blocks of a table whose lines are JSON objects. Blank lines are skipped.

    Raises:
        DataError: There are no rows, or a line is not a JSON object.
    """
    for rows in in_blocks(rows_of_ndjson(source), ROWS_AT_ONCE):
        yield from _blocks_of_rows(rows, assembler)
    if not assembler.n_rows:
        raise DataError([Fault("", "empty", "there are no rows: give one JSON object per line")])


def rows_of_ndjson(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of bytes and the JSON object of each line that is not blank."""
    for number, line in source.lines():
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            place = f"line {number}, character {error.colno}"
            raise DataError([Fault("", "not_json", f"{place}: not JSON: {error.msg}")]) from None
        if not isinstance(row, dict):
            message = f"line {number} must be an object of column names and values"
            raise DataError([Fault("", "wrong_type", message)])
        yield len(line), row


def _document(content: bytes | str) -> dict[str, Any]:
    try:
        document = orjson.loads(content.removeprefix(codecs.BOM_UTF8) if isinstance(content, bytes) else content)
    except orjson.JSONDecodeError as error:
        raise DataError([Fault("", "not_json", f"not JSON: {error}")]) from None
    if not isinstance(document, dict) or ("rows" in document) == ("columns" in document):
        message = 'must be {"rows": [{…}, …]} or {"columns": {"name": […], …}}, each perhaps with a "schema"'
        raise DataError([Fault("", "wrong_type", message)])
    if unknown := document.keys() - KEYS:
        message = "there is no such member; legal are rows or columns, and schema"
        raise DataError([Fault(pointer(name), "unknown_field", message) for name in sorted(unknown)])
    return document


def _moved(error: InvalidInput, prefix: str) -> InvalidInput:
    """Return the error with `prefix` before each path, except paths of the keywords target, task and missing_values."""
    return type(error)(
        fault
        if fault.path.split("/")[1:2] in (["target"], ["task"], ["missing_values"])
        else Fault(prefix + fault.path, fault.code, fault.message)
        for fault in error.faults
    )


def _blocks_of_rows(rows: Sequence[Mapping[str, Any]], assembler: TableAssembler) -> Iterator[Block]:
    names = names_of_rows(rows, assembler.limits)
    at_once = max(1, CELLS_AT_ONCE // max(1, len(names)))
    for first in range(0, len(rows), at_once):
        part = rows[first : first + at_once]
        columns = (
            column_from_json(name, [row.get(name) for row in part], as_labels=assembler.wants_labels(name))
            for name in names
        )
        yield Block(len(part), tuple(columns))
