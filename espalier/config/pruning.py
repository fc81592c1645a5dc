"""Pruning methods. Each method is a frozen parameter object, whose class is in `PRUNERS`."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from espalier.config.parameter_constraints import (
    MAX_SEED,
    Constraint,
    Integer,
    OneOf,
    Real,
    field_table,
    parameter,
    parameters_from,
    parameters_to_dict,
    switch,
)
from espalier.errors import ConfigError, Fault


@dataclass(frozen=True, slots=True)
class ReducedError:
    """Reduced-error pruning: the error on held-out rows decides whether a node becomes a leaf (Quinlan 1987)."""

    order: str = parameter(
        "bottom_up",
        OneOf(["bottom_up", "greedy"]),
        "bottom_up: one pass from the leaves to the root; greedy: repeatedly the node whose pruning helps most",
    )
    ties: str = parameter(
        "prune", OneOf(["prune", "keep"]), "whether to prune if the error stays equal: yes (prune) or no (keep)"
    )
    prune_root: bool = switch("whether the root may become a leaf", default=True)
    backfit: bool = switch(
        "add the held-out rows to the counts of the pruned tree, and predict from all rows", default=False
    )
    compare: str = parameter(
        "current",
        OneOf(["current", "initial"]),
        "compare the error after a pruning with that of the tree so far (current) or of the unpruned tree (initial)",
    )


@dataclass(frozen=True, slots=True)
class Pessimistic:
    """Pessimistic pruning by the upper confidence limit of the training errors (Quinlan 1987, 1993)."""

    confidence: float = parameter(
        0.25, Real(0, 1, above=True), "probability that the true error is above its estimate; smaller values prune more"
    )
    quantile: str = parameter(
        "normal",
        OneOf(["normal", "c45", "exact"]),
        "how the limit is computed: by the normal quantile, the table of C4.5 release 8, or the binomial distribution",
    )
    raising: bool = switch("whether the largest branch may replace its node (subtree raising)", default=True)


@dataclass(frozen=True, slots=True)
class CostComplexity:
    """Cost-complexity pruning: the weakest link first (Breiman et al. 1984, chapter 3)."""

    alpha: float | None = parameter(
        None, Real(0).or_null(), "cost of a leaf, in the unit of the risk; null: it is selected"
    )
    select: str | None = parameter(
        None,
        OneOf(["validation", "cv"]).or_null(),
        "how alpha is selected: by held-out rows, or by cross-validation on the training rows; null: alpha is given",
    )
    risk: str = parameter(
        "impurity",
        OneOf(["impurity", "error", "leaf_impurity"]),
        "the risk of a leaf; impurity: its impurity times its share of the weight; error: the weight of its errors, in "
        "a regression the sum of its squared errors; leaf_impurity: its impurity alone",
    )
    rule: str = parameter(
        "min",
        OneOf(["min", "one_se"]),
        "min: select the tree of least error; one_se: the smallest tree within one standard error of the least error",
    )
    folds: int = parameter(10, Integer(2, 1000), "cv only: number of folds")
    seed: int = parameter(0, Integer(0, MAX_SEED), "cv only: seed of the folds")


@dataclass(frozen=True, slots=True)
class RulePostPruning:
    """Rule post-pruning: each path becomes a rule, rules are shortened, then ordered (Quinlan 1987, 1993)."""

    estimate: str = parameter(
        "validation",
        OneOf(["validation", "pessimistic"]),
        "validation: drop a condition if the accuracy (or squared error) of its rule on held-out rows improves; the "
        "best rules come first. pessimistic: drop a condition if the estimated error on the training rows does not "
        "rise; for each class, keep the rules that together have the shortest description found (C4.5RULES)",
    )
    confidence: float = parameter(
        0.25, Real(0, 1, above=True), "pessimistic only: probability that the true error is above its estimate"
    )
    quantile: str = parameter(
        "normal",
        OneOf(["normal", "c45", "exact"]),
        "pessimistic only: how the limit is computed, as in the method pessimistic",
    )


@dataclass(frozen=True, slots=True)
class ModelTree:
    """Pruning of regression and model trees by the corrected error of each node's own model (Quinlan 1992)."""


