"""Many rows of a JSON body as a table: whole columns at once in place of cells one by one.

A body becomes a table only where that surely changes nothing: rows of one shape, numbers for numeric attributes, texts
that the model knows as categories, null for missing values. Everything else is read row by row, which says what is
wrong.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier

MANY_ROWS: Final = 200
"""From so many rows on a table is worth its own cost, and what it needs is worth loading."""
MAX_EXACT_INTEGER: Final = 2**53
"""Whole numbers beyond it may have no float64 of their own."""

Column = npt.NDArray[Any]


def table_of_rows(model: espalier.Model, rows: Sequence[Any]) -> espalier.Dataset | None:
    r"""Return rows as a table of some of the model's attributes; None where they have to be read one by one.

    >>> data = espalier.dataset_from_csv("size,wind,play\n1,weak,yes\n2,strong,no\n", target="play")
    >>> model = espalier.train(data, "cart")
    >>> table_of_rows(model, [{"size": 2.5, "wind": "weak"}, {"size": 3, "wind": None}]).rows()
    [{'size': 2.5, 'wind': 'weak'}, {'size': 3.0, 'wind': None}]
    >>> table_of_rows(model, [{"size": 2.5, "wind": "weak"}, {"size": 3}]) is None
    True
    """
    if set(map(type, rows)) != {dict} or set(map(len, rows)) != {len(rows[0])}:
        return None
    try:
        columns = {name: list(map(itemgetter(name), rows)) for name in rows[0]}
    except KeyError:  # a row has other names
        return None
    return table_of_columns(model, columns)


def table_of_columns(model: espalier.Model, columns: Mapping[str, list[Any]]) -> espalier.Dataset | None:
    """Return columns of the same length as a table, as `table_of_rows` does."""
    attributes = {feature.name: feature for feature in model.schema.attributes}
    marks = model.schema.missing_values
    if not columns or not attributes.keys() >= columns.keys():
        return None
    if any(espalier.number_from_text(mark) is not None for mark in marks):
        return None  # a number may stand for a missing value
    features = tuple(attributes[name] for name in columns)
    arrays = [_array(attributes[name], cells, marks) for name, cells in columns.items()]
    read = tuple(array for array in arrays if array is not None)
    return espalier.Dataset(espalier.Schema(features, marks), read) if len(read) == len(arrays) else None


def _array(feature: espalier.Feature, cells: list[Any], marks: Sequence[str]) -> Column | None:
    """Return a column, or None where a cell needs a closer look; `marks` are texts that stand for a missing value."""
    types = set(map(type, cells))
    if feature.kind is espalier.FeatureKind.NUMERIC and types <= {float, int, type(None)}:
        if int in types and any(type(cell) is int and abs(cell) > MAX_EXACT_INTEGER for cell in cells):
            return None  # it is logged as it was given
        numbers = np.array(cells, dtype=np.float64)
        return None if np.isinf(numbers).any() else numbers
    if feature.coded and types <= {str, type(None)}:
        codes: dict[Any, int] = {label: code for code, label in enumerate(feature.categories) if label not in marks}
        codes[None] = -1
        try:
            return np.array(list(map(codes.__getitem__, cells)), dtype=np.int32)
        except KeyError:  # a category that the model has never seen
            return None
    return None
