"""Compute upper bounds of the widths of texts, and break texts into lines that fit a width."""

from typing import Final
from unicodedata import category, decomposition, east_asian_width

LINE: Final = 1.25
"""Height of a line, in multiples of the font size."""
BOLD: Final = 1.16
ELLIPSIS: Final = "…"

# Widths in multiples of the font size, at least those of the widest fonts in common use (Verdana, DejaVu Sans).
CLASSES: Final = (
    (0.43, " ijlI.,:;'|!ftr()[]/\\-·"),
    (0.60, '"sJczkvxy`*?_'),
    (0.70, "abdeghnopqu0123456789$FLEPTYZSKXAVBRC{}"),
    (0.87, "wDGHNOQUM<>=+≤≥±×~^#&–−"),
    (1.02, "mW@%…"),
)
WIDTHS: Final = {ord(character): width for width, characters in CLASSES for character in characters}
OTHER: Final = 1.1
WIDE: Final = 1.4
"""Width of an ideograph or a pictogram."""
COMBINING: Final = frozenset({"Mn", "Me", "Cf"})
"""Unicode categories of characters without a width."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper bound of the width of a text, in the unit of `size`."""
    width = sum(map(_width, text))
    return width * size * (BOLD if bold else 1.0)


def wrap_text(text: str, *, width: float, size: float, most: int, bold: bool = False) -> tuple[list[str], bool]:
    """Break a text into at most `most` lines of `width`, at spaces if there are any.

    Returns:
        The lines, and whether they hold the whole text; if not, the last one ends in an ellipsis.

    >>> wrap_text("education-num", width=200, size=12, most=2)
    (['education-num'], True)
    >>> wrap_text("marital status of the person", width=100, size=12, most=2)
    (['marital status', 'of the person'], True)
    """
    room = width / size / (BOLD if bold else 1.0)
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < most:
        end = _fitting(rest, room)
        if end < len(rest):
            space = rest.rfind(" ", 1, end + 1)
            end = space if space > 0 else end
        lines.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    if not rest:
        return lines or [""], True
    last = lines[-1]
    lines[-1] = last[: _fitting(last, room - _width(ELLIPSIS))].rstrip() + ELLIPSIS
    return lines, False


def _fitting(text: str, room: float) -> int:
    used = 0.0
    for place, character in enumerate(text):
        used += _width(character)
        if used > room:
            return max(place, 1)
    return len(text)


def _width(character: str) -> float:
    known = WIDTHS.get(ord(character))
    if known is not None:
        return known
    if category(character) in COMBINING:
        return 0.0
    base = decomposition(character).partition(" ")[0]
    if base and base[0] != "<":
        return _width(chr(int(base, 16)))  # a letter with an accent
    return WIDE if east_asian_width(character) in "WF" or ord(character) > 0xFFFF else OTHER
