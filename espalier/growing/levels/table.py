"""Grow the tree of a table level by level: check the configuration, prepare the columns, grow, finish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from espalier.arrays import Array
from espalier.config.training_parameters import TrainingConfig
from espalier.errors import Fault
from espalier.growing import binary_data
from espalier.growing.encode import ColumnShape, column_table
from espalier.growing.grow import Grown, finished_tree, grow_parameters
from espalier.growing.kernels.arguments import Workspace
from espalier.growing.levels.binary_columns import BinaryWorker, prepare_binary_columns
from espalier.growing.levels.binary_method import BinaryMethod
from espalier.growing.levels.general_columns import GeneralWorker, prepare_columns
from espalier.growing.levels.general_method import GeneralMethod
from espalier.growing.levels.grow_levels import Ask, Growing, Method, Worker, ask_in_turn
from espalier.growing.levels.marks import Level
from espalier.growing.levels.work_files import ArrayStore
from espalier.growing.training_data import TrainingData
from espalier.growing.workspace import work_arrays
from espalier.progress import Progress

MAX_CELLS_COPIED: Final = 4_000_000
REASONS: Final[dict[str, tuple[Callable[[TrainingConfig], bool], str]]] = {
    "criterion": (lambda config: config.how_split.of_medians, "medians need the ranks of all targets"),
    "missing": (lambda config: config.missing == "surrogate", "surrogates compare each column with every other"),
    "max_leaf_nodes": (lambda config: config.max_leaf_nodes is not None, "best-first order is not level by level"),
    "validation_stop": (lambda config: config.validation_stop, "each split is tested on held-out rows"),
    "cut_points": (lambda config: config.cut_points is not None, "only thresholds between training values are tried"),
    "leaf": (lambda config: config.leaf == "linear", "a linear model needs several columns of the same rows at once"),
}
"""For each field with unsupported values, a test for such a value, and the reason."""


def faults_of_levels(config: TrainingConfig) -> list[Fault]:
    """Return a fault of each field whose value is not supported if a tree is grown level by level."""
    message = "this value cannot be used with a table that is larger than memory: {}"
    return [
        Fault(f"/{name}", "needs_memory", message.format(reason))
        for name, (is_given, reason) in REASONS.items()
        if is_given(config)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class WorkerSpec:
    """What `build_worker` needs to create a worker, in this process or in another one.

    Attributes:
        data: The training data. The worker reads the prepared columns, not the columns of `data`.
        columns: Maps each of the worker's columns to its number of codes if the binary grower codes it, else to None.
        shapes: Shapes of all columns for the general grower; None for the binary grower.
        name: Distinguishes the files of the worker.
    """

    data: TrainingData
    config: TrainingConfig
    columns: Mapping[int, int | None]
    shapes: tuple[ColumnShape, ...] | None
    name: str


def build_worker(spec: WorkerSpec, store: ArrayStore, progress: Progress) -> Worker:
    """Return a worker in this process that holds the columns of the spec."""
    parameters = grow_parameters(spec.data, spec.config)
    if spec.shapes is None:
        rows = binary_data.row_data(spec.data)
        return BinaryWorker(parameters, rows, spec.columns, store, name=spec.name, progress=progress)
    work = _workspace(parameters, spec.data, spec.config, spec.shapes, progress)
    shapes = {place: spec.shapes[place] for place in spec.columns}
    return GeneralWorker(spec.data, shapes, store, work=work, progress=progress)


@dataclass(frozen=True, slots=True)
class LevelOptions:
    """How a tree is grown level by level; no option changes the tree.

    Attributes:
        store: Where the prepared columns are written.
        max_cells: A node of at most this number of cells (rows times columns) is grown in memory, unless
            `cost_function` is set. At most `grow_levels.BATCH_SIZE` times this number of cells is copied at a time.
        max_rows_sorted: Maximum number of rows of a column of numbers or dates that are sorted at a time.
        n_workers: Maximum number of parts that the columns are divided into.
        levels: The levels of an interrupted training, which continues after them.
        save: Called with each new level.
        create_workers: Returns a worker for each spec; by default, the workers are in this process.
        ask: Sends a request to all workers.
    """

    store: ArrayStore
    max_cells: int = MAX_CELLS_COPIED
    max_rows_sorted: int = MAX_CELLS_COPIED
    n_workers: int = 1
    levels: Sequence[Level] = ()
    save: Callable[[Level], None] = field(default=lambda _level: None)
    create_workers: Callable[[Sequence[WorkerSpec], ArrayStore, Progress], Sequence[Worker]] = field(
        default=lambda specs, store, progress: [build_worker(spec, store, progress) for spec in specs]
    )
    ask: Ask = ask_in_turn


def grow_by_levels(data: TrainingData, config: TrainingConfig, progress: Progress, options: LevelOptions) -> Grown:
    """Grow the tree of a table level by level; `config.criterion` must be set.

    Raises:
        Cancelled: The progress was stopped.
        DataError: The tree is too large, or the work folder cannot be written to.
    """
    progress.begin("sorting")
    parameters, store, max_rows = grow_parameters(data, config), options.store, options.max_rows_sorted
    columns: dict[int, int | None]
    shapes: tuple[ColumnShape, ...] | None = None
    method: Method
    if config.cut_points is None and binary_data.is_for_binary_grower(parameters, data):
        columns = dict(enumerate(prepare_binary_columns(data, store, progress, max_rows=max_rows)))
        method = BinaryMethod(parameters, binary_data.row_data(data), data, progress)
    else:
        shapes = prepare_columns(data, config, store, progress, max_rows=max_rows)
        columns = dict.fromkeys(range(len(shapes)))
        # This workspace is for comparing candidates, not for rows of the table: one row is enough.
        first_row = replace(data, target=data.target[:1], weight=data.weight[:1])
        work = _workspace(parameters, first_row, config, shapes, progress)
        method = GeneralMethod(shapes, data.attributes, work, store, progress)
    parts = np.array_split(np.arange(len(columns)), max(1, min(options.n_workers, len(columns))))
    specs = [
        WorkerSpec(data, config, {place: columns[place] for place in part.tolist()}, shapes, str(at))
        for at, part in enumerate(parts)
    ]
    workers = options.create_workers(specs, store, progress)
    growing = Growing(method, workers, progress, options.max_cells, options.save, options.ask, list(options.levels))
    growing.grow()
    nodes, is_heuristic = method.finish(growing.tables, growing.subtrees)
    return finished_tree(nodes, is_heuristic, data, config)


def _workspace(
    parameters: Any, data: TrainingData, config: TrainingConfig, shapes: Sequence[ColumnShape], progress: Progress
) -> Any:
    """Return a workspace without targets, whose columns have no cells."""
    none: list[Array] = [np.zeros(0) for _ in shapes]
    no_cells = np.zeros((len(shapes), 0), np.int32)
    columns = column_table(shapes, no_cells, none)
    return Workspace(parameters=parameters, columns=columns, **work_arrays(data, config, columns, None, progress))
