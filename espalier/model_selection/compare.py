"""Compare candidates on the same rows: which is better, and is the difference significant?"""

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from espalier.arrays import Floats
from espalier.config.holdout import Holdout
from espalier.config.presets import config_to_dict, training_config
from espalier.data.dataset import Dataset
from espalier.data.labels import Label
from espalier.data.readers import as_dataset
from espalier.errors import located, pointer
from espalier.evaluation.metrics import Evaluation, evaluate_rows
from espalier.model.rules import RuleList
from espalier.model_selection.candidates import Candidate, check_candidate_rows, check_candidates
from espalier.model_selection.folds_and_label_noise import Test, check_comparison, parts_of, tests_of, with_label_noise
from espalier.progress import Progress
from espalier.pruning.result import notes_on_rows
from espalier.stats import binomial_two_sided, student_t_two_sided
from espalier.training.train import train

SIGNIFICANCE: Final = 0.05
SMALL: Final = 1e-3
"""A smaller figure is shown with four significant digits instead of four decimals."""
ROUNDING: Final = 1e-12
"""Two figures are equal if they differ by at most this share of the larger one."""


@dataclass(frozen=True, slots=True)
class Result:
    """The results of a candidate on all folds.

    Attributes:
        leaves: For each fold, the tree's number of leaves, or the list's number of rules without the default rule.
        seconds: For each fold, the seconds of the training, without the test.
        misses: Loss of each test row of weight above 0, fold by fold: 0 or 1 for a class, or the squared error.
        weights: Weights of these rows.
        confusion: Sum of the folds' confusion matrices, which `evaluations` lack; None if there are too many classes.
        notes: Remarks on the test rows if there is one split; empty for folds.
    """

    candidate: Candidate
    evaluations: tuple[Evaluation, ...]
    leaves: tuple[int, ...]
    seconds: tuple[float, ...]
    misses: Floats
    weights: Floats
    confusion: Floats | None = None
    notes: tuple[str, ...] = ()

    def score(self, measure: str) -> float:
        """Return the mean of `measure` over the folds."""
        return float(np.mean([getattr(evaluation, measure) for evaluation in self.evaluations]))


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the best candidate and another one.

    Attributes:
        better, other: Names of the two candidates.
        by: Difference of the compared measure, at least 0.
        p_value: Two-sided probability of a difference at least this large by chance.
        test: Name of the statistical test that gave the p-value.
    """

    better: str
    other: str
    by: float
    p_value: float
    test: str

    @property
    def significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        return self.p_value < SIGNIFICANCE


@dataclass(frozen=True, slots=True)
class PruningEffect:
    """A candidate that prunes, compared with the same candidate unpruned.

    Attributes:
        pruned, unpruned: Names of the two candidates.
        gain: How much better the pruned candidate is by the compared measure; below 0 if it is worse.
        p_value: Two-sided probability of a difference at least this large by chance.
        test: Name of the statistical test that gave the p-value.
        leaves_kept: Total of `Result.leaves` of the pruned candidate, divided by the total of the unpruned one.
    """

    pruned: str
    unpruned: str
    gain: float
    p_value: float
    test: str
    leaves_kept: float

    @property
    def verdict(self) -> str:
        """The effect of pruning: ``better``, ``worse``, or ``may be chance`` where the p-value is 0.05 or more."""
        if self.p_value >= SIGNIFICANCE:
            return "may be chance"
        return "better" if self.gain > 0 else "worse"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        measure: ``accuracy`` (more is better) or ``rmse`` (less is better).
        classes: The classes in the order of the confusion matrices; empty for a regression.
        n_rows: Number of rows of the data set.
        n_folds: How many times each candidate was trained; 1 with a holdout.
        label_noise: Share of the rows whose class was replaced by another one for training.
        results: In the order of the candidates.
        differences: The difference between the best candidate and each of the others.
        pruning_effects: One per pair of candidates whose configurations differ only in that one of them prunes.
    """

    measure: str
    classes: tuple[Label, ...]
    n_rows: int
    n_folds: int
    label_noise: float
    results: tuple[Result, ...]
    differences: tuple[Difference, ...]
    pruning_effects: tuple[PruningEffect, ...]

    @property
    def n_tested(self) -> int:
        """Number of test rows of weight above 0 per candidate, summed over the folds."""
        return len(self.results[0].misses)

    @property
    def verdict(self) -> str:
        """One sentence on which candidate is the best and whether the differences are significant."""
        best = _best(self.results, self.measure)
        equal = [difference.other for difference in self.differences if difference.by == 0]
        beaten = [difference.other for difference in self.differences if difference.significant]
        level = [each.other for each in self.differences if each.by > 0 and not each.significant]
        score = best.score(self.measure)
        figure = f"{score:.4f}" if score == 0 or abs(score) >= SMALL else f"{score:.4g}"
        parts = [f"{best.candidate.name} has the best {self.measure} ({figure})"]
        if equal:
            parts[0] += f", as {'has ' + equal[0] if len(equal) == 1 else ', '.join(equal) + ' have'}"
        if beaten:
            parts.append(f"the difference to {', '.join(beaten)} is significant (p < {SIGNIFICANCE})")
        if level:
            parts.append(f"the difference to {', '.join(level)} may be chance")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "measure": self.measure,
            **({"classes": list(self.classes)} if self.classes else {}),
            "n_rows": self.n_rows,
            "n_tested": self.n_tested,
            "folds": self.n_folds,
            "label_noise": self.label_noise,
            "verdict": self.verdict,
            "candidates": [_result_document(result) for result in self.results],
            "differences": [{**dataclasses.asdict(each), "significant": each.significant} for each in self.differences],
            "pruning_effects": [{**dataclasses.asdict(each), "verdict": each.verdict} for each in self.pruning_effects],
        }


