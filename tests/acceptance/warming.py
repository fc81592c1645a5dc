"""Compiled code made once, before the tests that wait for a training: none of them should wait for a compiler."""

import fcntl
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.factories import ROOT

LOCK = Path(tempfile.gettempdir()) / "espalier-tests-compile.lock"
SCRIPT = """
import espalier

rows = [{"size": n % 7, "wind": "weak" if n % 3 else "strong", "play": "yes" if n % 2 else "no"} for n in range(40)]
mixed = espalier.dataset_from_rows(rows, target="play")
for preset in ("cart", "c45"):
    model = espalier.train(mixed, preset, holdout=espalier.Holdout(fraction=0.3))
    espalier.prune(model, "reduced_error", dataset=mixed)
espalier.train(espalier.dataset_from_rows(rows, target="play", ignore=["size"]), "id3")
numbers = [row | {"play": n / 3} for n, row in enumerate(rows)]
espalier.train(espalier.dataset_from_rows(numbers, target="play"), "cart")
"""


@functools.cache
def warm_up() -> None:
    """Train and prune a little in a process of its own, whose machine code stays on disk; one such process at a time.

    It takes a minute where nothing is there yet, a second or two where all is.
    """
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, check=True)
