"""How to train and prune: every switch a field, every preset a value.

An algorithm is not a class here but a *preset*, a `TrainingConfig` in `PRESETS`. How to prune is said in
`espalier.config.pruning`. What may be combined with what data is checked in
`espalier.config.checks`.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from espalier.config.parameters import (
    either,
    mapping,
    number,
    numbers,
    one_of,
    parameter,
    parameters_from,
    parameters_to_dict,
    switch,
    whole,
)
from espalier.config.pruning import (
    PRUNERS,
    PRUNING,
    CostComplexity,
    ModelTree,
    Pessimistic,
    Pruner,
    ReducedError,
    pruner_name,
    pruning_method,
)
from espalier.data.schema import Schema
from espalier.errors import ConfigError, Fault, pointer

__all__ = [
    "PRESETS",
    "PRUNERS",
    "CostComplexity",
    "Holdout",
    "ModelTree",
    "Pessimistic",
    "Pruner",
    "ReducedError",
    "TrainingConfig",
    "config_from_dict",
    "config_to_dict",
    "holdout_from_dict",
    "pruner_name",
    "pruning_method",
    "training_config",
]

WHAT: Final = "the training configuration"
LARGEST_SEED: Final = 2**63 - 1
CLASS_CRITERIA: Final = (
    "information_gain",
    "gain_ratio",
    "normalized_gain",
    "gini",
    "misclassification",
    "chi_square",
)
NUMBER_CRITERIA: Final = ("squared_error", "absolute_error", "poisson", "sdr", "m5")
COST_FUNCTIONS: Final = ("nunez", "tan_schlimmer", "norton")
NOMINAL_SPLITS: Final = ("multiway", "subset", "one_vs_rest", "ordered_binaries")
NUMERIC_SPLITS: Final = ("best", "boundary", "median", "near_median", "none")
MISSING_STRATEGIES: Final = ("fractional", "spread", "direction", "majority", "surrogate", "imputed")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a tree is grown. Take one from `training_config`, which checks every value."""

    preset: str = "cart"
    criterion: str | None = parameter(
        None,
        one_of([*CLASS_CRITERIA, *NUMBER_CRITERIA]).or_null(),
        "the score of a split; null: the preset's own for the task. Of classes: the entropy that is taken away in bits "
        "(information_gain), that over the split's own entropy (gain_ratio) or over the node's (normalized_gain), the "
        "fall of Σp(1−p) (gini) or of 1−max p (misclassification), Pearson's statistic (chi_square). Of numbers: the "
        "fall of the variance (squared_error), of the mean distance from the median (absolute_error), of half the "
        "deviance of counts (poisson), of the standard deviation (sdr), of the variance's fifth root (m5)",
    )
    attribute_costs: tuple[tuple[str, float], ...] | None = parameter(
        None,
        mapping("attribute names", number(0)).or_null(),
        "what it costs to obtain an attribute's value, paid once a path; 1 where nothing is said",
    )
    cost_function: str | None = parameter(
        None,
        one_of(COST_FUNCTIONS).or_null(),
        "how a gain g is weighed against a cost C: nunez (2^g − 1)/(C + 1)^w, tan_schlimmer g²/C, norton g/C",
    )
    cost_weight: float = parameter(1.0, number(0, 1), "nunez only: the exponent w")
    nominal: str = parameter(
        "subset",
        one_of(NOMINAL_SPLITS),
        "how a nominal attribute is split: a branch a category (multiway), two groups of categories (subset), one "
        "against the rest (one_vs_rest), or cut along the order of their mean target in all rows (ordered_binaries)",
    )
    numeric: str = parameter(
        "best",
        one_of(NUMERIC_SPLITS),
        "which cuts of a numeric attribute are tried: all (best), those where the class changes (boundary), the middle "
        "row (median), the place nearest to it where value and class change (near_median), or such attributes are "
        "refused (none)",
    )
    threshold: str = parameter(
        "midpoint",
        one_of(["midpoint", "observed"]),
        "midpoint of the neighbouring values, or that moved down to a value of the training set",
    )
    window: str | None = parameter(
        None,
        one_of(["c45"]).or_null(),
        "c45: a numeric cut leaves max(min_weight_leaf, min(25, a tenth of the known weight over the number of "
        "classes)) on either side, between values more than 1e-5 apart; null: min_weight_leaf",
    )
    mdl_correction: bool = switch(
        "lower a numeric gain by the bits needed to say which cut it is (C4.5 release 8)", default=False
    )
    average_gain_guard: bool = switch(
        "only attributes of at least average gain compete by gain ratio (C4.5)", default=False
    )
    missing: str = parameter(
        "direction",
        one_of(MISSING_STRATEGIES),
        "where a row without the value goes: down every branch by its share, scored on known rows (fractional) or on "
        "all (spread); down the branch that scored best (direction); down the heaviest (majority); where another "
        "attribute sends it (surrogate); its value is replaced by the mean or the most frequent one (imputed)",
    )
    max_surrogates: int = parameter(5, whole(0, 100), "surrogate only: how many are kept a node")
    max_depth: int | None = parameter(None, whole(0).or_null(), "no node deeper than this; the root has depth 0")
    max_leaf_nodes: int | None = parameter(None, whole(1).or_null(), "at most so many leaves, the best splits first")
    min_weight_split: float = parameter(0.0, number(0), "a node of less weight is a leaf")
    min_weight_leaf: float = parameter(0.0, number(0), "least weight of a branch (C4.5's M)")
    leaf_weight_rule: str = parameter(
        "candidates",
        one_of(["candidates", "winner"]),
        "candidates: a split with too light branches does not compete; winner: it does, and makes a leaf if it wins",
    )
    min_impurity_decrease: float | None = parameter(
        0.0,
        number(0).or_null(),
        "least gain of a split, times the node's share of all weight; 0 takes a split that gains nothing "
        "(scikit-learn); null: it must gain something",
    )
    chi_square_alpha: float | None = parameter(
        None, number(0, 1).or_null(), "no split whose chi-square p-value is above this"
    )
    validation_stop: bool = switch("children only where the held-out rows' accuracy does not drop", default=False)
    min_sd_fraction: float = parameter(
        0.0, number(0, 1), "a node whose standard deviation is below this share of the root's is a leaf"
    )
    min_variance_fraction: float = parameter(
        0.0, number(0, 1), "a node whose variance is below this share of the root's is a leaf"
    )
    cut_points: tuple[tuple[str, tuple[float, ...]], ...] | None = parameter(
        None, mapping("attribute names", numbers()).or_null(), "the only thresholds that may be tried, by attribute"
    )
    leaf_probability: str = parameter(
        "frequency", one_of(["frequency", "laplace"]), "class shares at a leaf: as counted, or (n + 1)/(N + classes)"
    )
    class_weight: str | tuple[tuple[str, float], ...] | None = parameter(
        None,
        either(one_of(["balanced"]), mapping("class labels", number(0))).or_null(),
        "factors on the weights of rows by class; balanced: each class weighs the same",
    )
    leaf: str = parameter(
        "constant",
        one_of(["constant", "linear"]),
        "what a leaf answers: a constant, or a linear model of the attributes tested at it and below it (M5)",
    )
    smoothing: float | None = parameter(
        None,
        number(0, above=True).or_null(),
        "regression only: each answer p is mixed with that of the node above, q, as (n·p + k·q)/(n + k); null: not",
    )
    collapse: bool = switch(
        "a subtree with no fewer training errors than a leaf becomes a leaf, before any pruning", default=False
    )
    pruning: Pruner | None = parameter(  # noqa: RUF009 - declares a field, as dataclasses.field does
        None, PRUNING, "how the tree is pruned once it is grown; null: not at all"
    )
    seed: int = parameter(0, whole(0, LARGEST_SEED), "for everything that draws at random")


