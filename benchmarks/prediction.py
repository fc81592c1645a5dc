"""The prediction table: many rows, a thousand rows, one row with its path, beside the peers that predict in process."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import espalier
from benchmarks import tables
from benchmarks.answering_peers import ANSWERING_PEERS, LEAVES, SHARES, Way
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
"""Those who grow no full tree, or whose compiler takes minutes for one."""
LEAST: Final[Mapping[tuple[str, int | None], float]] = MappingProxyType({(LEAVES, 8): 4, (LEAVES, None): 3})
"""Target against scikit-learn, by question and depth; to all others at least as fast is asked, for label and shares."""


def run(run: Run) -> None:
    """Print the tables of many rows, of a thousand, and of one."""
    training = tables.write("two_classes", run.rows(N_ROWS_TRAINING), run.folder)
    asked = tables.write("two_classes", run.rows(N_ROWS), run.folder)
    for max_depth in (8, None):
        _show_many(run, training, asked, max_depth)
    for max_depth in (8, None):
        _show_one(run, training, max_depth)


def answering(peer: str, training: str, asked: str, max_depth: int | None) -> Mapping[str, Measurable]:
    """Give what one peer's tree can be asked of many rows and of a thousand."""
    grower = PEERS["scikit-learn" if peer in ANSWERING_PEERS else peer]()
    rows, _ = tables.read(training)
    model = grower.grow(grower.given(rows), max_depth)
    many = tables.read(asked)[0].features
    few = np.ascontiguousarray(many[:THOUSAND])
    facts = {"leaves": grower.n_leaves(model)}
    found = {}
    for question, way in WAYS[peer](model).items():
        found[f"{question}, many"] = Measurable(partial(way, many), partial(way, few), lambda _: facts)
        again = partial(_again, partial(way, few), CALLS_OF_A_THOUSAND)
        found[f"{question}, thousand"] = Measurable(again, calls=CALLS_OF_A_THOUSAND)
    return found


def writing(training: str, max_depth: int | None, file: str) -> Measurable:
    """Grow a tree and write its document: the process that answers single rows has never seen a training."""
    rows, _ = tables.read(training)

    def act() -> None:
        model = espalier.train(rows.dataset(), "cart", max_depth=max_depth)
        Path(file).write_bytes(espalier.to_json(model))

    return Measurable(act)


def answering_one(file: str, training: str) -> Mapping[str, Measurable]:
    """Give the ways to answer one row from a document: the nodes of the path, the answer, the finished explanation."""
    from espalier.prediction.tree_predictor import tree_predictor  # noqa: PLC0415 - the step between the row and its answer

    model = espalier.from_json(Path(file).read_bytes())
    way, cells = tree_predictor(model), tables.read(training)[1].features[0].tolist()
    row = {f"x{place}": cell for place, cell in enumerate(cells)}
    ways: Mapping[str, Callable[[], Any]] = {
        "nodes": lambda: way.follow([0], cells),
        "answer": lambda: espalier.predict(model, [row]),
        "explanation": lambda: espalier.explain(model, [row]),
    }

    def describe(_: Any) -> Mapping[str, Any]:
        return {"leaves": model.tree.n_leaves}

    return {
        name: Measurable(partial(_again, way, CALLS_OF_ONE), way, describe, CALLS_OF_ONE) for name, way in ways.items()
    }


def scikit_learn_one(training: str, max_depth: int | None) -> Measurable:
    """Give scikit-learn's leaf and path of one row."""
    grower = PEERS["scikit-learn"]()
    rows, held_out = tables.read(training)
    model = grower.grow(rows, max_depth)
    one = held_out.features[:1]

    def way() -> Any:
        return model.apply(one), model.decision_path(one)

    return Measurable(
        partial(_again, way, CALLS_OF_ONE), way, lambda _: {"leaves": grower.n_leaves(model)}, CALLS_OF_ONE
    )


def _again(way: Callable[[], Any], calls: int) -> Any:
    result = None
    for _ in range(calls):
        result = way()
    return result


def _espalier(model: Any) -> dict[str, Way]:
    from espalier.prediction.batch import apply, predict_batch  # noqa: PLC0415 - arrays in, arrays out

    return {
        LEAVES: lambda rows: apply(model, rows.T),
        SHARES: lambda rows: predict_batch(model, rows.T, shares=True),
    }


def _scikit_learn(model: Any) -> dict[str, Way]:
    return {LEAVES: model.apply, SHARES: model.predict_proba}


