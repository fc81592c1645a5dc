"""Tables in plain lists: a reference data set read from its CSV and schema, or made from columns."""

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Cell = float | int | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: floats if `kind` is "numeric", codes 0..k-1 if it is "nominal"; None is a missing cell."""

    kind: str
    values: tuple[Cell, ...]
    k: int = 0
    name: str = ""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What is predicted: codes 0..k-1 if `kind` is "class", floats if it is "number"; never missing."""

    kind: str
    values: tuple[float, ...]
    k: int = 0
    name: str = ""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Attributes, target and row weights of one data set."""

    columns: tuple[Column, ...]
    target: Target
    weights: tuple[float, ...]

    @property
    def n_rows(self) -> int:
        return len(self.weights)

    def row(self, index: int) -> tuple[Cell, ...]:
        """The attribute values of one row."""
        return tuple(column.values[index] for column in self.columns)

    def only(self, rows: Sequence[int]) -> "Table":
        """The table of the given rows, in the given order."""
        columns = tuple(
            Column(c.kind, tuple(c.values[i] for i in rows), c.k, c.name, c.categories) for c in self.columns
        )
        old = self.target
        target = Target(old.kind, tuple(old.values[i] for i in rows), old.k, old.name, old.categories)
        return Table(columns, target, tuple(self.weights[i] for i in rows))

    def named(self, name: str) -> int:
        """The position of the attribute of that name."""
        return [column.name for column in self.columns].index(name)


def read_table(folder: Path, name: str) -> Table:
    """The reference data set `name` of the folder that holds data/NAME.csv and data/NAME.schema.json."""
    schema = json.loads((folder / "data" / f"{name}.schema.json").read_text(encoding="utf-8"))
    path = folder / "data" / schema["file"]
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as lines:
        records = list(csv.DictReader(lines))
    missing = schema.get("missing_token", "?")
    columns = []
    target = None
    for entry in schema["columns"]:
        texts = [record[entry["name"]] for record in records]
        column = read_column(entry["name"], texts, entry.get("values"), missing)
        if entry["name"] == schema["target"]:
            target = as_target(column)
        else:
            columns.append(column)
    if target is None:
        raise ValueError(f"{name}: the schema lists no column named like its target {schema['target']!r}")
    return Table(tuple(columns), target, (1.0,) * len(records))


def read_column(name: str, texts: Sequence[str], categories: Sequence[str] | None, missing: str) -> Column:
    """A column from its cells as text; numeric unless categories are given."""
    blank = {"", missing}
    if categories is None:
        return Column("numeric", tuple(None if text in blank else float(text) for text in texts), 0, name)
    code = {category: position for position, category in enumerate(categories)}
    values = tuple(None if text in blank else code[text] for text in texts)
    return Column("nominal", values, len(code), name, tuple(categories))


def as_target(column: Column) -> Target:
    """A column without missing cells, as the target."""
    values = tuple(value for value in column.values if value is not None)
    if len(values) != len(column.values):
        raise ValueError(f"{column.name}: a target cannot have missing cells")
    kind = "class" if column.kind == "nominal" else "number"
    return Target(kind, values, column.k, column.name, column.categories)
