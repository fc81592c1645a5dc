"""Many rows of a JSON body, read as the table that they are: columns at once in place of cells one by one.

A table is read only where that is surely the same: rows of one shape, numbers where numbers are asked for, texts that
the model knows as categories, null for what is missing. Everything else is read row by row, which says what is wrong.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier

MANY_ROWS: Final = 200
"""From so many rows on a table is worth its own cost, and what it needs is worth loading."""
NUMBERS: Final = frozenset({float, int, type(None)})
LARGEST_EXACT: Final = 2**53
"""Whole numbers beyond it may have no float64 of their own."""
TEXTS: Final = frozenset({str, type(None)})

Column = npt.NDArray[Any]


def table_of(model: espalier.Model, rows: Sequence[Any]) -> espalier.Dataset | None:
    r"""Give rows as a table of some of the model's attributes; None where they have to be read one by one.

    >>> data = espalier.dataset_from_csv("size,wind,play\n1,weak,yes\n2,strong,no\n", target="play")
    >>> model = espalier.train(data, "cart")
    >>> table_of(model, [{"size": 2.5, "wind": "weak"}, {"size": 3, "wind": None}]).rows()
    [{'size': 2.5, 'wind': 'weak'}, {'size': 3.0, 'wind': None}]
    >>> table_of(model, [{"size": 2.5, "wind": "weak"}, {"size": 3}]) is None
    True
    """
    names = list(rows[0]) if isinstance(rows[0], dict) else []
    attributes = {feature.name: feature for feature in model.schema.attributes}
    marks = model.schema.missing_values
    if not names or not attributes.keys() >= set(names):
        return None
    if any(espalier.number_from_text(mark) is not None for mark in marks):
        return None  # each number is to be looked at
    if set(map(type, rows)) != {dict} or set(map(len, rows)) != {len(names)}:
        return None
    features, columns = [], []
    for name in names:
        try:
            column = _read(attributes[name], list(map(itemgetter(name), rows)), marks)
        except KeyError:  # a row without it, or a category that was never seen
            return None
        if column is None:
            return None
        features.append(attributes[name])
        columns.append(column)
    return espalier.Dataset(espalier.Schema(tuple(features), model.schema.missing_values), tuple(columns))


def _read(feature: espalier.Feature, cells: list[Any], marks: Sequence[str]) -> Column | None:
    """Give a column, or None where a cell wants a closer look; `marks` are texts that stand for a missing value.

    Raises:
        KeyError: A text is no category of the attribute.
    """
    types = set(map(type, cells))
    if feature.kind is espalier.FeatureKind.NUMERIC and types <= NUMBERS:
        if int in types and any(type(cell) is int and abs(cell) > LARGEST_EXACT for cell in cells):
            return None  # it is logged as it was given
        numbers = np.array(cells, dtype=np.float64)
        return None if np.isinf(numbers).any() else numbers
    if feature.coded and types <= TEXTS:
        known = {label: code for code, label in enumerate(feature.categories) if label not in marks}
        codes: Mapping[Any, int] = {**known, None: -1}
        return np.array(list(map(codes.__getitem__, cells)), dtype=np.int32)
    return None
