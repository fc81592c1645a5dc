"""Check whether a configuration can train on a data set, before a tree is grown."""

from collections.abc import Sequence
from typing import Final

from espalier.config.criteria import CRITERIA, CRITERIA_OF_TASK
from espalier.config.presets import PRESETS, changed_config, resolved
from espalier.config.pruning import CostComplexity, ModelTree, Pessimistic, Pruner, ReducedError, RulePostPruning
from espalier.config.training_parameters import COST_FUNCTIONS, TrainingConfig
from espalier.data.labels import label_text
from espalier.data.schema import FeatureKind, Schema
from espalier.errors import ConfigError, Fault, listed, pointer, within

FIELDS_FOR_CLASSES: Final = (
    "class_weight", "window", "mdl_correction", "average_gain_guard", "chi_square_alpha", "collapse",
)  # fmt: skip
FIELDS_FOR_NUMBERS: Final = ("leaf", "smoothing")


def check_training(schema: Schema, config: TrainingConfig) -> None:
    """Check that the configuration can train on data of this schema.

    Raises:
        ConfigError: The configuration is not legal, or cannot train on such data; each fault has its path.
    """
    config = changed_config(config, {})
    if schema.target is None:
        raise ConfigError([Fault("/target", "required", "there is nothing to learn: the data set declares no target")])
    faults = _faults_of_task(schema, config)
    faults += _faults_of_attributes(schema, config)
    faults += _faults_of_names(schema, config)
    faults += _faults_of_linear_leaves(schema, config)
    if config.pruning is not None:
        faults += within("/pruning", pruning_faults(config.pruning, resolved(config, schema), str(schema.task)))
    if any((fault.path, fault.code) == ("/criterion", "task") for fault in faults):
        # Of the fields for the other task, only the criterion and those that differ from the preset are reported.
        preset = PRESETS[config.preset]
        faults = [
            fault
            for fault in faults
            for field in [fault.path.split("/")[1]]
            if fault.code != "task" or field == "criterion" or getattr(config, field) != getattr(preset, field)
        ]
    ConfigError.raise_for(faults)


def _faults_of_task(schema: Schema, config: TrainingConfig) -> list[Fault]:
    faults = []
    task, criterion = str(schema.task), resolved(config, schema).criterion
    legal = CRITERIA_OF_TASK[task]
    if criterion not in legal:
        target = "classes" if task == "classification" else "numbers"
        message = f"the target has {target}: must be one of {', '.join(legal)}, or use the preset cart"
        faults.append(Fault("/criterion", "task", message))
    if schema.target is not None and schema.target.coded and len(schema.target.categories) < 2:
        faults.append(Fault("/target", "one_class", "the target has one value: there is nothing to learn"))
    if task == "regression":
        faults += _faults_of_task_fields(config, FIELDS_FOR_CLASSES, "the target has no classes")
    else:
        faults += _faults_of_task_fields(config, FIELDS_FOR_NUMBERS, "the target has classes, not numbers")
        faults += _faults_of_classes(schema, config, criterion)
    if config.cost_function is not None and config.attribute_costs is None:
        faults.append(Fault("/attribute_costs", "required", "a cost_function needs the attributes' costs"))
    if config.attribute_costs is not None and config.cost_function is None:
        message = f"must be one of {', '.join(COST_FUNCTIONS)} where attribute_costs are given"
        faults.append(Fault("/cost_function", "required", message))
    return faults


def _faults_of_task_fields(config: TrainingConfig, names: Sequence[str], reason: str) -> list[Fault]:
    """Return a fault for each field in `names` whose value is not the default."""
    neutral = {name: getattr(TrainingConfig(), name) for name in names}
    words = {None: "null", False: "false"}
    return [
        Fault(f"/{name}", "task", f"must be {words.get(value, value)}: {reason}")
        for name, value in neutral.items()
        if getattr(config, name) != value
    ]


def _faults_of_classes(schema: Schema, config: TrainingConfig, criterion: str | None) -> list[Fault]:
    faults = []
    in_bits = [name for name, each in CRITERIA.items() if each.in_bits]
    if config.mdl_correction and criterion not in in_bits:
        message = f"must be false: the penalty is in bits, the unit of gains by {', '.join(in_bits)} only"
        faults.append(Fault("/mdl_correction", "criterion", message))
    if config.nominal == "ordered_binaries" and len(schema.classes) > 2:
        message = "must be one of multiway, subset, one_vs_rest: more than two classes have no mean to order by"
        faults.append(Fault("/nominal", "task", message))
    return faults


