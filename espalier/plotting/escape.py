"""Escape text of users, so that it cannot begin a tag, end an attribute, or be illegal XML."""

from typing import Final

from espalier.model.texts import one_line

ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def legal_text(text: str) -> str:
    r"""Return the text on one line, with escapes for noncharacters and all that XML or UTF-8 does not allow.

    >>> legal_text("a\x00b\ufffe"), legal_text("a\ud800")
    ('a\\x00b\\ufffe', 'a\\ud800')
    """
    text = one_line(text)
    if text.isprintable():
        return text
    return "".join(each if _is_legal(ord(each)) else each.encode("unicode_escape").decode("ascii") for each in text)


def xml_text(text: str) -> str:
    """Return text escaped for XML and HTML, between tags and in quoted attributes.

    >>> xml_text("</title><script>alert('x')</script>")
    '&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;'
    """
    return legal_text(text).translate(ENTITIES)


def _is_legal(code: int) -> bool:
    """Return whether XML 1.0 allows the character in a line; False for noncharacters (…FFFE, …FFFF, FDD0 to FDEF)."""
    in_range = 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0x10FFFF
    return in_range and code & 0xFFFE != 0xFFFE and not 0xFDD0 <= code <= 0xFDEF
