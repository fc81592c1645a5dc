"""A process that ends when the one that started it ends, however that happened.

``kill -9`` of a parent runs no line of its code, so the children must notice by themselves.
"""

import ctypes
import os
import signal
import sys
import threading
import time

__all__ = ["end_with_parent"]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOOK_SECONDS = 0.5


def end_with_parent(parent: int) -> None:
    """Have SIGTERM sent to this process when the process `parent`, which started it, is gone.

    On Linux the kernel does it; elsewhere a thread looks every half second.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os.kill(os.getpid(), signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="lifeline").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
