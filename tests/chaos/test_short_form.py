"""The short form of the campaign: a fault of each kind under one load, on either database; what waits is for later."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

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
def test_every_promise_is_kept_through_faults(faults: Sequence[str], name: str) -> None:
    if name == "postgresql" and programs() is None:
        pytest.skip("PostgreSQL's server programs are not installed")
    seed = random.SystemRandom().randrange(10**6)
    with open_folder() as folder, DATABASES[name](folder / "database") as database:
        line = all_together(name, database, folder / "printed", seed=seed, times=dict.fromkeys(faults, 1))
    assert line.verdict.broken == [], f"seed {seed}"
    assert line.verdict.n_decisions > 0
    assert sum(line.verdict.states.values()) > 0


@contextmanager
def open_folder() -> Iterator[Path]:
    """Give a folder that others may enter: PostgreSQL runs as another user, whom pytest's own folders shut out."""
    with tempfile.TemporaryDirectory(prefix="espalier-chaos-") as path:
        folder = Path(path)
        folder.chmod(0o755)
        yield folder
