"""The folder in which the web processes of one server put what they count, for as long as any of them lives."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"  # read by the library that counts, when it is imported
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - what never reaches a disk
PREFIX: Final = "espalier-figures-"
LOCK: Final = "lock"


@contextmanager
def folder_of_figures() -> Iterator[None]:
    """Have a folder while the block runs in this process, and name it in the environment; not if one is named already.

    A server that is killed leaves its folder behind: the next one removes it.
    """
    if os.environ.get(VARIABLE):
        yield
        return
    base = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    _forget_the_dead(base)
    own, folder = os.getpid(), Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=base))
    # Held by all processes of the server, since they inherit it; and let go of by the last, however that ends.
    held = os.open(folder / "new", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    (folder / "new").rename(folder / LOCK)  # not to be seen before it is held
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if os.getpid() == own:  # web processes leave through here, too
            shutil.rmtree(folder, ignore_errors=True)


def _forget_the_dead(base: Path) -> None:
    for lock in base.glob(f"{PREFIX}*/{LOCK}"):
        try:
            # The folder above is everybody's: whatever has this name, it is neither followed nor waited for.
            tried = os.open(lock, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(tried) as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its server lives, it is another user's, or it has just gone
            continue
        shutil.rmtree(lock.parent, ignore_errors=True)
