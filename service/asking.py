"""What would change an answer, and what is still needed for one: the core asked, refusing in the service's words."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import espalier
from service.catalog import LoadedVersion
from service.decisions import Decision
from service.errors import Conflict, Fault, Rejected
from service.operating import at_point

__all__ = ["consult", "counterfactuals"]


def counterfactuals(version: LoadedVersion, decision: Decision, asked: Mapping[str, Any]) -> espalier.Counterfactuals:
    """Give the nearest changes of a logged row that lead to another answer of the version that answered it.

    Args:
        version: The version.
        decision: The decision, whose strategy for missing values is kept.
        asked: As in `espalier.counterfactuals`.

    Raises:
        Conflict: The row was refused, or its values are not there any more.
        Rejected: What is asked for is not legal; every fault.
        espalier.NotApplicable: The leaves are linear models.
    """
    if decision.leaf is None:
        raise Conflict(
            f"decision {decision.id} is a row that was refused: there is no answer that could be another one"
        )
    if decision.erased is not None:
        raise Conflict(f"the inputs of decision {decision.id} were erased: nothing can be said of other values")
    if decision.masked:
        names = ", ".join(map(repr, decision.masked))
        raise Conflict(f"the model's mask kept inputs of decision {decision.id} out of the log: {names}")
    with _refused():
        model = at_point(version.model, decision.operating_point)
        return espalier.counterfactuals(model, decision.input, missing=decision.missing, **asked)


def consult(version: LoadedVersion, known: Mapping[str, Any], *, missing: str | None) -> espalier.Consultation:
    """Say what is to be found out next, or what the answer is.

    Raises:
        Rejected: What is known cannot be read, or the model cannot take missing values in this way; every fault.
    """
    try:
        with _refused():
            return espalier.consult(version.model, known, missing=missing)
    except espalier.RowError as error:
        raise Rejected([Fault(f"/known{one.path}", one.code, one.message) for one in error.faults]) from None


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except espalier.ConfigError as error:
        raise Rejected([Fault(fault.path, fault.code, fault.message) for fault in error.faults]) from None
