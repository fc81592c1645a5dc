"""Write a model as a decision table of GoRules JDM. Each case becomes a rule, and the first rule that holds counts.

Engines compute with decimals of at most 28 places. A threshold is written as the shortest decimal that reads back as
the same double. The JavaScript engine reads all digits of an input, so it compares like doubles. The Python engine
rounds an input to 15 or 16 significant digits. An input of at most 15 digits is on the same side of a threshold as its
double. Longer inputs that round to the same digits are not distinguished.

An attribute that the model does not test is not an input. Every rule has a cell for every input: in some engines, a
rule that lacks a cell does not hold.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from espalier.data.labels import Label
from espalier.data.schema import Feature, FeatureKind
from espalier.export.cases import Case, Part, cases_of, flat_obstacle, n_answers, size_obstacle
from espalier.export.obstacles import number_obstacle, type_obstacle
from espalier.export.program import CUT, Exported, Program
from espalier.export.tables import category_literals, listed_numbers, missing_numbers
from espalier.model.model import Model

JDM_TYPE: Final = "application/vnd.gorules.decision"
MAX_NUMBER: Final = 2.0**53
"""Written numbers are below this in absolute value: of larger whole inputs, engines read more than 15 digits."""
MAX_PLACES: Final = 28
"""Maximum number of digits after the decimal point."""
MAX_DIGITS: Final = 15
"""Maximum number of significant digits of a number that no engine rounds."""


def jdm_table(given: Exported) -> str:
    """Return a JDM document: an input, a decision table and an output."""
    model, program = given.model, given.program
    attributes, literals, missing = model.schema.attributes, category_literals(model, _literal), missing_numbers(model)
    inputs = {place: _Column(attributes[place], literals[place], missing[place]) for place in _tested(program)}
    outputs = ["label", "probabilities", "leaf"] if model.schema.classes else ["value", "leaf"]
    rules = [_rule(model, program, inputs, case, number) for number, case in enumerate(cases_of(model, program))]
    content = {
        "hitPolicy": "first",
        "inputs": [
            {"id": f"i{place}", "name": each.feature.name, "field": f"$root[{_text(each.feature.name)}]"}
            for place, each in inputs.items()
        ],
        "outputs": [{"id": name, "name": name, "field": name} for name in outputs],
        "rules": rules,
    }
    nodes = [_node("inputNode", 0), _node("decisionTableNode", 1, content=content), _node("outputNode", 2)]
    edges = [
        {"id": f"e{place}", "type": "edge", "sourceId": one["id"], "targetId": other["id"]}
        for place, (one, other) in enumerate(pairwise(nodes))
    ]
    document = {
        "contentType": JDM_TYPE,
        "description": "\n".join(given.notes),
        "nodes": nodes,
        "edges": edges,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def jdm_obstacle(model: Model, program: Program) -> str | None:
    """Return why a model cannot be expressed exactly as a JDM decision table; None if it can."""
    if program.linear:
        return "its leaves are equations, and a decision table answers with constants"
    reasons = (number_obstacle(model, "JDM"), flat_obstacle(model, program), *_obstacles(model, program))
    return next(filter(None, reasons), None) or size_obstacle(n_answers(program), len(_tested(program)))


def _tested(program: Program) -> list[int]:
    return sorted({step.feature for step in program.steps if step.feature >= 0})


def _obstacles(model: Model, program: Program) -> Iterator[str | None]:
    attributes = model.schema.attributes
    for step in program.steps:
        if step.kind == CUT and not attributes[step.feature].coded and not _is_decimal(step.threshold):
            name = attributes[step.feature].name
            yield f"a threshold of {name!r} needs more than {MAX_PLACES} decimal places or is not within ±2^53"
    has_numbers = any(attributes[place].kind is FeatureKind.NUMERIC for place in _tested(program))
    missing = listed_numbers(model) if has_numbers else []
    if not all(_is_decimal(number) and len(_digits(number)) <= MAX_DIGITS for number in missing):
        yield f"a number that means missing has more than {MAX_DIGITS} digits, or is too large or small"
    for feature in attributes:
        yield type_obstacle(feature, "which engines mix up in a list")
        for label in feature.categories:
            if not isinstance(label, str) and not (_is_decimal(label) and len(_digits(label)) <= MAX_DIGITS):
                yield f"{feature.name!r} has the category {label}: more than {MAX_DIGITS} digits, or too large or small"
    if not all(isinstance(label, str) or _is_decimal(label) for label in model.schema.classes):
        yield f"a class needs more than {MAX_PLACES} decimal places or is not within ±2^53"
    if not model.schema.classes and not all(map(_is_decimal, program.table[list(program.answered), 0].tolist())):
        yield f"a value of a leaf needs more than {MAX_PLACES} decimal places or is not within ±2^53"


def _is_decimal(number: float) -> bool:
    """Return whether engines keep every digit of a written number; True for infinity, which is not written."""
    exponent = Decimal(repr(float(number))).as_tuple().exponent
    return not isinstance(exponent, int) or (abs(number) < MAX_NUMBER and exponent >= -MAX_PLACES)


def _digits(number: float) -> tuple[int, ...]:
    return Decimal(repr(float(number))).normalize().as_tuple().digits


def _node(kind: str, place: int, **content: Any) -> dict[str, Any]:
    return {"id": kind, "type": kind, "name": kind, "position": {"x": 300 * place, "y": 0}, **content}


def _rule(model: Model, program: Program, inputs: Mapping[int, "_Column"], case: Case, number: int) -> dict[str, str]:
    cells = {f"i{place}": "" for place in inputs}
    cells |= {f"i{part.feature}": inputs[part.feature].cell(part) for part in case.parts}
    row = program.table[case.number].tolist()
    if model.schema.classes:
        answer = {"label": _literal(model.schema.classes[program.codes[case.number]])}
        answer["probabilities"] = _list(map(_literal, row))
    else:
        answer = {"value": _literal(row[0])}
    return {"_id": f"r{number}", **cells, **answer, "leaf": str(case.number)}


class _Column:
    """A column of the decision table: the conditions on an attribute, whose categories have these literals."""

    def __init__(self, feature: Feature, categories: Sequence[Sequence[str]], missing: Sequence[float]) -> None:
        self.feature, self.categories = feature, categories
        self.missing = _list(map(_literal, missing))

    def cell(self, part: Part) -> str:
        """Return the condition of the attribute as an expression; empty if it always holds."""
        if part.codes is not None:
            return self._category_cell(part, part.codes)
        signs = ((">", part.above), ("<=", part.at_most))
        bounds = [f"$ {sign} {_literal(bound)}" for sign, bound in signs if abs(bound) <= MAX_NUMBER]
        if part.known and part.absent and not bounds:
            return ""
        # The engine's `and` and `or` have equal precedence and are read from left to right. Comparing null is an error.
        others = [f"$ not in {self.missing}"] if self.missing != "[]" else []
        known = " and ".join(["$ != null", *others, *bounds])
        absent = f"$ == null or $ in {self.missing}" if others else "$ == null"
        return " or ".join([*([known] if part.known else []), *([absent] if part.absent else [])])

    def _category_cell(self, part: Part, codes: frozenset[int]) -> str:
        if not part.absent:
            return f"$ in {_list(text for code in sorted(codes) for text in self.categories[code])}"
        others = [text for code, texts in enumerate(self.categories) if code not in codes for text in texts]
        return f"$ == null or $ not in {_list(others)}" if others else ""


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _literal(value: Label) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{Decimal(repr(float(value))).normalize():.28f}".rstrip("0").rstrip(".")


def _text(text: str) -> str:
    """Return a text as an expression. JDM has no escapes: double quotes become separate literals in single quotes."""
    if '"' not in text:
        return f'"{text}"'
    parts = [f'"{part}"' for part in text.split('"')]
    return " + '\"' + ".join(parts)
