"""Rule post-pruning the obvious way: every rule against every row, every condition tried by leaving it out.

A test is (attribute, kind, what): ``("x", "at_most", 2.5)``, ``("x", "above", 1.0)``, ``("c", "in", {"red"})``,
``("x", "known", True)``. A row is (values by attribute, target, weight); an absent value is a missing one, for which no
test holds but ``known`` False. A path is (tests, answer).
"""

import math
from collections.abc import Callable, Sequence, Set
from statistics import NormalDist
from typing import Any

Test = tuple[str, str, Any]
Row = tuple[dict[str, Any], Any, float]
Path = tuple[list[Test], Any]
Merged = tuple[float, float, frozenset[Any] | None, bool | None]

SLACK = 1e-9


def holds(test: Test, values: dict[str, Any]) -> bool:
    attribute, kind, what = test
    if attribute not in values:
        return kind == "known" and what is False
    value = values[attribute]
    return {
        "at_most": lambda: value <= what,
        "above": lambda: value > what,
        "in": lambda: value in what,
        "known": lambda: what is True,
    }[kind]()


def fires(tests: Sequence[Test], values: dict[str, Any]) -> bool:
    return all(holds(test, values) for test in tests)


def wrong(answer: Any, target: Any) -> float:
    return float(answer != target)


def squared(answer: float, target: float) -> float:
    return (answer - target) ** 2


def figures(tests: Sequence[Test], answer: Any, rows: Sequence[Row], miss: Callable[[Any, Any], float]) -> Any:
    """Covered weight, and the weighted misses among it."""
    covered = [(target, weight) for values, target, weight in rows if fires(tests, values)]
    return (
        math.fsum(weight for _, weight in covered),
        math.fsum(weight * miss(answer, target) for target, weight in covered),
    )


def share_wrong(covered: float, missed: float) -> float:
    return missed / covered if covered > 0 else 1.0


def mean_square(covered: float, missed: float) -> float:
    return missed / covered if covered > 0 else math.inf


def pessimistic(confidence: float) -> Callable[[float, float], float]:
    """The upper limit of the error rate by the normal quantile (Quinlan 1993, chapter 4)."""
    z = NormalDist().inv_cdf(1 - confidence)

    def limit(n: float, e: float) -> float:
        if n <= 0:
            return 1.0
        return (e + added(n, e)) / n

    def added(n: float, e: float) -> float:
        if e < 1:
            base = n * (1 - confidence ** (1 / n))
            return base + e * (added(n, 1.0) - base) if e > 0 else base
        if e + 0.5 >= n:
            return max(n - e, 0.0)
        f = (e + 0.5) / n
        return n * (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n) - e

    return limit


def shortened(
    path: Path, rows: Sequence[Row], *, miss: Any, loss: Any, must_fall: bool, slack: float
) -> tuple[list[Test], float, float]:
    """The tests that remain, the rule's loss and the weight that it covers."""
    tests, answer = list(path[0]), path[1]
    covered, missed = figures(tests, answer, rows, miss)
    current = loss(covered, missed)
    while tests:
        tried = []
        for place in range(len(tests)):
            weight, wrong_weight = figures(tests[:place] + tests[place + 1 :], answer, rows, miss)
            tried.append((loss(weight, wrong_weight), weight, place))
        least = min(tried)[0]
        if least >= current - SLACK if must_fall else least > current + slack:
            break
        near = [each for each in tried if each[0] <= least + slack]
        widest = max(weight for _, weight, _ in near)
        current, covered, place = next(each for each in near if each[1] >= widest - SLACK)
        del tests[place]
    return tests, current, covered


def merged(tests: Sequence[Test], whole: Set[str] = frozenset()) -> dict[str, Merged] | None:
    """One interval or set an attribute; None where the tests exclude each other. `whole`: whose values are integers."""
    found: dict[str, Merged] = {}
    for attribute, kind, what in tests:
        low, high, labels, known = found.get(attribute, (-math.inf, math.inf, None, None))
        if kind == "at_most":
            high = min(high, what)
        elif kind == "above":
            low = max(low, what)
        elif kind == "in":
            labels = frozenset(what) if labels is None else labels & frozenset(what)
        elif known is not None and known != what:
            return None
        else:
            known = what
        found[attribute] = (low, high, labels, known)
    for attribute, (low, high, labels, known) in found.items():
        says = low > -math.inf or high < math.inf or labels is not None
        ends = (math.floor(low), math.floor(high)) if attribute in whole and high - low < math.inf else (low, high)
        if ends[0] >= ends[1] or labels == frozenset() or (known is False and says):
            return None
        found[attribute] = (low, high, labels, None if known and says else known)
    return found


def post_pruned(
    paths: Sequence[Path], training: Sequence[Row], judges: Sequence[Row], *, miss: Any, loss: Any, must_fall: bool,
    slack: float, whole: Set[str] = frozenset(),
) -> list[tuple[dict[str, Merged], Any, float, float]]:  # fmt: skip
    """The rules in order: conditions, answer, loss, and the training weight that each answers."""
    made = []
    for place, path in enumerate(paths):
        if merged(path[0], whole) is None:
            continue
        tests, worst, covered = shortened(path, judges, miss=miss, loss=loss, must_fall=must_fall, slack=slack)
        made.append((worst, -covered, place, tests, path[1]))
    ordered: list[tuple[dict[str, Merged], Any, float, list[Test]]] = []
    for worst, _, _, tests, answer in sorted(made, key=lambda each: (round(each[0], 12), *each[1:3])):
        says = merged(tests) or {}
        if all(says != other or answer != its for other, its, _, _ in ordered):
            ordered.append((says, answer, worst, tests))
    weights = [0.0] * len(ordered)
    for values, _, weight in training:
        first = next((place for place, rule in enumerate(ordered) if fires(rule[3], values)), None)
        if first is not None:
            weights[first] += weight
    return [(says, answer, worst, weights[place]) for place, (says, answer, worst, _) in enumerate(ordered)]


def default(rules: Sequence[Sequence[Test]], training: Sequence[Row], *, classes: Sequence[Any] | None) -> Any:
    """The majority (the first of equals), or the mean, of the rows for which no rule holds, or else of all."""
    left = [row for row in training if not any(fires(tests, row[0]) for tests in rules)] or list(training)
    if classes is None:
        return math.fsum(target * weight for _, target, weight in left) / math.fsum(weight for *_, weight in left)
    weights = [math.fsum(weight for _, target, weight in left if target == label) for label in classes]
    return classes[weights.index(max(weights))]
