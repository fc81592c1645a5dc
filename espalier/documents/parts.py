"""Parts of a model document: lists of numbers, linear models, preparation, training record."""

import dataclasses
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.config.holdout import holdout_from_dict, holdout_to_dict
from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT
from espalier.data.schema import Feature, FeatureKind, Schema
from espalier.errors import DocumentError, Fault, located
from espalier.model.linear import LinearModels
from espalier.model.model import TrainingRecord
from espalier.model.preparation import MAX_SPAN, STEPS, Preparation, Scale

SCALE_PARTS: Final = ("span", "middle", "step")
RARE: Final = ("asked", "backfitted", "divided")


def read_array(values: Any, path: str, dtype: type, n_dimensions: int) -> Array:
    """Convert a list of numbers to an array; if `n_dimensions` is 2, convert a list of such lists.

    If `dtype` is float64 and `n_dimensions` is 1, null becomes NaN.

    Raises:
        DocumentError: `values` is not a list of this form.
    """
    numbers = "numbers" if dtype is np.float64 else f"whole numbers of {np.dtype(dtype).itemsize * 8} bits"
    legal = f"must be a list of {f'lists of {numbers}, of one length' if n_dimensions == 2 else numbers}"
    is_table = n_dimensions == 2
    is_list = isinstance(values, list) and (not is_table or set(map(type, values)) <= {list})
    cells = list(chain.from_iterable(values)) if is_list and is_table else values
    allowed = {int} if dtype is not np.float64 else {int, float} if is_table else {int, float, type(None)}
    if not is_list or not set(map(type, cells)) <= allowed:
        raise DocumentError([Fault(path, "wrong_type", legal)])
    widths = set(map(len, values)) if is_table else set()
    try:
        array: Array = np.array(cells, dtype=dtype).reshape(len(values), *widths)  # None becomes NaN
    except (OverflowError, ValueError):  # a number is too large, or the lists have several lengths
        raise DocumentError([Fault(path, "not_legal", legal)]) from None
    return array


def faults_of_linear(models: LinearModels, schema: Schema, imputed: tuple[float, ...] | None) -> list[Fault]:
    """Return the faults of linear models: they do not fit the schema, or `imputed` lacks an attribute that they use."""
    faults = []
    unordered = np.array([feature.unordered for feature in schema.attributes])
    if np.any((models.cut > 0) != unordered[models.feature]):
        message = "must be 0 for a number or an ordered attribute, 1 or more for a nominal one"
        faults.append(Fault("/tree/linear/cut", "kind", message))
    n_categories = [len(feature.categories) if feature.unordered else 0 for feature in schema.attributes]
    if np.diff(models.rank_start).tolist() != n_categories:
        message = "a nominal attribute has one rank per category, any other has none"
        faults.append(Fault("/tree/linear/rank_start", "length", message))
    used = np.unique(models.feature)
    if len(used) and (imputed is None or np.any(np.isnan(np.array(imputed)[used]))):
        message = "a linear model needs a value to replace each missing one"
        faults.append(Fault("/preparation/imputed", "required", message))
    return faults


def preparation_document(preparation: Preparation) -> dict[str, Any]:
    """Return the JSON form, with null for NaN and for an attribute without a scale."""
    imputed = preparation.imputed
    nulls = None if imputed is None else [None if math.isnan(value) else value for value in imputed]
    document: dict[str, Any] = {"imputed": nulls}
    if preparation.scales is not None:
        document["scales"] = {
            part: [None if scale is None else getattr(scale, part) for scale in preparation.scales]
            for part in SCALE_PARTS
        }
    return document


def read_preparation(given: Mapping[str, Any], schema: Schema) -> Preparation:
    """Read the form that `preparation_document` returns."""
    return Preparation(
        imputed=_read_imputed(given.get("imputed"), schema), scales=_read_scales(given.get("scales"), schema)
    )


