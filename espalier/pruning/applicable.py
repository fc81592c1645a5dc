"""Check, before any row is read, whether a method can prune a model."""

from espalier.config.compatibility import pruning_faults
from espalier.config.pruning import CostComplexity, Pessimistic, Pruner, ReducedError, RulePostPruning, needs_held_out
from espalier.errors import ConfigError, Fault
from espalier.model.model import Model
from espalier.model.rules import RuleList


def check_pruning(
    model: Model, method: Pruner, *, has_training_rows: bool = True, validation_data: str | None = None
) -> None:
    """Check whether `method` can prune `model`.

    This function does not check whether held-out rows are given; `needs_held_out` returns whether a method needs them.

    Args:
        model: The model to prune.
        method: A pruning method's parameters.
        has_training_rows: Whether the data set that the model was trained on is available.
        validation_data: Fingerprint of the data set that contains the held-out rows; None for the training data set.

    Raises:
        ConfigError: `method` cannot prune `model`. Paths: ``/method``, ``/holdout``, or a parameter such as ``/folds``.

    >>> from espalier import dataset_from_rows, pruning_method, train
    >>> rows = [{"wind": wind, "play": play} for wind, play in [("weak", "yes"), ("weak", "yes"), ("strong", "no")]]
    >>> try:
    ...     check_pruning(train(dataset_from_rows(rows, target="play"), "id3"), pruning_method("model_tree"))
    ... except ConfigError as error:
    ...     print(error.faults[0].path, error.faults[0].code)
    /method task
    """
    if isinstance(model.body, RuleList):
        message = "the model is a list of rules, and all methods prune trees: name the version that it was made from"
        raise ConfigError([Fault("/method", "not_a_tree", message)])
    faults = pruning_faults(method, model.config, model.task)
    own = _faults_of_rows(model, method) if has_training_rows else _faults_without_rows(model, method)
    reported = {fault.path for fault in own}
    faults += own + [each for each in _faults_of_backfit(model, method, validation_data) if each.path not in reported]
    ConfigError.raise_for(faults)


def _faults_of_backfit(model: Model, method: Pruner, validation_data: str | None) -> list[Fault]:
    """Return the faults that arise because an earlier pruning with `backfit` added held-out rows to the leaves."""
    record = model.training
    if isinstance(method, Pessimistic) and method.raising and record.backfitted:
        message = (
            f"must be false: it counts the {record.n_training_rows} training rows again, and an earlier pruning has "
            "added others to the leaves (backfit)"
        )
        return [Fault("/raising", "combination", message)]
    if not needs_held_out(method) or (validation_data or record.fingerprint) not in record.backfitted:
        return []
    message = (
        "must be rows of another data set: an earlier pruning has added held-out rows of this one to the leaves "
        "(backfit), so they are training rows now; or prune the model from before that pruning"
    )
    return [Fault("/holdout", "learned_from", message)]


def _faults_without_rows(model: Model, method: Pruner) -> list[Fault]:
    gone = "the data set that the model was trained on is not given, or no longer stored"
    if isinstance(method, Pessimistic) and method.raising:
        return [Fault("/raising", "no_training_rows", f"must be false: it counts the training rows again, and {gone}")]
    if isinstance(method, ReducedError) and method.backfit and model.config.class_weight == "balanced":
        message = f"must be false: balanced class weights are computed from the training rows, and {gone}"
        return [Fault("/backfit", "no_training_rows", message)]
    if isinstance(method, CostComplexity) and method.select == "cv":
        message = f"must not be cv, which grows trees on parts of the training rows: {gone}"
        return [Fault("/select", "no_training_rows", message)]
    if isinstance(method, RulePostPruning):
        message = f"must not be rules, which counts the training rows that each rule answers: {gone}"
        return [Fault("/method", "no_training_rows", message)]
    return []


def _faults_of_rows(model: Model, method: Pruner) -> list[Fault]:
    n_rows = model.training.n_training_rows
    if isinstance(method, CostComplexity) and method.select == "cv" and method.folds > n_rows:
        return [Fault("/folds", "out_of_range", f"must be at most {n_rows}, the number of training rows")]
    return []
