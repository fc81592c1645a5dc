"""The JSON form of a model: versioned, canonical, read back with nothing taken on trust."""

import math
from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from espalier.config.checks import check_training
from espalier.config.training import TrainingConfig, config_from_dict, config_to_dict
from espalier.data.schema import EARLIEST_INSTANT, LATEST_INSTANT, FeatureKind, Schema
from espalier.documents.linear import faults_of_linear, linear_document, read_linear
from espalier.documents.preparation import preparation_document, read_preparation
from espalier.documents.record import read_record, record_document
from espalier.documents.rules import LARGEST_VALUE, read_rules, rules_document
from espalier.errors import DocumentError, Fault, InvalidInput, within
from espalier.model.model import Model
from espalier.model.rules import RuleList
from espalier.model.tree import LEAF, MAX_NODES, NOMINAL, NUMERIC, Surrogates, Tree

FORMAT: Final = "espalier"
FORMAT_VERSION: Final = 1

UPGRADES: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = MappingProxyType({})
"""What makes a document of one version one of the next; a reader applies them in turn."""

TREE_DTYPES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "parent": np.int32,
        "size": np.int32,
        "child_start": np.int32,
        "child": np.int32,
        "feature": np.int32,
        "test": np.int8,
        "threshold": np.float64,
        "code_start": np.int32,
        "code_branch": np.int32,
        "fallback": np.int32,
        "branch_weight": np.float64,
        "weight": np.float64,
        "gain": np.float64,
        "stats": np.float64,
    }
)
SURROGATE_DTYPES: Final[Mapping[str, type]] = MappingProxyType(
    {
        "start": np.int32,
        "feature": np.int32,
        "test": np.int8,
        "threshold": np.float64,
        "below": np.int32,
        "code_start": np.int32,
        "code_branch": np.int32,
        "agreement": np.float64,
    }
)


