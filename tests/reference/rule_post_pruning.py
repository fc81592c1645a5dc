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
THEORY_SHARE = 0.5


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
        if least >= current - slack if must_fall else least > current + slack:
            break
        current, covered, place = next(each for each in tried if each[0] <= least + slack)
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


def floored(rule: dict[str, Merged], whole: Set[str]) -> dict[str, Merged]:
    """The rule with whole bounds on the attributes `whole`, so that equal conditions on integers are the same."""

    def down(end: float) -> float:
        return math.floor(end) if math.isfinite(end) else end

    return {name: (down(said[0]), down(said[1]), *said[2:]) if name in whole else said for name, said in rule.items()}


def post_pruned(
    paths: Sequence[Path], training: Sequence[Row], judges: Sequence[Row], *, miss: Any, loss: Any, must_fall: bool,
    slack: float, whole: Set[str] = frozenset(),
) -> list[tuple[dict[str, Merged], Any, float, float]]:  # fmt: skip
    """The rules in order: conditions, answer, loss, and the training weight that each answers."""
    made = []
    for place, path in enumerate(paths):
        if merged(path[0], whole) is None:
            continue
        tests, worst, _ = shortened(path, judges, miss=miss, loss=loss, must_fall=must_fall, slack=slack)
        made.append((worst, place, tests, path[1]))
    ordered: list[tuple[dict[str, Merged], Any, float, list[Test]]] = []
    for worst, _, tests, answer in sorted(made, key=lambda each: (round(each[0], 12), each[1])):
        says = merged(tests) or {}
        if all(floored(says, whole) != floored(other, whole) or answer != its for other, its, _, _ in ordered):
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


def description_length(
    rules: Sequence[dict[str, Merged]], answer: Any, rows: Sequence[Row], bits: Sequence[float]
) -> float:
    """Half the bits of the rules of a class, in any order, and those of their exceptions among unweighted rows."""
    covered = [any(fires_merged(rule, values) for rule in rules) for values, *_ in rows]
    wrong = sum(holds and target != answer for holds, (_, target, _) in zip(covered, rows, strict=True))
    missed = sum(not holds and target == answer for holds, (_, target, _) in zip(covered, rows, strict=True))
    exceptions = math.comb(sum(covered), wrong) * math.comb(len(rows) - sum(covered), missed)
    return THEORY_SHARE * (sum(bits) - math.log2(math.factorial(len(rules)))) + math.log2(exceptions)


def condition_bits(rule: dict[str, Merged], rules: Sequence[dict[str, Merged]], n_labels: dict[str, int]) -> float:
    """The bits of a rule's conditions: each its attribute, and its bound, set, or whether the value is known."""
    bits, n_conditions = 0.0, 0
    for attribute, (low, high, labels, known) in rule.items():
        bounds = {end for other in rules if attribute in other for end in other[attribute][:2] if math.isfinite(end)}
        parts = [1 + math.log2(len(bounds) + 1) for end in (low, high) if math.isfinite(end)]
        parts += [] if labels is None else [math.log2(math.comb(n_labels[attribute], len(labels)))]
        parts += [] if known is None else [1.0]
        bits += sum(parts) + len(parts) * math.log2(len(n_labels))
        n_conditions += len(parts)
    return bits - math.log2(math.factorial(n_conditions))


def fires_merged(rule: dict[str, Merged], values: dict[str, Any]) -> bool:
    return fires(unmerged(rule), values)


def unmerged(rule: dict[str, Merged]) -> list[Test]:
    """Merged conditions as tests again."""
    tests: list[Test] = []
    for name, (low, high, labels, known) in rule.items():
        tests += [(name, "above", low)] * (low > -math.inf) + [(name, "at_most", high)] * (high < math.inf)
        tests += [(name, "in", labels)] * (labels is not None) + [(name, "known", known)] * (known is not None)
    return tests


def by_class(
    rules: Sequence[tuple[dict[str, Merged], Any]],
    rows: Sequence[Row],
    classes: Sequence[Any],
    n_labels: dict[str, int],
    whole: Set[str],
) -> tuple[list[tuple[dict[str, Merged], Any]], Any]:
    """C4.5RULES' second half on unweighted rows: all subsets of each class are tried, then classes put in order."""
    rules = [rule for rule in rules if rule[0]]
    said = [floored(rule, whole) for rule, _ in rules]
    chosen = {}
    for label in classes:
        own = [rule for rule, answer in rules if answer == label]
        bits = [condition_bits(rule, said, n_labels) for rule in own]
        subsets = [[at for at in range(len(own)) if number >> at & 1] for number in range(1 << len(own))]
        lengths = [
            description_length([own[at] for at in subset], label, rows, [bits[at] for at in subset])
            for subset in subsets
        ]
        best = next(subset for subset, length in zip(subsets, lengths, strict=True) if length <= min(lengths) + SLACK)
        chosen[label] = [own[at] for at in best]
    order: list[tuple[dict[str, Merged], Any]] = []
    waiting, left = list(classes), list(rows)
    while waiting:
        harm = [sum(answers(chosen[label], row) and row[1] != label for row in left) for label in waiting]
        label = waiting.pop(harm.index(min(harm)))
        left = [row for row in left if not answers(chosen[label], row)]
        order += [(rule, label) for rule in chosen[label]]
    counts = [(sum(row[1] == label for row in left), sum(row[1] == label for row in rows)) for label in classes]
    otherwise = classes[counts.index(max(counts))]
    while True:
        errors = [list_errors(order[:at] + order[at + 1 :], otherwise, rows) for at in range(len(order))]
        if not errors or min(errors) >= list_errors(order, otherwise, rows):
            return order, otherwise
        del order[errors.index(min(errors))]


def answers(rules: Sequence[dict[str, Merged]], row: Row) -> bool:
    return any(fires_merged(rule, row[0]) for rule in rules)


def list_errors(rules: Sequence[tuple[dict[str, Merged], Any]], otherwise: Any, rows: Sequence[Row]) -> int:
    return sum(
        next((answer for rule, answer in rules if fires_merged(rule, values)), otherwise) != target
        for values, target, _ in rows
    )
