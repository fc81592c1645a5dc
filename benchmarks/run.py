"""One run of the benchmarks: its share of the rows, the folder of its data, and the selected lines."""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from benchmarks.measuring import n_processors

QUICK: Final = 0.1
MIN_ROWS: Final = 1_000
LIBRARIES: Final = (
    "espalier", "numpy", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu", "ydf", "pyarrow"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        folder: Temporary folder of the data.
        share: Share of the rows. Below 1 the run only shows whether everything works: targets are meant for all rows.
        only: Words. Tables that support words print only lines whose name contains one of the words. Empty: all lines.
    """

    folder: Path
    share: float = 1.0
    only: tuple[str, ...] = ()

    def rows(self, n_rows: int) -> int:
        """Return the number of rows that this run takes if a full run takes `n_rows`."""
        return max(MIN_ROWS, round(n_rows * self.share))

    def takes(self, line: str) -> bool:
        """Return whether this run measures the line with this name."""
        return not self.only or any(word in line for word in self.only)


@contextmanager
def begin(*, share: float = 1.0, only: tuple[str, ...] = ()) -> Iterator[Run]:
    """Print the machine and yield a run with a temporary folder."""
    print(_machine())
    if share < 1:
        print(f"Quick: {share:g} of the rows. Ratios at this size say little; the targets are meant for all rows.")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="espalier-bench-") as folder:
        yield Run(Path(folder), share, only)


def _machine() -> str:
    lines = [
        f"Machine: {_processor()}, {n_processors()} of {os.cpu_count()} processors used, {_memory()}",
        f"System:  {platform.system()} {platform.release()}, Python {platform.python_version()}",
        f"Versions: {', '.join(filter(None, map(_version, LIBRARIES)))}",
        f"Load before the start (1, 5, 15 minutes): {', '.join(f'{load:.2f}' for load in os.getloadavg())}",
    ]
    return "\n".join(lines)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _memory() -> str:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return f"{pages / 2**30:.0f} GiB of memory"


def _version(library: str) -> str | None:
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return None
