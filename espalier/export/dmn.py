"""Write a model as a decision table of DMN 1.3. Each case becomes one or more rules; the first rule that holds counts.

A cell has a form that every engine reads: an interval, literals within ``not``, or a list of literals and at most one
comparison. A condition that needs more (an interval and null, or an interval with a gap) becomes several rules::

    x in (1, 5], or x is missing        rule 1:  (1..5]     rule 2:  null

Each number is written as the shortest decimal that reads back as the same double, so decimals compare like doubles.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count, pairwise, product
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from espalier.data.labels import Label
from espalier.export.cases import Part, cases_of, flat_obstacle, n_answers, size_obstacle
from espalier.export.obstacles import number_obstacle, type_obstacle, type_of
from espalier.export.program import Exported, Program
from espalier.export.tables import category_literals, missing_numbers
from espalier.model.model import Model

NAMESPACE: Final = "https://www.omg.org/spec/DMN/20191111/MODEL/"
MAX_RULES: Final = 100_000
UNREADABLE: Final = re.compile(r'["\\\x00-\x1f\ufffe\uffff]|^$')
"""Texts that engines read in different ways, or not at all."""
NO_NAME: Final = re.compile(r"[^0-9A-Za-z_]")
KEYWORDS: Final = re.compile(
    "and|between|date|day|else|every|external|false|for|function|if|in|instance|not|null|of|or|return|satisfies|some"
    "|then|time|true"
)
TYPES: Final[Mapping[str, str]] = {"text": "string", "truth value": "boolean", "number": "number"}
ANY: Final = "-"


def dmn_table(given: Exported) -> str:
    """Return a DMN document: an input per attribute, and one decision. `dmn_obstacle` must be None for the model."""
    return "".join(f"{line}\n" for line in _lines(given.model, given.program, given.notes))


def dmn_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly; None if it can."""
    if program.linear:
        return "its leaves are equations, and a decision table answers with constants"
    reasons = (number_obstacle(model, "DMN"), flat_obstacle(model, program), *_of_columns(model))
    return next(filter(None, reasons), None) or _of_size(model, program)


def _of_columns(model: Model) -> Iterator[str | None]:
    for feature in (*model.schema.attributes, *filter(None, [model.schema.target])):
        yield type_obstacle(feature, "and an input of DMN has one type")
        if UNREADABLE.search(feature.name):
            yield f"the name {feature.name!r} has a quote, a backslash or a control character"
        for label in feature.categories:
            if isinstance(label, str) and UNREADABLE.search(label):
                what = "a quote, a backslash or a control character" if label else "no character"
                yield f"a category of {feature.name!r} has {what}, which engines read in different ways"


def _of_size(model: Model, program: Program) -> str | None:
    attributes = model.schema.attributes
    reason = size_obstacle(n_answers(program), len(attributes))
    if reason is not None:
        return reason
    missing = missing_numbers(model)
    n_rules = sum(math.prod(_n_cells(part, missing) for part in case.parts) for case in cases_of(model, program))
    if n_rules > MAX_RULES:
        return f"it needs {n_rules:,} rules, and at most {MAX_RULES:,} are written"
    return size_obstacle(n_rules, len(attributes))


def _n_cells(part: Part, missing: Sequence[Sequence[float]]) -> int:
    return 1 if part.codes is not None else len(_number_cells(part, missing[part.feature]))


