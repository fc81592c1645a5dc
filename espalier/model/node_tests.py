"""Kinds of a node's test, the values of `Tree.test`."""

from typing import Final

LEAF: Final = 0
"""A leaf, which has no test."""
NUMERIC: Final = 1
"""A known value of at most ``threshold`` takes branch 0, a larger one branch 1. An ordinal's value is its code."""
NOMINAL: Final = 2
"""At node i, a row whose category has the code c takes the branch ``code_branch[code_start[i] + c]``."""
UNKNOWN: Final = 3
"""A row takes branch 1 if its value is missing or is a category that the schema does not list, else branch 0."""
