"""Columns of the general grower's tables; `node_columns.pxd` holds the same numbers for kernels."""

from typing import Final

# Nodes, whole numbers.
PARENT: Final = 0
FEATURE: Final = 1
TEST: Final = 2
FIRST_CHILD: Final = 3
N_CHILDREN: Final = 4
FALLBACK: Final = 5
CODE_START: Final = 6
DEPTH: Final = 7
PAID_LINK: Final = 8  # nearest node, itself included, whose split paid for a new attribute; -1: none
HEURISTIC: Final = 9
FIRST_SURROGATE: Final = 10
N_SURROGATES: Final = 11
N_NODE_INTS: Final = 12

# Nodes, real numbers.
THRESHOLD: Final = 0
WEIGHT: Final = 1
GAIN: Final = 2
VALUE: Final = 3
SHARE: Final = 4  # of the parent's known weight
LOWEST: Final = 5  # of the target, regression
HIGHEST: Final = 6
N_NODE_REALS: Final = 7

# Surrogates.
S_ATTRIBUTE: Final = 0
S_TEST: Final = 1
S_BELOW: Final = 2
S_CODE_START: Final = 3
N_S_INTS: Final = 4

S_THRESHOLD: Final = 0
S_AGREEMENT: Final = 1
N_S_REALS: Final = 2