def compare(
    dataset: Dataset,
    candidates: Sequence[Candidate | str],
    *,
    folds: int | Sequence[int] | None = None,
    holdout: Holdout | Dataset | Mapping[str, Any] | None = None,
    seed: int = 0,
    label_noise: float = 0.0,
    progress: Progress | None = None,
) -> Comparison:
    """Train each candidate on the same folds (or one split) and compare the best with the others.

    Over folds, the test is the corrected resampled t-test (Nadeau and Bengio 2003), which accounts for overlapping
    training sets. On one split, if the target is a class and all test rows have the same weight, it is McNemar's exact
    test (1947). On any other split, it is Student's paired t-test of the errors (in a regression: squared errors),
    each multiplied by the weight of its row. If all differences are equal and not 0, a sign test replaces the t-test.

    Args:
        dataset: A data set with a target.
        candidates: At least one `Candidate` or name of a preset. Each name must be unique.
        folds: Number of folds (stratified by class), or the fold of each row. By default 10, unless `holdout` is given.
        holdout: The test rows, instead of folds: rows of `dataset` (a `Holdout` or its JSON form), or another data set.
        seed: Seed of the folds and of the noise.
        label_noise: Share of the rows that have another class in training, but their own class in tests. The rows and
            their other classes are drawn at random. Must be 0 for a regression.
        progress: Another thread may read and stop it.

    Raises:
        ConfigError: No candidate, a name given twice, or illegal folds, holdout, seed, noise or configuration.
        DataError: The rows cannot be learned from, or candidates cannot be tested on the data set `holdout`.
        Cancelled: `progress` was stopped.
    """
    progress = progress or Progress()
    dataset = as_dataset(dataset)
    schema, is_split = dataset.schema, holdout is not None
    configured = [_configured(one, place) for place, one in enumerate(candidates)]
    names = [candidate.name for candidate in configured]
    drawn: dict[str, Any] = {"folds": folds, "seed": seed, "label_noise": label_noise}
    check_comparison(schema, names, n_rows=dataset.n_rows, on_one_split=is_split, **drawn)
    check_candidates(schema, configured)
    check_candidate_rows(dataset, configured, holdout=holdout, **drawn)
    tests = tests_of(dataset, folds, holdout, seed)
    noisy = with_label_noise(dataset, label_noise, seed=seed) if label_noise else dataset
    parts = _parts_of_progress(progress, len(configured), len(tests))
    results = [_run(dataset, noisy, candidate, tests, parts) for candidate in configured]
    progress.begin("done")
    measure = "accuracy" if schema.task == "classification" else "rmse"
    best = _best(results, measure)
    differences = tuple(_difference(best, result, measure, tests, dataset) for result in results if result is not best)
    effects = tuple(
        _effect(result, other, measure, tests, dataset)
        for result in results
        for other in results
        if result.candidate.config.pruning is not None
        and dataclasses.replace(result.candidate.config, pruning=None) == other.candidate.config
    )
    of_rows = (schema.classes, dataset.n_rows, len(tests), label_noise)
    return Comparison(measure, *of_rows, tuple(results), differences, effects)


