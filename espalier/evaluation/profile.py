"""The profile of a data set: the information of each attribute about the target."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from espalier.arrays import Array, Floats, Places
from espalier.data.dataset import Column
from espalier.data.labels import Label
from espalier.data.readers import as_dataset
from espalier.data.schema import Feature
from espalier.errors import ConfigError, DataError, Fault
from espalier.evaluation.impurity import (
    ContingencyTable,
    chi_square_of,
    contingency_table,
    distances_from_mean,
    entropy_of,
    entropy_within,
    gini_gain_of,
    gini_of,
    information_of,
    variance_of,
)
from espalier.model.texts import shown_bound
from espalier.stats import chi_square_tail

LOG_BASES: Final = {"2": (math.log(2), "bits"), "e": (1.0, "nats"), "10": (math.log(10), "bans")}
"""The legal bases of the logarithm in entropies, each with its natural logarithm and the name of the unit."""
BASE_NAMES: Final[Mapping[float, str]] = {2: "2", math.e: "e", 10: "10"}
TIE: Final = 1e-12
"""Thresholds whose scores differ by at most this much are equally good. The lowest of them is taken."""
SMALLEST: Final = 1e-300


@dataclass(frozen=True, slots=True)
class ClassShare:
    """One class of the target.

    Attributes:
        label: The class.
        weight: Weight of the rows of this class.
        share: Share of this class in the weight of all rows.
        self_information: −log(share), in the profile's unit; None for a class without weight.
    """

    label: Label
    weight: float
    share: float
    self_information: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class AttributeProfile:
    """The information of one attribute about the target, over all rows. Entropies and gains are in the profile's unit.

    An attribute without an order is split into one branch per category, an attribute with an order at its best
    threshold. N is the weight of all rows, F the weight of the rows whose value is known (Quinlan 1993, chapter 3).

    Attributes:
        name: Name of the attribute.
        kind: Kind of the attribute's values.
        n_known: Number of rows whose value is known.
        n_missing: Number of rows whose value is missing.
        n_distinct: Number of distinct known values in rows with weight.
        entropy: Entropy of the known values themselves.
        threshold: Best threshold by gain or variance decrease: a number, a category or a date; None if there is none.
        target_entropy: Entropy of the classes among rows whose value is known. This field and all fields down to
            `p_value` are None for a regression.
        conditional_entropy: Mean entropy of the classes within the branches, among rows whose value is known.
        gain: (F/N) · (target entropy − conditional entropy).
        split_information: Entropy of the branches, with missing values as one more branch; 0 without a split.
        gain_ratio: gain / split information; None without a split.
        gini_decrease: (F/N) · decrease of the Gini impurity by one branch per category or by `gini_threshold`.
        gini_threshold: Best threshold by `gini_decrease`, in the same form as `threshold`.
        chi_square: Pearson's statistic (1900) of the branch × class table of the rows whose value is known.
        degrees_of_freedom: (branches − 1) · (classes − 1), counting only branches and classes with rows.
        p_value: P(statistic at least this large) if branch and class are independent; None for 0 degrees of freedom.
        variance_decrease: (F/N) · (variance − variance within branches); None for a classification.
        sd_reduction: Like `variance_decrease`, but with standard deviations instead of variances.
    """

    name: str
    kind: str
    n_known: int
    n_missing: int
    n_distinct: int
    entropy: float
    threshold: Label | None = None
    target_entropy: float | None = None
    conditional_entropy: float | None = None
    gain: float | None = None
    split_information: float | None = None
    gain_ratio: float | None = None
    gini_decrease: float | None = None
    gini_threshold: Label | None = None
    chi_square: float | None = None
    degrees_of_freedom: int | None = None
    p_value: float | None = None
    variance_decrease: float | None = None
    sd_reduction: float | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a data set: statistics of the target, and the information of each attribute about the target.

    Attributes:
        task: ``classification`` or ``regression``.
        n_rows: Number of rows.
        weight: Sum of the row weights.
        log_base: ``2``, ``e`` or ``10``.
        unit: Unit of the entropies: bits, nats or bans.
        target: Name of the target.
        attributes: The profile of each attribute, in the schema's order.
        classes: The share of each class, in the schema's order; empty for a regression.
        entropy: Entropy of the classes; None for a regression.
        gini: Gini impurity Σ p(1 − p) of the classes; None for a regression.
        mean: Mean of the target; None for a classification.
        variance: Population variance of the target; None for a classification.
    """

    task: str
    n_rows: int
    weight: float
    log_base: str
    unit: str
    target: str
    attributes: tuple[AttributeProfile, ...]
    classes: tuple[ClassShare, ...] = ()
    entropy: float | None = None
    gini: float | None = None
    mean: float | None = None
    variance: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the figures that apply to the task; an undefined figure is None."""
        of_task = SHOWN[self.task]
        names = ("task", "n_rows", "weight", "log_base", "unit", "target", *of_task["target"])
        classes = {"classes": [share.to_dict() for share in self.classes]} if self.classes else {}
        attributes = [
            {name: getattr(attribute, name) for name in (*SHOWN_OF_EACH, *of_task["attribute"])}
            for attribute in self.attributes
        ]
        return {**{name: getattr(self, name) for name in names}, **classes, "attributes": attributes}


SHOWN_OF_EACH: Final = ("name", "kind", "n_known", "n_missing", "n_distinct", "entropy", "threshold")
SHOWN: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "classification": {
        "target": ("entropy", "gini"),
        "attribute": (
            "target_entropy", "conditional_entropy", "gain", "split_information", "gain_ratio", "gini_decrease",
            "gini_threshold", "chi_square", "degrees_of_freedom", "p_value",
        ),
    },
    "regression": {"target": ("mean", "variance"), "attribute": ("variance_decrease", "sd_reduction")},
}  # fmt: skip


def profile(dataset: Any, *, log_base: str | float = 2) -> Profile:
    r"""Return the profile of a data set; each row counts with its weight.

    Args:
        dataset: A `Dataset` with a target.
        log_base: Base of the logarithm: 2 (entropies in bits), e (nats) or 10 (bans).

    Raises:
        ConfigError: `log_base` is none of these.
        DataError: There is no target, or no row has a weight above 0.

    >>> from espalier import dataset_from_csv
    >>> data = dataset_from_csv("wind,play\nweak,yes\nweak,yes\nstrong,no\nstrong,no\n", target="play")
    >>> wind = profile(data).attributes[0]
    >>> wind.gain, wind.split_information, wind.chi_square
    (1.0, 1.0, 4.0)
    """
    named = BASE_NAMES.get(log_base, "") if isinstance(log_base, float | int) else ""
    base = log_base if isinstance(log_base, str) else named
    if base not in LOG_BASES:
        raise ConfigError([Fault("/log_base", "unknown_value", f"must be one of {', '.join(LOG_BASES)}")])
    dataset = as_dataset(dataset)
    target, weight = dataset.schema.target, dataset.weight
    if target is None or dataset.target is None:
        message = "the data set declares no target to compare with: declare one when it is read"
        raise DataError([Fault("/target", "required", message)])
    if not np.any(weight > 0):
        raise DataError([Fault("", "no_weight", "no row has a weight above 0")])
    table = Table(np.asarray(dataset.target), weight, len(target.categories), LOG_BASES[base][0])
    examine = _class_profile if target.coded else _number_profile
    if target.coded:
        figures = _class_figures(table, target)
    else:
        figures = {
            "mean": float(np.average(table.target, weights=weight)),
            "variance": variance_of(table.target, weight),
        }
    return Profile(
        task=str(dataset.schema.task),
        n_rows=dataset.n_rows,
        weight=float(weight.sum()),
        log_base=base,
        unit=LOG_BASES[base][1],
        target=target.name,
        attributes=tuple(
            examine(table, feature, column)
            for feature, column in zip(dataset.schema.attributes, dataset.attributes, strict=True)
        ),
        **figures,
    )


@dataclass(frozen=True, slots=True)
class Table:
    """The target (class codes or numbers), row weights, number of classes, and the size of the entropy unit in nats."""

    target: Array
    weight: Floats
    n_classes: int
    unit: float


@dataclass(frozen=True, slots=True)
class Values:
    """One attribute: its distinct known values, ascending, and the rows that have weight and a known value.

    `place` is the index of each row's value in `distinct`. `missing_weight` is the weight of the rows without a value.
    """

    distinct: Array
    place: Places
    target: Array
    weight: Floats
    missing_weight: float


def _class_figures(table: Table, target: Feature) -> dict[str, Any]:
    weights = _sums(table.target, table.weight, table.n_classes)
    shares = (weights / weights.sum()).tolist()
    classes = tuple(
        ClassShare(label, weight, share, abs(math.log(share)) / table.unit if share > 0 else None)
        for label, weight, share in zip(target.categories, weights.tolist(), shares, strict=True)
    )
    return {"classes": classes, "entropy": entropy_of(weights, table.unit), "gini": gini_of(weights)}


def _class_profile(table: Table, feature: Feature, column: Column) -> AttributeProfile:
    values = _values(table, feature, column)
    if feature.unordered:
        cut = gini_cut = -1
        cells = gini_cells = _cells(table, values, values.place, len(values.distinct))
    else:
        cut, gini_cut = _best_cuts(values)
        cells = _cells(table, values, values.place > cut, 2)
        gini_cells = _cells(table, values, values.place > gini_cut, 2)
    known = cells.weight.sum()
    share, unit = known / (known + values.missing_weight), table.unit
    gain = float(share * information_of(cells, unit))
    branches = np.append(cells.branches, values.missing_weight)
    split_information = entropy_of(branches, unit) if np.count_nonzero(cells.branches) > 1 else 0.0
    statistic, freedom = chi_square_of(cells)
    return AttributeProfile(
        **_description(table, feature, column, values),
        threshold=_threshold(feature, values, cut),
        target_entropy=entropy_of(cells.classes, unit),
        conditional_entropy=entropy_within(cells, unit),
        gain=gain,
        split_information=split_information,
        gain_ratio=gain / split_information if split_information > 0 else None,
        gini_decrease=float(share * gini_gain_of(gini_cells)),
        gini_threshold=_threshold(feature, values, gini_cut),
        chi_square=statistic,
        degrees_of_freedom=freedom,
        p_value=chi_square_tail(statistic, freedom) if freedom else None,
    )


def _number_profile(table: Table, feature: Feature, column: Column) -> AttributeProfile:
    values = _values(table, feature, column)
    cut = -1 if feature.unordered else _best_number_cut(values)
    branch = values.place if feature.unordered else (values.place > cut).astype(np.intp)
    known = float(values.weight.sum())
    share = known / (known + values.missing_weight)
    centred = distances_from_mean(values.target, values.weight) if known else values.target
    between = deviation = 0.0
    for each in np.unique(branch).tolist():
        here = branch == each
        part = float(values.weight[here].sum()) / known
        between += part * float(np.average(centred[here], weights=values.weight[here])) ** 2
        deviation += part * math.sqrt(variance_of(values.target[here], values.weight[here]))
    return AttributeProfile(
        **_description(table, feature, column, values),
        threshold=_threshold(feature, values, cut),
        variance_decrease=share * between,
        sd_reduction=share * max(math.sqrt(variance_of(values.target, values.weight)) - deviation, 0.0),
    )


def _values(table: Table, feature: Feature, column: Column) -> Values:
    present = (column >= 0 if feature.coded else ~np.isnan(column)) & (table.weight > 0)
    known = column[present] if feature.coded else column[present].astype(np.float64)
    distinct, place = np.unique(known, return_inverse=True)
    return Values(
        distinct=distinct,
        place=place.astype(np.intp),
        target=table.target[present],
        weight=table.weight[present],
        missing_weight=float(table.weight[~present].sum()),
    )


def _description(table: Table, feature: Feature, column: Column, values: Values) -> dict[str, Any]:
    n_known = int(np.count_nonzero(column >= 0 if feature.coded else ~np.isnan(column)))
    return {
        "name": feature.name,
        "kind": str(feature.kind),
        "n_known": n_known,
        "n_missing": len(column) - n_known,
        "n_distinct": len(values.distinct),
        "entropy": entropy_of(_sums(values.place, values.weight, 1), table.unit),
    }


def _cells(table: Table, values: Values, branch: Array, n_branches: int) -> ContingencyTable:
    return contingency_table(branch, values.target, values.weight, n_branches=n_branches, n_classes=table.n_classes)


def _best_cuts(values: Values) -> tuple[int, int]:
    """Return the index of the last value below the best threshold by gain, and by Gini. -1 means no threshold.

    If c is the weight of a class in a branch of weight w, then w·entropy = w·ln w − Σ c·ln c and w·gini = w − Σ c²/w.
    The sums are built class by class to save memory.
    """
    if (n := len(values.distinct)) < 2:
        return -1, -1
    weights = _both_sides(_sums(values.place, values.weight, n))
    whole = values.weight.sum()
    entropies = _times_log(weights[0]) + _times_log(weights[1])
    ginis = np.zeros(n - 1)
    for code in np.unique(values.target).tolist():
        of_class = np.where(values.target == code, values.weight, 0.0)
        for count, weight in zip(_both_sides(_sums(values.place, of_class, n)), weights, strict=True):
            entropies = entropies - _times_log(count)
            ginis -= count**2 / weight
    return _lowest(entropies / whole), _lowest(ginis / whole)


def _best_number_cut(values: Values) -> int:
    if (n := len(values.distinct)) < 2:
        return -1
    centred = distances_from_mean(values.target, values.weight)
    spread = max(float(np.abs(centred).max()), SMALLEST)
    weights = _both_sides(_sums(values.place, values.weight, n))
    sums = _both_sides(_sums(values.place, values.weight * centred / spread, n))
    between = sum(own**2 / weight for own, weight in zip(sums, weights, strict=True))
    return _lowest(-between / values.weight.sum())


def _both_sides(of_value: Floats) -> tuple[Floats, Floats]:
    """Return the sums below and above each threshold. A difference from the total would lose digits of a small sum."""
    return np.cumsum(of_value)[:-1], np.cumsum(of_value[::-1])[-2::-1]


def _sums(place: Array, weight: Floats, n: int) -> Floats:
    return np.bincount(place, weights=weight, minlength=n).astype(np.float64)


def _lowest(scores: Floats) -> int:
    return int(np.flatnonzero(scores <= scores.min() + TIE)[0])


def _times_log(weight: Floats) -> Floats:
    return weight * np.log(np.maximum(weight, SMALLEST))


def _threshold(feature: Feature, values: Values, cut: int) -> Label | None:
    if cut < 0:
        return None
    low, high = float(values.distinct[cut]), float(values.distinct[cut + 1])
    middle = low / 2 + high / 2 if math.isinf(low + high) else (low + high) / 2
    return shown_bound(feature, middle if middle < high else low)
