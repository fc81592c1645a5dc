"""Characters that no name and no category may have: not every database takes NUL, and UTF-8 has no lone surrogates."""

from typing import Final

NOT_TEXT: Final = "must not hold NUL or lone surrogates"


def is_not_text(text: str) -> bool:
    r"""Say whether a text has such a character.

    >>> is_not_text("größe 🌳"), is_not_text("a\0"), is_not_text("\ud800")
    (False, True, True)
    """
    if "\0" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
