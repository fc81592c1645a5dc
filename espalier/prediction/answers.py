"""The answer of a leaf or a rule, and the prediction of a row, which is made of such answers."""

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from espalier.data.labels import Label, label_text
from espalier.model.texts import label_line, number_text
from espalier.prediction.encode_rows import EncodedRow

WILSON_Z: Final = 1.96


class LeafVisit(NamedTuple):
    """One path down the tree.

    Attributes:
        weight: Share of the row on this path; 1 unless the row is divided.
        nodes: The nodes visited, root first, leaf last.
    """

    weight: float
    nodes: tuple[int, ...]

    @property
    def leaf(self) -> int:
        """The last node."""
        return self.nodes[-1]


class Prediction(NamedTuple):
    """The prediction of a row: by a leaf, by a rule, or, if a missing value divides the row, by several leaves.

    Attributes:
        label: The class; None for a regression.
        code: Index of the class among the schema's classes; -1 for a regression.
        value: The number; None for a classification.
        distribution: Share of each class, in the schema's order; empty for a regression.
        confidence: `wilson_lower_bound` of the label's uncorrected share and `support`; None for a regression.
        std: Standard deviation of the targets of the leaf's training rows around their mean or, for a linear leaf,
            around its unsmoothed model; at most 1e150. For several leaves, the root of the mean of std² + (leaf's
            value − `value`)², weighted by the row's shares. None for a classification.
        support: Training weight of the leaf or rule; for several leaves, the mean, weighted by the row's shares. If a
            leaf has no training weight, its `distribution` and `std` are those of the nearest ancestor that has some.
        leaf: Number of the rule, or of the last node of the path that has the largest share of the row.
        nodes: The nodes on the path to `leaf`, root first; for a rule, only its number.
        visits: The paths that the row takes, largest share of the row first; at most 100 of them.
        n_visits: Number of all paths that the row takes.
        row: The encoded row, with the names of its missing and unseen attributes.
    """

    label: Label | None
    code: int
    value: float | None
    distribution: tuple[tuple[Label, float], ...]
    confidence: float | None
    std: float | None
    support: float
    leaf: int
    nodes: tuple[int, ...]
    visits: tuple[LeafVisit, ...]
    n_visits: int
    row: EncodedRow

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; the keys of ``distribution`` are the classes as texts."""
        answer: dict[str, Any]
        if self.value is not None:
            answer = {"value": self.value, "std": self.std}
        else:
            shares = {label_text(label): share for label, share in self.distribution}
            answer = {"label": self.label, "distribution": shares, "confidence": self.confidence}
        flags = {"missing": list(self.row.missing), "unseen": list(self.row.unseen)}
        return {**answer, "support": self.support, "leaf": self.leaf, "flags": flags}


def wilson_lower_bound(share: float, weight: float) -> float:
    """Return the lower bound of Wilson's score interval (1927, z = 1.96) for a share in rows of total weight `weight`.

    The bound is 0 if the weight is 0.

    >>> round(wilson_lower_bound(1.0, 47), 5)
    0.92444
    """
    if weight <= 0:
        return 0.0
    # Numerator and denominator are multiplied by the weight, so that no divisor is tiny.
    square = WILSON_Z * WILSON_Z
    centre = share * weight + square / 2
    spread = WILSON_Z * math.sqrt(max(share * (1 - share), 0.0) * weight + square / 4)
    return max(0.0, (centre - spread) / (weight + square))


@dataclass(frozen=True, slots=True)
class LeafValue:
    """The answer of a node as a leaf, or of a rule.

    The fields are those of `Prediction`. `mean` is the mean target of the training rows; NaN for a classification.
    """

    label: Label | None
    code: int
    value: float | None
    distribution: tuple[tuple[Label, float], ...]
    confidence: float | None
    std: float | None
    mean: float


def prediction_of_leaf(
    answer: LeafValue, value: float | None, weight: float, nodes: tuple[int, ...], row: EncodedRow
) -> Prediction:
    """Return the prediction of the leaf or rule ``nodes[-1]``; `value` is the predicted number, or None for a class."""
    # Positional arguments: keywords take one and a half times as long, and nearly all predictions are made here.
    return Prediction(
        answer.label, answer.code, value, answer.distribution, answer.confidence, answer.std, weight, nodes[-1], nodes,
        (LeafVisit(1.0, nodes),), 1, row,
    )  # fmt: skip


def format_answer(answer: LeafValue | Prediction) -> str:
    """Return the label, or the number, on one line."""
    if answer.value is not None:
        return number_text(answer.value)
    return label_line(answer.label) if answer.label is not None else ""
