"""What machine code is kept, looked at without making a folder or trying a file."""

import os
from pathlib import Path

# Not made public there: an edit of that file has every kernel compiled anew, on every machine.
from espalier.kernels.kept import _bases, sources_hash

__all__ = ["kept_code"]


def kept_code() -> tuple[Path | None, int]:
    """Give the folder below which machine code would be written (None: nowhere), and how many kernels are kept."""
    n_kept = 0
    names = {f"espalier-{sources_hash(path)[:16]}" for path in Path(__file__).parent.glob("*.py")}
    for base in _bases():
        n_kept += sum(1 for name in names for _ in (base / name).glob("*.nbi"))
        if _may_be_written(base):
            return base, n_kept
    return None, n_kept


def _may_be_written(folder: Path) -> bool:
    """Whether a folder could be written, or made, as far as its rights tell."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
