"""One column of a table that comes a stretch at a time: what it may still turn out to be, and its cells so far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cell_faults import WHOLE_CHECKS, fault_of_rows
from espalier.cell_reading import are_classes, plain_instant, plain_number, read_column
from espalier.dataset import is_beyond_whole
from espalier.dataset_file import CellFile, Segment, StoredColumn
from espalier.errors import Fault
from espalier.frame_cells import is_number
from espalier.frame_column import FrameColumn
from espalier.labelling import Floats, are_beyond, floats_of, labelled
from espalier.limits import Limits
from espalier.marks import Marks
from espalier.schema import (
    LARGEST_WHOLE,
    ColumnDeclaration,
    Feature,
    FeatureKind,
    Label,
    Role,
    label_key,
)
from espalier.spelling import MOST_NOTED, number_text, texts_of

__all__ = ["GatheredColumn", "Surroundings", "Way", "is_labelled", "way_of"]

LABELS_OF_CLASSES: Final = 1_000
"""A target of more distinct labels is looked at again: it is one of numbers, unless they are few in many spellings."""

Codes = npt.NDArray[np.int32]
Read = Callable[[Any], float | None]
READERS: Final[dict[FeatureKind, tuple[Read, str]]] = {
    FeatureKind.NUMERIC: (plain_number, "must be a finite number or missing"),
    FeatureKind.DATETIME: (plain_instant, "must be an ISO 8601 date or time or missing"),
}
"""How a label is read as a number, and what is legal."""


class Way(Enum):
    """How the cells of a column are kept."""

    NUMBERS = auto()
    """As numbers or instants; a cell that is none is a fault."""
    OPEN = auto()
    """As numbers as long as all cells are some, else as labels."""
    EITHER = auto()
    """As labels, until there are more than classes have and all of them numbers: a target without a declared kind."""
    LABELS = auto()
    """As labels."""


def way_of(declared: ColumnDeclaration, kind: FeatureKind | None, task: str | None) -> tuple[Way, FeatureKind]:
    """Say how to keep a column: `kind` is what its type says, None where it has none; the kind is that of numbers."""
    told = declared.kind or (FeatureKind.NUMERIC if declared.role is Role.WEIGHT else kind)
    if declared.role is Role.TARGET:
        if task == "regression":
            return Way.NUMBERS, FeatureKind.NUMERIC
        if told in (None, FeatureKind.NUMERIC):
            if task == "classification":
                return Way.LABELS, FeatureKind.NUMERIC
            return Way.EITHER if declared.kind is None else Way.NUMBERS, FeatureKind.NUMERIC
    if told is None:
        return Way.LABELS if declared.role is Role.IGNORE else Way.OPEN, FeatureKind.NUMERIC
    return Way.NUMBERS if told in READERS else Way.LABELS, told


def is_labelled(way: Way, kind: FeatureKind) -> bool:
    """Say whether a column is kept, or made, of labels rather than of plain numbers."""
    return way in (Way.LABELS, Way.EITHER) or kind is FeatureKind.DATETIME


@dataclass(slots=True)
class Surroundings:
    """What the columns of one table share; `n_labels` and `n_noted` count those of all of them."""

    task: str | None
    marks: Marks
    limits: Limits
    file: CellFile
    n_labels: int = 0
    n_noted: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A column at its end: what it is, where its cells are, what was seen of them, and its faults."""

    feature: Feature
    stored: StoredColumn
    is_constant: bool
    has_value: bool
    is_rounded: bool
    faults: tuple[Fault, ...]