def _lightgbm(model: Any) -> dict[str, Way]:
    threads = len(os.sched_getaffinity(0))
    return {
        LEAVES: lambda rows: model.predict(rows, pred_leaf=True, num_threads=threads),
        SHARES: lambda rows: model.predict(rows, num_threads=threads),
    }


def _xgboost(model: Any) -> dict[str, Way]:
    import xgboost  # noqa: PLC0415 - only in its own process

    booster = model[0]
    return {
        LEAVES: lambda rows: booster.predict(xgboost.DMatrix(rows), pred_leaf=True),
        SHARES: booster.inplace_predict,
    }


def _ydf(model: Any) -> dict[str, Way]:
    def named(rows: tables.Floats) -> dict[str, tables.Floats]:
        return {f"x{place}": rows[:, place] for place in range(rows.shape[1])}

    def leaves(rows: tables.Floats) -> Any:
        return model.predict_leaves({**named(rows), "y": np.zeros(len(rows), np.int64)})  # it asks for labels, too

    return {LEAVES: leaves, SHARES: lambda rows: model.predict(named(rows))}


WAYS: Final[Mapping[str, Callable[[Any], dict[str, Way]]]] = MappingProxyType(
    {
        ESPALIER: _espalier,
        "scikit-learn": _scikit_learn,
        "LightGBM": _lightgbm,
        "XGBoost": _xgboost,
        "YDF": _ydf,
        **ANSWERING_PEERS,
    }
)


def _show_many(run: Run, training: str, asked: str, max_depth: int | None) -> None:
    peers = [peer for peer in NAMES_OF_PEERS if max_depth is not None or peer not in SHALLOW_ONLY]
    found: dict[tuple[str, str, str], Measured] = {}
    for question in (LEAVES, SHARES):
        asked_of = [peer for peer in peers if question == SHARES or peer not in SHARES_ONLY]
        for size in ("many", "thousand"):
            found |= {(question, size, peer): Measured(fault="not asked") for peer in asked_of}
    subjects = [
        Subject(
            "|".join(key),
            "benchmarks.prediction:answering",
            {"peer": key[2], "training": training, "asked": asked, "max_depth": max_depth},
            f"{key[0]}, {key[1]}",
        )
        for key in found
    ]
    measured = measure(subjects)
    found = {key: measured["|".join(key)] for key in found}
    lines = [_line(key, each, found, max_depth) for key, each in found.items()]
    faults = [f"{peer}, {question}: {each.fault}" for (question, _, peer), each in found.items() if each.fault]
    leaves = next((each.facts["leaves"] for each in found.values() if each.facts), 0)
    title = f"Answering rows of 20 float32, tree of {_depth(max_depth)} ({leaves:,} leaves)"
    names = ("rows", "question", "who", "seconds", "x espalier", "target", "")
    sizes = {"many": f"{run.rows(N_ROWS):,}", "thousand": f"{THOUSAND:,}"}
    print_table(title, names, [[sizes[line[0]], *line[1:]] for line in lines], *dict.fromkeys(faults))


def _line(
    key: tuple[str, str, str], each: Measured, found: Mapping[tuple[str, str, str], Measured], max_depth: int | None
) -> list[str]:
    question, size, peer = key
    ours = found[question, size, ESPALIER].seconds
    least = None
    if size == "many" and peer != ESPALIER:
        least = LEAST.get((question, max_depth)) if peer == "scikit-learn" else None
        least = 1.0 if least is None and question == SHARES else least
    holds = "" if least is None else "missed"
    if least is not None and each.seconds and ours and each.seconds / ours >= least:
        holds = "holds"
    target = "" if least is None else f">= {least:g}"
    who = "espalier" if peer == ESPALIER else peer
    return [size, question, who, seconds_text(each.seconds), ratio_text(each.seconds, ours), target, holds]


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
    found = measure(subjects)
    lines = []
    for (name, each), limit in zip(found.items(), [*limits.values(), None], strict=True):
        holds = "" if limit is None or each.seconds is None else "holds" if each.seconds <= limit else "missed"
        target = "" if limit is None else f"<= {seconds_text(limit)}"
        lines.append([name, seconds_text(each.seconds), target, holds])
    faults = [f"{name}: {each.fault}" for name, each in found.items() if each.fault]
    title = f"One row, in process, tree of {_depth(max_depth)}"
    print_table(title, ("what", "seconds", "target", ""), lines, *faults)


def _depth(max_depth: int | None) -> str:
    return "full depth" if max_depth is None else f"depth {max_depth}"
