"""Elements of an SVG: text and rectangles, with rounded coordinates."""

from collections.abc import Sequence

from espalier.plotting.colours import INK
from espalier.plotting.escape import xml_text
from espalier.plotting.text_width import LINE


def text(content: str, x: float, y: float, *, size: float, bold: bool = False) -> str:
    """Return one line of text whose baseline begins at (x, y)."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{weight} {INK}>{xml_text(content)}</text>'


def lines_of_text(lines: Sequence[str], x: float, y: float, *, size: float, bold: bool = False) -> list[str]:
    """Return lines of text, one below the other; the baseline of the first begins at (x, y)."""
    return [text(line, x, y + size * LINE * row, size=size, bold=bold) for row, line in enumerate(lines)]


def rectangle(x: float, y: float, width: float, height: float, *attributes: str) -> str:
    """Return a ``rect`` element."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f"<rect {place} {' '.join(attributes)}/>"


def number(value: float) -> str:
    """Return a coordinate as text, rounded to a tenth.

    >>> number(12.0), number(3.14159), number(-0.04)
    ('12', '3.1', '0')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown
