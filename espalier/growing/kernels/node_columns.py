"""Columns of the general grower's tables that Python reads; `node_columns.pxd` holds all of them for kernels.

Only kernels use the following columns. PARENT is the parent. PAID_LINK is the nearest ancestor whose attribute is
not tested above it, or -1. LOWEST and HIGHEST are the least and the greatest target of a node in a regression.
"""

from typing import Final

# Nodes, whole numbers.
FEATURE: Final = 1
TEST: Final = 2
FIRST_CHILD: Final = 3
N_CHILDREN: Final = 4
FALLBACK: Final = 5
CODE_START: Final = 6
DEPTH: Final = 7
HEURISTIC: Final = 9
FIRST_SURROGATE: Final = 10
N_SURROGATES: Final = 11

# Nodes, real numbers.
THRESHOLD: Final = 0
WEIGHT: Final = 1
GAIN: Final = 2
VALUE: Final = 3
SHARE: Final = 4  # of the parent's known weight

# Surrogates.
S_ATTRIBUTE: Final = 0
S_TEST: Final = 1
S_BELOW: Final = 2
S_CODE_START: Final = 3

S_THRESHOLD: Final = 0
S_AGREEMENT: Final = 1
