"""Stretches of a table, as they are read, gathered into one data set: what is declared is held to, the rest inferred.

What an undeclared column is can be known only at its end. Until then it is taken for numbers as long as every cell is
one, and its cells go to a file as float64. At the first that is none, the texts before it are needed again: they are
made from the numbers where these tell how they were spelt, and the others are read a second time. A column of labels
goes to the file as places in the list of those seen.
"""

from dataclasses import dataclass

from espalier.dataset import Seen, notices_of
from espalier.dataset_file import CellFile, DatasetFile
from espalier.declaring import Declared
from espalier.errors import DataError, Fault, pointer, within
from espalier.frame_column import FrameColumn
from espalier.gathered_column import GatheredColumn, Surroundings, is_labelled, way_of
from espalier.limits import UNLIMITED, Limits
from espalier.marks import Marks
from espalier.schema import ColumnDeclaration, Role, Schema

__all__ = ["Block", "Gatherer"]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a table: its columns, or those of them that are there."""

    n_rows: int
    columns: tuple[FrameColumn, ...]


class Gatherer:
    """A table of which some rows were read; a column that turns up late was missing before.

    Attributes:
        text_from: The first row that is there to be read again, if need be.

    Raises:
        SchemaError: The declaration itself is wrong.
        DataError: A column is declared to have two roles.
    """

    def __init__(self, said: Declared, *, limits: Limits = UNLIMITED) -> None:
        self._said = said
        self._limits = limits
        self._declaration = said.declaration()
        self._expected = said.expected(self._declaration)
        marks = Marks.of(self._declaration.missing_values)
        self._around = Surroundings(self._declaration.task, marks, limits, CellFile())
        self._columns: dict[str, GatheredColumn] = {}
        self._n_rows = 0
        self._again: frozenset[str] | None = None
        self.text_from = 0

    @property
    def missing_values(self) -> tuple[str, ...]:
        """Texts that stand for missing."""
        return self._declaration.missing_values

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._n_rows

    @property
    def missed(self) -> frozenset[str]:
        """The columns that must be read again."""
        return frozenset(name for name, column in self._columns.items() if column.is_missed)

    @property
    def needs_text(self) -> bool:
        """Whether the rows that came last may have to be read again."""
        return any(column.needs_text for column in self._columns.values())

    def wants(self, name: str) -> bool:
        """Say whether the cells of this column are of use: not if it must be read again, or only others are."""
        known = self._columns.get(name)
        return (self._again is None or name in self._again) and not (known is not None and known.is_missed)

    def wants_labels(self, name: str) -> bool:
        """Say whether a column without a type is to come with its labels, even where they are numbers."""
        known = self._columns.get(name)
        if known is not None:
            return known.wants_labels
        return is_labelled(*way_of(self._declared(name), None, self._around.task))

    def add(self, block: Block) -> None:
        """Take the next rows.

        Raises:
            TooLarge: The table passes a limit.
        """
        first_row = self._n_rows
        self._n_rows += block.n_rows
        given = {column.name: column for column in block.columns if self.wants(column.name)}
        for name, column in given.items():
            if name not in self._columns:
                self._columns[name] = GatheredColumn(self._declared(name), column, self._around)
        self._limits.check_table(n_rows=self._n_rows, n_columns=len(self._columns))
        for name, known in self._columns.items():
            if self.wants(name):
                known.add(given.get(name), first_row, block.n_rows)

    def read_again(self) -> None:
        """Begin once more with the row `text_from`, for the columns that were missed."""
        self._again = self.missed
        self._n_rows = self.text_from
        for name in self._again:
            self._columns[name].read_again(self.text_from)

    def finish(self) -> DatasetFile:
        """Give the data set.

        Raises:
            DataError: No rows, no such column, cells that do not fit their kind; every column's first faults.
            SchemaError: The schema that comes out is wrong: a name that is too long, a category with NUL.
        """
        if not self._columns or not self._n_rows:
            message = f"there are {len(self._columns)} columns and no rows" if self._columns else "there are no columns"
            raise DataError([Fault("", "empty", message)])
        declaration = self._said.declaration(self._columns)
        by_name = self._said.columns(self._columns, declaration)
        done = [(name, column.finish(by_name[name], self._n_rows)) for name, column in self._columns.items()]
        faults = [fault for name, each in done for fault in within(pointer(name), each.faults)]
        if faults:
            raise DataError(faults)
        schema = Schema(tuple(each.feature for _, each in done), declaration.missing_values)
        notices = notices_of(
            Seen(name, each.is_constant, each.has_value, each.is_rounded)
            for name, each in done
            if each.feature.role is Role.ATTRIBUTE
        )
        return DatasetFile(schema, self._n_rows, notices, tuple(each.stored for _, each in done), self._around.file)

    def close(self) -> None:
        """Forget the cells."""
        self._around.file.close()

    def _declared(self, name: str) -> ColumnDeclaration:
        return self._expected.get(name, ColumnDeclaration(name))
