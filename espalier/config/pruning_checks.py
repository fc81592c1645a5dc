"""What a pruning method asks of the tree that it is to prune: said before anything is grown or pruned."""

from typing import Final

from espalier.config.pruning import CostComplexity, ModelTree, Pessimistic, Pruner, ReducedError, RulePostPruning
from espalier.config.training import TrainingConfig
from espalier.errors import Fault

WITHOUT_IMPURITY: Final = ("absolute_error", "poisson")
"""Criteria whose impurity is computed from more than a node keeps."""


def pruning_faults(pruner: Pruner, config: TrainingConfig, task: str) -> list[Fault]:
    """Give every reason why a method cannot take a tree grown so, by path from the method's own parameters.

    Args:
        pruner: The method.
        config: How the tree is grown, its criterion filled in.
        task: ``classification`` or ``regression``.
    """
    faults = [] if task == "classification" else _faults_of_numbers(pruner, config)
    if isinstance(pruner, ModelTree) and task == "classification":
        message = "must not be model_tree, which compares errors of numbers: the target is classes"
        faults.append(Fault("/method", "task", message))
    if isinstance(pruner, CostComplexity) and pruner.select == "cv" and config.validation_stop:
        message = "must not be cv, which cannot grow trees that ask held-out rows when to stop: give alpha instead"
        faults.append(Fault("/select", "combination", message))
    return faults


def _faults_of_numbers(pruner: Pruner, config: TrainingConfig) -> list[Fault]:
    faults = []
    if isinstance(pruner, Pessimistic):
        message = "must not be pessimistic, which estimates numbers of errors: the target has no classes"
        faults.append(Fault("/method", "task", message))
    if isinstance(pruner, RulePostPruning) and pruner.estimate == "pessimistic":
        message = "must be validation: the pessimistic estimate counts wrong classes, and the target has none"
        faults.append(Fault("/estimate", "task", message))
    if isinstance(pruner, CostComplexity) and pruner.risk != "error" and config.criterion in WITHOUT_IMPURITY:
        message = f"must be error: a tree grown by {config.criterion} does not keep what its impurity is computed from"
        faults.append(Fault("/risk", "criterion", message))
    if isinstance(pruner, ReducedError) and pruner.backfit and config.criterion == "absolute_error":
        message = "must be false: it adds counts and means, and leaves grown by absolute_error answer with medians"
        faults.append(Fault("/backfit", "criterion", message))
    if config.leaf == "linear" and not isinstance(pruner, ModelTree):
        message = "must be model_tree where leaf is linear: other methods weigh constants"
        faults.append(Fault("/method", "combination", message))
    return faults
