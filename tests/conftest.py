"""Settings of hypothesis for every test, and what all processes share that tests start.

No deadline (a shared machine has slow moments), and the same examples each time, so that a test decides on the
change and not on its luck. `HYPOTHESIS_PROFILE=explore` looks for new ones.
"""

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Tests start hundreds of processes. Where the environment forbids to keep bytecode, each compiles all sources again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

WAITING = ("tests/acceptance/", "tests/chaos/", "tests/web/", "tests/service/worker/")
"""Folders of tests that mostly wait for processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files that mostly wait among the others: while one waits, others compute.

    None is in the last quarter, where it would leave processors idle.
    """
    files = list(dict.fromkeys(item.path for item in items))
    waiting = list(dict.fromkeys(item.path for item in items if item.nodeid.startswith(WAITING)))
    computing = [file for file in files if file not in set(waiting)]
    apart = 0.75 * len(computing) / max(len(waiting), 1)
    place = {file: number * apart for number, file in enumerate(waiting)}
    place |= {file: float(number) for number, file in enumerate(computing)}
    items.sort(key=lambda item: place[item.path])


# Collecting tests makes a million objects and no garbage: without them, each later collection is short.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what exists now out of all later garbage collections."""
    gc.collect()
    gc.freeze()
    gc.enable()
