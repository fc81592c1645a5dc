"""Enlarged copies of arrays, and the preorder of the nodes of a tree."""

import cython
import numpy as np


def enlarge(old, count, more):
    """Return an array of `more` entries, or a table of `more` rows, that begins with the first `count` of `old`."""
    entries = np.asarray(old)[:count]
    new = np.empty((more, *entries.shape[1:]), entries.dtype)
    new[:count] = entries
    return new


def enlarge_columns(old, count, more):
    """Return a table of `more` columns that begins with the first `count` columns of `old`."""
    new = np.empty((old.shape[0], more), np.asarray(old).dtype)
    new[:, :count] = old[:, :count]
    return new


def preorder(first_child, n_children):
    """Return the nodes reachable from the root, in preorder, and the sizes of their subtrees. Both are int32.

    first_child, n_children: int32 (n); children have larger numbers than their parents.
    """
    n_nodes = n_children.shape[0]
    sizes: cython.int[::1] = np.empty(n_nodes, np.int32)
    with cython.nogil:
        for node in range(n_nodes - 1, -1, -1):
            sizes[node] = 1
            for branch in range(n_children[node]):
                sizes[node] += sizes[first_child[node] + branch]
    nodes, subtree_sizes = np.empty(sizes[0], np.int32), np.empty(sizes[0], np.int32)
    order: cython.int[::1] = nodes
    size: cython.int[::1] = subtree_sizes
    places: cython.int[::1] = np.full(n_nodes, -1, np.int32)
    places[0] = 0
    with cython.nogil:
        for node in range(n_nodes):
            place = places[node]
            if place < 0:
                continue  # inside a subtree that was collapsed to a leaf
            order[place], size[place] = node, sizes[node]
            place += 1
            for child in range(first_child[node], first_child[node] + n_children[node]):
                places[child] = place
                place += sizes[child]
    return nodes, subtree_sizes
