"""A model as a flat list of cases. A case is an answer and the conditions of its rows, at most one per attribute.

The cases of a tree exclude each other; in a rule list, the first case that holds counts. A model that may divide rows,
or a tree with surrogates, cannot be written as such a list.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from espalier.export.program import ANSWER, CUT, Program, Step, has_surrogates
from espalier.model.model import Model
from espalier.model.rules import RuleList

FRACTIONAL: Final = (
    "a missing value sends parts of the row down every branch; export with missing='majority', which sends the row "
    "down the heaviest branch"
)
SURROGATES: Final = (
    "surrogate tests choose the branch if a value is missing; export with missing='majority', which sends the row "
    "down the heaviest branch"
)
MAX_CELLS: Final = 2_000_000
"""Maximum number of cells of a decision table, the empty ones included."""


@dataclass(frozen=True, slots=True)
class Part:
    """The condition of a case on one attribute: the set of values that meet it.

    Attributes:
        feature: Index of the attribute in ``schema.attributes``.
        above: Lower bound of a number, not included; -inf without one.
        at_most: Upper bound of a number, included; inf without one.
        codes: Codes of the categories that meet the condition; None for a number.
        known: Whether some known value meets the condition.
        absent: Whether a missing value or an unseen category meets it.
    """

    feature: int
    above: float = -math.inf
    at_most: float = math.inf
    codes: frozenset[int] | None = None
    known: bool = True
    absent: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """A case: a row that meets every part gets the answer of the node or rule `number`."""

    parts: tuple[Part, ...]
    number: int


def flat_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be written as a flat list of cases; None if it can."""
    if has_surrogates(model):
        return SURROGATES
    return FRACTIONAL if program.divides else None


def size_obstacle(n_rules: int, n_columns: int) -> str | None:
    """Return why a decision table with a cell for each rule and column is too large; None if it is not."""
    if n_rules * n_columns <= MAX_CELLS:
        return None
    return f"it needs {n_rules:,} rules with {n_columns:,} cells each, and at most {MAX_CELLS:,} cells are written"


def n_answers(program: Program) -> int:
    """Return the number of final steps: the number of cases, or more if no row reaches some of these steps."""
    return sum(step.kind == ANSWER for step in program.steps)


def cases_of(model: Model, program: Program) -> list[Case]:
    """Return the cases of a model, in the order of its leaves or rules; `flat_obstacle` must be None for the model."""
    wholes = [
        Part(place, codes=frozenset(range(len(feature.categories))) if feature.coded else None)
        for place, feature in enumerate(model.schema.attributes)
    ]
    if isinstance(model.body, RuleList):
        return list(_rule_cases(program.steps, wholes))
    return list(_tree_cases(program.steps, wholes))


def _narrowed(part: Part, step: Step) -> dict[int, Part]:
    """Return, by target of `step`, `part` limited to the values that lead there. Omit targets without values."""
    codes = dict[int, set[int]]()
    for code in part.codes or ():
        target = step.targets[int(code > step.threshold) if step.kind == CUT else code]
        codes.setdefault(target, set()).add(code)
    parts = dict[int, Part]()
    for target in sorted({*step.targets, step.absent}):
        absent = part.absent and step.absent == target
        if part.codes is not None:
            taken = frozenset(codes.get(target, ()))
            narrow = replace(part, codes=taken, known=bool(taken), absent=absent)
        else:
            narrow = _interval(part, step, target, absent=absent)
        if narrow.known or narrow.absent:
            parts[target] = narrow
    return parts


def _interval(part: Part, step: Step, target: int, *, absent: bool) -> Part:
    below, over = (each == target for each in step.targets)
    at_most = part.at_most if over else min(part.at_most, step.threshold)
    above = part.above if below else max(part.above, step.threshold)
    known = part.known and (below or over) and above < at_most
    return replace(part, above=above, at_most=at_most, known=known, absent=absent)


def _rule_cases(steps: tuple[Step, ...], wholes: list[Part]) -> Iterator[Case]:
    parts: dict[int, Part] | None = {}
    for at, step in enumerate(steps):
        if step.kind == ANSWER:
            if parts is not None:
                yield Case(tuple(parts.values()), step.number)
            parts = {}
        elif parts is not None:
            # If a test of a rule holds, the next step follows.
            narrow = _narrowed(parts.get(step.feature, wholes[step.feature]), step).get(at + 1)
            parts = None if narrow is None else {**parts, step.feature: narrow}


def _tree_cases(steps: tuple[Step, ...], wholes: list[Part]) -> Iterator[Case]:
    stack: list[tuple[int, dict[int, Part]]] = [(0, {})]
    while stack:
        at, parts = stack.pop()
        step = steps[at]
        if step.kind == ANSWER:
            yield Case(tuple(parts.values()), step.number)
            continue
        narrowed = _narrowed(parts.get(step.feature, wholes[step.feature]), step)
        stack += [(target, {**parts, step.feature: narrow}) for target, narrow in reversed(narrowed.items())]
