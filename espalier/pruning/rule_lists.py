"""The second half of C4.5RULES (Quinlan 1993, chapter 5): select a few rules per class and put them in order.

The module differs from the book, or decides what the book leaves open, in these points:

- the number of bits that encode the conditions of a rule: see `theory_bits`;
- if a class has many rules, they are selected by steepest descent instead of simulated annealing, so that each run
  gives the same result (`choose_subset`);
- rules without conditions are left out; of equally good choices the first is taken, except by `default_class`.

Misclassified rows (the exceptions) are coded as in the book, not as in C4.5 release 8.

`RuleRows` stores one bit per rule and row: 1 if the rule covers the row. Each byte holds the bits of eight rules::

    row              0         1         2
    rules 0 to 7     10100000  00100000  00000000      rule 0 holds for row 0, rule 2 for rows 0 and 1
    rules 8 to 15    …
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from espalier.arrays import Array, Bytes, Floats, Mask, Places
from espalier.model.rules import Condition
from espalier.progress import Progress
from espalier.pruning.kernels import rules as kernel

THEORY_SHARE: Final = 0.5
"""Factor on the bits of rules: attributes are redundant, so many sets of rules are equivalent."""
MAX_EXHAUSTIVE: Final = 10
"""All subsets of the rules of a class are tried if there are at most this number of rules."""
TIE: Final = 1e-9
MAX_CELLS: Final = 1 << 22
"""Maximum number of cells, one byte each, of a table of rules and rows that is unpacked at once."""


def rules_by_class(
    answers: Array,
    mask_of: Callable[[int], Mask],
    *,
    bits: Floats,
    target: Array,
    weight: Floats,
    n_classes: int,
    progress: Progress,
) -> tuple[list[int], int]:
    """Return the numbers of the rules that make up the list, in order, and the default class.

    For each class, the subset of its rules with the shortest description is chosen (`choose_subset`). The classes are
    put in order (`order_classes`); the rules of a class keep their order. The default is the most frequent class of the
    rows that no rule covers (`default_class`). Last, rules that do harm are dropped (`drop_harmful`).

    Args:
        answers: Class code of each rule, int (rules).
        mask_of: Function that takes a rule's number and returns which rows the rule holds for, bool (rows).
        bits: Description length of each rule (`theory_bits`).
        target: Class codes, int64 (rows).
        weight: Weights of the rows, float64 (rows).
        n_classes: Number of classes.
        progress: Its stop flag is read.
    """
    subsets: list[Places] = []
    covers = RuleRows(n_classes, len(weight))
    for code in range(n_classes):
        progress.check()
        own = np.flatnonzero(answers == code)
        rows = RuleRows.of_masks(map(mask_of, own.tolist()), len(own), len(weight))
        places = choose_subset(rows, bits[own], target == code, weight, progress)
        subsets.append(own[places])
        for place in places.tolist():
            covers.add(code, rows.of(place))
    numbers = np.concatenate([subsets[code] for code in order_classes(covers, target, weight)])
    default = default_class(covers.any(), target, weight, n_classes)
    chosen = RuleRows.of_masks(map(mask_of, numbers.tolist()), len(numbers), len(weight))
    useful = drop_harmful(chosen, np.append(answers[numbers], default), target, weight, progress)
    return numbers[useful].tolist(), default


class RuleRows:
    """The rows that each rule covers. In a variable named `covers`, all rules of a class count as one rule."""

    def __init__(self, n_rules: int, n_rows: int) -> None:
        self.n_rules, self.n_rows = n_rules, n_rows
        self._bytes = np.zeros((-(-n_rules // 8), n_rows), dtype=np.uint8)

    @classmethod
    def of_masks(cls, masks: Iterable[Mask], n_rules: int, n_rows: int) -> "RuleRows":
        """Return the rows of `n_rules` rules, given one mask per rule, bool (rows)."""
        rows = cls(n_rules, n_rows)
        for number, mask in enumerate(masks):
            rows.add(number, mask)
        return rows

    def add(self, number: int, mask: Mask) -> None:
        """Add rows that a rule covers."""
        self._bytes[number // 8] |= mask.astype(np.uint8) << np.uint8(7 - number % 8)

    def any(self) -> Mask:
        """Return which rows at least one rule covers, bool (rows)."""
        return np.asarray(self._bytes.any(axis=0))

    def of(self, number: int) -> Mask:
        """Return the rows of one rule, bool (rows)."""
        return np.asarray(self._bytes[number // 8] >> np.uint8(7 - number % 8) & 1, dtype=np.bool_)

    def table(self, rows: Places | slice) -> Bytes:
        """Return whether each rule holds for each of some rows, as 0 or 1, uint8 (rules, rows)."""
        return np.unpackbits(self._bytes[:, rows], axis=0, count=self.n_rules)

    def sums(self, rows: Places, own: Mask, weight: Floats) -> Floats:
        """Return the weight that each rule covers in `rows`, float64 (2, rules): [0] in the mask `own`, [1] outside."""
        sums = np.empty((2, 8 * len(self._bytes)))
        kernel.sum_holding(self._bytes, rows, weight, own, sums)
        return np.ascontiguousarray(sums[:, : self.n_rules])

    def blocks(self, rows: Places) -> Iterable[Places]:
        """Divide rows into blocks whose tables have at most `MAX_CELLS` cells."""
        size = max(1, MAX_CELLS // max(1, self.n_rules))
        return (rows[start : start + size] for start in range(0, len(rows), size))


def theory_bits(conditions: Sequence[Condition], n_bounds: Mapping[str, int]) -> float:
    """Return how many bits encode the conditions of a rule, regardless of their order.

    Each bound of an interval, each set of categories and each condition on a missing value takes log2 of the number of
    attributes. In addition,

    - a bound takes one bit for its direction, and log2(n + 1): together, the rules have n distinct bounds on its
      attribute (`n_bounds`), which divide the attribute into n + 1 intervals;
    - a set takes log2 of the number of sets of its size;
    - a condition on a missing value takes one bit.
    """
    bits, n_conditions = 0.0, 0
    for condition in conditions:
        bounds = (condition.above > -math.inf) + (condition.at_most < math.inf)
        bits += bounds * (1.0 + math.log2(n_bounds[condition.attribute.name] + 1))
        if condition.categories is not None:
            bits += float(kernel.log2_choose(len(condition.attribute.categories), len(condition.categories)))
        bits += condition.known is not None
        n_conditions += bounds + (condition.categories is not None) + (condition.known is not None)
    return bits + n_conditions * math.log2(len(n_bounds)) - log2_factorial(n_conditions)


def log2_factorial(number: int) -> float:
    """Return log2(number!)."""
    return math.lgamma(number + 1) / math.log(2)


class RuleSubset:
    """Some rules of a class, with the description length of this subset and of the subsets that differ by one rule."""

    def __init__(self, rows: RuleRows, bits: Floats, own: Mask, weight: Floats) -> None:
        self._rows, self._bits, self._own, self._weight = rows, bits, own, weight
        self._total = np.array([weight[own].sum(), weight[~own].sum()])  # weight in and outside the class
        self.chosen = np.zeros(rows.n_rules, dtype=np.bool_)
        self._times = np.zeros(rows.n_rows, dtype=np.int32)  # how many chosen rules hold for each row
        self._covered = np.zeros(2)
        self._gained = rows.sums(np.arange(rows.n_rows), own, weight)  # covered in addition if a rule is added
        self._lost = np.zeros((2, rows.n_rules))  # no longer covered if a rule is removed

    def bits(self) -> float:
        """Return the description length in bits."""
        theory = float(self._bits[self.chosen].sum()) - log2_factorial(int(self.chosen.sum()))
        return THEORY_SHARE * theory + float(kernel.exception_bits(*self._covered, *self._total))

    def bits_without_or_with(self) -> Floats:
        """Return the description length that `toggle` of each rule would give, float64 (rules)."""
        lengths = np.empty(len(self.chosen))
        kernel.changed_lengths(
            self.chosen, self._bits, self._gained, self._lost, self._covered, self._total, THEORY_SHARE, lengths
        )
        return lengths

    def toggle(self, rule: int) -> None:
        """Add a rule to the subset, or remove it if the subset has it."""
        rows = np.flatnonzero(self._rows.of(rule))
        step = -1 if self.chosen[rule] else 1
        fewer = self._times[rows] + min(step, 0)
        self._times[rows] += step
        self.chosen[rule] = step > 0
        alone, second = rows[fewer == 0], rows[fewer == 1]
        is_own = self._own[alone]
        self._covered += step * np.array([self._weight[alone[is_own]].sum(), self._weight[alone[~is_own]].sum()])
        from_none = step * self._rows.sums(alone, self._own, self._weight)
        self._gained -= from_none
        self._lost += from_none - step * self._rows.sums(second, self._own, self._weight)


def choose_subset(rows: RuleRows, bits: Floats, own: Mask, weight: Floats, progress: Progress) -> Places:
    """Return the rules of a class that describe it with the fewest bits.

    With at most `MAX_EXHAUSTIVE` rules, all subsets are tried. With more, one search starts from no rule, another from
    all rules. Each step adds or removes the rule that saves most bits. The result with fewer bits is returned.
    """
    if rows.n_rules <= MAX_EXHAUSTIVE:
        return _best_of_all(rows, bits, own, weight)
    subsets = []
    for start in ((), range(rows.n_rules)):
        subset = RuleSubset(rows, bits, own, weight)
        for rule in start:
            progress.check()
            subset.toggle(rule)
        subsets.append(_descend(subset, progress))
    (few_bits, few), (many_bits, many) = subsets
    return np.flatnonzero(few if few_bits <= many_bits + TIE else many)


def _best_of_all(rows: RuleRows, bits: Floats, own: Mask, weight: Floats) -> Places:
    """Return the best of all subsets. Rows for which the same rules hold are counted together."""
    pattern = np.zeros(rows.n_rows, dtype=np.intp)
    for rule in range(rows.n_rules):
        pattern |= rows.of(rule).astype(np.intp) << rule
    numbers = np.arange(1 << rows.n_rules)
    meets = (numbers[:, None] & numbers) != 0
    total, other_total = (np.bincount(pattern, weight * each, len(numbers)) for each in (own, ~own))
    holds = numbers[:, None] >> np.arange(rows.n_rules) & 1
    orders = np.array([log2_factorial(size) for size in holds.sum(axis=1).tolist()])
    covered = zip((meets @ total).tolist(), (meets @ other_total).tolist(), strict=True)
    exceptions = [kernel.exception_bits(*each, total.sum(), other_total.sum()) for each in covered]
    lengths = THEORY_SHARE * (holds @ bits - orders) + exceptions
    return np.flatnonzero(holds[int(np.argmax(lengths <= lengths.min() + TIE))])


def _descend(subset: RuleSubset, progress: Progress) -> tuple[float, Mask]:
    current = subset.bits()
    while True:
        progress.check()
        lengths = subset.bits_without_or_with()
        best = int(np.argmin(lengths))
        if lengths[best] >= current - TIE:
            return current, subset.chosen
        subset.toggle(best)
        current = float(lengths[best])


def order_classes(covers: RuleRows, target: Array, weight: Floats) -> list[int]:
    """Return the classes in the order that their rules have in the list.

    `covers`: the rows that the rules of each class cover. The next class is the one with the least weight of false
    positives among the remaining rows, or the first of equal classes. The rows that its rules cover are then removed.
    """
    n_classes, total = covers.n_rules, float(weight.sum())
    left, order = np.ones(len(weight), dtype=np.bool_), list[int]()
    false_positives = _false_positives(covers, np.arange(len(weight)), target, weight)
    while len(order) < n_classes:
        order.append(int(np.argmax(false_positives <= false_positives.min() + TIE * total)))
        answered = left & covers.of(order[-1])
        false_positives -= _false_positives(covers, np.flatnonzero(answered), target, weight)
        false_positives[order[-1]] = math.inf
        left &= ~answered
    return order


def _false_positives(covers: RuleRows, rows: Places, target: Array, weight: Floats) -> Floats:
    """Return, for each class, the weight of those `rows` of other classes that the class's rules cover."""
    false_weight = np.zeros(covers.n_rules)
    for block in covers.blocks(rows):
        holds = covers.table(block) * weight[block]
        false_weight += holds.sum(axis=1)
        true = holds[target[block], np.arange(len(block))]
        false_weight -= np.bincount(target[block], true, covers.n_rules)
    return false_weight


