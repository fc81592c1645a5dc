"""The command ``evaluate``: several ways of training on the same folds, and whether the difference means anything."""

import json
import shlex
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from service.cli import Command, Refused
from service.cli.files import FORMATS, assignments, data_arguments, holdout_of, progress_reporter, read_data, refusals

if TYPE_CHECKING:
    import espalier

CANDIDATES: Final[Mapping[str, tuple[str, ...]]] = {
    "classification": (
        "cart",
        "cart pruning.method=reduced_error",
        "cart pruning.method=cost_complexity pruning.select=validation",
        "c45 pruning=null",
        "c45 pruning.raising=false",
        "c45",
    ),
    "regression": (
        "cart",
        "cart pruning.method=reduced_error",
        "cart pruning.method=cost_complexity pruning.select=validation",
        "m5 pruning=null",
        "m5",
    ),
}
"""Each published way with its prunings and without, by the task."""

SMALL: Final = 1e-3
SIGNIFICANT: Final = 0.05

ABOUT: Final = """\
leaves: mean over the folds. p: chance of a difference this large from the best if there were none; further right, of
the pruned from the unpruned tree. by pruning: how much better the pruned one is; it means something where p < 0.05."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        nargs="+",
        help=f"rows to learn from and to test on: {FORMATS}",
    )
    data_arguments(parser)
    parser.add_argument(
        "--candidate",
        metavar="'PRESET FIELD=VALUE …'",
        action="append",
        default=[],
        help="a way of training; may be given again (default: cart and c45, or cart and m5, pruned and unpruned)",
    )
    parser.add_argument("--folds", metavar="K", type=int, help="how many folds (default: 10)")
    parser.add_argument(
        "--holdout",
        metavar="0.3|JSON|FILE",
        help='one split instead of folds: a share drawn by --seed, {"rows": [0, 5]} counted from 0, {"fraction": 0.3, '
        '"seed": 1, "stratified": true}, or a file of its own to test on',
    )
    parser.add_argument(
        "--noise", metavar="0.1", type=float, action="append", default=[],
        help="share of training rows given a wrong class; may be given again",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="for everything drawn at random (default: 0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a comparison, a line each")


def evaluate(arguments: Namespace) -> int:
    """Compare candidates on each file, at each share of noise."""
    datasets = [(file, read_data(file, arguments)) for file in arguments.data]
    for file, dataset in datasets:
        if dataset.schema.task is None:
            raise Refused(f"{file}: names no column to learn: give --target, or say so in a file of its schema")
    table, watch = None, progress_reporter()
    endings = []
    for file, dataset in datasets:
        candidates = _candidates(arguments.candidate or CANDIDATES[str(dataset.schema.task)])
        for noise in arguments.noise or [0.0]:
            begun = time.perf_counter()
            comparison = _compared(dataset, candidates, noise, arguments, watch)
            seconds = time.perf_counter() - begun
            if arguments.json:
                print(json.dumps({"dataset": str(file), **comparison.to_dict()}), flush=True)
                continue
            table = table or _Table(datasets, arguments)
            for line in table.block(file, noise, comparison):
                print(line, flush=True)
            endings.append(_ending(file, dataset, noise, comparison, seconds))
            endings += _notes(comparison)
    if table is not None:
        print("", *endings, ABOUT, sep="\n")
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
            candidates.append(
                espalier.Candidate(text, espalier.training_config(preset, **assignments(fields, besides="preset")))
            )
    return candidates


def _compared(
    dataset: "espalier.Dataset",
    candidates: "Sequence[espalier.Candidate]",
    noise: float,
    arguments: Namespace,
    watch: "espalier.Progress",
) -> "espalier.Comparison":
    import espalier  # noqa: PLC0415 - as above

    if arguments.folds is not None and arguments.holdout is not None:
        raise Refused("give either --folds or --holdout")
    with refusals(None):
        return espalier.compare(
            dataset,
            candidates,
            folds=arguments.folds,
            holdout=holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed}),
            seed=arguments.seed,
            label_noise=noise,
            progress=watch,
        )


class _Table:
    """The table, printed a comparison at a time: its columns are as wide as any of them needs."""

    def __init__(self, datasets: "Sequence[tuple[Path, espalier.Dataset]]", arguments: Namespace) -> None:
        tasks = [str(dataset.schema.task) for _, dataset in datasets]
        texts = arguments.candidate or [text for task in tasks for text in CANDIDATES[task]]
        measures = {"classification": "accuracy", "regression": "rmse"}
        score = "/".join(dict.fromkeys(measures[task] for task in tasks))
        names = ["data", "noise", "candidate", score, "± std", "leaves", "p", "by pruning", "p", "which is"]
        widths = [max(len(_name(file)) for file, _ in datasets), 5, max(map(len, texts)), 8, 7, 8, 8, 10, 8, 13]
        self.widths = [max(width, len(name)) for width, name in zip(widths, names, strict=True)]
        self.head: list[str] = [self._line(names), self._line(["-" * width for width in self.widths])]

    def block(self, file: Path, noise: float, comparison: "espalier.Comparison") -> Iterator[str]:
        """Give the lines of one comparison; the head comes before the first."""
        yield from self.head
        self.head = [""]
        best = {difference.other: _chance(difference.p_value) for difference in comparison.differences}
        effects = {effect.pruned: effect for effect in comparison.pruning_effects}
        for place, entry in enumerate(comparison.to_dict()["candidates"]):
            figure = entry["figures"][comparison.measure]
            spread = _figure(figure["std"]) if figure["std"] is not None else ""
            effect = effects.get(entry["name"])
            said = [_figure(effect.gain, sign="+"), _chance(effect.p_value), effect.verdict] if effect else ["", "", ""]
            where = [_name(file), f"{noise:.0%}"] if place == 0 else ["", ""]
            yield self._line(
                [
                    *where,
                    entry["name"],
                    _figure(figure["mean"]),
                    spread,
                    f"{entry['leaves']['mean']:.1f}",
                    best.get(entry["name"], "best"),
                    *said,
                ]
            )

    def _line(self, cells: Sequence[str]) -> str:
        texts = {0, 2, 9}
        padded = [
            cell.ljust(width) if place in texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, self.widths, strict=True))
        ]
        return "  ".join(padded).rstrip()


def _figure(value: float, *, sign: str = "-") -> str:
    """Give four decimals, or four digits where those would not show them: an error in the target's own unit."""
    return f"{value:{sign}.4f}" if value == 0 or abs(value) >= SMALL else f"{value:{sign}.4g}"


