"""The cells, besides empty cells, that mean a missing value: ``?`` and ``NA``, unless a schema lists other texts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from espalier.arrays import Floats
from espalier.data.labels import Label, category_codes, label_text
from espalier.data.number_parsing import is_number, number_from_text

DEFAULT_MISSING_VALUES: Final = ("?", "NA")


@dataclass(frozen=True, slots=True)
class MissingValues:
    """The cells that mean a missing value. `are_default`: whether `of` was given exactly ``?`` and ``NA``.

    A text means a missing value if exactly this text is listed. A number means a missing value if a listed text means
    this number: with ``-999``, JSON's number -999 is missing, and so is CSV's ``-999.0`` in a column of numbers.

    >>> missing = MissingValues.of(["?", "-999"])
    >>> [missing.contains(cell) for cell in ("?", "-999", -999, -999.0, "-999.0", 999, True)]
    [True, True, True, True, False, False, False]
    """

    texts: frozenset[str]
    numbers: frozenset[float]
    are_default: bool = False
    are_declared: bool = False

    @classmethod
    def of(cls, texts: Iterable[str], *, are_declared: bool = False) -> "MissingValues":
        """Return the missing values that `texts` lists. If `are_declared`, they apply to categorical types, too."""
        texts = frozenset(texts)
        numbers = map(number_from_text, texts)
        known = frozenset(number for number in numbers if number is not None)
        return cls(texts, known, texts == frozenset(DEFAULT_MISSING_VALUES), are_declared)

    def besides(self, categories: Iterable[Label]) -> "MissingValues":
        """Return the missing values without each text and each number that stands for one of `categories`.

        >>> MissingValues.of(["?", "NA", "-1"]).besides(["EU", "NA", -1.0])
        MissingValues(texts=frozenset({'?'}), numbers=frozenset(), are_default=False, are_declared=False)
        """
        declared = tuple(categories) if self.texts else ()
        known = category_codes(declared) if self.numbers else {}
        of_numbers = [text for (_, text), code in known.items() if is_number(declared[code])]
        texts = self.texts.intersection([*map(label_text, declared), *of_numbers])
        numbers = {number for number in self.numbers if ("int", number) in known or ("float", number) in known}
        return replace(self, texts=self.texts - texts, numbers=self.numbers - numbers) if texts or numbers else self

    def contains(self, cell: Any) -> bool:
        """Return whether a cell, which is a text or another JSON value, means a missing value."""
        if isinstance(cell, str):
            return cell in self.texts
        return bool(self.numbers) and type(cell) in (int, float) and cell in self.numbers

    def mask(self, values: Floats) -> Floats:
        """Return the numbers, with NaN for those that mean a missing value."""
        if not self.numbers:
            return values
        return np.where(np.isin(values, list(self.numbers)), np.nan, values)