C45: Final = TrainingConfig(
    preset="c45",
    criterion="gain_ratio",
    nominal="multiway",
    threshold="observed",
    window="c45",
    mdl_correction=True,
    average_gain_guard=True,
    missing="fractional",
    min_weight_leaf=2.0,
    min_impurity_decrease=None,
    collapse=True,
    pruning=Pessimistic(quantile="c45"),
)
PRESETS: Final[Mapping[str, TrainingConfig]] = MappingProxyType(
    {
        "id3": TrainingConfig(
            preset="id3",
            criterion="information_gain",
            nominal="multiway",
            numeric="none",
            missing="majority",
            min_impurity_decrease=None,
        ),
        "c45": C45,
        "j48": dataclasses.replace(C45, preset="j48", pruning=Pessimistic(quantile="normal")),
        "cart": TrainingConfig(preset="cart"),
        "reptree": TrainingConfig(
            preset="reptree",
            nominal="multiway",
            missing="spread",
            min_weight_leaf=2.0,
            leaf_weight_rule="winner",
            min_impurity_decrease=None,
            min_variance_fraction=1e-3,
            pruning=ReducedError(backfit=True),
        ),
        "m5": TrainingConfig(
            preset="m5",
            criterion="m5",
            nominal="ordered_binaries",
            missing="imputed",
            min_weight_split=4.0,
            min_impurity_decrease=0.0,
            min_sd_fraction=0.05,
            leaf="linear",
            smoothing=15.0,
            pruning=ModelTree(),
        ),
    }
)
"""The published algorithms, as they come."""

PRESET_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id3": "ID3 (Quinlan 1986): information gain, one branch a category, nominal attributes only",
        "c45": "C4.5 release 8 (Quinlan 1993, 1996): gain ratio, thresholds, missing values, pessimistic pruning",
        "j48": "J48 (Weka's C4.5): as c45, pruned by the normal quantile",
        "cart": "CART (Breiman et al. 1984): two branches, gini or squared error, every cut tried",
        "reptree": "REPTree (Weka): information gain or squared error, pruned by a third of the rows",
        "m5": "M5' (Quinlan 1992; Wang and Witten 1997), linear models in the leaves, pruned and smoothed",
    }
)
TASK_CRITERIA: Final[Mapping[str, str]] = MappingProxyType({"classification": "gini", "regression": "squared_error"})
PRESET_CRITERIA: Final = MappingProxyType(
    {"reptree": MappingProxyType({"classification": "information_gain", "regression": "squared_error"})}
)
ENTROPY_CRITERIA: Final = ("information_gain", "gain_ratio", "normalized_gain")
CRITERIA_OF_TASK: Final = MappingProxyType({"classification": CLASS_CRITERIA, "regression": NUMBER_CRITERIA})