def _configured(candidate: Candidate | str, place: int) -> Candidate:
    with located(pointer("candidates", place)):
        return Candidate(candidate, training_config(candidate)) if isinstance(candidate, str) else candidate


def paired_differences(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Floats:
    """Return the difference of each pair of figures, float64; a difference within rounding error is 0."""
    our_figures, their_figures = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    differences = our_figures - their_figures
    error = ROUNDING * np.maximum(np.abs(our_figures), np.abs(their_figures))
    return np.where((np.abs(differences) <= error) & np.isfinite(error), 0.0, differences)


def resampled_t(apart: Floats, test_to_training: float) -> tuple[float, str]:
    """Return the p-value of the mean of the differences `apart`, and the name of the test.

    `test_to_training` is the number of test rows per training row. If it is 0, the test is Student's paired t-test. If
    the mean is 0 or infinite or k < 2 differences are given, p is 1. If all are equal and not 0, a sign test gives
    p = 2 · 2^-k.
    """
    count = len(apart)
    mean = float(apart.mean())
    name = "corrected resampled t-test (Nadeau and Bengio 2003)" if test_to_training else "paired t-test (Student 1908)"
    if count < 2 or mean == 0 or not math.isfinite(mean):
        return 1.0, name
    if np.ptp(apart) <= ROUNDING * abs(mean):
        return math.ldexp(1.0, 1 - count), "sign test (all differences are the same)"
    # Differences are divided by the largest, because the squares of very small ones would be 0.
    shares = apart / float(np.abs(apart).max())
    variance = float(shares.var(ddof=1)) * (1 / count + test_to_training)
    return student_t_two_sided(float(shares.mean()) / math.sqrt(variance), count - 1), name


def _parts_of_progress(progress: Progress, n_candidates: int, n_folds: int) -> Iterator[Progress]:
    n_trainings = n_candidates * n_folds
    for number in range(n_trainings):
        progress.check()
        place, fold = divmod(number, n_folds)
        of_fold = f", fold {fold + 1} of {n_folds}" if n_folds > 1 else ""
        progress.phase = f"candidate {place + 1} of {n_candidates}{of_fold}"
        yield progress.part(number / n_trainings, (number + 1) / n_trainings)


def _run(
    dataset: Dataset, noisy: Dataset, candidate: Candidate, tests: Sequence[Test], parts: Iterator[Progress]
) -> Result:
    holdout = candidate.holdout if candidate.config.needs_held_out else None
    evaluations, leaves, seconds, confusion = [], [], [], None
    misses, weights = [], []
    for each, progress in zip(tests, parts, strict=False):  # the other parts are for the other candidates
        training_rows, test = parts_of(dataset, noisy, each)
        begun = time.perf_counter()
        model = train(training_rows, candidate.config, holdout=holdout, progress=progress)
        seconds.append(time.perf_counter() - begun)
        evaluation, missed = evaluate_rows(model, test, progress=progress)
        if evaluation.confusion is not None:
            confusion = np.add(evaluation.confusion, 0.0 if confusion is None else confusion)
        evaluations.append(dataclasses.replace(evaluation, confusion=None))
        leaves.append(model.rules.n_rules if isinstance(model.body, RuleList) else model.tree.n_leaves)
        counted = test.weight > 0
        misses.append(missed[counted])
        weights.append(test.weight[counted])
    # Notes are for a holdout only: its rows may be a bad choice, but folds test every row.
    notes = notes_on_rows(model, test, in_parts=False).get("notes", []) if len(tests) == 1 else []
    tested = np.concatenate(misses), np.concatenate(weights)
    return Result(candidate, tuple(evaluations), tuple(leaves), tuple(seconds), *tested, confusion, tuple(notes))


def _best(results: Sequence[Result], measure: str) -> Result:
    """Return the result with the best mean score; among equal scores, the one with fewer leaves, then the first."""
    scores = [result.score(measure) for result in results]
    top = max(scores) if measure == "accuracy" else min(scores)
    equal = [place for place, apart in enumerate(paired_differences(scores, top).tolist()) if not abs(apart) > 0]
    return min((results[place] for place in equal), key=lambda result: float(np.mean(result.leaves)))


def _difference(best: Result, other: Result, measure: str, tests: Sequence[Test], dataset: Dataset) -> Difference:
    by = abs(float(paired_differences(best.score(measure), other.score(measure))))
    return Difference(best.candidate.name, other.candidate.name, by, *_tested(best, other, measure, tests, dataset))


def _effect(pruned: Result, unpruned: Result, measure: str, tests: Sequence[Test], dataset: Dataset) -> PruningEffect:
    p_value, test = _tested(pruned, unpruned, measure, tests, dataset)
    gain = float(paired_differences(pruned.score(measure), unpruned.score(measure)))
    names, leaves_kept = (pruned.candidate.name, unpruned.candidate.name), sum(pruned.leaves) / sum(unpruned.leaves)
    return PruningEffect(*names, gain if measure == "accuracy" else -gain, p_value, test, leaves_kept)


def _tested(first: Result, second: Result, measure: str, tests: Sequence[Test], dataset: Dataset) -> tuple[float, str]:
    if len(tests) > 1:
        ours, theirs = ([getattr(each, measure) for each in result.evaluations] for result in (first, second))
        n_test = dataset.n_rows / len(tests)  # each row is tested once
        return resampled_t(paired_differences(ours, theirs), n_test / (dataset.n_rows - n_test))
    alike = bool(np.ptp(first.weights) == 0)
    if measure == "accuracy" and alike:
        only_one = int(np.count_nonzero((first.misses == 0) & (second.misses == 1)))
        only_other = int(np.count_nonzero((first.misses == 1) & (second.misses == 0)))
        return binomial_two_sided(only_other, only_one + only_other), "McNemar's exact test (1947)"
    # Each row is one observation; its weight only multiplies its loss.
    apart = paired_differences(first.misses, second.misses) * (1.0 if alike else first.weights)
    p_value, test = resampled_t(apart, 0.0)
    errors = "errors" if measure == "accuracy" else "squared errors"
    return p_value, f"{test} of the {'' if alike else 'weighted '}{errors}"


def _result_document(result: Result) -> Mapping[str, Any]:
    figures: dict[str, Any] = {}
    for name in ("accuracy", "balanced_accuracy", "macro_f1", "log_loss", "rmse", "mae", "r2"):
        values = [getattr(evaluation, name) for evaluation in result.evaluations]
        if None not in values:
            deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
            figures[name] = {"mean": float(np.mean(values)), "std": deviation, "folds": values}
    return {
        "name": result.candidate.name,
        "config": config_to_dict(result.candidate.config),
        "figures": figures,
        **({} if result.confusion is None else {"confusion": result.confusion.tolist()}),
        "leaves": {"mean": float(np.mean(result.leaves)), "folds": list(result.leaves)},
        "seconds": float(np.mean(result.seconds)),
        **({"notes": list(result.notes)} if result.notes else {}),
    }
