"""The JSON form of a tree: one list for each array of `Tree`. Every value is checked when it is read."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import orjson

from espalier.data.instants import EARLIEST_INSTANT, LATEST_INSTANT
from espalier.data.schema import FeatureKind, Schema
from espalier.documents.parts import read_array
from espalier.errors import DocumentError, Fault
from espalier.model.linear import MAX_VALUE, LinearModels
from espalier.model.node_tests import LEAF, NOMINAL, NUMERIC
from espalier.model.surrogates import Surrogates, is_within
from espalier.model.tree import MAX_NODES, Tree

TREE_DTYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("parent", "size", "child_start", "child", "feature"), np.int32),
    "test": np.int8,
    "threshold": np.float64,
    **dict.fromkeys(("code_start", "code_branch", "fallback"), np.int32),
    **dict.fromkeys(("branch_weight", "weight", "gain", "stats"), np.float64),
}
SURROGATE_DTYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("start", "feature"), np.int32),
    "test": np.int8,
    "threshold": np.float64,
    **dict.fromkeys(("below", "code_start", "code_branch"), np.int32),
    "agreement": np.float64,
}
LINEAR_DTYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("start", "feature", "cut"), np.int32),
    **dict.fromkeys(("coefficient", "intercept", "squares"), np.float64),
    **dict.fromkeys(("rank_start", "rank"), np.int32),
}


def tree_document(tree: Tree) -> dict[str, Any]:
    """Return a tree as JSON values: a dictionary with one list for each array."""
    return as_lists(tree_arrays(tree))


def tree_arrays(tree: Tree) -> dict[str, Any]:
    """Return a tree as a dictionary of arrays."""
    columns = _arrays(tree, (*TREE_DTYPES, "value"))
    columns["surrogates"] = None if tree.surrogates is None else _arrays(tree.surrogates, SURROGATE_DTYPES)
    if tree.linear is not None:
        columns["linear"] = _arrays(tree.linear, LINEAR_DTYPES)
    return columns


def _arrays(part: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: np.ascontiguousarray(getattr(part, name)) for name in names}


def as_lists(part: dict[str, Any]) -> dict[str, Any]:
    """Return `part` as JSON values, with lists instead of arrays and null instead of NaN."""
    values: dict[str, Any] = orjson.loads(orjson.dumps(part, option=orjson.OPT_SERIALIZE_NUMPY))
    return values


def read_tree(columns: Mapping[str, Any], schema: Schema) -> Tree:
    """Read the dictionary that `tree_document` returns.

    Raises:
        DocumentError: An array is not legal; each fault has its path.
    """
    classes = bool(schema.classes)
    dtypes = {**TREE_DTYPES, "value": np.int32 if classes else np.float64}
    arrays: dict[str, Any] = {
        name: read_array(columns.get(name), f"/tree/{name}", dtype, 2 if name == "stats" else 1)
        for name, dtype in dtypes.items()
    }
    if columns.get("surrogates") is not None:
        arrays["surrogates"] = Surrogates(**_read_part(columns, "surrogates", SURROGATE_DTYPES, "an object or null"))
    if columns.get("linear") is not None:
        arrays["linear"] = LinearModels(**_read_part(columns, "linear", LINEAR_DTYPES, "an object"))
    if len(arrays["parent"]) > MAX_NODES:
        raise DocumentError([Fault("/tree/parent", "too_large", f"at most {MAX_NODES} nodes")])
    tree = Tree(**arrays)
    tree.validate(n_attributes=len(schema.attributes))
    _check_against_schema(tree, schema)
    return tree


def _read_part(columns: Mapping[str, Any], part: str, dtypes: Mapping[str, type], legal: str) -> dict[str, Any]:
    given = columns[part]
    if not isinstance(given, dict):
        raise DocumentError([Fault(f"/tree/{part}", "wrong_type", f"must be {legal}")])
    return {name: read_array(given.get(name), f"/tree/{part}/{name}", dtype, 1) for name, dtype in dtypes.items()}


def _check_against_schema(tree: Tree, schema: Schema) -> None:
    width = len(schema.classes) or 3
    faults = _faults_of_stats(tree, classes=bool(schema.classes), width=width)
    if schema.classes and not np.all((tree.value >= 0) & (tree.value < width)):
        faults.append(Fault("/tree/value", "not_legal", f"must be codes of the {width} classes"))
    if not schema.classes and not np.all(np.abs(tree.value) <= MAX_VALUE):
        faults.append(Fault("/tree/value", "not_legal", f"must be numbers between ±{MAX_VALUE:g}"))
    faults += _faults_of_tests("/tree", tree, schema)
    faults += _faults_of_instants(tree, schema)
    if tree.surrogates is not None and not faults:
        faults += _faults_of_tests("/tree/surrogates", tree.surrogates, schema)
    DocumentError.raise_for(faults)


def _faults_of_stats(tree: Tree, *, classes: bool, width: int) -> list[Fault]:
    if tree.stats.shape[1] != width:
        return [Fault("/tree/stats", "length", f"must have {width} numbers per node")]
    faults = []
    sums = tree.stats.sum(axis=1) if classes else tree.stats[:, 0]
    if np.any((tree.stats if classes else tree.stats[:, [0, 2]]) < 0):
        faults.append(Fault("/tree/stats", "not_legal", "weights and sums of squares must be at least 0"))
    elif np.any((tree.weight > 0) & (sums <= 0)):
        faults.append(Fault("/tree/stats", "not_legal", "a node that has weight must have it in its statistics"))
    if not classes and np.any(np.abs(tree.stats[:, 1]) > MAX_VALUE):
        faults.append(Fault("/tree/stats", "not_legal", f"means must be between ±{MAX_VALUE:g}"))
    return faults


def _faults_of_instants(tree: Tree, schema: Schema) -> list[Fault]:
    """Return a fault if a threshold of a datetime attribute cannot be shown as a date."""
    dates = [place for place, feature in enumerate(schema.attributes) if feature.kind is FeatureKind.DATETIME]
    thresholds = tree.threshold[(tree.test == NUMERIC) & np.isin(tree.feature, dates)]
    if is_within(thresholds, EARLIEST_INSTANT, LATEST_INSTANT):
        return []
    message = "must be seconds within the years 1 to 9999 for a datetime attribute"
    return [Fault("/tree/threshold", "not_legal", message)]


def _faults_of_tests(path: str, part: Tree | Surrogates, schema: Schema) -> list[Fault]:
    n_categories = np.array([len(feature.categories) for feature in schema.attributes] or [0])
    unordered = np.array([feature.unordered for feature in schema.attributes] or [False])
    feature = np.where(part.test == LEAF, 0, part.feature)
    is_nominal = part.test == NOMINAL
    faults = []
    if np.any(np.where(unordered[feature], part.test == NUMERIC, is_nominal)):
        message = "nominal attributes are tested by category, others by a threshold"
        faults.append(Fault(f"{path}/test", "kind", message))
    if not np.array_equal(np.diff(part.code_start), np.where(is_nominal, n_categories[feature], 0)):
        message = "a nominal test has one entry per category of its attribute"
        faults.append(Fault(f"{path}/code_start", "length", message))
    return faults
