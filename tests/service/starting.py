"""Processes of tests: each is forked from one that has imported the worker, as importing it takes a second."""

import multiprocessing
from typing import Any

from service.worker.child_process import START_METHOD

PRELOADED = ["pytest", "service.worker.loop", "service.database.migrate", "tests.service.acting"]


def process_context() -> Any:
    """Return the context of multiprocessing in which tests start processes.

    A worker that is started in it still starts its own forkserver for its jobs.
    """
    started = multiprocessing.get_context(START_METHOD)
    started.set_forkserver_preload(PRELOADED)
    return started
