"""Translate scikit-learn's parameters into fields of `espalier.TrainingConfig`, and faults of fields back."""

import math
from collections.abc import Mapping
from typing import Any, Final

from espalier.config.pruning import CostComplexity
from espalier.data.number_parsing import is_number
from espalier.errors import EstimatorError, Fault, pointer

CRITERIA: Final[Mapping[str, str]] = {"entropy": "information_gain", "log_loss": "information_gain"}
"""scikit-learn's names of criteria, each with the name in Espalier."""
LEAST: Final[Mapping[str, int]] = {"min_samples_leaf": 1, "min_samples_split": 2}
"""Parameters that count rows, with their least values. A count equals a weight only if every row weighs 1."""
SKLEARN_NAMES: Final = (*LEAST, "ccp_alpha")
"""Parameters of scikit-learn that have another name in Espalier."""
UNWEIGHTED: Final = "counts rows, but the rows have weights: set {field}, which adds up weights"
MEANING: Final = "must be a whole number of at least {least}, or a share of the rows above 0 and at most 1"


def translate(given: Mapping[str, Any], fields: Mapping[str, Any], *, n_rows: int, has_weights: bool) -> dict[str, Any]:
    """Return the fields of a configuration that scikit-learn's parameters stand for.

    Args:
        given: The parameters in `SKLEARN_NAMES` by name; a parameter of None is not set.
        fields: The fields that are set by Espalier's names; ``criterion`` may also have a key of `CRITERIA`.
        n_rows: Number of training rows, to which a share refers.
        has_weights: Whether the rows have weights.

    Raises:
        EstimatorError: A parameter is not legal, or its field is set, too.

    >>> translate({"min_samples_leaf": 0.1, "min_samples_split": 4}, {}, n_rows=50, has_weights=False)
    {'min_weight_leaf': 5.0, 'min_weight_split': 4.0}
    """
    faults: list[Fault] = []
    translated: dict[str, Any] = {}
    if isinstance(fields.get("criterion"), str):
        translated["criterion"] = CRITERIA.get(fields["criterion"], fields["criterion"])
    for name, least in LEAST.items():
        if given.get(name) is not None:
            field = name.replace("samples", "weight")
            weight = _weight(given[name], n_rows, least=least)
            if weight is None:
                faults.append(Fault(pointer(name), "not_legal", MEANING.format(least=least)))
            elif field in fields:
                faults.append(Fault(pointer(name), "not_legal", f"set either this or {field}"))
            elif has_weights and weight > 1:
                faults.append(Fault(pointer(name), "not_legal", UNWEIGHTED.format(field=field)))
            else:
                translated[field] = weight
    alpha = given.get("ccp_alpha") or 0.0
    if not is_number(alpha) or not 0 <= alpha < math.inf:
        faults.append(Fault(pointer("ccp_alpha"), "not_legal", "must be a number of at least 0"))
    elif alpha and fields.get("pruning") is not None:
        faults.append(Fault(pointer("ccp_alpha"), "not_legal", "set either this or pruning"))
    elif alpha:
        translated["pruning"] = CostComplexity(alpha=float(alpha))
    EstimatorError.raise_for(faults)
    return translated


def fault_of_holdout(fault: Fault, n_rows: int, holdout: object) -> Fault:
    """Return a fault of the holdout as one of the argument ``validation`` of ``fit``; return other faults unchanged."""
    if fault.path != "/holdout" or holdout is not None:
        return Fault(fault.path.replace("/holdout", "/validation"), fault.code, fault.message)
    reason = f"n_samples={n_rows} is too few to hold out rows" if fault.code == "not_legal" else fault.message
    return Fault("/validation", fault.code, f"must be given, as in fit(..., validation=(X, y)): {reason}")


def fault_of_alpha(fault: Fault) -> Fault:
    """Return a fault of the pruning that ``ccp_alpha`` stands for as one of ``ccp_alpha``; others unchanged."""
    if not fault.path.startswith("/pruning/"):
        return fault
    message = f"must be 0: set pruning, whose {fault.path.removeprefix('/pruning/')} {fault.message}"
    return Fault("/ccp_alpha", fault.code, message)


def _weight(given: Any, n_rows: int, *, least: int) -> float | None:
    """Return a number or share of rows as a weight, which is at least `least`; None if `given` is not legal."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= least:
        return float(given)
    if isinstance(given, float) and 0 < given <= 1:
        return float(max(least, math.ceil(given * n_rows)))
    return None