def _lines(model: Model, program: Program, notes: Sequence[str]) -> Iterator[str]:
    attributes = model.schema.attributes
    outputs: dict[str, str | None] = {"value": "number", "leaf": "number"}
    if model.schema.classes:
        outputs = {"label": _type(model.schema.classes), "probabilities": None, "leaf": "number"}
    names = _names([feature.name for feature in attributes], taken=outputs)
    types = [_type(feature.categories) if feature.coded else "number" for feature in attributes]
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from (f"<!-- {note} -->" for note in notes)
    yield f'<definitions xmlns="{NAMESPACE}" id="model" name="model" namespace="urn:espalier">'
    for place, (feature, name, kind) in enumerate(zip(attributes, names, types, strict=True)):
        yield f'<inputData id="input_{place}" name="{name}" label={quoteattr(feature.name)}>'
        yield f'<variable name="{name}" typeRef="{kind}"/></inputData>'
    yield '<decision id="decision" name="decision"><variable name="decision"/>'
    for place in range(len(names)):
        yield f'<informationRequirement><requiredInput href="#input_{place}"/></informationRequirement>'
    yield '<decisionTable id="table" hitPolicy="FIRST">'
    for name, kind in zip(names, types, strict=True):  # some engines evaluate the label instead of the expression
        yield f'<input label="{name}"><inputExpression typeRef="{kind}"><text>{name}</text></inputExpression></input>'
    for name, output in outputs.items():
        yield f'<output name="{name}"/>' if output is None else f'<output name="{name}" typeRef="{output}"/>'
    literals, missing = category_literals(model, _literal), missing_numbers(model)
    for case in cases_of(model, program):
        by_place = {part.feature: _cells(part, literals[part.feature], missing[part.feature]) for part in case.parts}
        cells = [by_place.get(place, [ANY]) for place in range(len(attributes))]
        yield from _rules(model, program, case.number, cells)
    yield "</decisionTable></decision>"
    yield "</definitions>"


def _rules(model: Model, program: Program, number: int, cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a case: a rule for each combination of cells, since a condition may need several cells."""
    row = program.table[number].tolist()
    answer = [_literal(row[0])]
    if model.schema.classes:
        answer = [_literal(model.schema.classes[program.codes[number]]), f"[{', '.join(map(_literal, row))}]"]
    written = "".join(f"<outputEntry><text>{escape(text)}</text></outputEntry>" for text in (*answer, str(number)))
    for combination in product(*cells):
        yield "<rule>" + "".join(f"<inputEntry><text>{escape(cell)}</text></inputEntry>" for cell in combination)
        yield f"{written}</rule>"


def _cells(part: Part, literals: Sequence[Sequence[str]], missing: Sequence[float]) -> list[str]:
    """Return the cells of a condition. For each value that meets the condition, one of the cells holds.

    Args:
        part: The condition.
        literals: The literals of each category of the attribute, by its code.
        missing: The numbers that mean a missing value of the attribute.
    """
    if part.codes is None:
        return _number_cells(part, missing)
    if not part.absent:
        return [", ".join(text for code in sorted(part.codes) for text in literals[code])]
    others = ", ".join(text for code, texts in enumerate(literals) if code not in part.codes for text in texts)
    return [f"not({others})" if others else ANY]


def _number_cells(part: Part, numbers: Sequence[float]) -> list[str]:
    absent = ", ".join(["null", *map(_literal, numbers)])
    if not part.known:
        return [absent]
    if math.isinf(part.above) and math.isinf(part.at_most):
        return [ANY if part.absent else f"not({absent})"]
    if part.absent:
        cell = _interval(part.above, part.at_most)
        return [cell, absent] if cell.startswith("(") else [f"{cell}, {absent}"]
    inside = [number for number in numbers if part.above < number <= part.at_most]
    intervals = [_interval(above, below, "<", ")") for above, below in pairwise([part.above, *inside])]
    last = inside[-1] if inside else part.above
    return [*intervals, _interval(last, part.at_most)] if last < part.at_most else intervals


def _interval(above: float, end: float, sign: str = "<=", bracket: str = "]") -> str:
    """Return the test for numbers above `above` and up to `end`; the sign ``<`` and the bracket ``)`` exclude `end`."""
    if math.isinf(above):
        return f"{sign} {_literal(end)}"
    return f"> {_literal(above)}" if math.isinf(end) else f"({_literal(above)}..{_literal(end)}{bracket}"


def _names(columns: Sequence[str], *, taken: Collection[str]) -> list[str]:
    """Return names that every engine can read, unique and not in `taken`: if possible, each column's own name."""
    names, used, numbers = list[str](), set(taken), dict[str, Iterator[int]]()
    for column in columns:
        name = free = NO_NAME.sub("_", column)
        if name[0].isdigit() or KEYWORDS.fullmatch(name):
            name = free = f"_{name}"
        while free in used:
            free = f"{name}_{next(numbers.setdefault(name, count(2)))}"
        used.add(free)
        names.append(free)
    return names


def _type(labels: Sequence[Label]) -> str:
    return TYPES[type_of(labels[0])] if labels else "string"


def _literal(value: Label) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return f"{Decimal(repr(float(value))).normalize():f}"
