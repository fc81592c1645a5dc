"""Check the size of what a caller sends against the settings."""

import espalier

CELL = "characters in one cell"


def check_size(what: str, *, given: int, limit: int) -> None:
    """Refuse more than the settings allow.

    Raises:
        espalier.TooLarge: `given` is above `limit`.
    """
    if given > limit:
        raise espalier.TooLarge(what, limit)
