"""Post-pruning: each method a function from a model and its parameters to a new model and a trace."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from espalier.config.pruning import CostComplexity, ModelTree, Pessimistic, ReducedError, RulePostPruning
from espalier.errors import NotApplicable
from espalier.model.model import Model
from espalier.progress import Progress
from espalier.pruning.cost_complexity import prune_cost_complexity
from espalier.pruning.model_tree import prune_model_tree
from espalier.pruning.pessimistic import prune_pessimistic
from espalier.pruning.reduced_error import prune_reduced_error
from espalier.pruning.result import Pruned, PruningRows
from espalier.pruning.rule_post_pruning import post_prune_rules

PruningFunction = Callable[[Model, Any, PruningRows, Progress], Pruned]


def _by_held_out_rows(model: Model, parameters: ReducedError, rows: PruningRows, progress: Progress) -> Pruned:
    if rows.held_out is None:
        raise NotApplicable("reduced-error pruning needs rows that the model has not learned from")
    pruned = prune_reduced_error(model, parameters, rows.held_out)
    progress.check()
    return pruned


PRUNING_FUNCTIONS: Final[Mapping[type, PruningFunction]] = MappingProxyType(
    {
        ReducedError: _by_held_out_rows,
        Pessimistic: lambda model, given, rows, progress: prune_pessimistic(model, given, rows.training, progress),
        CostComplexity: prune_cost_complexity,
        RulePostPruning: post_prune_rules,
        ModelTree: prune_model_tree,
    }
)
