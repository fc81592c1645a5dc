"""Answers to many rows at once, as arrays: the same answers as `espalier.prediction` gives one by one.

Few rows are answered by numpy and plain Python; for many, compiled code is worth loading. Several threads take the
rows, each a stretch at a time, in a table of its own that is written again and again and so stays in the cache::

    columns of the data   |#########|#########|#########|  …        rows 0 … 4095, 4096 … 8191, …
    the thread's table    |#########|                               the tested attributes of one stretch
    leaves, answers       |#########|#########|  …                  from a table of the leaves' answers

A row that a missing value sends down several branches has the leaf -1; what its leaves answer is added up.
"""

import sys
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from espalier.cells import Cells, MatrixCells
from espalier.linear_prediction import LinearAnswers
from espalier.model import Model, OperatingPoint
from espalier.node_answers import shares_at
from espalier.prediction import answerer, router
from espalier.progress import Progress
from espalier.routing import Stretch, in_parts, leaves_by_levels, routed, stretches, ways_of
from espalier.rows import EncodedRow
from espalier.rule_prediction import firing_rules, rule_router
from espalier.rules import RuleList
from espalier.small_work import always_compiled, waits_for_compiler
from espalier.tree import LEAF, Tree

__all__ = [
    "BulkAnswers",
    "answer_table",
    "class_codes",
    "class_shares",
    "leaves_of",
    "load_routing",
    "many_answers",
    "numbers",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Array = npt.NDArray[Any]

TIE: Final = 1e-9
"""Shares closer than this are added up again one row at a time, where the rounding is defined."""
MANY: Final = 50_000
"""Rows from which compiled code is worth loading."""
MANY_IF_LOADED: Final = 1_000
MANY_VISITS: Final = 1_000_000
"""Rows times nodes from which compiled code is worth it, once loaded, where a row may go every way."""


@dataclass(frozen=True, slots=True)
class BulkAnswers:
    """Answers to many rows.

    Attributes:
        leaves: int32 (rows); the leaf, or the number of the rule; -1 where several leaves answer.
        answers: int32 class codes or float64 numbers (rows).
        shares: float64 (rows, classes), no columns for a regression; None unless asked for.
        share_of: float64 (rows); the share of the class that was named for each row; None unless classes were named.
    """

    leaves: Ints
    answers: Array
    shares: Floats | None
    share_of: Floats | None


def many_answers(
    model: Model,
    cells: Cells | Array,
    *,
    shares: bool = False,
    classes: Array | None = None,
    progress: Progress | None = None,
) -> BulkAnswers:
    """Answer every row.

    Args:
        model: A tree or a list of rules.
        cells: Encoded attributes, or a matrix of them (attributes, rows).
        shares: Give the share of each class.
        classes: Codes, (rows): give the share of this class of each row; 0 where the code is negative.
        progress: Stopped by another thread.

    Raises:
        Cancelled: `progress` was stopped.
    """
    given = MatrixCells(cells) if isinstance(cells, np.ndarray) else cells
    n_rows, n_classes = given.n_rows, len(model.schema.classes)
    made = BulkAnswers(
        np.empty(n_rows, np.int32),
        np.empty(n_rows, np.int32 if n_classes else np.float64),
        np.empty((n_rows, n_classes)) if shares else None,
        np.empty(n_rows) if classes is not None else None,
    )
    work = _Answering(model, given, made, classes, progress if progress is not None else Progress())
    if isinstance(model.body, RuleList) or not _are_many(model.body, n_rows):
        work.few(0, n_rows)
    else:
        ways_of(model)
        in_parts(n_rows, work.many)
    return made


def _are_many(tree: Tree, n_rows: int) -> bool:
    """Whether compiled code is worth loading, or worth using where it is loaded."""
    if n_rows >= MANY:
        return True
    if (n_rows < MANY_IF_LOADED and n_rows * tree.n_nodes < MANY_VISITS) or not _is_loaded():
        return False
    # Looked at last: in a large tree it takes longer than the answers to a few rows.
    return n_rows >= MANY_IF_LOADED or bool(np.any((tree.fallback < 0) & (tree.test != LEAF)))


def _is_loaded() -> bool:
    """Whether compiled code can be had without loading numba and without compiling."""
    if "numba" not in sys.modules:
        return False
    from espalier.kernels import route as kernel  # noqa: PLC0415
    from espalier.kernels.jit import must_compile  # noqa: PLC0415

    return bool(getattr(kernel.route, "overloads", ())) or waits_for_compiler() or not must_compile(kernel.route)


def load_routing(model: Model, *, compiles: bool) -> None:
    """Load the compiled code that finds leaves; `compiles` says whether it is compiled where it is not kept."""
    from espalier.kernels import route as kernel  # noqa: PLC0415 - loaded by who asks for it
    from espalier.kernels.jit import must_compile  # noqa: PLC0415 - as above

    if compiles or not must_compile(kernel.route):
        with always_compiled():
            leaves_of(model, np.zeros((len(model.schema.attributes), MANY_IF_LOADED)))


def leaves_of(model: Model, cells: Cells | Array) -> Ints:
    """Give the leaf, or the rule, of each row, int32 (rows); -1 where several leaves answer."""
    given = MatrixCells(cells) if isinstance(cells, np.ndarray) else cells
    if isinstance(model.body, RuleList) or not _are_many(model.body, given.n_rows):
        return _few_leaves(model, _written(model, given, 0, given.n_rows))
    leaves = np.empty(given.n_rows, np.int32)
    ways_of(model)

    def route(low: int, high: int) -> None:
        for stretch in stretches(model, given, low, high):
            routed(model, stretch, leaves[stretch.low : stretch.high])

    in_parts(given.n_rows, route)
    return leaves


def class_shares(model: Model, cells: Cells | Array) -> Floats:
    """Give the share of each class, float64 (rows, classes)."""
    shares = many_answers(model, cells, shares=True).shares
    return shares if shares is not None else np.empty((0, 0))


def class_codes(model: Model, cells: Cells | Array) -> Ints:
    """Give the class of each row by its place among the schema's classes, int32 (rows)."""
    return many_answers(model, cells).answers


def numbers(model: Model, cells: Cells | Array) -> Floats:
    """Give the number that answers each row of a regression, float64 (rows)."""
    return many_answers(model, cells).answers


class _Answering:
    """One answering of many rows: what it reads and where it writes."""

    def __init__(self, model: Model, cells: Cells, made: BulkAnswers, classes: Array | None, watch: Progress) -> None:
        self.model, self.cells, self.made, self.classes, self.watch = model, cells, made, classes, watch
        self.values, self.linear = _values_of(model)
        self.table = answer_table(model)

    def few(self, low: int, high: int) -> None:
        """Answer rows ``low:high`` by numpy, those with several leaves one by one."""
        values = _written(self.model, self.cells, low, high)
        leaves = _few_leaves(self.model, values)
        self.made.leaves[low:high] = leaves
        self._settle(low, high, values)
        for row in np.flatnonzero(leaves < 0).tolist():
            self.watch.check()
            answer = answerer(self.model).answer(EncodedRow(tuple(values[:, row].tolist()), (), ()))
            self.made.answers[low + row] = answer.code if answer.value is None else answer.value
            self._write_shares(np.array([low + row]), np.array([[share for _, share in answer.distribution]]))

    def many(self, low: int, high: int) -> None:
        """Answer rows ``low:high`` by compiled code."""
        for stretch in stretches(self.model, self.cells, low, high):
            self.watch.check()
            leaves = self.made.leaves[stretch.low : stretch.high]
            routed(self.model, stretch, leaves)
            self._settle(stretch.low, stretch.high, stretch.matrix)
            if leaves.min() < 0:
                self._mix(stretch, np.flatnonzero(leaves < 0))

    def _settle(self, low: int, high: int, values: Array) -> None:
        """Write what one leaf each answers; where several do, what is written means nothing yet."""
        made, leaves = self.made, self.made.leaves[low:high]
        if self.linear is None:
            _taken(self.values, leaves, made.answers[low:high])
        else:
            made.answers[low:high] = self.linear.many(np.maximum(leaves, 0), values)
        if made.shares is not None and self.model.schema.classes:
            _taken(self.table, leaves, made.shares[low:high])
        if made.share_of is not None and self.classes is not None:
            wanted = self.classes[low:high]
            shares = self.table[np.maximum(leaves, 0), np.maximum(wanted, 0)]
            made.share_of[low:high] = np.where(wanted < 0, 0.0, shares)

    def _mix(self, stretch: Stretch, several: npt.NDArray[np.intp]) -> None:
        from espalier.kernels import route as kernel  # noqa: PLC0415

        packed, table = ways_of(self.model), self.table
        mixed = np.empty((len(several), table.shape[1]))
        scratch = np.empty(packed.most_open, np.int32), np.empty(packed.most_open)
        kernel.mix(packed.ways, table, stretch.values, stretch.row_step, several, *scratch, mixed)
        if not self.model.schema.classes:
            self.made.answers[stretch.low + several] = mixed[:, 0]
            return
        codes, unsure = _decided(mixed, self.model.operating_point)
        for place in np.flatnonzero(unsure).tolist():
            cells = stretch.matrix[:, several[place]].astype(np.float64).tolist()
            codes[place] = router(self.model).answer(EncodedRow(tuple(cells), (), ())).code
        self.made.answers[stretch.low + several] = codes
        self._write_shares(stretch.low + several, mixed)

    def _write_shares(self, rows: npt.NDArray[np.intp], shares: Floats) -> None:
        """Write the shares of rows that several leaves answer."""
        if self.made.shares is not None:
            self.made.shares[rows] = shares
        if self.made.share_of is not None and self.classes is not None:
            wanted = self.classes[rows]
            of_each = shares[np.arange(len(rows)), np.maximum(wanted, 0)]
            self.made.share_of[rows] = np.where(wanted < 0, 0.0, of_each)


def _written(model: Model, cells: Cells, low: int, high: int) -> Floats:
    """Give rows ``low:high`` as float64 (attributes, rows)."""
    values = np.empty((len(model.schema.attributes), high - low))
    for attribute, column in enumerate(values):
        cells.write(attribute, low, high, column)
    return values


def _few_leaves(model: Model, values: Floats) -> Ints:
    """Give the leaf, or the rule, of each row without compiled code."""
    if isinstance(model.body, RuleList):
        return firing_rules(model.schema, model.body, values)
    return leaves_by_levels(model, values)


def _taken(table: Array, leaves: Ints, into: Array) -> None:
    """Write the row of a table of each leaf; of the first leaf where several answer."""
    table.take(leaves, axis=0, out=into, mode="clip")


def _decided(shares: Floats, point: OperatingPoint | None) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Give the code of the class of each row's shares, and where rounding might have decided it."""
    rivals = shares
    unsure = np.zeros(len(shares), np.bool_)
    if point is not None:
        unsure |= np.abs(shares[:, point.code] - point.probability) <= TIE
        rivals = shares.copy()
        rivals[:, point.code] = -1.0
    unsure |= np.count_nonzero(rivals >= rivals.max(axis=1)[:, None] - TIE, axis=1) > 1
    return (shares.argmax(axis=1) if point is None else point.decide_each(shares)), unsure


def _values_of(model: Model) -> tuple[Array, LinearAnswers | None]:
    """Give what each leaf or rule answers, and what answers instead where leaves are linear models.

    A tree's compact form is lists, which take long to make of a large tree and serve single rows only.
    """
    if isinstance(model.body, RuleList):
        return rule_router(model).value, None
    if model.linear is None and (model.config.smoothing is None or model.schema.classes):
        return model.tree.value, None
    way = router(model)
    return way.value, way.linear


_TABLES: WeakKeyDictionary[Model, Floats] = WeakKeyDictionary()


def answer_table(model: Model) -> Floats:
    """Give what each node or rule answers: float64 (nodes, classes), for a regression (nodes, 1).

    A node without training rows has the distribution of the nearest node above that has some. Made on first use and
    kept as long as the model.
    """
    found = _TABLES.get(model)
    if found is None:
        found = _TABLES[model] = _table_of_rules(model) if isinstance(model.body, RuleList) else _table_of_tree(model)
        found.flags.writeable = False
    return found


def _table_of_rules(model: Model) -> Floats:
    answers = rule_router(model).answers
    if model.schema.classes:
        return np.array([[share for _, share in answer.distribution] for answer in answers])
    return np.array([[answer.value or 0.0] for answer in answers])


def _table_of_tree(model: Model) -> Floats:
    tree = model.tree
    if not model.schema.classes:
        values: Floats = np.asarray(_values_of(model)[0], dtype=np.float64).view()
        return values[:, None]
    return shares_at(tree, np.arange(tree.n_nodes), laplace=model.config.leaf_probability == "laplace")
