"""Blocks of a table, joined to whole columns while it is read.

The kind of an undeclared column of a format without types is known only at its end. The column is stored as float64 as
long as all its cells are numbers. At the first cell that is no number, the column must be read again from the start, as
labels, because the texts of its numbers are gone. A target is stored as labels while it may hold classes, then as
numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.data.column import RawColumn
from espalier.data.dataset import Column, Dataset
from espalier.data.declaration import TableDeclaration
from espalier.data.inference import PARSERS, are_classes, dataset_of_columns
from espalier.data.labels import label_key, plain_number
from espalier.data.limits import UNLIMITED, Limits
from espalier.data.missing import MissingValues
from espalier.data.schema import ColumnDeclaration, FeatureKind, Role
from espalier.data.spill import MAX_BYTES_IN_MEMORY, Spill, StoredArray


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table: its columns, or those of them that are present."""

    n_rows: int
    columns: tuple[RawColumn, ...]


class Form(Enum):
    """How the cells of a column are stored."""

    NUMBERS = auto()
    """As float64; a cell that is no number is infinite, and refused at the end."""
    OPEN = auto()
    """As float64 until a cell is no number: then the column must be read again."""
    LABELS = auto()
    """As codes of labels."""
    CLASSES = auto()
    """As codes of labels until they are numbers that are no classes: then as NUMBERS, or OPEN."""


def form_of(declared: ColumnDeclaration, kind: FeatureKind | None, task: str | None) -> tuple[Form, FeatureKind]:
    """Return how to store a column whose type is `kind`, and the kind of its numbers."""
    kind_known = declared.kind or (FeatureKind.NUMERIC if declared.role is Role.WEIGHT else kind)
    if declared.role is Role.TARGET:
        if task == "regression":
            return Form.NUMBERS, FeatureKind.NUMERIC
        if kind_known in (None, FeatureKind.NUMERIC):
            if task == "classification":
                return Form.LABELS, FeatureKind.NUMERIC
            return Form.CLASSES if declared.kind is None else Form.NUMBERS, FeatureKind.NUMERIC
    if kind_known is None:
        return Form.LABELS if declared.role is Role.IGNORE else Form.OPEN, FeatureKind.NUMERIC
    return Form.NUMBERS if kind_known in PARSERS else Form.LABELS, kind_known


class TableAssembler:
    """Joins the blocks of a table; a column that appears late is missing before.

    Raises:
        SchemaError: The declaration is wrong.
        DataError: A column is declared to have two roles.
    """

    def __init__(self, declared: TableDeclaration, *, limits: Limits = UNLIMITED, in_memory: bool = True) -> None:
        self._declared = declared
        self._declaration = declared.declaration()
        self._expected = declared.expected(self._declaration)
        self._limits = limits
        self._in_memory = in_memory
        self._spill: Spill | None = None
        self._columns: dict[str, _Assembled] = {}
        self._again: frozenset[str] | None = None
        self.n_rows = 0

    @property
    def missing_values(self) -> tuple[str, ...]:
        """Texts that mean a missing value."""
        return self._declaration.missing_values

    @property
    def unread(self) -> frozenset[str]:
        """The columns that must be read again."""
        return frozenset(name for name, column in self._columns.items() if column.must_be_read_again)

    def wants(self, name: str) -> bool:
        """Return whether the next cells of this column are of use."""
        known = self._columns.get(name)
        return (self._again is None or name in self._again) and not (known and known.must_be_read_again)

    def wants_labels(self, name: str) -> bool:
        """Return whether the next cells of this column must come with labels, even if all are numbers."""
        known = self._columns.get(name)
        form, kind = known.form_and_kind if known else form_of(self._declared_as(name), None, self._declaration.task)
        return form in (Form.LABELS, Form.CLASSES) or kind is FeatureKind.DATETIME

    def add(self, block: Block) -> None:
        """Append the next rows."""
        first_row = self.n_rows
        self.n_rows += block.n_rows
        given = {column.name: column for column in block.columns if self.wants(column.name)}
        for name, column in given.items():
            if name not in self._columns:
                declared, missing = self._declared_as(name), MissingValues.of(self.missing_values)
                self._columns[name] = _Assembled(declared, column, missing=missing, task=self._declaration.task)
        self._limits.check_table(n_rows=self.n_rows, n_columns=len(self._columns))
        for name, known in self._columns.items():
            if self.wants(name):
                known.append(given.get(name), first_row, block.n_rows, limits=self._limits)
        self._limits.check("categories", sum(column.n_labels for column in self._columns.values()))
        if not self._in_memory:
            self._write_if_large()

    @property
    def is_idle(self) -> bool:
        """Whether all columns must be read again."""
        return bool(self._columns) and len(self.unread) == len(self._columns if self._again is None else self._again)

    def read_again(self) -> None:
        """Start again with the first row, for the columns in `unread`."""
        self._again = self.unread
        self.n_rows = 0
        for name in self._again:
            self._columns[name].read_again()

    def dataset(self) -> Dataset:
        """Return the data set."""
        for column in self._columns.values():
            column.pad(self.n_rows)
        if self._spill is None:
            whole = [column.join() for column in self._columns.values()]
            return dataset_of_columns(whole, self._declared)
        for column in self._columns.values():
            column.write_to(self._spill)
        joined = self._spill.join([column.stored for column in self._columns.values()])
        whole = [column.raw(array) for column, array in zip(self._columns.values(), joined, strict=True)]
        return dataset_of_columns(whole, self._declared, store=_write_in_place)

    def close(self) -> None:
        """Forget the temporary file."""
        if self._spill is not None:
            self._spill.close()

    def _write_if_large(self) -> None:
        if sum(column.n_bytes for column in self._columns.values()) > MAX_BYTES_IN_MEMORY:
            self._spill = self._spill or Spill()
            for column in self._columns.values():
                column.write_to(self._spill)

    def _declared_as(self, name: str) -> ColumnDeclaration:
        return self._expected.get(name, ColumnDeclaration(name))


