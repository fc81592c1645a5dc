"""The arrays that the kernels of growing write while they look for a split, made once a tree.

What a configuration does not ask for is None: numba leaves out the branches that would use it, and a first start
compiles only what its tree needs. There are four forms, so that few are compiled and kept: without `Groups`, with
`Groups`, with `Subsets` besides, and with `Rare`, which has all.
"""

from typing import Any, NamedTuple


class Place(NamedTuple):
    """A node that looks for a split."""

    start: int
    stop: int
    weight: float
    impurity: float
    centre: float  # what regression statistics are taken around


class Work(NamedTuple):
    """Scratch arrays of every tree."""

    weight: Any  # float64 (n): weight of each row in the node at hand
    by_class: Any  # float64 (n, 2): that weight in the first class, and in the second; n = 0 unless there are just two
    node: Any  # float64 (width): statistics of the node
    known: Any  # float64 (width), and so on down to corner_right
    unknown: Any
    left: Any
    right: Any
    trial: Any
    best_left: Any
    best_right: Any
    ahead_left: Any  # after the next block of rows
    ahead_right: Any
    corner_left: Any
    corner_right: Any


class Groups(NamedTuple):
    """Of nominal attributes; P = most categories that can meet in a node."""

    group: Any  # float64 (P, width): statistics of each category present
    group_rows: Any  # int32 (P)
    present: Any  # int32 (P): its code
    slot: Any  # int32 (most categories): code -> place in `present`, -1 between uses
    branch: Any  # int32 (P): branch of each category present, in the order of `place`
    place: Any  # int32 (P): places in `present`, ascending by code
    scratch: Any  # int32 (P)
    key: Any  # float64 (P)


class Subsets(NamedTuple):
    """Of nominal attributes whose categories are divided in two."""

    order: Any  # int32 (P)
    direction: Any  # float64 (3, classes)


class Rare(NamedTuple):
    """Of what few configurations ask for, and what they give.

    Medians (`absolute_error`); an expert's cut points; cuts at boundaries and medians; costs; the chi-square test;
    surrogates; best-first growth; validation rows.
    """

    target_rank: Any  # int32 (n): dense rank of the target, for medians; else one entry
    target_value: Any  # float64: distinct targets, ascending
    bucket: Any  # int32 (n): rows by category
    bucket_start: Any  # int32 (P + 1)
    sequence: Any  # int32 (n): rows along an order of categories
    forward: Any  # float64 (n + 1), and the next three: deviations of prefixes
    backward: Any
    forward_all: Any
    backward_all: Any
    weight_tree: Any  # float64 (distinct targets + 1), and the next
    sum_tree: Any
    expert_start: Any  # int64 (F + 1)
    expert_rank: Any  # int32: rank of the largest training value at or below an expert's threshold, -1 below all
    expert_value: Any  # float64
    valid_codes: Any  # float64 (F, v): validation rows, values or codes, NaN missing; v = 0: none is looked at
    valid_target: Any  # float64 (v): class or number
    valid_weight: Any  # float64 (v)
    progress: Any  # float64 (2): the flag that stops growing, for what takes long within one attribute
