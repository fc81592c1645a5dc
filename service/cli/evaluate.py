"""The command ``evaluate``: several ways of training on the same folds, and whether the difference means anything."""

import json
import shlex
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.command import Command, Refused
from service.cli.files import assignments, data_arguments, read_data, refusals

if TYPE_CHECKING:
    import espalier

__all__ = ["COMMANDS"]

DEFAULT_CANDIDATES = (
    "cart",
    'cart pruning={"method":"reduced_error"}',
    "c45 pruning=null",
    "c45",
)
"""Each published way with its pruning and without."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data",
        metavar="DATA.csv",
        type=Path,
        nargs="+",
        help="rows to learn from and to test on; .gz is read too",
    )
    data_arguments(parser)
    parser.add_argument(
        "--candidate",
        metavar="'PRESET FIELD=VALUE …'",
        action="append",
        default=[],
        help="a way of training; may be given again (default: cart and c45, pruned and unpruned)",
    )
    parser.add_argument("--folds", metavar="K", type=int, help="how many folds (default: 10)")
    parser.add_argument("--holdout", metavar="0.3", type=float, help="one split instead of folds")
    parser.add_argument(
        "--noise", metavar="0.1", type=float, action="append", default=[],
        help="share of training rows given a wrong class; may be given again",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="for everything drawn at random (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a comparison, a line each")


def evaluate(arguments: Namespace) -> int:
    """Compare candidates on each file, at each share of noise."""
    for file in arguments.data:
        dataset = read_data(file, arguments)
        candidates = _candidates(arguments.candidate or DEFAULT_CANDIDATES)
        for noise in arguments.noise or [0.0]:
            begun = time.perf_counter()
            comparison = _compared(dataset, candidates, noise, arguments)
            seconds = time.perf_counter() - begun
            if arguments.json:
                print(json.dumps({"data": str(file), "label_noise": noise, **comparison.to_dict()}), flush=True)
                continue
            for line in _lines(file, dataset, noise, comparison, seconds):
                print(line, flush=True)
    return 0


COMMANDS: Mapping[str, Command] = {
    "evaluate": Command("compare ways of training on the same folds, with a paired test", _arguments, evaluate),
}


def _candidates(texts: Sequence[str]) -> "list[espalier.Candidate]":
    import espalier  # noqa: PLC0415 - as above

    candidates = []
    for text in texts:
        # Quotes belong to JSON values here; only spaces outside of them part the words.
        lexer = shlex.shlex(text, posix=False, punctuation_chars=False)
        lexer.whitespace_split = True
        preset, *fields = list(lexer) or [""]
        with refusals(None):
            candidates.append(espalier.Candidate(text, espalier.training_config(preset, **assignments(fields))))
    return candidates


def _compared(
    dataset: "espalier.Dataset", candidates: "Sequence[espalier.Candidate]", noise: float, arguments: Namespace
) -> "espalier.Comparison":
    import espalier  # noqa: PLC0415 - as above

    if arguments.folds is not None and arguments.holdout is not None:
        raise Refused("give either --folds or --holdout")
    with refusals(None):
        holdout = None
        if arguments.holdout is not None:
            holdout = espalier.holdout_from_dict({"fraction": arguments.holdout, "seed": arguments.seed})
        return espalier.compare(
            dataset, candidates, folds=arguments.folds, holdout=holdout, seed=arguments.seed, label_noise=noise
        )


def _lines(
    file: Path, dataset: "espalier.Dataset", noise: float, comparison: "espalier.Comparison", seconds: float
) -> Iterator[str]:
    runs = f"{comparison.n_folds} folds" if comparison.n_folds > 1 else "one split"
    noisy = f", {noise:.0%} of the training classes wrong" if noise else ""
    yield f"{file}: {dataset.n_rows} rows, {dataset.schema.task}, {runs}{noisy}, {seconds:.1f} s"
    document = comparison.to_dict()
    by_name = {difference["other"]: difference for difference in document["differences"]}
    width = max(len(entry["name"]) for entry in document["candidates"])
    yield f"  {'candidate':{width}s}  {comparison.measure:>8s}  {'± std':>7s}  {'leaves':>8s}  {'p-value':>8s}"
    for entry in document["candidates"]:
        figure: Mapping[str, Any] = entry["figures"][comparison.measure]
        spread = f"{figure['std']:.4f}" if figure["std"] is not None else ""
        difference = by_name.get(entry["name"])
        p_value = "best" if difference is None else f"{difference['p_value']:.3g}"
        leaves = entry["leaves"]["mean"]
        yield f"  {entry['name']:{width}s}  {figure['mean']:8.4f}  {spread:>7s}  {leaves:8.1f}  {p_value:>8s}"
    yield f"  {comparison.verdict}"
    if comparison.differences:
        yield f"  p-values: {comparison.differences[0].test}"
    yield ""
