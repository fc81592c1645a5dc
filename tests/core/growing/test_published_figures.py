"""The compiled grower against every figure of the reference folder that the twin is held against.

The walking and the translation are the twin's own (tests/reference): its test functions run here a second time with the
compiled grower in the twin's place, so that a new data set with its figures is tested without a new line.
"""

import math

import pytest

from tests.core import growing_bridge
from tests.reference import replay, test_twin_matches_published_figures
from tests.reference.test_twin_matches_published_figures import *  # noqa: F403 - its tests are run as ours


@pytest.fixture(autouse=True)
def _compiled_grower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the compiled grower where the twin's stands."""
    monkeypatch.setattr(replay, "grow_table", growing_bridge.grow_table)
    monkeypatch.setattr(test_twin_matches_published_figures, "MOST_ROWS", math.inf)


def test_every_test_of_the_twin_is_run_here() -> None:
    ours = {name for name in globals() if name.startswith("test_")}
    assert {name for name in vars(test_twin_matches_published_figures) if name.startswith("test_")} <= ours
