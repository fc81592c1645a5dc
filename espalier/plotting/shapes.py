"""SVG elements and colours of a drawn tree; a reader's dark scheme replaces the light colours."""

from typing import Final

from espalier.plotting.escape import xml_text

INK: Final = 'class="ink" fill="#1a1d21"'
CANVAS: Final = 'class="canvas" fill="#ffffff"'
EDGE: Final = 'class="edge" fill="none" stroke="#7d8793"'
PATH: Final = 'class="path" fill="none" stroke="#c2255c"'
BOX: Final = 'class="box edge" fill="#f3f5f8" stroke="#7d8793"'
BOX_ON_PATH: Final = 'class="box path" fill="#f3f5f8" stroke="#c2255c"'
SVG_STYLE: Final = (
    "@media (prefers-color-scheme:dark){"
    ".espalier-tree .canvas{fill:#15181d}"
    ".espalier-tree .ink{fill:#e9edf2}"
    ".espalier-tree .edge{stroke:#8d98a5}"
    ".espalier-tree .path{stroke:#ff6b9d}"
    ".espalier-tree .box{fill:#232830}}"
)
"""The style sheet in every picture: the colours for a reader's dark scheme. If the policy of a page allows no style,
the light colours stay legible on their white background."""


def text(content: str, x: float, y: float, *, size: float, bold: bool = False) -> str:
    """Return one line of text whose baseline begins at (x, y)."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{weight} {INK}>{xml_text(content)}</text>'


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
