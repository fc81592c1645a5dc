"""Nodes of the binary grower while the tree grows.

Only what does not follow from the rest is kept, so that a tree with a leaf for each row takes a third of the memory of
the general grower's tables: 32 bytes and the statistics. Answers, shares and parents follow from these::

    ints    feature | first child (the other is the next) | last row of the left side | first row of the right side
    reals   weight | gain
    stats   class weights, or (weight, mean, sum of squared deviations)
"""

import math

from espalier.kernels.jit import inner

FEATURE = 0
FIRST_CHILD = 1
LAST_LEFT = 2
FIRST_RIGHT = 3
N_INTS = 4

WEIGHT = 0
GAIN = 1
N_REALS = 2


@inner
def start_leaf(ints, reals, node):
    """Write a leaf into the tables."""
    for k in range(N_INTS):
        ints[node, k] = -1
    reals[node, GAIN] = math.nan
