"""Rows to be predicted, from a CSV stream of any length, batch by batch.

pyarrow reads a batch into columns. If a cell of the batch is not legal for its attribute, the batch is given as rows of
Python objects instead: predicting them reports the wrong cell.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, Final

import numpy as np

from espalier.data.dataset import Column, Dataset
from espalier.data.labels import Label, label_text, parse_instant
from espalier.data.missing import MissingValues
from espalier.data.readers.csv import parse_by_pyarrow
from espalier.data.readers.csv_blocks import CsvBlock, csv_blocks, ragged, rows_of
from espalier.data.readers.source import ByteStream
from espalier.data.schema import Feature, FeatureKind, Schema
from espalier.errors import DataError, Fault, RowError, pointer
from espalier.prediction.encode_rows import rows_from_text

BATCH_BYTES: Final = 2**22
"""Bytes of CSV in a batch; the first batches are smaller."""
MAX_NAMES_SHOWN: Final = 20
Labels = tuple[Label, ...]
ColumnReader = Callable[[Any], tuple[Labels, Column] | None]
"""From a pyarrow column to the categories that its feature does not list and the cells; None if a cell is not legal."""


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
    readers = {
        feature.name: (feature, _column_reader(feature, schema.missing_values))
        for feature in schema.attributes
        if feature.name in names
    }
    first_row = 0
    for block in blocks:
        batch = _batch(schema, names, readers, block, first_row=first_row)
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


Readers = Mapping[str, tuple[Feature, ColumnReader]]
"""The attributes with a column, by name."""


def _batch(schema: Schema, names: Sequence[str], readers: Readers, block: CsvBlock, *, first_row: int) -> RowBatch:
    content = block.content
    if content is not None and not content.strip(b"\r\n"):
        return RowBatch(first_row, None, [])
    if content is not None and readers and _is_text(content):
        dataset = _dataset(schema, names, readers, content)
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


def _dataset(schema: Schema, names: Sequence[str], readers: Readers, content: bytes) -> Dataset | None:
    """Return the attributes of some lines; None if pyarrow cannot parse them or a cell is not legal."""
    arrow = import_module("pyarrow")
    text = arrow.dictionary(arrow.int32(), arrow.string())
    types = {
        name: arrow.float64() if feature.kind is FeatureKind.NUMERIC else text for name, (feature, _) in readers.items()
    }
    try:
        table = parse_by_pyarrow(content, names, types, schema.missing_values)
    except arrow.ArrowInvalid:
        return None
    features, columns = [], []
    for name, (feature, read) in readers.items():
        found = read(table[name])
        if found is None:
            return None
        labels, column = found
        features.append(replace(feature, categories=(*feature.categories, *labels)) if labels else feature)
        columns.append(column)
    return Dataset(Schema(tuple(features), schema.missing_values), tuple(columns))


def _column_reader(feature: Feature, missing_values: Sequence[str]) -> ColumnReader:
    if feature.kind is FeatureKind.NUMERIC:
        return partial(_numbers, MissingValues.of(missing_values))
    if feature.kind is FeatureKind.DATETIME:
        return _instants
    by_text = {label_text(label): code for code, label in reversed(list(enumerate(feature.categories)))}
    # If all categories are numbers or booleans, another text is a cell of a wrong type, or a number.
    takes_text = not feature.categories or any(isinstance(label, str) for label in feature.categories)
    return partial(_codes, by_text, len(feature.categories) if takes_text else None)


def _numbers(missing: MissingValues, chunks: Any) -> tuple[Labels, Column] | None:
    numbers = chunks.to_numpy()
    if int(np.count_nonzero(np.isfinite(numbers))) + chunks.null_count != len(numbers):
        return None  # pyarrow takes texts such as nan and inf for numbers
    return (), missing.mask(numbers)


def _instants(chunks: Any) -> tuple[Labels, Column] | None:
    texts, places = _distinct(chunks)
    try:
        instants = np.array([*map(parse_instant, texts), np.nan])
    except (ValueError, OverflowError):
        return None
    return (), instants[places]


def _codes(by_text: Mapping[str, int], n_listed: int | None, chunks: Any) -> tuple[Labels, Column] | None:
    texts, places = _distinct(chunks)
    codes = np.array([*(by_text.get(text, -2) for text in texts), -1], dtype=np.int32)
    unknown = np.flatnonzero(codes == -2)
    if not len(unknown):
        return (), codes[places]
    if n_listed is None:
        return None
    codes[unknown] = n_listed + np.arange(len(unknown), dtype=np.int32)
    return tuple(texts[place] for place in unknown.tolist()), codes[places]


def _distinct(chunks: Any) -> tuple[list[str], Column]:
    """Return the distinct texts of a column, and the place of each row's text among them, -1 if missing."""
    whole = chunks.combine_chunks() if chunks.num_chunks != 1 else chunks.chunk(0)
    return whole.dictionary.to_pylist(), whole.indices.fill_null(-1).to_numpy(zero_copy_only=False)