Pruner = ReducedError | Pessimistic | CostComplexity | RulePostPruning | ModelTree

PRUNERS: Final[Mapping[str, type[Pruner]]] = MappingProxyType(
    {
        "reduced_error": ReducedError,
        "pessimistic": Pessimistic,
        "cost_complexity": CostComplexity,
        "rules": RulePostPruning,
        "model_tree": ModelTree,
    }
)
"""For each name of a pruning method, the class of its parameters."""


def pruning_method(method: str, **params: Any) -> Pruner:
    """Return the parameter object of a pruning method.

    Raises:
        ConfigError: There is no such method or parameter, or a value is not legal. For cost_complexity, also: alpha and
            select are both given, or neither is.

    >>> pruning_method("pessimistic", confidence=0.1).confidence
    0.1
    """
    return changed_pruner(_kind_of(method)(), params)


def changed_pruner(pruner: Pruner, params: Mapping[str, Any]) -> Pruner:
    """Return `pruner` with the parameters in `params` changed. Raise ConfigError as `pruning_method` does."""
    what = f"the pruning method {pruner_name(pruner)}"
    configured = parameters_from(pruner, {**parameters_to_dict(pruner), **params}, what=what)
    if isinstance(configured, CostComplexity) and (configured.alpha is None) == (configured.select is None):
        both = "either alpha or select must be given, " + ("not both" if configured.select else "and neither is")
        raise ConfigError([Fault("/alpha", "combination", both)])
    return configured


def pruner_name(pruner: Pruner) -> str:
    """Return the name of the pruning method: its key in `PRUNERS`."""
    return next(name for name, kind in PRUNERS.items() if type(pruner) is kind)


def pruner_to_dict(pruner: Pruner) -> dict[str, Any]:
    """Return the JSON form: ``method`` and every parameter."""
    return {"method": pruner_name(pruner), **parameters_to_dict(pruner)}


def needs_held_out(pruner: Pruner | None) -> bool:
    """Return whether the method needs rows that the tree was not grown from."""
    if isinstance(pruner, RulePostPruning):
        return pruner.estimate == "validation"
    return isinstance(pruner, ReducedError) or (isinstance(pruner, CostComplexity) and pruner.select == "validation")


def backfits(pruner: Pruner | None) -> bool:
    """Return whether a method adds the held-out rows to the statistics of the tree."""
    return isinstance(pruner, ReducedError) and pruner.backfit


def _merged(given: Any, base: Pruner | None) -> Pruner | None:
    """Return the pruner that `given` describes; a `base` of the same method supplies the parameters not given."""
    if not isinstance(given, Mapping):
        return None if given is None else changed_pruner(given, {})
    params = {str(name): value for name, value in given.items()}
    known = base if isinstance(base, Pruner) else None
    kind = _kind_of(params.pop("method", None if known is None else pruner_name(known)))
    return changed_pruner(known if known is not None and type(known) is kind else kind(), params)


def _kind_of(method: Any) -> type[Pruner]:
    if not isinstance(method, str) or method not in PRUNERS:
        raise ConfigError([Fault("/method", "unknown_value", f"must be one of {', '.join(PRUNERS)}")])
    return PRUNERS[method]


def _method_schemas() -> list[dict[str, Any]]:
    """Return the JSON Schema of each method with its parameters. Generated clients name their classes by the titles.

    ``method`` is not required: if the preset prunes, it defaults to the method of the preset.
    """
    return [
        {
            "title": f"pruning by {name}",
            "type": "object",
            "properties": {
                "method": {"type": "string", "const": name},
                **{info.name: info.json_schema for info in field_table(kind)},
            },
            "additionalProperties": False,
        }
        for name, kind in PRUNERS.items()
    ]


PRUNING: Final = Constraint(
    f'an object of "method" ({", ".join(PRUNERS)}) and its parameters, or null',
    lambda value: value is None or isinstance(value, Mapping | Pruner),
    {"anyOf": [*_method_schemas(), {"type": "null"}]},
    merge=_merged,
    thaw=lambda value: None if value is None else pruner_to_dict(value),
)
"""The legal values of the field ``pruning`` of a configuration."""
