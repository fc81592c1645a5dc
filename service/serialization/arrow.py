"""Arrow, which only processes that read or write tables load: it takes 36 MB of memory."""

from typing import Any


def load_pyarrow() -> Any:
    """Return pyarrow with its compute functions."""
    import pyarrow  # noqa: PLC0415 - see above
    import pyarrow.compute  # noqa: PLC0415 - see above

    return pyarrow