def default_class(covered: Mask, target: Array, weight: Floats, n_classes: int) -> int:
    """Return the class with most weight in the rows that no rule covers; the weight in all rows breaks ties."""
    everywhere, uncovered = (
        np.bincount(target[rows], weights=weight[rows], minlength=n_classes)
        for rows in (np.ones(len(weight), dtype=np.bool_), ~covered)
    )
    best = list(range(n_classes))
    for weights in (uncovered, everywhere):
        least = weights[best].max() * (1 - TIE)
        best = [code for code in best if weights[code] >= least]
    return best[0]


def drop_harmful(rows: RuleRows, answers: Array, target: Array, weight: Floats, progress: Progress) -> list[int]:
    """Drop the harmful rules of a rule list. Return the indexes of the remaining rules.

    As long as a removal saves errors on the training rows, the rule whose removal saves most is dropped (the first of
    equal rules). `answers`: the class code of each rule, followed by the default class.
    """
    first, following = np.full((2, rows.n_rows), rows.n_rules, dtype=np.intp)
    is_kept = np.ones(rows.n_rules, dtype=np.bool_)
    changed = np.arange(rows.n_rows)
    while is_kept.any():
        progress.check()
        for block in rows.blocks(changed):
            first[block], following[block] = _first_two(rows.table(block) & is_kept[:, None])
        is_right, would_be_right = answers[first] == target, answers[following] == target
        saved = weight * (is_right.astype(np.float64) - would_be_right)
        advantage = np.bincount(first, weights=saved, minlength=rows.n_rules + 1)[:-1]
        if advantage.min() >= -TIE * float(weight.sum()):
            break
        worst = int(np.argmin(advantage))
        is_kept[worst] = False
        changed = np.flatnonzero((first == worst) | (following == worst))
    return np.flatnonzero(is_kept).tolist()


def _first_two(holds: Bytes) -> tuple[Places, Places]:
    """Return the first and the second rule that hold for each row, or ``len(holds)`` for none. Overwrite `holds`."""
    n_rules, place = len(holds), np.arange(holds.shape[1])
    rules = []
    for _ in range(2):
        number = holds.argmax(axis=0)
        holds_any = holds[number, place] > 0
        holds[number, place] = 0
        rules.append(np.where(holds_any, number, n_rules))
    return rules[0], rules[1]
