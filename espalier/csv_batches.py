"""Rows to be answered, from CSV of any length, a batch at a time.

Where every cell of a batch is what its attribute asks for, the batch is read into columns, by compiled code or by
pyarrow, without a Python object a cell. Where one is not, its lines are read one by one, so that answering them says
which cell and why.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.csv_compiled import Labelled, Lines, is_compiled, read_plain
from espalier.csv_lines import ByteStream, Piece, lines_of, pieces_of_csv
from espalier.csv_text import ragged
from espalier.dataset import Column, Dataset
from espalier.errors import DataError, Fault, RowError, pointer
from espalier.rows import rows_from_text
from espalier.schema import Feature, FeatureKind, Label, Role, Schema, label_text, parse_instant

__all__ = ["BATCH_BYTES", "RowBatch", "batches_from_csv"]

BATCH_BYTES: Final = 2**22
"""Of CSV, read at a time; the first batches are smaller."""
WORTH_LOADING: Final = 65_536
"""Bytes of a batch from which on compiled code is loaded."""
SHOWN_NAMES: Final = 20
LINE_ENDS: Final = b"\r\n"
Cells = Mapping[str, npt.NDArray[np.float64] | Labelled | None]
"""Columns by name; None for one of numbers in which one is none."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Some rows of a table.

    Attributes:
        first_row: The place of the first of them in the table, from 0.
        dataset: Their attributes; categories that the schema does not list stand after its own. None where a cell is
            not what its attribute asks for.
        rows: Their cells, row by row, where there is no `dataset`; as `espalier.rows_from_csv` gives them.
    """

    first_row: int
    dataset: Dataset | None
    rows: list[dict[str, Any]]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows) if self.dataset is None else self.dataset.n_rows


def batches_from_csv(schema: Schema, stream: ByteStream, *, size: int = BATCH_BYTES) -> Iterator[RowBatch]:
    """Read CSV as rows to be answered by a model of this schema.

    Args:
        schema: The model's.
        stream: Where the bytes come from; UTF-8, the first line the names, in any order. An attribute without a column
            is missing in every row; columns of the schema that are no attributes are not looked at.
        size: Bytes of a batch, more or less.

    Raises:
        DataError: Not CSV, ragged lines, a name twice, no rows; as far as it is read.
        RowError: Names that the schema does not have, by ``/{name}``.
    """
    pieces = pieces_of_csv(stream, size=size)
    reader = _BatchReader(schema, _names(schema, next(pieces, None)))
    first_row = 0
    for piece in pieces:
        batch = reader.read(piece, first_row)
        if batch.n_rows:
            yield batch
        first_row += batch.n_rows
    if not first_row:
        raise DataError([Fault("", "empty", "the CSV has column names and no rows")])


def _names(schema: Schema, piece: Piece | None) -> list[str]:
    lines = list(lines_of(piece)) if piece is not None else []
    if not lines:
        raise DataError([Fault("", "empty", "the CSV is empty: the first line must hold the column names")])
    names = lines[0][1]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataError([Fault(pointer(name), "duplicate", "two columns have this name") for name in twice])
    known = [feature.name for feature in schema.features]
    legal = ", ".join(feature.name for feature in schema.attributes[:SHOWN_NAMES])
    legal += ", …" if len(schema.attributes) > SHOWN_NAMES else ""
    strange = sorted(set(names) - set(known))
    if strange:
        message = f"there is no such attribute; there are: {legal}"
        raise RowError([Fault(pointer(name), "unknown_attribute", message) for name in strange])
    return names


class _BatchReader:
    """Reads pieces of one table."""

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        self._schema = schema
        self._names = names
        by_name = {feature.name: feature for feature in schema.features if feature.role is Role.ATTRIBUTE}
        self._attributes = [by_name[name] for name in names if name in by_name]
        self._readers = [_reader(feature) for feature in self._attributes]

    def read(self, piece: Piece, first_row: int) -> RowBatch:
        """Read a piece."""
        if piece.lines is not None and piece.lines.signs[0] in LINE_ENDS and not piece.lines.content.strip(b"\r\n"):
            return RowBatch(first_row, None, [])
        if piece.lines is not None and self._attributes and piece.lines.is_text():
            dataset = self._columns(piece.lines, piece.first_byte)
            if dataset is not None:
                return RowBatch(first_row, dataset, [])
        lines = []
        for number, line in lines_of(piece):
            if len(line) != len(self._names):
                raise ragged(number, len(line), self._names)
            lines.append(line)
        return RowBatch(first_row, None, rows_from_text(self._schema, self._names, lines))

    def _columns(self, lines: Lines, first_byte: int) -> Dataset | None:
        """Give the attributes' columns; None where the piece cannot be read, or a cell is not as it should be."""
        cells = self._plain_cells(lines, first_byte) or self._arrow_cells(lines.content)
        features, columns = [], []
        for feature, read in zip(self._attributes, self._readers, strict=True):
            found = None if cells is None else read(cells[feature.name])
            if found is None:
                return None
            labels, column = found
            features.append(feature if not labels else replace(feature, categories=(*feature.categories, *labels)))
            columns.append(column)
        return Dataset(Schema(tuple(features), self._schema.missing_values), tuple(columns))

    def _plain_cells(self, lines: Lines, first_byte: int) -> Cells | None:
        if len(lines) < WORTH_LOADING or not is_compiled(first_byte):
            return None
        numbers = {feature.name for feature in self._attributes if feature.kind is FeatureKind.NUMERIC}
        texts = {feature.name for feature in self._attributes} - numbers
        missing = self._schema.missing_values
        piece = read_plain(lines, self._names, numbers=numbers, texts=texts, missing=missing)
        return None if piece is None or not piece.n_rows else piece.columns

    def _arrow_cells(self, content: bytes) -> Cells | None:
        table = _arrow_table(content, self._names, self._attributes, self._schema.missing_values)
        if table is None:
            return None
        of_kind = {True: _arrow_numbers, False: _distinct}
        columns = zip(self._attributes, table.columns, strict=True)
        return {feature.name: of_kind[feature.kind is FeatureKind.NUMERIC](chunks) for feature, chunks in columns}


