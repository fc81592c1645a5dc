"""How to train: every switch of a training is a field of `TrainingConfig`."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from espalier.config.parameters import MAX_SEED, AnyOf, Integer, ListOfReals, ObjectOf, OneOf, Real, parameter, switch
from espalier.config.pruning import PRUNING, Pruner

CLASS_CRITERIA: Final = ("information_gain", "gain_ratio", "normalized_gain", "gini", "misclassification", "chi_square")
NUMBER_CRITERIA: Final = ("squared_error", "absolute_error", "poisson", "sdr", "m5")
COST_FUNCTIONS: Final = ("nunez", "tan_schlimmer", "norton")
NOMINAL_SPLITS: Final = ("multiway", "subset", "one_vs_rest", "ordered_binaries")
NUMERIC_SPLITS: Final = ("best", "boundary", "median", "near_median", "none")
MISSING_STRATEGIES: Final = ("fractional", "spread", "direction", "majority", "surrogate", "imputed")
ENTROPY_CRITERIA: Final = ("information_gain", "gain_ratio", "normalized_gain")
CRITERIA_OF_TASK: Final = MappingProxyType({"classification": CLASS_CRITERIA, "regression": NUMBER_CRITERIA})


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a tree is grown. Take one from `training_config`, which checks every value."""

    preset: str = "cart"
    criterion: str | None = parameter(
        None,
        OneOf([*CLASS_CRITERIA, *NUMBER_CRITERIA]).or_null(),
        "the score of a split; null: the preset's own for the task. Of classes: the entropy that is taken away in bits "
        "(information_gain), that over the split's own entropy (gain_ratio) or over the node's (normalized_gain), the "
        "fall of Σp(1−p) (gini) or of 1−max p (misclassification), Pearson's statistic (chi_square). Of numbers: the "
        "fall of the variance (squared_error), of the mean distance from the median (absolute_error), of half the "
        "deviance of counts (poisson), of the standard deviation (sdr), of the variance's fifth root (m5)",
    )
    attribute_costs: tuple[tuple[str, float], ...] | None = parameter(
        None,
        ObjectOf("attribute names", Real(0)).or_null(),
        "what it costs to obtain an attribute's value, paid once a path; 1 where nothing is said",
    )
    cost_function: str | None = parameter(
        None,
        OneOf(COST_FUNCTIONS).or_null(),
        "how a gain g is weighed against a cost C: nunez (2^g − 1)/(C + 1)^w, tan_schlimmer g²/C, norton g/C",
    )
    cost_weight: float = parameter(1.0, Real(0, 1), "nunez only: the exponent w")
    nominal: str = parameter(
        "subset",
        OneOf(NOMINAL_SPLITS),
        "how a nominal attribute is split: a branch a category (multiway), two groups of categories (subset), one "
        "against the rest (one_vs_rest), or cut along the order of their mean target in all rows (ordered_binaries)",
    )
    numeric: str = parameter(
        "best",
        OneOf(NUMERIC_SPLITS),
        "which cuts of a numeric attribute are tried: all (best), those where the class changes (boundary), the middle "
        "row (median), the place nearest to it where value and class change (near_median), or such attributes are "
        "refused (none)",
    )
    threshold: str = parameter(
        "midpoint",
        OneOf(["midpoint", "observed"]),
        "midpoint of the neighbouring values, or that moved down to a value of the training set",
    )
    window: str | None = parameter(
        None,
        OneOf(["c45"]).or_null(),
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
        OneOf(MISSING_STRATEGIES),
        "where a row without the value goes: down every branch by its share, scored on known rows (fractional) or on "
        "all (spread); down the branch that scored best (direction); down the heaviest (majority); where another "
        "attribute sends it (surrogate); its value is replaced by the mean or the most frequent one (imputed)",
    )
    max_surrogates: int = parameter(5, Integer(0, 100), "surrogate only: how many are kept a node")
    max_depth: int | None = parameter(None, Integer(0).or_null(), "no node deeper than this; the root has depth 0")
    max_leaf_nodes: int | None = parameter(None, Integer(1).or_null(), "at most so many leaves, the best splits first")
    min_weight_split: float = parameter(0.0, Real(0), "a node of less weight is a leaf")
    min_weight_leaf: float = parameter(0.0, Real(0), "least weight of a branch (C4.5's M)")
    leaf_weight_rule: str = parameter(
        "candidates",
        OneOf(["candidates", "winner"]),
        "candidates: a split with too light branches does not compete; winner: it does, and makes a leaf if it wins",
    )
    min_impurity_decrease: float | None = parameter(
        0.0,
        Real(0).or_null(),
        "least gain of a split, times the node's share of all weight; 0 takes a split that gains nothing "
        "(scikit-learn); null: it must gain something",
    )
    chi_square_alpha: float | None = parameter(
        None, Real(0, 1).or_null(), "no split whose chi-square p-value is above this"
    )
    validation_stop: bool = switch("children only where the held-out rows' accuracy does not drop", default=False)
    min_sd_fraction: float = parameter(
        0.0, Real(0, 1), "a node whose standard deviation is below this share of the root's is a leaf"
    )
    min_variance_fraction: float = parameter(
        0.0, Real(0, 1), "a node whose variance is below this share of the root's is a leaf"
    )
    cut_points: tuple[tuple[str, tuple[float, ...]], ...] | None = parameter(
        None,
        ObjectOf("attribute names", ListOfReals()).or_null(),
        "the only thresholds that may be tried, by attribute",
    )
    leaf_probability: str = parameter(
        "frequency", OneOf(["frequency", "laplace"]), "class shares at a leaf: as counted, or (n + 1)/(N + classes)"
    )
    class_weight: str | tuple[tuple[str, float], ...] | None = parameter(
        None,
        AnyOf(OneOf(["balanced"]), ObjectOf("class labels", Real(0))).or_null(),
        "factors on the weights of rows by class; balanced: each class weighs the same",
    )
    leaf: str = parameter(
        "constant",
        OneOf(["constant", "linear"]),
        "what a leaf answers: a constant, or a linear model of the attributes tested at it and below it (M5)",
    )
    smoothing: float | None = parameter(
        None,
        Real(0, above=True).or_null(),
        "regression only: each answer p is mixed with that of the node above, q, as (n·p + k·q)/(n + k); null: not",
    )
    collapse: bool = switch(
        "a subtree with no fewer training errors than a leaf becomes a leaf, before any pruning", default=False
    )
    pruning: Pruner | None = parameter(  # noqa: RUF009 - declares a field, as dataclasses.field does
        None, PRUNING, "how the tree is pruned once it is grown; null: not at all"
    )
    seed: int = parameter(0, Integer(0, MAX_SEED), "for everything that draws at random")
