"""The constant that Python and the kernels share; the others are in ``constants.pxd``."""

from typing import Final

OTHER: Final = -1
"""In ``links`` of a packed tree, instead of an attribute: the test is not numeric."""
