"""The result of a level: for each open node a mark (split and branches of the rows), a subtree, or nothing (a leaf).

The levels so far, the prepared columns, the target and the weights determine everything else. So a lost worker can be
replaced, and an interrupted training can continue::

    columns  ──scan──►  candidates  ──choose──►  splits  ──mark──►  branch vectors  ──partition──►  next level
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from espalier.arrays import Array
from espalier.growing.parallel import Job

OpenNode = Job
"""A node that may be split; see `Job`. The row sequences of a level have no rows of other nodes."""


@dataclass(frozen=True, slots=True)
class Split:
    """The split that was chosen for a node: the attribute, and its candidate's row of each table (see `ScanResult`)."""

    attribute: int
    ints: Array
    reals: Array


@dataclass(frozen=True, slots=True, eq=False)
class BranchVector:
    """The branch of each row of a node, ascending by row; -1 for a row that is divided among the branches.

    Attributes:
        n_rows: Number of rows.
        packed: One bit per row (uint8) if there are two branches and no -1, else the branches (int8 or int32).
    """

    n_rows: int
    packed: Array

    @classmethod
    def of(cls, branches: Array, n_branches: int) -> "BranchVector":
        """Return the vector of `branches`, integers (rows)."""
        if n_branches == 2 and len(branches) and branches.min() >= 0:
            return cls(len(branches), np.packbits(branches.astype(np.bool_)))
        kind = np.int8 if n_branches <= np.iinfo(np.int8).max else np.int32
        return cls(len(branches), branches.astype(kind))

    def branches(self) -> Array:
        """Return the branches, int32 (rows)."""
        if self.packed.dtype == np.uint8:
            return np.unpackbits(self.packed, count=self.n_rows).astype(np.int32)
        return self.packed.astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A node that was split.

    Attributes:
        node: Its row of the node tables: ints and reals. The first child's number and the start of the node's
            codes are set when the level is appended.
        children: Its children's rows of the node tables: ints, reals, statistics.
        codes: int32, the branch of each category of a nominal test; empty for another test.
        weights: float64 (branches), `weight` of the kernels' `Branches`; empty in the binary grower.
        known_weight: The sum of these weights; 0 in the binary grower.
        n_rows: int64 (branches), the number of rows of each child that may be split, -1 for a leaf.
        vector: The branch of each row.
    """

    node: tuple[Array, Array]
    children: tuple[Array, Array, Array]
    codes: Array
    weights: Array
    known_weight: float
    n_rows: Array
    vector: BranchVector

    @property
    def n_needed(self) -> int:
        """Number of rows of the children that may be split."""
        return int(self.n_rows[self.n_rows > 0].sum())


@dataclass(frozen=True, slots=True, eq=False)
class Subtree:
    """The node tables of a subtree that was grown in memory. The first node is the open node itself."""

    ints: Array
    reals: Array
    stats: Array
    codes: Array


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The results of one level, keyed by the index of the open node. A node without a result is a leaf."""

    marks: Mapping[int, Mark]
    subtrees: Mapping[int, Subtree]


def next_open(open_nodes: list[OpenNode], level: Level, first_child: Mapping[int, int]) -> list[OpenNode]:
    """Return the open nodes of the next level.

    In each row sequence, the rows of a split node are replaced by those of its open children, the last child's first.
    The rows of nodes that are not split are dropped.

    Args:
        open_nodes: The open nodes of this level.
        level: The results of this level.
        first_child: Node number of the first child, keyed by the place of its parent in `open_nodes`.
    """
    answer, at = [], 0
    for place, mark in level.marks.items():
        depth = open_nodes[place].depth + 1
        for branch in reversed(range(len(mark.n_rows))):
            n_rows = int(mark.n_rows[branch])
            if n_rows > 0:
                answer.append(OpenNode(first_child[place] + branch, depth, at, at + n_rows))
                at += n_rows
    return answer
