"""Post-pruning: each method is a function of model, parameters, rows and progress; it returns a model and a trace."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from espalier.config.pruning import CostComplexity, ModelTree, Pessimistic, ReducedError, RulePostPruning
from espalier.model.model import Model
from espalier.progress import Progress
from espalier.pruning.cost_complexity import prune_cost_complexity
from espalier.pruning.model_tree import prune_model_tree
from espalier.pruning.pessimistic import prune_pessimistic
from espalier.pruning.reduced_error import prune_reduced_error
from espalier.pruning.result import Pruned, PruningRows
from espalier.pruning.rule_post_pruning import post_prune_rules

PruningFunction = Callable[[Model, Any, PruningRows, Progress], Pruned]


PRUNING_FUNCTIONS: Final[Mapping[type, PruningFunction]] = MappingProxyType(
    {
        ReducedError: prune_reduced_error,
        Pessimistic: prune_pessimistic,
        CostComplexity: prune_cost_complexity,
        RulePostPruning: post_prune_rules,
        ModelTree: prune_model_tree,
    }
)
