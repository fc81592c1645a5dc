"""The presets of ALGORITHMS.md section 5 as plain dicts of TrainingConfig fields, without their pruning."""

from typing import Any

PLAIN: dict[str, Any] = {
    "criterion": "information_gain",
    "attribute_costs": None,
    "cost_function": None,
    "cost_weight": 1.0,
    "nominal": "multiway",
    "numeric": "best",
    "threshold": "midpoint",
    "window": None,
    "mdl_correction": False,
    "average_gain_guard": False,
    "missing": "majority",
    "max_surrogates": 5,
    "max_depth": None,
    "max_leaf_nodes": None,
    "min_weight_split": None,
    "min_weight_leaf": None,
    "leaf_weight_rule": "candidates",
    "min_impurity_decrease": None,
    "chi_square_alpha": None,
    "validation_stop": False,
    "min_sd_fraction": None,
    "min_variance_fraction": None,
    "cut_points": None,
    "leaf_probability": "frequency",
    "class_weight": None,
    "leaf": "constant",
    "smoothing": None,
    "collapse": False,
    "pruning": None,
    "seed": 0,
}

C45 = {
    "criterion": "gain_ratio",
    "threshold": "observed",
    "window": "c45",
    "mdl_correction": True,
    "average_gain_guard": True,
    "missing": "fractional",
    "min_weight_leaf": 2.0,
    "collapse": True,
}

PRESETS: dict[str, dict[str, Any]] = {
    "id3": {**PLAIN, "numeric": "none"},
    "c45": {**PLAIN, **C45},
    "j48": {**PLAIN, **C45},
    "cart": {**PLAIN, "criterion": "gini", "nominal": "subset", "missing": "direction", "min_impurity_decrease": 0.0},
    "reptree": {
        **PLAIN,
        "missing": "spread",
        "min_weight_leaf": 2.0,
        "leaf_weight_rule": "winner",
        "min_variance_fraction": 1e-3,
    },
    "m5": {
        **PLAIN,
        "criterion": "m5",
        "nominal": "ordered_binaries",
        "missing": "imputed",
        "min_weight_split": 4.0,
        "min_impurity_decrease": 0.0,
        "min_sd_fraction": 0.05,
    },
}

CRITERION_OF_NUMBERS = {"gini": "squared_error", "information_gain": "squared_error"}


def preset(name: str, kind: str = "class", **fields: Any) -> dict[str, Any]:
    """The preset with some fields changed; `cart` and `reptree` take their other criterion for a number."""
    config = {**PRESETS[name], **fields}
    unknown = set(fields) - set(PLAIN)
    if unknown:
        raise ValueError(f"no fields of a training config: {sorted(unknown)}")
    if kind == "number" and "criterion" not in fields:
        config["criterion"] = CRITERION_OF_NUMBERS.get(config["criterion"], config["criterion"])
    return config
