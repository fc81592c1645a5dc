"""Rows to be predicted, from a CSV stream of any length, batch by batch.

pyarrow reads a batch into columns. If a cell of the batch is not legal for its attribute, the batch is given as rows of
Python objects instead: predicting them reports the wrong cell.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from espalier.data.dataset import Dataset
from espalier.data.inference import resolve
from espalier.data.missing import MissingValues
from espalier.data.readers.csv import UnparsedError, parse_columns
from espalier.data.readers.csv_blocks import CsvBlock, csv_blocks, ragged, rows_of
from espalier.data.readers.source import ByteStream
from espalier.data.schema import ColumnDeclaration, FeatureKind, Schema
from espalier.errors import DataError, Fault, RowError, pointer
from espalier.prediction.encode_rows import rows_from_text

BATCH_BYTES: Final = 2**22
"""Bytes of CSV in a batch; the first batches are smaller."""
MAX_NAMES_SHOWN: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Consecutive rows of a table.

    Attributes:
        first_row: Number of the first row in the table, from 0.
        dataset: Their attributes; categories that the schema does not list follow its own. None if a cell is not legal
            for its attribute.
        rows: Without a `dataset`, their cells by name, as `espalier.rows_from_csv` returns them.
    """

    first_row: int
    dataset: Dataset | None
    rows: list[dict[str, Any]]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows) if self.dataset is None else self.dataset.n_rows


def batches_from_csv(schema: Schema, stream: ByteStream, *, size: int = BATCH_BYTES) -> Iterator[RowBatch]:
    """Yield the rows of a CSV that a model of this schema is to predict.

    Args:
        schema: The model's.
        stream: UTF-8; the first line holds the names, in any order. An attribute without a column is missing in every
            row; columns of the schema that are no attributes are ignored.
        size: About how many bytes a batch has.

    Raises:
        DataError: Not CSV, a line of another length, a name twice, no rows; raised when the stream is read so far.
        RowError: The schema does not have a name, by ``/{name}``.
    """
    blocks = csv_blocks(stream, size=size)
    names = _names(schema, next(blocks, None))
    first_row = 0
    for block in blocks:
        batch = _batch(schema, names, block, first_row=first_row)
        if batch.n_rows:
            yield batch
        first_row += batch.n_rows
    if not first_row:
        raise DataError([Fault("", "empty", "the CSV has column names and no rows")])


def _names(schema: Schema, block: CsvBlock | None) -> list[str]:
    lines = list(rows_of(block)) if block is not None else []
    if not lines:
        raise DataError([Fault("", "empty", "the CSV is empty: the first line must hold the column names")])
    names = lines[0][1]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataError([Fault(pointer(name), "duplicate", "two columns have this name") for name in twice])
    known = [feature.name for feature in schema.features]
    legal = ", ".join(feature.name for feature in schema.attributes[:MAX_NAMES_SHOWN])
    legal += ", …" if len(schema.attributes) > MAX_NAMES_SHOWN else ""
    unknown = sorted(set(names) - set(known))
    if unknown:
        message = f"there is no such attribute; there are: {legal}"
        raise RowError([Fault(pointer(name), "unknown_attribute", message) for name in unknown])
    return names


def _batch(schema: Schema, names: Sequence[str], block: CsvBlock, *, first_row: int) -> RowBatch:
    content = block.content
    if content is not None and not content.strip(b"\r\n"):
        return RowBatch(first_row, None, [])
    if content is not None and _is_text(content):
        dataset = _dataset(schema, names, content)
        if dataset is not None:
            return RowBatch(first_row, dataset, [])
    lines = []
    for number, line in rows_of(block):
        if len(line) != len(names):
            raise ragged(number, len(line), names)
        lines.append(line)
    return RowBatch(first_row, None, rows_from_text(schema, names, lines))


def _is_text(content: bytes) -> bool:
    """Return whether it is UTF-8 without NUL; pyarrow does not check columns that it skips."""
    try:
        return b"\0" not in content and (content.isascii() or bool(content.decode()))
    except UnicodeDecodeError:
        return False


def _dataset(schema: Schema, names: Sequence[str], content: bytes) -> Dataset | None:
    """Return the attributes of some lines; None if pyarrow cannot parse them or a cell is not legal."""
    given = [feature for feature in schema.attributes if feature.name in names]
    if not given:
        return None
    types = {feature.name: "double" if feature.kind is FeatureKind.NUMERIC else "text" for feature in given}
    try:
        raw_columns = parse_columns(content, names, types, schema.missing_values)
    except UnparsedError:
        return None
    features, columns, missing = [], [], MissingValues.of(schema.missing_values)
    for feature, raw in zip(given, raw_columns, strict=True):
        categories = feature.categories if feature.coded else None
        declared = ColumnDeclaration(feature.name, feature.kind, feature.role, categories, more_categories=True)
        found, column, faults = resolve(raw, declared, missing=missing, task=None)
        # If all categories are numbers or booleans, another text is a cell of a wrong type, or a number.
        takes_text = not feature.categories or any(isinstance(label, str) for label in feature.categories)
        if faults or (len(found.categories) > len(feature.categories) and not takes_text):
            return None
        features.append(found)
        columns.append(column)
    return Dataset(Schema(tuple(features), schema.missing_values), tuple(columns))
