"""The training table: an exact tree of Espalier beside a tree of each peer, with the same rows and stopping rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from benchmarks import bandwidth, tables
from benchmarks.measuring import REPETITIONS, Measured, Subject, measure, print_table, ratio_text, seconds_text
from benchmarks.peers import ESPALIER, ESTIMATOR
from benchmarks.run import Run

ONE_THREAD: Final = "espalier.train, 1 thread"
PEERS: Final = ("scikit-learn", "LightGBM", "XGBoost", "YDF")
ONE_TREE_A_CLASS: Final = "grows a tree for each class"
NO_FULL_TREE: Final = "grows by leaves up to a number of them: a full tree is not its design"
NAMES: Final = (
    "who", "seconds", "x train", "x fit", "leaves", "accuracy", "peak MB", "x data", "x read limit"
)  # fmt: skip
OURS: Final = (ESPALIER, ESTIMATOR, ONE_THREAD)
MANY_ROWS: Final = 50_000
TURNS_OF_FEW_ROWS: Final = 15
"""Turns of tables with few rows, on which a training takes so little time that three turns are not enough."""
AT_LEAST_AS_FAST: Final = {"XGBoost": 1.0, "YDF": 1.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One table of the benchmark.

    Attributes:
        title: Title of the data.
        table: Name of the table, as in `tables.write`.
        n_rows: Rows of the full run.
        max_depth: Largest depth; None: down to pure leaves.
        targets: By peer, the smallest ratio of the peer's seconds to ours, for `espalier.train` and for the estimator.
        without: Peers that are left out, with the reason.
        is_judged: Whether accuracy and leaves must be close to scikit-learn's; otherwise the difference is only shown.
    """

    title: str
    table: str
    n_rows: int
    max_depth: int | None
    targets: Mapping[str, float]
    without: Mapping[str, str] = field(default_factory=dict)
    is_judged: bool = False

    @property
    def name(self) -> str:
        """Return the title of the data and the depth."""
        return f"{self.title}, {'full-grown' if self.max_depth is None else f'depth {self.max_depth}'}"


FULL: Final = {"LightGBM": NO_FULL_TREE}
MANY: Final = {"LightGBM": ONE_TREE_A_CLASS, "XGBoost": ONE_TREE_A_CLASS}
FULL_NUMBERS: Final = FULL | {"XGBoost": "with one leaf per row it took 1 000 times the data's memory at 2 500 rows"}
AT_8: Final = {"LightGBM": 1.0}
CASES: Final = (
    Case("1 M x 20, 2 classes", "two_classes", 1_000_000, None, {"scikit-learn": 25}, FULL, is_judged=True),
    Case("1 M x 20, 2 classes", "two_classes", 1_000_000, 8, {"scikit-learn": 25} | AT_8, is_judged=True),
    Case("500 k mixed, 10 + 10 coded", "mixed", 500_000, None, {"scikit-learn": 20}, FULL),
    Case("500 k mixed, 10 + 10 coded", "mixed", 500_000, 8, {"scikit-learn": 20} | AT_8),
    Case("465 k x 54, 7 classes", "land", 465_000, None, {"scikit-learn": 6}, MANY),
    Case("465 k x 54, 7 classes", "land", 465_000, 8, {"scikit-learn": 6}, MANY),
    Case("500 k x 20, regression", "regression", 500_000, None, {"scikit-learn": 14}, FULL_NUMBERS),
    Case("500 k x 20, regression", "regression", 500_000, 8, {"scikit-learn": 20} | AT_8),
    Case("100 k x 20, 3 classes", "three_classes", 100_000, None, {"scikit-learn": 14}, MANY),
    Case("adult, 32 561 x 14, codes", "adult", 32_561, None, {"scikit-learn": 6}, FULL),
)


def run(run: Run) -> None:
    """Print one table per case, and at the end whether the targets hold."""
    limit = bandwidth.measured(run)
    bandwidth.show(limit)
    verdicts, speedups = [], []
    for case in filter(lambda case: run.takes(case.name), CASES):
        try:
            path = tables.write(case.table, run.rows(case.n_rows), run.folder)
        except FileNotFoundError:
            print(f"\n{case.name}: the reference data are not here (ESPALIER_REFERENCE names their folder)")
            continue
        results = measure(
            _subjects(case, path), repetitions=REPETITIONS if case.n_rows >= MANY_ROWS else TURNS_OF_FEW_ROWS
        )
        rows = tables.read(path)[0]
        _show(case, rows, results, limit.best)
        verdicts += _verdicts(case, rows, results)
        speedups.append(_speedup(case, results))
    print_table("Targets of training", ("data", "against", "x train", "x fit", "target", ""), verdicts)
    print_table("One thread against all (espalier.train)", ("data", "1 thread", "all threads", "ratio"), speedups)


