"""Checks of job requests, without HTTP."""

from typing import Any

import pytest

import espalier
from espalier import Fault
from service.usecases.jobs import JobRequest

NOTHING: Any = None


class CountedText(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    n_comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedText.n_comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_faults_are_compared_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedText, "n_comparisons", 0)
    request = JobRequest(NOTHING, NOTHING, {})
    faults = [Fault("/a", "code", CountedText(number)) for number in range(1000)]
    for part in (faults[:500], faults):
        with request.collecting():
            raise espalier.ConfigError(part)
    assert request.faults == faults
    assert CountedText.n_comparisons < 10 * len(faults)
