"""Names, labels and categories as text for people."""

import re
from typing import Final
from unicodedata import category

from espalier.data.labels import Label, label_text
from espalier.data.schema import Feature

LINE_BREAKERS: Final = frozenset({"Cc", "Zl", "Zp"})
"""Unicode categories of line ends and of control characters."""
TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the writing direction of the rest of a line."""
PARTING: Final = re.compile(r'^$|^[\s"]|\s$| (?:or|and|then|is|<|≤|>|=) |[∧∨¬⇔→∈{}]')
"""Matches a name or category that needs quotes. Without quotes, a reader could not see where it ends in a sentence."""


def one_line(text: str) -> str:
    r"""Return text with escapes for control characters, line ends, and changes of the writing direction.

    >>> print(one_line("cost\nif always then yes"))
    cost\nif always then yes
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if category(character) in LINE_BREAKERS or character in TURNING
        else character
        for character in text
    )


def label_line(label: Label) -> str:
    """Return a label on one line; see `one_line`."""
    return one_line(label_text(label))


def name_text(feature: Feature) -> str:
    """Return the name of an attribute for a sentence, in quotes if its end would not be clear."""
    return _set_apart(one_line(feature.name))


def category_text(label: Label) -> str:
    """Return a category for a sentence, in quotes if its end would not be clear.

    >>> print(category_text("Sunny"), category_text("Sunny or Rain"), category_text(""))
    Sunny "Sunny or Rain" ""
    """
    return _set_apart(label_line(label))


def _set_apart(text: str) -> str:
    return text if PARTING.search(text) is None else '"' + text.replace('"', '\\"') + '"'
