"""Temporary folders. If their process is killed, the next `locked_folder` with the same prefix and base removes them.

A folder is locked as long as it is used::

    BASE/PREFIX<process>-<random>/lock    locked: in use; free: its process was killed
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK_FILE: Final = "lock"


@contextmanager
def locked_folder(prefix: str, base: Path) -> Iterator[Path]:
    """Remove the folders with this prefix whose process was killed; yield a new folder and remove it at the end.

    The folder `base` is created if it does not exist.
    Processes that are forked in the block inherit the lock: it is held until the block and all of them have ended.
    """
    base.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(prefix, base)
    own, folder = os.getpid(), Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=base))
    lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / LOCK_FILE)  # after locking, so no process sees it unlocked
    try:
        yield folder
    finally:
        if os.getpid() == own:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(prefix: str, base: Path) -> None:
    for lock in base.glob(f"{prefix}*/{LOCK_FILE}"):
        try:
            # Anybody may create files in `base` (such as /tmp): a link or a pipe of this name must do no harm.
            descriptor = os.open(lock, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(descriptor) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # the folder is in use, another user's, or just removed
            continue
        shutil.rmtree(lock.parent, ignore_errors=True)
