"""The libraries that grow a tree: Espalier's function and estimator, and the peers.

Every library gets the same float32 rows, grows one tree to the same depth, splits down to single rows and prunes
nothing. Time for binning, sorting and conversion counts, but the data set for `espalier.train` is made beforehand.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import espalier
from benchmarks.measuring import Measurable
from benchmarks.tables import FEW, Floats, Rows, Target, read

ESPALIER: Final = "espalier.train"
ESTIMATOR: Final = "espalier, fit"


@dataclass(frozen=True, slots=True)
class Peer:
    """The calls of one library.

    Attributes:
        grow: Grow a tree from the result of `prepare` and a depth (None: no limit).
        predict: Return the class or the number of each row of a float32 array.
        n_leaves: Return the number of leaves of the tree.
        prepare: Convert the rows beforehand; not measured.
        facts: Return further facts.
    """

    grow: Callable[[Any, int | None], Any]
    predict: Callable[[Any, Floats], npt.NDArray[Any]]
    n_leaves: Callable[[Any], int]
    prepare: Callable[[Rows], Any] = lambda rows: rows
    facts: Callable[[Any], Mapping[str, Any]] = lambda _: MappingProxyType({})


def growing(peer: str, path: str, max_depth: int | None) -> Measurable:
    """Return a measurable that grows one tree by one library, for a line of `benchmarks.training`."""
    library = PEERS[peer]()
    training, held_out = read(path)
    data, few = library.prepare(training), library.prepare(training.first(FEW))

    def describe(model: Any) -> Mapping[str, Any]:
        quality = _quality(library.predict(model, held_out.features), held_out.target)
        return {"leaves": library.n_leaves(model), "quality": quality, **library.facts(model)}

    return Measurable(lambda: library.grow(data, max_depth), lambda: library.grow(few, max_depth), describe)


def _quality(answers: npt.NDArray[Any], target: Target) -> float:
    """Return the accuracy, or R² if the target is a number."""
    if target.dtype != np.float64:
        return float(np.mean(answers == target))
    return float(1 - np.mean((answers - target) ** 2) / np.var(target))


def rows_read(model: espalier.Model) -> dict[str, float]:
    """Return the number of rows that all tests of a tree read: the sum of the rows of the inner nodes."""
    tree = model.tree
    return {"rows_read": float(tree.weight[tree.feature >= 0].sum())}


def _espalier() -> Peer:
    def predict(model: espalier.Model, features: Floats) -> npt.NDArray[Any]:
        from espalier.prediction.batch import predict_batch  # noqa: PLC0415 - arrays in, arrays out

        values = np.ascontiguousarray(features.T, dtype=np.float64)
        return predict_batch(model, values).answers

    return Peer(
        grow=lambda dataset, depth: espalier.train(dataset, "cart", max_depth=depth),
        predict=predict,
        n_leaves=lambda model: model.tree.n_leaves,
        prepare=Rows.dataset,
        facts=rows_read,
    )


def _estimator() -> Peer:
    def grow(rows: Rows, depth: int | None) -> Any:
        kind = espalier.TreeRegressor if rows.is_regression else espalier.TreeClassifier
        return kind("cart", max_depth=depth).fit(rows.features, rows.target)

    return Peer(grow, lambda model, features: model.predict(features), lambda model: model.model_.tree.n_leaves)


def _scikit_learn() -> Peer:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: PLC0415 - only its own process

    def grow(rows: Rows, depth: int | None) -> Any:
        kind = DecisionTreeRegressor if rows.is_regression else DecisionTreeClassifier
        return kind(max_depth=depth, random_state=0).fit(rows.features, rows.target)

    return Peer(grow, lambda model, features: model.predict(features), lambda model: int(model.get_n_leaves()))


def _lightgbm() -> Peer:
    import lightgbm  # noqa: PLC0415 - as above

    def grow(rows: Rows, depth: int | None) -> Any:
        if depth is None:
            raise ValueError("grows by leaves up to a number of them: a full tree is not its design")
        parameters = {
            "objective": "regression" if rows.is_regression else "binary",
            "max_depth": depth,
            "num_leaves": 2**depth,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 0.0,
            "learning_rate": 1.0,
            "max_bin": 255,
            "num_threads": _n_threads(),
            "verbosity": -1,
        }
        return lightgbm.train(parameters, lightgbm.Dataset(rows.features, rows.target), num_boost_round=1)

    def predict(model: Any, features: Floats) -> npt.NDArray[Any]:
        predicted = model.predict(features)
        return np.asarray(predicted if model.params["objective"] == "regression" else predicted > 0.5)

    return Peer(grow, predict, lambda model: model.dump_model()["tree_info"][0]["num_leaves"])


def _xgboost() -> Peer:
    import xgboost  # noqa: PLC0415 - as above

    def grow(rows: Rows, depth: int | None) -> Any:
        # At a base score of 0.5, without regularisation, the gain of the first tree is gini's (Friedman 2001).
        parameters = {
            "objective": "reg:squarederror" if rows.is_regression else "binary:logistic",
            "tree_method": "hist",
            "max_depth": depth or 0,
            "max_bin": 256,
            "min_child_weight": 0,
            "lambda": 0,
            "eta": 1,
            "nthread": _n_threads(),
            **({} if rows.is_regression else {"base_score": 0.5}),
        }
        data = xgboost.QuantileDMatrix(rows.features, rows.target, max_bin=256, nthread=_n_threads())
        return xgboost.train(parameters, data, num_boost_round=1), rows.is_regression

    def predict(model: Any, features: Floats) -> npt.NDArray[Any]:
        booster, is_regression = model
        predicted = booster.inplace_predict(features)
        return np.asarray(predicted if is_regression else predicted > 0.5)

    return Peer(grow, predict, lambda model: model[0].get_dump()[0].count("leaf="))


def _ydf() -> Peer:
    import ydf  # noqa: PLC0415 - as above

    ydf.verbose(0)

    def grow(rows: Rows, depth: int | None) -> Any:
        learner = ydf.CartLearner(
            label="y",
            task=ydf.Task.REGRESSION if rows.is_regression else ydf.Task.CLASSIFICATION,
            max_depth=-1 if depth is None else depth + 1,  # YDF counts the nodes of a path, including the root
            min_examples=1,
            validation_ratio=0.0,
            num_threads=_n_threads(),
        )
        return learner.train(_named(rows.features) | {"y": rows.target})

    def predict(model: Any, features: Floats) -> npt.NDArray[Any]:
        predicted = model.predict(_named(features))
        if model.task() == ydf.Task.REGRESSION:
            return np.asarray(predicted)
        labels = np.array([int(label) for label in model.label_classes()])
        return np.asarray(labels[(predicted > 0.5).astype(int) if predicted.ndim == 1 else predicted.argmax(axis=1)])

    return Peer(grow, predict, lambda model: (model.num_nodes() + 1) // 2)


def _named(features: Floats) -> dict[str, Floats]:
    return {f"x{place}": features[:, place] for place in range(features.shape[1])}


def _n_threads() -> int:
    return len(os.sched_getaffinity(0))


PEERS: Final[Mapping[str, Callable[[], Peer]]] = MappingProxyType(
    {
        ESPALIER: _espalier,
        ESTIMATOR: _estimator,
        "scikit-learn": _scikit_learn,
        "LightGBM": _lightgbm,
        "XGBoost": _xgboost,
        "YDF": _ydf,
    }
)
"""Each function imports its library when it is called, in its own process."""