@dataclass(frozen=True, slots=True)
class Holdout:
    """Which rows are set aside before anything is learned.

    Attributes:
        fraction: Share of the rows, above 0 and below 1; None where `rows` are given.
        seed: For the draw.
        stratified: Draw the same share of each class (classification only).
        rows: The very rows, counted from 0.
    """

    fraction: float | None = None
    seed: int = 0
    stratified: bool = True
    rows: tuple[int, ...] | None = None


def training_config(preset: str = "cart", **params: Any) -> TrainingConfig:
    """Give a preset with some fields changed.

    Raises:
        ConfigError: No such preset or field, or a value that is not legal; every fault, by path.

    >>> training_config("cart", max_depth=4).max_depth
    4
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError([Fault("/preset", "unknown_value", f"must be one of {', '.join(PRESETS)}")])
    return parameters_from(TrainingConfig, params, base=PRESETS[preset], what=WHAT)


def changed_config(config: TrainingConfig, params: Mapping[str, Any]) -> TrainingConfig:
    """Give `config` with some fields changed and every field checked: one made by hand has not been yet.

    Raises:
        ConfigError: Every fault, by path.
    """
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    preset = own.pop("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ConfigError([Fault("/preset", "unknown_value", f"must be one of {', '.join(PRESETS)}")])
    return parameters_from(TrainingConfig, {**own, **params}, base=config, what=WHAT)


def config_to_dict(config: TrainingConfig) -> dict[str, Any]:
    """Give the JSON form, every field by name."""
    return {"preset": config.preset, **parameters_to_dict(config)}


def config_from_dict(document: Mapping[str, Any]) -> TrainingConfig:
    """Read the JSON form that `config_to_dict` gives.

    Raises:
        ConfigError: Every fault, by path.
    """
    if not isinstance(document, Mapping):
        raise ConfigError([Fault("", "wrong_type", f"{WHAT} must be an object of fields and values")])
    fields = dict(document)
    preset = fields.pop("preset", "cart")
    if not isinstance(preset, str):
        raise ConfigError([Fault("/preset", "wrong_type", f"must be one of {', '.join(PRESETS)}")])
    return training_config(preset, **{str(name): value for name, value in fields.items()})


def holdout_from_dict(document: Mapping[str, Any]) -> Holdout:
    """Read ``{"fraction", "seed", "stratified"}`` or ``{"rows"}``.

    Raises:
        ConfigError: Every fault, by path.
    """
    legal = 'must be {"fraction": 0.3, "seed": 1, "stratified": true} or {"rows": [0, 5, …]}'
    if not isinstance(document, Mapping) or ("fraction" in document) == ("rows" in document):
        raise ConfigError([Fault("", "wrong_type", legal)])
    checks: dict[str, tuple[bool, str]] = {
        "fraction": (_is_share(document.get("fraction", 0.5)), "must be a number above 0 and below 1"),
        "seed": (_is_place(document.get("seed", 0)), f"must be a whole number from 0 to {LARGEST_SEED}"),
        "stratified": (isinstance(document.get("stratified", True), bool), "must be true or false"),
        "rows": (
            _are_places(document.get("rows", [0])),
            "must be a list of different row numbers, at least one, counted from 0",
        ),
    }
    allowed = ("rows",) if "rows" in document else ("fraction", "seed", "stratified")
    faults = [Fault(pointer(str(name)), "unknown_field", legal) for name in document if name not in allowed]
    faults += [Fault(f"/{name}", "not_legal", checks[name][1]) for name in allowed if not checks[name][0]]
    if faults:
        raise ConfigError(faults)
    if "rows" in document:
        return Holdout(rows=tuple(document["rows"]))
    return Holdout(float(document["fraction"]), document.get("seed", 0), document.get("stratified", True))


def holdout_to_dict(holdout: Holdout) -> dict[str, Any]:
    """Give the JSON form that `holdout_from_dict` reads."""
    if holdout.rows is not None:
        return {"rows": list(holdout.rows) if isinstance(holdout.rows, tuple) else holdout.rows}
    return {"fraction": holdout.fraction, "seed": holdout.seed, "stratified": holdout.stratified}


def resolved(config: TrainingConfig, schema: Schema) -> TrainingConfig:
    """Fill in the criterion where the configuration leaves it to the task."""
    if config.criterion is not None or schema.task is None:
        return config
    criteria = PRESET_CRITERIA.get(config.preset, TASK_CRITERIA)
    return dataclasses.replace(config, criterion=criteria[schema.task])


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_SEED


def _are_places(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(_is_place(item) for item in value)
        and len(set(value)) == len(value)
    )