def _chance(p_value: float) -> str:
    """Give two digits, or as many as show on which side of 0.05 it is."""
    texts = (f"{p_value:.{digits}g}" for digits in range(2, 18))
    return next(text for text in texts if (float(text) < SIGNIFICANT) == (p_value < SIGNIFICANT))


def _notes(comparison: "espalier.Comparison") -> Iterator[str]:
    """Give what is to be known of the rows that were tested on, once for the candidates of which it is true."""
    of_note: dict[str, list[str]] = {}
    for result in comparison.results:
        for note in result.notes:
            of_note.setdefault(note, []).append(result.candidate.name)
    for note, names in of_note.items():
        whose = "" if len(names) == len(comparison.results) else f" ({', '.join(names)})"
        yield f"  of the test rows{whose}: {note}"


def _name(file: Path) -> str:
    name = file.name.removesuffix(".gz")
    return name.removesuffix(Path(name).suffix)


def _ending(
    file: Path, dataset: "espalier.Dataset", noise: float, comparison: "espalier.Comparison", seconds: float
) -> str:
    split = f"one split with {comparison.n_tested} rows to test on"
    runs = f"{comparison.n_folds} folds" if comparison.n_folds > 1 else split
    noisy = f", {noise:.0%} of the training classes wrong" if noise else ""
    test = f" ({comparison.differences[0].test})" if comparison.differences else ""
    what = f"{_name(file)}, {dataset.n_rows} rows, {dataset.schema.task}, {runs}{noisy}, {seconds:.1f} s"
    return f"{what}: {comparison.verdict}{test}"
