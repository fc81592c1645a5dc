"""Join the blocks of a table into whole columns while the table is read.

If nothing is declared, the first block decides whether a column is stored as numbers or as codes of labels. If a column
of numbers later has a cell that is not a number, the texts of the earlier cells are lost. The table must then be read
again, with this column as labels. A target is stored as labels until it is clear that its numbers cannot be classes.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from espalier.arrays import Array, Ints
from espalier.data.column import LabelCodes, RawColumn
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import TableDeclaration
from espalier.data.inference import (
    Form,
    are_classes,
    dataset_of_columns,
    form_of,
    numbers_of,
    parsed_labels,
    resolve_columns,
)
from espalier.data.limits import UNLIMITED, Limits
from espalier.data.missing_values import MissingValues
from espalier.data.notices import LEADING_ZEROS, Notice, finer_instants, leading_zeros_notice
from espalier.data.schema import FeatureKind, Schema
from espalier.data.spill import Spill, StoredArray
from espalier.errors import located, pointer


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table. `columns` may lack columns of the table that do not occur in these rows."""

    n_rows: int
    columns: tuple[RawColumn, ...]


class TableAssembler:
    """Joins the blocks of a table. If a column does not occur in a block, its cells in this block are missing values.

    Args:
        labelled: Names of the columns to store as labels. At a second reading, this is `misread` of the first.
        folder: Folder for the temporary file; None means the system's temporary folder.
        bytes_in_memory: If the cells in memory have more bytes, all are written to the temporary file. None: no limit.
    """

    def __init__(
        self,
        declared: TableDeclaration,
        *,
        limits: Limits = UNLIMITED,
        labelled: Collection[str] = (),
        folder: Path | None = None,
        bytes_in_memory: int | None = None,
    ) -> None:
        self._folder, self._bytes_in_memory = folder, bytes_in_memory
        self.declared, self.limits, self._labelled = declared, limits, labelled
        self._missing = MissingValues.of(declared.missing_values)
        self._spill: Spill | None = None
        self._columns: dict[str, _StoredColumn] = {}
        self.n_rows = 0

    @property
    def misread(self) -> frozenset[str]:
        """Names of columns stored as numbers in which a later cell is no number: `labelled` of a second reading."""
        return frozenset(name for name, column in self._columns.items() if column.is_misread)

    def wants_labels(self, name: str) -> bool:
        """Return whether this column must have labels in the next block, even if all of its cells are numbers."""
        if known := self._columns.get(name):
            return known.wants_labels
        form, kind = self._form_of(name, None)
        return form in (Form.LABELS, Form.CLASSES) or kind is FeatureKind.DATETIME

    def add(self, block: Block) -> None:
        """Append the next rows."""
        for column in block.columns:
            known = self._columns.get(column.name)
            if known is None or (known.is_null and not column.is_null):
                form, kind = self._form_of(column.name, column.kind)
                missing = self._missing.besides(self.declared.column(column.name).categories or ())
                self._columns[column.name] = _StoredColumn(column, form, kind, missing)
        self.limits.check_table(n_rows=self.n_rows + block.n_rows, n_columns=len(self._columns))
        for column in block.columns:
            with located(pointer(column.name)):
                self._columns[column.name].append(column, self.n_rows, limits=self.limits)
        self.n_rows += block.n_rows
        self.limits.check("categories", sum(len(column.codes.labels) for column in self._columns.values()))
        limit = self._bytes_in_memory
        if limit is not None and sum(column.n_bytes for column in self._columns.values()) > limit:
            self._write()

    def dataset(self) -> Dataset:
        """Return the data set. Its columns are memory-mapped if cells were written to the temporary file."""
        if self._spill is None:
            columns = list(self._columns.values())
            for column in columns:
                column.pad(self.n_rows)
            return dataset_of_columns([column.raw(column.take()) for column in columns], self.declared)
        spill, stored = self._spill, list[tuple[StoredArray, npt.DTypeLike]]()
        schema, notices = self.store(lambda array: stored.append((spill.write(array), array.dtype)))
        return Dataset(schema, tuple(spill.mapped(stored)), notices)

    def store(self, keep: Callable[[Column], None]) -> tuple[Schema, tuple[Notice, ...]]:
        """Pass each encoded column to `keep`; return the schema and the notices. One column at a time is in memory."""
        for column in self._columns.values():
            column.pad(self.n_rows)
        spill = self._write()
        columns = (column.raw(spill.read(column.written, column.dtype)) for column in self._columns.values())
        return resolve_columns(list(self._columns), columns, self.n_rows, self.declared, keep=keep)

    def close(self) -> None:
        """Close the temporary file."""
        if self._spill is not None:
            self._spill.close()

    def _write(self) -> Spill:
        self._spill = spill = self._spill or Spill(self._folder)
        for column in self._columns.values():
            column.written.append(spill.write(column.take()))
            column.spill = spill
        return spill

    def _form_of(self, name: str, kind: FeatureKind | None) -> tuple[Form, FeatureKind]:
        form, number_kind = form_of(self.declared.column(name), kind, self.declared.task)
        return Form.LABELS if name in self._labelled else form, number_kind


