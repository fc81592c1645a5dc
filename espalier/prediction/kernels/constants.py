"""A constant that Python needs, too; `constants.pxd` holds those of the kernels: SEVERAL branches, N_SLOTS rows at once."""

from typing import Final

OTHER: Final = -1
"""Instead of an attribute: the test is not numeric."""
