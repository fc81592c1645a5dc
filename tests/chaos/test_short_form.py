"""The short form of the campaign, for `make check-all`: some faults of each kind under one load, on either database."""

import random

import pytest

from tests.chaos.campaign import all_together
from tests.chaos.databases import DATABASES, programs

TIMES = {
    "kill -9 of a web process": 1,
    "kill -9 of a job's process": 1,
    "kill -9 of everything": 1,
    "worker halted past its lease": 1,
    "cancel against completion": 1,
    "database restarted": 1,
    "disk full": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DATABASES)
def test_every_promise_is_kept_through_faults(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if name == "postgresql" and programs() is None:
        pytest.skip("PostgreSQL's server programs are not installed")
    folder = tmp_path_factory.mktemp("chaos")
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)  # PostgreSQL runs as another user
    seed = random.SystemRandom().randrange(10**6)
    with DATABASES[name](folder / "database") as database:
        line = all_together(name, database, folder / "printed", seed=seed, times=TIMES)
    assert line.verdict.broken == [], f"seed {seed}"
    assert line.verdict.n_decisions > 0
    assert sum(line.verdict.states.values()) > 0
