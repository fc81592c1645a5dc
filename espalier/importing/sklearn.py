"""Fitted decision trees of scikit-learn as models.

scikit-learn rounds each number of a row to 32 bits and then compares; Espalier compares doubles. Each threshold is
therefore replaced by the greatest double that, rounded to 32 bits, is at most the threshold. So every double that
scikit-learn accepts takes the same branch as in scikit-learn.
"""

import math
import sys
import zipfile
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.config.presets import training_config
from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind, Role, Schema
from espalier.documents.model import from_json, to_json
from espalier.errors import EspalierError, NotApplicable
from espalier.model.model import Model, TrainingRecord
from espalier.model.node_tests import LEAF, NUMERIC, UNKNOWN
from espalier.model.preparation import Preparation
from espalier.model.tree import Tree, children_of, sizes_of

CRITERIA: Final = {
    "gini": "gini",
    "entropy": "information_gain",
    "log_loss": "information_gain",
    "squared_error": "squared_error",
    "friedman_mse": "squared_error",
    "absolute_error": "absolute_error",
    "poisson": "poisson",
}
NODES: Final = "sklearn.tree._tree.Tree"
SQUARES: Final = frozenset({"squared_error", "friedman_mse"})
"""Criteria whose impurity is the variance."""
BELOW_OVERFLOW: Final = math.nextafter(2.0**128 - 2.0**103, 0.0)
"""The greatest double that is still finite after rounding to 32 bits."""
MAX_UNPACKED_BYTES: Final = 2**30
"""Maximum unpacked size of a skops file, which is a zip archive and is read into memory."""


def from_sklearn(estimator: Any, *, target: str = "target") -> Model:
    """Return a fitted decision tree of scikit-learn as a model that gives the same answers for every double.

    Attributes have the names that the estimator was fitted with, else ``x0``, ``x1``, ….

    Args:
        estimator: A fitted ``DecisionTreeClassifier``, ``DecisionTreeRegressor`` or extra tree.
        target: Name of the column that the model predicts.

    Raises:
        NotApplicable: `estimator` is not one of these, is not fitted, predicts more than one column, or has an unknown
            criterion or classes other than texts, numbers and truth values.
        DocumentError: No document can hold the model: for example, it has one class only.
        SchemaError: The columns are not legal: for example, an attribute has the name of the target.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import espalier
    >>> fitted = DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], ["no", "no", "yes"])
    >>> print(espalier.to_text(espalier.from_sklearn(fitted)), end="")
    x0 ≤ 2.5000001192092896: no (2)
    x0 > 2.5000001192092896: yes (1)
    """
    _check(estimator)
    peer_tree, classifies = estimator.tree_, hasattr(estimator, "classes_")
    classes = tuple(map(_label, estimator.classes_.tolist())) if classifies else ()
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    schema = _schema(names or [f"x{place}" for place in range(estimator.n_features_in_)], classes, target)
    n_rows = int(peer_tree.n_node_samples[0])
    imported = Model(
        schema=schema,
        config=training_config("cart", criterion=CRITERIA[estimator.criterion], missing="direction"),
        preparation=Preparation(),
        body=_tree(peer_tree, classifies=classifies, is_variance=estimator.criterion in SQUARES),
        training=TrainingRecord(n_rows, n_rows, "", None, {"n_rows": n_rows}),
        notes=tuple(_notes(estimator, classifies=classifies)),
    )
    return from_json(to_json(imported))  # checked as every other document is


def from_skops(content: bytes, *, target: str = "target") -> Model:
    """Return a model that gives the same answers as a decision tree of scikit-learn that was saved by skops.

    No code in the file is run. A file is refused if it has a type that skops does not trust. The only exception is
    the type in which scikit-learn holds the nodes of a tree.

    Args:
        content: The bytes that ``skops.io.dumps`` returned.
        target: Name of the column that the model predicts.

    Raises:
        NotApplicable: skops is not installed, or `content` is refused, is too large or has no tree for `from_sklearn`.
    """
    try:
        from skops import io  # noqa: PLC0415 - an extra
        from skops.io.exceptions import UntrustedTypesFoundException  # noqa: PLC0415
    except ImportError:
        raise NotApplicable("reading a .skops file needs skops: pip install 'espalier[skops]'") from None
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            if sum(part.file_size for part in archive.infolist()) > MAX_UNPACKED_BYTES:
                raise NotApplicable(f"the file must have at most {MAX_UNPACKED_BYTES} bytes when unpacked")
        # The node numbers may be wrong, but only scikit-learn's predictions rely on them, and it makes none here.
        others = sorted(set(io.get_untrusted_types(data=content)) - {NODES})
        if others:
            raise NotApplicable(f"the file has types that are not trusted: {', '.join(others)}")
        return from_sklearn(io.loads(content, trusted=[NODES]), target=target)
    except (EspalierError, ImportError, UntrustedTypesFoundException) as error:
        raise NotApplicable(str(error)) from None
    except zipfile.BadZipFile:
        raise NotApplicable("the file holds no decision tree that can be read: it was not saved by skops") from None
    except Exception as error:  # from zip, from JSON, or from arrays that do not fit each other
        raise NotApplicable(f"the file holds no decision tree that can be read: {type(error).__name__}") from None


