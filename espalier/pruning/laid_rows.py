"""The values of rows side by side, row by row, as kernels read them that send rows down one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.cells import cells_of
from espalier.dataset import Dataset
from espalier.model import Model
from espalier.processors import Crew

__all__ = ["LaidRows", "holds_single", "laid_rows"]

ROWS_AT_ONCE: Final = 32_768
"""So many rows are laid before it is known whether float32 holds them; fewer at a time take longer."""


@dataclass(frozen=True, slots=True)
class LaidRows:
    """Rows of a data set.

    Attributes:
        values: float32 (n, attributes) where that holds every value as it is, else float64; codes of categories, NaN
            missing.
        has_holes: bool (attributes); whether a cell is missing.
    """

    values: npt.NDArray[np.float32] | npt.NDArray[np.float64]
    has_holes: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Together:
    """Columns of one type that are laid at once; `places`: int64, the attribute of each."""

    columns: tuple[npt.NDArray[Any], ...]
    places: npt.NDArray[np.int64]
    is_coded: bool


def laid_rows(model: Model, dataset: Dataset, workers: Crew) -> LaidRows:
    """Lay the attributes of rows side by side.

    Raises:
        DataError: The rows do not have the model's columns.
    """
    groups = list(_together(model, dataset))
    # Half the memory is read in half the time, and memory that was never touched takes longer to come by than to fill.
    return _laid(groups, dataset, model, workers, np.float32) or _all_laid(groups, dataset, model, workers)


def holds_single(dataset: Dataset) -> bool:
    """Say whether float32 holds every number among the attributes as it is.

    >>> from espalier import dataset_from_rows
    >>> [holds_single(dataset_from_rows([{"x": x, "y": "a"}], target="y")) for x in (0.5, 0.1)]
    [True, False]
    """
    with np.errstate(over="ignore"):
        numbers = (column for column in dataset.attributes if column.dtype == np.float64)
        return all(np.array_equal(column.astype(np.float32), column, equal_nan=True) for column in numbers)


def _all_laid(groups: list[_Together], dataset: Dataset, model: Model, workers: Crew) -> LaidRows:
    laid = _laid(groups, dataset, model, workers, np.float64)
    assert laid is not None  # noqa: S101 - float64 holds every value
    return laid


def _laid(
    groups: list[_Together], dataset: Dataset, model: Model, workers: Crew, kind: type[np.floating[Any]]
) -> LaidRows | None:
    """Lay all columns as numbers of one kind; None where that does not hold every value."""
    from espalier.kernels import seating  # noqa: PLC0415 - numba is loaded when a tree is pruned, not before

    values = np.empty((dataset.n_rows, len(model.schema.attributes)), kind)
    has_holes = np.zeros(values.shape[1], np.bool_)

    def lay_some(low: int, high: int) -> bool:
        return all(
            seating.lay_columns(each.columns, each.places, each.is_coded, low, high, values, has_holes)
            for each in groups
        )

    def lay(low: int, high: int) -> bool:
        # What is too large for float32 is not what was laid, and no fault.
        with np.errstate(over="ignore"):
            return all(lay_some(at, min(at + ROWS_AT_ONCE, high)) for at in range(low, high, ROWS_AT_ONCE))

    return LaidRows(values, has_holes) if all(workers.stretches(lay, dataset.n_rows)) else None


def _together(model: Model, dataset: Dataset) -> Iterator[_Together]:
    """Group columns by their type."""
    from espalier.kernels.seating import COLUMNS_AT_ONCE  # noqa: PLC0415

    attributes, cells = model.schema.attributes, cells_of(model, dataset)
    alike: dict[tuple[Any, bool], list[tuple[int, npt.NDArray[Any]]]] = {}
    for place, attribute in enumerate(attributes):
        column = cells.plain(place)
        if column is None:
            column = np.empty(dataset.n_rows)
            cells.write(place, 0, dataset.n_rows, column)
            # As the data set's own are, so that one compiled form serves both.
            column.flags.writeable = False
        alike.setdefault((column.dtype, attribute.coded), []).append((place, column))
    for (_, is_coded), listed in alike.items():
        for first in range(0, len(listed), COLUMNS_AT_ONCE):
            some = listed[first : first + COLUMNS_AT_ONCE]
            # The last one fills up the places that are left, and is laid again.
            some += some[-1:] * (COLUMNS_AT_ONCE - len(some))
            yield _Together(tuple(column for _, column in some), np.array([place for place, _ in some]), is_coded)