def _arrow_table(content: bytes, names: Sequence[str], attributes: Sequence[Feature], missing: Sequence[str]) -> Any:
    arrow, arrow_csv = import_module("pyarrow"), import_module("pyarrow.csv")
    text = arrow.dictionary(arrow.int32(), arrow.string())
    types = {feature.name: arrow.float64() if feature.kind is FeatureKind.NUMERIC else text for feature in attributes}
    try:
        return arrow_csv.read_csv(
            arrow.BufferReader(content),
            read_options=arrow_csv.ReadOptions(column_names=names, block_size=len(content) + 1, use_threads=False),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=["", *missing],
                strings_can_be_null=True,
            ),
        )
    except arrow.ArrowInvalid:
        return None


Labels = tuple[Label, ...]
ColumnReader = Callable[[Any], tuple[Labels, Column] | None]
"""From a column's cells to the categories that its feature does not list, and the column; None: a cell is not legal."""


def _reader(feature: Feature) -> ColumnReader:
    if feature.kind is FeatureKind.NUMERIC:
        return _read_numbers
    if feature.kind is FeatureKind.DATETIME:
        return _read_instants
    by_text = {label_text(label): code for code, label in reversed(list(enumerate(feature.categories)))}
    # Where the categories are numbers, or true and false, another text is a cell of a wrong type, or a number.
    takes_text = not feature.categories or any(isinstance(label, str) for label in feature.categories)
    return lambda cells: _read_codes(cells, by_text, len(feature.categories) if takes_text else None)


def _read_numbers(cells: npt.NDArray[np.float64] | Labelled | None) -> tuple[Labels, Column] | None:
    return ((), cells) if isinstance(cells, np.ndarray) else None


def _read_codes(cells: Labelled, by_text: Mapping[str, int], n_listed: int | None) -> tuple[Labels, Column] | None:
    codes = np.array([*(by_text.get(text, -2) for text in cells.texts), -1], dtype=np.int32)
    unknown = np.flatnonzero(codes == -2)
    if not len(unknown):
        return (), codes[cells.places]
    if n_listed is None:
        return None
    codes[unknown] = n_listed + np.arange(len(unknown), dtype=np.int32)
    return tuple(cells.texts[place] for place in unknown.tolist()), codes[cells.places]


def _read_instants(cells: Labelled) -> tuple[Labels, Column] | None:
    try:
        instants = np.array([*map(parse_instant, cells.texts), np.nan])
    except (ValueError, OverflowError):
        return None
    return (), instants[cells.places]


def _arrow_numbers(chunks: Any) -> npt.NDArray[np.float64] | None:
    numbers = chunks.to_numpy()
    n_odd = len(numbers) - int(np.count_nonzero(np.isfinite(numbers)))
    return numbers if n_odd == chunks.null_count else None


def _distinct(chunks: Any) -> Labelled:
    """Give the distinct texts of a column, and of each row the place of its own; -1 for none."""
    whole = chunks.unify_dictionaries().combine_chunks()
    parts = whole.chunks if hasattr(whole, "chunks") else [whole]
    places = [part.indices.fill_null(-1).to_numpy(zero_copy_only=False) for part in parts]
    texts = parts[0].dictionary.to_pylist() if parts else []
    return Labelled(tuple(texts), np.concatenate(places or [np.empty(0, np.int32)]))
