"""Constants of the kernels; `constants.pxd` holds the same numbers for C."""

from typing import Final

OTHER: Final = -1
"""Instead of an attribute: the test is not numeric."""
SEVERAL: Final = -1
"""Instead of a leaf: the row takes several branches."""
N_SLOTS: Final = 16
"""Rows that are processed together."""
