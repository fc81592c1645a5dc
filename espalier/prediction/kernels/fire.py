"""Find the first rule of a list that fires for each of many rows.

The conditions of all rules are concatenated, those of rule r at ``start[r] : start[r + 1]``: an attribute, the bounds
``above < value <= at_most``, and for listed categories the start of their flags in a common table.
"""

import numpy as np

from espalier.kernels.jit import compiled


@compiled
def fire(values, coded, start, attribute, above, at_most, flags_start, flags, absent, fired):
    """Find the first rule whose conditions all hold, for each row.

    values: float64 (attributes, rows). coded: bool (attributes). start: int32 (rules + 1). attribute: int32
    (conditions). above, at_most: float64 (conditions). flags_start: int32 (conditions), -1 without categories. flags:
    bool. absent: bool (conditions), whether it requires a missing value. fired: int32 (rows), written: the number of
    the rule, or the number of rules if none holds.
    """
    n_rules = start.size - 1
    for row in range(values.shape[1]):
        fired[row] = n_rules
        for rule in range(n_rules):
            holds = True
            for at in range(start[rule], start[rule + 1]):
                value = values[attribute[at], row]
                if np.isnan(value) or (value < 0.0 and coded[attribute[at]]):
                    holds = absent[at]
                elif absent[at] or not (above[at] < value <= at_most[at]):
                    holds = False
                elif flags_start[at] >= 0:
                    holds = flags[flags_start[at] + int(value)]
                if not holds:
                    break
            if holds:
                fired[row] = rule
                break
