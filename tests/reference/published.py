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
    fields = j48_fields(options)
    return fields if isinstance(fields, str) else preset("j48", kind, **fields)


def j48_fields(options: Sequence[str]) -> Config | str:
    """The fields that J48's options name; those of its pruning under `pruning`, unless it does not prune (`-U`)."""
    reduced_error = "-R" in options
    fields: Config = {"collapse": False} if reduced_error else {}
    pruning: Config = {"method": "reduced_error"} if reduced_error else {}
    left = [option for option in options if option != "-R"]
    while left:
        option = left.pop(0)
        if option == "-M":
            fields["min_weight_leaf"] = float(left.pop(0))
        elif option == "-C":
            pruning["confidence"] = float(left.pop(0))
        elif option == "-S":
            pruning["raising"] = False
        elif option in ("-N", "-Q"):  # which rows are held back: they are listed
            left.pop(0)
        elif option in J48_SWITCHES:
            fields |= J48_SWITCHES[option]
        else:
            return f"J48's {option} is not a field of the config"
    return fields if "-U" in options else {**fields, "pruning": pruning}


def reptree_config(options: Sequence[str], kind: str) -> Config | str:
    if "-P" not in options:
        return PRUNED
    fields = reptree_fields(options)
    return fields if isinstance(fields, str) else preset("reptree", kind, **fields)


def reptree_fields(options: Sequence[str]) -> Config | str:
    """The fields that REPTree's options name, whether it prunes (`-P`: not) left aside."""
    left = [option for option in options if option != "-P"]
    given = dict(zip(left[::2], left[1::2], strict=True))
    unknown = sorted(set(given) - {"-M", "-V", "-N", "-S", "-L"})
    if unknown:
        return f"REPTree's {unknown[0]} is not a field of the config"
    fields: Config = {
        "min_weight_leaf": float(given.get("-M", 2)),
        "min_variance_fraction": float(given.get("-V", 1e-3)),
    }
    if given.get("-L", "-1") != "-1":
        fields["max_depth"] = int(given["-L"])
    return fields


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
    fields: Config = {}
    left = list(options)
    while left:
        option = left.pop(0)
        if option == "-m":
            fields["min_weight_leaf"] = float(left.pop(0))
        elif option == "-g":
            fields["criterion"] = "information_gain"
        elif option in ("-f", "-c", "-v"):  # the files, the confidence of pruning, what is printed
            left.pop(0)
        elif option == "-s":
            return "groups of values (-s) are not one of the nominal splits"
        elif option != "-u":  # that it is tested on unseen cases too
            return f"C4.5's {option} is not a field of the config"
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
    unknown = sorted(set(given) - {"cp", "xval", "minsplit", "minbucket", "maxsurrogate", "usesurrogate", "maxdepth"})
    if unknown:
        return f"rpart's {unknown[0]} is not a field of the config"
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
        max_depth=given.get("maxdepth"),
        max_surrogates=given.get("maxsurrogate", 5),
    )
