"""Train on a table that is larger than memory: checks, the table's columns on disk, growing, and the work folder."""

import contextlib
import hashlib
import importlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from espalier.config.parameter_constraints import Real
from espalier.config.presets import config_to_dict
from espalier.config.pruning import CostComplexity, ModelTree, RulePostPruning, needs_held_out
from espalier.config.training_parameters import TrainingConfig
from espalier.data.dataset import Dataset
from espalier.data.stored_dataset import StoredDataset, full_disk_refused, store_dataset, store_parts
from espalier.errors import Cancelled, ClusterError, ConfigError, DataError, Fault
from espalier.growing.grow import Grown
from espalier.growing.levels import sort_column
from espalier.growing.levels.checkpoints import PATTERN, load_levels, save_level
from espalier.growing.levels.table import LevelOptions, faults_of_levels, grow_by_levels
from espalier.growing.levels.work_files import ENDING, FolderStore
from espalier.growing.training_data import training_data
from espalier.progress import Progress
from espalier.training.cluster import Cluster
from espalier.version import __version__

fcntl: Any = None  # without fcntl, a folder is not locked, and stays if the process is killed
with contextlib.suppress(ImportError):
    fcntl = importlib.import_module("fcntl")

PREFIX: Final = "espalier-out-of-core-"
LOCK: Final = "espalier.lock"
TRAINING: Final = "training.json"
OWN_FILES: Final = re.compile(
    rf"{re.escape(LOCK)}|training\.(json|part)|level-[0-9]+\.(npz|part)|[a-z]+(-[0-9a-z]+)+(\.part)?"
)
"""The files of a work folder: lock, training, levels, and columns such as ``order-1-0``."""
MIN_MEMORY: Final = 2**24
LEGAL_MEMORY: Final = Real(MIN_MEMORY)
BYTES_A_ROW: Final = 40
"""Measured bytes of memory per row while one column is searched."""
MORE_BYTES_A_ROW: Final = 40
"""Additional bytes per row with the criteria ``sdr`` and ``m5``, and for subtree raising; measured."""
BYTES_A_CELL: Final = 64
"""Bytes of memory per cell of a node that is copied and grown in memory."""


def check_out_of_core(config: TrainingConfig, holdout: Any, memory_limit: int, *, n_rows: int = 0) -> None:
    """Check whether a training can leave its table on disk. The table need not be read yet.

    Args:
        config: The configuration.
        holdout: As in `train`; must be None.
        memory_limit: Maximum bytes of memory for the table.
        n_rows: Number of rows of the table; 0 if it is not known yet.

    Raises:
        ConfigError: The training cannot. Every fault is reported with its path.
    """
    pruning = config.pruning
    faults = faults_of_levels(config)
    message = "cannot be used with a table that is larger than memory: {}"
    if holdout is not None:
        faults.append(Fault("/holdout", "needs_memory", message.format("rows are drawn from a table in memory")))
    is_cross_validated = isinstance(pruning, CostComplexity) and pruning.select == "cv"
    if needs_held_out(pruning) or is_cross_validated or isinstance(pruning, RulePostPruning | ModelTree):
        faults.append(Fault("/pruning", "needs_memory", message.format("the method needs rows of a table in memory")))
    if not LEGAL_MEMORY.test(memory_limit):
        message = f"must be a number of bytes, at least {MIN_MEMORY:,}, not {memory_limit!r}"
        faults.append(Fault("/memory_limit", "not_legal", message))
    elif (needed := _bytes_of_rows(n_rows, config)) > memory_limit:
        message = f"{n_rows:,} rows need {needed:,} bytes, and the limit is {memory_limit:,}"
        faults.append(Fault("/memory_limit", "too_small", message))
    ConfigError.raise_for(faults)