def _read_imputed(given: Any, schema: Schema) -> tuple[float, ...] | None:
    if given is None:
        return None
    imputed = tuple(_read_column(given, "/preparation/imputed", schema))
    for feature, value in zip(schema.attributes, imputed, strict=True):
        is_far = feature.kind is FeatureKind.DATETIME and not EARLIEST_INSTANT <= value <= LATEST_INSTANT
        if not math.isnan(value) and (is_far or (feature.coded and value not in range(len(feature.categories)))):
            legal = "within the years 1 to 9999" if is_far else "the code of one of its categories"
            message = f"the value for {feature.name!r} must be {legal}, or null"
            raise DocumentError([Fault("/preparation/imputed", "not_legal", message)])
    return imputed


def _read_scales(given: Any, schema: Schema) -> tuple[Scale | None, ...] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        message = f"must be an object of {', '.join(SCALE_PARTS)}"
        raise DocumentError([Fault("/preparation/scales", "wrong_type", message)])
    columns = [_read_column(given.get(part), f"/preparation/scales/{part}", schema) for part in SCALE_PARTS]
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
    legal = not any(absent) and 0 <= span <= MAX_SPAN and low <= middle <= high and step in steps
    if feature.coded or not legal:
        message = (
            f"of {feature.name!r}: null for an attribute of categories, else a span of at least 0, a middle, and a "
            f"step of {' or '.join(f'{one:g}' for one in steps)}"
        )
        raise DocumentError([Fault("/preparation/scales", "not_legal", message)])
    return Scale(span, middle, step)


def _read_column(given: Any, path: str, schema: Schema) -> list[float]:
    column: list[float] = read_array(given, path, np.float64, 1).tolist()
    if len(column) != len(schema.attributes):
        raise DocumentError([Fault(path, "length", f"must have one entry per attribute: {len(schema.attributes)}")])
    return column


def record_document(record: TrainingRecord) -> dict[str, Any]:
    """Return a record as JSON values. Fields in `RARE` are left out if they are empty or None."""
    fields = [field.name for field in dataclasses.fields(record)]
    present = [name for name in fields if name not in RARE or getattr(record, name) not in ((), None)]
    return {
        **{name: getattr(record, name) for name in present},
        "train": dict(record.train),
        "held_out": None if record.held_out is None else dict(record.held_out),
        "holdout": None if record.holdout is None else holdout_to_dict(record.holdout),
    }


def read_record(given: Mapping[str, Any]) -> TrainingRecord:
    """Read a record from JSON values.

    Raises:
        DocumentError: A member is not legal; each fault has its path below /training.
    """
    with located("/training/holdout", DocumentError):
        holdout = None if given.get("holdout") is None else holdout_from_dict(given["holdout"])
    faults = _faults_of_types(given)
    DocumentError.raise_for(faults)
    known = {field.name: given[field.name] for field in dataclasses.fields(TrainingRecord) if field.name in given}
    asked, backfitted = (tuple(given.get(name, [])) for name in ("asked", "backfitted"))
    return TrainingRecord(**{**known, "holdout": holdout, "asked": asked, "backfitted": backfitted})


def _faults_of_types(given: Mapping[str, Any]) -> list[Fault]:
    held_out, use = given.get("held_out"), given.get("held_out_use")
    return [
        Fault(f"/training/{name}", "wrong_type", legal)
        for name, holds, legal in (
            ("n_rows", _is_count(given.get("n_rows")), "must be a whole number"),
            ("n_training_rows", _is_count(given.get("n_training_rows")), "must be a whole number"),
            ("fingerprint", isinstance(given.get("fingerprint"), str), "must be text"),
            ("train", _are_figures(given.get("train")), "must be an object of numbers"),
            ("held_out", held_out is None or _are_figures(held_out), "must be an object of numbers"),
            ("held_out_use", use in (None, "holdout", "validation"), "must be holdout or validation"),
            ("asked", _are_texts(given.get("asked", [])), "must be a list of texts"),
            ("backfitted", _are_texts(given.get("backfitted", [])), "must be a list of texts"),
            ("divided", isinstance(given.get("divided"), bool | None), "must be true or false"),
        )
        if not holds
    ]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _are_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(type(item) in (int, float) for item in value.values())
