"""The state of a growing tree: its nodes, their rows, and the pending nodes. Arrays that run full are enlarged."""

import numpy as np
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.espalier.growing.kernels.nodes import enlarge, enlarge_columns


class Tables:
    """Two tables with a row per item, `ints` (int32) and `reals` (float64), and the array `codes`.

    codes: int32, the branch of each category in nominal tests. n: number of items. n_codes: number of entries of
    `codes` in use. The arrays may be longer.
    """

    def __init__(self, n_ints, n_reals):
        self.ints, self.reals = np.empty((64, n_ints), np.int32), np.empty((64, n_reals))
        self.codes = np.empty(64, np.int32)
        self.n = self.n_codes = 0

    def reserve(self, n_items):
        """Make room for `n_items` items in all."""
        if n_items > self.ints.shape[0]:
            more = max(n_items, 2 * self.ints.shape[0])
            self.ints, self.reals = enlarge(self.ints, self.n, more), enlarge(self.reals, self.n, more)

    def reserve_codes(self, n_codes):
        """Make room for `n_codes` categories in all."""
        if n_codes > self.codes.shape[0]:
            self.codes = enlarge(self.codes, self.n_codes, max(n_codes, 2 * self.codes.shape[0]))


class NodeTables(Tables):
    """The nodes in order of creation; `node_columns` names the columns.

    ints: int32 (nodes, N_NODE_INTS). reals: float64 (nodes, N_NODE_REALS). stats: float64 (nodes, classes), or (nodes,
    3) for a regression: weight, mean, squared deviations. codes: int32, branches of the categories of nominal tests.
    When the binary grower grows a tree level by level, the columns are those of `BinaryNodes`; `codes` is not used.
    """

    def __init__(self, width, n_ints=column.N_NODE_INTS, n_reals=column.N_NODE_REALS):
        super().__init__(n_ints, n_reals)
        self.stats = np.empty((64, width))

    def reserve(self, n_nodes):
        """Make room for `n_nodes` nodes in all."""
        Tables.reserve(self, n_nodes)
        if n_nodes > self.stats.shape[0]:
            self.stats = enlarge(self.stats, self.n, self.ints.shape[0])


class SurrogateTables(Tables):
    """The surrogates of all nodes in order of creation; `node_columns` names the columns.

    ints: int32 (surrogates, N_S_INTS). reals: float64 (surrogates, N_S_REALS). codes: int32, the branch of each
    category in nominal surrogates. found_ints, found_reals: the surrogates found at the current node, at most one per
    attribute. branch_of_code, left_of_code, right_of_code, size_of_code: scratch.
    """

    def __init__(self, n_attributes, n_categories):
        super().__init__(column.N_S_INTS, column.N_S_REALS)
        self.found_ints = np.empty((n_attributes, column.N_S_INTS), np.int32)
        self.found_reals = np.empty((n_attributes, column.N_S_REALS))
        self.branch_of_code = np.empty(n_categories, np.int32)
        self.left_of_code, self.right_of_code = np.empty(n_categories), np.empty(n_categories)
        self.size_of_code = np.empty(n_categories)


class RowSequences:
    """The rows of the pending nodes. A node owns the same range of every sequence.

    master: int32, the rows. weight: float64, the weight of each row in its node. orders: int32 (ordered attributes,
    entries), the rows ascending by each attribute. spare, spare_weight: scratch with room for the rows of a node and
    one more entry. top: end of the entries in use.
    """

    def __init__(self, n_rows, orders):
        capacity = max(1, n_rows)
        self.master, self.weight, self.orders = np.empty(capacity, np.int32), np.empty(capacity), orders
        self.spare, self.spare_weight = np.empty(capacity + 1, np.int32), np.empty(capacity + 1)
        self.top = n_rows

    def reserve(self, n_rows, n_moved):
        """Make room for `n_rows` rows in all, and for moving `n_moved` rows at once."""
        capacity = self.master.shape[0]
        if n_rows > capacity:
            more = max(n_rows, capacity + capacity // 2)
            self.master, self.weight = enlarge(self.master, self.top, more), enlarge(self.weight, self.top, more)
            self.orders = enlarge_columns(self.orders, self.top, more)
        if n_moved >= self.spare.shape[0]:
            more = self.master.shape[0] + 1
            self.spare, self.spare_weight = enlarge(self.spare, 0, more), enlarge(self.spare_weight, 0, more)


class Branches:
    """The branches of the current node. `most` is the largest number of branches of a node.

    n: number of branches. fallback: the branch of unknown rows, -1 if they go down every branch with known rows.
    of_row: int32 (n_rows), the branch of each row, -1 if it has none because its value is unknown.
    of_code: int32 (n_categories), the branch of each category of a subset split, -1 between uses.
    weight: float64 (most), weight of the known rows of each branch; unknown_weight is added to branch INT_UNKNOWN.
    n_rows: int64 (most), number of rows of each branch, -1 for a leaf. at: int64 (most), where the next row of each
    branch is written. known_weight: sum of `weight`. unknown_weight, n_unknown: weight and number of unknown rows.
    """

    def __init__(self, n_rows, n_categories, most):
        self.of_row, self.of_code = np.empty(n_rows, np.int32), np.full(n_categories, -1, np.int32)
        self.weight, self.n_rows, self.at = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)


