"""Which training config a published figure was made with: read from its command line or its parameters.

Each function gives the config as a dict, or a sentence that says why the twin has nothing to compare.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.reference.presets import preset

Config = dict[str, Any]

PRUNED = "the twin does not prune"
RULES = "rule learners are systems of their own"
J48_SWITCHES: dict[str, Config] = {
    "-O": {"collapse": False},
    "-J": {"mdl_correction": False},
    "-doNotMakeSplitPointActualValue": {"threshold": "midpoint"},
    "-B": {"nominal": "one_vs_rest"},
    "-A": {"leaf_probability": "laplace"},
    "-U": {},
}
SYSTEMS = {"J48": "j48", "REPTree": "reptree", "M5P": "m5"}
CRITERIA = {
    "gini": "gini",
    "entropy": "information_gain",
    "information": "information_gain",
    "squared_error": "squared_error",
    "anova": "squared_error",
}


def weka_config(command: str, kind: str) -> Config | str:
    """The config of a Weka command line."""
    scheme, *options = command.split()
    system = scheme.rsplit(".", 1)[-1]
    if system not in SYSTEMS:
        return RULES if ".rules." in scheme else f"{system} is not one of the presets"
    return {"J48": j48_config, "REPTree": reptree_config, "M5P": m5_config}[system](options, kind)


def j48_config(options: Sequence[str], kind: str) -> Config | str:
    if "-U" not in options:
        return PRUNED
    fields: Config = {}
    left = list(options)
    while left:
        option = left.pop(0)
        if option == "-M":
            fields["min_weight_leaf"] = float(left.pop(0))
        elif option in J48_SWITCHES:
            fields |= J48_SWITCHES[option]
        else:
            return f"J48's {option} is not a field of the config"
    return preset("j48", kind, **fields)


def reptree_config(options: Sequence[str], kind: str) -> Config | str:
    if "-P" not in options:
        return PRUNED
    given = dict(zip(options[::2], options[1::2], strict=False))
    fields: Config = {"min_weight_leaf": float(given["-M"]), "min_variance_fraction": float(given["-V"])}
    if given.get("-L", "-1") != "-1":
        fields["max_depth"] = int(given["-L"])
    return preset("reptree", kind, **fields)


def m5_config(options: Sequence[str], kind: str) -> Config | str:
    if "-N" not in options:
        return PRUNED
    if "-U" not in options:
        return "smoothing needs the linear models of the inner nodes"
    return preset("m5", kind, min_weight_split=float(options[options.index("-M") + 1]))


def c45_config(command: str) -> Config | str:
    """The config of C4.5 release 8 before it prunes."""
    program, *options = command.split()
    if program != "c4.5":
        return RULES
    if "-s" in options:
        return "groups of values (-s) are not one of the nominal splits"
    fields: Config = {}
    if "-m" in options:
        fields["min_weight_leaf"] = float(options[options.index("-m") + 1])
    if "-g" in options:
        fields["criterion"] = "information_gain"
    return preset("c45", **fields)


def sklearn_config(params: Mapping[str, Any], kind: str) -> Config | str:
    """The config of a scikit-learn tree on one-hot columns."""
    known = {"criterion", "random_state", "max_depth", "min_samples_leaf", "min_samples_split", "max_leaf_nodes"}
    if set(params) - known or params["criterion"] not in CRITERIA:
        return f"no config for {dict(params)}"
    return preset(
        "cart",
        kind,
        criterion=CRITERIA[params["criterion"]],
        nominal="one_vs_rest",
        max_depth=params.get("max_depth"),
        max_leaf_nodes=params.get("max_leaf_nodes"),
        min_weight_leaf=params.get("min_samples_leaf"),
        min_weight_split=params.get("min_samples_split"),
    )


def rpart_config(control: Mapping[str, Any] | Sequence[Any], split: str, kind: str) -> Config | str:
    """The config of an rpart tree as it is grown, before cp prunes it."""
    given = dict(control) if isinstance(control, Mapping) else {}
    if given.get("usesurrogate") == 0:
        return "without surrogates rpart stops a row where its value is missing: no strategy of ours"
    least_split = float(given.get("minsplit", 20))
    return preset(
        "cart",
        kind,
        criterion=CRITERIA[split],
        missing="surrogate",
        min_weight_split=least_split,
        min_weight_leaf=float(given.get("minbucket", round(least_split / 3))),
        min_impurity_decrease=None,
    )
