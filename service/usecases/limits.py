"""Check the size of what a caller sends against the settings."""

from service.errors import TooLarge

CELL = "characters in one cell"


def check_size(what: str, *, given: int, limit: int) -> None:
    """Refuse more than the settings allow.

    Raises:
        TooLarge: `given` is above `limit`.
    """
    if given > limit:
        raise TooLarge(what=what, given=given, limit=limit)
