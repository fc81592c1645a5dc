"""The tests of nodes."""

from typing import Final

LEAF: Final = 0
"""``test`` of a leaf."""
NUMERIC: Final = 1
"""Branch 0 where the value is at most ``threshold``, else branch 1; ordinal values are their codes."""
NOMINAL: Final = 2
"""Branch of a category's code: ``code_branch[code_start[i] + code]``."""
UNKNOWN: Final = 3
"""Branch 0 where the value is known, branch 1 where it is missing."""
