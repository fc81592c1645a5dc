"""Records as a table of text: a line each, names to the left, figures to the right."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def table_lines(columns: Mapping[str, str], records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Give a line with the headings and one a record; `columns` has the field of each heading.

    >>> list(table_lines({"who": "name", "share": "part"}, [{"name": "a", "part": 0.25}]))
    ['who  share', 'a     0.25']
    """
    cells = [list(columns), *([cell_text(record[name]) for name in columns.values()] for record in records)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    for first, *others in cells:
        figures = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *figures])


def cell_text(value: Any) -> str:
    """Show a figure with six digits, nothing as ``-``."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