def _subjects(case: Case, path: str) -> list[Subject]:
    subject = partial(_subject, path, case.max_depth)
    ours = [subject(ESPALIER), subject(ESTIMATOR), subject(ESPALIER, ONE_THREAD, 1)]
    return ours + [subject(peer) for peer in PEERS if peer not in case.without]


def _subject(
    path: str, max_depth: int | None, peer: str, name: str | None = None, n_processors: int | None = None
) -> Subject:
    arguments = {"peer": peer, "path": path, "max_depth": max_depth}
    return Subject(name or peer, "benchmarks.peers:growing", arguments, n_processors=n_processors)


def _show(case: Case, rows: tables.Rows, results: Mapping[str, Measured], read_bytes_per_second: float) -> None:
    names = [*NAMES]
    names[NAMES.index("accuracy")] = "R2" if rows.is_regression else "accuracy"
    lines = [_line(name, result, rows, results, read_bytes_per_second) for name, result in results.items()]
    skipped = [f"{peer}: {why}." for peer, why in case.without.items()]
    failed = [f"{name}: {result.fault}" for name, result in results.items() if result.fault]
    size = f"{len(rows.target):,} rows x {rows.features.shape[1]}, {rows.bytes_as_float64 / 1e6:.0f} MB as float64"
    print_table(f"{case.name}  ({size})", names, lines, *skipped, *failed)


def _line(
    name: str, result: Measured, rows: tables.Rows, results: Mapping[str, Measured], read_bytes_per_second: float
) -> list[str]:
    peak = result.peak_bytes
    read = results[ESPALIER].facts.get("rows_read", 0) * rows.features.shape[1] * rows.features.itemsize
    limit = read / read_bytes_per_second
    return [
        name,
        seconds_text(result.seconds),
        ratio_text(result.seconds, results[ESPALIER].seconds),
        ratio_text(result.seconds, results[ESTIMATOR].seconds),
        f"{result.facts['leaves']:,}" if result.facts else "–",
        f"{result.facts['quality']:.4f}" if result.facts else "–",
        "–" if peak is None else f"{peak / 1e6:.0f}",
        "–" if peak is None else f"{peak / rows.bytes_as_float64:.2f}",
        ratio_text(result.seconds, limit) if name in OURS else "",
    ]


def _verdicts(case: Case, rows: tables.Rows, results: Mapping[str, Measured]) -> list[Sequence[str]]:
    ours, fit = results[ESPALIER], results[ESTIMATOR]
    lines: list[Sequence[str]] = []
    for peer, least in {**AT_LEAST_AS_FAST, **case.targets}.items():
        if peer not in results:
            continue
        seconds = results[peer].seconds
        ratios = [seconds / each.seconds for each in (ours, fit) if seconds and each.seconds]
        shown = [ratio_text(seconds, each.seconds) for each in (ours, fit)]
        holds = "holds" if len(ratios) == 2 and min(ratios) >= least else "missed"
        lines.append([case.name, peer, *shown, f">= {least:g}", holds])
    shares = [each.peak_bytes / rows.bytes_as_float64 for each in (ours, fit) if each.peak_bytes is not None]
    if len(shares) == 2:
        holds = "holds" if max(shares) <= 2 else "missed"
        lines.append([case.name, "memory x data", *[f"{share:.2f}" for share in shares], "<= 2", holds])
    lines.append(_same_tree(case, ours, results["scikit-learn"]))
    return lines


def _same_tree(case: Case, ours: Measured, peer: Measured) -> Sequence[str]:
    """Return the line of the differences from scikit-learn in accuracy or R2 and in the number of leaves.

    The target holds if the accuracy is at most 0.001 lower and the number of leaves differs by at most 0.1 %.
    """
    name = "accuracy, leaves of scikit-learn"
    if not ours.facts or not peer.facts:
        return [case.name, name, "–", "", "", "missed"]
    quality = ours.facts["quality"] - peer.facts["quality"]
    leaves = ours.facts["leaves"] / peer.facts["leaves"] - 1
    differences = f"{quality:+.4f}, leaves {100 * leaves:+.2f} %"
    if not case.is_judged:
        return [case.name, name, differences, "", "", ""]
    holds = quality >= -0.001 and abs(leaves) <= 0.001
    return [case.name, name, differences, "", "0.001, 0.1 %", "holds" if holds else "missed"]


def _speedup(case: Case, results: Mapping[str, Measured]) -> Sequence[str]:
    one_thread, all_threads = results[ONE_THREAD].seconds, results[ESPALIER].seconds
    return [case.name, seconds_text(one_thread), seconds_text(all_threads), ratio_text(one_thread, all_threads)]
