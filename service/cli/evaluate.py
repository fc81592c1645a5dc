"""The command ``evaluate``: train candidates on the same rows, and test whether they differ significantly."""

import json
import re
import textwrap
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import espalier
from service.cli import Command, Refused, files, options
from service.cli.progress import shown_progress

CARTS: Final = (
    "cart",
    "cart pruning.method=reduced_error",
    "cart pruning.method=cost_complexity pruning.select=validation",
)
CANDIDATES: Final[Mapping[str, tuple[str, ...]]] = {
    "classification": (*CARTS, "c45 pruning=null", "c45 pruning.raising=false", "c45"),
    "regression": (*CARTS, "m5 pruning=null", "m5"),
}
"""Default candidates by task: published systems, pruned and unpruned."""

MEASURES: Final = {"classification": "accuracy", "regression": "rmse"}
WIDTH: Final = 100
WIDTHS: Final = (35, 8, 7, 7, 7, 7, 7, 6)  # of the table's columns, which fit WIDTH with two spaces between them
SMALL: Final = 1e-3
SIGNIFICANT: Final = 0.05

ABOUT: Final = """\
leaves: mean over the folds. p: the probability that two equally good candidates differ at least as much as this one and
the best. pruned: how much better the pruned tree is than the unpruned one, with its p. effect: whether
pruning makes it better or worse; chance if p is 0.05 or more."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="DATA", type=Path, nargs="+", help=f"rows to train and to test on: {files.FORMATS}"
    )
    options.data_arguments(parser)
    parser.add_argument(
        "--candidate",
        metavar="'PRESET FIELD=VALUE …'",
        action="append",
        default=[],
        help="a preset and fields; repeatable (default: pruned and unpruned cart and c45; for numbers, cart and m5)",
    )
    parser.add_argument("--folds", metavar="K", type=int, help="number of folds (default: 10)")
    options.holdout_arguments(parser, "test on one split instead of folds")
    parser.add_argument(
        "--noise", metavar="0.1", type=float, action="append", default=[],
        help="share of training rows that get a wrong class; can be repeated",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON per comparison")


def evaluate(arguments: Namespace) -> int:
    """Compare candidates on each file, at each share of noise."""
    if arguments.folds is not None and arguments.holdout is not None:
        raise Refused("give either --folds or --holdout")
    datasets = [(file, files.read_data(file, arguments)) for file in arguments.data]
    score = "/".join(dict.fromkeys(MEASURES[str(dataset.schema.task)] for _, dataset in datasets))
    heading = ["candidate", score, "± std", "leaves", "p", "pruned", "p", "effect"]
    head, endings = [_line(heading), _line(["-" * width for width in WIDTHS])], []
    for file, dataset in datasets:
        candidates = _candidates(arguments.candidate or CANDIDATES[str(dataset.schema.task)])
        for noise in arguments.noise or [0.0]:
            begun = time.perf_counter()
            with shown_progress() as progress:
                comparison = espalier.compare(
                    dataset,
                    candidates,
                    folds=arguments.folds,
                    holdout=options.holdout_of(arguments.holdout, dataset.schema, {"seed": arguments.seed}),
                    seed=arguments.seed,
                    label_noise=noise,
                    progress=progress,
                )
            seconds = time.perf_counter() - begun
            if arguments.json:
                print(json.dumps({"dataset": str(file), **comparison.to_dict()}), flush=True)
                continue
            name = files.stem_of(file) + (f", {noise * 100:g}% noise" if noise else "")
            print(*head, name, *_lines(comparison), "", sep="\n", flush=True)
            head = []
            endings += [_ending(name, dataset, comparison, seconds), *_notes(comparison)]
    if endings:
        for text in (*endings, ABOUT):
            print("\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)))
    return 0


COMMANDS: Mapping[str, Command] = {
    "evaluate": Command("compare training configurations on the same folds, with a paired test", _arguments, evaluate)
}


def _candidates(texts: Sequence[str]) -> "list[espalier.Candidate]":
    candidates = []
    for text in texts:
        # A value may have spaces if it is JSON, and a text in it may have spaces that a field seems to follow.
        preset, *fields = re.findall(r'(?:"(?:[^"\\]|\\.)*"|\s(?!\s*[\w.]+=)|\S)+', text.strip()) or [""]
        with files.about(f"--candidate {text!r}"):
            config = espalier.training_config(preset, **options.assignments(fields, besides="preset"))
        candidates.append(espalier.Candidate(text, config))
    return candidates


def _lines(comparison: "espalier.Comparison") -> Iterator[str]:
    chances = {difference.other: _chance(difference.p_value) for difference in comparison.differences}
    effects = {effect.pruned: effect for effect in comparison.pruning_effects}
    for entry in comparison.to_dict()["candidates"]:
        name, figure, effect = entry["name"], entry["figures"][comparison.measure], effects.get(entry["name"])
        first, *others = textwrap.wrap(
            name, WIDTHS[0], subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]
        cells = [
            first,
            _figure(figure["mean"]),
            "" if figure["std"] is None else _figure(figure["std"]),
            f"{entry['leaves']['mean']:.1f}",
            chances.get(name, "best"),
        ]
        if effect is not None:
            word = "chance" if effect.verdict == "may be chance" else effect.verdict
            cells += [_figure(effect.gain, sign="+"), _chance(effect.p_value), word]
        yield from (_line(cells), *others)


def _line(cells: Sequence[str]) -> str:
    """Align the first and the last column left, the others right; trailing cells may be missing."""
    padded = [
        cell.ljust(width) if place in (0, len(WIDTHS) - 1) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, WIDTHS, strict=False))
    ]
    return "  ".join(padded).rstrip()


def _figure(value: float, *, sign: str = "-") -> str:
    """Return a figure with four decimals, or with four significant digits if 0 < its magnitude < `SMALL`."""
    return f"{value:{sign}.4f}" if value == 0 or abs(value) >= SMALL else f"{value:{sign}.4g}"


def _chance(p_value: float) -> str:
    """Return a p-value with two significant digits, or with more if needed to show whether it is below 0.05."""
    texts = (f"{p_value:.{digits}g}" for digits in range(2, 18))
    return next(text for text in texts if (float(text) < SIGNIFICANT) == (p_value < SIGNIFICANT))


def _notes(comparison: "espalier.Comparison") -> Iterator[str]:
    names_of: dict[str, list[str]] = {}
    for result in comparison.results:
        for note in result.notes:
            names_of.setdefault(note, []).append(result.candidate.name)
    for note, names in names_of.items():
        which = "" if len(names) == len(comparison.results) else f" ({', '.join(names)})"
        yield f"test rows{which}: {note}"


def _ending(name: str, dataset: "espalier.Dataset", comparison: "espalier.Comparison", seconds: float) -> str:
    split = f"one split with {comparison.n_tested} test rows"
    runs = f"{comparison.n_folds} folds" if comparison.n_folds > 1 else split
    test = f" ({comparison.differences[0].test})" if comparison.differences else ""
    what = f"{name}, {dataset.n_rows} rows, {dataset.schema.task}, {runs}, {seconds:.1f} s"
    return f"{what}: {comparison.verdict}{test}"