def stored_source(
    source: Any, target: str | None, declared: Mapping[str, Any], folder: Path, progress: Progress
) -> StoredDataset:
    """Store the columns of `source` in `folder`. A source is one or more files or folders, or an iterator of data sets.

    Raises:
        ConfigError: The source is none of these, or `target` or `declared` is given with an iterator.
        DataError: As in `store_dataset`, `store_parts`; or a folder is empty or has a non-file (``.*``, ``_*`` apart).
    """
    if isinstance(source, Iterator):
        if target is not None or declared:
            raise ConfigError([Fault("/target", "not_legal", "must not be given with data sets, which declare it")])
        return store_parts(source, folder, check=progress.check)
    given = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(given, Dataset) or not isinstance(given, list | tuple) or not given:
        message = "must be a path, a list of paths or an iterator of data sets, where memory_limit is given"
        raise ConfigError([Fault("/dataset", "wrong_type", message)])
    paths = [path for each in given for path in _files(Path(each))]
    if target is not None:
        declared = {**declared, "target": target}
    return store_dataset(paths, folder, check=progress.check, **declared)


def grow_in_folder(
    data: Dataset,
    config: TrainingConfig,
    progress: Progress,
    *,
    folder: Path,
    memory_limit: int,
    is_kept: bool,
    cluster: str | None = None,
) -> Grown:
    """Grow the tree of a stored data set. If `is_kept` is true, save each level, and continue after the saved levels.

    `cluster` is the address of a Dask scheduler. Its workers search the columns, and must see the same folder.

    Raises:
        Cancelled: `progress` was stopped.
        ClusterError: The cluster cannot be reached, does not answer or fails; or Dask is not installed.
        ConfigError: As in `check_out_of_core`, such as too many rows for `memory_limit`; or as in `Cluster.at`.
        DataError: The folder holds the levels of another training, or the disk is full.
    """
    check_out_of_core(config, None, memory_limit, n_rows=data.n_rows)
    needed = _bytes_of_rows(data.n_rows, config)
    max_cells = max(memory_limit - needed, memory_limit // 8) // BYTES_A_CELL
    levels = _known_levels(data, config, max_cells, folder) if is_kept else []
    n_saved = len(levels)

    def save(level: Any) -> None:
        nonlocal n_saved
        if is_kept:
            save_level(folder, n_saved, level)
            n_saved += 1

    max_rows_sorted = memory_limit // 2 // sort_column.BYTES_A_ROW
    options = LevelOptions(
        FolderStore(folder), max_cells=max_cells, max_rows_sorted=max_rows_sorted, levels=levels, save=save
    )
    if cluster is None:
        return grow_by_levels(training_data(data, config), config, progress, options)
    with Cluster.at(cluster) as workers:
        options = replace(options, n_workers=workers.n_workers, create_workers=workers.create_workers, ask=workers.ask)
        return grow_by_levels(training_data(data, config), config, progress, options)


@contextmanager
def work_folder(named: Path | None) -> Iterator[Path]:
    """Create a temporary folder or use the named folder, and remove the folder at the end.

    A named folder loses only its columns if the work is stopped, the cluster fails, or another error occurs after
    levels were saved. The training can then continue. Temporary folders of killed processes are removed, too.

    Raises:
        ConfigError: The named folder has other files in it, cannot be used, or is used by another process.
    """
    with ExitStack() as stack:
        folder = _temporary_folder(stack) if named is None else _named_folder(named, stack)
        is_kept = False
        try:
            yield folder
        except BaseException as error:
            is_stopped = isinstance(error, Cancelled | ClusterError | KeyboardInterrupt)
            is_kept = named is not None and (is_stopped or any(folder.glob(PATTERN)))
            raise
        finally:
            if is_kept:
                with contextlib.suppress(OSError):
                    _remove_columns(folder)
            else:
                _remove_folder(folder)


def _bytes_of_rows(n_rows: int, config: TrainingConfig) -> int:
    needs_more = config.how_split.sums_each_cut or getattr(config.pruning, "raising", False)
    return n_rows * (BYTES_A_ROW + MORE_BYTES_A_ROW * needs_more)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        path.stat()  # raises if there is no such file
        return [path]
    files = sorted(each for each in path.iterdir() if not each.name.startswith((".", "_")))
    for file in files:
        if not file.is_file():  # a folder, or a link to nothing
            message = f"{file.name!r} in the folder {path.name!r} is no regular file, so it cannot be read"
            raise DataError([Fault("", "no_file", message)])
    if not files:
        raise DataError([Fault("", "empty", f"there are no files in the folder {path.name!r}")])
    return files


def _temporary_folder(stack: ExitStack) -> Path:
    base = Path(tempfile.gettempdir())
    _remove_abandoned(base)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        # Another process may remove the folder as abandoned before it is locked.
        if _is_locked(stack.enter_context((folder / LOCK).open("w", encoding="ascii"))) and folder.exists():
            return folder


def _named_folder(folder: Path, stack: ExitStack) -> Path:
    in_use = ConfigError([Fault("/work", "in_use", f"another process uses the folder {folder.name!r}")])
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
    except OSError as error:
        raise _not_writable(folder, error) from None
    try:
        # Checked twice, because another process may have removed the folder while it was listed.
        if _has_other_files(folder) and _has_other_files(folder):
            message = f"the folder {folder.name!r} must be new or empty, or that of a training that was interrupted"
            raise ConfigError([Fault("/work", "not_empty", message)])
        lock = stack.enter_context((folder / LOCK).open("w", encoding="ascii"))
        if not _is_locked(lock) or not os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat()):
            raise in_use
        _remove_columns(folder)
    except FileNotFoundError as error:  # the other process removes the folder: its training has ended
        raise _not_writable(folder, error) if folder.is_symlink() else in_use from None
    except OSError as error:
        raise _not_writable(folder, error) from None
    return folder


