"""Why a column cannot be expressed in a format: its name, its number of types, numbers that become one.

Each function returns the reason, or None if there is none.
"""

from collections.abc import Collection
from typing import Final

from espalier.data.labels import Label, category_codes
from espalier.data.schema import Feature
from espalier.model.model import Model

RESERVED: Final = "espalier_"
"""The names of the answers, and of what is neither input nor answer, begin so."""


def name_obstacle(feature: Feature, answers: Collection[str] = ()) -> str | None:
    """Return why a column cannot have its name: it is that of an answer, or of a step to it.

    Args:
        feature: The column.
        answers: Names of answers that do not begin with `RESERVED`.
    """
    if feature.name.lower().startswith(RESERVED) or feature.name in answers:
        legal = ", ".join((*answers, f"{RESERVED}…"))
        return f"the column {feature.name!r} has a name of the answers: {legal}"
    return None


def type_obstacle(feature: Feature, reason: str) -> str | None:
    """Return `reason` if the categories of a column are of different types."""
    if len(set(map(type_of, feature.categories))) > 1:
        return f"{feature.name!r} has categories of different types, {reason}"
    return None


def number_obstacle(model: Model, language: str) -> str | None:
    """Return why a language with one kind of number cannot tell the categories apart; None if it can."""
    for feature in model.schema.attributes:
        codes = category_codes(feature.categories)
        for (kind, label), code in codes.items():
            if kind == "int" and codes.get(("float", label), code) != code:
                return f"{feature.name!r} has the categories {label} and {float(label)}, one number in {language}"
    return None


def type_of(label: Label) -> str:
    """Return the type of a column that holds a label."""
    return "text" if isinstance(label, str) else "truth value" if isinstance(label, bool) else "number"
