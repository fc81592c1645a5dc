"""A Dask cluster on this machine for tests: its workers are processes that can be killed."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE
from typing import Any

import dask
import distributed

ENDED = 60.0
# A worker that was killed and takes longer to come back, 15 s by default, is given up by its cluster for ever.
PATIENT = {"distributed.deploy.lost-worker-timeout": ENDED}


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Run a scheduler and workers of one thread until the block ends; ports are free ones, since tests run at once."""
    with (
        dask.config.set(PATIENT),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster


@contextmanager
def processes(
    *,
    n_workers: int = 2,
    scheduler: Sequence[str] = ("--no-dashboard",),
    worker: Sequence[str] = ("--nthreads", "1", "--no-nanny", "--no-dashboard"),
    environment: Mapping[str, str] | None = None,
    security: Any = None,
) -> Iterator[tuple[str, Any]]:
    """Run a scheduler and workers as users start them: its address and its process."""
    command, local = [sys.executable, "-m", "dask"], ["--host", "127.0.0.1"]
    options: Any = {"text": True, "env": {**os.environ, **(environment or {})}}
    started = [subprocess.Popen([*command, "scheduler", *scheduler, *local, "--port", "0"], stderr=PIPE, **options)]
    try:
        lines = started[0].stderr
        address = next(line.split()[-1] for line in lines if "Scheduler at:" in line)
        one = [*command, "worker", address, *worker, *local]
        started += [subprocess.Popen(one, stderr=DEVNULL, **options) for _ in range(n_workers)]
        if n_workers:
            with distributed.Client(address, security=security, set_as_default=False) as client:
                client.wait_for_workers(n_workers, timeout=ENDED)
        yield address, started[0]
    finally:
        started[0].kill()
        for each in started:
            each.terminate()  # a nanny ends its process
            each.wait()
        started[0].stderr.close()
