"""Tables of a subtree's own, in which its rows are numbered from 0: what is looked up by row lies together."""

import numpy as np

from espalier.kernels.jit import compiled
from espalier.kernels.scans import ROW_MASK

CLASS_MASK = np.uint32(0xFF000000)


@compiled
def move_rows(orders, start, stop, places, own_orders):
    """Copy a subtree's stretch of the orders, its rows numbered anew from 0 in their own order.

    places: int32 (n), written for the rows of the subtree. own_orders: uint32 (orders, rows), written. Returns the old
    number of each new one, int32 (rows).
    """
    rows = orders[orders.shape[0] - 1, start:stop]
    home = np.empty(rows.size, np.int32)
    for at in range(rows.size):
        row = rows[at] & ROW_MASK
        home[at] = row
        places[row] = at
    for column in range(orders.shape[0]):
        own = own_orders[column]
        at = np.uint64(0)
        for value in orders[column, start:stop]:
            own[at] = (value & CLASS_MASK) | np.uint32(places[value & ROW_MASK])
            at += np.uint64(1)
    return home


@compiled
def picked_numbers(values, home):
    """Give values[home]; an array of one entry, which is not looked at, as it is."""
    if values.size <= 1:
        return values
    picked = np.empty(home.size, np.float64)
    for at in range(home.size):
        picked[at] = values[home[at]]
    return picked


@compiled
def picked_bytes(values, home):
    """Give values[home], as `picked_numbers` does, of uint8."""
    if values.size <= 1:
        return values
    picked = np.empty(home.size, np.uint8)
    for at in range(home.size):
        picked[at] = values[home[at]]
    return picked


@compiled
def picked_codes(codes, flat, home):
    """Give codes[:, home], uint32; columns that are `flat`, which nobody looks at, are not written."""
    picked = np.empty((codes.shape[0], home.size), np.uint32)
    for column in range(codes.shape[0]):
        if flat[column] == 0:
            here, own = codes[column], picked[column]
            for at in range(home.size):
                own[at] = here[home[at]]
    return picked


@compiled
def picked_cells(cells, home):
    """Give cells[home], uint8."""
    picked = np.empty((home.size, cells.shape[1]), np.uint8)
    for at in range(home.size):
        for column in range(cells.shape[1]):
            picked[at, column] = cells[home[at], column]
    return picked
