"""The short form of the campaign: a fault of each kind under one load, on either database; what waits is for later."""

import random
from collections.abc import Sequence

import pytest

from tests.chaos.campaign import all_together
from tests.chaos.databases import DATABASES, programs

SHORT = (
    "kill -9 of a web process",
    "kill -9 of a job's process",
    "kill -9 of everything",
    "cancel against completion",
    "database restarted",
    "disk full",
)
LONGER = ("worker halted past its lease", "two reapers")


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("faults", [SHORT, pytest.param(LONGER, marks=pytest.mark.slow)], ids=["short", "longer"])
def test_every_promise_is_kept_through_faults(
    faults: Sequence[str], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name == "postgresql" and programs() is None:
        pytest.skip("PostgreSQL's server programs are not installed")
    folder = tmp_path_factory.mktemp("chaos")
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)  # PostgreSQL runs as another user
    seed = random.SystemRandom().randrange(10**6)
    with DATABASES[name](folder / "database") as database:
        line = all_together(name, database, folder / "printed", seed=seed, times=dict.fromkeys(faults, 1))
    assert line.verdict.broken == [], f"seed {seed}"
    assert line.verdict.n_decisions > 0
    assert sum(line.verdict.states.values()) > 0