def _faults_of_attributes(schema: Schema, config: TrainingConfig) -> list[Fault]:
    if not schema.attributes:
        return [Fault("/attributes", "required", "there is no attribute to test: every column has another role")]
    ordered = [repr(feature.name) for feature in schema.attributes if not feature.unordered]
    if config.numeric == "none" and ordered:
        message = (
            f"numeric is none, as in the preset id3, so every attribute must be nominal or boolean, but "
            f"{listed(ordered, most=5)} {'is' if len(ordered) == 1 else 'are'} not: use the preset c45 or numeric=best"
        )
        return [Fault("/numeric", "kind", message)]
    return []


def _faults_of_linear_leaves(schema: Schema, config: TrainingConfig) -> list[Fault]:
    if config.leaf != "linear" or schema.task != "regression":
        return []
    faults = []
    if config.missing != "imputed":
        message = "must be imputed if leaf is linear: a linear model needs every value"
        faults.append(Fault("/missing", "combination", message))
    if config.nominal != "ordered_binaries" and any(feature.unordered for feature in schema.attributes):
        message = "must be ordered_binaries if leaf is linear: a linear model takes categories as binary columns"
        faults.append(Fault("/nominal", "combination", message))
    return faults


def _faults_of_names(schema: Schema, config: TrainingConfig) -> list[Fault]:
    by_name = {feature.name: feature for feature in schema.attributes}
    legal = listed(by_name)
    faults = [
        Fault(pointer(field, name), "unknown_attribute", f"there is no such attribute; there are: {legal}")
        for field in ("attribute_costs", "cut_points")
        for name, _ in getattr(config, field) or ()
        if name not in by_name
    ]
    faults += [
        Fault(pointer("cut_points", name), "kind", "must name numeric or datetime attributes only")
        for name, _ in config.cut_points or ()
        if name in by_name and by_name[name].kind not in (FeatureKind.NUMERIC, FeatureKind.DATETIME)
    ]
    if config.cost_function not in (None, "nunez"):
        message = f"must be above 0 for {config.cost_function}, which divides by it"
        zeros = [name for name, cost in config.attribute_costs or () if cost == 0]
        faults += [Fault(pointer("attribute_costs", name), "not_legal", message) for name in zeros]
    if isinstance(config.class_weight, tuple) and schema.classes:
        classes = {label_text(label) for label in schema.classes}
        message = f"must be one of {listed(sorted(classes))}"
        faults += [
            Fault(pointer("class_weight", name), "unknown_class", message)
            for name, _ in config.class_weight
            if name not in classes
        ]
        weights = dict(config.class_weight)
        if not any(weights.get(name, 1) for name in classes):
            faults.append(Fault("/class_weight", "not_legal", "at least one class must have a weight above 0"))
    return faults


def pruning_faults(pruner: Pruner, config: TrainingConfig, task: str) -> list[Fault]:
    """Return the faults of `pruner` if it cannot prune trees grown by `config` for `task`. Paths begin at `pruner`."""
    faults = [] if task == "classification" else _faults_of_pruning_numbers(pruner, config)
    if isinstance(pruner, ModelTree) and task == "classification":
        message = "must not be model_tree, which compares errors of numbers: the target has classes"
        faults.append(Fault("/method", "task", message))
    if isinstance(pruner, CostComplexity) and pruner.select == "cv" and config.validation_stop:
        message = "must not be cv, which cannot grow trees with validation_stop: give alpha instead"
        faults.append(Fault("/select", "combination", message))
    return faults


def _faults_of_pruning_numbers(pruner: Pruner, config: TrainingConfig) -> list[Fault]:
    faults = []
    if isinstance(pruner, Pessimistic):
        message = "must not be pessimistic, which estimates how many rows get a wrong class: the target has no classes"
        faults.append(Fault("/method", "task", message))
    if isinstance(pruner, RulePostPruning) and pruner.estimate == "pessimistic":
        message = "must be validation: the pessimistic estimate counts wrong classes, and the target has none"
        faults.append(Fault("/estimate", "task", message))
    if isinstance(pruner, CostComplexity) and pruner.risk != "error" and config.how_split.impurity is None:
        message = f"must be error: a tree grown by {config.criterion} does not keep what its impurity is computed from"
        faults.append(Fault("/risk", "criterion", message))
    if isinstance(pruner, ReducedError) and pruner.backfit and config.how_split.of_medians:
        message = f"must be false: it adds counts and means, and leaves grown by {config.criterion} answer with medians"
        faults.append(Fault("/backfit", "criterion", message))
    if config.leaf == "linear" and not isinstance(pruner, ModelTree):
        message = "must be model_tree if leaf is linear: the other methods compare constant leaves"
        faults.append(Fault("/method", "combination", message))
    return faults
