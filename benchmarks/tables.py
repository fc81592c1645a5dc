"""The data: generated from fixed seeds, or public. A run writes each table once; the measuring processes read it."""

import csv
import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier

Floats = npt.NDArray[np.float32]
Target = npt.NDArray[np.int64] | npt.NDArray[np.float64]

REFERENCE: Final = Path(
    os.environ.get("ESPALIER_REFERENCE", Path(__file__).resolve().parent.parent.parent / "shared" / "reference")
)
"""Folder of the public data sets: ``data/adult.csv.gz`` with its schema, as in the tests."""
MAX_HELD_OUT: Final = 100_000
N_CATEGORIES: Final = 8
FEW: Final = 25_000
"""Rows of a warm-up: enough to run all the code that the whole table runs."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of numbers.

    Attributes:
        features: float32 (n_rows, n_columns), in C order.
        target: int64 (n_rows,), class codes from 0; or float64 (n_rows,), numbers.
    """

    features: Floats
    target: Target

    @property
    def is_regression(self) -> bool:
        """Return True if the target is a number."""
        return self.target.dtype == np.float64

    @property
    def bytes_as_float64(self) -> int:
        """Return the number of bytes of the features as float64."""
        return self.features.size * 8

    def first(self, n_rows: int) -> "Rows":
        """Return the first rows."""
        return Rows(self.features[:n_rows], self.target[:n_rows])

    def dataset(self) -> espalier.Dataset:
        """Return the table as a data set."""
        n_columns = self.features.shape[1]
        attributes = [espalier.Feature(f"x{position}", espalier.FeatureKind.NUMERIC) for position in range(n_columns)]
        columns = np.ascontiguousarray(self.features.T, dtype=np.float64)
        return espalier.Dataset(
            espalier.Schema((*attributes, self._target_feature())), (*columns, self.target.astype(self._target_type()))
        )

    def _target_feature(self) -> espalier.Feature:
        if self.is_regression:
            return espalier.Feature("y", espalier.FeatureKind.NUMERIC, espalier.Role.TARGET)
        classes = tuple(f"class {position}" for position in range(int(self.target.max()) + 1))
        return espalier.Feature("y", espalier.FeatureKind.NOMINAL, espalier.Role.TARGET, classes)

    def _target_type(self) -> type:
        return np.float64 if self.is_regression else np.int32


def two_classes(n_rows: int, n_columns: int = 20) -> Rows:
    """Return continuous columns and two classes, which depend on four columns and noise."""
    generator = np.random.default_rng(1)
    features = generator.standard_normal((n_rows, n_columns), dtype=np.float32)
    return Rows(features, (_signal(features, generator) > 0).astype(np.int64))


def three_classes(n_rows: int) -> Rows:
    """Return continuous columns and three classes of the same size."""
    generator = np.random.default_rng(2)
    features = generator.standard_normal((n_rows, 20), dtype=np.float32)
    signal = _signal(features, generator)
    return Rows(features, np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3])).astype(np.int64))


def regression(n_rows: int) -> Rows:
    """Return continuous columns and a numeric target."""
    generator = np.random.default_rng(3)
    features = generator.standard_normal((n_rows, 20), dtype=np.float32)
    return Rows(features, _signal(features, generator).astype(np.float64))


def mixed(n_rows: int) -> Rows:
    """Return ten continuous columns, ten columns of codes, and two classes; a tenth of the rows has the wrong class."""
    generator = np.random.default_rng(4)
    numbers = generator.standard_normal((n_rows, 10), dtype=np.float32)
    codes = generator.integers(0, N_CATEGORIES, (n_rows, 10))
    signal = numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + (codes[:, 0] > 4) - (codes[:, 1] % 3 == 0) > 0
    flipped = generator.random(n_rows) < 0.1
    return Rows(np.hstack([numbers, codes.astype(np.float32)]), (signal ^ flipped).astype(np.int64))


