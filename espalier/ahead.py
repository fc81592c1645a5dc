"""Compiles what comes after growing in a process of its own, while this one compiles the growing.

    training   compile and grow ──────────────► prune          about 12 s the first time on a machine, for c45
    child        compile the pruning ────► kept on disk        about 8 s of them

numba compiles one function at a time in a process, whatever its threads. So it takes a second process to use a second
core. It leaves nothing but machine code in the cache folder; where it fails, the training compiles for itself.
"""

import contextlib
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.config import TrainingConfig, resolved, training_config
from espalier.dataset import Dataset
from espalier.kernels.interpreting import current
from espalier.linear_fitting import fit_linear_models
from espalier.model import Model, TrainingRecord
from espalier.preparation import Preparation
from espalier.progress import Progress
from espalier.pruners import Pessimistic, ReducedError
from espalier.pruning import PRUNING_FUNCTIONS, PruningRows
from espalier.schema import Feature, FeatureKind, Role, Schema
from espalier.tree import LEAF, Tree, tree_from_parents

__all__ = ["compile_now", "compiling_ahead"]

WAIT_SECONDS: Final = 60.0
"""The child needs about eight seconds; one that hangs must not hold a training up for ever."""
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Phase:
    """What a configuration does after growing, if compiling it takes seconds.

    Attributes:
        module, kernel: The compiled function that takes longest.
        run: Does the phase on a tree of one leaf.
    """

    module: str
    kernel: str
    run: Callable[[], Any]


@contextlib.contextmanager
def compiling_ahead(config: TrainingConfig, watch: Progress) -> Iterator[None]:
    """Compile what `config` does after growing while the block runs; wait for the end of that after it.

    Does nothing where that is compiled already, is compiled in no time, or cannot be kept, and in small work.

    Raises:
        Cancelled: `watch` was stopped while it waited.
    """
    name = _phase_after_growing(config) if current() is None else None
    is_due = name is not None and _is_worth_it(PHASES[name])
    child = _child(name) if is_due and name is not None else None
    if child is None:
        yield
        return
    try:
        yield
        _wait(child, watch)
    finally:
        child.kill()
        child.wait()


def compile_now(name: str) -> None:
    """Do one of `PHASES` on two rows: all that it compiles is kept."""
    PHASES[name].run()


def _phase_after_growing(config: TrainingConfig) -> str | None:
    if config.leaf == "linear":
        return "linear"
    return AFTER_GROWING.get(type(config.pruning))


def _prune_pessimistically() -> None:
    dataset, model = _two_rows(), _model_of_a_leaf("c45")
    PRUNING_FUNCTIONS[Pessimistic](model, Pessimistic(), PruningRows(dataset, None), Progress())


def _prune_by_held_out_rows() -> None:
    dataset, model = _two_rows(), _model_of_a_leaf("reptree")
    PRUNING_FUNCTIONS[ReducedError](model, ReducedError(backfit=True), PruningRows(None, dataset), Progress())


def _fit_linear_models() -> None:
    schema = Schema((Feature("x", FeatureKind.NUMERIC), Feature("y", FeatureKind.NUMERIC, role=Role.TARGET)))
    leaf = _leaf(stats=np.array([[2.0, 0.5, 0.5]]), value=np.full(1, 0.5))
    fit_linear_models(leaf, Dataset(schema, (np.arange(2.0), np.arange(2.0))), (0.0,))


PHASES: Final[Mapping[str, Phase]] = MappingProxyType(
    {
        "pessimistic": Phase("espalier.kernels.subtree_raising", "prune_with_raising", _prune_pessimistically),
        "reduced_error": Phase("espalier.kernels.distribute", "distribute", _prune_by_held_out_rows),
        "linear": Phase("espalier.kernels.linear", "fit_nodes", _fit_linear_models),
    }
)
AFTER_GROWING: Final = MappingProxyType({Pessimistic: "pessimistic", ReducedError: "reduced_error"})


def _two_rows() -> Dataset:
    classes = Feature("y", FeatureKind.NOMINAL, categories=("no", "yes"), role=Role.TARGET)
    # Two attributes: a table of one has another layout, and with it another compiled form.
    numbers = tuple(Feature(name, FeatureKind.NUMERIC) for name in ("x", "z"))
    return Dataset(Schema((*numbers, classes)), (np.zeros(2), np.zeros(2), np.array([0, 1], np.int32)))


def _model_of_a_leaf(preset: str) -> Model:
    dataset = _two_rows()
    record = TrainingRecord(dataset.n_rows, dataset.n_rows, dataset.fingerprint, None, {})
    leaf = _leaf(stats=np.ones((1, 2)), value=np.zeros(1, np.int32))
    config = resolved(training_config(preset), dataset.schema)
    return Model(dataset.schema, config, Preparation(None), leaf, record)


def _leaf(*, stats: npt.NDArray[np.float64], value: npt.NDArray[Any]) -> Tree:
    none = np.full(1, -1, np.int32)
    arrays = {
        "parent": none,
        "feature": none.copy(),
        "test": np.array([LEAF], np.int8),
        "threshold": np.full(1, np.nan),
        "code_start": np.zeros(2, np.int32),
        "code_branch": np.zeros(0, np.int32),
        "fallback": none.copy(),
        "branch_weight": np.zeros(0),
        "weight": np.full(1, 2.0),
        "gain": np.full(1, np.nan),
        "stats": stats,
        "value": value,
    }
    return tree_from_parents(arrays)


def _is_worth_it(phase: Phase) -> bool:
    """Whether the kernel must be compiled, can be kept, and Python is what this process is."""
    # Not at the top: numba is loaded when a tree is grown, not before.
    module = importlib.import_module(phase.module)
    jit = importlib.import_module("espalier.kernels.jit")
    # In a program that holds an interpreter, sys.executable is that program: it must not be started again.
    is_python = Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
    return is_python and bool(jit.must_compile(getattr(module, phase.kernel)))


def _child(name: str) -> subprocess.Popen[bytes] | None:
    nothing = subprocess.DEVNULL
    # -P: no module of the current folder is taken for one of ours.
    command = [sys.executable, "-P", "-m", "espalier.ahead", name]
    try:
        return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)  # noqa: S603 - our own module
    except OSError:
        return None


def _wait(child: subprocess.Popen[bytes], watch: Progress) -> None:
    for _ in range(round(WAIT_SECONDS / LOOK_SECONDS)):
        watch.check()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_SECONDS)
            return


if __name__ == "__main__":
    compile_now(sys.argv[1])
