"""Subtrees whose nodes wait to be looked at, one frame after the other: pruning walks through them.

A frame begins with the nodes and pieces as they were::

    frame 0    the nodes of the subtree, and their pieces
    frame 1    those of a branch that took a node's place, spread anew, while frame 0 waits
    frame 2    those of a branch that took the place of one of these, …
"""

from typing import Any, NamedTuple

import numpy as np

from espalier.kernels.buffers import copy, longer
from espalier.kernels.jit import inner, maker

__all__ = ["Frames", "beyond", "first_frame", "mark_raised", "next_test", "with_frame"]


class Frames(NamedTuple):
    """Subtrees whose nodes wait to be looked at, the last node first, one frame after the other.

    order, size, lo, row, weight, code: as in `settling`. base, n_own: where the nodes of each frame begin, and how many
    there are; piece_base: where its pieces begin; at: the place in it that is next.
    """

    order: Any
    size: Any
    lo: Any
    row: Any
    weight: Any
    code: Any
    base: Any
    n_own: Any
    piece_base: Any
    at: Any


@maker
def first_frame(settled, root):  # type: ignore[no-untyped-def]
    """Give the frames of a subtree that nothing was done to: one, with copies of its nodes and pieces."""
    n_own, first = np.int64(settled.size[root]), settled.lo[root]
    n_pieces = beyond(settled.lo, root + n_own, len(settled.order), len(settled.row)) - first
    order, size, lo = np.empty(n_own, np.int32), np.empty(n_own, np.int32), np.empty(n_own, np.int64)
    row, weight, code = np.empty(n_pieces, np.int32), np.empty(n_pieces), np.empty(n_pieces, np.int32)
    copy(settled.order, root, order, 0, n_own)
    copy(settled.size, root, size, 0, n_own)
    for each in range(n_own):
        lo[each] = settled.lo[root + each] - first
    copy(settled.row, first, row, 0, n_pieces)
    copy(settled.weight, first, weight, 0, n_pieces)
    copy(settled.code, first, code, 0, n_pieces)
    base, owns, piece_base = np.zeros(16, np.int64), np.empty(16, np.int64), np.zeros(16, np.int64)
    at = np.empty(16, np.int64)
    owns[0], at[0] = n_own, n_own - 1
    return Frames(order, size, lo, row, weight, code, base, owns, piece_base, at)


@maker
def with_frame(frames, n_frames, end, piece_end, branch, target):  # type: ignore[no-untyped-def]
    """Add a frame with what `spread` gives of a branch.

    end, piece_end: where its nodes and pieces begin. target: classes by row.
    """
    new_order, new_size, new_lo, new_row, new_weight = branch
    n_own, n_pieces = len(new_order), len(new_row)
    order, size, lo, row, weight, code, base, owns, piece_base, at = frames
    if end + n_own > len(order):
        order, size, lo = longer(order, end + n_own), longer(size, end + n_own), longer(lo, end + n_own)
    if piece_end + n_pieces > len(row):
        row, weight = longer(row, piece_end + n_pieces), longer(weight, piece_end + n_pieces)
        code = longer(code, piece_end + n_pieces)
    if n_frames == len(base):
        base, owns, piece_base, at = longer(base, 0), longer(owns, 0), longer(piece_base, 0), longer(at, 0)
    base[n_frames], owns[n_frames], piece_base[n_frames], at[n_frames] = end, n_own, piece_end, n_own - 1
    copy(new_order, 0, order, end, n_own)
    copy(new_size, 0, size, end, n_own)
    for each in range(n_own):
        lo[end + each] = new_lo[each] + piece_end
    copy(new_row, 0, row, piece_end, n_pieces)
    copy(new_weight, 0, weight, piece_end, n_pieces)
    for each in range(n_pieces):
        own = new_row[each]
        code[piece_end + each] = np.int32(target[own if own >= 0 else ~own])
    return Frames(order, size, lo, row, weight, code, base, owns, piece_base, at)


@inner
def next_test(shape, frames, frame, done, root):  # type: ignore[no-untyped-def]
    """Give the place of the next node of a frame that tests something, -1 where there is none, and move on from it."""
    base, place = frames.base[frame], frames.at[frame]
    while place >= 0:
        if frame == 0 and done[root + place] >= 0:
            place = done[root + place] - root - 1
        elif shape[frames.order[base + place]] < 0:
            place -= 1
        else:
            break
    frames.at[frame] = place - 1
    return place


@inner
def mark_raised(frames, frame, piece_end, held):  # type: ignore[no-untyped-def]
    """Make parts of those pieces of the node whose branch was raised whose rows are in parts in the branch now.

    The pieces of the node are as they were before: rows that go one way there may go several now. The frame is that of
    the branch, which ends with `piece_end`; it stands in the place of the node looked at last in the frame before.
    """
    above, first = frame - 1, frames.piece_base[frame]
    raised_at = frames.base[above] + frames.at[above] + 1
    frame_end = frames.base[above] + frames.n_own[above]
    until = beyond(frames.lo, raised_at + frames.size[raised_at], frame_end, first)
    row = frames.row
    for piece in range(first, piece_end):
        if row[piece] < 0:
            held[~row[piece]] = 1.0
    for piece in range(frames.lo[raised_at], until):
        if row[piece] >= 0 and held[row[piece]] > 0.0:
            row[piece] = ~row[piece]
    for piece in range(first, piece_end):
        if row[piece] < 0:
            held[~row[piece]] = 0.0


@inner
def beyond(lo, place, last_place, last_piece):  # type: ignore[no-untyped-def]
    """Give the first piece of a place, or the end of all pieces where there is no such place."""
    return lo[place] if place < last_place else last_piece
