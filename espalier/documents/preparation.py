"""What is done to a row, and by what its values are measured, as JSON."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from espalier.data.schema import EARLIEST_INSTANT, LATEST_INSTANT, Feature, FeatureKind, Schema
from espalier.errors import DocumentError, Fault
from espalier.model.preparation import LARGEST_SPAN, STEPS, Preparation, Scale

Numbers = Callable[[Any, str, type, int], Any]
"""Reads one list of numbers that is not checked yet: (JSON, path, dtype, dimensions) -> array."""

PARTS: Final = ("span", "middle", "step")


def preparation_document(preparation: Preparation) -> dict[str, Any]:
    """Give the JSON form; NaN is null, and so is what an attribute has none of."""
    document: dict[str, Any] = {"imputed": None if preparation.imputed is None else _nulls(preparation.imputed)}
    if preparation.scales is not None:
        document["scales"] = {
            part: [None if scale is None else getattr(scale, part) for scale in preparation.scales] for part in PARTS
        }
    return document


def read_preparation(given: Mapping[str, Any], schema: Schema, numbers: Numbers) -> Preparation:
    """Read what `preparation_document` gives.

    Raises:
        DocumentError: Another length than the schema's, or values that training cannot give.
    """
    return Preparation(
        imputed=_read_imputed(given.get("imputed"), schema, numbers),
        scales=_read_scales(given.get("scales"), schema, numbers),
    )


def _nulls(values: Sequence[float]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values]


def _read_imputed(given: Any, schema: Schema, numbers: Numbers) -> tuple[float, ...] | None:
    if given is None:
        return None
    imputed = tuple(numbers(given, "/preparation/imputed", np.float64, 1).tolist())
    _check_length(imputed, schema, "/preparation/imputed")
    for feature, value in zip(schema.attributes, imputed, strict=True):
        if feature.coded and not math.isnan(value) and value not in range(len(feature.categories)):
            message = f"the value for {feature.name!r} must be the code of one of its categories, or null"
            raise DocumentError([Fault("/preparation/imputed", "not_legal", message)])
    return imputed


def _read_scales(given: Any, schema: Schema, numbers: Numbers) -> tuple[Scale | None, ...] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise DocumentError([Fault("/preparation/scales", "wrong_type", f"must be an object of {', '.join(PARTS)}")])
    columns = []
    for part in PARTS:
        path = f"/preparation/scales/{part}"
        column = numbers(given.get(part), path, np.float64, 1).tolist()
        _check_length(column, schema, path)
        columns.append(column)
    rows = zip(schema.attributes, *columns, strict=True)
    return tuple(_read_scale(feature, *parts) for feature, *parts in rows)


def _read_scale(feature: Feature, span: float, middle: float, step: float) -> Scale | None:
    absent = [math.isnan(part) for part in (span, middle, step)]
    if all(absent):
        return None
    low, high = -math.inf, math.inf
    if feature.kind is FeatureKind.DATETIME:
        low, high = EARLIEST_INSTANT, LATEST_INSTANT
    steps = (0.0, *STEPS.get(feature.kind, ()))
    legal = not any(absent) and 0 <= span <= LARGEST_SPAN and low <= middle <= high and step in steps
    if feature.coded or not legal:
        message = (
            f"of {feature.name!r}: null for an attribute of categories, else a span of at least 0, a middle, and a "
            f"step of {' or '.join(f'{one:g}' for one in steps)}"
        )
        raise DocumentError([Fault("/preparation/scales", "not_legal", message)])
    return Scale(span, middle, step)


def _check_length(column: Sequence[float], schema: Schema, path: str) -> None:
    if len(column) != len(schema.attributes):
        raise DocumentError([Fault(path, "length", f"must have one entry an attribute: {len(schema.attributes)}")])
