"""Pruning full-grown trees: the whole cost-complexity path beside scikit-learn's, the other methods beside growing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier

import espalier
from benchmarks.measuring import print_table, timed

N_ROWS = 500_000
N_ROWS_METHODS = 100_000
N_NUMERIC = 10
N_NOMINAL = 10
N_CATEGORIES = 8
NOISE = 0.1


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of numbers, columns of codes, and two classes."""

    numbers: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]

    def dataset(self) -> espalier.Dataset:
        """Give the data set; codes are nominal."""
        labels = tuple(f"v{code}" for code in range(N_CATEGORIES))
        numeric = [espalier.Feature(f"x{place}", espalier.FeatureKind.NUMERIC) for place in range(N_NUMERIC)]
        nominal = [
            espalier.Feature(f"c{place}", espalier.FeatureKind.NOMINAL, categories=labels) for place in range(N_NOMINAL)
        ]
        target = espalier.Feature("y", espalier.FeatureKind.NOMINAL, espalier.Role.TARGET, ("no", "yes"))
        columns = (*self.numbers.T.astype(np.float64), *self.codes.T, self.target)
        return espalier.Dataset(espalier.Schema((*numeric, *nominal, target)), columns)


def run() -> None:
    """Print both tables."""
    _run_path()
    _run_methods()


def _table(n_rows: int) -> Table:
    generator = np.random.default_rng(1)
    numbers = generator.normal(size=(n_rows, N_NUMERIC)).astype(np.float32)
    codes = generator.integers(0, N_CATEGORIES, size=(n_rows, N_NOMINAL)).astype(np.int32)
    signal = numbers[:, 0] * numbers[:, 1] + numbers[:, 2] + (codes[:, 0] > 4) - (codes[:, 1] % 3 == 0) > 0
    flipped = generator.random(n_rows) < NOISE
    return Table(numbers, codes, (signal ^ flipped).astype(np.int32))


def _run_path() -> None:
    table = _table(N_ROWS)
    model = espalier.train(table.dataset(), "cart", nominal="one_vs_rest")
    ours, path = timed(lambda: espalier.pruning_path(model))
    matrix = np.concatenate([table.numbers, table.codes], axis=1).astype(np.float32)
    peer = DecisionTreeClassifier(random_state=0)
    fitting = _once(lambda: peer.fit(matrix, table.target))
    whole = _once(lambda: peer.cost_complexity_pruning_path(matrix, table.target))
    names = ["what", "seconds", "leaves", "trees of the path"]
    rows = [
        ["espalier, path alone", f"{ours:.3f}", str(model.tree.n_leaves), str(len(path.alpha))],
        ["scikit-learn, fit and path", f"{whole:.1f}", str(peer.get_n_leaves()), ""],
        ["scikit-learn, path alone (fit taken off)", f"{whole - fitting:.1f}", "", ""],
        ["ratio, path alone", f"{(whole - fitting) / ours:.0f}", "", ""],
    ]
    print_table(f"Cost-complexity path, {N_ROWS:,} rows, 20 columns, full-grown", names, rows)


def _run_methods() -> None:
    data = _table(N_ROWS_METHODS).dataset()
    held_out = espalier.Holdout(fraction=1 / 3)
    rows = []
    for method, config, holdout, params in (
        ("reduced_error", espalier.training_config("cart"), held_out, {}),
        ("reduced_error, greedy", espalier.training_config("cart"), held_out, {"order": "greedy"}),
        ("pessimistic", espalier.training_config("c45", pruning=None, collapse=False), None, {}),
        ("pessimistic, no raising", espalier.training_config("c45", pruning=None), None, {"raising": False}),
    ):
        rows.append(_row(method, data, config, holdout, params))
    names = ["method", "preset", "rows", "growing s", "pruning s", "share", "leaves before", "after"]
    print_table("Pruning beside growing, 20 columns, full-grown", names, rows)


def _row(
    method: str,
    data: espalier.Dataset,
    config: espalier.TrainingConfig,
    holdout: espalier.Holdout | None,
    params: dict[str, Any],
) -> list[str]:
    """Time growing and pruning alone: what `train` and `prune` measure of the finished tree is left out."""
    from espalier.config import resolved  # noqa: PLC0415 - only here is the inside looked at
    from espalier.growing import grow  # noqa: PLC0415
    from espalier.progress import Progress  # noqa: PLC0415
    from espalier.pruning import PRUNING_FUNCTIONS, PruningRows  # noqa: PLC0415
    from espalier.training import held_out_rows  # noqa: PLC0415

    voting = held_out_rows(holdout, data) if holdout is not None else np.zeros(0, dtype=np.intp)
    kept = data.take(np.setdiff1d(np.arange(data.n_rows), voting)) if holdout is not None else data
    model = espalier.train(kept, config)
    growing, _ = timed(lambda: grow(kept, resolved(config, data.schema)))
    pruner = espalier.pruning_method(method.split(",", maxsplit=1)[0], **params)
    rows = PruningRows(kept, data.take(voting) if holdout is not None else None)
    pruning, pruned = timed(lambda: PRUNING_FUNCTIONS[type(pruner)](model, pruner, rows, Progress()))
    after = pruned.model.tree.n_leaves
    share = f"{100 * pruning / growing:.0f} %"
    return [
        method,
        config.preset,
        str(data.n_rows),
        f"{growing:.3f}",
        f"{pruning:.3f}",
        share,
        str(model.tree.n_leaves),
        str(after),
    ]


def _once(action: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun
