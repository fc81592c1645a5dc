"""Find the first rule of a list that fires for each of many rows.

The conditions of all rules are concatenated, those of rule r at ``start[r] : start[r + 1]``: an attribute, the bounds
``above < value <= at_most``, and for listed categories the start of their flags in a common table.
"""

import cython
from cython.cimports.libc.math import isnan


def fire(values, coded, start, attribute, above, at_most, flags_start, flags, absent, fired):
    """Find the first rule whose conditions all hold, for each row.

    values: float64 (attributes, rows). coded: uint8 (attributes). start: int32 (rules + 1). attribute: int32
    (conditions). above, at_most: float64 (conditions). flags_start: int32 (conditions), -1 without categories. flags:
    uint8. absent: uint8 (conditions), whether it requires a missing value. fired: int32 (rows), written: the number of
    the rule, or the number of rules if none holds.
    """
    n_rules = start.shape[0] - 1
    with cython.nogil:
        for row in range(values.shape[1]):
            fired[row] = n_rules
            for rule in range(n_rules):
                holds: cython.bint = True
                for at in range(start[rule], start[rule + 1]):
                    value = values[attribute[at], row]
                    if isnan(value) or (value < 0.0 and coded[attribute[at]]):
                        holds = absent[at]
                    elif absent[at] or not (above[at] < value <= at_most[at]):
                        holds = False
                    elif flags_start[at] >= 0:
                        holds = flags[flags_start[at] + cython.cast(cython.int, value)]
                    if not holds:
                        break
                if holds:
                    fired[row] = rule
                    break