def _has_other_files(folder: Path) -> bool:
    """Return whether the folder has files but no lock, or a file that no training writes."""
    names = [each.name for each in folder.iterdir()]
    return bool(names) and not (LOCK in names and all(map(OWN_FILES.fullmatch, names)))


def _not_writable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError([Fault("/work", "not_writable", f"the folder {folder} cannot be used: {error.strerror}")])


def _remove_folder(folder: Path) -> None:
    """Remove the folder. The lock goes last, because a process that finds files without a lock refuses the folder."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name != LOCK:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_columns(folder: Path) -> None:
    """Remove all files but the levels, the lock and the file that identifies the training."""
    for path in folder.iterdir():
        if path.name not in (LOCK, TRAINING) and not path.match(PATTERN):
            path.unlink()


def _remove_abandoned(base: Path) -> None:
    """Remove the folders whose locks are free, because their processes have ended."""
    for folder in base.glob(f"{PREFIX}*") if fcntl is not None else ():
        with contextlib.suppress(OSError), (folder / LOCK).open("r+", encoding="ascii") as lock:
            if _is_locked(lock):
                shutil.rmtree(folder, ignore_errors=True)


def _is_locked(lock: IO[str]) -> bool:
    """Lock a file until it is closed. Return whether this process has the lock, or True if the system has no locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _known_levels(data: Dataset, config: TrainingConfig, max_cells: int, folder: Path) -> list[Any]:
    """Return the levels that an interrupted training of the same table and configuration has saved."""
    what = json.dumps([__version__, data.fingerprint, config_to_dict(config), max_cells], sort_keys=True)
    digest = hashlib.sha256(what.encode()).hexdigest()
    path = folder / TRAINING
    known = path.read_text("ascii", errors="replace") if path.exists() else ""
    is_whole = known.endswith("}")
    if is_whole and json.loads(known)["training"] != digest:
        message = "holds levels of another table, configuration, memory_limit or version: delete it, or name another"
        raise DataError([Fault("/work", "other_training", message)])
    if is_whole:
        return load_levels(folder)
    for level in folder.glob(PATTERN):  # a power loss has damaged the file that identifies the training of the levels
        level.unlink()
    unfinished = path.with_suffix(ENDING)
    with full_disk_refused():
        unfinished.write_text(json.dumps({"training": digest}), "ascii")
        unfinished.replace(path)
    return []
