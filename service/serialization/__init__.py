"""Convert columns to bytes and back: stored data sets and decisions. Write answers as CSV, NDJSON or Parquet."""

from typing import Any


def load_pyarrow() -> Any:
    """Import and return pyarrow. It takes 36 MB of memory, so only processes that read or write tables load it."""
    import pyarrow.compute  # noqa: PLC0415 - see above

    return pyarrow