class GatheredColumn:
    """A column of which some rows were read.

    Attributes:
        way: How its cells are kept.
        is_missed: Whether its labels are needed, but those of the first rows were not kept: it must be read again.
    """

    def __init__(self, declared: ColumnDeclaration, first: FrameColumn, around: Surroundings) -> None:
        self.way, self._kind = way_of(declared, first.kind, around.task)
        self.is_missed = False
        self._declared, self._type, self._listed = declared, first.kind, first.listed
        self._around = around
        self._n_rows = 0
        self._segments: list[Segment] = []
        self._labels: list[Any] = []
        self._used = bytearray()
        self._codes: dict[Any, int] = {}
        self._bad: list[npt.NDArray[np.intp]] = []
        self._first: float | None = None
        self._varies = self._is_rounded = False
        self._noted: dict[int, Mapping[int, str]] = {}  # by the first row of a segment; see `espalier.spelling`
        self._is_spelt = not around.marks.numbers  # whether the texts of its numbers can be made again

    @property
    def needs_text(self) -> bool:
        """Whether the text of the rows that came last must be kept, since it cannot be made again from its cells."""
        return self.is_missed or (self.way in (Way.OPEN, Way.EITHER) and not self._is_spelt)

    @property
    def wants_labels(self) -> bool:
        """Whether its next cells should come as labels."""
        return is_labelled(self.way, self._kind)

    def read_again(self, first_row: int) -> None:
        """Forget the cells from a row on, to read them again as labels; numbers before it become texts."""
        before = [
            replace(each, n_rows=min(each.n_rows, first_row - each.first_row))  # cells that are all missing may go on
            for each in self._segments
            if each.first_row < first_row
        ]
        were_numbers, self.way, self.is_missed = self.way is Way.OPEN, Way.LABELS, False
        self._first, self._varies, self._is_rounded = None, False, False
        self._segments, self._n_rows = ([], 0) if were_numbers else (before, first_row)
        for segment in before if were_numbers else ():
            if segment.place is None:
                self._keep(segment.n_rows, None)
                continue
            values = self._around.file.read(segment.place, segment.n_rows, np.float64)
            texts, places = texts_of(values, self._noted.get(segment.first_row, {}))
            self._add_labels(FrameColumn(self._declared.name, None, places, labels=texts))
        self._noted = {}

    def add(self, column: FrameColumn | None, first_row: int, n_rows: int) -> None:
        """Take the next rows; None where the table has no such column there."""
        if self._n_rows < first_row:
            self._keep(first_row - self._n_rows, None)
        if column is None:
            self._keep(n_rows, None)
        elif self.wants_labels and column.kind is None and column.labels is None:
            self.is_missed = True  # it came as plain numbers, read before it was known that labels are needed
        elif self.way is Way.NUMBERS:
            self._add_numbers(column, first_row)
        elif self.way is Way.OPEN:
            self._add_open(column)
        else:
            self._add_labels(column)
            if self.way is Way.EITHER and len(self._labels) > LABELS_OF_CLASSES:
                self._look_again()

    def finish(self, declared: ColumnDeclaration, n_rows: int) -> Finished:
        """Say what the column is, and find its faults."""
        self._declared = declared
        if self._n_rows < n_rows:
            self._keep(n_rows - self._n_rows, None)
        if self.way is Way.NUMBERS or (self.way is Way.OPEN and self._has_value):
            return self._finish_numbers()
        if self.way is Way.OPEN:  # nothing but missing cells
            self._segments = [Segment(0, n_rows, None)]
        return self._finish_labels()

    @property
    def _has_value(self) -> bool:
        return self._first is not None

    def _keep(self, n_rows: int, cells: npt.NDArray[Any] | None) -> None:
        place = None if cells is None else self._around.file.append(cells)
        self._segments.append(Segment(self._n_rows, n_rows, place))
        self._n_rows += n_rows

    # Numbers

    def _add_numbers(self, column: FrameColumn, first_row: int) -> None:
        read = READERS[self._kind][0]
        plain = (self._kind, None) if self._kind is FeatureKind.NUMERIC else (self._kind,)
        if column.labels is None and column.kind in plain:
            values = floats_of(column)
            if self._kind is FeatureKind.NUMERIC:
                values = self._around.marks.taken_out(values)
            bad = np.flatnonzero(are_beyond(values, self._kind))
        else:
            labels, codes = labelled(column)
            values, bad = self._read_labels(labels, codes, read)
        if len(bad):
            self._bad.append(bad + first_row)
        self._add_floats(values)

    def _add_open(self, column: FrameColumn) -> None:
        if column.noted is None or self._around.n_noted + len(column.noted) > MOST_NOTED:
            self._is_spelt = False
        elif column.noted and self._is_spelt:
            self._noted[self._n_rows] = column.noted
            self._around.n_noted += len(column.noted)
        if column.labels is None:
            self._add_floats(self._around.marks.taken_out(floats_of(column)))
            return
        values, bad = self._read_labels(column.labels, column.values, plain_number)
        if not len(bad):
            self._add_floats(values)
        elif self._has_value:
            self.is_missed = True
        else:  # all cells before were missing
            self.way = Way.LABELS
            self._segments = [Segment(0, self._n_rows, None)] if self._n_rows else []
            self._add_labels(column)

    def _read_labels(
        self, labels: Sequence[Any], codes: npt.NDArray[Any], read: Read
    ) -> tuple[Floats, npt.NDArray[np.intp]]:
        marks = self._around.marks
        found = [np.nan if marks.have(label) else read(label) for label in labels]
        table = np.array([*(np.inf if value is None else value for value in found), np.nan], dtype=np.float64)
        if read is plain_number:
            table = marks.taken_out(table)
        values = table[np.where(codes < 0, -1, codes)]
        return values, np.flatnonzero(np.isinf(values))

    def _add_floats(self, values: Floats) -> None:
        if not self._varies:
            known = values[~np.isnan(values)]
            if len(known):
                self._first = float(known[0]) if self._first is None else self._first
                self._varies = bool(np.any(known != self._first))
        if self._kind is FeatureKind.NUMERIC and not self._is_rounded:
            self._is_rounded = is_beyond_whole(values)
        self._keep(len(values), values)

    def _finish_numbers(self) -> Finished:
        role = self._declared.role or Role.ATTRIBUTE
        feature = Feature(self._declared.name, self._kind, role)
        faults: list[Fault] = []
        stored = StoredColumn(tuple(self._segments), None, np.float64)
        if self._bad:
            legal = READERS[self._kind][1]
            faults.append(fault_of_rows(np.concatenate(self._bad), "wrong_type", legal))
        elif role in WHOLE_CHECKS:
            faults += WHOLE_CHECKS[role](self._whole(stored))
        return Finished(feature, stored, not self._varies, self._has_value, self._is_rounded, tuple(faults))

    # Labels

    def _add_labels(self, column: FrameColumn) -> None:
        labels, codes = labelled(column)
        codes = np.where(codes < 0, -1, codes)
        present = np.zeros(len(labels) + 1, dtype=np.bool_)
        present[codes] = True
        places = range(len(labels)) if self._in_order else np.flatnonzero(present[:-1]).tolist()
        table = np.full(len(labels) + 1, -1, dtype=np.int32)
        for place in places:
            label = labels[place]
            if self._around.marks.have(label):
                continue
            key: Any = label if type(label) is str else label_key(label)
            code = self._codes.get(key)
            table[place] = code = self._new(label, key) if code is None else code
            self._used[code] |= present[place]
        self._keep(len(codes), table[codes])

    @property
    def _in_order(self) -> bool:
        return self._listed or self._type is FeatureKind.ORDINAL

    def _new(self, label: Any, key: Any) -> int:
        around, code = self._around, len(self._labels)
        around.n_labels += 1
        around.limits.check("categories", around.n_labels)
        if isinstance(label, str):
            around.limits.check("cell_chars", len(label))
        self._codes[key] = code
        self._labels.append(label)
        self._used.append(0)
        if self.way is Way.EITHER and self._is_spelt:
            number = plain_number(label)
            self._is_spelt = number is None or number_text(number) == label
        return code

    def _look_again(self) -> None:
        """See whether a target of very many labels is one of numbers; if so, go on with their values."""
        values = [plain_number(label) for label in self._labels]
        if None in values:
            self.way = Way.LABELS
            return
        if are_classes(set(values)):
            return
        table = self._around.marks.taken_out(np.array([*values, np.nan], dtype=np.float64))
        before, self._n_rows, self._segments = self._segments, 0, []
        self._around.n_labels -= len(self._labels)
        self._labels, self._used, self._codes = [], bytearray(), {}
        self.way, self._first, self._varies = Way.OPEN, float(table[0]), True
        for segment in before:
            places = None if segment.place is None else self._around.file.read(segment.place, segment.n_rows, np.int32)
            self._keep(segment.n_rows, None if places is None else table[places])

    def _finish_labels(self) -> Finished:
        told, cells, marks = self._told(), self._cells(), self._around.marks
        used = np.flatnonzero(np.frombuffer(self._used, dtype=np.uint8))
        feature, array, found = read_column(told, [cells[place] for place in used], task=self._around.task)
        if marks.numbers and feature.kind is FeatureKind.NUMERIC:
            used = np.array([place for place in used if not marks.have_number(cells[place])], dtype=np.intp)
            feature, array, found = read_column(told, [cells[place] for place in used], task=self._around.task)
        if told.role is Role.WEIGHT:
            found = [fault for fault in found if fault.code == "wrong_type"]
        if found:  # again with every row, so that the message can say which
            found = read_column(told, self._all_cells(cells, used), task=self._around.task)[2]
        missing = -1 if feature.coded else np.nan
        table = np.full(len(cells) + 1, missing, dtype=np.int32 if feature.coded else np.float64)
        if not found:
            table[used] = array
        stored = StoredColumn(tuple(self._segments), table, table.dtype)
        if told.role in WHOLE_CHECKS and not found:
            found = WHOLE_CHECKS[told.role](self._whole(stored))
        is_rounded = feature.kind is FeatureKind.NUMERIC and not feature.coded and is_beyond_whole(table[used])
        return Finished(feature, stored, len(np.unique(table[used])) <= 1, len(used) > 0, is_rounded, tuple(found))

    def _all_cells(self, cells: Sequence[Any], used: npt.NDArray[np.intp]) -> list[Any]:
        """Give the cell of every row."""
        table = np.full(len(cells) + 1, -1, dtype=np.int32)
        table[used] = np.arange(len(used))
        places = self._whole(StoredColumn(tuple(self._segments), table, np.int32))
        kept = [*(cells[place] for place in used), None]
        return [kept[place] for place in places.tolist()]

    def _told(self) -> ColumnDeclaration:
        """Give the declaration, with what the column's type says where it is silent."""
        declared = self._declared
        if declared.kind is not None or declared.role is Role.WEIGHT or self._type in (None, FeatureKind.NUMERIC):
            return declared
        told = replace(declared, kind=self._type)
        if self._in_order:
            told = replace(told, categories=declared.categories or tuple(self._labels))
        if self._type is FeatureKind.ORDINAL and declared.role is Role.TARGET:
            told = replace(told, kind=FeatureKind.NOMINAL)
        return told

    def _cells(self) -> list[Any]:
        """Give the labels; those of a column of numbers as whole numbers where all are, spelt as declared."""
        if self._type is not FeatureKind.NUMERIC:
            return self._labels
        cells: list[Any] = self._labels
        if all(float(cell).is_integer() and abs(cell) <= LARGEST_WHOLE for cell in cells):
            cells = [int(cell) for cell in cells]
        spelt: dict[Any, Label] = {label: label for label in self._declared.categories or () if is_number(label)}
        return [spelt.get(cell, cell) for cell in cells]

    def _whole(self, stored: StoredColumn) -> npt.NDArray[Any]:
        return stored.read(self._around.file, 0, self._n_rows)