def land(n_rows: int) -> Rows:
    """Return a table like covertype: ten columns of whole numbers, 44 columns of 0 and 1, and seven classes.

    A column of numbers has about 65 to 7 000 values. Four of the other columns encode one attribute, forty another.
    """
    generator = np.random.default_rng(5)
    area = generator.choice(4, n_rows, p=[0.45, 0.05, 0.43, 0.07])
    height = np.clip(generator.normal(3050 - 250 * (area == 3), 250, n_rows), 1860, 3860)
    spreads = (360, 66, 1400, 500, 7100, 254, 254, 254, 7000)
    others = [spread * generator.beta(2, 3 + position % 3, n_rows) for position, spread in enumerate(spreads)]
    soil = np.clip(generator.normal((height - 1860) / 50, 4, n_rows), 0, 39).astype(np.int64)
    numbers = np.floor(np.column_stack([height, *others]))
    wetness = (soil * 7919 % 13 - 6) / 6 - others[2] / 700 + others[4] / 3500
    score = (height - 2950) / 280 + 0.5 * wetness - 0.4 * (area == 1) + generator.normal(0, 0.12, n_rows)
    bands = np.quantile(score, [0.005, 0.065, 0.081, 0.111, 0.599, 0.964])
    cells = (numbers, area[:, None] == np.arange(4), soil[:, None] == np.arange(40))
    return Rows(np.hstack([each.astype(np.float32) for each in cells]), np.digitize(score, bands).astype(np.int64))


def adult() -> tuple[Rows, Rows]:
    """Return the training and the test rows of adult, with categories as codes and missing cells as -1.

    Raises:
        FileNotFoundError: The reference data do not exist.
    """
    schema, rows = _reference("adult")
    columns = [column for column in schema["columns"] if column["name"] != schema["target"]]
    cells = [[_code(column, row[column["name"]]) for column in columns] for row in rows]
    target_values = next(column["values"] for column in schema["columns"] if column["name"] == schema["target"])
    target = np.array([target_values.index(row[schema["target"]]) for row in rows])
    features = np.array(cells, dtype=np.float32)
    first_test_row = _first_test_row("adult")
    return Rows(features[:first_test_row], target[:first_test_row]), Rows(
        features[first_test_row:], target[first_test_row:]
    )


def adult_with_categories() -> tuple[espalier.Dataset, espalier.Dataset]:
    """Return the training and the test rows of adult with categories and missing cells.

    Raises:
        FileNotFoundError: The reference data do not exist.
    """
    schema = json.loads((REFERENCE / "data" / "adult.schema.json").read_text())
    dataset = espalier.dataset_from_csv(REFERENCE / "data" / schema["file"], schema=schema)
    first_test_row = _first_test_row("adult")
    return dataset.take(np.arange(first_test_row)), dataset.take(np.arange(first_test_row, dataset.n_rows))


GENERATED: Final[Mapping[str, Callable[[int], Rows]]] = MappingProxyType(
    {
        "two_classes": two_classes,
        "three_classes": three_classes,
        "regression": regression,
        "mixed": mixed,
        "land": land,
    }
)


def write(name: str, n_rows: int, folder: Path) -> str:
    """Write a table and its held-out rows, unless they are already written, and return the path for `read`.

    Raises:
        FileNotFoundError: The reference data do not exist.
    """
    path = folder / f"{name}-{n_rows}"
    if not path.with_suffix(".held-out.npz").exists():
        if name == "adult":
            training, held_out = adult()
        else:
            table = GENERATED[name](n_rows + min(n_rows // 5, MAX_HELD_OUT))
            training = table.first(n_rows)
            held_out = Rows(table.features[n_rows:], table.target[n_rows:])
        for rows, suffix in ((training, ".training.npz"), (held_out, ".held-out.npz")):
            np.savez(path.with_suffix(suffix), features=rows.features, target=rows.target)
    return str(path)


def read(path: str) -> tuple[Rows, Rows]:
    """Return the training and the held-out rows."""
    parts = [np.load(f"{path}.{part}.npz") for part in ("training", "held-out")]
    training, held_out = (Rows(part["features"], part["target"]) for part in parts)
    return training, held_out


def _signal(features: Floats, generator: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return x0·x1 + x2 + x3²/2 - 1/2 with noise."""
    clean = features[:, 0] * features[:, 1] + features[:, 2] + 0.5 * features[:, 3] ** 2
    return np.asarray(clean - 0.5 + generator.normal(0, 0.5, len(features)))


def _reference(name: str) -> tuple[Mapping[str, Any], list[dict[str, str]]]:
    schema = json.loads((REFERENCE / "data" / f"{name}.schema.json").read_text())
    with gzip.open(REFERENCE / "data" / schema["file"], "rt", newline="") as file:
        return schema, list(csv.DictReader(file))


def _first_test_row(name: str) -> int:
    ranges = json.loads((REFERENCE / "splits" / f"{name}.json").read_text())["test_row_ranges"]
    return int(ranges[0][0])


def _code(column: Mapping[str, Any], cell: str) -> float:
    """Return the cell as a number: a category as its position, and a missing cell as -1."""
    if cell == "?":
        return -1.0
    return float(cell) if column["type"] == "numeric" else float(column["values"].index(cell))
