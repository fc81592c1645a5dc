"""The constant that Python and the kernels share; the header has the others."""

from typing import Final

OTHER: Final = -1
"""Instead of an attribute: the test is not numeric."""
