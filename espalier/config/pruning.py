"""How to prune: a method *is* its frozen parameter object, found in `PRUNERS` by name.

Each has ``faults()``: what is wrong with its values together, where each alone is legal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from espalier.config.parameters import (
    MAX_SEED,
    Legal,
    field_table,
    number,
    one_of,
    parameter,
    parameters_from,
    parameters_to_dict,
    switch,
    whole,
)
from espalier.errors import ConfigError, Fault


@dataclass(frozen=True, slots=True)
class ReducedError:
    """Reduced-error pruning: a node becomes a leaf where held-out rows do not vote against it (Quinlan 1987)."""

    order: str = parameter(
        "bottom_up",
        one_of(["bottom_up", "greedy"]),
        "bottom_up: one pass from the leaves to the root; greedy: again and again the node whose pruning helps most",
    )
    ties: str = parameter(
        "prune", one_of(["prune", "keep"]), "prune: the smallest tree; keep: prune only where accuracy improves"
    )
    prune_root: bool = switch("whether the root may become a leaf", default=True)
    backfit: bool = switch("add the held-out rows to the counts of the pruned tree, and answer from all", default=False)
    compare: str = parameter(
        "current",
        one_of(["current", "initial"]),
        "what a tree with one leaf more is measured against: the tree as pruned so far, or the unpruned one",
    )

    def faults(self) -> list[Fault]:
        """Return what is wrong with the values together."""
        return []


@dataclass(frozen=True, slots=True)
class Pessimistic:
    """Pessimistic pruning: by the upper confidence limit of the training errors (Quinlan 1987, 1993)."""

    confidence: float = parameter(
        0.25, number(0, 1, above=True), "the chance that the true error is above its estimate; less prunes more"
    )
    quantile: str = parameter(
        "normal",
        one_of(["normal", "c45", "exact"]),
        "how the limit is computed: normal quantile, the table of C4.5 release 8, or the binomial itself",
    )
    raising: bool = switch("whether the largest branch may take its node's place (subtree raising)", default=True)

    def faults(self) -> list[Fault]:
        """Return what is wrong with the values together."""
        return []


@dataclass(frozen=True, slots=True)
class CostComplexity:
    """Cost-complexity pruning: the weakest link first (Breiman et al. 1984, chapter 3)."""

    alpha: float | None = parameter(
        None, number(0).or_null(), "the price of a leaf, in the unit of the risk; null: selected"
    )
    select: str | None = parameter(
        None,
        one_of(["validation", "cv"]).or_null(),
        "how alpha is selected: by held-out rows, or by cross-validation on the training rows; null: alpha is given",
    )
    risk: str = parameter(
        "impurity",
        one_of(["impurity", "error", "leaf_impurity"]),
        "what a leaf costs: its impurity times its share of the weight, the weight of its errors (or its squared "
        "errors), or its impurity alone",
    )
    rule: str = parameter(
        "min",
        one_of(["min", "one_se"]),
        "which tree is selected: of the least error, or the smallest within one standard error of it",
    )
    folds: int = parameter(10, whole(2, 1000), "cv only: in how many parts the training rows are divided")
    seed: int = parameter(0, whole(0, MAX_SEED), "cv only: for the draw of the parts")

    def faults(self) -> list[Fault]:
        """Return what is wrong with the values together."""
        if (self.alpha is None) == (self.select is None):
            both = "either alpha or select must be given, " + ("not both" if self.select else "and neither is")
            return [Fault("/alpha", "combination", both)]
        return []


@dataclass(frozen=True, slots=True)
class RulePostPruning:
    """Rule post-pruning: paths become rules, each loses conditions on its own, the best rule first (Quinlan 1987)."""

    estimate: str = parameter(
        "validation",
        one_of(["validation", "pessimistic"]),
        "what decides: accuracy (or squared error) on held-out rows, or the pessimistic estimate on the training rows",
    )
    confidence: float = parameter(
        0.25, number(0, 1, above=True), "pessimistic only: the chance that the true error is above its estimate"
    )
    quantile: str = parameter(
        "normal",
        one_of(["normal", "c45", "exact"]),
        "pessimistic only: how the limit is computed; see the method pessimistic",
    )

    def faults(self) -> list[Fault]:
        """Return what is wrong with the values together."""
        return []


@dataclass(frozen=True, slots=True)
class ModelTree:
    """Pruning of regression and model trees by the corrected error of each node's own model (Quinlan 1992)."""

    def faults(self) -> list[Fault]:
        """Return what is wrong with the values together: there are none."""
        return []


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
"""Pruning methods by name; the value is the class of their parameters."""


def pruning_method(method: str, **params: Any) -> Pruner:
    """Return the parameter object of a pruning method.

    Raises:
        ConfigError: No such method or parameter, or a value that is not legal; every fault, by path.

    >>> pruning_method("pessimistic", confidence=0.1).confidence
    0.1
    """
    return changed_pruner(_kind_of(method)(), params)


def changed_pruner(pruner: Pruner, params: Mapping[str, Any]) -> Pruner:
    """Return `pruner` with some parameters changed.

    Raises:
        ConfigError: Every fault, by path.
    """
    made = parameters_from(type(pruner), params, base=pruner, what=f"the pruning method {pruner_name(pruner)}")
    faults = made.faults()
    if faults:
        raise ConfigError(faults)
    return made


def pruner_name(pruner: Pruner) -> str:
    """Return the name under which a pruning method's parameters stand in `PRUNERS`."""
    return next(name for name, kind in PRUNERS.items() if type(pruner) is kind)


def pruner_to_dict(pruner: Pruner) -> dict[str, Any]:
    """Return the JSON form: ``method`` and every parameter."""
    return {"method": pruner_name(pruner), **parameters_to_dict(pruner)}


def needs_held_out(pruner: Pruner | None) -> bool:
    """Whether the method asks rows that the tree has not learned from."""
    if isinstance(pruner, RulePostPruning):
        return pruner.estimate == "validation"
    return isinstance(pruner, ReducedError) or (isinstance(pruner, CostComplexity) and pruner.select == "validation")


def _merged(given: Any, base: Pruner | None) -> Pruner | None:
    """Read the field's value; what an object does not say stays as it is in `base` if that is the same method."""
    if not isinstance(given, Mapping):
        # A parameter object made by hand has not been checked yet.
        return None if given is None else changed_pruner(given, parameters_to_dict(given))
    params = {str(name): value for name, value in given.items()}
    known = base if isinstance(base, Pruner) else None
    kind = _kind_of(params.pop("method", None if known is None else pruner_name(known)))
    return changed_pruner(known if known is not None and type(known) is kind else kind(), params)


def _kind_of(method: Any) -> type[Pruner]:
    """Return the class of a method's parameters.

    Raises:
        ConfigError: There is no such method.
    """
    if not isinstance(method, str) or method not in PRUNERS:
        raise ConfigError([Fault("/method", "unknown_value", f"must be one of {', '.join(PRUNERS)}")])
    return PRUNERS[method]


def _method_schemas() -> list[dict[str, Any]]:
    """Return the JSON Schema of each method with its parameters; generated clients make a name of the title.

    The method itself may be left out where it stays what it is in a preset.
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


PRUNING: Final = Legal(
    f'an object of "method" ({", ".join(PRUNERS)}) and its parameters, or null',
    lambda value: value is None or isinstance(value, Mapping | Pruner),
    {"anyOf": [*_method_schemas(), {"type": "null"}]},
    merge=_merged,
    thaw=lambda value: None if value is None else pruner_to_dict(value),
)
"""What a configuration may say of pruning."""
