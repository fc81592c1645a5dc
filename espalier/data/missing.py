"""Missing values: which cells of a table mean one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from espalier.data.labels import number_from_text


@dataclass(frozen=True, slots=True)
class MissingValues:
    """The cells that mean a missing value.

    A text is one if it is listed, letter by letter; a number is one if a listed text is this number: with ``-999``
    listed, so are the number -999 of JSON, and the text ``-999.0`` of CSV in a column of numbers.

    >>> missing = MissingValues.of(["?", "-999"])
    >>> [missing.contains(cell) for cell in ("?", "-999", -999, -999.0, "-999.0", 999, True)]
    [True, True, True, True, False, False, False]
    """

    texts: frozenset[str]
    numbers: frozenset[float]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "MissingValues":
        """Return the cells that `texts` mean."""
        texts = frozenset(texts)
        numbers = map(number_from_text, texts)
        return cls(texts, frozenset(number for number in numbers if number is not None))

    def contains(self, cell: Any) -> bool:
        """Return whether a cell, text or JSON value, means a missing value."""
        if isinstance(cell, str):
            return cell in self.texts
        return bool(self.numbers) and type(cell) in (int, float) and cell in self.numbers

    def contains_number(self, cell: Any) -> bool:
        """Return whether a cell of a column of numbers means a missing value, however it is written."""
        number = number_from_text(cell) if isinstance(cell, str) else cell
        return number is not None and self.contains(number)

    def mask(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the numbers, with NaN for those that mean a missing value."""
        if not self.numbers:
            return values
        return np.where(np.isin(values, list(self.numbers)), np.nan, values)
