"""A Dask cluster on this machine for tests: its workers are processes that can be killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import distributed


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
