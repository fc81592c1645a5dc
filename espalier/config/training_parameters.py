"""The training configuration: every setting is a field of `TrainingConfig`."""

from dataclasses import dataclass
from typing import Final

from espalier.config.criteria import CRITERIA, CRITERIA_OF_TASK, Criterion
from espalier.config.parameter_constraints import (
    MAX_SEED,
    AnyOf,
    Integer,
    ListOfReals,
    ObjectOf,
    OneOf,
    Real,
    parameter,
    switch,
)
from espalier.config.pruning import PRUNING, Pruner, needs_held_out

COST_FUNCTIONS: Final = ("nunez", "tan_schlimmer", "norton")
NOMINAL_SPLITS: Final = ("multiway", "subset", "one_vs_rest", "ordered_binaries")
NUMERIC_SPLITS: Final = ("best", "boundary", "median", "near_median", "none")
MISSING_STRATEGIES: Final = ("fractional", "spread", "direction", "majority", "surrogate", "imputed")


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How a tree is grown and pruned. Make a configuration with `training_config`, which checks every value."""

    preset: str = "cart"
    criterion: str | None = parameter(
        None,
        OneOf(list(CRITERIA)).or_null(),
        "the split criterion; null: the preset's criterion for the task. "
        + ". ".join(
            f"{task.capitalize()}: {', '.join(f'{each.meaning} ({name})' for name, each in criteria.items())}"
            for task, criteria in CRITERIA_OF_TASK.items()
        ),
    )
    attribute_costs: tuple[tuple[str, float], ...] | None = parameter(
        None,
        ObjectOf("attribute names", Real(0)).or_null(),
        "cost of obtaining the value of an attribute, counted once per path; 1 for an attribute that is not listed",
    )
    cost_function: str | None = parameter(
        None,
        OneOf(COST_FUNCTIONS).or_null(),
        "how the value g of the criterion and the cost C of the attribute are combined: nunez (2^g − 1)/(C + 1)^w, "
        "tan_schlimmer g²/C, norton g/C; below a test of the attribute, C is 0 with nunez, else min(1, smallest cost)",
    )
    cost_weight: float = parameter(1.0, Real(0, 1), "nunez only: the exponent w")
    nominal: str = parameter(
        "subset",
        OneOf(NOMINAL_SPLITS),
        "how a nominal attribute is split: one branch per category (multiway), two groups of categories (subset), one "
        "category against the rest (one_vs_rest), or at a threshold in the order of the categories by their mean "
        "target in all rows (ordered_binaries)",
    )
    numeric: str = parameter(
        "best",
        OneOf(NUMERIC_SPLITS),
        "thresholds to try for a numeric, ordinal or datetime attribute: all (best), those where the target changes "
        "(boundary), the one nearest to the median (median), or, of those where the target changes, the one nearest to "
        "the median (near_median); none: such attributes are refused",
    )
    threshold: str = parameter(
        "midpoint",
        OneOf(["midpoint", "observed"]),
        "midpoint: halfway between two neighbouring values; observed: the largest training value up to the midpoint",
    )
    window: str | None = parameter(
        None,
        OneOf(["c45"]).or_null(),
        "minimum weight of the branches of a numeric split; null: min_weight_leaf; c45: max(min_weight_leaf, "
        "min(25, 0.1·W/k)) for k classes, where W is the weight of the rows whose value is known; c45 also tries no "
        "threshold between values that differ by at most 1e-5",
    )
    mdl_correction: bool = switch(
        "reduce the gain of a numeric split by the bits that encode its threshold (C4.5 release 8)", default=False
    )
    average_gain_guard: bool = switch(
        "only attributes whose gain is at least the average gain minus 0.001 compete (C4.5)", default=False
    )
    missing: str = parameter(
        "direction",
        OneOf(MISSING_STRATEGIES),
        "where a row with a missing value goes: down every branch by the branch's share, with gains from the rows with "
        "a known value (fractional) or from all rows (spread); down the branch that makes the gain best (direction); "
        "down the heaviest branch (majority); where another attribute sends it (surrogate); imputed: the value is "
        "replaced by the mean or the most frequent value",
    )
    max_surrogates: int = parameter(5, Integer(0, 100), "surrogate only: maximum number of surrogates per node")
    max_depth: int | None = parameter(None, Integer(0).or_null(), "maximum depth; the root has depth 0")
    max_leaf_nodes: int | None = parameter(
        None, Integer(1).or_null(), "maximum number of leaves; the best splits come first"
    )
    min_weight_split: float = parameter(0.0, Real(0), "a node of less weight becomes a leaf; class weights are ignored")
    min_weight_leaf: float = parameter(
        0.0,
        Real(0),
        "minimum weight of every branch, or of at least two branches of a multiway split; class weights are ignored "
        "(C4.5's M)",
    )
    leaf_weight_rule: str = parameter(
        "candidates",
        OneOf(["candidates", "winner"]),
        "candidates: a split that does not meet min_weight_leaf does not compete; winner: it competes, and if it wins, "
        "the node becomes a leaf",
    )
    min_impurity_decrease: float | None = parameter(
        0.0,
        Real(0).or_null(),
        "minimum of a split's gain times the node's share of the total weight; 0: a split may have no gain "
        "(scikit-learn); null: the gain must be above 0",
    )
    chi_square_alpha: float | None = parameter(None, Real(0, 1).or_null(), "maximum chi-square p-value of a split")
    validation_stop: bool = switch("split a node only if the error on the held-out rows does not rise", default=False)
    min_sd_fraction: float = parameter(
        0.0, Real(0, 1), "regression only: minimum standard deviation of a node that is split, as a share of the root's"
    )
    min_variance_fraction: float = parameter(
        0.0, Real(0, 1), "regression only: minimum variance of a node that is split, as a share of the root's"
    )
    cut_points: tuple[tuple[str, tuple[float, ...]], ...] | None = parameter(
        None, ObjectOf("attribute names", ListOfReals()).or_null(), "the only thresholds to try, by attribute"
    )
    leaf_probability: str = parameter(
        "frequency",
        OneOf(["frequency", "laplace"]),
        "class probabilities of a leaf: frequency n/N, or laplace (n + 1)/(N + classes)",
    )
    class_weight: str | tuple[tuple[str, float], ...] | None = parameter(
        None,
        AnyOf(OneOf(["balanced"]), ObjectOf("class labels", Real(0))).or_null(),
        "factors on the row weights by class, without effect on the limits min_weight_split and min_weight_leaf; "
        "balanced: all classes get the same weight",
    )
    leaf: str = parameter(
        "constant",
        OneOf(["constant", "linear"]),
        "the prediction of a leaf: a constant, or a linear model of attributes that were tested in its subtree "
        "before pruning (M5)",
    )
    smoothing: float | None = parameter(
        None,
        Real(0, above=True).or_null(),
        "regression only: k in (n·p + k·q)/(n + k), which mixes the prediction p of a node of weight n with that of "
        "its parent, q; null: none",
    )
    collapse: bool = switch(
        "before any pruning, replace a subtree by a leaf that has no more training errors than the subtree",
        default=False,
    )
    pruning: Pruner | None = parameter(  # noqa: RUF009 - declares a field, as dataclasses.field does
        None, PRUNING, "how the tree is pruned after growing; null: not at all"
    )
    seed: int = parameter(
        0, Integer(0, MAX_SEED), "seed of the held-out rows, if none are given and the preset draws them (reptree)"
    )

    @property
    def how_split(self) -> Criterion:
        """The entry of `criterion` in `CRITERIA`; for None, an entry with the defaults."""
        return CRITERIA.get(str(self.criterion), Criterion(""))

    @property
    def needs_held_out(self) -> bool:
        """Whether held-out rows stop the growth of the tree or prune the tree."""
        return self.validation_stop or needs_held_out(self.pruning)
