"""The constant that Python and the kernels share; the others are in ``constants.pxd``."""

from typing import Final

OTHER: Final = -1
"""In ``links`` of a packed tree, this value replaces the attribute of a test that is not numeric."""
