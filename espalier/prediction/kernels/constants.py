"""The constant that Python and the kernels share; constants of the kernels alone are in ``constants.pxd``."""

from typing import Final

OTHER: Final = -1
"""In ``links`` of a packed tree, this value replaces the attribute of a test that is not numeric."""
