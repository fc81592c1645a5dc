"""Requests for predictions that are refused as a whole, as they stand in the decision log: failed, row by row.

A request of which one row cannot be read is not answered at all. What was asked is logged all the same: a row that is
wrong with its faults, the others with the word that they were not answered.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import espalier
from service.errors import ValidationFailed
from service.usecases.predictions import PredictionResults

NOT_ANSWERED: Mapping[str, str] = {
    "pointer": "",
    "code": "not_answered",
    "message": "the request was refused for another of its rows",
}
Place = Callable[[int, str], str]


def failed(n_rows: int, error: espalier.RowError | ValidationFailed, *, place: Place) -> PredictionResults:
    """Say what is logged of a request that was refused.

    Args:
        n_rows: How many rows it had.
        error: Why: faults of its rows by ``/{row}/{attribute}``, or of the whole of it.
        place: Gives the JSON pointer of a fault in the request from the row's number and the pointer within the row.
    """
    answered = PredictionResults([], [])
    if isinstance(error, ValidationFailed):
        for _ in range(n_rows):
            answered.add_refused(error.faults)
        return answered
    by_row: dict[int, list[espalier.Fault]] = {}
    for fault in error.faults:
        row, slash, attribute = fault.path.removeprefix("/").partition("/")
        pointer = place(int(row), slash + attribute)
        by_row.setdefault(int(row), []).append(espalier.Fault(pointer, fault.code, fault.message))
    for number in range(n_rows):
        _add(answered, by_row.get(number, ()))
    return answered


def failed_with(answers: Sequence[Mapping[str, Any]]) -> PredictionResults:
    """Say the same of rows that were answered one by one, of which some have errors: the answers are not given."""
    answered = PredictionResults([], [])
    for answer in answers:
        answered.answers.append({"errors": answer.get("errors") or [dict(NOT_ANSWERED)]})
        answered.nodes.append(())
    return answered


def _add(answered: PredictionResults, faults: Sequence[espalier.Fault]) -> None:
    if faults:
        answered.add_refused(faults)
    else:
        answered.answers.append({"errors": [dict(NOT_ANSWERED)]})
        answered.nodes.append(())
