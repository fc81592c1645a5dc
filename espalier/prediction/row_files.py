"""Rows to predict, from a file of any format, or batch by batch from a CSV stream of any length.

pyarrow reads a batch into columns. If a cell of the batch may be illegal for its attribute, the batch has a list of
rows instead, and the prediction of these rows reports an illegal cell.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from espalier.data.dataset import Dataset
from espalier.data.declaration import declare
from espalier.data.inference import dataset_of_columns
from espalier.data.readers import format_of, read_source
from espalier.data.readers.csv import parse_columns, rows_of_csv
from espalier.data.readers.csv_blocks import CsvBlock, csv_blocks, names_of, rows_of
from espalier.data.readers.json import json_rows, rows_of_ndjson
from espalier.data.readers.source import ByteStream, Source, opened
from espalier.data.schema import FeatureKind, Schema
from espalier.errors import DataError, Fault, InvalidInput, RowError, pointer
from espalier.prediction.encode_rows import rows_from_text, unknown_attribute

BATCH_BYTES: Final = 2**22
"""Bytes of CSV in a batch; the first batches are smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBatch:
    """Consecutive rows of a table.

    Attributes:
        first_row: Number that the first of these rows has in the table, from 0.
        dataset: Attributes of the rows. Categories that the schema does not list follow the listed ones. None if no
            column is an attribute, pyarrow fails, or a cell may be illegal for its attribute.
        rows: Empty if there is a `dataset`; else rows as `espalier.rows_from_csv` returns them.
    """

    first_row: int
    dataset: Dataset | None
    rows: list[dict[str, Any]]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows) if self.dataset is None else self.dataset.n_rows


def batches_from_csv(schema: Schema, stream: ByteStream, *, size: int = BATCH_BYTES) -> Iterator[RowBatch]:
    """Yield batches of rows to predict from a CSV stream.

    Args:
        schema: Schema of the model.
        stream: CSV in UTF-8; its first line holds the names, in any order. An attribute without a column is missing in
            every row; columns of the schema that are not attributes are ignored.
        size: Approximate number of bytes of a batch; the first batches are smaller.

    Raises:
        DataError: The text is not CSV, a line has too many or too few cells, a name occurs twice, or there are no rows.
            The error is raised when reading reaches the fault.
        RowError: A column's name is not in the schema; the fault has the path ``/{name}``.
    """
    blocks = csv_blocks(Source(stream, is_file=True), size=size)
    names = names_of(blocks)
    _check_names(schema, names)
    first_row = 0
    for block in blocks:
        dataset = _dataset(schema, names, block)
        rows = [] if dataset is not None else rows_from_text(schema, names, rows_of(block, names))
        batch = RowBatch(first_row, dataset, rows)
        yield batch
        first_row += batch.n_rows
    if not first_row:
        raise DataError([Fault("", "empty", "the CSV has column names and no rows")])


def rows_from_csv(schema: Schema, source: str | bytes | Path) -> list[dict[str, Any]]:
    """Read CSV, given as text, bytes or a path, as rows to predict; see `espalier.rows_from_text` for the cells.

    Raises:
        DataError: The source is not CSV in UTF-8, has no rows, repeats a name, or its lines differ in number of cells.
    """
    if isinstance(source, Path):
        with opened(source) as file:
            return rows_from_text(schema, *rows_of_csv(file))
    content = io.BytesIO(source.encode(errors="surrogatepass") if isinstance(source, str) else source)
    return rows_from_text(schema, *rows_of_csv(Source(content, is_file=True)))


def rows_from_file(schema: Schema, path: Path | str, *, form: str | None = None) -> list[Mapping[str, Any]]:
    """Read rows to predict from a file in any of `FORMATS`; see `rows_from_csv` for CSV.

    If `form` is None, the file's ending gives the format.

    Raises:
        DataError: There is no such format, or the file does not have it.
        OSError: The file cannot be read.
    """
    form = format_of(path) if form is None else form
    if form == "csv":
        return list(rows_from_csv(schema, Path(path)))
    with opened(path) as source:
        if form == "json":
            return json_rows(source.rewind().read())
        if form == "ndjson":
            return [row for _, row in rows_of_ndjson(source)]
        return list(read_source(source, form).rows())


def _check_names(schema: Schema, names: Sequence[str]) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    DataError.raise_for(Fault(pointer(name), "duplicate", "two columns have this name") for name in twice)
    unknown = sorted(set(names) - {feature.name for feature in schema.features})
    attributes = [feature.name for feature in schema.attributes]
    RowError.raise_for(unknown_attribute(pointer(name), attributes) for name in unknown)


def _dataset(schema: Schema, names: Sequence[str], block: CsvBlock) -> Dataset | None:
    """Return a block's attributes as a data set; None if there are none, pyarrow fails, or a cell may be illegal."""
    given = [feature for feature in schema.attributes if feature.name in names]
    if not given:
        return None
    types = {feature.name: "double" if feature.kind is FeatureKind.NUMERIC else "text" for feature in given}
    raw_columns = parse_columns(block, names, types, schema.missing_values)
    if raw_columns is None:
        return None
    try:
        dataset = dataset_of_columns(raw_columns, declare(like=Schema(tuple(given), schema.missing_values)))
    except InvalidInput:
        return None
    for feature, read_feature in zip(given, dataset.schema.features, strict=True):
        # If all categories are numbers or booleans, an unlisted one may be illegal; only reading row by row shows it.
        takes_text = not feature.categories or any(isinstance(label, str) for label in feature.categories)
        if len(read_feature.categories) > len(feature.categories) and not takes_text:
            return None
    return dataset
