"""Documents of PMML with some of their strategies, operators, values and fields exchanged."""

import random
import re
from collections.abc import Iterator

WORDS = {
    r'missingValueStrategy="(\w+)"': ("none", "lastPrediction", "defaultChild", "nullPrediction"),
    r'noTrueChildStrategy="(\w+)"': ("returnLastPrediction", "returnNullPrediction"),
    r'booleanOperator="(isIn|isNotIn)"': ("isIn", "isNotIn"),
    r'booleanOperator="(and|or|xor|surrogate)"': ("and", "or", "xor", "surrogate"),
    r' operator="(\w+)"': (
        "equal",
        "notEqual",
        "lessThan",
        "lessOrEqual",
        "greaterThan",
        "greaterOrEqual",
        "isMissing",
    ),
    r' operator="\w+" value="([\d.]+)"': (),  # another one of the document
    r' field="([^"]+)"': (),
}


def mutations(documents: dict[str, str], *, seed: int) -> Iterator[tuple[str, str]]:
    """Yield names of documents with a changed text, without end."""
    draw = random.Random(seed)
    while True:
        name = draw.choice(sorted(documents))
        text = documents[name]
        for _ in range(draw.randint(1, 3)):
            pattern = draw.choice(sorted(WORDS))
            found = list(re.finditer(pattern, text))
            if found:
                place = draw.choice(found)
                words = WORDS[pattern] or [each.group(1) for each in found]
                text = text[: place.start(1)] + draw.choice(words) + text[place.end(1) :]
        yield name, text
