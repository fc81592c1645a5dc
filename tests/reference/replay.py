"""Trees grown and asked as an experiment describes it: on all rows, on a hold-out split, on folds.

A figure on rows that were not trained on may hang on a tie that rounding noise decided in the published system. So a
tree whose figure is another is grown once more with its columns backwards: if that changes our own figure, the trees
are tied and the figure says nothing; if not, it is a difference.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.reference import missing, predictor
from tests.reference.grower import grow_table
from tests.reference.scores import Config
from tests.reference.table import Cell, Table
from tests.reference.tree import Node

Change = Callable[[Node], Node]


@dataclass(frozen=True, slots=True)
class Model:
    """A tree with what must be known to ask it."""

    tree: Node
    config: Config
    imputed: tuple[Cell, ...]

    def row(self, row: Sequence[Cell]) -> Sequence[Cell]:
        return predictor.filled(row, self.imputed) if self.config["missing"] == "imputed" else row

    def answer(self, row: Sequence[Cell], kind: str) -> float:
        """The class or the number of a row."""
        if kind == "class":
            return predictor.predicted_class(self.tree, self.row(row), missing=self.config["missing"])
        return predictor.predicted_number(self.tree, self.row(row), missing=self.config["missing"])

    def distribution(self, row: Sequence[Cell]) -> list[float]:
        options = {"missing": self.config["missing"], "leaf_probability": self.config["leaf_probability"]}
        return predictor.distribution(self.tree, self.row(row), **options)


def train(table: Table, config: Config, change: Change = lambda tree: tree) -> Model:
    """Grow a tree, perhaps change it, and keep what stands in for missing values."""
    return Model(change(_grown(table, _Key(config))), config, missing.imputed_values(table.columns, table.weights))


class _Key(dict[str, Any]):
    """A configuration that can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self)))


@lru_cache(maxsize=400)
def _grown(table: Table, config: _Key) -> Node:
    """Grow a tree. The result is cached, since several figures are computed from the same tree."""
    return grow_table(table, config)


def answers(table: Table, rows: Sequence[int], training: Sequence[int], config: Config, change: Change) -> list[float]:
    """The answers for `rows` of the tree that is grown on the rows `training`."""
    model = train(table.only(training), config, change)
    return [model.answer(table.row(row), table.target.kind) for row in rows]


def backwards(table: Table) -> Table:
    """The table with its columns in reverse order."""
    return replace(table, columns=tuple(reversed(table.columns)))


def strictly_less(tree: Node) -> Node:
    """The tree that sends a value equal to a threshold to the right, as REPTree and rpart do."""
    return replace(
        tree,
        threshold=math.nextafter(tree.threshold, -math.inf),
        children=tuple(map(strictly_less, tree.children)),
        surrogates=tuple(replace(s, threshold=math.nextafter(s.threshold, -math.inf)) for s in tree.surrogates),
    )


@dataclass(frozen=True, slots=True)
class Experiment:
    """A data set, its hold-out rows and the fold of each row, as all systems had them; empty if they are not listed."""

    table: Table
    test_rows: tuple[int, ...]
    folds: tuple[int, ...]

    @property
    def training_rows(self) -> list[int]:
        held = set(self.test_rows)
        return [row for row in range(self.table.n_rows) if row not in held]

    def held_out(self, config: Config, change: Change, table: Table) -> list[float]:
        """The answers for the hold-out rows. `table` has the columns of the experiment's table, maybe reversed."""
        return answers(table, self.test_rows, self.training_rows, config, change)

    def on_fold(self, fold: int, config: Config, change: Change, table: Table) -> list[float]:
        """The answers for the rows of a fold of the tree that is grown on the other folds."""
        return answers(table, self.rows_of(fold), self.rows_without(fold), config, change)

    @property
    def n_folds(self) -> int:
        return len(set(self.folds))

    def rows_of(self, fold: int) -> list[int]:
        return [row for row, own in enumerate(self.folds) if own == fold]

    def rows_without(self, fold: int) -> list[int]:
        return [row for row, own in enumerate(self.folds) if own != fold]

    def truth(self, rows: Sequence[int]) -> list[float]:
        return [self.table.target.values[row] for row in rows]


def agrees_unless_tied(figure: Any, ours: Callable[[Table], Any], table: Table) -> bool:
    """Whether a figure equals ours. Also True if ours depends on the order of the columns, because attributes tie."""
    given = ours(table)
    return bool(same(figure, given)) or not same(ours(backwards(table)), given)


def same(one: Any, other: Any) -> bool:
    """Whether two figures are equal; numbers to nine digits."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name, 0.0), other.get(name, 0.0)) for name in {*one, *other})
    return bool(one == other)


def read_splits(folder: Path, table: Table, name: str) -> Experiment:
    """The experiment of splits/NAME.json. Without this file, or a list in it, the rows are empty."""
    path = folder / "splits" / f"{name}.json"
    splits: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    ranges = ((row, row) for row in splits.get("test_rows", ()))
    test_rows = (row for first, last in (*ranges, *splits.get("test_row_ranges", ())) for row in range(first, last + 1))
    return Experiment(table, tuple(test_rows), tuple(splits.get("weka_cv10_seed1_fold_of_row", ())))


def n_wrong(given: Sequence[float], truth: Sequence[float]) -> int:
    return sum(answer != right for answer, right in zip(given, truth, strict=True))


def squared_error(given: Sequence[float], truth: Sequence[float]) -> float:
    return math.fsum((answer - right) ** 2 for answer, right in zip(given, truth, strict=True))


def root_mean_squared_error(given: Sequence[float], truth: Sequence[float]) -> float:
    return math.sqrt(squared_error(given, truth) / len(truth))


def mean_absolute_error(given: Sequence[float], truth: Sequence[float]) -> float:
    return math.fsum(abs(answer - right) for answer, right in zip(given, truth, strict=True)) / len(truth)
