"""Predictions as values: of a leaf or a rule, and of a row."""

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from espalier.data.labels import Label, label_text
from espalier.model.name_texts import label_line
from espalier.model.number_texts import number_text
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
        code: Its index among the schema's classes; -1 for a regression.
        value: The number; None for a classification.
        distribution: Share of each class, in the schema's order; empty for a regression.
        confidence: Wilson's lower bound (1927, z = 1.96) of the label's share in `support` rows; None for a regression.
        std: Standard deviation of the training rows at the leaf, around its unsmoothed linear model if it has one; of
            several leaves, around `value`. None for a classification.
        support: Training weight at the leaf; of several leaves, the mean, weighted by the row's shares.
        leaf: Number of the leaf or rule; of several leaves, the one with the largest share of the row.
        nodes: The nodes visited on the path to `leaf`, root first; of a rule, its number.
        visits: The paths, largest share of the row first, at most 100.
        n_visits: Number of paths.
        row: The row as numbers, with its flags.
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
    """Return the lower bound of Wilson's score interval (1927) for a share of `weight` rows, z = 1.96.

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
    """The answer of a node as a leaf, or of a rule; ``mean``: mean of its training rows, NaN for a classification."""

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
    """Return the prediction by one leaf or rule, the last of `nodes`; `value`: predicted number, None for a class."""
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
