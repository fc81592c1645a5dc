"""gunicorn's settings for a peer whose web processes are kept on a core each, as ESPALIER_WEB_PINNING=on does."""

import os
from typing import Any


def post_fork(_server: Any, worker: Any) -> None:
    """Stay on a core: the first process on the first, and so on."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(worker.age - 1) % len(cores)]})
