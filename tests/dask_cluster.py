"""A Dask cluster on this machine for tests: its workers are processes that can be killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed

ENDED = 60.0


@contextmanager
def local_cluster(n_workers: int) -> Iterator[Any]:
    """Run a scheduler and workers of one thread until the block ends; ports are free ones, since tests run at once."""
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        yield cluster


@contextmanager
def processes(*, n_workers: int = 2) -> Iterator[tuple[str, Any]]:
    """Run a scheduler and workers as users start them: its address and its process."""
    dask, on_port = [sys.executable, "-m", "dask"], ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([*dask, "scheduler", *on_port, "--port", "0"], stderr=subprocess.PIPE, text=True)
    started = [scheduler]
    try:
        assert scheduler.stderr is not None
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        one = [*dask, "worker", address, *on_port, "--nthreads", "1", "--no-nanny"]
        started += [subprocess.Popen(one, stderr=subprocess.DEVNULL, text=True) for _ in range(n_workers)]
        if n_workers:
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(n_workers, timeout=ENDED)
        yield address, scheduler
    finally:
        for each in started:
            each.kill()
            each.wait()
        if scheduler.stderr is not None:
            scheduler.stderr.close()
