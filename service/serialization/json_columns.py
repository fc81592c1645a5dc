"""Many rows of a JSON body as a table, which is faster to predict than single rows.

A body becomes a table only if this certainly changes no answer. All rows must have the same attributes, and none may be
a datetime. A cell must be null (missing), a known category (a text), or a finite number (an integer: within ±2**53). No
text for missing values may be a number. Other bodies are read row by row, which finds the faults.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier

MANY_ROWS: Final = 200  # from this number on, a table is faster, including the time to load its libraries
MAX_EXACT_INTEGER: Final = 2**53  # beyond it, several whole numbers may have the same float64

Column = npt.NDArray[Any]


def table_of_rows(model: espalier.Model, rows: Sequence[Any]) -> espalier.Dataset | None:
    r"""Return rows as a table with one column per given attribute; None if the rows have to be read one by one.

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
    """Return a table of columns that all have the same length; None if the rows have to be read one by one."""
    attributes = {feature.name: feature for feature in model.schema.attributes}
    missing_values = model.schema.missing_values
    if not columns or not attributes.keys() >= columns.keys():
        return None
    if any(espalier.number_from_text(text) is not None for text in missing_values):
        return None  # a number may stand for a missing value
    features = tuple(attributes[name] for name in columns)
    arrays = [_array(attributes[name], cells) for name, cells in columns.items()]
    whole = tuple(array for array in arrays if array is not None)
    return espalier.Dataset(espalier.Schema(features, missing_values), whole) if len(whole) == len(arrays) else None


def _array(feature: espalier.Feature, cells: list[Any]) -> Column | None:
    types = set(map(type, cells))
    if feature.kind is espalier.FeatureKind.NUMERIC and types <= {float, int, type(None)}:
        if int in types and any(type(cell) is int and abs(cell) > MAX_EXACT_INTEGER for cell in cells):
            return None  # if its row is read alone, the exact number is logged
        numbers = np.array(cells, dtype=np.float64)
        return None if np.isinf(numbers).any() else numbers
    if feature.coded and types <= {str, type(None)}:
        codes: dict[Any, int] = {label: code for code, label in enumerate(feature.categories)} | {None: -1}
        found = list(map(codes.get, cells))  # None for a category that the model has never seen
        return None if None in found else np.array(found, dtype=np.int32)
    return None
