"""Write a model as one Python file without dependencies."""

import math
from string import Template
from typing import Any

from espalier.data.schema import FeatureKind
from espalier.export.program import Exported
from espalier.export.tables import bracketed, class_texts, imputed_values, known_codes, listed_numbers, source_tables

TEMPLATE = Template('''\
$comment
import math

NAN, INFINITY = math.nan, math.inf
NAMES = $names
# For each attribute, the code of each category; None for an attribute of numbers.
CODES = $codes
MISSING_TEXTS = $missing_texts
MISSING_NUMBERS = $missing_numbers
# For each attribute, whether it is a date, which is not compared with MISSING_NUMBERS.
DATES = $dates
IMPUTED = $imputed
LABELS = $labels
TEXTS = $texts
SETS = $sets
LIMIT = 1e150
ANSWERED, CUT, CATEGORY, DIVIDE = 0, 1, 2, 3
$tables


def predict(row):
    """Return the answer to a row, a mapping of attribute names to values; None, NaN and absent values are missing.

    Classification: {"label", "leaf", "probability": {class: share}}. Regression: {"value", "leaf"}.
    """
    values = [_encoded(name, row.get(name), *given) for name, *given in zip(NAMES, CODES, DATES, IMPUTED)]
    pending, reached, divided = [(0, 1.0)], [], False
    while pending:
        step, weight = pending.pop()
        while KIND[step] in (CUT, CATEGORY):
            value = values[FEATURE[step]]
            if value != value:
                step = ABSENT[step]
            elif KIND[step] == CUT:
                step = TARGET[FIRST[step] + (value > THRESHOLD[step])]
            else:
                step = TARGET[FIRST[step] + int(value)]
        if KIND[step] == DIVIDE:
            divided = True
            pending += [(TARGET[at], weight * SHARE[at]) for at in range(FIRST[step], FIRST[step + 1])]
        else:
            reached.append((ANSWER[step], weight))
    leaf = min(reached, key=lambda part: (-part[1], part[0]))[0]
    if not LABELS:
        value = math.fsum(weight * TABLE[at] for at, weight in reached) if divided else _number(leaf, values)
        return {"value": value, "leaf": LEAF[leaf]}
    width = len(LABELS)
    shares, code = TABLE[leaf * width : leaf * width + width], CODE[leaf]
    if divided:
        shares = [math.fsum(weight * TABLE[at * width + code] for at, weight in reached) for code in range(width)]
        code = shares.index(max(shares))
    return {"label": LABELS[code], "leaf": LEAF[leaf], "probability": dict(zip(TEXTS, shares))}


def _encoded(name, cell, codes, is_date, imputed):
    if cell is None or cell != cell:
        return imputed
    if hasattr(cell, "item"):
        cell = cell.item()  # a scalar of numpy
    if codes is not None:
        # The cell may be of a subclass, such as a member of an enumeration.
        kind = next((each for each in (bool, str, int, float) if isinstance(cell, each)), None)
        code = None if kind is None else codes.get((kind.__name__, cell))
        return imputed if code is None else code
    if isinstance(cell, str) and cell in MISSING_TEXTS:
        return imputed
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        raise TypeError(f"{name}: must be a number, or None for missing")
    return imputed if cell in MISSING_NUMBERS and not is_date else float(cell)


def _number(leaf, values):
    value = TABLE[leaf]
    if TERM:
        for at in range(TERM[leaf], TERM[leaf + 1]):
            cell = values[TERM_FEATURE[at]]
            column = min(max(cell, -LIMIT), LIMIT) if TERM_SET[at] < 0 else float(cell in SETS[TERM_SET[at]])
            value += COEFFICIENT[at] * column
        value = min(max(value, -LIMIT), LIMIT)
    return value
''')


def python_source(given: Exported) -> str:
    """Return a Python file with ``predict(row)``."""
    tables, schema = source_tables(given.program), given.model.schema
    lists: dict[str, list[Any]] = {**tables.whole, **tables.real}
    known = zip(schema.attributes, known_codes(given.model), strict=True)
    codes = [each if feature.coded else None for feature, each in known]
    return TEMPLATE.substitute(
        comment="\n".join(f"# {note}" for note in given.notes),
        names=bracketed([ascii(feature.name) for feature in schema.attributes]),
        codes=bracketed([_literal(each) for each in codes]),
        missing_texts=f"frozenset({sorted(schema.missing_values)!a})",
        missing_numbers=f"frozenset({listed_numbers(given.model)})",
        dates=bracketed([ascii(feature.kind is FeatureKind.DATETIME) for feature in schema.attributes]),
        imputed=bracketed([_literal(value) for value in imputed_values(given.model)]),
        labels=bracketed([ascii(label) for label in schema.classes]),
        texts=bracketed([ascii(text) for text in class_texts(given.model)]),
        sets=bracketed([f"frozenset({each})" for each in tables.sets]),
        tables="\n".join(f"{name} = {bracketed(list(map(_literal, items)))}" for name, items in lists.items()),
    )


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NAN" if math.isnan(value) else ("INFINITY" if value > 0 else "-INFINITY")
    return ascii(value)