def last_double(threshold: float) -> float:
    """Return the greatest double that, rounded to 32 bits, is at most `threshold`.

    Exceptions: a finite `threshold` below the 32-bit range or above `BELOW_OVERFLOW` is unchanged; ±inf gives ±1.8e308.

    >>> last_double(2.5)
    2.5000001192092896
    """
    if math.isinf(threshold):
        return math.copysign(sys.float_info.max, threshold)
    with np.errstate(over="ignore"):
        low = np.float32(threshold)
        if float(low) > threshold:
            low = np.nextafter(low, np.float32(-np.inf))
        high = np.nextafter(low, np.float32(np.inf))
    if not np.isfinite(low):
        return threshold
    if not np.isfinite(high):
        return max(threshold, BELOW_OVERFLOW)
    # The double halfway between two neighbours in 32 bits is rounded to the even one.
    middle = (float(low) + float(high)) / 2
    is_even = int(low.view(np.uint32)) % 2 == 0
    return middle if is_even else math.nextafter(middle, -math.inf)


def _check(estimator: Any) -> None:
    from sklearn.tree import BaseDecisionTree  # noqa: PLC0415 - an extra

    if not isinstance(estimator, BaseDecisionTree):
        raise NotApplicable("must be a decision tree of scikit-learn, such as DecisionTreeClassifier")
    if not hasattr(estimator, "tree_"):
        raise NotApplicable("the estimator is not fitted: call its fit first")
    if estimator.criterion not in CRITERIA:
        raise NotApplicable(f"the criterion must be one of {', '.join(CRITERIA)}")
    if estimator.n_outputs_ != 1:
        raise NotApplicable(f"the estimator predicts {estimator.n_outputs_} columns; a model predicts one")


def _schema(names: Sequence[str], classes: tuple[Label, ...], target: str) -> Schema:
    kind = FeatureKind.NOMINAL if classes else FeatureKind.NUMERIC
    attributes = [Feature(name, FeatureKind.NUMERIC) for name in names]
    return Schema((*attributes, Feature(target, kind, Role.TARGET, classes)))


def _label(value: Any) -> Label:
    if not isinstance(value, str | int | float):
        raise NotApplicable("the classes must be texts, numbers or truth values")
    return value


def _notes(estimator: Any, *, classifies: bool) -> list[str]:
    notes = ["imported from scikit-learn; thresholds are moved so that every double takes the same branch as there"]
    if estimator.monotonic_cst is not None:
        notes.append("grown with monotonic constraints, which the configuration does not show")
    if not classifies and estimator.criterion not in SQUARES:
        notes.append(f"{estimator.criterion} does not give the spread of the rows: standard deviations are shown as 0")
    return notes


def _tree(peer_tree: Any, *, classifies: bool, is_variance: bool) -> Tree:
    order, parent = _preorder(peer_tree.children_left.tolist(), peer_tree.children_right.tolist())
    inner = peer_tree.children_left[order] >= 0
    # Missing values against all others: every known value is at most the infinite threshold.
    of_presence = inner & np.isinf(peer_tree.threshold[order]) & (peer_tree.missing_go_to_left[order] == 0)
    weight = peer_tree.weighted_n_node_samples[order].astype(np.float64)
    answers = peer_tree.value[order, 0, :].astype(np.float64)
    # Rounding leaves some impurities below 0; that of a node without weight, or with a sum of 0, is not finite.
    impurity = np.maximum(np.nan_to_num(peer_tree.impurity[order], posinf=0.0), 0.0)
    child_start, child = children_of(parent)
    whole = weight[parent[child]]
    shares = np.minimum(np.divide(weight[child], whole, out=np.full(len(child), 0.5), where=whole > 0), 1.0)
    below = np.zeros(len(order))
    np.add.at(below, parent[child], shares * impurity[child])
    return Tree(
        parent=parent,
        size=sizes_of(parent),
        child_start=child_start,
        child=child,
        feature=np.where(inner, peer_tree.feature[order], -1).astype(np.int32),
        test=np.where(inner, np.where(of_presence, UNKNOWN, NUMERIC), LEAF).astype(np.int8),
        threshold=np.array(
            [
                last_double(cut) if cuts else math.nan
                for cut, cuts in zip(peer_tree.threshold[order].tolist(), inner & ~of_presence, strict=True)
            ]
        ),
        code_start=np.zeros(len(order) + 1, np.int32),
        code_branch=np.zeros(0, np.int32),
        fallback=np.where(inner, 1 - peer_tree.missing_go_to_left[order].astype(np.int32), -1).astype(np.int32),
        branch_weight=shares,
        weight=weight,
        gain=np.where(inner, impurity - below, math.nan),
        stats=answers * weight[:, None]
        if classifies
        else np.stack([weight, answers[:, 0], impurity * weight * is_variance], axis=1),
        value=answers.argmax(axis=1).astype(np.int32) if classifies else answers[:, 0].copy(),
    )


def _preorder(left: list[int], right: list[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return scikit-learn's node numbers in preorder, and each node's parent as an index in this order (root: -1)."""
    order, parents, stack = list[int](), list[int](), [(0, -1)]
    while stack:
        node, parent = stack.pop()
        if not 0 <= node < len(left) or len(order) >= len(left):
            raise NotApplicable("the nodes of the estimator are not a tree")
        number = len(order)
        order.append(node)
        parents.append(parent)
        if left[node] >= 0:
            stack += [(right[node], number), (left[node], number)]
    return np.array(order), np.array(parents, dtype=np.int32)
