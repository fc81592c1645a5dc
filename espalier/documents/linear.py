"""Linear models as JSON, and what a schema asks of them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from espalier.data.schema import Schema
from espalier.errors import DocumentError, Fault
from espalier.model.linear import LinearModels

DTYPES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "start": np.int32,
        "feature": np.int32,
        "cut": np.int32,
        "coefficient": np.float64,
        "intercept": np.float64,
        "squares": np.float64,
        "rank_start": np.int32,
        "rank": np.int32,
    }
)


def linear_document(models: LinearModels) -> dict[str, list[Any]]:
    """Give the arrays by name."""
    return {name: getattr(models, name).tolist() for name in DTYPES}


def read_linear(given: Any, numbers: Callable[[Any, str, type, int], Any]) -> LinearModels:
    """Read what `linear_document` gives.

    Args:
        given: JSON, not checked yet.
        numbers: Reads one list of numbers: (JSON, path, dtype, dimensions) -> array.

    Raises:
        DocumentError: It is not an object of such lists.
    """
    if not isinstance(given, dict):
        raise DocumentError([Fault("/tree/linear", "wrong_type", "must be an object")])
    return LinearModels(**{name: numbers(given.get(name), f"/tree/linear/{name}", t, 1) for name, t in DTYPES.items()})


def faults_of_linear(models: LinearModels, schema: Schema, imputed: tuple[float, ...] | None) -> list[Fault]:
    """Say where the models ask an attribute for what it does not have; each model for itself is sound already."""
    faults = []
    unordered = np.array([feature.unordered for feature in schema.attributes])
    if np.any((models.cut > 0) != unordered[models.feature]):
        message = "0 for a number or an ordered attribute, 1 or more for a nominal one"
        faults.append(Fault("/tree/linear/cut", "kind", message))
    n_categories = [len(feature.categories) if feature.unordered else 0 for feature in schema.attributes]
    if np.diff(models.rank_start).tolist() != n_categories:
        message = "a nominal attribute has one rank a category, another none"
        faults.append(Fault("/tree/linear/rank_start", "length", message))
    asked = np.unique(models.feature)
    if len(asked) and (imputed is None or np.any(np.isnan(np.array(imputed)[asked]))):
        message = "a linear model needs a value in the place of every missing one"
        faults.append(Fault("/preparation/imputed", "required", message))
    return faults
