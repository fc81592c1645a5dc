"""Predict many rows, a thousand rows, and one row with its path, beside peers that predict in process."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import espalier
from benchmarks import tables
from benchmarks.answering_peers import ANSWERING_PEERS, LEAVES, SHARES, Predictor
from benchmarks.measuring import Measurable, Measured, Subject, measure, print_table, ratio_text, seconds_text
from benchmarks.peers import ESPALIER, PEERS
from benchmarks.run import Run

N_ROWS_TRAINING: Final = 500_000
N_ROWS: Final = 1_000_000
THOUSAND: Final = 1_000
CALLS_OF_A_THOUSAND: Final = 200
CALLS_OF_ONE: Final = 2_000
NAMES_OF_PEERS: Final = (ESPALIER, "scikit-learn", "LightGBM", "XGBoost", "YDF", *ANSWERING_PEERS)
SHARES_ONLY: Final = frozenset({"onnxruntime", "tl2cgen"})
SHALLOW_ONLY: Final = frozenset({"LightGBM", "tl2cgen"})
"""Peers that grow no full tree, or whose compiler takes minutes for one."""
LEAST: Final[Mapping[tuple[str, int | None], float]] = MappingProxyType({(LEAVES, 8): 4, (LEAVES, None): 3})
"""Targets for many rows against scikit-learn, by question and depth. For `SHARES`, the target is 1 for every peer."""


def run(run: Run) -> None:
    """Print the tables of predicting many rows, a thousand rows, and one row."""
    training = tables.write("two_classes", run.rows(N_ROWS_TRAINING), run.folder)
    queries = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    for max_depth in (8, None):
        _show_many(run, training, queries, max_depth)
    for max_depth in (8, None):
        _show_one(run, training, max_depth)


def answering(peer: str, training: str, queries: str, max_depth: int | None) -> Mapping[str, Measurable]:
    """Return measurables in which a peer predicts `LEAVES` and `SHARES` (if it can) of many and of a thousand rows."""
    grower = PEERS["scikit-learn" if peer in ANSWERING_PEERS else peer]()
    training_rows, _ = tables.read(training)
    model = grower.grow(grower.prepare(training_rows), max_depth)
    many = tables.read(queries)[0].features
    few = np.ascontiguousarray(many[:THOUSAND])
    facts = {"leaves": grower.n_leaves(model)}
    measurables = {}
    for question, predict in PREDICTORS[peer](model).items():
        measurables[f"{question}, many"] = Measurable(partial(predict, many), partial(predict, few), lambda _: facts)
        repeated = partial(_repeated, partial(predict, few), CALLS_OF_A_THOUSAND)
        measurables[f"{question}, thousand"] = Measurable(repeated, calls=CALLS_OF_A_THOUSAND)
    return measurables


def writing(training: str, max_depth: int | None, file: str) -> Measurable:
    """Return a measurable that grows a tree and writes the document from which `answering_one` predicts."""
    rows, _ = tables.read(training)

    def act() -> None:
        model = espalier.train(rows.dataset(), "cart", max_depth=max_depth)
        Path(file).write_bytes(espalier.to_json(model))

    return Measurable(act)


def answering_one(file: str, training: str) -> Mapping[str, Measurable]:
    """Return measurables that compute the path, the answer and the explanation of one row from a stored tree."""
    from espalier.prediction.tree_predictor import tree_predictor  # noqa: PLC0415 - an internal function

    model = espalier.from_json(Path(file).read_bytes())
    predictor, cells = tree_predictor(model), tables.read(training)[1].features[0].tolist()
    row = {f"x{place}": cell for place, cell in enumerate(cells)}
    calls: Mapping[str, Callable[[], Any]] = {
        "nodes": lambda: predictor.follow([0], cells),
        "answer": lambda: espalier.predict(model, [row]),
        "explanation": lambda: espalier.explain(model, [row]),
    }

    def describe(_: Any) -> Mapping[str, Any]:
        return {"leaves": model.tree.n_leaves}

    return {
        name: Measurable(partial(_repeated, call, CALLS_OF_ONE), call, describe, CALLS_OF_ONE)
        for name, call in calls.items()
    }


def scikit_learn_one(training: str, max_depth: int | None) -> Measurable:
    """Return a measurable of scikit-learn's leaf and path of one row."""
    grower = PEERS["scikit-learn"]()
    rows, held_out = tables.read(training)
    model = grower.grow(rows, max_depth)
    row = held_out.features[:1]

    def predict() -> Any:
        return model.apply(row), model.decision_path(row)

    return Measurable(
        partial(_repeated, predict, CALLS_OF_ONE), predict, lambda _: {"leaves": grower.n_leaves(model)}, CALLS_OF_ONE
    )


def _repeated(predict: Callable[[], Any], calls: int) -> Any:
    result = None
    for _ in range(calls):
        result = predict()
    return result


def _espalier(model: Any) -> dict[str, Predictor]:
    from espalier.prediction.batch import predict_batch  # noqa: PLC0415 - arrays in, arrays out

    return {
        LEAVES: lambda rows: predict_batch(model, rows.T).leaves,
        SHARES: lambda rows: predict_batch(model, rows.T, shares=True),
    }


def _scikit_learn(model: Any) -> dict[str, Predictor]:
    return {LEAVES: model.apply, SHARES: model.predict_proba}