class _StoredColumn:
    """A column while its blocks are read.

    Attributes:
        codes: The labels so far, with their codes.
        written: The blocks that were written to the temporary file `spill`.
        is_misread: Whether a cell is neither missing nor a finite number, although earlier cells were stored as
            numbers. If so, no more cells are stored.
    """

    def __init__(self, first: RawColumn, form: Form, kind: FeatureKind, missing: MissingValues) -> None:
        self._name, self._type, self._categories_complete = first.name, first.kind, first.categories_complete
        self._form, self._kind, self._missing = form, kind, missing
        self._is_index, self.is_null = first.is_index, first.is_null
        self._notices: dict[Notice, None] = {}
        self._n_rows = 0
        self._parts: list[Array] = []
        self.codes = LabelCodes()
        self.written: list[StoredArray] = []
        self.spill: Spill | None = None
        self.is_misread = False

    @property
    def wants_labels(self) -> bool:
        return self.dtype is np.int32 or self._kind is FeatureKind.DATETIME

    @property
    def dtype(self) -> npt.DTypeLike:
        return np.int32 if self._form in (Form.LABELS, Form.CLASSES) else np.float64

    @property
    def n_bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def append(self, column: RawColumn, first_row: int, *, limits: Limits) -> None:
        """Append a block that begins at `first_row`. Cells between the previous block and this row are missing."""
        if self.is_misread:
            return
        self._notices |= dict.fromkeys(column.notices)
        values = None if self.dtype is np.int32 else numbers_of(column, self._kind, self._missing)
        if values is not None and self._form is Form.OPEN and np.any(np.isinf(values)):
            self._form, values = Form.LABELS, None
            if self._n_rows:
                self.is_misread, self._parts = True, []
                return
        if values is not None and self._form is Form.OPEN and column.labels is not None:
            zeros = (label for label in column.labels if isinstance(label, str) and re.match(LEADING_ZEROS, label))
            self._notices |= {leading_zeros_notice(self._name, text): None for text in islice(zeros, 1)}
        if column.labels is not None and self._kind is FeatureKind.DATETIME:
            self._notices |= dict.fromkeys(finer_instants(self._name, column.labels, kind=self._kind))
        self.pad(first_row)
        n_labels = len(self.codes.labels)
        self._append(self._encode(column, limits) if values is None else values)
        if self._form is Form.CLASSES and len(self.codes.labels) > n_labels:
            self._check_classes()

    def pad(self, n_rows: int) -> None:
        if n_rows > self._n_rows:
            missing = -1 if self.dtype is np.int32 else np.nan
            self._append(np.full(n_rows - self._n_rows, missing, dtype=self.dtype))

    def take(self) -> Array:
        """Return the cells that are in memory, and drop them."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, self.dtype), *parts])

    def raw(self, values: Array) -> RawColumn:
        is_coded = self.dtype is np.int32
        is_typed = is_coded or self._type is not None or self._form is Form.NUMBERS
        return RawColumn(
            self._name,
            (self._type if is_coded else self._kind) if is_typed else None,
            values,
            labels=tuple(self.codes.labels) if is_coded else None,
            categories_complete=is_coded and self._categories_complete,
            is_index=self._is_index,
            notices=tuple({notice.code: notice for notice in reversed(self._notices)}.values()),  # one notice per code
        )

    def _append(self, cells: Array) -> None:
        self._parts.append(cells)
        self._n_rows += len(cells)

    def _encode(self, column: RawColumn, limits: Limits) -> Ints:
        labels, codes = column.coded()
        if not (self._categories_complete or self._type is FeatureKind.ORDINAL):  # drop labels that no cell has
            present = np.zeros(len(labels) + 1, dtype=np.bool_)
            present[codes] = True
            labels = [label if used else None for label, used in zip(labels, present[:-1].tolist(), strict=True)]
        n_labels = len(self.codes.labels)
        encode = self.codes.encode_ordered if self._type is FeatureKind.ORDINAL else self.codes.encode
        encoded: Ints = np.append(encode(labels), np.int32(-1))[codes]
        for label in self.codes.labels[n_labels:]:
            if isinstance(label, str):
                limits.check("cell_chars", len(label))
        return encoded

    def _check_classes(self) -> None:
        """Store a target as numbers or as labels from now on, if its labels so far decide this."""
        numbers = self._missing.mask(parsed_labels(self.codes.labels, self._kind, self._missing))
        if np.any(np.isinf(numbers)):
            self._form = Form.LABELS
        elif not are_classes(numbers):
            if self.spill is not None:
                spill = self.spill
                self.written = [spill.write(numbers[spill.read([stored], np.int32)]) for stored in self.written]
            self._parts = [numbers[part] for part in self._parts]
            self._form = Form.OPEN if self._type is None else Form.NUMBERS
            self.codes = LabelCodes()