def to_json(model: Model) -> bytes:
    """Give the canonical bytes: equal models give equal bytes, and their SHA-256 names the version."""
    # orjson writes arrays as it writes the lists that they would be, NaN as null, in a tenth of the time.
    return orjson.dumps(_document(model, _body_arrays(model)), option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def from_json(content: bytes | str) -> Model:
    """Read what `to_json` gives.

    Raises:
        DocumentError: Not JSON, or not a model document; see `from_document`.
    """
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DocumentError([Fault("", "not_json", f"not JSON: line {error.lineno}, column {error.colno}")]) from None
    return _read_document(document)


def to_document(model: Model) -> dict[str, Any]:
    """Give a model as JSON values; NaN is null."""
    return _document(model, _as_lists(_body_arrays(model)))


def _document(model: Model, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": "rules" if isinstance(model.body, RuleList) else "tree",
        "schema": model.schema.to_dict(),
        "config": config_to_dict(model.config),
        "preparation": preparation_document(model.preparation),
        **body,
        "training": record_document(model.training),
        "pruning": None if model.pruning is None else dict(model.pruning),
        "notes": list(model.notes),
    }


def from_document(document: Any) -> Model:
    """Read a model from JSON values, checked as hostile input.

    Raises:
        DocumentError: What is wrong, where (a JSON pointer), and what is legal.
    """
    try:
        # What JSON cannot hold (lone surrogates, infinities, whole numbers of 65 bits) must not come in here either.
        return _read_document(orjson.loads(orjson.dumps(document)))
    except (orjson.JSONEncodeError, orjson.JSONDecodeError):
        raise DocumentError([Fault("", "not_json", "must be made of values that JSON can hold")]) from None


def _read_document(document: Any) -> Model:
    current = _upgraded(document)
    schema = _part(current, "schema", Schema.from_dict)
    config = _part(current, "config", config_from_dict)
    try:
        check_training(schema, config)
    except InvalidInput as error:
        raise DocumentError(within("/config", error.faults)) from None
    body = READERS[current["kind"]](_object(current, current["kind"]), schema)
    preparation = read_preparation(_object(current, "preparation"), schema, _numbers)
    _check_linear(body, schema, config, preparation.imputed)
    notes = current.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise DocumentError([Fault("/notes", "wrong_type", "must be a list of texts")])
    pruning = current.get("pruning")
    if pruning is not None and not isinstance(pruning, dict):
        raise DocumentError([Fault("/pruning", "wrong_type", "must be an object or null")])
    record = read_record(_object(current, "training"))
    return Model(schema, config, preparation, body, record, pruning, tuple(notes))


def _check_linear(
    body: Tree | RuleList, schema: Schema, config: TrainingConfig, imputed: tuple[float, ...] | None
) -> None:
    models = body.linear if isinstance(body, Tree) else None
    if isinstance(body, Tree) and (models is not None) != (config.leaf == "linear"):
        message = "must be given where the configuration's leaf is linear, and only there"
        raise DocumentError([Fault("/tree/linear", "combination", message)])
    faults = [] if models is None else faults_of_linear(models, schema, imputed)
    if faults:
        raise DocumentError(faults)


def _upgraded(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DocumentError([Fault("/format", "not_a_model", f'must be an object with "format": "{FORMAT}"')])
    version = document.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        legal = f"must be a version from 1 to {FORMAT_VERSION}; a later one needs a later Espalier"
        raise DocumentError([Fault("/format_version", "unknown_version", legal)])
    if document.get("kind") not in ("tree", "rules"):
        raise DocumentError([Fault("/kind", "unknown_value", "must be tree or rules")])
    current = document
    for step in range(version, FORMAT_VERSION):
        current = UPGRADES[step](current)
    return current


def _object(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = document.get(name)
    if not isinstance(part, dict):
        raise DocumentError([Fault(f"/{name}", "wrong_type", "must be an object")])
    return part


def _part(document: Mapping[str, Any], name: str, read: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        return read(_object(document, name))
    except DocumentError:
        raise
    except InvalidInput as error:
        raise DocumentError(within(f"/{name}", error.faults)) from None


def tree_document(tree: Tree) -> dict[str, Any]:
    """Give a tree as JSON columns."""
    columns: dict[str, Any] = _as_lists(_tree_arrays(tree))
    return columns


def _tree_arrays(tree: Tree) -> dict[str, Any]:
    columns: dict[str, Any] = {name: np.ascontiguousarray(getattr(tree, name)) for name in (*TREE_DTYPES, "value")}
    surrogates = tree.surrogates
    columns["surrogates"] = (
        None
        if surrogates is None
        else {name: np.ascontiguousarray(getattr(surrogates, name)) for name in SURROGATE_DTYPES}
    )
    if tree.linear is not None:
        columns["linear"] = linear_document(tree.linear)
    return columns


def _body_arrays(model: Model) -> dict[str, Any]:
    if isinstance(model.body, RuleList):
        return {"rules": rules_document(model.body, model.schema)}
    return {"tree": _tree_arrays(model.body)}


def _as_lists(part: Any) -> Any:
    """Give JSON values with lists in place of arrays, null in place of their NaN."""
    if isinstance(part, dict):
        return {name: _as_lists(value) for name, value in part.items()}
    if not isinstance(part, np.ndarray):
        return part
    if part.dtype.kind != "f" or part.ndim > 1:  # no NaN in a table of statistics
        return part.tolist()
    return [None if math.isnan(value) else value for value in part.tolist()]


def _read_tree(columns: Mapping[str, Any], schema: Schema) -> Tree:
    classes = bool(schema.classes)
    dtypes = {**TREE_DTYPES, "value": np.int32 if classes else np.float64}
    arrays: dict[str, Any] = {
        name: _numbers(columns.get(name), f"/tree/{name}", dtype, 2 if name == "stats" else 1)
        for name, dtype in dtypes.items()
    }
    given = columns.get("surrogates")
    if given is not None:
        if not isinstance(given, dict):
            raise DocumentError([Fault("/tree/surrogates", "wrong_type", "must be an object or null")])
        arrays["surrogates"] = Surrogates(
            **{
                name: _numbers(given.get(name), f"/tree/surrogates/{name}", dtype, 1)
                for name, dtype in SURROGATE_DTYPES.items()
            }
        )
    if columns.get("linear") is not None:
        arrays["linear"] = read_linear(columns["linear"], _numbers)
    if len(arrays["parent"]) > MAX_NODES:
        raise DocumentError([Fault("/tree/parent", "too_large", f"at most {MAX_NODES} nodes")])
    tree = Tree(**arrays)
    tree.validate(n_attributes=len(schema.attributes))
    _check_against_schema(tree, schema)
    return tree


READERS: Final[Mapping[str, Callable[[Mapping[str, Any], Schema], Tree | RuleList]]] = MappingProxyType(
    {"tree": _read_tree, "rules": read_rules}
)
"""What reads the body of a document, by its kind."""


def _numbers(values: Any, path: str, dtype: type, n_dimensions: int) -> npt.NDArray[Any]:
    legal = f"must be a list of {'numbers' if dtype is np.float64 else 'whole numbers'}" + (
        ", or lists of them of one length" if n_dimensions == 2 else ""
    )
    if not isinstance(values, list):
        raise DocumentError([Fault(path, "wrong_type", legal)])
    allowed: set[type] = {int}
    if dtype is np.float64:
        # A table of statistics holds no NaN; a column may.
        allowed = {int, float} if n_dimensions == 2 else {int, float, type(None)}
    if n_dimensions == 2 and not set(map(type, values)) <= {list}:
        raise DocumentError([Fault(path, "wrong_type", legal)])
    cells = list(chain.from_iterable(values)) if n_dimensions == 2 else values
    if not set(map(type, cells)) <= allowed:
        raise DocumentError([Fault(path, "wrong_type", legal)])
    try:
        array: npt.NDArray[Any] = np.array(cells, dtype=dtype)  # None becomes NaN
    except (OverflowError, ValueError):
        raise DocumentError([Fault(path, "not_legal", legal)]) from None
    if n_dimensions == 1:
        return array
    widths = set(map(len, values))
    if len(widths) > 1:
        raise DocumentError([Fault(path, "not_legal", legal)])
    return array.reshape(len(values), *widths)


def _check_against_schema(tree: Tree, schema: Schema) -> None:
    width = len(schema.classes) or 3
    faults = _faults_of_stats(tree, classes=bool(schema.classes), width=width)
    if schema.classes and not np.all((tree.value >= 0) & (tree.value < width)):
        faults.append(Fault("/tree/value", "not_legal", f"must be codes of the {width} classes"))
    if not schema.classes and not np.all(np.abs(tree.value) <= LARGEST_VALUE):
        faults.append(Fault("/tree/value", "not_legal", f"must be numbers between ±{LARGEST_VALUE:g}"))
    n_categories = np.array([len(feature.categories) for feature in schema.attributes] or [0])
    unordered = np.array([feature.unordered for feature in schema.attributes] or [False])
    inner = tree.test != LEAF
    feature = np.where(inner, tree.feature, 0)
    wrong_kind = inner & (
        ((tree.test == NOMINAL) & ~unordered[feature]) | ((tree.test == NUMERIC) & unordered[feature])
    )
    if np.any(wrong_kind):
        faults.append(Fault("/tree/test", "kind", "nominal attributes are tested by category, others by a threshold"))
    lengths = np.where(tree.test == NOMINAL, n_categories[feature], 0)
    if not np.array_equal(np.diff(tree.code_start), lengths):
        faults.append(Fault("/tree/code_start", "length", "a nominal test has one entry a category of its attribute"))
    faults += _faults_of_instants(tree, schema)
    if tree.surrogates is not None and not faults:
        faults += _faults_of_surrogates(tree.surrogates, schema)
    if faults:
        raise DocumentError(faults)


def _faults_of_stats(tree: Tree, *, classes: bool, width: int) -> list[Fault]:
    if tree.stats.shape[1] != width:
        return [Fault("/tree/stats", "length", f"must have {width} numbers a node")]
    faults = []
    sums = tree.stats.sum(axis=1) if classes else tree.stats[:, 0]
    if np.any((tree.stats if classes else tree.stats[:, [0, 2]]) < 0):
        faults.append(Fault("/tree/stats", "not_legal", "weights and sums of squares must be at least 0"))
    elif np.any((tree.weight > 0) & (sums <= 0)):
        faults.append(Fault("/tree/stats", "not_legal", "a node that has weight must have it in its statistics"))
    if not classes and np.any(np.abs(tree.stats[:, 1]) > LARGEST_VALUE):
        faults.append(Fault("/tree/stats", "not_legal", f"means must be between ±{LARGEST_VALUE:g}"))
    return faults


def _faults_of_instants(tree: Tree, schema: Schema) -> list[Fault]:
    """A threshold of a datetime attribute is shown as a date, so it must be one."""
    dates = [place for place, feature in enumerate(schema.attributes) if feature.kind is FeatureKind.DATETIME]
    thresholds = tree.threshold[(tree.test == NUMERIC) & np.isin(tree.feature, dates)]
    if np.all((thresholds >= EARLIEST_INSTANT) & (thresholds <= LATEST_INSTANT)):
        return []
    return [Fault("/tree/threshold", "not_legal", "of a datetime attribute must be seconds within the years 1 to 9999")]


def _faults_of_surrogates(surrogates: Surrogates, schema: Schema) -> list[Fault]:
    features = [schema.attributes[place] for place in surrogates.feature.tolist()]
    nominal = (surrogates.test == NOMINAL).tolist()
    lengths = [len(feature.categories) if coded else 0 for feature, coded in zip(features, nominal, strict=True)]
    faults = []
    if any(feature.unordered != coded for feature, coded in zip(features, nominal, strict=True)):
        message = "nominal attributes are tested by category, others by a threshold"
        faults.append(Fault("/tree/surrogates/test", "kind", message))
    elif np.diff(surrogates.code_start).tolist() != lengths:
        message = "a nominal test has one entry a category of its attribute"
        faults.append(Fault("/tree/surrogates/code_start", "length", message))
    return faults