class Candidates:
    """The candidates of all attributes at one node, and the chosen one; `constants` describes the columns."""

    def __init__(self, n_attributes):
        self.ints, self.reals = np.zeros((n_attributes, c.N_INTS), np.int32), np.zeros((n_attributes, c.N_REALS))
        self.chosen_ints, self.chosen_reals = np.zeros(c.N_INTS, np.int32), np.zeros(c.N_REALS)


class PendingNodes:
    """The nodes that are still to be split: a stack, or for best-first growth a heap that also stores their splits.

    node, start, stop: int64 (n), the number and the range of rows of each node. valid_start, valid_stop: int64 (n), the
    range of its validation rows. attribute: int32 (n), the attribute of its split, -1 for none. ints: int32 (n,
    N_INTS), reals: float64 (n, N_REALS), its split as a candidate. heap: int64, indexes into the other arrays.
    """

    def __init__(self):
        self.node, self.start, self.stop = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
        self.valid_start, self.valid_stop = np.empty(64, np.int64), np.empty(64, np.int64)
        self.attribute, self.ints = np.empty(64, np.int32), np.empty((64, c.N_INTS), np.int32)
        self.reals, self.heap = np.empty((64, c.N_REALS)), np.empty(64, np.int64)
        self.n = self.n_heap = 0

    def reserve(self, n_nodes):
        """Make room for `n_nodes` nodes in all."""
        if n_nodes > self.node.shape[0]:
            more = max(n_nodes, 2 * self.node.shape[0])
            self.node, self.start = enlarge(self.node, self.n, more), enlarge(self.start, self.n, more)
            self.stop, self.valid_start = enlarge(self.stop, self.n, more), enlarge(self.valid_start, self.n, more)
            self.valid_stop = enlarge(self.valid_stop, self.n, more)
            self.attribute = enlarge(self.attribute, self.n, more)
            self.ints, self.reals = enlarge(self.ints, self.n, more), enlarge(self.reals, self.n, more)
            self.heap = enlarge(self.heap, self.n_heap, more)


class Growth:
    """The growth of a tree, of its top, or of the subtree of one of its nodes.

    work: `arguments.Workspace`. progress: float64 (2), the share of finished weight (written) and the stop flag (read).
    validation: the validation rows of the pending nodes. validates: whether there are validation rows. delegated: int64
    (n_delegated, 3), node, start and stop of nodes that are left to other calls. n_leaves: number of leaves and pending
    nodes. finished: weight of finished leaves. status: DONE, or the reason why growing ended.
    """

    def __init__(self, work, orders, progress):
        self.work, self.progress = work, progress
        parameters, n_attributes, n_rows = work.parameters, len(work.columns.kind), len(work.targets.weight)
        kind, n_codes = np.asarray(work.columns.kind), np.asarray(work.columns.n_codes)
        n_categories = int(np.max(n_codes[kind != c.ORDERED_KIND], initial=1))
        self.nodes = NodeTables(parameters.n_classes or 3)
        self.surrogates = SurrogateTables(n_attributes, n_categories)
        self.rows = RowSequences(n_rows, orders)
        self.branches = Branches(n_rows, n_categories, max(2, n_categories if parameters.nominal == c.MULTIWAY else 0))
        self.candidates = Candidates(n_attributes)
        self.pending = PendingNodes()
        n_validation = len(work.validation.weight)
        self.validates = n_validation > 0
        self.validation = RowSequences(n_validation, np.empty((0, max(1, n_validation)), np.int32))
        np.asarray(self.validation.master)[:n_validation] = np.arange(n_validation)
        np.asarray(self.validation.weight)[:n_validation] = work.validation.weight
        self.delegated = np.empty((64, 3), np.int64)
        self.n_delegated, self.n_leaves = 0, 1
        self.finished, self.status = 0.0, c.DONE
