"""Kinds of a node's test, the values of `Tree.test`."""

from typing import Final

LEAF: Final = 0
"""A leaf, which has no test."""
NUMERIC: Final = 1
"""Branch 0 where the value is at most ``threshold``, else branch 1; ordinal values are their codes."""
NOMINAL: Final = 2
"""Each category has its branch: ``code_branch[code_start[i] + code]`` for a category's code at node i."""
UNKNOWN: Final = 3
"""Branch 0 where the value is known, branch 1 where it is missing or a category that the schema does not list."""