def _write_in_place(array: Column, raw: RawColumn) -> Column:
    """Write an encoded column over its raw cells, which are memory-mapped, where it has their size."""
    if array is raw.values or array.dtype != raw.values.dtype:
        return array
    raw.values[:] = array
    return raw.values


class _Assembled:
    """One column, of which some blocks were read."""

    def __init__(
        self, declared: ColumnDeclaration, first: RawColumn, *, missing: MissingValues, task: str | None
    ) -> None:
        self._form, self._kind = form_of(declared, first.kind, task)
        self._type, self._categories_complete = first.kind, first.categories_complete
        self._name, self._missing = first.name, missing
        self._spill: Spill | None = None
        self._start()
        self.must_be_read_again = False

    def _start(self) -> None:
        self._n_rows = 0
        self._has_value = False
        self._labels: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._written: list[StoredArray] = []
        self._parts: list[npt.NDArray[Any]] = []
        self.n_bytes = 0

    @property
    def n_labels(self) -> int:
        """Number of distinct labels so far."""
        return len(self._labels)

    @property
    def form_and_kind(self) -> tuple[Form, FeatureKind]:
        """How the cells are stored, and the kind of numbers."""
        return self._form, self._kind

    @property
    def stored(self) -> tuple[Sequence[StoredArray], npt.DTypeLike]:
        """The blocks that were written to the file, and their dtype."""
        return self._written, self._dtype

    def append(self, column: RawColumn | None, first_row: int, n_rows: int, *, limits: Limits) -> None:
        """Append a block; None if the table has no such column there."""
        self.pad(first_row)
        if column is None:
            self.pad(first_row + n_rows)
        elif self._form in (Form.LABELS, Form.CLASSES):
            if column.kind is None and column.labels is None:  # parsed before it was known that labels are needed
                self._give_up()
            else:
                self._append_labels(column, limits)
        else:
            self._append_numbers(column, limits)

    def pad(self, n_rows: int) -> None:
        """Append missing cells until there are `n_rows`."""
        if n_rows > self._n_rows:
            missing = np.nan if self._dtype is np.float64 else -1
            self._append_cells(np.full(n_rows - self._n_rows, missing, dtype=self._dtype))

    def read_again(self) -> None:
        """Forget all cells, to read them again as labels."""
        self._start()
        self._form, self.must_be_read_again = Form.LABELS, False

    def _give_up(self) -> None:
        self._start()
        self.must_be_read_again = True

    def write_to(self, spill: Spill) -> None:
        """Write the blocks that are in memory to a file."""
        self._written += [spill.write(np.concatenate(self._parts))] if self._parts else []
        self._parts, self.n_bytes, self._spill = [], 0, spill

    def join(self) -> RawColumn:
        """Return the whole column, in memory."""
        values = self._parts[0] if len(self._parts) == 1 else np.concatenate([np.empty(0, self._dtype), *self._parts])
        self._parts = []
        return self.raw(values)

    def raw(self, values: npt.NDArray[Any]) -> RawColumn:
        """Return the column with these cells, all blocks joined."""
        if self._dtype is np.int32:
            labels = tuple(self._labels)
            return RawColumn(
                self._name, self._type, values, labels=labels, categories_complete=self._categories_complete
            )
        is_typed = self._type is not None or self._form is Form.NUMBERS
        return RawColumn(self._name, self._kind if is_typed else None, values, copy=False)

    @property
    def _dtype(self) -> npt.DTypeLike:
        return np.int32 if self._form in (Form.LABELS, Form.CLASSES) else np.float64

    def _append_cells(self, cells: npt.NDArray[Any]) -> None:
        self._parts.append(cells)
        self.n_bytes += cells.nbytes
        self._n_rows += len(cells)

    def _append_numbers(self, column: RawColumn, limits: Limits) -> None:
        plain = (None, self._kind) if self._kind is FeatureKind.NUMERIC else (self._kind,)
        if column.labels is None and column.kind in plain:
            values = column.numbers()
        else:
            labels, codes = column.coded()
            parse = PARSERS[self._kind][0]
            parsed = [np.nan if self._missing.contains(label) else parse(label) for label in labels]
            if None in parsed and self._form is Form.OPEN:
                self._append_text(column, limits)
                return
            table = np.array([*(np.inf if value is None else value for value in parsed), np.nan], dtype=np.float64)
            values = table[np.where(codes < 0, -1, codes)]
        self._has_value = self._has_value or not bool(np.all(np.isnan(values)))
        self._append_cells(values)

    def _append_text(self, column: RawColumn, limits: Limits) -> None:
        """Append a block with a text to a column of numbers."""
        if self._has_value:
            self._give_up()
            return
        n_rows = self._n_rows  # all of them missing
        self.read_again()
        self.pad(n_rows)
        self._append_labels(column, limits)

    def _append_labels(self, column: RawColumn, limits: Limits) -> None:
        n_labels = len(self._labels)
        labels, codes = column.coded()
        codes = np.where(codes < 0, -1, codes)
        used: Sequence[int] = range(len(labels))
        if not (self._categories_complete or self._type is FeatureKind.ORDINAL):
            present = np.zeros(len(labels) + 1, dtype=np.bool_)
            present[codes] = True
            used = np.flatnonzero(present[:-1]).tolist()
        table = np.full(len(labels) + 1, -1, dtype=np.int32)
        for place in used:
            label = labels[place]
            key = label if type(label) is str else label_key(label)
            code = self._codes.setdefault(key, len(self._labels))
            if code == len(self._labels):
                self._labels.append(label)
                if isinstance(label, str):
                    limits.check("cell_chars", len(label))
            table[place] = code
        self._append_cells(table[codes])
        if self._form is Form.CLASSES and len(self._labels) > n_labels:
            self._look_at_classes()

    def _look_at_classes(self) -> None:
        """Keep a target as what it must be, if its labels tell: numbers, or labels that are no numbers."""
        values = [np.nan if self._missing.contains_number(label) else plain_number(label) for label in self._labels]
        if None in values:
            self._form = Form.LABELS
            return
        table = np.array([*values, np.nan], dtype=np.float64)
        if are_classes(set(table[~np.isnan(table)].tolist())):
            return
        if self._spill is not None:
            spill = self._spill
            self._written = [spill.write(table[spill.read(stored, np.int32)]) for stored in self._written]
        self._parts = [table[part] for part in self._parts]
        self._form = Form.OPEN if self._type is None else Form.NUMBERS
        self._labels, self._codes, self._has_value = [], {}, True
