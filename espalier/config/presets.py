"""The published algorithms as presets (see `PRESETS`), and functions that make and read configurations."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from espalier.config.parameter_constraints import parameters_from, parameters_to_dict
from espalier.config.pruning import ModelTree, Pessimistic, ReducedError
from espalier.config.training_parameters import TrainingConfig
from espalier.data.schema import Schema
from espalier.errors import ConfigError, Fault

WHAT: Final = "the training configuration"

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
"""The published algorithms by name."""

PRESET_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id3": "ID3 (Quinlan 1986): information gain, one branch per category, nominal attributes only",
        "c45": "C4.5 release 8 (Quinlan 1993, 1996): gain ratio, thresholds, missing values, pessimistic pruning",
        "j48": "J48 (Weka's C4.5): like c45, but pruned by the normal quantile",
        "cart": "CART (Breiman et al. 1984): two branches, gini or squared error, all thresholds tried",
        "reptree": "REPTree (Weka): information gain or squared error, pruned on a held-out third of the rows",
        "m5": "M5' (Quinlan 1992; Wang and Witten 1997): linear models in the leaves, pruned and smoothed",
    }
)
PRESET_CLASS_CRITERIA: Final[Mapping[str, str]] = MappingProxyType({"reptree": "information_gain"})
"""A preset's default criterion (``criterion: null``) for classes, if not gini. For numbers, it is squared_error."""
PRESET_HOLDOUTS: Final[Mapping[str, float]] = MappingProxyType({"reptree": 1 / 3})
"""The share of the rows that a preset holds out by default for its pruning."""


def training_config(preset: str = "cart", **params: Any) -> TrainingConfig:
    """Return a preset with some fields changed.

    Raises:
        ConfigError: There is no such preset or field, or a value is not legal. Each fault has its path.

    >>> training_config("cart", max_depth=4).max_depth
    4
    """
    return parameters_from(_preset(preset), params, what=WHAT)


def changed_config(config: TrainingConfig, params: Mapping[str, Any]) -> TrainingConfig:
    """Return `config` with the fields in `params` changed and every field checked.

    Raises:
        ConfigError: A field is unknown, or a value is not legal. Each fault has its path.
    """
    _preset(config.preset)
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.name != "preset"}
    return parameters_from(config, {**own, **params}, what=WHAT)


def config_to_dict(config: TrainingConfig) -> dict[str, Any]:
    """Return the JSON form, which has every field by name."""
    return {"preset": config.preset, **parameters_to_dict(config)}


def config_from_dict(document: Mapping[str, Any]) -> TrainingConfig:
    """Read the JSON form that `config_to_dict` returns.

    Raises:
        ConfigError: The document is not legal. Each fault has its path.
    """
    if not isinstance(document, Mapping):
        raise ConfigError([Fault("", "wrong_type", f"{WHAT} must be an object of fields and values")])
    fields = {str(name): value for name, value in document.items()}
    return training_config(fields.pop("preset", "cart"), **fields)


def resolved(config: TrainingConfig, schema: Schema) -> TrainingConfig:
    """Return `config`; if `schema` has a task, a criterion of None becomes the preset's criterion for this task."""
    if config.criterion is not None or schema.task is None:
        return config
    of_classes = PRESET_CLASS_CRITERIA.get(config.preset, "gini")
    return dataclasses.replace(config, criterion=of_classes if schema.task == "classification" else "squared_error")


def _preset(name: object) -> TrainingConfig:
    if not isinstance(name, str) or name not in PRESETS:
        code = "unknown_value" if isinstance(name, str) else "wrong_type"
        raise ConfigError([Fault("/preset", code, f"must be one of {', '.join(PRESETS)}")])
    return PRESETS[name]
