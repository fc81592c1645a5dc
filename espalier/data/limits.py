"""Limits on the size of a table, checked while it is read."""

import sys
from dataclasses import dataclass
from typing import Final

from espalier.errors import TooLarge

NO_LIMIT: Final = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the size of a table that is read. By default, nothing is limited.

    Attributes:
        rows: Maximum number of rows.
        columns: Maximum number of columns.
        cells: Maximum number of cells: rows times columns.
        cell_chars: Maximum number of characters of the text in a cell.
        categories: Maximum number of categories of all columns together.
        content: Maximum number of bytes of the content, after decompression.
        line: Maximum number of bytes of a line in NDJSON and ARFF.

    >>> Limits(rows=2).check("rows", 3)
    Traceback (most recent call last):
    espalier.errors.TooLarge: too many rows: at most 2 are allowed
    """

    rows: int = NO_LIMIT
    columns: int = NO_LIMIT
    cells: int = NO_LIMIT
    cell_chars: int = NO_LIMIT
    categories: int = NO_LIMIT
    content: int = NO_LIMIT
    line: int = NO_LIMIT

    def check(self, what: str, given: int) -> None:
        """Check `given` against the limit of `what`, one of the attributes.

        Raises:
            TooLarge: `given` is above the limit.
        """
        limit = getattr(self, what)
        if given > limit:
            raise TooLarge(WORDS.get(what, what), limit)

    def check_table(self, *, n_rows: int, n_columns: int) -> None:
        """Check the numbers of rows, columns and cells."""
        self.check("columns", n_columns)
        self.check("rows", n_rows)
        self.check("cells", n_rows * n_columns)


WORDS: Final = {
    "cell_chars": "characters in one cell",
    "categories": "categories in all columns together",
    "content": "bytes after decompression",
    "line": "bytes in one line",
}
"""The words for some limits in messages. Other limits are called by their names."""

UNLIMITED: Final = Limits()