def _lightgbm(model: Any) -> dict[str, Predictor]:
    threads = len(os.sched_getaffinity(0))
    return {
        LEAVES: lambda rows: model.predict(rows, pred_leaf=True, num_threads=threads),
        SHARES: lambda rows: model.predict(rows, num_threads=threads),
    }


def _xgboost(model: Any) -> dict[str, Predictor]:
    import xgboost  # noqa: PLC0415 - only in its own process

    booster = model[0]
    return {
        LEAVES: lambda rows: booster.predict(xgboost.DMatrix(rows), pred_leaf=True),
        SHARES: booster.inplace_predict,
    }


def _ydf(model: Any) -> dict[str, Predictor]:
    def named(rows: tables.Floats) -> dict[str, tables.Floats]:
        return {f"x{place}": rows[:, place] for place in range(rows.shape[1])}

    def leaves(rows: tables.Floats) -> Any:
        return model.predict_leaves({**named(rows), "y": np.zeros(len(rows), np.int64)})  # YDF requires labels, too

    return {LEAVES: leaves, SHARES: lambda rows: model.predict(named(rows))}


PREDICTORS: Final[Mapping[str, Callable[[Any], dict[str, Predictor]]]] = MappingProxyType(
    {
        ESPALIER: _espalier,
        "scikit-learn": _scikit_learn,
        "LightGBM": _lightgbm,
        "XGBoost": _xgboost,
        "YDF": _ydf,
        **ANSWERING_PEERS,
    }
)


def _show_many(run: Run, training: str, queries: str, max_depth: int | None) -> None:
    peers = [peer for peer in NAMES_OF_PEERS if max_depth is not None or peer not in SHALLOW_ONLY]
    results: dict[tuple[str, str, str], Measured] = {}
    for question in (LEAVES, SHARES):
        peers_of_question = [peer for peer in peers if question == SHARES or peer not in SHARES_ONLY]
        for size in ("many", "thousand"):
            results |= {(question, size, peer): Measured(fault="not measured") for peer in peers_of_question}
    subjects = [
        Subject(
            "|".join(key),
            "benchmarks.prediction:answering",
            {"peer": key[2], "training": training, "queries": queries, "max_depth": max_depth},
            f"{key[0]}, {key[1]}",
        )
        for key in results
    ]
    measured = measure(subjects)
    results = {key: measured["|".join(key)] for key in results}
    lines = [_line(key, result, results, max_depth) for key, result in results.items()]
    faults = [f"{peer}, {question}: {result.fault}" for (question, _, peer), result in results.items() if result.fault]
    leaves = next((result.facts["leaves"] for result in results.values() if result.facts), 0)
    title = f"Answering rows of 20 float32, tree of {_depth(max_depth)} ({leaves:,} leaves)"
    names = ("rows", "question", "who", "seconds", "x espalier", "target", "")
    sizes = {"many": f"{run.rows(N_ROWS):,}", "thousand": f"{THOUSAND:,}"}
    print_table(title, names, [[sizes[line[0]], *line[1:]] for line in lines], *dict.fromkeys(faults))


def _line(
    key: tuple[str, str, str], result: Measured, results: Mapping[tuple[str, str, str], Measured], max_depth: int | None
) -> list[str]:
    question, size, peer = key
    ours = results[question, size, ESPALIER].seconds
    least = None
    if size == "many" and peer != ESPALIER:
        least = LEAST.get((question, max_depth)) if peer == "scikit-learn" else None
        least = 1.0 if least is None and question == SHARES else least
    holds = "" if least is None else "missed"
    if least is not None and result.seconds and ours and result.seconds / ours >= least:
        holds = "holds"
    target = "" if least is None else f">= {least:g}"
    library = "espalier" if peer == ESPALIER else peer
    return [size, question, library, seconds_text(result.seconds), ratio_text(result.seconds, ours), target, holds]


def _show_one(run: Run, training: str, max_depth: int | None) -> None:
    file = str(run.folder / f"one-{max_depth}.json")
    growing = {"training": training, "max_depth": max_depth}
    measure([Subject("tree", "benchmarks.prediction:writing", {**growing, "file": file})], repetitions=1)
    arguments = {"file": file, "training": training}
    limits = {"nodes": 3e-6, "answer": None, "explanation": 25e-6}
    titles = {
        "nodes": "espalier, encoded row to its nodes",
        "answer": "espalier.predict",
        "explanation": "espalier.explain",
    }
    subjects = [Subject(titles[act], "benchmarks.prediction:answering_one", arguments, act) for act in limits]
    subjects.append(Subject("scikit-learn, apply and decision_path", "benchmarks.prediction:scikit_learn_one", growing))
    results = measure(subjects)
    lines = []
    for (name, result), limit in zip(results.items(), [*limits.values(), None], strict=True):
        holds = "" if limit is None or result.seconds is None else "holds" if result.seconds <= limit else "missed"
        target = "" if limit is None else f"<= {seconds_text(limit)}"
        lines.append([name, seconds_text(result.seconds), target, holds])
    faults = [f"{name}: {result.fault}" for name, result in results.items() if result.fault]
    title = f"One row, in process, tree of {_depth(max_depth)}"
    print_table(title, ("what", "seconds", "target", ""), lines, *faults)


def _depth(max_depth: int | None) -> str:
    return "full depth" if max_depth is None else f"depth {max_depth}"
