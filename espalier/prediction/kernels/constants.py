"""A number that Python needs, too; SEVERAL branches and N_SLOTS rows at a time are those of the kernels alone."""

from typing import Final

OTHER: Final = -1
"""Instead of an attribute: the test is not numeric."""
