"""Midpoints between two neighbouring values of an attribute: the thresholds of its tests."""

import cython


def middle_of(below, above):
    """Return the number halfway between two neighbours; the lower neighbour if rounding would give the upper one."""
    middle = (below + above) / 2.0
    if not (below <= middle < above):
        middle = below / 2.0 + above / 2.0
    return middle if below <= middle < above else below


def write_thresholds(below, above, nodes, threshold):
    """Write the threshold of each node that tests an attribute, halfway between two neighbouring values.

    below, above: float64; the two values of each node. nodes: int64; the index of each node in `threshold`. threshold:
    float64; the array that is written.
    """
    with cython.nogil:
        for at in range(nodes.shape[0]):
            threshold[nodes[at]] = middle_of(below[at], above[at])
