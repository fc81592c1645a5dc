"""The tables of an exported source file: a program as flat lists, which are the same in every language."""

import math
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from espalier.data.labels import Label, category_codes, label_text
from espalier.data.missing_values import MissingValues
from espalier.data.schema import FeatureKind
from espalier.export.obstacles import type_of
from espalier.export.program import ANSWER, DIVIDE, Program
from espalier.model.model import Model


@dataclass(frozen=True, slots=True)
class SourceTables:
    """A program as flat lists.

    Attributes:
        whole: Lists of whole numbers by name.
            For each step: KIND, FEATURE and ABSENT as in `Step`; ANSWER, the index of its `number` in LEAF, or -1 if
            it has no answer; FIRST, the index in TARGET of its first target. FIRST ends with the length of TARGET.
            For each target of a step: TARGET, the index of a step.
            For each answer: LEAF, the number of the node or rule; CODE, the class (empty for a regression); TERM, the
            index in TERM_FEATURE of its first term. TERM ends with the number of all terms.
            For each term: TERM_FEATURE, the attribute; TERM_SET, an index into `sets`, -1 for the value itself.
            The three lists of terms are empty if no leaf is linear.
        real: Lists of numbers by name: THRESHOLD of each step, SHARE of each target (empty if no row is divided), TABLE
            (the class shares, value or intercept of each answer), COEFFICIENT of each term.
        sets: Sets of codes; the column of a term with a set is 1 for these categories, else 0.
        max_pending: Upper bound of the number of row parts that are pending at a time.
    """

    whole: dict[str, list[int]]
    real: dict[str, list[float]]
    sets: list[list[int]]
    max_pending: int


def source_tables(program: Program) -> SourceTables:
    """Return a program as flat lists."""
    steps, numbers = program.steps, program.answered
    place = {number: at for at, number in enumerate(numbers)}
    whole = {
        "KIND": [step.kind for step in steps],
        "FEATURE": [step.feature for step in steps],
        "FIRST": starts(step.targets for step in steps),
        "ABSENT": [step.absent for step in steps],
        "ANSWER": [place[step.number] if step.kind == ANSWER else -1 for step in steps],
        "TARGET": [target for step in steps for target in step.targets],
        "LEAF": list(numbers),
        "CODE": [program.codes[number] for number in numbers] if program.codes else [],
        **{name: list[int]() for name in ("TERM", "TERM_FEATURE", "TERM_SET")},
    }
    divides = program.divides
    shares = [share for step in steps for share in (step.shares or [1.0] * len(step.targets))] if divides else []
    real = {
        "THRESHOLD": [step.threshold for step in steps],
        "SHARE": shares,
        "TABLE": program.table[list(numbers)].ravel().tolist(),
        "COEFFICIENT": [],
    }
    sets: dict[frozenset[int], int] = {}
    _add_terms(program, whole, real, sets)
    return SourceTables(whole, real, [sorted(each) for each in sets], _max_pending(program))


def _add_terms(
    program: Program, whole: dict[str, list[int]], real: dict[str, list[float]], sets: dict[frozenset[int], int]
) -> None:
    if not program.linear:
        return
    leaves = [program.linear[number] for number in program.answered]
    terms = [term for leaf in leaves for term in leaf.terms]
    whole["TERM"] = starts(leaf.terms for leaf in leaves)
    whole["TERM_FEATURE"] = [feature for feature, _, _ in terms]
    whole["TERM_SET"] = [-1 if upper is None else sets.setdefault(upper, len(sets)) for _, upper, _ in terms]
    real["COEFFICIENT"] = [coefficient for _, _, coefficient in terms]
    real["TABLE"] = [leaf.intercept for leaf in leaves]


def _max_pending(program: Program) -> int:
    steps = program.steps
    waiting, stack = {0: 1}, [0] if program.divides else []
    while stack:
        at = stack.pop()
        step = steps[at]
        beside = waiting[at] + (len(step.targets) if step.kind == DIVIDE else 0)
        for target in {*step.targets, step.absent} - {-1}:
            if waiting.get(target, 0) < beside:
                waiting[target] = beside
                stack.append(target)
    return max(waiting.values())


def listed_numbers(model: Model) -> list[float]:
    """Return the numbers that mean a missing value. Dates are not compared with them."""
    return sorted(MissingValues.of(model.schema.missing_values).numbers)


def missing_numbers(model: Model) -> list[list[float]]:
    """Return, for each attribute, the numbers that mean a missing value: `listed_numbers` for numbers, else none."""
    listed = listed_numbers(model)
    return [listed if feature.kind is FeatureKind.NUMERIC else [] for feature in model.schema.attributes]


def known_codes(model: Model) -> list[dict[tuple[str, Label], int]]:
    """Return, for each attribute, `category_codes` without the labels that mean a missing value."""
    listed, known = MissingValues.of(model.schema.missing_values), list[dict[tuple[str, Label], int]]()
    for feature in model.schema.attributes:
        missing, codes = listed.besides(feature.categories), category_codes(feature.categories)
        known.append({key: code for key, code in codes.items() if not missing.contains(key[1])})
    return known


def category_literals(model: Model, literal: Callable[[Label], str]) -> list[list[list[str]]]:
    """Return, for each attribute, the literals of each category by its code. Equal integers and floats share a literal.

    Labels of another type than that of the first category are left out.
    """
    found = list[list[list[str]]]()
    for feature, codes in zip(model.schema.attributes, known_codes(model), strict=True):
        literals = [dict[Label, str]() for _ in feature.categories]
        for (_, label), code in codes.items():
            if type_of(label) == type_of(feature.categories[0]):
                literals[code].setdefault(label, literal(label))
        found.append([list(each.values()) for each in literals])
    return found


def imputed_values(model: Model) -> list[float]:
    """Return the value that replaces missing values of each attribute; NaN if they are not replaced."""
    imputed = model.preparation.imputed
    return list(imputed) if imputed is not None else [math.nan] * len(model.schema.attributes)


def class_texts(model: Model) -> list[str]:
    """Return the classes as text: the keys of the probabilities."""
    return [label_text(label) for label in model.schema.classes]


def starts(lists: Iterable[Sized]) -> list[int]:
    """Return the indexes at which the lists begin in their concatenation, followed by its length."""
    return list(accumulate(map(len, lists), initial=0))


def bracketed(items: Sequence[str]) -> str:
    """Return literals as a list in brackets."""
    return f"[\n    {wrapped(items)},\n]" if items else "[]"


def wrapped(items: Sequence[Any], *, width: int = 12) -> str:
    """Return the lines of a list of literals, `width` literals on each line."""
    lines = (", ".join(items[at : at + width]) for at in range(0, len(items), width))
    return ",\n    ".join(lines)
