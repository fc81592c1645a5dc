"""Bytes to columns and back: stored data sets, stored decisions, answers in the formats of tables."""

from typing import Any


def load_pyarrow() -> Any:
    """Return pyarrow, which takes 36 MB: only processes that read or write tables load it."""
    import pyarrow.compute  # noqa: PLC0415 - see above

    return pyarrow
