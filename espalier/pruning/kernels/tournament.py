"""The best of some nodes, found again in O(log n) steps when a node changes."""

import numpy as np
from cython.cimports.libc.math import INFINITY


class Tournament:
    """A tournament tree of nodes. The best has the largest key, then the largest weight, then the smallest number.

    ``winners[n_places + i]`` is node i, or -1 if there is none. ``winners[k]`` is the better one of ``winners[2k]`` and
    ``winners[2k + 1]``, so ``winners[1]`` is the best.
    """

    def __init__(self, key, weight):
        self.key, self.weight, self.n_places = key, weight, 1
        while self.n_places < self.key.shape[0]:
            self.n_places *= 2
        self.winners = np.full(2 * self.n_places, -1, np.int32)
        seed(self)


def winner(tournament, place):
    """Return the winner at `place`: the better of the two nodes below it."""
    one, other = tournament.winners[2 * place], tournament.winners[2 * place + 1]
    if other < 0:
        return one
    if tournament.key[one] != tournament.key[other]:
        return one if tournament.key[one] > tournament.key[other] else other
    return one if tournament.weight[one] >= tournament.weight[other] else other


def seed(tournament):
    """Play all matches."""
    for node in range(tournament.key.shape[0]):
        tournament.winners[tournament.n_places + node] = node
    for place in range(tournament.n_places - 1, 0, -1):
        tournament.winners[place] = winner(tournament, place)


def update(tournament, node):
    """Replay the matches of a node whose key or weight has changed."""
    place = (tournament.n_places + node) // 2
    while place >= 1:
        tournament.winners[place] = winner(tournament, place)
        place //= 2


def remove(tournament, node, stop):
    """Remove the nodes ``node:stop``."""
    tournament.key[node:stop] = -INFINITY
    low, high = (tournament.n_places + node) // 2, (tournament.n_places + stop - 1) // 2
    while low >= 1:
        for place in range(low, high + 1):
            tournament.winners[place] = winner(tournament, place)
        low //= 2
        high //= 2
