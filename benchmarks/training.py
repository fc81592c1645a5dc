"""Growing one tree: Espalier's cart beside scikit-learn's, same rows, same stopping rules."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import espalier
from benchmarks.measuring import print_table, timed


@dataclass(frozen=True, slots=True)
class Case:
    """A table of numbers and how deep to grow."""

    name: str
    features: npt.NDArray[np.float32]
    target: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    max_depth: int | None

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return self.target.dtype == np.float64


def run() -> None:
    """Print the training table."""
    names = [
        "rows x columns",
        "depth",
        "espalier s",
        "scikit-learn s",
        "ratio",
        "leaves",
        "leaves there",
        "train accuracy or R2",
    ]
    print_table("Training one tree (cart, exact)", names, [_row(case) for case in _cases()])


def _cases() -> Iterator[Case]:
    generator = np.random.default_rng(1)
    for n_rows, n_columns, max_depth in ((10_000, 20, None), (10_000, 20, 8), (100_000, 20, 8)):
        features = generator.normal(size=(n_rows, n_columns)).astype(np.float32)
        signal = features[:, 0] * features[:, 1] + features[:, 2] + generator.normal(size=n_rows)
        yield Case(f"{n_rows} x {n_columns}, 2 classes", features, (signal > 0).astype(np.int64), max_depth)
        yield Case(f"{n_rows} x {n_columns}, regression", features, signal.astype(np.float64), max_depth)


def _row(case: Case) -> list[str]:
    peer_class = DecisionTreeRegressor if case.is_regression else DecisionTreeClassifier
    dataset = espalier.dataset_from_columns(
        {
            **{f"x{place}": column.tolist() for place, column in enumerate(case.features.T.astype(np.float64))},
            "y": case.target.tolist(),
        },
        target="y",
        task="regression" if case.is_regression else "classification",
    )
    config = espalier.training_config("cart", max_depth=case.max_depth)
    ours, model = timed(lambda: espalier.train(dataset, config))
    peers, peer = timed(lambda: peer_class(max_depth=case.max_depth, random_state=0).fit(case.features, case.target))
    figures = model.training.train
    quality = figures.get("accuracy", 1 - figures.get("rmse", 0.0) ** 2 / float(np.var(case.target)))
    return [
        case.name,
        "full" if case.max_depth is None else str(case.max_depth),
        f"{ours:.3f}",
        f"{peers:.3f}",
        f"{peers / ours:.2f}",
        str(model.tree.n_leaves),
        str(peer.get_n_leaves()),
        f"{quality:.4f} / {peer.score(case.features, case.target):.4f}",
    ]
